# SPDX-License-Identifier: Apache-2.0
"""Arithmetic of the coprocessor on bit patterns, against numpy and exact fractions."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from golden.coprocessor import floats
from tests.python.coprocessor.coprocessor_oracles import is_nearest, nearest, number, patterns
from tests.python.golden.golden_support import Rng, seeded

INF, NEGATIVE_INF, NAN, NAN64 = 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000, 0x7FF8_0000_0000_0000
ONE, NEGATIVE_ZERO = 0x3F80_0000, 0x8000_0000
SPECIAL = (
    0,
    NEGATIVE_ZERO,
    1,
    0x8000_0001,
    0x007F_FFFF,
    0x0080_0000,
    ONE,
    0xBF80_0000,
    0x7F7F_FFFF,
    0xFF7F_FFFF,
    INF,
    NEGATIVE_INF,
    NAN,
    0x7F80_0001,
    0xFFFF_FFFF,
)


def pairs(rng: Rng, count: int) -> list[tuple[int, int]]:
    """Return operands: any with any, equal exponents, products and quotients below the normals."""
    anything = patterns(rng, 2 * count, 2.0**-149, 3.4e38)
    low = patterns(rng, count, 2.0**-149, 2.0**-100)
    middle = patterns(rng, 2 * count, 2.0**-30, 2.0**30)
    near = [(bits, (bits ^ 0x8000_0000) + step) for step, bits in enumerate(middle[:count])]
    return [
        *((a, b) for a in SPECIAL for b in SPECIAL),
        *zip(anything[::2], anything[1::2], strict=True),
        *zip(middle[::2], middle[1::2], strict=True),
        *zip(low, middle[:count], strict=True),
        *near,
    ]


def bits_of(value: np.float32) -> int:
    """Return the pattern of numpy's float32, of a NaN the canonical one."""
    return NAN if np.isnan(value) else int(value.view(np.uint32))


def test_nearest_float32() -> None:
    """Any significand and exponent against fractions: ties, subnormals, carries, overflow."""
    rng = seeded(1)
    directed = [
        (3, -150),
        (1, -150),
        (-3, -151),
        (5, -151),
        (0x1FF_FFFF, 0),
        (0x1FF_FFFD, 0),
        ((1 << 25) - 1, 103),
        ((1 << 25) - 1, 102),
        ((1 << 24) - 1, -150),
        (1, 127),
        (1, -149),
        (1, -200),
        (-1, 40),
    ]
    sizes = [int(x) for x in rng.integers(1, 1 << 62, 4000)]
    shifts = [int(x) for x in rng.integers(0, 60, 4000)]
    powers = [int(x) for x in rng.integers(-220, 80, 4000)]
    for size, exponent in [
        *directed,
        *((s >> k, e) for s, k, e in zip(sizes, shifts, powers, strict=True)),
    ]:
        true = Fraction(size) * Fraction(2) ** exponent
        result = floats.nearest_float32(size, exponent)
        assert result == nearest(true) and is_nearest(result, true), (size, exponent)
    assert floats.nearest_float32(0, 5) == 0
    assert floats.nearest_float32(1, 128) == INF and floats.nearest_float32(-1, 300) == NEGATIVE_INF


@pytest.mark.parametrize(
    ("golden", "oracle"),
    [
        (floats.add_float32, np.add),
        (floats.subtract_float32, np.subtract),
        (floats.multiply_float32, np.multiply),
        (floats.divide_float32, np.divide),
    ],
)
def test_arithmetic_is_that_of_numpy(golden: Callable[[int, int], int], oracle: np.ufunc) -> None:
    """Numpy's float32, whose NaN may have any payload."""
    with np.errstate(all="ignore"):
        for a, b in pairs(seeded(2), 1500):
            left, right = (np.uint32(bits).view(np.float32) for bits in (a, b))
            assert golden(a, b) == bits_of(oracle(left, right)), (hex(a), hex(b))


