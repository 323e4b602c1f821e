# SPDX-License-Identifier: Apache-2.0
"""Requantisation: an integer times an integer multiplier, shifted right with round half up.

    y = sat(rs(v * m, s))        m unsigned 15 bits (16 accepted), s in 0..63

The product is exact and there is one rounding and one saturation.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from golden.fixed import Int64Array, IntArray, multiply, rs, sat, sat8, sat16

MULT_MIN, MULT_MAX = 1 << 14, (1 << 15) - 1
SHIFT_MAX = 63

REQUANTIZE_MAX_ERROR = 0.5
"""Largest |requantize(v, m, s) - clip(v * m / 2^s)| in units of the result."""
FACTOR_MAX_RELATIVE_ERROR = 2.0**-15
"""Largest |m / 2^s - c| / c of `factor` where 2^-49 <= c < 2^15."""


def requantize(v: IntArray, mult: IntArray | int, shift: IntArray | int, bits: int) -> Int64Array:
    """Return sat_bits(rs(v * mult, shift)).

    Args:
        v: integers of any shape, at most 43 bits.
        mult: int or integer array that broadcasts against v, 0..65535.
        shift: int or integer array that broadcasts against v, 0..63.
        bits: width of the signed result.

    Returns:
        int64 in the range of a signed `bits`-bit number. Maximum error against
        clip(v * mult / 2^shift) in float64: REQUANTIZE_MAX_ERROR. Source: numerics item 1.

    """
    return sat(rs(multiply(v, mult), shift), bits)


def requantize8(v: IntArray, mult: IntArray | int, shift: IntArray | int) -> npt.NDArray[np.int8]:
    """Return sat8(rs(v * mult, shift)) as int8; arguments and error as `requantize`."""
    return sat8(rs(multiply(v, mult), shift))


def requantize16(v: IntArray, mult: IntArray | int, shift: IntArray | int) -> npt.NDArray[np.int16]:
    """Return sat16(rs(v * mult, shift)) as int16; arguments and error as `requantize`."""
    return sat16(rs(multiply(v, mult), shift))


def factor(c: float) -> tuple[int, int]:
    """Return the normalised (mult, shift) nearest to the positive real factor c.

    shift = 14 - floor(log2 c), mult = round(c * 2^shift), a tie to the even one, halved if it
    reaches 2^15; so 2^14 <= mult < 2^15 and |mult / 2^shift - c| / c <= FACTOR_MAX_RELATIVE_ERROR.

    Raises:
        ValueError: if c is not positive and finite, or its shift leaves 0..63.

    """
    if not (c > 0 and math.isfinite(c)):
        raise ValueError(f"factor: given {c}, allowed positive finite numbers")
    shift = 14 - math.floor(math.log2(c))
    mult = round(math.ldexp(c, shift))
    if mult == 1 << 15:
        mult, shift = mult >> 1, shift - 1
    if not 0 <= shift <= SHIFT_MAX:
        raise ValueError(f"factor: given {c} with shift {shift}, allowed shifts 0..{SHIFT_MAX}")
    return mult, shift
