# SPDX-License-Identifier: Apache-2.0
"""Operators of transformers by name: every stage golden's, near real numbers, counters as reported.

Each runs twice: with its stages fused as a user has it, and with every stage a result.
"""

from __future__ import annotations

import cocotb
import numpy as np

from golden.graph import run
from npu.graph.library import OPERATORS, Size
from npu.planner.operator_plan import build_operator
from npu.runtime.network_account import disagreements, report_of
from npu.runtime.plan_files import files_of, plan_from
from npu.runtime.prepare import prepare
from npu.runtime.replay import DrivenChip, Replay
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.stimulus.operator_sizes import operator_sizes

TAGS = ("networks", "long")

LIMIT = 4_000_000
"""Cycles that a program may take."""
FULL = 6
"""Random sizes of each operator in a full run; a short one takes the defaults."""


@cocotb.test
async def test_operators(dut: Dut) -> None:
    """All of the library, by registers and by the ring."""
    bench = await Bench.start(dut)
    bench.bus.limit = LIMIT
    for name in OPERATORS:
        for _ in range(FULL if full() else 1):
            sizes = operator_sizes(name, bench.random) if full() else {}
            seed = int(bench.random.integers(1 << 16))
            for stages in (False, True):
                await _check(bench, name, sizes, seed, stages)


async def _check(bench: Bench, name: str, sizes: dict[str, Size], seed: int, stages: bool) -> None:
    where = f"build_operator({name!r}, {sizes}, stages={stages}, seed={seed})"
    one = build_operator(name, sizes, stages=stages, seed=seed, limits=bench.limits)
    plan = plan_from(files_of(one.built.plan))
    chip = DrivenChip(bench.chip)
    prepared = prepare(plan)
    await chip.load(prepared)
    found = await Replay(prepared, chip).run(one.inputs)
    again = await Replay(prepared, chip).run(one.inputs, "ring")
    for stage, value in run(one.fused, one.inputs).items():
        assert np.array_equal(found.outputs[stage], value), f"{where}: {stage}"
        assert np.array_equal(again.outputs[stage], value), f"{where}: {stage}, by ring"
        error = one.error(stage, value)
        assert error <= one.operator.bound, f"{where}: {stage} is {error:.4f} from real numbers"
    assert plan.segments or found.products, where
    report = report_of(plan, found.counters, products=found.products)
    assert disagreements(report, found.products) == [], where
