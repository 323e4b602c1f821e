# SPDX-License-Identifier: Apache-2.0
"""Everything that can go wrong around the chip, together, on programs of dependent instructions.

Latency per burst, back-pressure on all five channels, interleaving, error responses, silence,
abort, resets and register accesses are drawn at once (`tb.stimulus.hostile_runs`). A run counts if
a fault has hit it. After each, a program that needs everything runs right, without a hard reset
unless that was the fault.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import cocotb

from npu.driver.errors import DeviceError
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.memory import Memory
from tb.bench.recovery import next_program_runs
from tb.stimulus.dependent_programs import Surroundings, draw
from tb.stimulus.hostile_runs import FAULTS, STOPS, HostileRun, HostileScene, plan

TAGS = ("seq", "faults", "random", "long", "hostile")

RUNS, FULL = 30, 500
"""Runs of each test that a fault has hit, and of its long form."""


async def _run_all(dut: Dut, first: Sequence[str]) -> None:
    """Run programs until enough were hit; the faults of `first` have their turns as main fault."""
    bench = await Bench.start(dut)
    hits, runs, count = Counter[str](), 0, FULL if full() else RUNS
    while hits.total() - hits[""] < count:
        main = first[runs % len(first)]
        beside = [fault for fault in FAULTS if fault != main and bench.random.random() < 0.15]
        faults = [main, *(fault for fault in beside if main not in STOPS or fault not in STOPS)]
        around = Surroundings(bench.config, Memory(bench.memory.snapshot()), await bench.sync())
        program = draw(bench.random, around, loop=bool(runs % 2), cases=12)
        bench.memory.data[:] = around.memory.data  # with what the program has staged
        scene = await HostileScene.set(bench, program)
        drawn = plan(bench.random, scene, faults)
        try:
            hits[await HostileRun(bench, scene, drawn).run()] += 1
            await next_program_runs(bench)
        except (AssertionError, DeviceError) as error:
            raise AssertionError(f"run {runs}: {error}\n{drawn}\n{program.text()}") from error
        runs += 1
    dut._log.info("%d runs, hits: %s", runs, dict(hits))
    assert runs <= 3 * count, f"{runs} runs for {count} hits: {hits}"
    for fault in first:
        assert hits[fault] >= count // 10, f"{fault} has hit {hits[fault]} of {runs} runs: {hits}"


@cocotb.test
async def test_hostile_memory(dut: Dut) -> None:
    """Error responses and silence come first, aborts and resets beside them."""
    await _run_all(dut, ("READ_ERROR", "WRITE_ERROR", "TIMEOUT"))


@cocotb.test
async def test_hostile_host(dut: Dut) -> None:
    """Aborts and resets come first, error responses and silence beside them."""
    await _run_all(dut, STOPS)
