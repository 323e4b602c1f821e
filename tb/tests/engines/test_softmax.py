# SPDX-License-Identifier: Apache-2.0
"""SOFTMAX alone: numerators and probabilities, masks, positions, windows, stacked heads."""

from __future__ import annotations

import cocotb
import numpy as np
import numpy.typing as npt

from npu.asm import assemble
from spec.isa.operands import up
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, Bench
from tb.stimulus import run_cases
from tb.stimulus.simple_cases import softmax

TAGS = ("smx", "random")


@cocotb.test
async def test_softmax_random(dut: Dut) -> None:
    """Random shapes, forms, masks and score distributions."""
    bench = await Bench.start(dut)
    await run_cases(bench, [softmax], count=40, programs=4)


@cocotb.test
async def test_softmax_distances(dut: Dut) -> None:
    """Every distance from the maximum that has a numerator of its own, in one row per form."""
    bench = await Bench.start(dut)
    row = (20000 - np.arange(1300)).astype("<i2")
    bench.memory.stage(INPUT, row)
    text = "DMA_LOAD dst=0x0 M=1 N=2600 b=0\nBARRIER ld\n"
    for index, out in enumerate(("prob", "u8", "u16")):
        sums = "" if out == "prob" else f" src1={0xF000 + 16 * index:#x}"
        text += f"SOFTMAX dst={0x4000 * (index + 1):#x} src0=0x0{sums} M=1 N=1300 out={out}\n"
    await bench.execute(assemble(text + "END").instructions)


VALUES = np.array([127, -128, 100, 90])
"""What rows of probabilities are multiplied with, one value for a whole column."""
REPEATS = 8
"""How often a row's numerators stand behind one another, to make little of the last rounding."""
ROW_SUM_ERROR = 0.005
"""The reciprocal's table is good for 0.39 %, the rounding of the product for 0.07 %."""
SCORES, COLUMNS, PROBABILITIES = 0x0, 0x4000, 0x2C000
FORMS = (("u8", 0x3_2000, 0x3_F000), ("u16", 0x1_4000, 0x3_F800))
"""Form of the numerators, where they lie, and where their sums and, 256 bytes on, products lie."""


def _flat_rows(random: np.random.Generator, count: int) -> npt.NDArray[np.int16]:
    """Return (3, count) scores: all equal, nearly equal, and equal behind one that is higher."""
    equal = np.full(count, int(random.integers(-30000, 30000)))
    near = random.integers(-20000, 20000) + random.integers(-32, 33, count)
    peak = np.full(count, int(random.integers(-30000, 30000)))
    peak[int(random.integers(count))] += 256
    return np.stack([equal, near, peak]).astype("<i2")


def _flat_program(rows: int, count: int) -> str:
    """Return the program: probabilities, numerators REPEATS times, and these times VALUES."""
    padded = up(count)
    text = f"""
        DMA_LOAD dst={SCORES} M={rows} N={2 * count} b=0
        DMA_LOAD dst={COLUMNS} M={VALUES.size} N={REPEATS * padded} b=0 off=0x10000
        BARRIER ld
        SOFTMAX dst={PROBABILITIES} src0={SCORES} M={rows} N={count} out=prob
    """
    for form, numerators, sums in FORMS:
        row = padded * (2 if form == "u16" else 1)
        whole = REPEATS * row
        text += f"""
            .for i 0 {REPEATS - 1}
            SOFTMAX dst={numerators}+i*{row} src0={SCORES} src1={sums} \
                M={rows} N={count} out={form} cp={whole}
            .endr
            BARRIER smx
            GEMM dst={sums + 256} src0={numerators} src1={COLUMNS} \
                M={rows} N={VALUES.size} K={REPEATS * padded} \
                T A={form} q=row out=i16 ap={whole} sums={sums}
        """.replace("\\\n", "")
    return text + "END"


def _matrix(
    sram: npt.NDArray[np.uint8], at: int, rows: int, pitch: int, columns: int, kind: str
) -> npt.NDArray[np.float64]:
    """Return the (rows, columns) of type `kind` at an address, `pitch` bytes from row to row."""
    lines = sram[at : at + rows * pitch].reshape(rows, pitch).view(kind)
    return np.asarray(lines[:, :columns], np.float64)


