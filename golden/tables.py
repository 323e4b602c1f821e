# SPDX-License-Identifier: Apache-2.0
"""The three constant tables of the row engines, computed from their formulas.

    exp         T[i] = round(65535 * 2^(-i/64))                      i = 0..63
    reciprocal  R[i] = round(65536 / (1 + (i + 0.5) / 128))           i = 0..127
    rsqrt       Q[i] = min(65535, round(65536 / sqrt((i + 0.5) / 64))) i = 64..255

No entry lies near a tie, so the rounding of halves does not matter; a test proves every entry with
exact integers.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from golden.fixed import Int64Array

EXP_FRACTION_BITS = 6
EXP_ENTRIES = 1 << EXP_FRACTION_BITS
RECIPROCAL_ENTRIES = 128
RSQRT_FIRST, RSQRT_ENTRIES = 64, 192

TABLE_MAX_ERROR = 0.5
"""Largest distance of an entry of any of the tables from its formula, in units of an entry."""


def _constant(values: list[int]) -> Int64Array:
    table = np.array(values, dtype=np.int64)
    table.setflags(write=False)
    return table


@functools.cache
def exp_table() -> Int64Array:
    """Return T, (64,) int64 in 1..65535: 65535 * 2^(-i/64) rounded to the nearest integer.

    Maximum error against float64: TABLE_MAX_ERROR. Source: base-2 softmax of the numerics.
    """
    return _constant([round(65535 * 2.0 ** (-i / EXP_ENTRIES)) for i in range(EXP_ENTRIES)])


@functools.cache
def reciprocal_table() -> Int64Array:
    """Return R, (128,) int64 in 32832..65281: 65536 / (1 + (i + 0.5) / 128) rounded.

    Maximum error against float64: TABLE_MAX_ERROR. Source: reciprocal of the softmax sum.
    """
    return _constant([round(65536 / (1 + (i + 0.5) / 128)) for i in range(RECIPROCAL_ENTRIES)])


@functools.cache
def rsqrt_table() -> Int64Array:
    """Return Q, (192,) int64: entry i - 64 is min(65535, round(65536 / sqrt((i + 0.5) / 64))).

    Maximum error against float64: TABLE_MAX_ERROR. Source: item 5 of the numerics.
    """
    indices = range(RSQRT_FIRST, RSQRT_FIRST + RSQRT_ENTRIES)
    return _constant([min(65535, round(65536 / math.sqrt((i + 0.5) / 64))) for i in indices])
