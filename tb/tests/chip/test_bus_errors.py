# SPDX-License-Identifier: Apache-2.0
"""SLVERR and DECERR on every client of the bus: the report names engine, instruction and place."""

from __future__ import annotations

from dataclasses import replace

import cocotb

from golden.machine import ErrorReport, StartState
from spec.isa import Engine, ErrorCode
from tb.bench.bursts import split
from tb.bench.dut import Dut
from tb.bench.environment import DEFAULT_LIMIT, INPUT, OUTPUT, PROGRAM, STREAM, Bench, turns
from tb.bench.knobs import Knobs
from tb.bench.recovery import (
    STORE_AT,
    STREAM_BYTES,
    load_every_engine,
    next_program_runs,
    program,
    run_stopped,
    user_of,
)
from tb.bench.scoreboard import compare_errors

TAGS = ("ld", "st", "stream", "faults")

LOADS = """
    NOP
    DMA_LOAD dst=0x0 M=1 N=1500 b=0 off=0x40
    DMA_LOAD dst=0x1000 M=2 N=700 b=0 off=0x4000 pitch=0x1000
    END
"""
STORES = LOADS.replace("LOAD", "STORE").replace("b=0", "b=1")
TRANSFERS = {1: (0x40, 1, 1500, 0), 2: (0x4000, 2, 700, 0x1000)}
"""By instruction of the two programs: offset, rows, bytes per row, pitch."""


def _bursts(base: int, instr: int) -> list[range]:
    offset, rows, row_bytes, pitch = TRANSFERS[instr]
    return list(split(base + offset, rows, row_bytes, pitch))


async def _read_error_at(
    bench: Bench, address: int, start: StartState, expected: ErrorReport, **knobs: int
) -> None:
    """Run a program while reads of the word at `address` fail."""
    await bench.set_knobs(
        Knobs(read_error=1, error_first=address, error_last=address + 15, **knobs)
    )
    await run_stopped(bench, start, expected)
    await bench.set_knobs(Knobs())


@cocotb.test
async def test_bus_error_load(dut: Dut) -> None:
    """An error on any beat of two chained loads names the load it belongs to, and the word."""
    bench = await Bench.start(dut)
    start = bench.load(program(LOADS))
    for latency in (1, 200):
        for instr in TRANSFERS:
            bursts = _bursts(INPUT, instr)
            words = [bursts[0][0], bursts[1][0], bursts[1][16], bursts[-1][-1] & ~15]
            for word in words:
                expected = ErrorReport(ErrorCode.READ_ERROR, Engine.LD, instr, word)
                await _read_error_at(bench, word, start, expected, read_latency=latency)
    await next_program_runs(bench)


