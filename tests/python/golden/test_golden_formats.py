# SPDX-License-Identifier: Apache-2.0
"""Narrow weight formats: every code against ml_dtypes, every rounding exactly, every layout."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from golden.formats import (
    BEAT,
    EXPAND_MAX_ERROR,
    GROUPED,
    MX,
    SPARSE,
    decode,
    element_bits,
    expand,
    factor,
    share_beats,
    side_beats,
)
from spec.isa import WeightFormat
from tests.python.golden.golden_support import seeded
from tests.python.graph.element_oracles import nearest, numbers, unit
from tests.python.weights.packed_weights import (
    Packer,
    expected,
    forms,
    period,
    random_cells,
    rows_of_side,
    weight,
)

F = WeightFormat
SHARES_OF_B = (*range(12), 255)
"""Side bytes of MX: up to one past where the smallest element has vanished, and the largest."""


@pytest.mark.parametrize("fmt", sorted(set(F) - MX - GROUPED))
def test_integers(fmt: WeightFormat) -> None:
    """Every code is its number, whatever the side byte."""
    found = numbers(fmt)
    assert len(found) == 1 << element_bits(fmt)
    for code, value in found.items():
        assert decode(fmt, code) == (int(value), 0)
        assert {weight(fmt, code, b) for b in (0, 1, 255)} == {value}


@pytest.mark.parametrize("fmt", sorted(MX))
def test_mx(fmt: WeightFormat) -> None:
    """Every finite code at every distance of its block from the column's largest."""
    scales = np.arange(255, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    largest = 200
    for code, value in numbers(fmt).items():
        v, t = decode(fmt, code)
        assert -128 <= v <= 127
        assert 0 <= t <= 8
        for b in SHARES_OF_B:
            block = scales[largest - b] if b <= largest else 2.0**-128  # b = 255: 255 and more
            scale = Fraction(float(block)) / Fraction(float(scales[largest]))
            assert weight(fmt, code, b) == nearest(value * scale / unit(fmt)), (code, b)


@pytest.mark.parametrize("fmt", sorted(GROUPED))
def test_groups(fmt: WeightFormat) -> None:
    """Every code with every side byte: the code's number times b, rounded once."""
    found = numbers(fmt)
    assert len(found) == 1 << element_bits(fmt)
    for code, value in found.items():
        for b in range(256):
            assert weight(fmt, code, b) == nearest(value * b / 256 / unit(fmt)), (code, b)


def test_nf4_is_the_published_table() -> None:
    """The values of QLoRA (Dettmers et al. 2023, appendix E), times 127."""
    published = (
        *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
        *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
        *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
        *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
    )
    table = [round(127 * x) for x in published]
    assert [decode(F.NF4G, code) for code in range(16)] == [(v, 0) for v in table]


def test_invariants() -> None:
    """Products fit 16 bits and weights int8, and the documented ranges are those of the formats."""
    ranges: dict[WeightFormat, tuple[int, int]] = {}
    for fmt in F:
        weights = set()
        for code in range(1 << element_bits(fmt)):
            v, t = decode(fmt, code)
            for b in range(256):
                f = factor(fmt, b)
                assert 0 <= f <= 256
                assert abs(v * f) <= 32768
                w = weight(fmt, code, b)
                weights.add(w)
                assert -128 <= w <= 127
                assert w != -128 or (v, f) == (-128, 256)
                assert abs(w - v * f / 2 ** (8 + t)) <= EXPAND_MAX_ERROR
                assert w == v or f != 256 or t
        ranges[fmt] = min(weights), max(weights)
    assert ranges[F.INT4G] == (-127, 112)
    assert ranges[F.NF4G] == (-127, 127)
    assert ranges[F.FP4G] == (-96, 96)
    most = {F.MXFP8E4: 120, F.MXFP8E5: 112, F.MXFP6E3: 112, F.MXFP6E2: 120, F.MXFP4: 96}
    assert {fmt: ranges[fmt] for fmt in most} == {fmt: (-w, w) for fmt, w in most.items()}


def test_codes_that_are_no_numbers() -> None:
    """E4M3's NaN and E5M2's infinities and NaN decode as the next numbers would."""
    for sign, code in ((1, 0x7F), (-1, 0xFF)):
        assert decode(F.MXFP8E4, code) == (sign * 120, 0)
    for m in range(4):
        for sign, code in ((1, 0x7C | m), (-1, 0xFC | m)):
            assert decode(F.MXFP8E5, code) == (sign * (64 + 16 * m), 0)


def test_refused_codes_and_side_bytes() -> None:
    """More bits than a code has, and what is no byte."""
    with pytest.raises(ValueError, match=r"given code 16 of NF4G, allowed 0\.\.15"):
        decode(F.NF4G, 16)
    with pytest.raises(ValueError, match="given side byte 256"):
        factor(F.MXFP4, 256)


@pytest.mark.parametrize("edge", [16, 32])
def test_layout(edge: int) -> None:
    """Shares packed byte by byte: K around tiles and side beats, N around tiles, every format."""
    rng = seeded(720)
    for fmt, group in forms(edge):
        served = edge * period(fmt, edge, group)
        inner = {1, edge - 1, edge + 1, served - 1, served, served + 1, 2 * served + 1}
        for k in sorted(inner):
            n = int(rng.choice([1, edge - 1, edge, edge + 1, 2 * edge + 1] if k < 300 else [3]))
            cells = random_cells(rng, fmt, k, n, group)
            packer = Packer(fmt, cells, edge, group)
            data = packer.share(k, n)
            beats = share_beats(fmt, k, edge, group)
            assert len(data) == -(-n // edge) * beats * BEAT, (fmt, group, k, n)
            assert side_beats(fmt, k, edge, group).tolist() == packer.is_side(k)
            weights = expand(fmt, data, k, n, edge, group)
            assert weights.dtype == np.int8
            assert weights.tolist() == expected(fmt, cells, k, n, group), (fmt, group, k, n)
            with pytest.raises(ValueError, match=f"allowed {len(data)}"):
                expand(fmt, data[:-BEAT], k, n, edge, group)


@pytest.mark.parametrize("edge", [16, 32])
def test_share_size(edge: int) -> None:
    """The number of beats by the formulas of the specification, for every K up to 2,100."""
    whole = edge * edge // 64

    def up(a: int, b: int) -> int:
        return -(-a // b)

    for fmt, group in forms(edge):
        for k in range(1, 2100):
            tiles = up(k, edge)
            if fmt in SPARSE:
                sparse = tiles * whole // (4 if fmt == F.INT4S else 2) + up(tiles * whole, 8)
                assert share_beats(fmt, k, edge, group) == sparse
                continue
            rows = rows_of_side(fmt, group)
            groups = up(up(tiles * edge, rows) * edge, 64) if rows else 0
            weights = tiles * whole * element_bits(fmt) // 8
            assert share_beats(fmt, k, edge, group) == weights + groups, (fmt, group, k)


def test_refused_groups_and_edges() -> None:
    """A group below the edge, one that does not exist, and an edge that no chip has."""
    with pytest.raises(ValueError, match="group: given 16 rows, allowed multiples of the edge 32"):
        share_beats(F.NF4G, 64, 32, 16)
    with pytest.raises(ValueError, match="given 48 rows, allowed 16, 32, 64 and 128"):
        share_beats(F.INT4G, 64, 16, 48)
    with pytest.raises(ValueError, match="tile edge: given 8, allowed 16 and 32"):
        share_beats(F.INT4, 64, 8, 0)
