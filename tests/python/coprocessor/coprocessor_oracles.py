# SPDX-License-Identifier: Apache-2.0
"""What the tests of the coprocessor's numbers ask instead of golden: fractions and decimals."""

from __future__ import annotations

import struct
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache

import numpy as np

from tests.python.golden.golden_support import Rng

DIGITS = 130
"""Decimal digits; GELU at -14 loses 46 of them, the x^2 of the smallest number is 45 below x."""


def number(bits: int) -> Fraction:
    """Return the finite float32 of 32 bits."""
    return Fraction(struct.unpack("<f", struct.pack("<I", bits))[0])


def is_nearest(bits: int, true: Fraction) -> bool:
    """Whether 32 bits are the float32 nearest to a number, ties to even.

    The neighbour above the largest number counts as 2^128, as IEEE 754 has it.
    """
    size = bits & 0x7FFF_FFFF
    if true and (true < 0) != bool(bits >> 31):
        return False

    def value(pattern: int) -> Fraction:
        return Fraction(2) ** 128 if pattern == 0x7F80_0000 else number(pattern)

    goal, here = abs(true), value(size)
    if size and goal < here:
        lower = (here + value(size - 1)) / 2
        return goal > lower or (goal == lower and size % 2 == 0)
    if size < 0x7F80_0000 and goal > here:
        upper = (here + value(size + 1)) / 2
        return goal < upper or (goal == upper and size % 2 == 0)
    return True


def nearest(true: Fraction) -> int:
    """Return the float32 nearest to a number, found by halving; +0 for 0."""
    low, high = 0, 0x7F80_0000
    while low < high:
        middle = (low + high) // 2
        if is_nearest(middle, abs(true)) or number(middle) > abs(true):
            high = middle
        else:
            low = middle + 1
    return low | (0x8000_0000 if true < 0 else 0)


def exp_decimal(x: Fraction) -> Fraction:
    """Return exp(x) to DIGITS digits, by the decimal arithmetic of Python."""
    with localcontext(prec=DIGITS):
        return Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())


@cache
def _root_of_two_pi() -> Decimal:
    """Return sqrt(2 pi); pi = 16 atan(1/5) - 4 atan(1/239) (Machin)."""

    def inverse_tangent(n: int) -> Decimal:
        terms = (Decimal((-1) ** k) / ((2 * k + 1) * Decimal(n) ** (2 * k + 1)) for k in range(120))
        return sum(terms, Decimal(0))

    return (2 * (16 * inverse_tangent(5) - 4 * inverse_tangent(239))).sqrt()


def gelu_decimal(x: Fraction) -> Fraction:
    """Return x * Phi(x), by Phi(x) = 1/2 + phi(x) * (x + x^3/3 + x^5/(3*5) + ...)."""
    with localcontext(prec=DIGITS):
        value = Decimal(x.numerator) / Decimal(x.denominator)
        term = total = value
        square, odd = value * value, 1
        while abs(term) > abs(total) * Decimal(10) ** -DIGITS:
            odd += 2
            term = term * square / odd
            total += term
        density = (-square / 2).exp() / _root_of_two_pi()
        return Fraction(value * (Decimal(1) / 2 + density * total))


def patterns(rng: Rng, count: int, least: float, largest: float) -> list[int]:
    """Return random float32 of both signs whose size is between both bounds, in all exponents."""
    first, last = (int(np.float32(bound).view(np.uint32)) for bound in (least, largest))
    sizes = rng.integers(first, last, count, endpoint=True)
    signs = rng.integers(0, 2, count) << 31
    return [int(bits) for bits in sizes | signs]
