# SPDX-License-Identifier: Apache-2.0
"""A hostile memory: latency from 1 to 200, gaps, back-pressure, reordering between identifiers."""

from __future__ import annotations

from functools import partial

import cocotb

from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.knobs import Knobs
from tb.stimulus import build_program, draw
from tb.stimulus.gemm_cases import gemm
from tb.stimulus.random_case import Generator
from tb.stimulus.simple_cases import (
    DMA_BASES,
    StoreWindow,
    dma_load,
    dma_store,
    gelu,
    layernorm,
    softmax,
    vec,
)

TAGS = ("ld", "st", "timing")


def everything(bench: Bench) -> list[Generator]:
    """Return generators of all engines, those that use memory and stream more often."""
    config = bench.config
    multiply = partial(gemm, rows=config.acc_rows, edge=config.tile, depthwise=config.depthwise)
    store = partial(dma_store, StoreWindow())
    return [multiply, multiply, dma_load, dma_load, store, store, gelu, layernorm, softmax, vec]


async def run_with(bench: Bench, knobs: Knobs, count: int = 24) -> int:
    """Run one random program under `knobs`; return its cycles."""
    await bench.set_knobs(knobs)
    program, stream = build_program(bench, draw(bench.random, everything(bench), count), 6)
    execution = await bench.execute(program, stream, bases=DMA_BASES, limit=4_000_000)
    assert execution.finish.error is None, str(execution.finish.error)
    return execution.finish.counters.cycles


@cocotb.test
async def test_memory_latency(dut: Dut) -> None:
    """Latencies from 1 to 200 on both channels, without and with gaps."""
    bench = await Bench.start(dut)
    for read, write, gap in ((1, 1, 0), (2, 200, 20), (17, 3, 60), (40, 40, 30), (200, 200, 10)):
        await run_with(
            bench,
            Knobs(read_latency=read, write_latency=write, read_gap=gap, write_gap=gap),
        )


@cocotb.test
async def test_memory_back_pressure(dut: Dut) -> None:
    """Addresses and write data that are seldom taken."""
    bench = await Bench.start(dut)
    for stall in (10, 50, 90):
        knobs = Knobs(
            read_latency=5, ar_stall=stall, aw_stall=stall, w_stall=stall, write_gap=stall
        )
        await run_with(bench, knobs)


@cocotb.test
async def test_memory_interleaving(dut: Dut) -> None:
    """Read beats of different identifiers alternate at random; order holds within each."""
    bench = await Bench.start(dut)
    for latency in (1, 30, 120):
        await run_with(bench, Knobs(read_latency=latency, interleave=1, read_gap=15))


@cocotb.test
async def test_memory_timing_is_invisible(dut: Dut) -> None:
    """Two runs of one program under two memories differ in cycles and in nothing else."""
    bench = await Bench.start(dut)
    program, stream = build_program(bench, draw(bench.random, everything(bench), 20), 6)
    cycles = []
    for latency in (40, 150):
        await bench.set_knobs(Knobs(read_latency=latency, write_latency=latency))
        execution = await bench.execute(program, stream, bases=DMA_BASES, limit=4_000_000)
        cycles.append(execution.finish.counters.cycles)
    assert cycles[1] > cycles[0]
