# SPDX-License-Identifier: Apache-2.0
"""The K/V cache: appends and reads in memory and in SRAM, staging tiles, windows, speed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import cocotb
import numpy as np

from golden.machine import ErrorReport
from npu.asm import assemble
from spec.isa import Engine, ErrorCode, Instruction
from spec.isa.operands import up
from tb.bench.dut import Dut
from tb.bench.environment import OUTPUT, Bench, Execution
from tb.bench.knobs import Knobs
from tb.bench.recovery import next_program_runs, run_stopped
from tb.stimulus import build_program, draw
from tb.stimulus.random_case import Generator
from tb.stimulus.simple_cases import DMA_BASES, StoreWindow, dma_load, dma_store
from tb.stimulus.transfer_cases import HEAD_DIMENSIONS, Heads, kv_append, kv_read

TAGS = ("ld", "st")
TIMED = ("test_kv_speed",)

HOSTILE = (
    Knobs(read_latency=1, write_latency=1),
    Knobs(read_latency=7, write_latency=150, read_gap=40, write_gap=40, aw_stall=60, w_stall=30),
    Knobs(read_latency=120, write_latency=3, ar_stall=70, w_stall=80, interleave=1),
)


async def run(
    bench: Bench, generators: Sequence[Generator], in_memory: bool, group: int = 4
) -> Execution:
    """Run one program of all the generators' cases; it agrees in every byte."""
    program, stream = build_program(bench, generators, group)
    return await run_program(bench, program, in_memory, stream)


async def run_program(
    bench: Bench,
    program: Sequence[Instruction],
    in_memory: bool,
    stream: bytes = b"",
    limit: int = 4_000_000,
) -> Execution:
    """Run a program that must not be refused and ends within `limit` cycles."""
    start = bench.load(program, stream, bases=DMA_BASES, kv_in_memory=in_memory)
    execution = await bench.run(program, start, limit=limit)
    assert execution.finish.error is None, str(execution.finish.error)
    return execution


def transfers(bench: Bench, in_memory: bool, memory: StoreWindow) -> list[Generator]:
    """Return generators of everything that the two DMA engines do with a cache."""
    append = partial(kv_append, memory if in_memory else None, bench.config.tile)
    read = partial(kv_read, in_memory, bench.config.tile)
    return [append, append, read, read, dma_load, partial(dma_store, memory)]


@cocotb.test
async def test_kv_random(dut: Dut) -> None:
    """Random appends and reads between other transfers, the cache in memory and in SRAM."""
    bench = await Bench.start(dut)
    for in_memory in (True, False, True, False):
        generators = transfers(bench, in_memory, StoreWindow())
        await run(bench, draw(bench.random, generators, 30), in_memory)


@cocotb.test
async def test_kv_hostile_memory(dut: Dut) -> None:
    """The same under latency from 1 to 150, gaps, back-pressure and interleaving."""
    bench = await Bench.start(dut)
    for knobs in HOSTILE:
        await bench.set_knobs(knobs)
        for in_memory in (True, False):
            generators = transfers(bench, in_memory, StoreWindow())
            await run(bench, draw(bench.random, generators, 16), in_memory)


@cocotb.test
async def test_kv_append_during_loads(dut: Dut) -> None:
    """Appends whose words for memory and for the staging tile are taken in different cycles.

    A load writes to every bank in turn, one word in a cycle, so a staging tile often has to wait
    for its bank; a memory that stalls makes it the other way round.
    """
    bench = await Bench.start(dut)
    edge = bench.config.tile
    tiles = 4 * edge * edge
    for stall in (0, 60):
        await bench.set_knobs(Knobs(read_latency=1, write_latency=1, w_stall=stall))
        text = f"SET KVBASE v={DMA_BASES[1]}\nSET KVHEAD v={tiles}\nSET KVCAP v={4 * edge}\n"
        text += "DMA_LOAD dst=0x20000 M=64 N=1024 b=0\n"
        for turn in range(4):
            text += f"SET POS v={edge * turn}\n"
            text += f"KV_APPEND dst={0x10000 + 0x1000 * turn:#x} src0={0x2000 * turn:#x} hp={tiles}"
            text += f" layer=0 N={edge} K={edge} heads=0..3 stage\n"
        await run_program(bench, assemble(text + "END").instructions, True, limit=50_000)


@cocotb.test
async def test_kv_append_shapes(dut: Dut) -> None:
    """Appends of every head dimension from every row of a tile, up to past two tile borders."""
    bench = await Bench.start(dut)
    edge = bench.config.tile
    for in_memory in (True, False):
        memory = StoreWindow()
        cases: list[Generator] = []
        for number, lanes in enumerate(HEAD_DIMENSIONS):
            for phase in range(edge):
                rows = int(bench.random.choice([1, 2, edge - phase, edge - phase + 1, edge, 40]))
                heads = Heads(1 + (number + phase) % 4, lanes, rows, pos=edge + phase)
                append = partial(
                    kv_append,
                    memory if in_memory else None,
                    edge,
                    heads=heads,
                    stage=phase % 2 == 0,
                )
                cases.append(append)
        await run(bench, cases, in_memory)


@cocotb.test
async def test_kv_read_shapes(dut: Dut) -> None:
    """Reads of every head dimension and every number of positions up to two tiles and one."""
    bench = await Bench.start(dut)
    edge = bench.config.tile
    for in_memory in (True, False):
        cases: list[Generator] = []
        for positions in range(1, 2 * edge + 2):
            lanes = HEAD_DIMENSIONS[positions % len(HEAD_DIMENSIONS)]
            for heads in (
                Heads(1 + positions % 12, 16, positions),
                Heads(2, lanes, positions, base=edge * (positions % 3)),
                Heads(1, lanes, positions, pos=5 * edge + positions, window=positions + 1),
            ):
                cases.append(partial(kv_read, in_memory, edge, heads=heads))
        await run(bench, cases, in_memory)


