# SPDX-License-Identifier: Apache-2.0
"""IEEE 754 numbers as bit patterns: float32 in 32 bits, double in 64.

Every operation is exact up to one rounding to nearest even. Subnormals are numbers like others,
a NaN that comes out is always the canonical one.
"""

from __future__ import annotations

import math
import struct

SIGN32 = 0x8000_0000
INF32 = 0x7F80_0000
NAN32 = 0x7FC0_0000
"""The canonical NaN of float32."""
NAN64 = 0x7FF8_0000_0000_0000
"""The canonical NaN of double."""


def float32_value(bits: int) -> float:
    """Return the number that 32 bits are; every float32 is a double."""
    value: float = struct.unpack("<f", struct.pack("<I", bits & 0xFFFF_FFFF))[0]
    return value


def double_value(bits: int) -> float:
    """Return the number that 64 bits are."""
    value: float = struct.unpack("<d", struct.pack("<Q", bits & 0xFFFF_FFFF_FFFF_FFFF))[0]
    return value


def double_bits(value: float) -> int:
    """Return the 64 bits of a number."""
    if math.isnan(value):
        return NAN64
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return bits


def float32_bits(value: float) -> int:
    """Return the float32 that is nearest to a number."""
    if math.isnan(value):
        return NAN32
    sign = SIGN32 if math.copysign(1.0, value) < 0 else 0
    if math.isinf(value):
        return sign | INF32
    numerator, denominator = value.as_integer_ratio()
    return sign | nearest_float32(abs(numerator), 1 - denominator.bit_length())


def nearest_float32(significand: int, exponent: int) -> int:
    """Return the float32 that is nearest to significand * 2^exponent, ties to even.

    Args:
        significand: any integer; its sign is that of the result, 0 gives +0.
        exponent: any integer.

    """
    if significand == 0:
        return 0
    sign, size = (SIGN32 if significand < 0 else 0), abs(significand)
    leading = size.bit_length() - 1 + exponent
    unit = max(leading, -126) - 23
    shift = unit - exponent
    if shift <= 0:
        kept = size << -shift
    else:
        kept, rest = size >> shift, size & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        kept += rest > half or (rest == half and kept & 1)
    # A kept of 2^24 carries into the exponent, beyond the largest number into infinity.
    return sign | min(((unit + 149) << 23) + kept, INF32)


def is_nan32(bits: int) -> bool:
    """Whether 32 bits are any NaN."""
    return bits & ~SIGN32 > INF32


def add_float32(a: int, b: int) -> int:
    """Return a + b.

    The sum of doubles is rounded to float32. Two roundings give what one would: 53 bits are at
    least 2 * 24 + 2 (Figueroa, When is double rounding innocuous?, 1995), and sums below the
    normal numbers are exact.
    """
    return float32_bits(float32_value(a) + float32_value(b))


def subtract_float32(a: int, b: int) -> int:
    """Return a - b."""
    return add_float32(a, b ^ SIGN32)


def multiply_float32(a: int, b: int) -> int:
    """Return a * b; the product of two float32 is exact in double."""
    return float32_bits(float32_value(a) * float32_value(b))


def divide_float32(a: int, b: int) -> int:
    """Return a / b; 0/0 and inf/inf are NaN, other divisions by zero infinite.

    Two roundings give what one would, as in `add_float32`; below the normal numbers because a
    quotient that is no midpoint of p bits has a relative distance of 2^-(24+p) from it.
    """
    dividend, divisor = float32_value(a), float32_value(b)
    if divisor == 0:
        undefined = dividend == 0 or math.isnan(dividend)
        return NAN32 if undefined else (a ^ b) & SIGN32 | INF32
    return float32_bits(dividend / divisor)


def maximum_float32(a: int, b: int) -> int:
    """Return the larger of both; NaN if one is, and +0 is above -0."""
    if is_nan32(a) or is_nan32(b):
        return NAN32
    return max(a, b, key=lambda bits: (float32_value(bits), not bits & SIGN32))


def relu_float32(bits: int) -> int:
    """Return max(x, +0); negative numbers and -0 give +0."""
    if is_nan32(bits):
        return NAN32
    return 0 if bits & SIGN32 else bits


def add_double(a: int, b: int) -> int:
    """Return the double a + b of two doubles."""
    return double_bits(double_value(a) + double_value(b))


def multiply_add_double(total: int, a: int, b: int) -> int:
    """Return the double total + a * b of a double and two float32, rounded once.

    The product has at most 48 bits and an exponent in -298..255: it is exact in double.
    """
    return double_bits(double_value(total) + float32_value(a) * float32_value(b))


def float32_of_double(bits: int) -> int:
    """Return the float32 that is nearest to a double."""
    return float32_bits(double_value(bits))


def double_of_float32(bits: int) -> int:
    """Return the double of the same value."""
    return double_bits(float32_value(bits))
