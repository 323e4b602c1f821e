# SPDX-License-Identifier: Apache-2.0
"""Functions of one number, correctly rounded: from a bit pattern to a bit pattern.

The true value of exp and GELU is irrational except at a few places, so it is never half-way
between two results for ever: `mpmath` evaluates it with more and more bits until all values within
its error round alike (Ziv's strategy). Roots are decided by integers alone.

`golden.coprocessor.arrays` has the same functions for whole arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath

from golden.coprocessor.floats import (
    INF32,
    NAN32,
    SIGN32,
    float32_value,
    is_nan32,
    nearest_float32,
)
from golden.gelu import gelu

INT32_MAX = 0x7FFF_FFFF
FIRST_PRECISION = 100
"""Bits of the first evaluation."""
LOST_BITS = 16
"""Bits of an evaluation that are not relied on; mpmath promises all but the last few."""


def signed32(bits: int) -> int:
    """Return 32 bits as a signed integer."""
    return (bits & 0xFFFF_FFFF ^ SIGN32) - SIGN32


def exp_float32(bits: int) -> int:
    """Return exp(x) of a float32.

    Beyond -104 and 89 the result is past the smallest and the largest number: half of the smallest
    is exp(-103.97...), the end of the numbers exp(88.72...).
    """
    if is_nan32(bits):
        return NAN32
    x = float32_value(bits)
    if x <= -104 or x >= 89:
        return 0 if x < 0 else INF32
    return _rounded(lambda: mpmath.exp(x), nearest_float32)


def gelu_float32(bits: int) -> int:
    """Return x * (1 + erf(x / sqrt 2)) / 2 of a float32; -0 for -inf.

    Written as x * erfc(-x / sqrt 2) / 2, where nothing cancels. From 16 on it is x to more than
    100 bits; below -15 it is less than half of the smallest number.
    """
    if is_nan32(bits):
        return NAN32
    x = float32_value(bits)
    if x == 0 or x >= 16:
        return bits
    if x <= -15:
        return SIGN32
    return _rounded(lambda: mpmath.erfc(-x / mpmath.sqrt(2)) * x / 2, nearest_float32)


def rsqrt_float32(bits: int) -> int:
    """Return 1 / sqrt(x) of a float32.

    Both zeros give +inf, +inf gives +0, everything negative NaN.
    """
    if is_nan32(bits):
        return NAN32
    x = float32_value(bits)
    if x <= 0:
        return INF32 if x == 0 else NAN32
    if bits == INF32:
        return 0
    numerator, denominator = x.as_integer_ratio()
    exponent = 1 - denominator.bit_length()
    if exponent % 2:
        numerator, exponent = numerator * 2, exponent - 1
    # 64 bits below the point; the last bit stands for all that follow.
    scale = 64 + numerator.bit_length()
    root = math.isqrt((1 << 2 * scale) // numerator)
    inexact = root * root * numerator != 1 << 2 * scale
    return nearest_float32(2 * root + inexact, -exponent // 2 - scale - 1)


def exp_q16_16(bits: int) -> int:
    """Return rint(2^16 * exp(x / 2^16)) of a signed integer, at most 0x7FFFFFFF.

    Below -16 * 2^16 the result is 0, since 2^16 * exp(-16) < 1/2; from 11 * 2^16 on it is past
    the largest.
    """
    x = signed32(bits)
    if x < -16 << 16 or x >= 11 << 16:
        return 0 if x < 0 else INT32_MAX
    power = _rounded(lambda: mpmath.ldexp(mpmath.exp(mpmath.ldexp(x, -16)), 16), _rint)
    return min(power, INT32_MAX)


def rsqrt_q16_16(bits: int) -> int:
    """Return rint(2^24 / sqrt(x)) of a signed integer, 0x7FFFFFFF unless it is positive.

    That is 2^16 / sqrt(x / 2^16). There are no ties: 2^50 / (2 k + 1)^2 is no integer below 2^31.
    """
    x = signed32(bits)
    if x <= 0:
        return INT32_MAX
    return (math.isqrt((1 << 50) // x) + 1) // 2


def gelu_int8(bits: int) -> int:
    """Return rint(32 * gelu(x / 32)) of the low 8 bits as a signed integer, sign-extended.

    In double: none of the 256 values comes near a half.
    """
    x = (bits & 0xFF ^ 0x80) - 0x80
    return min(max(round(32 * gelu(x / 32)), -128), 127) & 0xFFFF_FFFF


def _rounded(evaluate: Callable[[], mpmath.mpf], rounding: Callable[[int, int], int]) -> int:
    """Round a real number.

    Args:
        evaluate: gives the number to the working precision of mpmath, but for LOST_BITS.
        rounding: rounds significand * 2^exponent.

    """
    precision = FIRST_PRECISION
    while True:
        with mpmath.workprec(precision):
            value = evaluate()
            size, exponent = value.man_exp
        size, exponent = size << precision, exponent - precision
        doubt = size >> (precision - LOST_BITS)
        low, high = (rounding(size + step, exponent) for step in (-doubt, doubt))
        if low == high:
            return rounding(-size if value < 0 else size, exponent)
        precision *= 2


def _rint(significand: int, exponent: int) -> int:
    """Return the integer that is nearest to significand * 2^exponent, for a negative exponent."""
    return ((significand >> (-exponent - 1)) + 1) >> 1
