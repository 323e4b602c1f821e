# SPDX-License-Identifier: Apache-2.0
"""EMBED: rows of a table by token, by a list in SRAM and by position."""

from __future__ import annotations

from functools import partial

import cocotb
import numpy as np
import numpy.typing as npt

from golden.machine import ErrorReport
from npu.asm import assemble
from spec.isa import EmbedIndex, Engine, ErrorCode
from spec.isa.operands import up
from tb.bench.dut import Dut
from tb.bench.environment import DEFAULT_LIMIT, INPUT, OUTPUT, Bench
from tb.bench.knobs import Knobs
from tb.bench.recovery import next_program_runs, old_or_new
from tb.bench.scoreboard import compare_errors
from tb.stimulus import build_program, draw
from tb.stimulus.random_case import Generator
from tb.stimulus.simple_cases import DMA_BASES, dma_load
from tb.stimulus.transfer_cases import embed

TAGS = ("ld",)


async def run(bench: Bench, generators: list[Generator]) -> None:
    """Run one program of all the generators' cases; it agrees in every byte."""
    program, stream = build_program(bench, generators)
    execution = await bench.execute(program, stream, bases=DMA_BASES, limit=2_000_000)
    assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_embed_random(dut: Dut) -> None:
    """Random rows by all three forms between loads, under several memories."""
    bench = await Bench.start(dut)
    for knobs in (
        Knobs(),
        Knobs(read_latency=1),
        Knobs(read_latency=100, read_gap=30, ar_stall=50, interleave=1),
    ):
        await bench.set_knobs(knobs)
        await run(bench, draw(bench.random, [embed, embed, embed, dma_load], 40))


@cocotb.test
async def test_embed_sizes(dut: Dut) -> None:
    """Each form with rows of 1 to 50 bytes, lists of every length up to 50."""
    bench = await Bench.start(dut)
    for index in EmbedIndex:
        sizes = range(1, 51)
        await run(bench, [partial(embed, index=index, rows=n, row_bytes=51 - n) for n in sizes])


async def stops(bench: Bench, text: str, report: ErrorReport) -> npt.NDArray[np.uint8]:
    """Run a program that ends with an error report; return the SRAM, (bytes,) uint8."""
    finish = await bench.chip.run(bench.load(assemble(text).instructions), DEFAULT_LIMIT)
    compare_errors(report, finish.error)
    return await bench.sync()


@cocotb.test
async def test_embed_list_error(dut: Dut) -> None:
    """A row that ends past 2^32 is BAD_ADDRESS of the load engine; only rows before it arrive."""
    bench = await Bench.start(dut)
    beyond = (0x1_0000_0000 - OUTPUT) // 4096
    for size, row, number in (
        (48, 0, beyond),
        (4096, 5, beyond + 7),
        (4097, 8, beyond - 1),
        (7, 3, 0xFFFF_FFFF),
    ):
        old = await bench.sync()
        numbers = bench.random.integers(0, 64, 12).astype(np.uint32)
        numbers[row] = number
        bench.memory.stage(INPUT, numbers.tobytes())
        address = (OUTPUT + number * 4096) & 0xFFFF_FFFF
        text = f"""
            DMA_LOAD dst=0x0 M=1 N=48 b=0
            BARRIER ld
            EMBED dst=0x1000 src0=0x0 M=9 N={size} b=1 idx=list pitch=4096 cp=8192
            END
        """
        actual = await stops(bench, text, ErrorReport(ErrorCode.BAD_ADDRESS, Engine.LD, 3, address))
        new = old.copy()
        new[:48] = numbers.view(np.uint8)
        for before in range(row):
            at = 0x1000 + before * 8192
            new[at : at + up(size)] = 0
            table = bench.memory.read(OUTPUT + int(numbers[before]) * 4096, size)
            new[at : at + size] = np.frombuffer(table, np.uint8)
        old_or_new("SRAM", old, new, actual)
        await next_program_runs(bench)


@cocotb.test
async def test_embed_list_limit(dut: Dut) -> None:
    """A row of a list may end exactly at 2^32: it is asked for, and there is no memory."""
    bench = await Bench.start(dut)
    number = (0x1_0000_0000 - OUTPUT) // 256 - 1
    bench.memory.stage(INPUT, number.to_bytes(16, "little"))
    text = """
        DMA_LOAD dst=0x0 M=1 N=16 b=0
        BARRIER ld
        EMBED dst=0x1000 src0=0x0 M=1 N=256 b=1 idx=list pitch=256
        END
    """
    await stops(bench, text, ErrorReport(ErrorCode.READ_ERROR, Engine.LD, 2, 0xFFFF_FF00))
    await next_program_runs(bench)
