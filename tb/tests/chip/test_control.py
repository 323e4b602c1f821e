# SPDX-License-Identifier: Apache-2.0
"""Interrupt, start while busy, abort, and the report of an error: the chip stays usable."""

from __future__ import annotations

from itertools import pairwise

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from golden.machine import ErrorReport
from spec.isa import Engine, ErrorCode
from spec.regs.generated import SEQ_FIELDS, ChipReg, SeqReg
from tb.bench.bursts import OpenBursts
from tb.bench.dut import Dut
from tb.bench.environment import DEFAULT_LIMIT, INPUT, OUTPUT, Bench, turns
from tb.bench.knobs import Knobs
from tb.bench.memory_regions import RegionRegisters, set_region
from tb.bench.recovery import (
    EVERY_ENGINE,
    Aborts,
    command,
    load_every_engine,
    next_program_runs,
    program,
    wait_idle,
)
from tb.bench.scoreboard import compare_errors

TAGS = ("seq", "faults")
TIMED = ("test_control_abort_in_silence",)

PATIENCE = 150
"""MEM_TIMEOUT of the tests with a silent memory, in cycles."""


@cocotb.test
async def test_control_interrupt(dut: Dut) -> None:
    """The line follows status and enable; writing 1 clears it, writing 0 does not."""
    bench = await Bench.start(dut)
    chip = bench.chip
    start = bench.load(program("NOP\nEND"))
    await chip.start(start)
    await chip.write_chip(ChipReg.IRQ_ENABLE, 0)
    await wait_idle(bench)
    assert not int(dut.irq.value), "the line is up although it is not enabled"
    assert await chip.read_chip(ChipReg.IRQ_STATUS) == 1
    await chip.write_chip(ChipReg.IRQ_ENABLE, 1)
    await ClockCycles(dut.clk, 2)
    assert int(dut.irq.value), "status is set and enabled, the line is down"
    await chip.write_chip(ChipReg.IRQ_STATUS, 0)
    await ClockCycles(dut.clk, 2)
    assert int(dut.irq.value), "writing 0 cleared the interrupt"
    await chip.write_chip(ChipReg.IRQ_STATUS, 1)
    await ClockCycles(dut.clk, 2)
    assert not int(dut.irq.value), "writing 1 did not clear the interrupt"
    assert await chip.status() is None


@cocotb.test
async def test_control_start_while_busy(dut: Dut) -> None:
    """A second start is ignored, and what it would have run does not happen."""
    bench = await Bench.start(dut)
    start = load_every_engine(bench)
    expected = await bench.run(program(EVERY_ENGINE), start)
    bench.memory.stage(OUTPUT, np.zeros(0x8000, np.uint8))
    await bench.chip.start(start)
    for _ in range(5):
        await ClockCycles(dut.clk, 150)
        await command(bench, "START")
    await bench.bus.wait_interrupt(DEFAULT_LIMIT)
    await bench.chip.write_chip(ChipReg.IRQ_STATUS, 1)
    assert await bench.chip.status() is None
    counters = await bench.chip.counters()
    assert counters.instrs == expected.finish.counters.instrs
    await ClockCycles(dut.clk, 200)
    assert not int(dut.irq.value), "a start while busy was kept for later"


@cocotb.test
async def test_control_registers_behind_a_start(dut: Dut) -> None:
    """What is written right behind a start is the next one's, however fast the memory answers."""
    bench = await Bench.start(dut, Knobs(read_latency=1))
    chip, data = bench.chip, bench.memory.data
    words = program(
        "DMA_LOAD dst=0x0 M=1 N=256 b=0\nBARRIER ld\nDMA_STORE dst=0x0 M=1 N=256 b=7\nEND"
    )
    places = [OUTPUT + 0x1000 * turn for turn in range(turns(16) + 1)]
    await chip.start(bench.load(words, kv_cap=0x123, bases=(INPUT, *(0,) * 6, places[0])))
    for here, there in pairwise(places):
        if there == places[1]:
            assert await chip.read_seq(SeqReg.KVCAP) == 0x123
        await chip.write_seq(SeqReg.BASE7, there)
        assert await chip.read_seq(SeqReg.BASE7) == there
        later = data[there : there + 256].copy()
        await wait_idle(bench)
        assert (data[here : here + 256] == data[INPUT : INPUT + 256]).all(), f"{here:#x}"
        assert (data[there : there + 256] == later).all(), f"{there:#x} is the next start's"
        data[INPUT : INPUT + 256] = bench.random.integers(0, 256, 256, np.uint8)
        await command(bench, "START")
    await wait_idle(bench)


