# SPDX-License-Identifier: Apache-2.0
"""Load and store alone: rows, pages, lists, the K/V cache in SRAM and in memory."""

from __future__ import annotations

from functools import partial

import cocotb

from spec.isa import EmbedIndex
from tb.bench.dut import Dut
from tb.stimulus.engine_cases import TRANSFERS
from tb.stimulus.random_case import Generator
from tb.stimulus.simple_cases import StoreWindow, dma_load, dma_store
from tb.stimulus.transfer_cases import HEAD_DIMENSIONS, Heads, embed, kv_append, kv_read
from tb.unit.engine import CHIP, EngineBench

EDGE = CHIP.tile


@cocotb.test
async def unit_dma_random(dut: Dut) -> None:
    """Random transfers of both engines at once while SRAM and memory stall at random."""
    store = partial(dma_store, StoreWindow())
    await EngineBench.of(dut).run_random([dma_load, store, embed], programs=40)


@cocotb.test
async def unit_dma_shapes(dut: Dut) -> None:
    """Each shape class, rows of every length up to two words, and lists of rows."""
    extents = [*TRANSFERS, *((2, count) for count in range(1, 34))]
    makers: list[Generator] = [partial(dma_load, extent=each) for each in extents]
    makers += [partial(dma_store, StoreWindow(), extent=each) for each in extents]
    makers += [
        partial(embed, index=EmbedIndex.LIST, rows=n, row_bytes=51 - n) for n in range(1, 51)
    ]
    await EngineBench.of(dut).run_program(makers)


def _cache(memory: StoreWindow | None, programs: int) -> list[list[Generator]]:
    """Return programs of appends, reads and lists, which are read as the cache is, and others."""
    append: Generator = partial(kv_append, memory, EDGE)
    read: Generator = partial(kv_read, memory is not None, EDGE)
    lists: Generator = partial(embed, index=EmbedIndex.LIST)
    other = partial(dma_store, memory or StoreWindow())
    return [[append, read, lists, dma_load, append, read, lists, other]] * programs


@cocotb.test
async def unit_dma_cache_in_memory(dut: Dut) -> None:
    """Random appends and reads of a K/V cache in memory."""
    bench = EngineBench.of(dut)
    for program in _cache(StoreWindow(), 16):
        await bench.run_program(program)


@cocotb.test
async def unit_dma_cache_in_sram(dut: Dut) -> None:
    """Random appends and reads of a K/V cache in SRAM; a word for memory right behind appends."""
    bench = EngineBench.of(dut)
    bench.cache_in_sram = True
    word = partial(dma_store, StoreWindow(), extent=(1, 16))
    for program in _cache(None, 16):
        await bench.run_program(program)
        await bench.run_program([program[0], word] * 8)


@cocotb.test
async def unit_dma_heads(dut: Dut) -> None:
    """Appends of every head dimension from every row of a tile; reads of all numbers of rows."""
    bench = EngineBench.of(dut)
    memory = StoreWindow()
    makers: list[Generator] = []
    for turn in range(2 * EDGE):
        lanes = HEAD_DIMENSIONS[turn % len(HEAD_DIMENSIONS)]
        heads = Heads(count=2, lanes=lanes, positions=1 + turn % (EDGE + 2), pos=turn)
        makers.append(partial(kv_append, memory, EDGE, heads=heads))
        makers.append(partial(kv_read, True, EDGE, heads=Heads(2, lanes, turn + 1, pos=turn)))
    await bench.run_program(makers)