@cocotb.test
async def test_kv_steps(dut: Dut) -> None:
    """A cache that grows row by row: what is read and what is staged is what was appended."""
    bench = await Bench.start(dut)
    edge = bench.config.tile
    heads, lanes, steps = 3, edge + 1, edge + 3
    tiles = 2 * edge * 2 * edge
    row_bytes = up(lanes)
    rows, staging, cache = 0x0, 0x4000, 0x20000
    for in_memory in (True, False):
        base = DMA_BASES[1] if in_memory else cache
        text = f"""
            SET KVBASE v={base}
            SET KVHEAD v={tiles}
            SET KVCAP v={steps}
        """
        values = bench.random.integers(0, 256, (steps, heads, lanes), np.uint8)
        source = np.full((steps, heads, row_bytes), 0x5A, np.uint8)
        source[:, :, :lanes] = values
        at = DMA_BASES[0]
        bench.memory.stage(at, source.tobytes())
        text += f"DMA_LOAD dst={rows:#x} M={steps} N={heads * row_bytes} b=0\nBARRIER ld\n"
        for step in range(steps):
            text += f"SET POS v={step}\n"
            if step:
                text += f"KV_READ dst={staging:#x} layer=0 N={lanes} K={step} heads=0..{heads - 1}"
                text += f" cp={tiles}\n"
            text += (
                f"KV_APPEND dst={staging:#x} src0={rows + step * heads * row_bytes:#x} hp={tiles}"
            )
            text += f" layer=0 N={lanes} K=1 heads=0..{heads - 1} stage\nBARRIER\n"
        await run_program(bench, assemble(text + "END").instructions, in_memory)
        sram = await bench.sync()
        for head in range(heads):
            at = staging + head * tiles
            stripes = sram[at : at + tiles].reshape(2, 2, edge, edge)
            found = stripes.transpose(0, 2, 1, 3).reshape(2 * edge, -1)[:steps, :lanes]
            assert np.array_equal(found, values[:, head]), f"head {head}, in memory {in_memory}"


@cocotb.test
async def test_kv_bus_errors(dut: Dut) -> None:
    """A failing word of a read is named, of an append its burst; both with their instruction."""
    bench = await Bench.start(dut)
    edge, pitch = bench.config.tile, 0x8000
    tile, stripe = edge * edge, 64 * edge
    registers = (
        f"SET KVBASE v={OUTPUT}\nSET KVHEAD v={pitch}\nSET KVCAP v=200\nSET POS v={edge - 1}\n"
    )
    read = assemble(
        f"{registers} KV_READ dst=0x0 layer=0 N=64 K={edge + 3} heads=0..1\nEND"
    ).instructions
    append = assemble(
        f"{registers} KV_APPEND src0=0x0 layer=0 N=64 K=3 heads=0..1\nEND"
    ).instructions
    words = (0, stripe - 16, stripe + tile, pitch + 528, pitch + stripe + 2 * edge)
    for latency in (1, 100):
        for word in words:
            at = OUTPUT + word
            fails = {"error_first": at, "error_last": at + 15}
            await bench.set_knobs(Knobs(read_error=1, read_latency=latency, **fails))
            report = ErrorReport(ErrorCode.READ_ERROR, Engine.LD, 4, at)
            await run_stopped(bench, bench.load(read), report)
        # One row of the first stripe and two of the second, each in every tile
        for burst, rows in ((tile - edge, 1), (pitch + stripe + tile, 2)):
            at = OUTPUT + burst + rows * edge - 16
            fails = {"error_first": at, "error_last": at + 15}
            await bench.set_knobs(Knobs(write_error=1, write_latency=latency, **fails))
            report = ErrorReport(ErrorCode.WRITE_ERROR, Engine.ST, 4, OUTPUT + burst)
            await run_stopped(bench, bench.load(append), report)
    await bench.set_knobs(Knobs())
    await next_program_runs(bench)


@cocotb.test
async def test_kv_speed(dut: Dut) -> None:
    """Reads keep the bus busy at least 99 of 100 cycles; an append does not wait for answers."""
    bench = await Bench.start(dut)

    async def cycles(line: str, count: int) -> int:
        text = f"SET KVBASE v={DMA_BASES[1]}\nSET KVHEAD v=0x10000\nSET KVCAP v=1024\n"
        execution = await run_program(
            bench, assemble(text + line * count + "END").instructions, True
        )
        return execution.finish.counters.cycles

    for words, line in (
        (4096, "KV_READ dst=0x0 layer=0 N=64 K=1024 heads=0..0\n"),
        (12 * 128, "KV_READ dst=0x0 layer=0 N=64 K=32 heads=0..11\n"),
        (128, "KV_READ dst=0x0 layer=0 N=64 K=32 heads=3..3\n"),
        (6 * 64 * 4, "KV_READ dst=0x0 layer=0 N=64 K=64 heads=0..5 v\n"),
    ):
        few, many = [await cycles(line, count) for count in (2, 22)]
        share = 20 * words / (many - few)
        assert share >= 0.99, f"{line.strip()}: the bus is busy {share:.3f} of the time"
    line = "KV_APPEND src0=0x0 layer=0 N=64 K=1 heads=0..11\n"
    few, many = [await cycles(line, count) for count in (2, 12)]
    latency = Knobs().write_latency
    bursts = 12 * 64 // bench.config.tile
    limit = 10 * (bursts / 16 + 1) * (latency + 8)
    assert many - few <= limit, f"{many - few} cycles for 10 appends of {bursts} bursts"