async def _end(bench: Bench, limit: int = DEFAULT_LIMIT) -> ErrorReport | None:
    """Wait for the end of a running program, acknowledge it, and return its report.

    The counters are compared once the chip is idle, which a silent memory may put off.
    """
    await bench.bus.wait_interrupt(limit)
    await bench.chip.write_chip(ChipReg.IRQ_STATUS, 1)
    if not (await bench.chip.state())["BUSY"]:
        await bench.chip.counters()
    return await bench.chip.report()


@cocotb.test
async def test_control_abort(dut: Dut) -> None:
    """An abort at random cycles is reported with the word dispatched last, and the bus drains."""
    bench = await Bench.start(dut)
    owed, aborts = OpenBursts(dut), Aborts(bench)
    cycles = (await next_program_runs(bench)).finish.counters.cycles
    seen = set()
    for turn in range(turns(25)):
        await aborts.start_and_wait(int(bench.random.integers(1, cycles - 50)) if turn else 1)
        memory = bench.memory.snapshot()
        possible = await aborts.abort()
        error = await _end(bench, 2000)
        assert error in possible, f"{error}, expected one of {possible}"
        seen.add(error)
        now = await bench.chip.state()
        assert (now["DONE"], now["BUSY"]) == (1, 0), f"STATUS {now}"
        assert owed.quiet, "idle although the bus is not"
        late = await aborts.dispatched_since()
        assert not late, f"words {late} were dispatched after the abort"
        changed = np.flatnonzero(memory != bench.memory.data)
        inside = (changed >= OUTPUT) & (changed < OUTPUT + 0x8000)
        assert inside.all(), f"memory changed at {changed[~inside][0]:#x}"
        await next_program_runs(bench)
    assert len(seen) >= 3, f"all aborts hit the words {seen}"


@cocotb.test
async def test_control_abort_at_the_end(dut: Dut) -> None:
    """An abort around the last cycle: one end, by END or by the abort; the next program runs."""
    bench = await Bench.start(dut)
    words = program("DMA_STORE dst=0x0 M=1 N=256 b=1\nEND")
    start = bench.load(words)
    cycles = (await bench.run(words, start)).finish.counters.cycles
    ends = set()
    for wait in range(cycles - 24, cycles + 8):
        await bench.chip.start(start)
        await ClockCycles(dut.clk, wait)
        await command(bench, "ABORT")
        ends.add(await _end(bench))
        await ClockCycles(dut.clk, 60)
        assert not int(dut.irq.value), f"two ends after an abort at cycle {wait}"
    assert ends == {None, ErrorReport(ErrorCode.ABORTED, Engine.SEQ, 0, 0)}, str(ends)
    await next_program_runs(bench)


@cocotb.test
async def test_control_abort_while_idle(dut: Dut) -> None:
    """An abort while idle does nothing: fresh from reset, behind an end, behind an error."""
    bench = await Bench.start(dut)
    for text in ("", "END", "NOP"):
        if text:
            await bench.execute(program(text))
        before, error = await bench.chip.state(), await bench.chip.report()
        await command(bench, "ABORT")
        await ClockCycles(dut.clk, 100)
        assert not int(dut.irq.value), f"an interrupt after {text!r}"
        assert await bench.chip.state() == before
        compare_errors(error, await bench.chip.report())
    await next_program_runs(bench)


