# SPDX-License-Identifier: Apache-2.0
"""One suite on both back ends of the memory: the SystemVerilog slave and the one in Python."""

from __future__ import annotations

from dataclasses import replace

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from npu.asm import assemble
from spec.isa import Engine, ErrorCode
from spec.regs import ChipReg
from tb.bench.bursts import ReadBursts, WriteBursts
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, OUTPUT, PROGRAM, BackEnd, Bench
from tb.bench.knobs import Knobs
from tb.bench.memory_kinds import MemoryKind

TAGS = ("ld", "st")
TIMED = (
    "test_memory_back_end_python",
    "test_memory_back_end_systemverilog",
    "test_memory_back_ends_agree",
    "test_memory_of_banks",
)
ALONE = 1

# One engine at a time, so that the cycles do not depend on the turns of the SRAM's arbiter.
TRANSFERS = """
    DMA_LOAD dst=0x0 M=3 N=77 b=0 off=0xFC0 pitch=0x400
    DMA_LOAD dst=0x1000 M=1 N=1000 b=0 off=0x2FF0
    BARRIER ld
    DMA_STORE dst=0x0 M=3 N=77 b=1 off=0xFE0 pitch=0x70
    DMA_STORE dst=0x1000 M=1 N=1000 b=1 off=0x1FF0
    BARRIER st
    GELU dst=0x2000 src0=0x1000 M=10 N=100 stream
    END
"""
PART = 0x1000
BESIDE = "\n".join(
    [
        *(
            f"DMA_LOAD dst={PART * (part % 2):#x} M=1 N={PART} b=0 off={PART * part:#x}\n"
            f"BARRIER ld st\n"
            f"DMA_STORE dst={PART * (part % 2):#x} M=1 N={PART} b=1 off={PART * part:#x}"
            for part in range(4)
        ),
        "END",
    ]
)
"""A part is loaded while the one before it is stored."""
HOSTILE = Knobs(
    read_latency=55,
    write_latency=70,
    read_gap=30,
    write_gap=40,
    ar_stall=50,
    aw_stall=50,
    w_stall=40,
    interleave=1,
)
LOAD, STORE, UCODE = Engine.LD, Engine.ST, Engine.SEQ
"""Identifiers on the bus: the numbers of the engines."""
RANGES = ((64, 64), (32, 47), (40, 40), (95, 120), (63, 64), (255, 255))
"""First and last byte of errors: a word fails if any of its bytes lies in the range."""


async def _transfers(bench: Bench) -> int:
    """Rows that cross 4 KiB, odd ends, a table from the stream; return the cycles."""
    program = assemble(TRANSFERS).instructions
    table = bench.random.integers(0, 256, 256, np.uint8).tobytes()
    execution = await bench.execute(program, table)
    assert execution.finish.error is None, str(execution.finish.error)
    loaded = bench.memory.view(INPUT + 0x2FF0, 1000)
    assert (bench.memory.view(OUTPUT + 0x1FF0, 1000) == loaded).all()
    return execution.finish.counters.cycles


async def _error(bench: Bench, knobs: Knobs, text: str, code: ErrorCode, engine: Engine) -> int:
    """An error answer ends the program with its name and place."""
    await bench.set_knobs(knobs)
    start = bench.load(assemble(text).instructions)
    finish = await bench.chip.run(start, 20_000)
    assert finish.error is not None, "the error answer went unnoticed"
    assert (finish.error.code, finish.error.engine) == (code, engine), str(finish.error)
    return finish.error.address


async def _suite(bench: Bench) -> int:
    """Run everything that holds for any memory; return the cycles of the undisturbed transfers."""
    cycles = await _transfers(bench)
    await bench.set_knobs(HOSTILE)
    assert await _transfers(bench) > cycles
    text = "DMA_LOAD dst=0x0 M=1 N=256 b=0\nEND"
    for first, last in RANGES:
        knobs = Knobs(read_error=1, error_first=INPUT + first, error_last=INPUT + last)
        at = await _error(bench, knobs, text, ErrorCode.READ_ERROR, Engine.LD)
        assert at == INPUT + first // 16 * 16, f"the range from {first}: an error at {at:#x}"
    text = "DMA_STORE dst=0x0 M=1 N=256 b=1\nEND"
    for first, last in RANGES:
        word = OUTPUT + first // 16 * 16
        before = bench.memory.read(word, 16)
        knobs = Knobs(write_error=1, error_first=OUTPUT + first, error_last=OUTPUT + last)
        await _error(bench, knobs, text, ErrorCode.WRITE_ERROR, Engine.ST)
        assert bench.memory.read(word, 16) == before, f"from {first}: a refused beat was written"
    outside = f"SET BASE2 v={bench.memory.data.size}\nDMA_LOAD dst=0x0 M=1 N=64 b=2\nEND"
    await _error(bench, Knobs(), outside, ErrorCode.READ_ERROR, Engine.LD)
    await bench.set_knobs(Knobs())
    await _withheld(bench)
    await _spread(bench)
    return await _transfers(bench)