def test_arithmetic_is_exact_but_for_one_rounding() -> None:
    """Finite results against fractions."""
    for a, b in pairs(seeded(3), 400):
        if any(bits & 0x7FFF_FFFF >= INF for bits in (a, b)):
            continue
        x, y = number(a), number(b)
        assert is_nearest(floats.add_float32(a, b), x + y), (hex(a), hex(b))
        assert is_nearest(floats.multiply_float32(a, b), x * y), (hex(a), hex(b))
        if y:
            assert is_nearest(floats.divide_float32(a, b), x / y), (hex(a), hex(b))


def test_maximum_and_relu() -> None:
    """Any NaN gives the canonical one, +0 is above -0; what is negative becomes +0."""
    for a, b in pairs(seeded(4), 500):
        left, right = (np.uint32(bits).view(np.float32) for bits in (a, b))
        assert floats.maximum_float32(a, b) == floats.maximum_float32(b, a)
        if left != right:
            assert floats.maximum_float32(a, b) == bits_of(np.maximum(left, right))
        expected = NAN if np.isnan(left) else bits_of(left) if left > 0 else 0
        assert floats.relu_float32(a) == expected
    assert floats.maximum_float32(0, NEGATIVE_ZERO) == 0
    assert floats.maximum_float32(NEGATIVE_ZERO, NEGATIVE_ZERO) == NEGATIVE_ZERO
    assert floats.is_nan32(0xFFC0_0000) and not floats.is_nan32(NEGATIVE_INF)


def test_double_sums_round_once() -> None:
    """Each sum of a chain against fractions: Python divides integers correctly rounded."""
    rng = seeded(5)
    total = 0
    for a, b in zip(*(patterns(rng, 2000, 2.0**-70, 2.0**70) for _ in range(2)), strict=True):
        before = Fraction(struct.unpack("<d", struct.pack("<Q", total))[0])
        exact = before + number(a) * number(b)
        total = floats.multiply_add_double(total, a, b)
        assert floats.double_value(total) == exact.numerator / exact.denominator
        one = floats.double_of_float32(a)
        again = Fraction(floats.double_value(total)) + number(a)
        assert floats.double_value(floats.add_double(total, one)) == (
            again.numerator / again.denominator
        )


@pytest.mark.parametrize(
    ("total", "a", "b", "result"),
    [
        (0x7FF0_0000_0000_0000, ONE, NEGATIVE_INF, NAN64),
        (0, 0, INF, NAN64),
        (0, 0xFFC0_0001, ONE, NAN64),
        (0xFFF8_0000_0000_0001, ONE, ONE, NAN64),
        (0x8000_0000_0000_0000, NEGATIVE_ZERO, ONE, 0x8000_0000_0000_0000),
        (0, NEGATIVE_ZERO, ONE, 0),
        (0, 1, 1, 0x2D50_0000_0000_0000),
        (0, 0x7F7F_FFFF, 0x7F7F_FFFF, 0x4FEF_FFFF_C000_0020),
        (0x3FF0_0000_0000_0000, 0x3280_0000, 0x3200_0000, 0x3FF0_0000_0000_0000),
    ],
)
def test_double_special_values(total: int, a: int, b: int, result: int) -> None:
    """What is undefined, signed zeros, the smallest and the largest product."""
    assert floats.multiply_add_double(total, a, b) == result


def test_conversions() -> None:
    """Between patterns and numbers as `struct` and numpy have them."""
    rng = seeded(6)
    with np.errstate(all="ignore"):
        for raw in rng.integers(0, 1 << 64, 5000, dtype=np.uint64):
            exponent = int(rng.integers(870, 1160))
            for bits in (int(raw), int(raw) & 0x800F_FFFF_FFFF_FFFF | exponent << 52):
                value = np.uint64(bits).view(np.float64)
                assert floats.float32_of_double(bits) == bits_of(value.astype(np.float32))
                assert floats.float32_bits(float(value)) == floats.float32_of_double(bits)
                expected = NAN64 if np.isnan(value) else bits
                assert floats.double_bits(floats.double_value(bits)) == expected
    for bits in [*SPECIAL, *patterns(rng, 500, 2.0**-149, 3.4e38)]:
        single = floats.float32_value(bits)
        if math.isnan(single):
            assert floats.double_of_float32(bits) == NAN64
        else:
            assert bits_of(np.float32(single)) == bits
            assert floats.double_of_float32(bits) == int(np.float64(single).view(np.uint64))