@cocotb.test
async def test_control_abort_in_silence(dut: Dut) -> None:
    """An abort while the memory is silent is reported within MEM_TIMEOUT; BUSY waits for it."""
    bench = await Bench.start(dut)
    owed, aborts = OpenBursts(dut), Aborts(bench)
    cycles = (await next_program_runs(bench)).finish.counters.cycles
    await bench.chip.write_chip(ChipReg.MEM_TIMEOUT, PATIENCE)
    for _ in range(turns(25)):
        await aborts.start_and_wait(int(bench.random.integers(1, cycles - 50)))
        which = int(bench.random.integers(1, 4))
        await bench.set_knobs(Knobs(read_silent=which & 1, write_silent=which >> 1))
        await ClockCycles(dut.clk, int(bench.random.integers(1, PATIENCE // 3)))
        possible = await aborts.abort()
        error = await _end(bench, PATIENCE + 100)
        assert error in possible, f"{error}, expected one of {possible}"
        assert (await bench.chip.state())["BUSY"] == (not owed.quiet), (
            "BUSY does not follow the bus"
        )
        await bench.set_knobs(Knobs())
        await wait_idle(bench)
        assert not int(dut.irq.value), "a second end was reported"
        compare_errors(error, await bench.chip.report())
        await next_program_runs(bench)


def _no_error(fields: dict[str, int]) -> bool:
    return not (fields["ERROR"] or fields["ERROR_CODE"] or fields["ERROR_ENGINE"])


@cocotb.test
async def test_control_clear_error(dut: Dut) -> None:
    """Writing 1 to STATUS.ERROR clears the whole report, and so does the next start."""
    bench = await Bench.start(dut)
    chip = bench.chip
    failing = program("NOP\nNOP\nDMA_LOAD dst=0x0 M=1 N=64 b=2\nEND")
    bases = (0, 0, bench.memory.data.size, 0, 0, 0, 0, 0)
    expected = ErrorReport(ErrorCode.READ_ERROR, Engine.LD, 2, bases[2])
    for by_start in (False, True):
        await chip.start(bench.load(failing, bases=bases))
        compare_errors(expected, await _end(bench))
        await chip.write_seq(SeqReg.STATUS, 0xFFFF_FFFF & ~SEQ_FIELDS["STATUS_ERROR"].mask)
        compare_errors(expected, await bench.chip.report())
        if by_start:
            await chip.start(bench.load(program(EVERY_ENGINE), bytes(1 << 14)))
        else:
            await chip.write_seq(SeqReg.STATUS, SEQ_FIELDS["STATUS_ERROR"].mask)
        now = await bench.chip.state()
        assert _no_error(now), f"STATUS {now}"
        assert (now["DONE"], now["BUSY"]) == ((0, 1) if by_start else (1, 0)), f"STATUS {now}"
        assert await chip.read_seq(SeqReg.ERROR_INSTR) == 0
        assert await chip.read_seq(SeqReg.ERROR_ADDR) == 0
    await command(bench, "SOFT_RESET")
    await wait_idle(bench)
    await next_program_runs(bench)


@cocotb.test
async def test_control_first_error_stays(dut: Dut) -> None:
    """Of two errors the one that happens first is reported, whatever the drain meets later."""
    bench = await Bench.start(dut)
    hole = bench.memory.data.size
    bases = (INPUT, OUTPUT, hole, 0, 0, 0, 0, 0)
    store, load = "DMA_STORE dst=0x8000 M=1 N=512 b={}", "DMA_LOAD dst=0x0 M=1 N=512 b={} off={}"
    quick, slow = 5, 300
    read_error = ErrorReport(ErrorCode.READ_ERROR, Engine.LD, 1, hole + 16)
    write_error = ErrorReport(ErrorCode.WRITE_ERROR, Engine.ST, 0, hole)
    region = ErrorReport(ErrorCode.REGION, Engine.LD, 1, 1 << 31)
    for read_latency, write_latency, offset, expected in (
        (quick, slow, 16, read_error),
        (slow, quick, 16, write_error),
        (quick, slow, (1 << 31) - hole, region),
    ):
        await set_region(bench, 0, RegionRegisters(0, (1 << 31) - 1, True, True))
        await bench.set_knobs(Knobs(read_latency=read_latency, write_latency=write_latency))
        text = "\n".join([store.format(2), load.format(2, offset), "END"])
        await bench.chip.start(bench.load(program(text), bases=bases))
        compare_errors(expected, await _end(bench))
        await ClockCycles(dut.clk, 2 * slow)
        compare_errors(expected, await bench.chip.report())
        assert not int(dut.irq.value), "a second end was reported"
        await bench.set_knobs(Knobs())
        await next_program_runs(bench)
