# SPDX-License-Identifier: Apache-2.0
"""VEC, GELU and SILU alone: each operation and width, in place and apart, both kinds of tables."""

from __future__ import annotations

from functools import partial

import cocotb
import numpy as np

from npu.asm import assemble
from npu.isa import VecOp
from tb.dut import Dut
from tb.environment import INPUT, Bench
from tb.stimulus import run_cases
from tb.stimulus.simple import gelu, silu, vec


@cocotb.test
async def test_vec_random(dut: Dut) -> None:
    """Random operations, shapes, pitches and values."""
    bench = await Bench.start(dut)
    await run_cases(bench, [vec], count=60, programs=3)


@cocotb.test
async def test_vec_each_operation(dut: Dut) -> None:
    """Each operation in a program of its own, so that a fault names it."""
    bench = await Bench.start(dut)
    for op in VecOp:
        await run_cases(bench, [partial(vec, op=op)], count=12)


@cocotb.test
async def test_vec_pairs(dut: Dut) -> None:
    """All 65,536 pairs of int8 operands through ADD, SUB and MUL."""
    bench = await Bench.start(dut)
    values = np.arange(-128, 128).astype(np.int8)
    bench.memory.stage(INPUT, np.repeat(values, 256))
    bench.memory.stage(INPUT + 0x1_0000, np.tile(values, 256))
    text = """
        DMA_LOAD dst=0x0 M=256 N=256 b=0
        DMA_LOAD dst=0x10000 M=256 N=256 b=0 off=0x10000
        BARRIER ld
        VEC op=add dst=0x20000 src0=0x0 src1=0x10000 M=256 N=256
        VEC op=sub dst=0x20000 src0=0x0 src1=0x10000 M=256 N=256
        VEC op=mul dst=0x20000 src0=0x0 src1=0x10000 M=256 N=256 sh=7
        END
    """
    await bench.execute(assemble(text).instructions)


@cocotb.test
async def test_gelu_random(dut: Dut) -> None:
    """Random shapes and random tables, from the stream and from SRAM."""
    bench = await Bench.start(dut)
    await run_cases(bench, [gelu], count=40, programs=2)


@cocotb.test
async def test_silu_random(dut: Dut) -> None:
    """SILU likewise, between GELUs."""
    bench = await Bench.start(dut)
    await run_cases(bench, [silu, gelu], count=40, programs=2)
