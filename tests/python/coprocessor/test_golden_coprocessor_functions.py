# SPDX-License-Identifier: Apache-2.0
"""Functions of the coprocessor: the nearest result for every input, and the special values."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from golden.coprocessor import arrays, boundaries, functions
from tests.python.coprocessor.coprocessor_oracles import (
    exp_decimal,
    gelu_decimal,
    is_nearest,
    number,
    patterns,
)
from tests.python.golden.golden_support import seeded

INF, NEGATIVE_INF, NAN = 0x7F80_0000, 0xFF80_0000, 0x7FC0_0000
NANS = (0x7F80_0001, 0x7FC0_0000, 0x7FFF_FFFF, 0xFF80_0001, 0xFFC1_2345)
SMALLEST, LARGEST = 2.0**-149, 3.4028234663852886e38


@pytest.mark.parametrize(
    "function", [functions.exp_float32, functions.gelu_float32, functions.rsqrt_float32]
)
def test_every_nan_gives_the_canonical_one(function: Callable[[int], int]) -> None:
    """Payload and sign of a NaN are lost."""
    assert {function(bits) for bits in NANS} == {NAN}


def test_exp_float32_is_nearest() -> None:
    """Exp against Python's decimals, in the normal numbers, the subnormal ones and around 1."""
    rng = seeded(1)
    near = (0x42B1_7217, 0xC2CF_F1B4, 0xC2AE_AC50, 0xC2AE_AC4F, 0x3380_0000, 0x3380_0001)
    for bits in [
        *near,
        *patterns(rng, 1500, 2.0**-30, 103.0),
        *(bits | 0x8000_0000 for bits in patterns(rng, 300, 87.0, 104.5)),
    ]:
        x = number(bits)
        if x < 88:
            assert is_nearest(functions.exp_float32(bits), exp_decimal(x)), hex(bits)


@pytest.mark.parametrize(
    ("bits", "result"),
    [
        (0x0000_0000, 0x3F80_0000),
        (0x8000_0000, 0x3F80_0000),
        (0x0000_0001, 0x3F80_0000),
        (0x3F80_0000, 0x402D_F854),
        (NEGATIVE_INF, 0),
        (INF, INF),
        (0x42B1_7217, 0x7F7F_FF84),
        (0x42B1_7218, INF),
        (0x7F7F_FFFF, INF),
        (0xC2CF_F1B4, 1),
        (0xC2CF_F1B5, 0),
        (0xFF7F_FFFF, 0),
    ],
)
def test_exp_float32_at_its_ends(bits: int, result: int) -> None:
    """Zero, infinities, the first overflow and the first underflow."""
    assert functions.exp_float32(bits) == result


def test_gelu_float32_is_nearest() -> None:
    """GELU against a series in Python's decimals; where the result is subnormal as well."""
    rng = seeded(2)
    for bits in [
        *patterns(rng, 700, SMALLEST, 2.0**-20),
        *patterns(rng, 700, 2.0**-30, 16.5),
        *patterns(rng, 200, SMALLEST, 2.0**-140),
        *(bits | 0x8000_0000 for bits in patterns(rng, 300, 12.5, 14.5)),
    ]:
        assert is_nearest(functions.gelu_float32(bits), gelu_decimal(number(bits))), hex(bits)


@pytest.mark.parametrize(
    ("bits", "result"),
    [
        (0x0000_0000, 0x0000_0000),
        (0x8000_0000, 0x8000_0000),
        (0x0000_0001, 0x0000_0001),
        (0x8000_0001, 0x8000_0000),
        (0x8000_0003, 0x8000_0001),
        (0x0000_0003, 0x0000_0002),
        (INF, INF),
        (NEGATIVE_INF, 0x8000_0000),
        (0x4180_0000, 0x4180_0000),
        (0x7F7F_FFFF, 0x7F7F_FFFF),
        (0xC165_B274, 0x8000_0001),
        (0xC165_B275, 0x8000_0000),
        (0xFF7F_FFFF, 0x8000_0000),
    ],
)
def test_gelu_float32_at_its_ends(bits: int, result: int) -> None:
    """Zeros, infinities, halves of subnormal numbers and the first underflow."""
    assert functions.gelu_float32(bits) == result


def test_rsqrt_float32_is_nearest() -> None:
    """The square of each half-way point, times x, lies on the right side of 1."""
    rng = seeded(3)
    ones = [(e << 23) + s for e in range(1, 255) for s in (-1, 0, 1)]
    for bits in [*ones, *(bits & 0x7FFF_FFFF for bits in patterns(rng, 4000, SMALLEST, LARGEST))]:
        x, result = number(bits), functions.rsqrt_float32(bits)
        below, above = (
            (number(result) + number(result + step)) / 2 if result + step else Fraction(0)
            for step in (-1, 1)
        )
        assert below * below * x < 1 < above * above * x, hex(bits)


@pytest.mark.parametrize(
    ("bits", "result"),
    [
        (0x0000_0000, INF),
        (0x8000_0000, INF),
        (INF, 0),
        (NEGATIVE_INF, NAN),
        (0xBF80_0000, NAN),
        (0x8000_0001, NAN),
        (0x3F80_0000, 0x3F80_0000),
        (0x4080_0000, 0x3F00_0000),
        (0x0000_0001, 0x64B5_04F3),
    ],
)
def test_rsqrt_float32_special_values(bits: int, result: int) -> None:
    """Zeros, infinities, negative numbers."""
    assert functions.rsqrt_float32(bits) == result


