# SPDX-License-Identifier: Apache-2.0
"""Base-2 softmax with unnormalised integer numerators, their sums and the reciprocal of a sum.

Scores are signed integers in units of 2^-6 of a binary logarithm. Per row, over the visible
columns (numerics item 8; causal, and in a sliding window):

    x = max s, d = x - s, ip = d >> 6, fr = d & 63, T[fr] = round(65535 * 2^(-fr/64))
    u16 numerator e = rs(T[fr], ip);  u8 numerator e = min(255, rs(T[fr], ip + 8))
    0 where the column is invisible or the shift exceeds 17;  S = sum of e
    recip(S): b = msb(S), idx = ((S << 7) >> b) & 127, R = round(65536 / (1 + (idx + 0.5) / 128))
    stand-alone probability p = min(255, rs(e16 * R, 8 + b))
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TypedDict, Unpack

import numpy as np
import numpy.typing as npt

from golden.fixed import Int64Array, IntArray, as_int64, msb, rs
from golden.tables import EXP_FRACTION_BITS, exp_table, reciprocal_table

MAX_SHIFT = 17
"""A numerator whose shift exceeds this is 0."""
FRACTION_MASK = (1 << EXP_FRACTION_BITS) - 1
FARTHEST = (MAX_SHIFT + 1) << EXP_FRACTION_BITS
"""The numerators of this distance and of every larger one are 0."""

NUMERATOR_U16_MAX_ERROR = 0.746
"""Largest |e - 65535 * 2^(-d/64)| over every d, in units of a u16 numerator."""
NUMERATOR_U8_MAX_ERROR = 0.9961
"""Largest |e - 65535/256 * 2^(-d/64)| over every d, in units of a u8 numerator; reached at d = 0,
where 255.996 is cut to 255."""
RECIPROCAL_MAX_RELATIVE_ERROR = 0.003892
"""Largest |S * R / 2^(16 + msb S) - 1| over every S >= 1; reached at powers of two."""


def probability_bound(columns: int) -> float:
    """Return the largest |p - 256 * softmax| of stand-alone probabilities, in units of p.

    The reciprocal, the errors of `columns` numerators against a sum of at least 65535, the
    numerator's own error, and one rounding.
    """
    numerators = NUMERATOR_U16_MAX_ERROR * (columns + 1) / 65535
    return 256 * (RECIPROCAL_MAX_RELATIVE_ERROR + numerators) + 0.5


PROBABILITY_MAX_ERROR = 1.88
"""`probability_bound(128)` rounded up: the maximum error of rows of at most 128 columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Reciprocal:
    """The reciprocal of softmax sums: 1 / S is about value / 2^shift.

    Attributes:
        value: int64, R of the module's formula, 0 where S = 0.
        shift: int64, 16 + msb(S), 16 where S = 0.

    """

    value: Int64Array
    shift: Int64Array


def reciprocal(sums: IntArray) -> Reciprocal:
    """Return R and 16 + msb(S) for sums S of any shape, 0 <= S < 2^32.

    Maximum relative error of S * R / 2^shift against 1: RECIPROCAL_MAX_RELATIVE_ERROR. S = 0 gives
    R = 0. Source: numerics item 8.
    """
    s = as_int64(sums)
    if s.size and not (int(s.min()) >= 0 and int(s.max()) < 1 << 32):
        raise ValueError(f"reciprocal: given {int(s.min())}..{int(s.max())}, allowed 0..2^32-1")
    top = msb(np.maximum(s, 1))
    index = ((s << 7) >> top) & 127
    value = np.where(s == 0, 0, reciprocal_table()[index])
    return Reciprocal(value, 16 + top)


def numerator(distance: IntArray, bits: int = 16) -> Int64Array:
    """Return the numerator for a distance d = max - s >= 0 below the row's maximum.

    Args:
        distance: integers >= 0 of any shape, in units of 2^-6 of a binary logarithm.
        bits: 16 or 8.

    Returns:
        int64, 0..65535 or 0..255. Maximum error against (65535 or 65535/256) * 2^(-d/64) in
        float64: NUMERATOR_U16_MAX_ERROR, NUMERATOR_U8_MAX_ERROR.

    """
    if bits not in (8, 16):
        raise ValueError(f"numerator: given bits {bits}, allowed 8 and 16")
    d = as_int64(distance)
    if d.size and int(d.min()) < 0:
        raise ValueError(f"numerator: given distance {int(d.min())}, allowed 0 and more")
    return _numerator_of_distance(bits)[np.minimum(d, FARTHEST)]


