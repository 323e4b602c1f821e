# SPDX-License-Identifier: Apache-2.0
"""LAYERNORM alone: rows of every spread, parameters from the stream and from SRAM."""

from __future__ import annotations

import cocotb
import numpy as np

from npu.asm import assemble
from tb.dut import Dut
from tb.environment import INPUT, Bench
from tb.stimulus import run_cases
from tb.stimulus.simple import layernorm


@cocotb.test
async def test_layernorm_random(dut: Dut) -> None:
    """Random shapes, spreads, gains, biases and epsilon terms."""
    bench = await Bench.start(dut)
    await run_cases(bench, [layernorm], count=40, programs=4)


@cocotb.test
async def test_layernorm_spreads(dut: Dut) -> None:
    """Rows whose variance walks through every power of two, so that each table entry serves."""
    bench = await Bench.start(dut)
    count = 32
    rows = []
    for step in range(120):
        shape = np.linspace(-1, 1, count) * 2.0 ** (step / 8)
        rows.append(np.clip(np.round(shape + bench.random.normal(0, 0.5, count)), -32768, 32767))
    bench.memory.stage(INPUT, np.array(rows).astype("<i2"))
    gains = np.zeros(count, np.dtype([("gain", "<u2"), ("shift", "u1"), ("bias", "i1")]))
    gains["gain"], gains["shift"] = 20000, 10
    bench.memory.stage(INPUT + 0x1_0000, bytes(64) + gains.tobytes())
    text = """
        DMA_LOAD dst=0x0 M=120 N=64 b=0
        DMA_LOAD dst=0x8000 M=1 N=192 b=0 off=0x10000
        BARRIER ld
        LAYERNORM dst=0xA000 src0=0x0 src1=0x8000 M=120 N=32 out=i16
        END
    """
    await bench.execute(assemble(text).instructions)


@cocotb.test
async def test_layernorm_longest(dut: Dut) -> None:
    """A row of the greatest length, full-range values."""
    bench = await Bench.start(dut)
    longest = bench.config.norm_max
    text = f"""
        DMA_LOAD dst=0x0 M=1 N={2 * longest} b=0
        DMA_LOAD dst=0x8000 M=1 N={64 + 4 * longest} b=0 off=0x10000
        BARRIER ld
        LAYERNORM dst=0x20000 src0=0x0 src1=0x8000 M=1 N={longest} out=i16
        END
    """
    channels = np.zeros(longest, np.dtype([("gain", "<u2"), ("shift", "u1"), ("bias", "i1")]))
    channels["gain"] = bench.random.integers(0, 1 << 15, longest)
    channels["shift"] = bench.random.integers(8, 20, longest)
    bench.memory.stage(INPUT + 0x1_0000, (77).to_bytes(64, "little") + channels.tobytes())
    await bench.execute(assemble(text).instructions)