def test_exp_q16_16_is_nearest() -> None:
    """Exp in Q16.16 against Python's decimals; no result lies half-way."""
    rng = seeded(4)
    inputs = [int(x) for x in rng.integers(-772243, 681391, 1500, endpoint=True)]
    for x in [*inputs, *range(-772245, -772240), *range(-3, 4), 681390, 681391]:
        true = exp_decimal(Fraction(x, 65536)) * 65536
        assert abs(functions.exp_q16_16(x & 0xFFFF_FFFF) - true) < Fraction(1, 2), x


@pytest.mark.parametrize(
    ("x", "result"),
    [
        (0, 65536),
        (-65536, 24109),
        (-8 << 16, 22),
        (681391, 2147470397),
        (681392, 0x7FFF_FFFF),
        (0x7FFF_FFFF, 0x7FFF_FFFF),
        (-772243, 1),
        (-772244, 0),
        (-0x8000_0000, 0),
    ],
)
def test_exp_q16_16_at_its_ends(x: int, result: int) -> None:
    """One, the last result below saturation, the first that is not zero."""
    assert functions.exp_q16_16(x & 0xFFFF_FFFF) == result


def test_rsqrt_q16_16_is_nearest() -> None:
    """(2 r - 1)^2 x < 2^50 < (2 r + 1)^2 x: nothing lies half-way."""
    rng = seeded(5)
    powers = [(1 << e) + step for e in range(31) for step in (-1, 0, 1)]
    inputs = [int(x) for x in 2.0 ** (31 * rng.random(5000))]
    for x in [*powers, *inputs, 0x7FFF_FFFF]:
        if x > 0:
            result = functions.rsqrt_q16_16(x)
            assert (2 * result - 1) ** 2 * x < 1 << 50 < (2 * result + 1) ** 2 * x, x


@pytest.mark.parametrize(
    ("x", "result"),
    [
        (0, 0x7FFF_FFFF),
        (-1, 0x7FFF_FFFF),
        (-0x8000_0000, 0x7FFF_FFFF),
        (1, 1 << 24),
        (1 << 16, 65536),
        (4 << 16, 32768),
        (1 << 14, 131072),
        (100 << 16, 6554),
    ],
)
def test_rsqrt_q16_16_named_values(x: int, result: int) -> None:
    """What is not positive, the smallest number, and roots that are known."""
    assert functions.rsqrt_q16_16(x & 0xFFFF_FFFF) == result


def test_gelu_int8_is_nearest() -> None:
    """All 256 inputs against `math.erf`, and none near a half; the upper 24 bits do not matter."""
    for x in range(-128, 128):
        true = x * (1 + math.erf(x / 32 / math.sqrt(2))) / 2
        result = functions.gelu_int8(x & 0xFF)
        assert functions.signed32(result) == round(true)
        assert abs(abs(true - math.floor(true)) - 0.5) > 1e-3 or x == 0
        assert functions.gelu_int8((x & 0xFF) | 0x1234_5600) == result
    assert functions.signed32(functions.gelu_int8(127)) == 127


def test_signed32() -> None:
    """The two's complement of 32 bits."""
    for x in (0, 1, -1, 0x7FFF_FFFF, -0x8000_0000):
        assert functions.signed32(x & 0xFFFF_FFFF) == x


def rsqrt_fraction(x: Fraction) -> Fraction:
    """Return 1 / sqrt(x) to 150 bits."""
    return Fraction(math.isqrt((1 << 300) // x), 1 << 150)


@pytest.mark.parametrize("name", sorted(boundaries.NEAREST))
def test_inputs_next_to_a_boundary(name: str) -> None:
    """The search finds each input of the list and no other around it; both functions round it."""
    exact = {
        "exp_float32": exp_decimal,
        "gelu_float32": gelu_decimal,
        "rsqrt_float32": rsqrt_fraction,
    }[name]
    listed = boundaries.NEAREST[name]
    found = []
    for bits in listed:
        around = np.arange(bits - 5000, bits + 5000, dtype=np.uint32)
        found += boundaries.near(name, around)
        assert is_nearest(getattr(functions, name)(bits), exact(number(bits))), hex(bits)
        assert boundaries.distance(name, bits) <= boundaries.NEAR
    assert tuple(found) == listed
    vector = getattr(arrays, name)(np.array(listed, np.uint32))
    assert vector.tolist() == [getattr(functions, name)(bits) for bits in listed]


def test_distance_of_a_boundary() -> None:
    """exp(-2^-25) = 1 - 2^-25 + 2^-51 - ...: 2^-51 from a middle, whose leading bit is 2^-1."""
    assert boundaries.distance("exp_float32", 0xB300_0000) == pytest.approx(2.0**-50, rel=1e-6)
    # 1 lies half a place below the middle above it.
    assert boundaries.distance("rsqrt_float32", 0x3F80_0000) == 2.0**-24
