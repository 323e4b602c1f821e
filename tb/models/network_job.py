# SPDX-License-Identifier: Apache-2.0
"""What happens inside the simulator: a plan runs from its first step to its last.

What the host makes is given: its evaluators do not work below the test runner of the simulator.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import cocotb
import numpy as np

from npu.driver.chip import Finish
from npu.graph.form import Array, Graph, Operation
from npu.graph.states import States
from npu.runtime.plan_files import read_plan
from npu.runtime.prepare import prepare
from npu.runtime.replay import DrivenChip, Replay
from spec.regs import StartState
from tb.bench.dut import Dut
from tb.bench.environment import reset
from tb.bench.host import RtlBus, RtlChip
from tb.bench.knobs import Knobs
from tb.bench.memory import Memory

REQUEST, RESULT = "request.json", "result.json"
FOLDER = "plan"
"""Of the plan, in the run's folder."""
GIVEN, FOUND, PROGRESS = "given.npz", "found.npz", "progress.txt"
"""What the plan takes and the host makes, what the chip leaves, how many programs have ended."""


@dataclass(frozen=True)
class _Told(DrivenChip):
    """A chip that says in a file how many programs have ended."""

    file: Path

    async def execute(self, state: StartState) -> Finish:
        finish = await super().execute(state)
        assert isinstance(self.chip, RtlChip)
        self.file.write_text(str(len(self.chip.finishes)), encoding="utf-8")
        return finish


@cocotb.test
async def run_plan(dut: Dut) -> None:
    """Run the request of the run's folder."""
    run_dir = Path(str(cocotb.plusargs["run_dir"]))
    request: dict[str, Any] = json.loads((run_dir / REQUEST).read_text(encoding="utf-8"))
    plan = read_plan(run_dir / FOLDER)
    with np.load(run_dir / GIVEN) as stored:
        given: dict[str, Array] = {
            name: stored[f"t{number}"] for number, name in enumerate(request["names"])
        }

    def host(_: Graph, one: Operation, __: object) -> list[Array]:
        return [given[name] for name in one.outputs]

    Knobs(**request["knobs"]).apply(dut)
    await reset(dut)
    memory = Memory.map(run_dir / "memory.bin")
    chip = await RtlChip.connect(RtlBus(dut, memory, request["limit"]))
    prepared, driven = prepare(plan), _Told(chip, run_dir / PROGRESS)
    await driven.load(prepared)
    graph = plan.graph
    inputs = {name: given[name] for name in graph.arguments}
    states = States(graph, {one.input: given[one.input] for one in graph.states})
    run = await Replay(prepared, driven, host, states).run(inputs, request["by"], inner=True)
    numbered: dict[str, Any] = {f"t{i}": value for i, value in enumerate(run.tensors.values())}
    np.savez(run_dir / FOUND, **numbered)
    result = {
        "names": list(run.tensors),
        "counters": [asdict(one) for one in run.counters],
        "products": {
            name: {"operations": one.operations, "macs": one.macs}
            for name, one in run.products.items()
        },
        "seconds": sum(finish.waited.seconds for finish in chip.finishes),
    }
    (run_dir / RESULT).write_text(json.dumps(result), encoding="utf-8")