async def _spread(bench: Bench) -> None:
    """With a spread a burst takes up to so many cycles more, each another number of them."""
    most = 20
    for text, spread in (
        ("END", Knobs(read_spread=most)),
        ("DMA_STORE dst=0x0 M=1 N=16 b=1\nEND", Knobs(write_spread=most)),
    ):
        cycles = []
        for knobs in (Knobs(), *[spread] * 24):
            await bench.set_knobs(knobs)
            execution = await bench.execute(assemble(text).instructions)
            cycles.append(execution.finish.counters.cycles)
        least, *others = cycles
        assert least <= min(others) <= max(others) <= least + most, f"{text}: {cycles}"
        assert len(set(others)) > most // 3, f"{text}: {cycles}"


async def _withheld(bench: Bench) -> None:
    """A memory that is silent in one place accepts what it is asked for, and answers later."""
    load, store = "DMA_LOAD dst=0x0 M=1 N=64 b=0\nEND", "DMA_STORE dst=0x0 M=1 N=64 b=1\nEND"
    reads, writes = ReadBursts(bench.dut), WriteBursts(bench.dut)
    for text, place, bursts in ((load, INPUT, reads), (store, OUTPUT, writes)):
        silent = Knobs(read_silent=1, write_silent=1, silent_first=place, silent_last=place + 63)
        await bench.set_knobs(silent)
        await bench.chip.start(bench.load(assemble(text).instructions))
        await ClockCycles(bench.dut.clk, 500)
        assert (await bench.chip.state())["BUSY"], f"{text}: it ended in silence"
        assert place in [burst.address for burst in bursts.bursts], f"{text}: it was not accepted"
        await bench.set_knobs(Knobs())
        await bench.bus.wait_interrupt(500)
        await bench.chip.write_chip(ChipReg.IRQ_STATUS, 1)
        assert await bench.chip.status() is None, text


@cocotb.test
async def test_memory_back_end_systemverilog(dut: Dut) -> None:
    """The suite on the slave in `tb_top`."""
    bench = await Bench.start(dut)
    await _suite(bench)


@cocotb.test
async def test_memory_back_end_python(dut: Dut) -> None:
    """The suite on the slave in Python."""
    bench = await Bench.start(dut, back_end=BackEnd.PYTHON)
    await _suite(bench)


@cocotb.test
async def test_memory_back_ends_agree(dut: Dut) -> None:
    """Without random gaps the two take the same number of cycles, whatever the latency."""
    cycles: list[list[int]] = []
    for back_end in BackEnd:
        bench = await Bench.start(dut, back_end=back_end)
        counts = []
        for read, write in ((40, 40), (1, 1), (13, 90)):
            await bench.set_knobs(Knobs(read_latency=read, write_latency=write))
            counts.append(await _transfers(bench))
        cycles.append(counts)
    assert cycles[0] == cycles[1], f"SystemVerilog {cycles[0]}, Python {cycles[1]} cycles"


@cocotb.test
async def test_memory_bursts(dut: Dut) -> None:
    """Every needed beat is read and written once, and nothing outside is touched."""
    bench = await Bench.start(dut)
    reads, writes = ReadBursts(dut), WriteBursts(dut)
    text = """
        DMA_LOAD dst=0x0 M=2 N=5000 b=0 off=0xF70 pitch=0x2000
        BARRIER ld
        DMA_STORE dst=0x0 M=2 N=5000 b=1 off=0xFD0 pitch=0x2000
        END
    """
    program = assemble(text).instructions
    await bench.execute(program)
    needed = {LOAD: set[int](), UCODE: {PROGRAM + 16 * word for word in range(len(program))}}
    stored: set[int] = set()
    for row in range(2):
        needed[LOAD] |= set(
            range(INPUT + 0xF70 + 0x2000 * row, INPUT + 0xF70 + 0x2000 * row + 5000, 16)
        )
        stored |= set(
            range(OUTPUT + 0xFD0 + 0x2000 * row, OUTPUT + 0xFD0 + 0x2000 * row + 5000, 16)
        )
    beats = [at for burst in reads.bursts if burst.ident == LOAD for at in burst.addresses]
    assert sorted(beats) == sorted(needed[LOAD])
    assert {at for burst in writes.bursts for at in burst.addresses} == stored
    assert sum(burst.beats for burst in writes.bursts) == len(stored)
    fetched = {at for burst in reads.bursts if burst.ident == UCODE for at in burst.addresses}
    assert needed[UCODE] <= fetched
    assert {burst.ident for burst in reads.bursts} <= {LOAD, UCODE}
    assert {burst.ident for burst in writes.bursts} == {STORE}


@cocotb.test
async def test_memory_of_banks(dut: Dut) -> None:
    """Loads beside stores that fill the queue of a DRAM, and gaps besides: every byte is there."""
    cycles = []
    for kind in MemoryKind:
        bench = await Bench.start(dut, Knobs(memory=kind))
        cycles.append(await _beside(bench))
        await bench.set_knobs(replace(HOSTILE, memory=kind))
        assert await _beside(bench) > cycles[-1]
    fixed, *drams = cycles
    assert min(drams) > 1.05 * fixed, f"cycles on {', '.join(k.name for k in MemoryKind)}: {cycles}"


async def _beside(bench: Bench) -> int:
    """Stores beside loads; return the cycles."""
    execution = await bench.execute(assemble(BESIDE).instructions)
    assert execution.finish.error is None, str(execution.finish.error)
    stored, loaded = (bench.memory.view(base, 4 * PART) for base in (OUTPUT, INPUT))
    assert (stored == loaded).all()
    return execution.finish.counters.cycles
