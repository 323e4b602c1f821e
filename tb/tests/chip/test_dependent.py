# SPDX-License-Identifier: Apache-2.0
"""Random programs in which one instruction's result is the next one's operand.

Only the barriers stand between the instructions, and they are the weakest that the model's race
detector accepts, so a barrier that lets go too early shows as wrong bytes. The tests also look at
what was drawn: hazards of each kind, barriers that leave work unfinished, results worth comparing.
"""

from __future__ import annotations

from collections import Counter

import cocotb
import numpy as np

from npu.asm import assemble
from npu.driver.errors import DeviceError
from spec.isa import Opcode
from tb.bench.dut import Dut
from tb.bench.environment import Bench, full
from tb.bench.knobs import Knobs
from tb.bench.memory import Memory
from tb.bench.scenes import wanted
from tb.stimulus.dependent_programs import Dependent, Surroundings, complete, draw

TAGS = ("ld", "st", "gemm", "smx", "nrm", "vec", "random", "long")

PROGRAMS, FULL = 30, 500
"""Programs of each test, and of its long form."""
FILLED = 50
"""Programs behind one that has filled SRAM."""
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


async def _surroundings(bench: Bench) -> Surroundings:
    """Return what the next program finds."""
    return Surroundings(bench.config, Memory(bench.memory.snapshot()), await bench.sync())


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


async def _fill(bench: Bench) -> None:
    """Load all of SRAM, with what lies in memory."""
    size = 0x4000
    loads = [
        f"DMA_LOAD dst={at:#x} M=16 N={size // 16} b=0 off={at:#x}"
        for at in range(0, bench.config.sram_bytes, size)
    ]
    await bench.execute(assemble("\n".join([*loads, "END"])).instructions)


async def _run_all(dut: Dut, programs: int, *loops: bool, fill: bool = False) -> None:
    """Run the programs of a test one after the other on what the last one has left.

    Args:
        dut: the bench.
        programs: so many.
        loops: whether there is a LOOP in them, taken in turns.
        fill: whether a program fills SRAM first, for a chip that begins with zeros.
    """
    bench = await Bench.start(dut)
    if fill:
        await _fill(bench)
    hazards: Counter[str] = Counter()
    pairs, numbers, dull = set(), Counter[int](), 0.0
    scenes = wanted(programs)
    count = len(scenes)
    for keep in scenes:
        loop = loops[keep.scene % len(loops)]
        random = np.random.default_rng((int(cocotb.RANDOM_SEED), loop, keep.scene))
        knobs = _memory(random)
        await bench.set_knobs(knobs)
        around = await _surroundings(bench)
        whole = draw(random, around, loop=loop)
        program = complete(around, whole.draft.keeping(keep)) if keep.parts else whole
        bench.memory.data[:] = around.memory.data  # with what the program has staged
        bench.record_scene(keep, whole.draft.names, f"{program.text()}\nmemory: {knobs.unusual}")
        try:
            await _run(bench, program)
        except (AssertionError, DeviceError) as error:
            raise AssertionError(f"program {keep} of {count}: {error}") from error
        for (kind, older, younger), many in program.hazards.items():
            hazards[kind] += many
            pairs.add((older, younger))
        numbers.update(word.n for word in program.barriers)
        dull += program.dull / count
        if loop and keep.parts is None:
            assert Opcode.LOOP in {word.opcode for word in program.words}
    dut._log.info(
        "%d programs: hazards %s over %d pairs of engines, barriers by number %s, %.1f %% dull",
        *(count, dict(hazards), len(pairs), dict(numbers), 100 * dull),
    )
    if count == 1:
        return  # one that was asked for
    assert min(hazards[kind] for kind in ("RAW", "WAR", "WAW")) >= 5 * count, hazards
    assert len(pairs) >= 30, f"hazards only between {sorted(pairs)}"
    assert numbers.total() >= 8 * count, f"{numbers.total()} barriers"
    assert sum(numbers[most] for most in (1, 2, 3, 4)) >= count // 2, f"unfinished: {numbers}"
    assert dull <= 0.2, f"{100 * dull:.1f} % of the results are nearly constant"


@cocotb.test
async def test_dependent_straight(dut: Dut) -> None:
    """Programs without LOOP."""
    await _run_all(dut, FULL if full() else PROGRAMS, False)


@cocotb.test
async def test_dependent_loop(dut: Dut) -> None:
    """Programs in which a LOOP goes over some of the instructions up to three times more."""
    await _run_all(dut, FULL if full() else PROGRAMS, True)


@cocotb.test
async def test_dependent_filled(dut: Dut) -> None:
    """Half of them with LOOP, in an SRAM that a program has filled."""
    await _run_all(dut, FILLED, False, True, fill=True)
