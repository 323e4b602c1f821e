# SPDX-License-Identifier: Apache-2.0
"""What the tests of both norms share."""

from __future__ import annotations

import numpy as np

from npu.asm import assemble
from tb.bench.environment import INPUT, Bench

CHANNEL = np.dtype([("gain", "<u2"), ("shift", "u1"), ("bias", "i1")])


async def run_spreads(bench: Bench, opcode: str) -> None:
    """Run rows whose variance walks through every power of two: each table entry serves."""
    count = 32
    rows = []
    for step in range(120):
        shape = np.linspace(-1, 1, count) * 2.0 ** (step / 8)
        rows.append(np.clip(np.round(shape + bench.random.normal(0, 0.5, count)), -32768, 32767))
    bench.memory.stage(INPUT, np.array(rows).astype("<i2"))
    gains = np.zeros(count, CHANNEL)
    gains["gain"], gains["shift"] = 20000, 14
    bench.memory.stage(INPUT + 0x1_0000, bytes(64) + gains.tobytes())
    text = f"""
        DMA_LOAD dst=0x0 M=120 N=64 b=0
        DMA_LOAD dst=0x8000 M=1 N=192 b=0 off=0x10000
        BARRIER ld
        {opcode} dst=0xA000 src0=0x0 src1=0x8000 M=120 N=32 out=i16
        END
    """
    await bench.execute(assemble(text).instructions)


async def run_longest(bench: Bench, opcode: str) -> None:
    """Run a row of the greatest length, full-range values, also with the greatest variance."""
    longest = bench.config.norm_max
    text = f"""
        DMA_LOAD dst=0x0 M=1 N={2 * longest} b=0
        DMA_LOAD dst=0x8000 M=1 N={64 + 4 * longest} b=0 off=0x10000
        BARRIER ld
        {opcode} dst=0x20000 src0=0x0 src1=0x8000 M=1 N={longest} out=i16
        END
    """
    channels = np.zeros(longest, CHANNEL)
    channels["gain"] = bench.random.integers(0, 1 << 15, longest)
    channels["shift"] = bench.random.integers(12, 24, longest)
    for epsilon in (77, (1 << 64) - 1):
        parameters = epsilon.to_bytes(64, "little") + channels.tobytes()
        bench.memory.stage(INPUT + 0x1_0000, parameters)
        await bench.execute(assemble(text).instructions)
