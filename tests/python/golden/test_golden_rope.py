# SPDX-License-Identifier: Apache-2.0
"""Rotary embedding: pairs by hand, every head dimension against float64, full-range tables."""

from __future__ import annotations

import math

import numpy as np
import pytest

from golden.rope import ROPE_MAX_ERROR, rotate
from tests.python.golden.golden_support import integers, seeded


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("lanes", [2, 6, 16, 34, 64, 128])
def test_against_float64(lanes: int, pairs: bool) -> None:
    """Real angles: a rotation by t-dependent angles within half a unit of the tabulated numbers."""
    rng = seeded(700)
    x = integers(rng, np.int8, (40, lanes))
    angle = rng.uniform(-math.pi, math.pi, (40, lanes // 2))
    cos = np.rint(np.cos(angle) * 16384).astype(np.int16)
    sin = np.rint(np.sin(angle) * 16384).astype(np.int16)
    result = rotate(x, cos, sin, pairs=pairs)
    assert result.dtype == np.int8
    for t in range(lanes // 2):
        first, second = (2 * t, 2 * t + 1) if pairs else (t, t + lanes // 2)
        turned = (x[:, first] + 1j * x[:, second]) * (cos[:, t] + 1j * sin[:, t]) / 16384
        for lane, exact in ((first, turned.real), (second, turned.imag)):
            assert np.abs(result[:, lane] - np.clip(exact, -128, 127)).max() <= ROPE_MAX_ERROR
    assert np.mean(result != x) > 0.8


@pytest.mark.parametrize("pairs", [False, True])
def test_full_range_tables_by_the_formula(pairs: bool) -> None:
    """Any int16 as cos and sin, in Python integers."""
    rng = seeded(701)
    x = integers(rng, np.int8, (8, 3, 20))
    cos, sin = (integers(rng, np.int16, (8, 1, 10)) for _ in range(2))
    result = rotate(x, cos, sin, pairs=pairs)

    def rounded(value: int) -> int:
        return min(max((value + (1 << 13)) >> 14, -128), 127)

    for row in range(8):
        for head in range(3):
            for t in range(10):
                first, second = (2 * t, 2 * t + 1) if pairs else (t, t + 10)
                a, b = int(x[row, head, first]), int(x[row, head, second])
                c, s = int(cos[row, 0, t]), int(sin[row, 0, t])
                assert result[row, head, first] == rounded(a * c - b * s)
                assert result[row, head, second] == rounded(a * s + b * c)
    assert result.min() == -128
    assert result.max() == 127


def test_one_rounding_after_the_sum() -> None:
    """Two halves of a unit make one; rounded apart they would make two or none."""
    half = np.array([[8192]], np.int16)
    assert rotate(np.array([[1, -1]], np.int8), half, half).tolist() == [[1, 0]]
    assert rotate(np.array([[1, 0]], np.int8), half, -half).tolist() == [[1, 0]]


def test_arguments_are_checked() -> None:
    """Odd head dimensions, other types and tables of another length are refused."""
    table = np.zeros((1, 2), np.int16)
    with pytest.raises(ValueError, match=r"int8\(1, 5\)"):
        rotate(np.zeros((1, 5), np.int8), table, table)
    with pytest.raises(ValueError, match="int16"):
        rotate(np.zeros((1, 4), np.int16), table, table)
    with pytest.raises(ValueError, match="allowed equal ones of 3"):
        rotate(np.zeros((1, 6), np.int8), table, table)
