# SPDX-License-Identifier: Apache-2.0
"""Rotary position embedding of int8 heads with tabulated angles.

A head of N lanes has N/2 pairs (a, b), either halves, a = x[t] and b = x[t + N/2], or neighbours,
a = x[2t] and b = x[2t + 1]. With cos and sin in Q1.14, for t = 0..N/2-1:

    a' = sat8(rs(a*cos[t] - b*sin[t], 14)),  b' = sat8(rs(a*sin[t] + b*cos[t], 14))
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.fixed import IntArray, as_int64, rs, sat8

FRACTION_BITS = 14

ROPE_MAX_ERROR = 0.5
"""Largest |x' - clip(a*cos - b*sin)| for cos and sin as tabulated, one rounding after the sum."""


def rotate(
    x: npt.NDArray[np.int8], cos: IntArray, sin: IntArray, *, pairs: bool = False
) -> npt.NDArray[np.int8]:
    """Rotate the pairs of every head.

    Args:
        x: (..., N) int8, N even.
        cos: int16 in Q1.14, (..., N/2), broadcast against x's pairs.
        sin: as `cos`.
        pairs: neighbouring pairs instead of halves.

    Returns:
        int8 in the shape of x. Maximum error against the exact rotation by the tabulated numbers:
        ROPE_MAX_ERROR.

    Raises:
        ValueError: if x is not int8, N is odd, or a table has not N/2 entries.

    """
    lanes = x.shape[-1]
    if x.dtype != np.int8 or lanes % 2:
        raise ValueError(f"rotate: given {x.dtype}{x.shape}, allowed int8 with an even last axis")
    if cos.shape[-1] != lanes // 2 or sin.shape != cos.shape:
        raise ValueError(
            f"rotate: given tables {cos.shape} and {sin.shape}, allowed equal ones of {lanes // 2}"
        )
    half = lanes // 2
    low, high = slice(0, half), slice(half, lanes)
    if pairs:
        low, high = slice(0, lanes, 2), slice(1, lanes, 2)
    a, b = as_int64(x[..., low]), as_int64(x[..., high])
    c, s = as_int64(cos), as_int64(sin)
    result = np.empty(x.shape, np.int8)
    result[..., low] = sat8(rs(a * c - b * s, FRACTION_BITS))
    result[..., high] = sat8(rs(a * s + b * c, FRACTION_BITS))
    return result
