# SPDX-License-Identifier: Apache-2.0
"""The coprocessor's numbers for whole arrays: the same bits as one by one, and sound margins."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest

from golden.coprocessor import arrays, floats, functions
from tests.python.coprocessor.coprocessor_oracles import number, patterns
from tests.python.golden.golden_support import Rng, seeded

Words = npt.NDArray[np.uint32]
NAN64 = 0x7FF8_0000_0000_0000
SPECIAL = np.array(
    [
        *(0, 0x8000_0000, 1, 0x8000_0001, 0x8000_0003, 0x007F_FFFF, 0x0080_0000, 0x0080_0001),
        *(0x1F7F_FFFF, 0x1F80_0000, 0x9F80_0000, 0x3F80_0000, 0xBF80_0000, 0x7F7F_FFFF),
        *(0xFF7F_FFFF, 0x7F80_0000, 0xFF80_0000, 0x7F80_0001, 0xFFFF_FFFF, 0x7FC0_0000),
        *(0x42B1_7217, 0x42B1_7218, 0xC2CF_F1B4, 0xC2CF_F1B5, 0xC165_B274, 0xC165_B275),
        *(0x4180_0000, 0x417F_FFFF, 0xC170_0000, 0xC16F_FFFF, 0x42B2_0000, 0xC2D0_0000),
    ],
    np.uint32,
)


def words(rng: Rng, count: int, least: float = 2.0**-149, largest: float = 3.4e38) -> Words:
    """Return special float32 and random ones between both sizes."""
    return np.concatenate([SPECIAL, np.array(patterns(rng, count, least, largest), np.uint32)])


def integers(rng: Rng, first: int, last: int, count: int) -> Words:
    """Return random integers and those around zero and around both ends."""
    near = [end + step for end in (first, 0, last) for step in (-2, -1, 0, 1, 2)]
    chosen = [int(x) for x in rng.integers(first, last, count, endpoint=True)]
    return np.array([x & 0xFFFF_FFFF for x in [*near, *chosen]], np.uint32)


@pytest.mark.parametrize(
    ("vector", "scalar", "least", "largest"),
    [
        (arrays.exp_float32, functions.exp_float32, 2.0**-30, 110.0),
        (arrays.gelu_float32, functions.gelu_float32, 2.0**-30, 17.0),
        (arrays.gelu_float32, functions.gelu_float32, 2.0**-149, 2.0**-60),
        (arrays.rsqrt_float32, functions.rsqrt_float32, 2.0**-149, 3.4e38),
    ],
)
def test_functions_of_float32(
    vector: Callable[[Words], Words], scalar: Callable[[int], int], least: float, largest: float
) -> None:
    """Special values, the range in which something happens, and any pattern."""
    rng = seeded(1)
    anything = rng.integers(0, 1 << 32, 2000, dtype=np.uint32)
    bits = np.concatenate([words(rng, 6000, least, largest), anything])
    given = bits.copy()
    assert vector(bits).tolist() == [scalar(int(x)) for x in bits]
    assert np.array_equal(bits, given)
    assert vector(bits[:0]).dtype == np.uint32


@pytest.mark.parametrize(
    ("vector", "scalar", "first", "last"),
    [
        (arrays.exp_q16_16, functions.exp_q16_16, -772300, 681400),
        (arrays.exp_q16_16, functions.exp_q16_16, -(1 << 31), (1 << 31) - 1),
        (arrays.rsqrt_q16_16, functions.rsqrt_q16_16, -10, 70000),
        (arrays.rsqrt_q16_16, functions.rsqrt_q16_16, -(1 << 31), (1 << 31) - 1),
        (arrays.gelu_int8, functions.gelu_int8, -(1 << 31), (1 << 31) - 1),
    ],
)
def test_functions_of_integers(
    vector: Callable[[Words], Words], scalar: Callable[[int], int], first: int, last: int
) -> None:
    """Both ends, around zero, and any integer."""
    bits = integers(seeded(2), first, last, 10000) & np.uint32(0xFFFF_FFFF)
    assert vector(bits).tolist() == [scalar(int(x)) for x in bits]


@pytest.mark.parametrize("name", ["EXP_MARGIN", "RSQRT_MARGIN", "GELU_MARGIN"])
def test_doubtful_results_are_asked_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With margins that make many results doubtful all are still right, and the inputs differ."""
    function, scalar, margin = {
        "EXP_MARGIN": (arrays.exp_float32, "exp_float32", 2.0**-25),
        "RSQRT_MARGIN": (arrays.rsqrt_float32, "rsqrt_float32", 2.0**-25),
        "GELU_MARGIN": (arrays.gelu_float32, "gelu_float32", 2.0**-25),
    }[name]
    asked = []
    one = getattr(functions, scalar)

    def counted(bits: int) -> int:
        asked.append(bits)
        result: int = one(bits)
        return result

    bits = np.array(patterns(seeded(3), 1000, 2.0**-3, 13.0), np.uint32)
    expected = function(bits)
    monkeypatch.setattr(arrays, name, margin)
    monkeypatch.setattr(functions, scalar, counted)
    assert np.array_equal(function(bits), expected)
    assert 100 < len(set(asked)) < 1000


