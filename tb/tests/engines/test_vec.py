# SPDX-License-Identifier: Apache-2.0
"""VEC, GELU and SILU alone: each operation and width, in place and apart, both kinds of tables."""

from __future__ import annotations

from functools import partial

import cocotb
import numpy as np

from npu.asm import assemble
from spec.isa import VEC_OPS, VecOp
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, Bench
from tb.stimulus import run_cases
from tb.stimulus.simple_cases import gelu, silu, vec

TAGS = ("vec", "random")


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
    """All 65,536 pairs of int8 operands through each operation that takes two."""
    bench = await Bench.start(dut)
    values = np.arange(-128, 128).astype(np.int8)
    bench.memory.stage(INPUT, np.repeat(values, 256))
    bench.memory.stage(INPUT + 0x1_0000, np.tile(values, 256))
    text = """
        DMA_LOAD dst=0x0 M=256 N=256 b=0
        DMA_LOAD dst=0x10000 M=256 N=256 b=0 off=0x10000
        BARRIER ld
    """
    for op, uses in VEC_OPS.items():
        if uses.two:
            shift = " sh=7" if uses.shift else ""
            text += f"VEC op={op.asm} dst=0x20000 src0=0x0 src1=0x10000 M=256 N=256{shift}\n"
    await bench.execute(assemble(text + "END").instructions)


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
