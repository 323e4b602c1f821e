# SPDX-License-Identifier: Apache-2.0
"""Softmax: numerators over every distance, the reciprocal over every sum, rows against float64."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from golden.softmax import (
    NUMERATOR_U8_MAX_ERROR,
    NUMERATOR_U16_MAX_ERROR,
    PROBABILITY_MAX_ERROR,
    RECIPROCAL_MAX_RELATIVE_ERROR,
    Visibility,
    numerator,
    numerators8,
    numerators16,
    probabilities,
    probability_bound,
    reciprocal,
    visible,
)
from tests.python.golden.golden_support import Rng, integers, seeded


def float_softmax(
    scores: npt.NDArray[np.int16], mask: npt.NDArray[np.bool_]
) -> npt.NDArray[np.float64]:
    """Return the base-2 softmax in float64; scores in units of 1/64."""
    s = np.where(mask, scores.astype(np.float64) / 64, -np.inf)
    e = np.exp2(s - s.max(axis=1, keepdims=True))
    result: npt.NDArray[np.float64] = e / e.sum(axis=1, keepdims=True)
    return result


def random_scores(rng: Rng, rows: int, columns: int, spread: float) -> npt.NDArray[np.int16]:
    """Return int16 scores of a given standard deviation."""
    s = np.rint(rng.normal(0, spread, (rows, columns)))
    return np.clip(s, -32768, 32767).astype(np.int16)


@pytest.mark.parametrize(
    ("bits", "one", "bound"),
    [(16, 65535.0, NUMERATOR_U16_MAX_ERROR), (8, 65535 / 256, NUMERATOR_U8_MAX_ERROR)],
)
def test_numerator_over_every_distance(bits: int, one: float, bound: float) -> None:
    """Every int16 distance against float64; the bound is tight."""
    d = np.arange(1 << 16)
    e = numerator(d, bits)
    worst = np.abs(e - one * np.exp2(-d / 64)).max()
    assert 0.99 * bound < worst <= bound
    assert np.all(np.diff(e) <= 0)
    assert e.max() == (1 << bits) - 1
    assert e[17 * 64 :].max() == 0


def test_numerator_by_its_formula() -> None:
    """The definition, in Python integers, on every distance whose numerator can be non-zero."""
    for d in range(20 * 64):
        t = round(65535 * 2 ** (-(d & 63) / 64))
        wide, narrow = d >> 6, (d >> 6) + 8
        half = (1 << wide) >> 1
        expected = (t + half) >> wide if wide <= 17 else 0
        assert numerator(np.array([d]))[0] == expected
        expected = min(255, (t + ((1 << narrow) >> 1)) >> narrow) if narrow <= 17 else 0
        assert numerator(np.array([d]), 8)[0] == expected


def test_reciprocal_over_every_sum() -> None:
    """Every sum below 2^20, and around larger powers of two."""
    edges = [(1 << b) + d for b in range(20, 32) for d in (-1, 0, 1, 4567)] + [(1 << 32) - 1]
    s = np.concatenate([np.arange(1, 1 << 20), np.array(edges)])
    recip = reciprocal(s)
    worst = np.abs(s * recip.value / np.exp2(recip.shift) - 1).max()
    assert 0.999 * RECIPROCAL_MAX_RELATIVE_ERROR < worst <= RECIPROCAL_MAX_RELATIVE_ERROR
    assert recip.shift.tolist() == [15 + int(v).bit_length() for v in s]
    assert reciprocal(np.array([0])).value.tolist() == [0]


@pytest.mark.parametrize("s", [-1, 1 << 32])
def test_reciprocal_refuses(s: int) -> None:
    """Sums are 32-bit numbers."""
    with pytest.raises(ValueError, match=r"allowed 0\.\.2"):
        reciprocal(np.array([s]))


def test_equal_scores_of_a_long_row_sum_to_one() -> None:
    """1,024 equal scores: sum(e) * R / 2^(16 + msb S) within 0.5 % of 1."""
    numer, sums = numerators16(np.full((1, 1024), -77, np.int16))
    recip = reciprocal(sums)
    total = int(numer.sum()) * int(recip.value[0]) / 2.0 ** int(recip.shift[0])
    assert abs(total - 1) < 0.005


def test_visible_rows_of_heads() -> None:
    """The causal rule counts rows inside a head from POS."""
    mask = visible(4, 5, causal=True, pos=1, rows_per_head=2)
    assert mask.sum(axis=1).tolist() == [2, 3, 2, 3]
    assert visible(3, 5, causal=True, pos=1).sum(axis=1).tolist() == [2, 3, 4]
    assert visible(3, 5, causal=True, pos=(1 << 32) - 1).all()
    assert visible(2, 5, causal=False).all()


@pytest.mark.parametrize("window", [0, 1, 5, 16, 1000, (1 << 32) - 1])
@pytest.mark.parametrize(("pos", "start"), [(0, 0), (20, 16), (37, 16), ((1 << 32) - 1, 0)])
def test_visible_in_a_window(pos: int, start: int, window: int) -> None:
    """Row i sees at most `window` keys up to its own, counted from the key of column 0."""
    mask = visible(
        6, 40, causal=True, pos=pos, rows_per_head=3, start=start, window=window
    ).tolist()
    for row in range(6):
        own = pos + row % 3
        oldest = own - window + 1 if window else 0
        assert mask[row] == [oldest <= start + j <= own for j in range(40)]
    assert visible(2, 5, causal=False, pos=9, window=1).all()


def test_windowed_rows_are_rows_of_the_visible_columns() -> None:
    """Hidden scores, large ones too, change nothing; a row that sees nothing is zero."""
    rng = seeded(33)
    s = random_scores(rng, 6, 48, 300)
    rule = Visibility(causal=True, pos=21, rows_per_head=3, start=16, window=7)
    for function in (numerators16, numerators8):
        numer, sums = function(s, **rule)
        for row in range(6):
            last = 21 + row % 3 - 16
            seen = slice(max(0, last - 6), last + 1)
            alone, total = function(s[row : row + 1, seen])
            assert numer[row, seen].tolist() == alone[0].tolist()
            assert sums[row] == total[0] == numer[row].sum()
    p = probabilities(s, **rule)
    assert [int(np.count_nonzero(row)) <= 7 for row in p] == [True] * 6
    assert not numerators16(s, causal=True, pos=70, start=16, window=7)[0].any()
    assert not probabilities(s, causal=True, pos=70, start=16, window=7).any()


@pytest.mark.parametrize("seed", range(3))
def test_rows_against_float64(seed: int) -> None:
    """Random and corner rows against float64, within the stated bounds."""
    rng = seeded(100 + seed)
    for columns in (1, 2, 3, 15, 16, 17, 63, 128):
        for spread in (0, 20, 64, 300, 2500, 12000):
            s = random_scores(rng, 9, columns, spread)
            pos = int(rng.integers(0, columns))
            mask = visible(9, columns, causal=True, pos=pos)
            top = np.where(mask, s.astype(np.int64), -(1 << 20)).max(axis=1, keepdims=True)
            exact = np.where(mask, np.exp2((s - top) / 64), 0)
            wide, sums = numerators16(s, causal=True, pos=pos)
            assert np.abs(wide - 65535 * exact).max() <= NUMERATOR_U16_MAX_ERROR
            assert np.array_equal(sums, wide.sum(axis=1, dtype=np.int64))
            narrow, sums = numerators8(s, causal=True, pos=pos)
            assert np.abs(narrow - 65535 / 256 * exact).max() <= NUMERATOR_U8_MAX_ERROR
            assert np.array_equal(sums, narrow.sum(axis=1, dtype=np.int64))
            assert not wide[~mask].any()
            assert not narrow[~mask].any()


def test_probabilities_against_float64() -> None:
    """Within the bound of the row length, and the bound is not idle."""
    rng = seeded(31)
    worst = 0.0
    for columns in (1, 2, 3, 5, 16, 17, 64, 128):
        for spread in (0, 10, 64, 300, 2000, 20000):
            s = random_scores(rng, 200, columns, spread)
            mask = np.ones(s.shape, np.bool_)
            error = np.abs(probabilities(s) - 256 * float_softmax(s, mask)).max()
            assert error <= probability_bound(columns)
            worst = max(worst, error)
    assert probability_bound(128) <= PROBABILITY_MAX_ERROR < probability_bound(128) + 0.01
    assert 1.0 < worst <= PROBABILITY_MAX_ERROR


def test_full_range_and_int8_scores() -> None:
    """Corner scores, and int8 scores as the same numbers."""
    rng = seeded(32)
    s = integers(rng, np.int16, (40, 33))
    numer, _ = numerators16(s)
    assert np.all(numer.max(axis=1) == 65535)
    narrow = integers(rng, np.int8, (40, 33))
    assert np.array_equal(numerators16(narrow)[0], numerators16(narrow.astype(np.int16))[0])
    exact = np.exp2((narrow - narrow.max(axis=1, keepdims=True).astype(np.int64)) / 64)
    assert np.abs(numerators16(narrow)[0] - 65535 * exact).max() <= NUMERATOR_U16_MAX_ERROR


def test_a_row_by_hand() -> None:
    """Scores 0, -64, -65, hidden: 65535, rs(65535, 1), rs(T[1], 1), 0."""
    t1 = round(65535 * 2 ** (-1 / 64))
    numer, sums = numerators16(np.array([[0, -64, -65, 500]], np.int16), causal=True, pos=2)
    assert numer.tolist() == [[65535, 32768, (t1 + 1) // 2, 0]]
    assert sums.tolist() == [65535 + 32768 + (t1 + 1) // 2]
    b = int(sums[0]).bit_length() - 1
    r = round(65536 / (1 + (((int(sums[0]) << 7) >> b & 127) + 0.5) / 128))
    expected = [min(255, (e * r + (1 << (7 + b))) >> (8 + b)) for e in numer[0].tolist()]
    p = probabilities(np.array([[0, -64, -65, 500]], np.int16), causal=True, pos=2)
    assert p.tolist() == [expected]
    assert math.isclose(sum(expected), 256, abs_tol=3)


def test_shapes_are_checked() -> None:
    """Empty rows, other widths and distances above the maximum are refused."""
    with pytest.raises(ValueError, match="allowed"):
        numerators16(np.zeros((3, 0), np.int16))
    with pytest.raises(ValueError, match="bits 12"):
        numerator(np.array([0]), 12)
    with pytest.raises(ValueError, match="given distance -1, allowed 0"):
        numerator(np.array([3, -1]))
