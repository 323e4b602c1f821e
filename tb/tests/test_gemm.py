# SPDX-License-Identifier: Apache-2.0
"""GEMM alone: every form of B, A type, requantisation, output and second operand."""

from __future__ import annotations

from functools import partial

import cocotb

from npu.asm import assemble
from tb.dut import Dut
from tb.environment import Bench
from tb.stimulus import build_program, run_cases
from tb.stimulus.gemm import (
    OP_NONE,
    OUT_INT32,
    Q_PREFIX,
    Mode,
    Shape,
    build,
    classic,
    gemm,
)


@cocotb.test
async def test_gemm_random(dut: Dut) -> None:
    """Random modes and shapes, several instructions in flight."""
    bench = await Bench.start(dut)
    make = partial(gemm, rows=bench.config.acc_rows, edge=bench.config.tile)
    await run_cases(bench, [make], count=60, programs=4)


@cocotb.test
async def test_gemm_classic(dut: Dut) -> None:
    """The instruction without a mode word: scale and shift, raw sums, accumulate over C."""
    bench = await Bench.start(dut)
    make = partial(classic, rows=bench.config.acc_rows, edge=bench.config.tile)
    await run_cases(bench, [make], count=50, programs=2)


@cocotb.test
async def test_gemm_shapes(dut: Dut) -> None:
    """Every remainder of M, N and K modulo 16 and the tile, exact int32 sums, all forms of B."""
    bench = await Bench.start(dut)
    edge = bench.config.tile
    for b_form in range(3):
        generators = []
        for low in range(1, edge + 2):
            shape = Shape(low, (low * 5) % (2 * edge) + 1, (low * 7) % (3 * edge) + 1)
            mode = Mode(
                a_type=low % 4,
                b_form=b_form,
                transpose=b_form != 2 and low % 2 == 1,
                requant=False,
                q=Q_PREFIX,
                out=OUT_INT32,
                op=OP_NONE,
                accumulate=low % 3 == 0,
                bias=False,
                relu=False,
                table=False,
            )
            generators.append(partial(build, shape=shape, mode=mode, edge=edge))

        program, stream = build_program(bench, generators)
        execution = await bench.execute(program, stream, limit=1_000_000)
        assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_gemm_largest(dut: Dut) -> None:
    """As many rows as the accumulators hold, and one long row."""
    bench = await Bench.start(dut)
    rows, edge = bench.config.acc_rows, bench.config.tile
    plain = Mode(0, 2, False, False, 0, OUT_INT32, OP_NONE, False, False, False, False)
    wide = Mode(3, 0, False, False, 0, OUT_INT32, OP_NONE, False, False, False, False)
    shapes = [(plain, Shape(rows, 33, 150)), (wide, Shape(rows // 2, 20, 70))]
    shapes += [(plain, Shape(1, 40, 4000)), (plain, Shape(2, 1500, 40))]
    for mode, shape in shapes:
        make = partial(build, shape=shape, mode=mode, edge=edge)
        program, stream = build_program(bench, [make])
        execution = await bench.execute(program, stream, limit=1_000_000)
        assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_gemm_single_rows(dut: Dut) -> None:
    """One row over several inner tiles behind a slow GEMM: both weight sets wait, rows crowd."""
    bench = await Bench.start(dut)
    text = ""
    for turn in range(8):
        c, k = 0x30000 + turn * 0x200, 40 + turn
        text += f"""
            GEMM dst={0x10000 + turn * 0x4000:#x} src0=0x0 src1=0x2000 M=128 N=32 K=16 out=i32
            GEMM dst={c:#x} src0=0x4000 src1=0x5000 M=1 N=40 K={k} out=i32
            GEMM dst={c + 0x100:#x} src0=0x4000 src1=0x8000 M=1 N=40 K=64 T out=i32
        """
    await bench.execute(assemble(text + "END").instructions)
