# SPDX-License-Identifier: Apache-2.0
"""The GEMM engine alone: every mode, shapes around the tile, tables back to back, the argmax."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import cocotb
import numpy as np

from spec.isa import GEMM_LINES, WORD, GemmA, GemmB, GemmOp, GemmOut, GemmQ, Opcode
from tb.bench.dut import Dut
from tb.stimulus.engine_cases import gemm_of, shapes
from tb.stimulus.gemm_cases import (
    WIDE,
    Cut,
    GemmMode,
    GemmSize,
    argmax_mode,
    build,
    classic,
    gemm,
)
from tb.stimulus.lined_rows import with_effect
from tb.stimulus.random_case import Case, Generator, instruction
from tb.stimulus.sram_space import Space
from tb.unit.engine import CHIP, EngineBench

ROWS, EDGE = CHIP.acc_rows, CHIP.tile
PLAIN = GemmMode(
    GemmA.INT8,
    GemmB.ROW_MAJOR,
    False,
    False,
    GemmQ.PREFIX,
    GemmOut.INT32,
    GemmOp.NONE,
    False,
    False,
    False,
    False,
)
"""Exact int32 sums of int8 operands in rows."""


@cocotb.test
async def unit_gemm_random(dut: Dut) -> None:
    """Random modes and shapes, several instructions in flight, under random stalls."""
    drawn = partial(gemm, depthwise=CHIP.depthwise)
    makers = [partial(make, rows=ROWS, edge=EDGE) for make in (drawn, drawn, classic)]
    await EngineBench.of(dut).run_random(makers, programs=30)


@cocotb.test
async def unit_gemm_shapes(dut: Dut) -> None:
    """Each shape class with B from stream and SRAM, and every inner length around the tile."""
    bench = EngineBench.of(dut)
    makers: list[Generator] = [
        partial(gemm_of, shape, EDGE, stream) for shape in shapes(EDGE) for stream in (True, False)
    ]
    for a_type in GemmA:
        mode = replace(PLAIN, a_type=a_type)
        makers += [
            partial(build, shape=GemmSize(2, 5, k), mode=mode, edge=EDGE)
            for k in range(1, 2 * EDGE + 3)
        ]
    await bench.run_program(makers)


@cocotb.test
async def unit_gemm_depthwise(dut: Dut) -> None:
    """Exact sums of one to four lines in every shape class; between them B and A as usual."""
    makers: list[Generator] = []
    for turn, shape in enumerate(shapes(EDGE) * GEMM_LINES):
        mode = replace(PLAIN, a_type=GemmA(turn % 2), b_form=GemmB.STREAM, depthwise=True)
        lines = turn // len(shapes(EDGE)) + 1
        makers.append(partial(build, shape=replace(shape, k=lines * EDGE), mode=mode, edge=EDGE))
        if turn % 3 == 0:
            makers.append(partial(gemm_of, shape, EDGE, bool(turn % 2)))
    await EngineBench.of(dut).run_program(makers)


@cocotb.test
async def unit_gemm_lines(dut: Dut) -> None:
    """Exact sums of rows in lines in every shape class; between them whole rows and B in SRAM.

    Lines lie apart or over each other, or are those of an image, whose pixels the rows step over:
    the sums are other ones than those of whole rows.
    """
    makers: list[Generator] = []
    for turn, shape in enumerate(shapes(EDGE) * 2):
        mode = replace(PLAIN, a_type=GemmA(turn % 4), b_form=GemmB.STREAM)
        lines, tiles = turn % 3 + 2, turn // 4 % 3 + 1
        tile = EDGE * (2 if mode.a_type in WIDE else 1) // WORD
        line = tiles * tile
        cut = Cut(
            lines,
            ap=(tile, 0, lines * line + 1)[turn // 2 % 3],
            bp=(9 * tile, line + 3, line - 1 or 2)[turn // 2 % 3],
        )
        size = GemmSize(shape.m, max(shape.n, 5), lines * tiles * EDGE)
        make = partial(build, shape=size, mode=mode, edge=EDGE, cut=cut)
        makers.append(with_effect(make, EDGE))
        if turn % 3 == 0:
            makers.append(partial(gemm_of, shape, EDGE, bool(turn % 2)))
    await EngineBench.of(dut).run_program(makers)


@cocotb.test
async def unit_gemm_products(dut: Dut) -> None:
    """Products with D, which take a stage more, in front of others, under random stalls."""
    bench = EngineBench.of(dut)
    others = [replace(PLAIN, requant=True, out=GemmOut.INT8), PLAIN]
    product = replace(others[0], q=GemmQ.TENSOR, op=GemmOp.MUL)
    for _ in range(8):
        makers = []
        for turn in range(24):
            m, n, k = bench.unit.random.integers(1, np.array([4, EDGE + 1, EDGE + 1])).tolist()
            shape, mode = GemmSize(m, n, k), product if turn % 2 == 0 else others[turn // 2 % 2]
            makers.append(partial(build, shape=shape, mode=mode, edge=EDGE))
        await bench.run_program(makers)


@cocotb.test
async def unit_gemm_tables(dut: Dut) -> None:
    """Short instructions in a row, each with its own activation table: rows look up in theirs."""
    bench = EngineBench.of(dut)
    table = replace(PLAIN, requant=True, out=GemmOut.INT8, table=True)
    makers = []
    for turn in range(72):
        mode = replace(
            table, a_type=GemmA(turn % 2), b_form=GemmB(turn // 4 % 3), q=GemmQ(turn % 4)
        )
        m, n, k = bench.unit.random.integers(1, np.array([5, 2 * EDGE + 1, 2 * EDGE + 1])).tolist()
        makers.append(partial(build, shape=GemmSize(m, n, k), mode=mode, edge=EDGE))
    await bench.run_program(makers)


def peaks(random: np.random.Generator, space: Space) -> Case:
    """Return a GEMM of one short row with argmax; many of its values are equal."""
    n, k = int(random.integers(1, 3 * EDGE)), int(random.integers(1, EDGE))
    return build(random, space, GemmSize(1, n, k), argmax_mode(random, EDGE), EDGE)


def token(_: np.random.Generator, __: Space) -> Case:
    """Return the instruction that stores the number of the best column and starts anew."""
    return Case(instruction(Opcode.ARGMAX, imm={"base": 1}))


@cocotb.test
async def unit_gemm_argmax(dut: Dut) -> None:
    """The running argmax over one or two instructions, with equal values, and its clearing."""
    bench = EngineBench.of(dut)
    for _ in range(16):
        await bench.run_program([peaks, token, peaks, peaks, token] * 3)
