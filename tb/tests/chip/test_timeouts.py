# SPDX-License-Identifier: Apache-2.0
"""A memory that stops answering: the end is reported, and the chip goes on when the memory does."""

from __future__ import annotations

from collections.abc import Iterator

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from golden.machine import ErrorReport, StartState
from spec.isa import Engine, ErrorCode
from spec.regs.generated import ChipReg
from tb.bench.bursts import OpenBursts
from tb.bench.dut import Dut
from tb.bench.environment import Bench, turns
from tb.bench.knobs import Knobs
from tb.bench.memory_waits import WAITS, MemoryWait, fall_silent
from tb.bench.recovery import (
    command,
    next_program_runs,
    program,
    start_and_wait,
    user_of,
    wait_idle,
)
from tb.bench.scoreboard import compare_errors

TAGS = ("ld", "st", "faults", "timing")

PATIENCE = 100
"""MEM_TIMEOUT of most tests, in cycles."""
MARGIN = 10
"""A silence this much shorter than the patience must be endured, one this much longer must not."""


async def _pause(bench: Bench, wait: MemoryWait, owed: OpenBursts, cycles: int) -> ErrorReport:
    """Silence the memory for some cycles; return what a report would have to say meanwhile."""
    await fall_silent(bench, wait)
    await ClockCycles(bench.dut.clk, cycles)
    await ReadOnly()
    expected = ErrorReport(ErrorCode.TIMEOUT, *wait.where(owed))
    await RisingEdge(bench.dut.clk)
    await bench.set_knobs(Knobs())
    return expected


def _load(bench: Bench, wait: MemoryWait) -> StartState:
    stream = bench.random.integers(0, 256, wait.stream, np.uint8).tobytes()
    return bench.load(program(wait.text), stream)


async def _be_patient(bench: Bench, cycles: int) -> None:
    await bench.chip.write_chip(ChipReg.MEM_TIMEOUT, cycles)


@cocotb.test
async def test_timeout_silence(dut: Dut) -> None:
    """Each kind of wait: the end is reported although the memory stays silent, BUSY stays."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    await _be_patient(bench, PATIENCE)
    for name, wait in WAITS.items():
        start = _load(bench, wait)
        silence = cocotb.start_soon(fall_silent(bench, wait))
        await bench.chip.start(start)
        await silence
        await bench.bus.wait_interrupt(3 * PATIENCE)
        expected = ErrorReport(ErrorCode.TIMEOUT, *wait.where(owed))
        compare_errors(expected, await bench.chip.report())
        await bench.chip.write_chip(ChipReg.IRQ_STATUS, 1)
        await command(bench, "START")
        await ClockCycles(dut.clk, 2 * PATIENCE)
        now = await bench.chip.state()
        assert (now["DONE"], now["ERROR"], now["BUSY"]) == (1, 1, 1), f"{name}: STATUS {now}"
        await bench.set_knobs(Knobs())
        await wait_idle(bench)
        assert owed.quiet, f"{name}: idle although the bus is not"
        compare_errors(expected, await bench.chip.report())
        assert not int(dut.irq.value), f"{name}: a second end was reported"
        await next_program_runs(bench)


@cocotb.test
async def test_timeout_limit(dut: Dut) -> None:
    """Each kind of wait, a little shorter and a little longer than MEM_TIMEOUT."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    for patience in (PATIENCE, 333):
        await _be_patient(bench, patience)
        for name, wait in WAITS.items():
            start = _load(bench, wait)
            pause = cocotb.start_soon(_pause(bench, wait, owed, patience - MARGIN))
            execution = await bench.run(program(wait.text), start)
            assert execution.finish.error is None, f"{name}: {execution.finish.error}"
            expected = await pause
            pause = cocotb.start_soon(_pause(bench, wait, owed, patience + MARGIN))
            await bench.chip.start(start)
            expected = await pause
            await bench.bus.wait_interrupt(2 * patience)
            compare_errors(expected, await bench.chip.report())
            await wait_idle(bench)
    await next_program_runs(bench)


