# SPDX-License-Identifier: Apache-2.0
"""GEMM with narrow weights on the instruction-level model, against weights expanded by hand."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

from golden.formats import GROUPED
from golden.machine import ChipConfig
from spec.isa import Flag, Instruction, WeightFormat, WeightGroup
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_support import Rng, integers, seeded
from tests.python.weights.packed_weights import Packer, expected, forms, random_cells

A, C = 0x1000, 0x10000
"""Byte addresses of the first operand and the first result; others follow behind them."""
GROUPS = {32: WeightGroup.G32, 64: WeightGroup.G64, 128: WeightGroup.G128, 16: WeightGroup.G16}
RECORD = 8
"""Bytes of a channel's record."""


def _word(
    fmt: WeightFormat,
    group: int,
    dst: int,
    a: int,
    shape: tuple[int, int, int],
    mode: int,
    flags: int,
) -> Instruction:
    """Return a GEMM with B from the stream; the group counts for formats that name theirs."""
    code = GROUPS[group] if fmt in GROUPED else 0
    flags |= (code >> 1) << Flag.GROUP_HIGH | (code & 1) << Flag.GROUP_LOW
    page = gp.B_STREAM_MX if fmt >= WeightFormat.MXINT8 else gp.B_STREAM
    return gp.gemm(dst >> 4, a >> 4, 0, *shape, mode | page | (fmt & 7) << 4, flags)


def _share(
    rng: Rng, fmt: WeightFormat, group: int, k: int, n: int, edge: int
) -> tuple[bytes, npt.NDArray[np.int64]]:
    """Return a packed random matrix and its weights (k, n)."""
    cells = random_cells(rng, fmt, k, n, group)
    weights = np.array(expected(fmt, cells, k, n, group), np.int64)
    return Packer(fmt, cells, edge, group).share(k, n), weights


@pytest.mark.parametrize("edge", [16, 32])
def test_sums_of_every_format(edge: int) -> None:
    """All formats and groups back to back in one program, each with the sums of its weights."""
    rng = seeded(730)
    m, n, k = 3, edge + 5, 2 * edge + 3
    program, stream, results = [], b"", []
    a = integers(rng, np.int8, (m, k))
    for index, (fmt, group) in enumerate(forms(edge)):
        share, weights = _share(rng, fmt, group, k, n, edge)
        dst = C + 0x1000 * index
        program.append(_word(fmt, group, dst, A, (m, n, k), gp.OUT_INT32, 0))
        stream += share
        results.append((dst, a.astype(np.int64) @ weights))
    bench = gp.ProgramBench([*program, gp.END], stream, ChipConfig(array_dim=edge))
    bench.memory = np.zeros(1 << 20, np.uint8)
    bench.put(A, a)
    outcome = bench.run()
    assert outcome.error is None
    assert outcome.stream_offset == len(stream)
    for dst, sums in results:
        assert np.array_equal(bench.get(dst, (m, n), np.int32), sums)


@pytest.mark.parametrize("fmt", [WeightFormat.NF4G, WeightFormat.INT4S, WeightFormat.MXFP6E2])
def test_records_stand_before_each_column_tile(fmt: WeightFormat) -> None:
    """Channel records between the column tiles: bias, then 1 / 2^s of the sum, rounded."""
    rng = seeded(731)
    m, n, k, shift = 2, 40, 70, 9
    share, weights = _share(rng, fmt, 32, k, n, 16)
    bias = rng.integers(-5000, 5000, n)
    records = np.zeros((48, RECORD), np.uint8)
    records[:n, :4] = bias.astype("<i4").reshape(-1, 1).view(np.uint8)
    records[:n, 4], records[:n, 6] = 1, shift
    piece = len(share) // 3
    stream = b"".join(
        records[16 * j : 16 * j + 16].tobytes() + share[piece * j : piece * (j + 1)]
        for j in range(3)
    )
    word = _word(fmt, 32, C, A, (m, n, k), gp.Q_CHANNEL | gp.OUT_INT16, gp.BIAS | gp.REQUANT)
    bench = gp.ProgramBench([word, gp.END], stream)
    a = integers(rng, np.int8, (m, k))
    bench.put(A, a)
    assert bench.run().error is None
    exact = (a.astype(np.int64) @ weights + bias + (1 << (shift - 1))) >> shift
    assert np.array_equal(bench.get(C, (m, n), np.int16), np.clip(exact, -32768, 32767))
