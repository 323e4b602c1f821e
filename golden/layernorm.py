# SPDX-License-Identifier: Apache-2.0
"""LayerNorm and RMSNorm of int16 rows with a tabulated inverse square root.

Numerics item 5, N = row length, S1 = sum x, S2 = sum x^2, E the epsilon term:

    LayerNorm  V = max(1, N*S2 - S1^2 + E), d = N*x - S1
    RMSNorm    V = max(1, N*S2 + E),        d = N*x
    e = msb(V), j = e >> 1, idx = (V << 6) >> 2j (64..255)
    R = min(65535, round(65536 / sqrt((idx + 0.5) / 64)))
    q = sat20(rs(d * R, 16 + j - 14))                           Q5.14
    y = sat(rs(q * gain, shift) + bias)                         to int8 or int16, once
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.fixed import Int64Array, IntArray, as_int64, msb, multiply, rs, sat, sat8, sat16
from golden.tables import RSQRT_FIRST, rsqrt_table

NORM_MAX = 8192
"""Longest row for which every intermediate is known to fit."""
Q_FRACTION_BITS = 14
"""Of the normalised row. Channels beside loud ones stay below 1, so that these bits are theirs."""
Q_BITS = 20

RSQRT_MAX_RELATIVE_ERROR = 0.003892
"""Largest |R / 2^(16 + j) * sqrt(V) - 1| over every V >= 1; reached at powers of four."""
Q_MAX_ABSOLUTE_ERROR = 0.5
"""The absolute part of the error of q, in units of 2^-14: its rounding. With q' = 2^14 * d /
sqrt(V), |q - clip(q')| <= Q_MAX_ABSOLUTE_ERROR + RSQRT_MAX_RELATIVE_ERROR * |q'|."""
OUTPUT_MAX_ERROR = 0.5
"""|y - clip(q * gain / 2^shift + bias)| in units of the output, q being the integer above."""


def output_bound(
    q_exact: npt.NDArray[np.float64], gain: IntArray, shift: IntArray
) -> npt.NDArray[np.float64]:
    """Return the largest |y - y'|, y' = clip(q_exact * gain / 2^shift + bias).

    q_exact is 2^14 * d / sqrt(V) without any rounding, (M, N) float64.
    """
    slope = np.asarray(gain, np.float64) / np.exp2(np.asarray(shift, np.float64))
    q_error = Q_MAX_ABSOLUTE_ERROR + RSQRT_MAX_RELATIVE_ERROR * np.abs(q_exact)
    return q_error * slope + OUTPUT_MAX_ERROR


def inverse_sqrt(v: int) -> tuple[int, int]:
    """Return (R, j) with 1 / sqrt(v) about R / 2^(16 + j), for an integer v >= 1 of any size.

    Maximum relative error: RSQRT_MAX_RELATIVE_ERROR. Source: numerics item 5.
    """
    j = msb(v) >> 1
    index = (v << 6) >> (2 * j)
    return int(rsqrt_table()[index - RSQRT_FIRST]), j


def normalized(x: IntArray, eps_term: int, *, rms: bool = False) -> npt.NDArray[np.int32]:
    """Return q, the normalised rows in Q5.14.

    Args:
        x: (M, N) int16, 1 <= N <= NORM_MAX.
        eps_term: E = round(eps * N^2 / s^2), 0 <= E < 2^64, s the scale of x.
        rms: RMSNorm instead of LayerNorm.

    Returns:
        (M, N) int32 of Q_BITS bits. Maximum error against float64: Q_MAX_ABSOLUTE_ERROR plus
        RSQRT_MAX_RELATIVE_ERROR relative.

    """
    rows = as_int64(x)
    if rows.ndim != 2 or not 1 <= rows.shape[1] <= NORM_MAX:
        raise ValueError(f"normalized: given shape {rows.shape}, allowed (M, 1..{NORM_MAX})")
    if not 0 <= eps_term < 1 << 64:
        raise ValueError(f"normalized: given eps_term {eps_term}, allowed 0..2^64-1")
    n = rows.shape[1]
    s1 = rows.sum(axis=1)
    s2 = (rows * rows).sum(axis=1)
    spread = n * s2 if rms else n * s2 - s1 * s1
    d = n * rows if rms else n * rows - s1[:, None]
    factors = np.empty(rows.shape[0], np.int64)
    shifts = np.empty(rows.shape[0], np.int64)
    for row, value in enumerate(spread.tolist()):
        factors[row], j = inverse_sqrt(max(1, int(value) + eps_term))
        shifts[row] = 16 + j - Q_FRACTION_BITS
    return sat(rs(d * factors[:, None], shifts[:, None]), Q_BITS).astype(np.int32)


def scaled(q: IntArray, gain: IntArray, shift: IntArray, bias: IntArray, bits: int) -> Int64Array:
    """Return sat(rs(q * gain, shift) + bias) with one saturation to `bits` bits, int64.

    Args:
        q: (M, N) int32, Q5.14.
        gain: (N,) uint16.
        shift: (N,) 0..63.
        bias: (N,) int8.
        bits: 8 or 16.

    """
    return sat(rs(multiply(q, gain), shift) + as_int64(bias), bits)


def norm8(
    x: IntArray,
    eps_term: int,
    gain: IntArray,
    shift: IntArray,
    bias: IntArray,
    *,
    rms: bool = False,
) -> npt.NDArray[np.int8]:
    """Return the norm of int16 rows as int8.

    Args:
        x: (M, N) int16, see `normalized`.
        eps_term: see `normalized`.
        gain: (N,) uint16.
        shift: (N,) uint8, 0..63.
        bias: (N,) int8, added after the rounding.
        rms: RMSNorm instead of LayerNorm.

    Returns:
        (M, N) int8. Maximum error against float64: `output_bound`.

    """
    return sat8(scaled(normalized(x, eps_term, rms=rms), gain, shift, bias, 8))


def norm16(
    x: IntArray,
    eps_term: int,
    gain: IntArray,
    shift: IntArray,
    bias: IntArray,
    *,
    rms: bool = False,
) -> npt.NDArray[np.int16]:
    """Return the norm of int16 rows as (M, N) int16; arguments and error as `norm8`."""
    return sat16(scaled(normalized(x, eps_term, rms=rms), gain, shift, bias, 16))
