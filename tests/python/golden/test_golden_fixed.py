# SPDX-License-Identifier: Apache-2.0
"""Rounding, saturation and leading-bit helpers against Python's exact integers and fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.fixed import (
    INT64_MAX,
    INT64_MIN,
    RS_MAX_ERROR,
    as_int64,
    limits,
    msb,
    multiply,
    rs,
    sat,
    sat8,
    sat16,
    wrap32,
)
from tests.python.golden.golden_support import integers, seeded

CORNERS = [INT64_MIN, INT64_MIN + 1, -(1 << 31), -3, -2, -1, 0, 1, 2, 3, (1 << 31) - 1]
CORNERS += [INT64_MAX - 1, INT64_MAX]


def test_rs_halves_round_up() -> None:
    """Ties of either sign go towards plus infinity; shift 0 changes nothing."""
    assert [rs(x, 1) for x in (-3, -2, -1, 0, 1, 2, 3)] == [-1, -1, 0, 0, 1, 1, 2]
    assert [rs(x, 2) for x in (-6, -2, 2, 6)] == [-1, 0, 1, 2]
    assert rs(-7, 0) == -7


def test_rs_is_exhaustively_round_half_up() -> None:
    """Every 12-bit x and shift 0..13, against floor(x / 2^s + 1/2) in exact fractions."""
    x = np.arange(-2048, 2048)
    for shift in range(14):
        expected = [math.floor(Fraction(int(v), 1 << shift) + Fraction(1, 2)) for v in x]
        expected = [int(v) for v in x] if shift == 0 else expected
        assert rs(x, shift).tolist() == expected
        error = np.abs(rs(x, shift) - x / 2.0**shift)
        assert error.max() <= RS_MAX_ERROR


def test_rs_arrays_agree_with_exact_ints_at_the_limits() -> None:
    """int64 arrays equal Python ints for corner values and shifts up to 69."""
    rng = seeded(11)
    x = np.concatenate([np.array(CORNERS, np.int64), integers(rng, np.int64, (500,))])
    for shift in range(70):
        assert rs(x, shift).tolist() == [rs(int(v), shift) for v in x]


def test_rs_takes_a_shift_per_element() -> None:
    """Shifts broadcast."""
    x = np.array([[5, 5, 5], [-5, -5, -5]])
    assert rs(x, np.array([0, 1, 2], np.uint8)).tolist() == [[5, 3, 1], [-5, -2, -1]]


@pytest.mark.parametrize("x", [3, np.array([3])])
def test_rs_refuses_negative_shifts(x: int) -> None:
    """Both forms name the shift."""
    with pytest.raises(ValueError, match="given shift -1, allowed 0"):
        rs(x, -1)


def test_sat() -> None:
    """Saturation equals a minimum of a maximum, and its dtypes are int8 and int16."""
    assert limits(8) == (-128, 127)
    assert limits(8, signed=False) == (0, 255)
    assert [sat(x, 8) for x in (-129, -128, 127, 128)] == [-128, -128, 127, 127]
    x = np.arange(-70000, 70000)
    assert np.array_equal(sat(x, 16), np.minimum(np.maximum(x, -32768), 32767))
    assert sat8(x).dtype == np.int8
    assert sat16(x).dtype == np.int16
    assert np.array_equal(sat8(x), np.clip(x, -128, 127))


def test_msb_is_floor_log2() -> None:
    """Every x below 2^20, and around every power of two."""
    x = np.arange(1, 1 << 20)
    assert np.array_equal(msb(x), [int(v).bit_length() - 1 for v in x])
    large = np.array([(1 << b) + d for b in range(2, 63) for d in (-1, 0, 1)])
    assert msb(large).tolist() == [msb(int(v)) for v in large]
    assert msb(1 << 80) == 80


@pytest.mark.parametrize("x", [0, -5, np.array([4, 0])])
def test_msb_refuses_zero(x: int) -> None:
    """There is no leading one in 0."""
    with pytest.raises(ValueError, match="allowed 1 and more"):
        msb(x)


def test_multiply_is_exact_or_raises() -> None:
    """Products at the very limits of int64 pass, one beyond raises."""
    limit = 1 << 62
    assert multiply(np.array([limit - 1, 3]), np.array([2, -4])).tolist() == [2 * limit - 2, -12]
    assert multiply(np.array([-limit, 1]), np.array([2, limit])).tolist() == [INT64_MIN, limit]
    assert multiply(np.array([49]), 188_232_082_384_791_343).tolist() == [INT64_MAX]
    with pytest.raises(OverflowError, match=str(1 << 63)):
        multiply(np.array([limit]), 2)
    with pytest.raises(OverflowError):
        multiply(np.array([INT64_MIN]), np.array([-1]))
    with pytest.raises(OverflowError, match=str(1 << 63)):
        multiply(np.array(limit), 2)


def test_as_int64_refuses_what_does_not_fit() -> None:
    """uint64 beyond int64 and floats are refused."""
    assert as_int64(np.array([INT64_MAX], np.uint64)).tolist() == [INT64_MAX]
    int64 = np.array([INT64_MIN])
    assert as_int64(int64) is int64
    with pytest.raises(OverflowError, match=str(1 << 63)):
        as_int64(np.array([1 << 63], np.uint64))
    with pytest.raises(TypeError, match="float64"):
        as_int64(np.array([1.0]))


def test_wrap32() -> None:
    """Modulo 2^32 as a signed number."""
    x = np.array([0, -1, (1 << 31) - 1, 1 << 31, (1 << 32) + 7, -(1 << 31) - 1, INT64_MIN])
    expected = [0, -1, (1 << 31) - 1, -(1 << 31), 7, (1 << 31) - 1, 0]
    assert wrap32(x).tolist() == expected


@pytest.mark.parametrize(("x", "place"), [(1, 0), (2, 1), (3, 1), (4, 2), (2**62, 62)])
def test_leading_bit_of_one_number(x: int, place: int) -> None:
    """From one on, as an int and in an array."""
    assert msb(x) == place
    assert msb(np.array([x])).tolist() == [place]
