# SPDX-License-Identifier: Apache-2.0
"""Every entry of the constant tables, proved with exact integers, no floating point involved."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from golden.tables import (
    RSQRT_FIRST,
    TABLE_MAX_ERROR,
    exp_table,
    reciprocal_table,
    rsqrt_table,
)

HALF = Fraction(1, 2)


def test_exp_table_is_the_nearest_integer() -> None:
    """|T - y| < 1/2 with y = 65535 * 2^(-i/64), by comparing 64th powers: y^64 = 65535^64 / 2^i."""
    table = exp_table()
    assert table.shape == (64,)
    assert table[0] == 65535
    for i, entry in enumerate(table.tolist()):
        power = Fraction(65535**64, 2**i)
        assert (entry - HALF) ** 64 < power < (entry + HALF) ** 64


def test_reciprocal_table_is_the_nearest_integer() -> None:
    """|R - y| < 1/2 in exact fractions."""
    table = reciprocal_table()
    assert table.shape == (128,)
    for i, entry in enumerate(table.tolist()):
        exact = 65536 / (1 + (i + HALF) / 128)
        assert abs(entry - exact) < HALF


def test_rsqrt_table_is_the_nearest_integer() -> None:
    """|Q - y| < 1/2 with y = 65536 / sqrt((i + 1/2) / 64), by comparing squares."""
    table = rsqrt_table()
    assert table.shape == (192,)
    for i, entry in enumerate(table.tolist(), RSQRT_FIRST):
        square = 65536**2 / ((i + HALF) / 64)
        assert (entry - HALF) ** 2 < square < (entry + HALF) ** 2


def test_tables_against_float64() -> None:
    """The same three formulas in float64."""
    index = np.arange(64)
    assert np.abs(exp_table() - 65535 * np.exp2(-index / 64)).max() <= TABLE_MAX_ERROR
    index = np.arange(128)
    exact = 65536 / (1 + (index + 0.5) / 128)
    assert np.abs(reciprocal_table() - exact).max() <= TABLE_MAX_ERROR
    exact = np.array([65536 / math.sqrt((i + 0.5) / 64) for i in range(64, 256)])
    assert np.abs(rsqrt_table() - exact).max() <= TABLE_MAX_ERROR


def test_tables_cannot_be_changed() -> None:
    """Cached tables are read-only."""
    for table in (exp_table(), reciprocal_table(), rsqrt_table()):
        assert not table.flags.writeable
