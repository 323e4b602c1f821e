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
from tests.python.golden_support import integers, seeded


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


@pytest.mark.parametrize("c", [0.0, -1.0, math.inf, math.nan, 2.0**20, 2.0**-60])
def test_factor_refuses(c: float) -> None:
    """What has no multiplier and shift is refused."""
    with pytest.raises(ValueError, match="factor: given"):
        factor(c)
