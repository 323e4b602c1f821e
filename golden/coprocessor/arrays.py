# SPDX-License-Identifier: Apache-2.0
"""The coprocessor's functions of `functions` and `floats` for whole arrays of bit patterns.

A function is evaluated in double first. Where all values within the margin of that formula round
alike, the result is decided; elsewhere the function of one number decides. Margins are relative
errors and generous: one that is twice too large costs twice as many exact evaluations (with the
largest one, 1 in 2^18), one that is too small would be a wrong result.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from golden.coprocessor import functions
from golden.coprocessor.floats import INF32, NAN32, SIGN32, double_bits, double_value

Words = npt.NDArray[np.uint32]
Doubles = npt.NDArray[np.float64]

EXP_MARGIN = 2.0**-46
"""Of numpy's exp: 64 units in the last place; it and the C libraries state below one."""
RSQRT_MARGIN = 2.0**-50
"""Of 1 / sqrt(x): IEEE 754 has both rounded to nearest, 2^-53 + 2^-53 together."""
GELU_MARGIN = 2.0**-43
"""Of x * erfc(-x / sqrt 2) / 2 below 16: the argument is off by at most 2^-52, and erfc(t) passes
that on multiplied by up to 2 t^2 + 2 <= 227 for t < 15 / sqrt 2: 2^-44.2. The C library's erfc, a
few units of 2^-53, and two more roundings stay below 2^-48."""
TINY = 2.0**-64
"""GELU of numbers below this lies between x / 2 and the next double above."""
_GELU_INT8 = np.array([functions.gelu_int8(x) for x in range(256)], np.uint32)


def values(bits: Words) -> Doubles:
    """Return the numbers of float32 patterns, in double."""
    with np.errstate(invalid="ignore"):
        return bits.view(np.float32).astype(np.float64)


def nearest(numbers: Doubles) -> Words:
    """Return the float32 patterns that are nearest to doubles."""
    with np.errstate(all="ignore"):
        return _canonical(numbers.astype(np.float32))


def exp_double(bits: Words) -> Doubles:
    """Return exp(x) of each float32, within EXP_MARGIN."""
    with np.errstate(all="ignore"):
        return np.exp(values(bits))


def gelu_double(bits: Words) -> Doubles:
    """Return x * erfc(-x / sqrt 2) / 2 of float32 above -15 and below 16, within GELU_MARGIN."""
    x = values(bits)
    arguments = (x * -math.sqrt(0.5)).tolist()
    return x * np.fromiter(map(math.erfc, arguments), np.float64, x.size) / 2


def rsqrt_double(bits: Words) -> Doubles:
    """Return 1 / sqrt(x) of each float32, inf for both zeros, within RSQRT_MARGIN."""
    with np.errstate(all="ignore"):
        return np.abs(1 / np.sqrt(values(bits)))


def exp_float32(bits: Words) -> Words:
    """Return exp(x) of each float32."""
    return _decided(bits, exp_double(bits), EXP_MARGIN, functions.exp_float32)


def gelu_float32(bits: Words) -> Words:
    """Return x * (1 + erf(x / sqrt 2)) / 2 of each float32; -0 for -inf."""
    x = values(bits)
    size = np.abs(x)
    result = np.where(np.isnan(x), np.uint32(NAN32), bits)
    result[x <= -15] = SIGN32
    tiny = (size < TINY) & (x != 0)
    # x * (1/2 + x / sqrt(2 pi) + ...): above x / 2 for either sign, by less than 2^-64 of it. The
    # next double above is on the same side of every float32 and every middle of two.
    result[tiny] = nearest(np.nextafter(x[tiny] / 2, np.inf))
    inside = (x > -15) & (x < 16) & (size >= TINY)
    some = bits[inside]
    result[inside] = _decided(some, gelu_double(some), GELU_MARGIN, functions.gelu_float32)
    return result


def rsqrt_float32(bits: Words) -> Words:
    """Return 1 / sqrt(x) of each float32; both zeros give +inf, negative numbers NaN."""
    return _decided(bits, rsqrt_double(bits), RSQRT_MARGIN, functions.rsqrt_float32)


def exp_q16_16(bits: Words) -> Words:
    """Return rint(2^16 * exp(x / 2^16)) of each signed integer, at most 0x7FFFFFFF."""
    with np.errstate(over="ignore", under="ignore"):
        power = np.exp(bits.view(np.int32) / 65536) * 65536
    low, high = (np.rint(power * (1 + step)) for step in (-EXP_MARGIN, EXP_MARGIN))
    result = np.minimum(low, functions.INT32_MAX).astype(np.uint32)
    return _asked(bits, result, (low != high) & (low < functions.INT32_MAX), functions.exp_q16_16)


