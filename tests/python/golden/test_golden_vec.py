# SPDX-License-Identifier: Apache-2.0
"""Elementwise operations: int8 exhaustively, int16 on corners and random values, in fractions.

A new operation of two matrices stands in `PAIRWISE`, and every one in `FORMULAS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import vec
from spec.isa import Instruction, Opcode, VecOp
from tests.python.golden.golden_programs import ran
from tests.python.golden.golden_support import integers, seeded

PAIRS8 = np.array([(a, b) for a in range(-128, 128) for b in range(-128, 128)], np.int8)


def pairs(dtype: type[np.integer[Any]]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return all pairs of int8, or many pairs of int16 with corners."""
    if dtype is np.int8:
        return PAIRS8[:, 0], PAIRS8[:, 1]
    rng = seeded(51)
    return integers(rng, dtype, (20000,), 0.4), integers(rng, dtype, (20000,), 0.4)


def saturate(x: int, bits: int) -> int:
    """Limit to a signed number of bits."""
    return min(max(x, -(1 << (bits - 1))), (1 << (bits - 1)) - 1)


def round_half_up(x: Fraction) -> int:
    """Return floor(x + 1/2)."""
    return math.floor(x + Fraction(1, 2))


PAIRWISE: list[tuple[Callable[..., npt.NDArray[Any]], Callable[[int, int], int]]] = [
    (vec.add, lambda a, b: a + b),
    (vec.sub, lambda a, b: a - b),
    (vec.maximum, max),
    (vec.minimum, min),
]
"""Functions of two matrices without a shift, and what they are of two exact integers."""


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize(("function", "exact"), PAIRWISE)
def test_pairs_of_integers(
    dtype: type[np.integer[Any]],
    function: Callable[..., npt.NDArray[Any]],
    exact: Callable[[int, int], int],
) -> None:
    """All pairs of int8, corner and random pairs of int16."""
    a, b = pairs(dtype)
    bits = np.iinfo(dtype).bits
    result = function(a, b)
    assert result.dtype == dtype
    both = zip(a.tolist(), b.tolist(), strict=True)
    assert result.tolist() == [saturate(exact(x, y), bits) for x, y in both]


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("shift", [0, 1, 7, 15, 31, 63])
def test_mul(dtype: type[np.integer[Any]], shift: int) -> None:
    """The product and its own rounding, against exact fractions and float64."""
    a, b = (x[::7] for x in pairs(dtype))
    result = vec.mul(a, b, shift)
    expected = [
        saturate(round_half_up(Fraction(x * y, 1 << shift)), np.iinfo(dtype).bits)
        for x, y in zip(a.tolist(), b.tolist(), strict=True)
    ]
    assert result.dtype == dtype
    assert result.tolist() == expected
    info = np.iinfo(dtype)
    exact = np.clip(a.astype(float) * b.astype(float) / 2.0**shift, info.min, info.max)
    assert np.abs(result - exact).max() <= vec.ROUNDED_MAX_ERROR


@pytest.mark.parametrize("dtype", [np.int8, np.int16])
@pytest.mark.parametrize("out_bits", [8, 16])
@pytest.mark.parametrize("k", [-32768, -1, 0, 3, 32767])
@pytest.mark.parametrize("shift", [0, 1, 9, 40])
def test_scale_shift(dtype: type[np.integer[Any]], out_bits: int, k: int, shift: int) -> None:
    """Every pair of widths against exact fractions."""
    a = pairs(dtype)[0][::37]
    result = vec.scale_shift(a, k, shift, out_bits)
    assert result.dtype.itemsize * 8 == out_bits
    exact = [Fraction(x * k, 1 << shift) for x in a.tolist()]
    assert result.tolist() == [saturate(round_half_up(v), out_bits) for v in exact]


def test_clamp_relu_copy() -> None:
    """Against Python, with limits outside int8 and limits that cross."""
    a = np.arange(-128, 128).astype(np.int8)
    assert vec.clamp(a, -5, 9).tolist() == [min(max(int(x), -5), 9) for x in a]
    assert vec.clamp(a, 200, 300).tolist() == [127] * 256
    assert vec.clamp(a, 9, -5).tolist() == [-5] * 256
    wide = a.astype(np.int16) * 256
    assert vec.clamp(wide, -300, 7000).tolist() == [min(max(int(x), -300), 7000) for x in wide]
    assert vec.relu(wide).tolist() == [max(int(x), 0) for x in wide]
    assert vec.relu(a).dtype == np.int8
    assert np.array_equal(vec.copy(wide), wide)
    assert not np.shares_memory(vec.copy(wide), wide)


def test_arguments_are_checked() -> None:
    """Wrong arguments are refused by name."""
    with pytest.raises(ValueError, match="add: given int8"):
        vec.add(np.zeros(3, np.int8), np.zeros(3, np.int16))
    with pytest.raises(ValueError, match="relu: given dtype int32"):
        vec.relu(np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="out_bits 12"):
        vec.scale_shift(np.zeros(3, np.int8), 1, 1, 12)


A, B, C = 0x1000, 0x8000, 0x10000
"""Byte addresses of the operands and of the result."""
Int64 = npt.NDArray[np.int64]


def _rounded(x: Int64, shift: int) -> Int64:
    """Return floor(x / 2^shift + 1/2)."""
    result: Int64 = (x + (1 << shift >> 1)) >> shift
    return result


FORMULAS: dict[VecOp, tuple[int, int, int, Callable[[Int64, Int64], Int64]]] = {
    VecOp.ADD: (0, B >> 4, 0, lambda x, y: x + y),
    VecOp.SUB: (0, B >> 4, 0, lambda x, y: x - y),
    VecOp.MUL: (5, B >> 4, 0, lambda x, y: _rounded(x * y, 5)),
    VecOp.SCALE_SHIFT: (9, 0, 0x8123, lambda x, y: _rounded(x * (0x8123 - 0x10000), 9)),
    VecOp.CLAMP: (0, 0xFFF0, 90, lambda x, y: np.minimum(np.maximum(x, -16), 90)),
    VecOp.RELU: (0, 0, 0, lambda x, y: np.maximum(x, 0)),
    VecOp.COPY2D: (0, 0, 0, lambda x, y: x),
    VecOp.MAX: (0, B >> 4, 0, lambda x, y: np.maximum(x, y)),
    VecOp.MIN: (0, B >> 4, 0, lambda x, y: np.minimum(x, y)),
}
"""sh, src1 and K of an instruction, and what numpy makes of its matrices, before saturation."""


@pytest.mark.parametrize("op", sorted(set(VecOp) - {VecOp.TABLE}), ids=lambda op: op.name)
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_instruction(op: VecOp, dtype: type[np.integer[Any]]) -> None:
    """Every operation but TABLE in int64, with one saturation."""
    rng = seeded(360)
    a, b = integers(rng, dtype, (5, 37)), integers(rng, dtype, (5, 37))
    shift, src1, k, formula = FORMULAS[op]
    info = np.iinfo(dtype)
    both = 0x30 if dtype is np.int16 else 0
    imm = op | both | shift << 8
    word = Instruction(Opcode.VEC, 0, C >> 4, A >> 4, src1, 5, 37, k, imm)
    result = ran(word, {A: a, B: b}).get(C, (5, 37), dtype)
    expected = np.clip(formula(a.astype(np.int64), b.astype(np.int64)), info.min, info.max)
    assert np.array_equal(result, expected)