@cocotb.test
async def test_softmax_long_flat(dut: Dut) -> None:
    """Flat rows of 1,000 to 2,048 scores against float64, and the row sums as a GEMM sees them."""
    bench = await Bench.start(dut)
    for count in (1000, 1024, 1365, 1536, 1800, 2048):
        scores = _flat_rows(bench.random, count)
        rows, padded = len(scores), up(count)
        bench.memory.stage(INPUT, np.pad(scores, ((0, 0), (0, -count % 8))))
        columns = np.repeat(VALUES[:, None], REPEATS * padded, axis=1).astype(np.int8)
        bench.memory.stage(INPUT + 0x1_0000, columns)
        await bench.execute(assemble(_flat_program(rows, count)).instructions)
        sram = await bench.sync()
        powers = np.exp2((scores - scores.max(axis=1, keepdims=True).astype(np.float64)) / 64)
        for form, numerators, sums in FORMS:
            kind, one = ("<u2", 65535.0) if form == "u16" else ("u1", 65535 / 256)
            pitch = REPEATS * padded * np.dtype(kind).itemsize
            error = np.abs(_matrix(sram, numerators, rows, pitch, count, kind) - one * powers).max()
            assert error <= 1, f"{form}: a numerator is wrong by {error}"
            ratio = _matrix(sram, sums, rows, 16, 1, "<u4")[:, 0] / (one * powers.sum(axis=1))
            assert (np.abs(ratio - 1) < ROW_SUM_ERROR).all(), f"{form}: sums are {ratio} of true"
            products = _matrix(sram, sums + 256, rows, 16, VALUES.size, "<i2")
            row_sums = products / (REPEATS * VALUES)
            assert (np.abs(row_sums - 1) < ROW_SUM_ERROR).all(), f"{form}: row sums {row_sums}"
        exact = 256 * powers / powers.sum(axis=1, keepdims=True)
        error = np.abs(_matrix(sram, PROBABILITIES, rows, padded, count, "u1") - exact)
        assert (error <= 0.5 + ROW_SUM_ERROR * exact).all(), f"probability off by {error.max()}"


@cocotb.test
async def test_softmax_causal(dut: Dut) -> None:
    """The mask at every position of a prompt, with stacked heads and rows past the last column."""
    bench = await Bench.start(dut)
    for pos in (0, 1, 15, 16, 17, 40):
        text = f"""
            DMA_LOAD dst=0x0 M=48 N=66 b=0
            BARRIER ld
            SOFTMAX dst=0x4000 src0=0x0 src1=0x8000 M=48 N=33 K=16 causal out=u16 ap=80
            SOFTMAX dst=0x10000 src0=0x0 M=48 N=33 causal out=prob ap=80
            SET POS v={pos}
            SOFTMAX dst=0xA000 src0=0x0 src1=0xC000 M=48 N=33 K=12 causal out=u8 ap=80
            END
        """
        await bench.execute(assemble(text).instructions, pos=pos)


WINDOWED = """
    SET WINDOW v={window}
    SET POS v={pos}
    SOFTMAX dst=0x4000 src0=0x0 src1=0x8000 M=48 N=70 K=16 causal out=u16
    SOFTMAX dst=0x10000 src0=0x0 M=48 N=70 causal out=prob
    SOFTMAX dst=0xA000 src0=0x0 src1=0xC000 M=48 N=65 K=12 causal out=u8
    SOFTMAX dst=0x14000 src0=0x2000 src1=0x18000 M=40 N=70 causal A=i8 out=u16
    SOFTMAX dst=0x1A000 src0=0x2000 src1=0x1C000 M=40 N=75 K=8 causal A=i8 out=u8
    SOFTMAX dst=0x1E000 src0=0x2000 src1=0x22000 M=9 N=70 A=i8 out=u8
"""
"""int16 scores of 144 bytes a row from 0x0 on, int8 ones of 80 bytes from 0x2000 on."""


@cocotb.test
async def test_softmax_window(dut: Dut) -> None:
    """Windows of every length beside the edges of words and tiles; rows that see nothing."""
    bench = await Bench.start(dut)
    load = "DMA_LOAD dst=0x0 M=1 N=0x2D00 b=0\nBARRIER ld\n"
    for window in (1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100):
        places = (0, window - 1, window, 16 + window, 41, 79 + window)
        text = "".join(WINDOWED.format(window=window, pos=pos) for pos in places)
        await bench.execute(assemble(load + text + "END").instructions)


@cocotb.test
async def test_softmax_far_positions(dut: Dut) -> None:
    """Positions and windows at the end of 32 bits: nothing wraps around."""
    bench = await Bench.start(dut)
    load = "DMA_LOAD dst=0x0 M=1 N=0x2D00 b=0\nBARRIER ld\n"
    last = (1 << 32) - 1
    text = "".join(
        WINDOWED.format(window=window, pos=last - before)
        for window, before in ((0, 0), (0, 20), (last, 0), (last, 7), (last, 40), (last - 30, 3))
    )
    await bench.execute(assemble(load + text + "END").instructions)