@cache
def _numerator_of_distance(bits: int) -> Int64Array:
    """Return the numerators of the distances 0..FARTHEST: there are few, and scores are many."""
    d = np.arange(FARTHEST + 1, dtype=np.int64)
    shift = (d >> EXP_FRACTION_BITS) + (16 - bits)
    e = rs(exp_table()[d & FRACTION_MASK], shift)
    return np.where(shift > MAX_SHIFT, 0, np.minimum(e, (1 << bits) - 1))


class Visibility(TypedDict, total=False):
    """Which columns a row sees; by default all.

    Column j is key start + j. With `causal`, row m, which is row i = m mod rows_per_head of its
    head, sees it iff start + j <= pos + i and, if there is a window, start + j > pos + i - window.

    Attributes:
        causal: whether anything is hidden.
        pos: position of row 0 of a head.
        rows_per_head: rows of a head; 0: one head, i = m.
        start: key of column 0.
        window: how many keys a row sees at most, its own included; 0: no window.

    """

    causal: bool
    pos: int
    rows_per_head: int
    start: int
    window: int


def visible(rows: int, columns: int, **rule: Unpack[Visibility]) -> npt.NDArray[np.bool_]:
    """Return the (rows, columns) mask of visible columns; see `Visibility`."""
    if not rule.get("causal", False):
        return np.ones((rows, columns), np.bool_)
    row = np.arange(rows, dtype=np.int64)
    if rule.get("rows_per_head", 0):
        row %= rule["rows_per_head"]
    own = (rule.get("pos", 0) + row)[:, None]
    key = rule.get("start", 0) + np.arange(columns, dtype=np.int64)
    window = rule.get("window", 0)
    mask: npt.NDArray[np.bool_] = key <= own
    return mask & (key > own - window) if window else mask


def _numerators(scores: IntArray, bits: int, rule: Visibility) -> tuple[Int64Array, Int64Array]:
    """Return numerators (M, N) and sums (M,), both int64."""
    s = as_int64(scores)
    if s.ndim != 2 or 0 in s.shape:
        raise ValueError(f"softmax: given shape {s.shape}, allowed (rows, columns), both >= 1")
    mask = visible(*s.shape, **rule)
    lowest = np.iinfo(np.int64).min >> 1
    top = np.where(mask, s, lowest).max(axis=1, keepdims=True)
    e = numerator(np.where(mask, top - s, FARTHEST), bits)
    return e, e.sum(axis=1)


def numerators16(
    scores: IntArray, **rule: Unpack[Visibility]
) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.uint32]]:
    """Return u16 numerators and their sums.

    Args:
        scores: (M, N) int16 or int8, units 2^-6 of a binary logarithm.
        **rule: which columns a row sees; a row that sees nothing has numerators and sum 0.

    Returns:
        numerators (M, N) uint16 and sums (M,) uint32. Maximum error of a numerator against
        65535 * 2^((s - max) / 64): NUMERATOR_U16_MAX_ERROR.

    """
    e, total = _numerators(scores, 16, rule)
    return e.astype(np.uint16), total.astype(np.uint32)


def numerators8(
    scores: IntArray, **rule: Unpack[Visibility]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint32]]:
    """Return u8 numerators (M, N) uint8 and their sums (M,) uint32; arguments as `numerators16`.

    Maximum error of a numerator against 65535/256 * 2^((s - max) / 64): NUMERATOR_U8_MAX_ERROR.
    """
    e, total = _numerators(scores, 8, rule)
    return e.astype(np.uint8), total.astype(np.uint32)


def probabilities(scores: IntArray, **rule: Unpack[Visibility]) -> npt.NDArray[np.uint8]:
    """Return normalised probabilities (M, N) uint8 in units of 1/256; arguments as `numerators16`.

    p = min(255, rs(e16 * R, 8 + msb(S))). Maximum error against 256 * softmax in float64:
    PROBABILITY_MAX_ERROR.
    """
    e, total = _numerators(scores, 16, rule)
    recip = reciprocal(total)
    p = rs(e * recip.value[:, None], (recip.shift - 8)[:, None])
    return np.minimum(p, 255).astype(np.uint8)
