# SPDX-License-Identifier: Apache-2.0
"""The elementwise operations on int8 and int16 matrices.

ADD, SUB sat(a +- b); MUL sat(rs(a*b, sh)); SCALE_SHIFT sat(rs(a*k, sh)) with signed k; CLAMP
sat(min(max(a, lo), hi)); RELU max(a, 0); COPY a; TABLE table[a mod 256] (see `golden.gelu`); MAX,
MIN the larger and the smaller of a and b.
Inputs keep their dtype; every function is elementwise over any shape. `OPERATIONS` says which of
them an operation of VEC is, and what its instruction may name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from golden.fixed import IntArray, as_int64, multiply, rs, sat8, sat16
from golden.gelu import apply_table
from spec.isa import VecOp

EXACT_MAX_ERROR = 0.0
"""ADD, SUB, CLAMP, RELU, COPY, TABLE, MAX and MIN against the saturated exact result."""
ROUNDED_MAX_ERROR = 0.5
"""MUL and SCALE_SHIFT against the saturated exact quotient, in units of the result."""


def _width(x: IntArray, where: str) -> int:
    """Return 8 or 16 for an int8 or int16 array."""
    if x.dtype not in (np.dtype(np.int8), np.dtype(np.int16)):
        raise ValueError(f"{where}: given dtype {x.dtype}, allowed int8 and int16")
    return x.dtype.itemsize * 8


def _same(a: IntArray, b: IntArray, where: str) -> int:
    """Return the common width of two arrays of one dtype and shape."""
    width = _width(a, where)
    if a.dtype != b.dtype or a.shape != b.shape:
        raise ValueError(
            f"{where}: given {a.dtype}{a.shape} and {b.dtype}{b.shape}, allowed equal ones"
        )
    return width


def _out(x: IntArray, width: int) -> IntArray:
    """Saturate int64 results to int8 or int16."""
    return sat8(x) if width == 8 else sat16(x)


def add(a: IntArray, b: IntArray) -> IntArray:
    """Return sat(a + b), int8 or int16 as a and b; error EXACT_MAX_ERROR."""
    return _out(as_int64(a) + as_int64(b), _same(a, b, "add"))


def sub(a: IntArray, b: IntArray) -> IntArray:
    """Return sat(a - b), int8 or int16 as a and b; error EXACT_MAX_ERROR."""
    return _out(as_int64(a) - as_int64(b), _same(a, b, "sub"))


def maximum(a: IntArray, b: IntArray) -> IntArray:
    """Return the larger of a and b, int8 or int16 as a and b; error EXACT_MAX_ERROR."""
    return _out(np.maximum(as_int64(a), as_int64(b)), _same(a, b, "maximum"))


def minimum(a: IntArray, b: IntArray) -> IntArray:
    """Return the smaller of a and b, int8 or int16 as a and b; error EXACT_MAX_ERROR."""
    return _out(np.minimum(as_int64(a), as_int64(b)), _same(a, b, "minimum"))


def mul(a: IntArray, b: IntArray, shift: int) -> IntArray:
    """Return sat(rs(a * b, shift)), shift 0..63, int8 or int16 as a and b.

    Maximum error against a * b / 2^shift: ROUNDED_MAX_ERROR.
    """
    return _out(rs(multiply(a, b), shift), _same(a, b, "mul"))


def scale_shift(a: IntArray, k: int, shift: int, out_bits: int) -> IntArray:
    """Return sat(rs(a * k, shift)) with a signed 16-bit k, as int8 or int16 (`out_bits`).

    Maximum error against a * k / 2^shift: ROUNDED_MAX_ERROR.
    """
    _width(a, "scale_shift")
    if out_bits not in (8, 16):
        raise ValueError(f"scale_shift: given out_bits {out_bits}, allowed 8 and 16")
    return _out(rs(multiply(a, k), shift), out_bits)


def clamp(a: IntArray, low: int, high: int) -> IntArray:
    """Return sat(min(max(a, low), high)) with signed 16-bit limits; `high` wins if low > high.

    The saturation matters for int8 with limits outside int8. Error EXACT_MAX_ERROR.
    """
    return _out(np.minimum(np.maximum(as_int64(a), low), high), _width(a, "clamp"))


def relu(a: IntArray) -> IntArray:
    """Return max(a, 0), int8 or int16 as a; error EXACT_MAX_ERROR."""
    return _out(np.maximum(as_int64(a), 0), _width(a, "relu"))


def copy(a: IntArray) -> IntArray:
    """Return a copy of a, int8 or int16."""
    return _out(as_int64(a), _width(a, "copy"))


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """What an instruction hands to an operation: A, and the rest as far as the operation uses it.

    Attributes:
        a: int8 or int16.
        b: the second matrix, like a.
        low: src1 as a signed number.
        k: K as a signed number.
        shift: 0..63.
        out_bits: 8 or 16, the width of the result.
        table: (256,) int8.

    """

    a: IntArray
    b: IntArray
    low: int
    k: int
    shift: int
    out_bits: int
    table: npt.NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class VecFormula:
    """One operation of VEC: its result, and what its instruction may name beside A and C.

    Attributes:
        result: from the inputs to int8 or int16.
        two: a second matrix at src1.
        low: a signed number in src1.
        table: a table at src1 or in the stream.
        k: a signed number in K.
        shift: a shift.
        converts: A and C of different types.
        wide: int16.

    """

    result: Callable[[Inputs], IntArray]
    two: bool = False
    low: bool = False
    table: bool = False
    k: bool = False
    shift: bool = False
    converts: bool = False
    wide: bool = True


OPERATIONS: dict[VecOp, VecFormula] = {
    VecOp.ADD: VecFormula(lambda x: add(x.a, x.b), two=True),
    VecOp.SUB: VecFormula(lambda x: sub(x.a, x.b), two=True),
    VecOp.MUL: VecFormula(lambda x: mul(x.a, x.b, x.shift), two=True, shift=True),
    VecOp.SCALE_SHIFT: VecFormula(
        lambda x: scale_shift(x.a, x.k, x.shift, x.out_bits), k=True, shift=True, converts=True
    ),
    VecOp.CLAMP: VecFormula(lambda x: clamp(x.a, x.low, x.k), low=True, k=True),
    VecOp.RELU: VecFormula(lambda x: relu(x.a)),
    VecOp.COPY2D: VecFormula(lambda x: copy(x.a)),
    VecOp.TABLE: VecFormula(
        lambda x: apply_table(x.a.view(np.int8), x.table), table=True, wide=False
    ),
    VecOp.MAX: VecFormula(lambda x: maximum(x.a, x.b), two=True),
    VecOp.MIN: VecFormula(lambda x: minimum(x.a, x.b), two=True),
}
"""The operations of VEC; an instruction with another number is refused."""
