# SPDX-License-Identifier: Apache-2.0
"""Depthwise GEMM on the instruction-level model, against plain loops over integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden.machine import ChipConfig, RunResult
from spec.isa import GemmA, Instruction, Opcode, WeightFormat
from spec.isa.operands import up
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_support import integers, seeded
from tests.python.weights.packed_weights import Packer, expected, random_cells

A, C, D = 0x40, 0x18000, 0x30000
"""Byte addresses of the operands."""
DTYPES: dict[GemmA, type[np.int8 | np.uint8]] = {gp.A_INT8: np.int8, gp.A_UINT8: np.uint8}
PLAIN = gp.OUT_INT32 | gp.B_STREAM | gp.DEPTHWISE
CHIPS = [16, 32]


def sums(
    sram: npt.NDArray[np.uint8],
    weights: npt.NDArray[Any],
    shape: tuple[int, int],
    pitches: tuple[int, int],
    edge: int,
    dtype: type[np.int8 | np.uint8],
) -> npt.NDArray[np.int64]:
    """Return the sums (M, N): each byte of A addressed by itself; pitches of rows and lines."""
    a, b = sram.view(dtype).tolist(), weights.tolist()
    result = np.zeros(shape, np.int64)
    for m in range(shape[0]):
        for n in range(shape[1]):
            for t in range(len(b) // edge):
                for j in range(4):
                    pixel = a[A + t * pitches[1] + (m + j) * pitches[0] + n]
                    result[m, n] += pixel * b[edge * t + 1 + j][n]
    return result


def share(weights: npt.NDArray[np.int8], edge: int) -> bytes:
    """Return the weight tiles of every column tile."""
    return b"".join(b"".join(column) for column in gp.weight_tiles(weights, edge))


def bench(edge: int, words: list[Instruction], stream: bytes, pos: int = 0) -> gp.ProgramBench:
    """Return a program on an SRAM full of random bytes."""
    made = gp.ProgramBench([*words, gp.END], stream, ChipConfig(array_dim=edge), pos=pos)
    made.sram[:] = seeded(740).integers(0, 256, made.sram.size)
    return made


def finished(made: gp.ProgramBench) -> RunResult:
    """Run a program that has neither errors nor races."""
    result = made.run()
    assert result.error is None
    assert result.races == []
    return result


@pytest.mark.parametrize("edge", CHIPS)
@pytest.mark.parametrize("a_type", DTYPES)
@pytest.mark.parametrize("lines", [1, 2, 3, 4])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 31, 32, 33, 70])
def test_sums_are_exact(edge: int, a_type: GemmA, lines: int, n: int) -> None:
    """Full range, every row of B drawn; pitches natural, of lines that overlap, and wide."""
    rng = seeded(741)
    weights = integers(rng, np.int8, (lines * edge, n))
    row = up(n, 16)
    for m in (1, 2, 5):
        for ap, bp in ((0, 0), (0, 2), (row // 16 + 1, 0), (1, 3), (row // 16 + 2, 60)):
            word = gp.gemm(C >> 4, A >> 4, 0, m, n, lines * edge, PLAIN | a_type)
            words = [gp.pfx(ap=ap, bp=bp), word] if ap or bp else [word]
            made = bench(edge, words, share(weights, edge))
            pitches = ap * 16 or row, bp * 16 or row
            exact = sums(made.sram, weights, (m, n), pitches, edge, DTYPES[a_type])
            result = finished(made)
            assert np.array_equal(made.get(C, (m, n), np.int32), exact)
            assert result.macs == 4 * lines * m * n


@pytest.mark.parametrize("a_type", DTYPES)
def test_extremes(a_type: GemmA) -> None:
    """The largest sums: all of A and B at one end of their range."""
    for pixel, weight in ((-128, -128), (-128, 127), (127, -128), (-1, -128)):
        weights = np.full((64, 16), weight, np.int8)
        made = bench(
            16, [gp.gemm(C >> 4, A >> 4, 0, 3, 16, 64, PLAIN | a_type)], share(weights, 16)
        )
        made.sram[A : A + 0x1000] = pixel & 0xFF
        exact = sums(made.sram, weights, (3, 16), (16, 16), 16, DTYPES[a_type])
        finished(made)
        assert np.array_equal(made.get(C, (3, 16), np.int32), exact)


@pytest.mark.parametrize("edge", CHIPS)
def test_rows_without_effect(edge: int) -> None:
    """Only rows 1 to 4 of each tile of B count."""
    rng = seeded(742)
    weights = integers(rng, np.int8, (2 * edge, 20))
    taps = np.zeros_like(weights)
    for t in range(2):
        taps[t * edge + 1 : t * edge + 5] = weights[t * edge + 1 : t * edge + 5]
    results = []
    for b in (weights, taps):
        made = bench(edge, [gp.gemm(C >> 4, A >> 4, 0, 4, 20, 2 * edge, PLAIN)], share(b, edge))
        finished(made)
        results.append(made.get(C, (4, 20), np.int32))
    assert np.array_equal(results[0], results[1])
    assert results[0].any()


@pytest.mark.parametrize(
    ("fmt", "group"),
    [
        (WeightFormat.INT4, 32),
        (WeightFormat.INT4G, 32),
        (WeightFormat.INT4G, 64),
        (WeightFormat.MXFP4, 32),
    ],
)
def test_narrow_weights(fmt: WeightFormat, group: int) -> None:
    """Both pages of formats and a group in the bit of TRANSPOSE_B: expanded, they are the taps."""
    rng = seeded(743)
    cells = random_cells(rng, fmt, 48, 20, group)
    weights = np.array(expected(fmt, cells, 48, 20, group), np.int64)
    page = gp.B_STREAM_MX if fmt >= WeightFormat.MXINT8 else gp.B_STREAM
    mode = gp.OUT_INT32 | gp.DEPTHWISE | page | (fmt & 7) << 4
    stream = Packer(fmt, cells, 16, group).share(48, 20)
    made = bench(16, [gp.gemm(C >> 4, A >> 4, 0, 6, 20, 48, mode, group == 64)], stream)
    exact = sums(made.sram, weights, (6, 20), (32, 32), 16, np.int8)
    finished(made)
    assert np.array_equal(made.get(C, (6, 20), np.int32), exact)


def test_partial_sums_wrap() -> None:
    """Sums go on from D, modulo 2^32."""
    rng = seeded(744)
    weights = integers(rng, np.int8, (16, 10))
    before = integers(rng, np.int32, (5, 10))
    word = gp.gemm(C >> 4, A >> 4, D >> 4, 5, 10, 16, PLAIN, gp.ACCUMULATE)
    made = bench(16, [word], share(weights, 16))
    made.put(D, before)
    exact = sums(made.sram, weights, (5, 10), (16, 16), 16, np.int8) + before
    finished(made)
    assert np.array_equal(made.get(C, (5, 10), np.int32), exact.astype(np.uint32).view(np.int32))


def test_the_chain_behind_the_sums() -> None:
    """Bias and factor of each channel, ReLU, then D is added."""
    rng = seeded(745)
    m, n, shift = 7, 35, 9
    weights = integers(rng, np.int8, (48, n))
    bias = rng.integers(-5000, 5000, n)
    records = np.zeros((48, 8), np.uint8)
    records[:n, :4] = bias.astype("<i4").reshape(-1, 1).view(np.uint8)
    records[:n, 4], records[:n, 6] = 1, shift
    tiles = gp.weight_tiles(weights)
    stream = b"".join(
        records[16 * j : 16 * j + 16].tobytes() + b"".join(tiles[j]) for j in range(3)
    )
    mode = gp.B_STREAM | gp.DEPTHWISE | gp.Q_CHANNEL | gp.OP_ADD
    word = gp.gemm(C >> 4, A >> 4, D >> 4, m, n, 48, mode, gp.REQUANT | gp.BIAS | gp.RELU)
    made = bench(16, [word], stream)
    d = integers(rng, np.int8, (m, n))
    made.put(D, d)
    exact = sums(made.sram, weights, (m, n), (48, 48), 16, np.int8) + bias
    exact = np.clip((exact + (1 << (shift - 1))) >> shift, 0, 127) + d
    finished(made)
    assert np.array_equal(made.get(C, (m, n), np.int8), np.clip(exact, -128, 127))


def test_argmax_of_one_row() -> None:
    """The best column of a row without output, stored by ARGMAX."""
    rng = seeded(746)
    weights = integers(rng, np.int8, (32, 50))
    mode = gp.B_STREAM | gp.DEPTHWISE | gp.Q_PREFIX | gp.OUT_NONE | gp.ARGMAX
    word = gp.gemm(0, A >> 4, 0, 1, 50, 32, mode, gp.REQUANT)
    token = Instruction(Opcode.ARGMAX)
    made = bench(16, [gp.pfx(imm=1, sh=2), word, token], share(weights, 16))
    exact = sums(made.sram, weights, (1, 50), (64, 64), 16, np.int8)
    finished(made)
    found = int(made.memory[made.bases[0] :][:4].view("<u4")[0])
    assert found == int(np.argmax(np.clip((exact + 2) >> 2, -32768, 32767)))


@pytest.mark.parametrize("edge", CHIPS)
@pytest.mark.parametrize(("pos", "m"), [(0, 1), (8, 9), (31, 32), (500, 32)])
def test_dynamic_rows(edge: int, pos: int, m: int) -> None:
    """As many rows as there are keys, at most the cap; nothing else is written."""
    weights = integers(seeded(747), np.int8, (2 * edge, 18))
    word = gp.gemm(C >> 4, A >> 4, 0, gp.length(32), 18, 2 * edge, PLAIN)
    made = bench(edge, [word], share(weights, edge), pos)
    before = made.sram.copy()
    exact = sums(before, weights, (m, 18), (32, 32), edge, np.int8)
    assert finished(made).macs == 4 * 2 * m * 18
    assert np.array_equal(made.get(C, (m, 18), np.int32), exact)
    after = C + m * 80
    assert np.array_equal(made.sram[after:], before[after:])


def test_no_rows() -> None:
    """A dynamic M of zero takes the share and does nothing."""
    word = gp.gemm(C >> 4, A >> 4, 0, gp.length(32, v=1), 18, 16, PLAIN)
    made = bench(16, [word], bytes(512))
    before = made.sram.copy()
    result = finished(made)
    assert (result.macs, result.stream_offset) == (0, 512)
    assert np.array_equal(made.sram, before)


@pytest.mark.parametrize(
    ("word", "kind"),
    [(0x100, "RAW"), (0x105, "RAW"), (0x106, ""), (0x113, ""), (0x114, "RAW"), (0x119, "RAW")],
)
def test_races_in_every_line(word: int, kind: str) -> None:
    """A load into a line, its three further rows included, races; between the lines it does not."""
    load = Instruction(Opcode.DMA_LOAD, 0, word, m=1, n=16)
    gemm = gp.gemm(0x800, 0x100, 0, 3, 16, 32, PLAIN)
    made = gp.ProgramBench([load, gp.pfx(bp=20), gemm, gp.END], bytes(512))
    assert [race.kind for race in made.run().races] == ([kind] if kind else [])


@pytest.mark.parametrize(
    ("dst", "meets"), [(0x100, True), (0x106, False), (0x112, True), (0x111, False)]
)
def test_output_on_a_line(dst: int, meets: bool) -> None:
    """C on a line of A disturbs itself; C between the lines does not."""
    gemm = gp.gemm(dst, 0x100, 0, 3, 4, 32, PLAIN)
    made = gp.ProgramBench([gp.pfx(bp=20), gemm, gp.END], bytes(512))
    assert [race.kind for race in made.run().races] == (["SELF"] if meets else [])
