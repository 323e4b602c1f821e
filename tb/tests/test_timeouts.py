# SPDX-License-Identifier: Apache-2.0
"""A memory that stops answering: the end is reported, and the chip goes on when the memory does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from golden.machine import ErrorReport, StartState
from npu.isa import Engine, ErrorCode
from npu.regs.generated import ChipReg
from tb.bursts import OpenBursts
from tb.dut import Dut
from tb.environment import INPUT, OUTPUT, PROGRAM, STREAM, Bench
from tb.knobs import Knobs
from tb.recovery import (
    command,
    next_program_runs,
    program,
    report,
    start_and_wait,
    state,
    user_of,
    wait_idle,
)
from tb.scoreboard import compare_errors

PATIENCE = 100
"""MEM_TIMEOUT of most tests, in cycles."""
MARGIN = 10
"""A silence this much shorter than the patience must be endured, one this much longer must not."""
CHANNELS = {
    "AR": ("M_AXI_ARVALID", "arready", "M_AXI_ARID"),
    "R": ("rvalid", "M_AXI_RREADY", "rid"),
    "AW": ("M_AXI_AWVALID", "awready", "M_AXI_AWID"),
    "W": ("M_AXI_WVALID", "wready", ""),
    "B": ("bvalid", "M_AXI_BREADY", "bid"),
}
"""Valid, ready and identifier of each channel; identifiers are the numbers of the engines."""
QUIET = "SOFTMAX dst=0x10000 src0=0x20000 src1=0x30000 M=64 N=512 out=u16\nBARRIER smx\n"
"""Leaves the bus alone for some thousand cycles once program and stream have been read ahead."""


@dataclass(frozen=True)
class Wait:
    """One kind of wait for the memory, and how to bring the chip to it.

    Attributes:
        text: the program.
        silent: the knob that stops the memory.
        after: the number of handshakes, on which channel and for whom, before the silence; None
            for a memory that is silent from the start.
        stalled: the channel that is then not accepted, "" if the chip waits for an answer.
        where: what the report says but for its code, from the state of the bus.
        stream: bytes of the stream.
    """

    text: str
    silent: str
    after: tuple[int, str, Engine] | None
    stalled: str
    where: Callable[[OpenBursts], tuple[Engine, int, int]]
    stream: int = 0


def _fetched(text: str) -> tuple[int, str, Engine]:
    return len(program(text)), "R", Engine.SEQ


def _missing(owed: OpenBursts, engine: Engine) -> int:
    return owed.reads[engine][0][0]


LATE_LOAD = QUIET + "DMA_LOAD dst=0x0 M=1 N=1000 b=0 off=0x40\nEND"
LATE_STORE = QUIET + "DMA_STORE dst=0x0 M=1 N=500 b=1 off=0x40\nEND"
LATE_STREAM = QUIET + "GEMM dst=0x0 src0=0x8000 M=1 N=64 K=768 B=stream out=i32\nEND"
FIFO = 32 * 1024
WAITS = {
    "program, address": Wait(
        "NOP\nEND", "read_silent", None, "AR", lambda _: (Engine.SEQ, 0, PROGRAM)
    ),
    "program, data": Wait(
        "NOP\nNOP\nEND",
        "read_silent",
        (1, "R", Engine.SEQ),
        "",
        lambda owed: (
            Engine.SEQ,
            (_missing(owed, Engine.SEQ) - PROGRAM) // 16,
            _missing(owed, Engine.SEQ),
        ),
    ),
    "load, address": Wait(
        LATE_LOAD,
        "read_silent",
        _fetched(LATE_LOAD),
        "AR",
        lambda _: (Engine.LD, 2, INPUT + 0x40),
    ),
    "load, data": Wait(
        "NOP\nDMA_LOAD dst=0x0 M=1 N=1000 b=0 off=0x40\nEND",
        "read_silent",
        (20, "R", Engine.LD),
        "",
        lambda owed: (Engine.LD, 1, _missing(owed, Engine.LD)),
    ),
    "stream, address": Wait(
        LATE_STREAM,
        "read_silent",
        (FIFO // 16, "R", Engine.STREAM),
        "AR",
        lambda _: (Engine.STREAM, 0, STREAM + FIFO),
        stream=64 * 768,
    ),
    "stream, data": Wait(
        "GELU dst=0x0 src0=0x1000 M=4 N=100 stream\nEND",
        "read_silent",
        (5, "R", Engine.STREAM),
        "",
        lambda owed: (Engine.STREAM, 0, _missing(owed, Engine.STREAM)),
        stream=256,
    ),
    "store, address": Wait(
        LATE_STORE,
        "write_silent",
        _fetched(LATE_STORE),
        "AW",
        lambda _: (Engine.ST, 2, OUTPUT + 0x40),
    ),
    "store, data": Wait(
        "NOP\nNOP\nDMA_STORE dst=0x0 M=1 N=512 b=1\nEND",
        "write_silent",
        (5, "W", Engine.ST),
        "W",
        lambda owed: (Engine.ST, 2, owed.writes[0][0]),
    ),
    "store, response": Wait(
        "DMA_STORE dst=0x0 M=4 N=64 b=1 pitch=256\nEND",
        "write_silent",
        (2, "B", Engine.ST),
        "",
        lambda owed: (Engine.ST, 0, owed.unanswered[0]),
    ),
}


async def _handshakes(dut: Dut, count: int, channel: str, engine: Engine) -> None:
    """Return after `count` handshakes of an engine on a channel."""
    valid, ready, ident = CHANNELS[channel]
    while count:
        await ReadOnly()
        if getattr(dut, valid).value and getattr(dut, ready).value:
            count -= not ident or int(getattr(dut, ident).value) == engine
        await RisingEdge(dut.clk)


async def _stall(dut: Dut, channel: str) -> None:
    """Return when the chip holds something on a channel that is not accepted."""
    valid, ready, _ = CHANNELS[channel]
    while True:
        await ReadOnly()
        stalled = getattr(dut, valid).value and not getattr(dut, ready).value
        await RisingEdge(dut.clk)
        if stalled:
            return


async def _fall_silent(bench: Bench, wait: Wait) -> None:
    """Silence the memory at the moment that `wait` says; return when the chip waits."""
    if wait.after is not None:
        await _handshakes(bench.dut, *wait.after)
    await bench.set_knobs(replace(Knobs(), **{wait.silent: 1}))
    if wait.stalled:
        await _stall(bench.dut, wait.stalled)


async def _pause(bench: Bench, wait: Wait, owed: OpenBursts, cycles: int) -> ErrorReport:
    """Silence the memory for some cycles; return what a report would have to say meanwhile."""
    await _fall_silent(bench, wait)
    await ClockCycles(bench.dut.clk, cycles)
    await ReadOnly()
    expected = ErrorReport(ErrorCode.TIMEOUT, *wait.where(owed))
    await RisingEdge(bench.dut.clk)
    await bench.set_knobs(Knobs())
    return expected


def _load(bench: Bench, wait: Wait) -> StartState:
    stream = bench.random.integers(0, 256, wait.stream, np.uint8).tobytes()
    return bench.load(program(wait.text), stream)


async def _be_patient(bench: Bench, cycles: int) -> None:
    await bench.host.write_chip(ChipReg.MEM_TIMEOUT, cycles)


@cocotb.test
async def test_timeout_silence(dut: Dut) -> None:
    """Each kind of wait: the end is reported although the memory stays silent, BUSY stays."""
    bench = await Bench.start(dut)
    owed = OpenBursts(dut)
    await _be_patient(bench, PATIENCE)
    for name, wait in WAITS.items():
        start = _load(bench, wait)
        silence = cocotb.start_soon(_fall_silent(bench, wait))
        await bench.host.start_program(start)
        await silence
        await bench.host.wait_interrupt(3 * PATIENCE)
        expected = ErrorReport(ErrorCode.TIMEOUT, *wait.where(owed))
        compare_errors(expected, await report(bench))
        await bench.host.write_chip(ChipReg.IRQ_STATUS, 1)
        await command(bench, "START")
        await ClockCycles(dut.clk, 2 * PATIENCE)
        now = await state(bench)
        assert (now["DONE"], now["ERROR"], now["BUSY"]) == (1, 1, 1), f"{name}: STATUS {now}"
        await bench.set_knobs(Knobs())
        await wait_idle(bench)
        assert owed.quiet, f"{name}: idle although the bus is not"
        compare_errors(expected, await report(bench))
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
            await bench.host.start_program(start)
            expected = await pause
            await bench.host.wait_interrupt(2 * patience)
            compare_errors(expected, await report(bench))
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
        await bench.host.start_program(start)
        expected = await pause
        await bench.host.wait_interrupt(2000)
        compare_errors(None if endured else expected, await report(bench))
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
    for turn in range(25):
        await start_and_wait(bench, int(bench.random.integers(1, cycles)))
        which = int(bench.random.integers(1, 4))
        await bench.set_knobs(Knobs(read_silent=which & 1, write_silent=which >> 1))
        await bench.host.wait_interrupt(cycles + 3 * PATIENCE)
        possible = list(_possible(dut, owed))
        error = await report(bench)
        if error is not None:
            timeouts += 1
            assert error.code is ErrorCode.TIMEOUT, str(error)
            assert (error.engine, error.address) in possible, f"{error}, owed: {possible}"
            assert (error.engine, error.instr) == user_of(error.address), str(error)
        await command(bench, "SOFT_RESET" if turn % 2 else "ABORT")
        await ClockCycles(dut.clk, PATIENCE)
        assert turn % 2 or await report(bench) == error, (
            "an abort behind the end changed the report"
        )
        await bench.set_knobs(Knobs())
        await wait_idle(bench)
        await next_program_runs(bench)
    assert timeouts >= 10, f"only {timeouts} of the programs met the silence"