@cocotb.test
async def test_timeout_default_and_never(dut: Dut) -> None:
    """After reset the patience is 4096 cycles; 0 makes it endless."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    wait = WAITS["load, data"]
    start = _load(bench, wait)
    for patience, silence, endured in (
        (4096, 4096 - MARGIN, True),
        (4096, 4096 + MARGIN, False),
        (0, 3 * 4096, True),
    ):
        if not patience:
            await _be_patient(bench, 0)
        pause = cocotb.start_soon(_pause(bench, wait, owed, silence))
        await bench.chip.start(start)
        expected = await pause
        await bench.bus.wait_interrupt(2000)
        compare_errors(None if endured else expected, await bench.chip.report())
        await wait_idle(bench)
    await next_program_runs(bench)


async def _stutter(bench: Bench, silent: int) -> None:
    """Let the memory answer one cycle at a time, with `silent` cycles in between; for ever."""
    while True:
        await bench.set_knobs(Knobs(read_silent=1, write_silent=1))
        await ClockCycles(bench.dut.clk, silent - 1)
        await bench.set_knobs(Knobs())


@cocotb.test
async def test_timeout_slow_memory(dut: Dut) -> None:
    """A memory that answers once in 50 cycles never exceeds a patience of 100, however long."""
    bench = await Bench.start(dut)
    await _be_patient(bench, PATIENCE)
    text = """
        DMA_LOAD dst=0x0 M=2 N=1000 b=0 off=0x40
        GELU dst=0x4000 src0=0x8000 M=4 N=100 stream
        DMA_STORE dst=0x10000 M=2 N=500 b=1
        BARRIER
        DMA_LOAD dst=0x0 M=1 N=300 b=0
        DMA_STORE dst=0x4000 M=3 N=100 b=1 off=0x4000
        END
    """
    stream = bench.random.integers(0, 256, 256, np.uint8).tobytes()
    stutter = cocotb.start_soon(_stutter(bench, 50))
    execution = await bench.execute(program(text), stream)
    stutter.cancel()
    assert execution.finish.error is None, str(execution.finish.error)
    assert execution.finish.counters.cycles > 50 * PATIENCE, "the memory was not slow"


def _possible(dut: Dut, owed: OpenBursts) -> Iterator[tuple[Engine, int]]:
    """Yield whom a report may name now: what is not accepted, and the next of what is missing."""
    if dut.M_AXI_ARVALID.value and not dut.arready.value:
        yield Engine(int(dut.M_AXI_ARID.value)), int(dut.M_AXI_ARADDR.value)
    for ident, bursts in owed.reads.items():
        if bursts:
            yield Engine(ident), bursts[0][0]
    if dut.M_AXI_AWVALID.value and not dut.awready.value:
        yield Engine.ST, int(dut.M_AXI_AWADDR.value)
    if owed.writes:
        yield Engine.ST, owed.writes[0][0]
    if owed.unanswered:
        yield Engine.ST, owed.unanswered[0]


@cocotb.test
async def test_timeout_at_any_cycle(dut: Dut) -> None:
    """Silence from a random cycle on names something that the memory owes; then all is well."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    await _be_patient(bench, PATIENCE)
    cycles = (await next_program_runs(bench)).finish.counters.cycles
    timeouts = 0
    for turn in range(turns(25)):
        await start_and_wait(bench, int(bench.random.integers(1, cycles)))
        which = int(bench.random.integers(1, 4))
        await bench.set_knobs(Knobs(read_silent=which & 1, write_silent=which >> 1))
        await bench.bus.wait_interrupt(cycles + 3 * PATIENCE)
        possible = list(_possible(dut, owed))
        error = await bench.chip.report()
        if error is not None:
            timeouts += 1
            assert error.code is ErrorCode.TIMEOUT, str(error)
            assert (error.engine, error.address) in possible, f"{error}, owed: {possible}"
            assert (error.engine, error.instr) == user_of(error.address), str(error)
        await command(bench, "SOFT_RESET" if turn % 2 else "ABORT")
        await ClockCycles(dut.clk, PATIENCE)
        assert turn % 2 or await bench.chip.report() == error, (
            "an abort behind the end changed the report"
        )
        await bench.set_knobs(Knobs())
        await wait_idle(bench)
        await next_program_runs(bench)
    assert timeouts >= turns(10), f"only {timeouts} of the programs met the silence"