@pytest.mark.parametrize(
    ("margin", "formula", "true", "least", "largest"),
    [
        (arrays.EXP_MARGIN, arrays.exp_double, mpmath.exp, 2.0**-30, 88.0),
        (arrays.GELU_MARGIN, arrays.gelu_double, lambda x: x * mpmath.ncdf(x), 2.0**-60, 14.9),
        (arrays.RSQRT_MARGIN, arrays.rsqrt_double, lambda x: 1 / mpmath.sqrt(abs(x)), 0.01, 9.0),
    ],
    ids=["exp", "gelu", "rsqrt"],
)
def test_margins_hold(
    margin: float,
    formula: Callable[[Words], npt.NDArray[np.float64]],
    true: Callable[[Any], Any],
    least: float,
    largest: float,
) -> None:
    """The formula in double, against 200 bits: the error stays below half of its margin."""
    bits = np.array(patterns(seeded(4), 3000, least, largest), np.uint32)
    if formula is arrays.rsqrt_double:
        bits &= np.uint32(0x7FFF_FFFF)
    with mpmath.workprec(200):
        worst = max(
            abs(mpmath.mpf(float(y)) / true(mpmath.mpf(floats.float32_value(int(x)))) - 1)
            for x, y in zip(bits, formula(bits), strict=True)
        )
    assert worst < margin / 2


@pytest.mark.parametrize(
    ("vector", "scalar"),
    [
        (arrays.add_float32, floats.add_float32),
        (arrays.subtract_float32, floats.subtract_float32),
        (arrays.multiply_float32, floats.multiply_float32),
        (arrays.divide_float32, floats.divide_float32),
    ],
)
def test_arithmetic(
    vector: Callable[[Words, Words], Words], scalar: Callable[[int, int], int]
) -> None:
    """Every special value with every other, and random ones of like and unlike size."""
    rng = seeded(5)
    left = np.concatenate(
        [np.repeat(SPECIAL, SPECIAL.size), words(rng, 2000), words(rng, 2000, 0.1, 9.0)]
    )
    right = np.concatenate(
        [np.tile(SPECIAL, SPECIAL.size), words(rng, 2000), words(rng, 2000, 0.1, 9.0)]
    )
    expected = [scalar(int(a), int(b)) for a, b in zip(left, right, strict=True)]
    assert vector(left, right).tolist() == expected


def test_relu_and_maximum() -> None:
    """One by one; of nothing the maximum is -inf."""
    rng = seeded(6)
    bits = words(rng, 2000)
    assert arrays.relu_float32(bits).tolist() == [floats.relu_float32(int(x)) for x in bits]
    numbers = bits[~np.isnan(bits.view(np.float32))]
    for _ in range(300):
        some = rng.choice(numbers, int(rng.integers(1, 6)))
        expected = int(some[0])
        for x in some[1:]:
            expected = floats.maximum_float32(expected, int(x))
        assert arrays.maximum_float32(some) == expected
        if expected & 0x7FFF_FFFF < 0x7F80_0000:
            assert max(number(expected), -(Fraction(2) ** 128)) == max(
                number(int(x)) if int(x) & 0x7FFF_FFFF < 0x7F80_0000 else -(Fraction(2) ** 128)
                for x in some
            )
    assert arrays.maximum_float32(bits) == 0x7FC0_0000
    assert arrays.maximum_float32(bits[:0]) == 0xFF80_0000
    assert arrays.maximum_float32(np.array([0x8000_0000, 0], np.uint32)) == 0
    assert arrays.maximum_float32(np.array([0x8000_0000, 0xFF80_0000], np.uint32)) == 0x8000_0000


def test_sums_go_in_index_order() -> None:
    """Each term rounds; another order gives another sum."""
    rng = seeded(7)
    a, b = (np.array(patterns(rng, 900, 2.0**-20, 2.0**20), np.uint32) for _ in range(2))
    start = floats.double_bits(-1.25)
    total = single = start
    for x, y in zip(a, b, strict=True):
        total = floats.multiply_add_double(total, int(x), int(y))
        single = floats.add_double(single, floats.double_of_float32(int(x)))
    assert arrays.multiply_add_double(start, a, b) == total
    assert arrays.sum_double(start, arrays.values(a)) == single
    assert arrays.multiply_add_double(start, a[::-1], b[::-1]) != total
    assert arrays.sum_double(start, arrays.values(a[:0])) == start
    for odd in (0x7F80_0000, 0xFF80_0000, 0xFFC0_0001):
        a[5], b[5], a[7], b[7] = odd, 0x3F80_0000, 0xFF80_0000, 0x3F80_0000
        total = start
        for x, y in zip(a, b, strict=True):
            total = floats.multiply_add_double(total, int(x), int(y))
        assert arrays.multiply_add_double(start, a, b) == total
    assert total == NAN64


def test_conversions() -> None:
    """Patterns to doubles and back, with one rounding."""
    rng = seeded(8)
    bits = words(rng, 2000)
    for x, value in zip(bits, arrays.values(bits), strict=True):
        assert floats.double_bits(float(value)) == floats.double_of_float32(int(x))
    doubles = rng.normal(size=4000) * 2.0 ** rng.integers(-160, 140, 4000)
    expected = [floats.float32_bits(float(x)) for x in doubles]
    assert arrays.nearest(doubles).tolist() == expected
