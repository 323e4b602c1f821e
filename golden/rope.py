# SPDX-License-Identifier: Apache-2.0
"""Rotary position embedding of int8 lanes by tabulated cosines and sines in Q1.14.

Section ROPE of the ISA; one rounding, after the sum:

    halves: a = x[t], b = x[t + N/2];  pairs: a = x[2t], b = x[2t + 1];  t = 0..N/2-1
    a' = sat8(rs(a * cos[t] - b * sin[t], 14)), b' = sat8(rs(a * sin[t] + b * cos[t], 14))
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.fixed import as_int64, rs, sat8

FRACTION_BITS = 14


def rope(
    x: npt.NDArray[np.int8], table: npt.NDArray[np.int16], *, pairs: bool = False
) -> npt.NDArray[np.int8]:
    """Return x rotated, of its shape.

    Args:
        x: (..., N) int8, N even.
        table: (..., N/2, 2) int16 cosines and sines; its leading axes broadcast against those of x.
        pairs: lanes 2t and 2t + 1 belong together instead of t and t + N/2.

    """
    lanes = as_int64(x)
    half = x.shape[-1] // 2
    first, second = (
        (slice(0, None, 2), slice(1, None, 2)) if pairs else (slice(0, half), slice(half, None))
    )
    a, b = lanes[..., first], lanes[..., second]
    cosine, sine = as_int64(table[..., 0]), as_int64(table[..., 1])
    result = np.empty_like(x)
    result[..., first] = sat8(rs(a * cosine - b * sine, FRACTION_BITS))
    result[..., second] = sat8(rs(a * sine + b * cosine, FRACTION_BITS))
    return result