@cocotb.test
async def test_bus_error_store(dut: Dut) -> None:
    """An error on any burst of two chained stores, many under way, names store and burst."""
    bench = await Bench.start(dut)
    start = bench.load(program(STORES))
    for latency in (1, 200):
        for instr in TRANSFERS:
            for burst in _bursts(OUTPUT, instr):
                word = burst[len(burst) // 2] & ~15
                expected = ErrorReport(ErrorCode.WRITE_ERROR, Engine.ST, instr, burst[0])
                old = bench.memory.read(word, 16)
                await bench.set_knobs(
                    Knobs(write_error=1, error_first=word, error_last=word, write_latency=latency)
                )
                await run_stopped(bench, start, expected)
                assert bench.memory.read(word, 16) == old, "the refused word was written"
                await bench.set_knobs(Knobs())
    await next_program_runs(bench)


@cocotb.test
async def test_bus_error_fetch(dut: Dut) -> None:
    """An error on any word of the program names the word."""
    bench = await Bench.start(dut)
    start = bench.load(program("NOP\n" * 99 + "END"))
    for index in (0, 1, 31, 32, 77, 99):
        at = PROGRAM + 16 * index
        expected = ErrorReport(ErrorCode.READ_ERROR, Engine.SEQ, index, at)
        await _read_error_at(bench, at, start, expected)
    await next_program_runs(bench)


@cocotb.test
async def test_bus_error_stream(dut: Dut) -> None:
    """An error on any word of the stream names the word; instruction 0, for it is read ahead."""
    bench = await Bench.start(dut)
    for offset in (0, 496, 512, 4096 - 16, STREAM_BYTES - 16):
        at = STREAM + offset
        expected = ErrorReport(ErrorCode.READ_ERROR, Engine.STREAM, 0, at)
        await _read_error_at(bench, at, load_every_engine(bench), expected)
    await next_program_runs(bench)


@cocotb.test
async def test_bus_error_keeps_what_is_complete(dut: Dut) -> None:
    """What a barrier has waited for is in memory, whatever fails later."""
    bench = await Bench.start(dut)
    hole = bench.memory.data.size
    words = program("DMA_STORE dst=0x8000 M=4 N=900 b=1\nBARRIER\nDMA_LOAD dst=0 M=1 N=16 b=2\nEND")
    start = bench.load(words, bases=(0, OUTPUT, hole, 0, 0, 0, 0, 0))
    rows = (await bench.sync())[0x8000:][: 4 * 912].reshape(4, 912)[:, :900]
    expected = ErrorReport(ErrorCode.READ_ERROR, Engine.LD, 2, hole)
    await run_stopped(bench, start, expected)
    stored = bench.memory.array(OUTPUT, (4, 912), "u1")[:, :900]
    assert (stored == rows).all(), "the store was complete"
    await next_program_runs(bench)


@cocotb.test
async def test_bus_error_no_memory(dut: Dut) -> None:
    """Every client meets the end of memory (DECERR)."""
    bench = await Bench.start(dut)
    end = bench.memory.data.size
    bases = (0, OUTPUT, end - 0x200, 0, 0, 0, 0, 0)
    for name, code, engine in (
        ("LOAD", ErrorCode.READ_ERROR, Engine.LD),
        ("STORE", ErrorCode.WRITE_ERROR, Engine.ST),
    ):
        words = program(f"NOP\nDMA_{name} dst=0 M=3 N=256 b=2\nEND")
        start = bench.load(words, bases=bases)
        await run_stopped(bench, start, ErrorReport(code, engine, 1, end))
        await next_program_runs(bench)
    fetch = replace(bench.load([]), ucode_base=end - 32, ucode_len=4)
    bench.memory.stage(end - 32, b"".join(word.encode() for word in program("NOP\nNOP")))
    await run_stopped(bench, fetch, ErrorReport(ErrorCode.READ_ERROR, Engine.SEQ, 2, end))
    await next_program_runs(bench)
    words = program("GELU dst=0 src0=0x1000 M=1 N=16 stream\nEND")
    stream = replace(bench.load(words), stream_base=end - 64, stream_len=256)
    expected = ErrorReport(ErrorCode.READ_ERROR, Engine.STREAM, 0, end)
    await run_stopped(bench, stream, expected)
    await next_program_runs(bench)


def _report_at(word: int) -> ErrorReport:
    """Return how `EVERY_ENGINE` ends if the accesses to `word` fail."""
    engine, instr = user_of(word)
    if engine is not Engine.ST:
        return ErrorReport(ErrorCode.READ_ERROR, engine, instr, word)
    row_bytes = 64 if instr == STORE_AT[0] else 128
    return ErrorReport(ErrorCode.WRITE_ERROR, engine, instr, word & -row_bytes)


@cocotb.test
async def test_bus_error_anywhere(dut: Dut) -> None:
    """One failing word anywhere in a busy program: its report, and the next program is right."""
    bench = await Bench.start(dut)
    places = (
        range(STREAM, STREAM + STREAM_BYTES, 16),
        range(INPUT, INPUT + 8 * 256, 16),
        range(INPUT + 0x4000, INPUT + 0x4000 + 16 * 256, 16),
        range(OUTPUT, OUTPUT + 32 * 64, 16),
        range(OUTPUT + 0x4000, OUTPUT + 0x4000 + 16 * 128, 16),
    )
    for turn in range(turns(25)):
        word = int(bench.random.choice(places[turn % len(places)]))
        latency = int(bench.random.integers(1, 120))
        await bench.set_knobs(
            Knobs(
                read_error=1,
                write_error=1,
                error_first=word,
                error_last=word,
                read_latency=latency,
                write_latency=latency,
                interleave=int(bench.random.integers(2)),
                read_gap=int(bench.random.integers(30)),
            )
        )
        finish = await bench.chip.run(load_every_engine(bench), DEFAULT_LIMIT)
        compare_errors(_report_at(word), finish.error)
        await bench.set_knobs(Knobs())
        await next_program_runs(bench)
