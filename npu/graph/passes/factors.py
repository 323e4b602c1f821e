# SPDX-License-Identifier: Apache-2.0
"""Real factors as integers: a multiplier of 15 or 16 bits and a shift to the right.

The multiplier has its top bit set where the shift allows it, so that its relative error is at most
2^-15 or 2^-16. The channels of a product and the gains of a norm take 16 bits, the prefix and the
signed factor of SCALE_SHIFT 15.
"""

from __future__ import annotations

import math

import numpy as np

from npu.graph.form import Array, GraphError

PREFIX_BITS, CHANNEL_BITS = 15, 16
PREFIX_MAX = (1 << PREFIX_BITS) - 1
SHIFT_MAX = 63
INT32_MAX = (1 << 31) - 1


def factor(real: float, bits: int = PREFIX_BITS, *, above: bool = False) -> tuple[int, int]:
    """Return (mult, shift) with mult / 2^shift next to a positive real factor.

    Args:
        real: below 2^bits; what is very small has fewer bits, and at least one.
        bits: of the multiplier.
        above: whether it is the next one above, so that halves are rounded away from zero.

    Raises:
        GraphError: it is not positive, not finite or too large.
    """
    if not (real > 0 and math.isfinite(real)):
        raise GraphError(f"a factor of {real}, allowed positive finite numbers")
    most = (1 << bits) - 1
    shift = min(bits - 1 - math.floor(math.log2(real)), SHIFT_MAX)
    wanted = math.ldexp(real, max(shift, 0))
    mult = math.floor(wanted) + 1 if above else max(1, round(wanted))
    if mult > most:
        mult, shift = (mult + 1) >> 1, shift - 1
    if shift < 0 or mult > most:
        raise GraphError(f"a factor of {real:.6g}, allowed below {most + 1}")
    return mult, shift


def factors(real: Array, *, above: bool = False) -> tuple[Array, Array]:
    """Return (mult, shift) of an array of factors, uint16 and uint8 of its shape.

    A factor of 0 is (0, 0). Raises GraphError as `factor`.
    """
    flat = np.asarray(real).reshape(-1)
    pairs = [factor(float(one), CHANNEL_BITS, above=above) if one else (0, 0) for one in flat]
    mult = np.array([one[0] for one in pairs], np.uint16).reshape(np.shape(real))
    shift = np.array([one[1] for one in pairs], np.uint8).reshape(np.shape(real))
    return mult, shift


def signed_factor(real: float) -> tuple[int, int]:
    """Return (mult, shift) of a factor of either sign, exact where it is a small power of two."""
    if real == 0:
        return 0, 0
    mult, shift = factor(abs(real))
    while mult % 2 == 0 and shift > 0:
        mult, shift = mult // 2, shift - 1
    return (mult if real > 0 else -mult), shift


def in_int32(values: Array, what: str) -> Array:
    """Return rounded values as int32. Raises GraphError naming what leaves the range."""
    rounded = np.rint(values)
    if rounded.size and np.abs(rounded).max() > INT32_MAX:
        raise GraphError(f"{what} of {np.abs(rounded).max():.6g}, allowed up to {INT32_MAX}")
    return rounded.astype(np.int32)
