# SPDX-License-Identifier: Apache-2.0
"""What happens inside the simulator: segments and products of a plan, each on what is given.

The plan of a decoder runs as a whole.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import cocotb
import numpy as np

from npu.graph.form import Array
from npu.runtime.plan_files import read_plan
from npu.runtime.prepare import prepare
from npu.runtime.replay import DrivenChip, Replay
from tb.bench.dut import Dut
from tb.bench.environment import reset
from tb.bench.host import RtlBus, RtlChip
from tb.bench.knobs import Knobs
from tb.bench.memory import Memory

REQUEST, RESULT = "request.json", "result.json"
FOLDER = "plan"
"""Of the plan, in the run's folder."""
GIVEN, FOUND, PROGRESS = "given.npz", "found.npz", "progress.txt"
"""Tensors that segments and products take, what they leave, and how many segments have ended."""


@cocotb.test
async def run_segments(dut: Dut) -> None:
    """Run the request of the run's folder."""
    run_dir = Path(str(cocotb.plusargs["run_dir"]))
    request: dict[str, Any] = json.loads((run_dir / REQUEST).read_text(encoding="utf-8"))
    plan = read_plan(run_dir / FOLDER)
    names = request["names"]
    with np.load(run_dir / GIVEN) as stored:
        values: dict[str, Array] = {names[key]: stored[key] for key in stored.files}
    Knobs(**request["knobs"]).apply(dut)
    await reset(dut)
    memory = Memory.map(run_dir / "memory.bin")
    chip = await RtlChip.connect(RtlBus(dut, memory, request["limit"]))
    prepared, driven = prepare(plan), DrivenChip(chip)
    await driven.load(prepared)
    replay = Replay(prepared, driven)
    found: dict[str, Array] = {}
    counters = []
    if plan.decoder is not None:
        run = await replay.run({name: values[name] for name in plan.graph.inputs})
        found |= run.outputs
        counters = [asdict(one) for one in run.counters]
    for number in range(len(plan.segments) if plan.decoder is None else 0):
        left, counted = await replay.segment(number, values)
        found |= left
        counters.append(asdict(counted))
        (run_dir / PROGRESS).write_text(str(number + 1), encoding="utf-8")
    products = {}
    for number, step in plan.products.items():
        product = await replay.product(number, values, "registers")
        found[step.writes[0]] = product.values
        products[str(step.of)] = {"operations": product.operations, "macs": product.macs}
    left_by_key: dict[str, Any] = {key: found[name] for key, name in names.items() if name in found}
    np.savez(run_dir / FOUND, **left_by_key)
    seconds = sum(finish.waited.seconds for finish in chip.finishes)
    result = {"counters": counters, "products": products, "seconds": seconds}
    (run_dir / RESULT).write_text(json.dumps(result), encoding="utf-8")
