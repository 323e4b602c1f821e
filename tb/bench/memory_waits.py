# SPDX-License-Identifier: Apache-2.0
"""Every kind of wait for the memory, and how to make the memory fall silent right then."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from cocotb.triggers import ReadOnly, RisingEdge

from spec.isa import Engine
from tb.bench.bursts import OpenBursts
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, OUTPUT, PROGRAM, STREAM, Bench
from tb.bench.knobs import Knobs
from tb.bench.recovery import program

CHANNELS = {
    "AR": ("M_AXI_ARVALID", "arready", "M_AXI_ARID"),
    "R": ("rvalid", "M_AXI_RREADY", "rid"),
    "AW": ("M_AXI_AWVALID", "awready", "M_AXI_AWID"),
    "W": ("M_AXI_WVALID", "wready", ""),
    "B": ("bvalid", "M_AXI_BREADY", "bid"),
}
"""Valid, ready and identifier of each channel; identifiers are the numbers of the engines."""
QUIET = "SOFTMAX dst=0x10000 src0=0x20000 src1=0x30000 M={} N=512 out=u16\nBARRIER smx\n"
"""Leaves the bus alone for some time once program and stream have been read ahead."""
SHORT, LONG = QUIET.format(4), QUIET.format(64)
"""Hundreds of cycles, and enough to fill the FIFO of the stream."""


@dataclass(frozen=True)
class MemoryWait:
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


LATE_LOAD = SHORT + "DMA_LOAD dst=0x0 M=1 N=1000 b=0 off=0x40\nEND"
LATE_STORE = SHORT + "DMA_STORE dst=0x0 M=1 N=500 b=1 off=0x40\nEND"
LATE_STREAM = LONG + "GEMM dst=0x0 src0=0x8000 M=1 N=64 K=768 B=stream out=i32\nEND"
FIFO = 32 * 1024
WAITS = {
    "program, address": MemoryWait(
        "NOP\nEND", "read_silent", None, "AR", lambda _: (Engine.SEQ, 0, PROGRAM)
    ),
    "program, data": MemoryWait(
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
    "load, address": MemoryWait(
        LATE_LOAD,
        "read_silent",
        _fetched(LATE_LOAD),
        "AR",
        lambda _: (Engine.LD, 2, INPUT + 0x40),
    ),
    "load, data": MemoryWait(
        "NOP\nDMA_LOAD dst=0x0 M=1 N=1000 b=0 off=0x40\nEND",
        "read_silent",
        (20, "R", Engine.LD),
        "",
        lambda owed: (Engine.LD, 1, _missing(owed, Engine.LD)),
    ),
    "stream, address": MemoryWait(
        LATE_STREAM,
        "read_silent",
        (FIFO // 16, "R", Engine.STREAM),
        "AR",
        lambda _: (Engine.STREAM, 0, STREAM + FIFO),
        stream=64 * 768,
    ),
    "stream, data": MemoryWait(
        "GELU dst=0x0 src0=0x1000 M=4 N=100 stream\nEND",
        "read_silent",
        (5, "R", Engine.STREAM),
        "",
        lambda owed: (Engine.STREAM, 0, _missing(owed, Engine.STREAM)),
        stream=256,
    ),
    "store, address": MemoryWait(
        LATE_STORE,
        "write_silent",
        _fetched(LATE_STORE),
        "AW",
        lambda _: (Engine.ST, 2, OUTPUT + 0x40),
    ),
    "store, data": MemoryWait(
        "NOP\nNOP\nDMA_STORE dst=0x0 M=1 N=512 b=1\nEND",
        "write_silent",
        (5, "W", Engine.ST),
        "W",
        lambda owed: (Engine.ST, 2, owed.writes[0][0]),
    ),
    "store, response": MemoryWait(
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


async def fall_silent(bench: Bench, wait: MemoryWait) -> None:
    """Silence the memory at the moment that `wait` says; return when the chip waits."""
    if wait.after is not None:
        await _handshakes(bench.dut, *wait.after)
    await bench.set_knobs(replace(Knobs(), **{wait.silent: 1}))
    if wait.stalled:
        await _stall(bench.dut, wait.stalled)