def rsqrt_q16_16(bits: Words) -> Words:
    """Return rint(2^24 / sqrt(x)) of each signed integer, 0x7FFFFFFF unless it is positive.

    Double decides: (2 k + 1)^2 * x is never 2^50, so 2^24 / sqrt(x) is at least 2^-51 of itself
    away from each k + 1/2, and root and quotient together are off by at most 2^-52.
    """
    x = bits.view(np.int32)
    root = np.rint(2.0**24 / np.sqrt(np.maximum(x, 1).astype(np.float64)))
    return np.where(x > 0, root, functions.INT32_MAX).astype(np.uint32)


def gelu_int8(bits: Words) -> Words:
    """Return rint(32 * gelu(x / 32)) of the low 8 bits of each word, sign-extended."""
    result: Words = _GELU_INT8[bits & 0xFF]
    return result


def add_float32(a: Words, b: Words) -> Words:
    """Return a + b of each pair."""
    with np.errstate(all="ignore"):
        return _canonical(np.add(a.view(np.float32), b.view(np.float32)))


def subtract_float32(a: Words, b: Words) -> Words:
    """Return a - b of each pair."""
    with np.errstate(all="ignore"):
        return _canonical(np.subtract(a.view(np.float32), b.view(np.float32)))


def multiply_float32(a: Words, b: Words) -> Words:
    """Return a * b of each pair."""
    with np.errstate(all="ignore"):
        return _canonical(np.multiply(a.view(np.float32), b.view(np.float32)))


def divide_float32(a: Words, b: Words) -> Words:
    """Return a / b of each pair."""
    with np.errstate(all="ignore"):
        return _canonical(np.divide(a.view(np.float32), b.view(np.float32)))


def relu_float32(bits: Words) -> Words:
    """Return max(x, +0) of each float32."""
    return _canonical(np.where(bits < SIGN32, bits, _signed_nan_or_zero(bits)).view(np.float32))


def maximum_float32(bits: Words) -> int:
    """Return the largest of all; NaN if one is, +0 above -0, -inf of none."""
    if np.isnan(bits.view(np.float32)).any():
        return NAN32
    # As integers, sizes order positive numbers upwards and negative ones downwards.
    ordered = np.where(bits < SIGN32, bits ^ np.uint32(SIGN32), ~bits)
    last = int(np.max(ordered, initial=~(SIGN32 | INF32) & 0xFFFF_FFFF))
    return last ^ SIGN32 if last & SIGN32 else ~last & 0xFFFF_FFFF


def sum_double(total: int, numbers: Doubles) -> int:
    """Return the double total + numbers[0] + numbers[1] + ..., rounded after each term."""
    with np.errstate(all="ignore"):
        sums = np.add.accumulate(np.concatenate([[double_value(total)], numbers]))
    return double_bits(float(sums[-1]))


def multiply_add_double(total: int, a: Words, b: Words) -> int:
    """Return the double total + a[0] * b[0] + a[1] * b[1] + ..., rounded after each term."""
    with np.errstate(all="ignore"):
        return sum_double(total, values(a) * values(b))


def _canonical(numbers: npt.NDArray[np.float32]) -> Words:
    """Return the patterns of float32; of a NaN the canonical one."""
    return np.where(np.isnan(numbers), np.uint32(NAN32), numbers.view(np.uint32))


def _signed_nan_or_zero(bits: Words) -> Words:
    """Return each NaN as it is, and 0 for all else."""
    return np.where(np.isnan(bits.view(np.float32)), bits, np.uint32(0))


def _decided(bits: Words, numbers: Doubles, margin: float, function: Callable[[int], int]) -> Words:
    """Return what numbers within a relative margin round to, or else the function of the input."""
    with np.errstate(all="ignore"):
        low, high = (nearest(numbers * (1 + step)) for step in (-margin, margin))
    return _asked(bits, low, low != high, function)


def _asked(
    bits: Words, result: Words, doubtful: npt.NDArray[np.bool_], function: Callable[[int], int]
) -> Words:
    """Return the results, doubtful ones replaced by the function of the input."""
    for index in np.flatnonzero(doubtful):
        result[index] = function(int(bits[index]))
    return result
