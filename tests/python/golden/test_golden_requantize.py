# SPDX-License-Identifier: Apache-2.0
"""Requantisation against exact fractions and float64, and the normalised factors."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from golden.requantize import (
    FACTOR_MAX_RELATIVE_ERROR,
    MULT_MAX,
    MULT_MIN,
    REQUANTIZE_MAX_ERROR,
    factor,
    requantize,
    requantize8,
    requantize16,
)
from tests.python.golden.golden_support import integers, seeded


@pytest.mark.parametrize("bits", [8, 16])
def test_requantize_is_one_rounding_and_one_saturation(bits: int) -> None:
    """Against exact fractions, over all shifts."""
    rng = seeded(21)
    v = integers(rng, np.int64, (4000,)) >> 21
    mult = rng.integers(0, 65536, v.shape)
    shift = rng.integers(0, 64, v.shape)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    expected = []
    for x, m, s in zip(v.tolist(), mult.tolist(), shift.tolist(), strict=True):
        exact = Fraction(x * m, 1 << s)
        rounded = math.floor(exact + Fraction(1, 2)) if s else int(exact)
        expected.append(min(max(rounded, low), high))
    result = requantize(v, mult, shift, bits)
    assert result.tolist() == expected
    exact_clipped = np.clip(v * mult / np.exp2(shift), low, high)
    assert np.abs(result - exact_clipped).max() <= REQUANTIZE_MAX_ERROR
    assert np.unique(result).size > 16


def test_requantize_widths() -> None:
    """int8 and int16 saturate at their own limits."""
    v = np.array([-(1 << 20), -200, 0, 200, 1 << 20])
    assert requantize8(v, 1 << 14, 14).tolist() == [-128, -128, 0, 127, 127]
    assert requantize16(v, 1 << 14, 14).tolist() == [-32768, -200, 0, 200, 32767]
    assert requantize8(v, 1, 1).dtype == np.int8
    assert requantize16(v, 1, 1).dtype == np.int16


def test_factor_is_normalised_and_near() -> None:
    """Random factors and powers of two; the bound is nearly reached."""
    rng = seeded(22)
    values = np.exp2(rng.uniform(-48.9, 14.9, 20000)).tolist()
    values += [2.0**e for e in range(-49, 15)] + [1 - 2.0**-20, 1 - 2.0**-16]
    worst = 0.0
    for c in values:
        mult, shift = factor(c)
        assert MULT_MIN <= mult <= MULT_MAX
        worst = max(worst, abs(mult / 2.0**shift - c) / c)
    assert FACTOR_MAX_RELATIVE_ERROR / 2 < worst <= FACTOR_MAX_RELATIVE_ERROR


def _nearest(c: float) -> tuple[int, int]:
    """Return the nearest of all pairs of a normalised multiplier and a shift, exactly.

    Of two that are as near the one with the even multiplier.
    """
    exact = Fraction(c)
    pairs = [
        (mult, shift)
        for shift in range(64)
        for mult in (math.floor(exact * 2**shift), math.floor(exact * 2**shift) + 1)
        if MULT_MIN <= mult <= MULT_MAX
    ]
    return min(pairs, key=lambda pair: (abs(Fraction(pair[0], 2 ** pair[1]) - exact), pair[0] & 1))


def test_factor_is_the_nearest() -> None:
    """Against all pairs in fractions: anywhere, beside powers of two, on ties and beside them."""
    rng = seeded(23)
    values = np.exp2(rng.uniform(-48.9, 14.9, 600)).tolist()
    powers = [2.0**exponent for exponent in range(-48, 15)]
    mults = [MULT_MIN, MULT_MIN + 1, MULT_MAX - 1, MULT_MAX, *rng.integers(1 << 14, 1 << 15, 40)]
    shifts = [1, 63, *rng.integers(1, 64, len(mults) - 2)]
    ties = [math.ldexp(mult + 0.5, -int(s)) for mult, s in zip(mults, shifts, strict=True)]
    for c in [2.0**-49, float(MULT_MAX), *values, *powers, *ties]:
        for beside in (math.nextafter(c, 0), c, math.nextafter(c, math.inf)):
            assert factor(beside) == _nearest(beside), beside.hex()


@pytest.mark.parametrize("c", [0.0, -1.0, math.inf, math.nan, 2.0**20, 2.0**-60])
def test_factor_refuses(c: float) -> None:
    """What has no multiplier and shift is refused."""
    with pytest.raises(ValueError, match="factor: given"):
        factor(c)
