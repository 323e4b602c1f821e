# SPDX-License-Identifier: Apache-2.0
"""DMA alone: one and two dimensions, odd byte counts, pitches, 4 KiB boundaries, all bases."""

from __future__ import annotations

from functools import partial

import cocotb

from npu.asm import assemble
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.knobs import Knobs
from tb.stimulus import build_program, draw
from tb.stimulus.simple_cases import DMA_BASES, StoreWindow, dma_load, dma_store

TAGS = ("ld", "st")


@cocotb.test
async def test_dma_random(dut: Dut) -> None:
    """Random loads and stores side by side, through every base register."""
    bench = await Bench.start(dut)
    for _ in range(3):
        store = partial(dma_store, StoreWindow())
        program, stream = build_program(bench, draw(bench.random, [dma_load, store], 40))
        execution = await bench.execute(program, stream, bases=DMA_BASES, limit=1_000_000)
        assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_dma_boundaries(dut: Dut) -> None:
    """Transfers that start and end around a 4 KiB boundary, of every length up to three beats."""
    bench = await Bench.start(dut)
    text = ""
    for index in range(48):
        offset = 0x1000 * (index + 1) - 16 * (index % 4)
        text += f"DMA_LOAD dst={64 * index:#x} M=1 N={index + 1} b=0 off={offset:#x}\n"
    text += "BARRIER ld\n"
    for index in range(48):
        offset = 0x1000 * (index + 1) - 16 * (index % 4)
        text += f"DMA_STORE dst={64 * index:#x} M=1 N={index + 1} b=1 off={offset:#x}\n"
    await bench.execute(assemble(text + "END").instructions)


@cocotb.test
async def test_dma_large(dut: Dut) -> None:
    """The longest row, and the whole SRAM in and out."""
    bench = await Bench.start(dut)
    text = """
        DMA_LOAD dst=0x0 M=1 N=61439 b=0 off=0x10
        DMA_LOAD dst=0x10000 M=64 N=3072 b=0 off=0x20000
        BARRIER ld
        DMA_STORE dst=0x0 M=1 N=61439 b=1
        DMA_STORE dst=0x10000 M=64 N=3072 b=1 off=0x20000 pitch=4096
        END
    """
    await bench.execute(assemble(text).instructions)


@cocotb.test
async def test_dma_through_memory(dut: Dut) -> None:
    """A load behind a barrier finds what the stores before it have left in memory.

    The memory reads at once and takes its time to write, so a store that counts as done before
    its last burst is answered shows as old bytes.
    """
    bench = await Bench.start(dut, Knobs(read_latency=1, write_latency=200))
    text = ""
    for turn, (rows, length) in enumerate(((1, 1), (1, 16), (3, 100), (16, 512), (2, 4095))):
        place = f"M={rows} N={length} b=1 off={0x10000 * turn:#x}"
        text += f"DMA_STORE dst={0x2000 * turn:#x} {place}\nBARRIER st\n"
        text += f"DMA_LOAD dst={0x20000 + 0x2000 * turn:#x} {place}\n"
    await bench.execute(assemble(text + "END").instructions)
