# SPDX-License-Identifier: Apache-2.0
"""Benchmarks of plans: three launches as one batch of the ring, against three starts by registers.

Chip and model replay the same plan; the way of the host's accesses between programs counts, as the
register port makes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from npu.compiler.ideal import LeastWork
from npu.compiler.network import compile_network
from npu.driver.chip import Chip
from npu.planner.network_plan import plan_of
from npu.runtime.prepare import prepare
from npu.runtime.replay import By, DrivenChip, Replay
from tb.benchmarks.benchmark import Benchmark, Interval
from tb.benchmarks.network_benchmarks import three_operations
from tb.command.command_session import CommandSession

SEED = 1
SIZE, CHANNELS = 14, 16
LAUNCHES = 3
MACS = CHANNELS**2 * (9 * SIZE**2 + SIZE**2 // 4)


async def _replay(by: By, session: CommandSession) -> None:
    """Replay the plan once; it is the same for every seed of the run."""
    random = np.random.default_rng(SEED)
    graph = three_operations(SIZE, CHANNELS, random)
    plan = plan_of(compile_network(graph, split=["first", "pool"]))
    prepared = prepare(plan)
    assert [len(batch.launches) for batch in prepared.batches] == [LAUNCHES]
    image = random.integers(-128, 128, graph.type("x").shape, np.int8)
    chip = DrivenChip(await Chip.connect(session.bus))
    await chip.load(prepared)
    await Replay(prepared, chip).run({"x": image}, by)


def plan_cases() -> Iterator[Benchmark]:
    """Yield the benchmarks of plans."""

    def case(name: str, work: LeastWork, by: By, interval: Interval) -> Benchmark:
        return Benchmark(
            name,
            {"launches": LAUNCHES, "size": SIZE, "channels": CHANNELS, "latency": 40},
            work,
            drive=partial(_replay, by),
            interval=interval,
            counted=0,  # by the command port, whose counters these are
            pictured=False,
        )

    yield case("plan_gap", LeastWork(cycles=1), "ring", Interval.LAUNCH)
    yield case("plan_batch", LeastWork(MACS), "ring", Interval.OPERATION)
    yield case("plan_apart", LeastWork(MACS), "registers", Interval.PROGRAM)
