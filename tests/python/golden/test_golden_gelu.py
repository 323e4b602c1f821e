# SPDX-License-Identifier: Apache-2.0
"""GELU tables against math.erf over all 256 inputs, and their application."""

from __future__ import annotations

import math

import numpy as np
import pytest

from golden.gelu import GELU_TABLE_MAX_ERROR, apply_table, gelu, gelu_table

INPUTS = np.arange(256, dtype=np.uint8).view(np.int8)


def test_gelu_by_integrating_the_normal_density() -> None:
    """X times the normal distribution function, by the midpoint rule: another route than erf."""
    for x in (-3.0, -1.0, -0.25, 0.5, 2.0):
        grid = (np.arange(200000) + 0.5) / 200000 * (x + 10) - 10
        below = np.exp(-(grid**2) / 2).sum() * (x + 10) / 200000 / math.sqrt(2 * math.pi)
        assert gelu(x) == pytest.approx(x * below, abs=1e-8)


@pytest.mark.parametrize("scale_in", [0.001, 0.01, 0.03, 0.1, 1.0])
@pytest.mark.parametrize("scale_out", [0.005, 0.02, 0.05])
def test_every_entry_against_erf(scale_in: float, scale_out: float) -> None:
    """All 256 inputs at 15 pairs of scales."""
    table = gelu_table(scale_in, scale_out)
    x = INPUTS.astype(np.float64) * scale_in
    exact = np.array([0.5 * v * math.erfc(-v / math.sqrt(2)) / scale_out for v in x])
    worst = np.abs(table - np.clip(exact, -128, 127)).max()
    assert worst <= GELU_TABLE_MAX_ERROR
    assert table[0] == 0


def test_the_table_is_indexed_by_the_bit_pattern() -> None:
    """Entry 0x80 serves -128."""
    table = np.arange(256, dtype=np.uint8).view(np.int8)
    x = np.array([[0, 1, 127], [-128, -1, -2]], np.int8)
    assert np.array_equal(apply_table(x, table), x)
    marked = np.zeros(256, np.int8)
    marked[0x80] = 5
    assert apply_table(x, marked).tolist() == [[0, 0, 0], [5, 0, 0]]


def test_arguments_are_checked() -> None:
    """Wrong arguments are refused by name."""
    with pytest.raises(ValueError, match="scale_in 0"):
        gelu_table(0, 1)
    with pytest.raises(ValueError, match="scale_out inf"):
        gelu_table(1, math.inf)
    with pytest.raises(ValueError, match="allowed int8"):
        apply_table(np.zeros(3, np.int16), np.zeros(256, np.int8))
    with pytest.raises(ValueError, match="allowed int8"):
        apply_table(np.zeros(3, np.int8), np.zeros(255, np.int8))
