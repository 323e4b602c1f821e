# SPDX-License-Identifier: Apache-2.0
"""Random programs in which one instruction's result is the next one's operand.

Only the barriers stand between the instructions, and they are the weakest that the model's race
detector accepts, so a barrier that lets go too early shows as wrong bytes. The tests also look at
what was drawn: hazards of each kind, barriers that leave work unfinished, results worth comparing.
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import cocotb
import numpy as np

from npu.asm import assemble
from npu.driver.errors import DeviceError
from spec.isa import Opcode
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, Bench, full, reset
from tb.bench.knobs import Knobs
from tb.bench.memory import Memory
from tb.bench.scoreboard import MismatchError
from tb.stimulus.dependent_programs import BASES, Dependent, Surroundings, complete, draw
from tb.stimulus.random_case import loads
from tb.stimulus.shrink import shrink

TAGS = ("ld", "st", "gemm", "smx", "nrm", "vec", "random", "long")

PROGRAMS, FULL = 30, 500
"""Programs of each test, and of its long form."""
LIMIT = 100_000
"""Cycles that a program may take."""


async def _run(bench: Bench, program: Dependent) -> None:
    """Run a program; it ends without an error and agrees in every byte."""
    start = bench.load(
        program.words,
        program.stream,
        **program.draft.registers,
    )
    execution = await bench.run(program.words, start, limit=LIMIT)
    assert execution.finish.error is None, str(execution.finish.error)


async def _failure(bench: Bench, program: Dependent) -> str | None:
    """Run a program; return what was wrong with it."""
    try:
        await _run(bench, program)
    except (MismatchError, DeviceError) as error:
        if isinstance(error, DeviceError):
            await reset(bench.dut)
        return str(error)
    return None


async def _surroundings(bench: Bench) -> Surroundings:
    """Return what the next program finds."""
    return Surroundings(bench.config, Memory(bench.memory.snapshot()), await bench.sync())


async def _put_back(bench: Bench, around: Surroundings) -> None:
    """Give memory and SRAM the contents that a program found: a second run hides stale results."""
    filling, _ = loads([(0, around.sram.tobytes())], bench.memory, INPUT)
    start = bench.load([*filling, *assemble("END").instructions], bases=BASES)
    await bench.chip.run(start, LIMIT)
    bench.memory.data[:] = around.memory.data


async def _shortest(bench: Bench, program: Dependent, failure: str, around: Surroundings) -> str:
    """Return the shortest program found that fails like this one does."""

    async def fails(shorter: Dependent) -> str | None:
        await _put_back(bench, around)
        return await _failure(bench, shorter)

    return await shrink(program, failure, partial(complete, around), fails)


def _memory(random: np.random.Generator) -> Knobs:
    """Return a memory that may be quick to read and slow to write, or the other way round."""
    read, write = random.choice((1, 10, 40, 150), 2).tolist()
    gap, stall, together = random.integers((0, 0, 0), (50, 50, 2)).tolist()
    return Knobs(
        read_latency=read,
        write_latency=write,
        read_spread=20,
        read_gap=gap,
        w_stall=stall,
        interleave=together,
    )


async def _run_all(dut: Dut, *, loop: bool) -> None:
    """Run the programs of a test one after the other on what the last one has left."""
    bench = await Bench.start(dut)
    hazards: Counter[str] = Counter()
    pairs, numbers, dull = set(), Counter[int](), 0.0
    count = FULL if full() else PROGRAMS
    for number in range(count):
        knobs = _memory(bench.random)
        await bench.set_knobs(knobs)
        around = await _surroundings(bench)
        program = draw(bench.random, around, loop=loop)
        bench.memory.data[:] = around.memory.data  # with what the program has staged
        failure = await _failure(bench, program)
        if failure is not None:
            text = await _shortest(bench, program, failure, around)
            raise AssertionError(f"program {number} of {count}: {text}\n{knobs}")
        for (kind, older, younger), many in program.hazards.items():
            hazards[kind] += many
            pairs.add((older, younger))
        numbers.update(word.n for word in program.barriers)
        dull += program.dull / count
        if loop:
            assert Opcode.LOOP in {word.opcode for word in program.words}
    dut._log.info(
        "%d programs: hazards %s over %d pairs of engines, barriers by number %s, %.1f %% dull",
        *(count, dict(hazards), len(pairs), dict(numbers), 100 * dull),
    )
    assert min(hazards[kind] for kind in ("RAW", "WAR", "WAW")) >= 5 * count, hazards
    assert len(pairs) >= 30, f"hazards only between {sorted(pairs)}"
    assert numbers.total() >= 8 * count, f"{numbers.total()} barriers"
    assert sum(numbers[most] for most in (1, 2, 3, 4)) >= count // 2, f"unfinished: {numbers}"
    assert dull <= 0.2, f"{100 * dull:.1f} % of the results are nearly constant"


@cocotb.test
async def test_dependent_straight(dut: Dut) -> None:
    """Programs without LOOP."""
    await _run_all(dut, loop=False)


@cocotb.test
async def test_dependent_loop(dut: Dut) -> None:
    """Programs in which a LOOP goes over some of the instructions up to three times more."""
    await _run_all(dut, loop=True)
