# SPDX-License-Identifier: Apache-2.0
"""Rounding, saturation and leading-bit helpers that every integer reference is built from.

Formulas (numerics of the pipeline, one rounding rule everywhere):

    rs(x, s)  = (x + (1 << (s - 1))) >> s, rs(x, 0) = x      round half up, arithmetic shift
    satN(x)   = min(max(x, -2^(N-1)), 2^(N-1) - 1)           once, after the rounding
    msb(x)    = floor(log2 x), x >= 1

All arrays are computed in int64. Where a result could leave int64 the function raises
OverflowError instead of wrapping.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
IntArray = npt.NDArray[np.integer[Any]]

INT64_MIN, INT64_MAX = -(1 << 63), (1 << 63) - 1
RS_MAX_ERROR = 0.5
"""Largest |rs(x, s) - x / 2^s|, reached exactly at the ties, which round upwards."""


def as_int64(x: IntArray) -> Int64Array:
    """Return an integer array of any dtype as int64; OverflowError if a uint64 does not fit."""
    if x.dtype == np.uint64 and x.size and int(x.max()) > INT64_MAX:
        raise OverflowError(f"as_int64: given {int(x.max())}, allowed at most {INT64_MAX}")
    if x.dtype.kind not in "iu":
        raise TypeError(f"as_int64: given dtype {x.dtype}, allowed integers")
    return x.astype(np.int64, copy=False)


@overload
def rs(x: int, shift: int) -> int: ...
@overload
def rs(x: IntArray, shift: int | IntArray) -> Int64Array: ...
def rs(x: int | IntArray, shift: int | IntArray) -> int | Int64Array:
    """Shift right arithmetically with round half up.

    Args:
        x: a Python int, or an integer array of any shape.
        shift: an int >= 0, or (with an array x) an integer array that broadcasts against x.

    Returns:
        (x + (1 << (shift - 1))) >> shift, x itself for shift 0; an int for two ints, else int64.
        The sum is never formed, so nothing overflows: half of x >> (s - 1), rounded up.

    """
    if isinstance(x, int):
        if not isinstance(shift, int):
            raise TypeError("rs: given an int and an array of shifts, allowed an array for x")
        if shift < 0:
            raise ValueError(f"rs: given shift {shift}, allowed 0 and more")
        return x if shift == 0 else (x + (1 << (shift - 1))) >> shift
    value = as_int64(x)
    amount = as_int64(np.asarray(shift))
    if amount.size and int(amount.min()) < 0:
        raise ValueError(f"rs: given shift {int(amount.min())}, allowed 0 and more")
    halves = value >> np.maximum(amount - 1, 0)
    rounded = halves & 1
    halves >>= 1
    rounded += halves
    return rounded if amount.all() else np.where(amount == 0, value, rounded)


def limits(bits: int, *, signed: bool = True) -> tuple[int, int]:
    """Return the smallest and largest number of `bits` bits."""
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


@overload
def sat(x: int, bits: int) -> int: ...
@overload
def sat(x: IntArray, bits: int) -> Int64Array: ...
def sat(x: int | IntArray, bits: int) -> int | Int64Array:
    """Limit x to a signed number of `bits` bits (1..63); ints give an int, arrays int64."""
    low, high = limits(bits)
    if isinstance(x, int):
        return min(max(x, low), high)
    return np.clip(as_int64(x), low, high)


def sat8(x: IntArray) -> npt.NDArray[np.int8]:
    """Limit an integer array to [-128, 127] and return it as int8."""
    return sat(x, 8).astype(np.int8)


def sat16(x: IntArray) -> npt.NDArray[np.int16]:
    """Limit an integer array to [-32768, 32767] and return it as int16."""
    return sat(x, 16).astype(np.int16)


@overload
def msb(x: int) -> int: ...
@overload
def msb(x: IntArray) -> Int64Array: ...
def msb(x: int | IntArray) -> int | Int64Array:
    """Return the position of the leading one, floor(log2 x); ValueError unless every x >= 1."""
    if isinstance(x, int):
        if x < 1:
            raise ValueError(f"msb: given {x}, allowed 1 and more")
        return x.bit_length() - 1
    value = as_int64(x)
    if value.size and int(value.min()) < 1:
        raise ValueError(f"msb: given {int(value.min())}, allowed 1 and more")
    result = np.zeros(value.shape, np.int64)
    rest = value.copy()
    for step in (32, 16, 8, 4, 2, 1):
        large = rest >= (np.int64(1) << np.int64(step))
        result += np.where(large, step, 0)
        rest = np.where(large, rest >> step, rest)
    return result


def multiply(a: IntArray, b: IntArray | int) -> Int64Array:
    """Return a * b (broadcast) in int64; OverflowError if a product does not fit."""
    left, right = as_int64(a), as_int64(np.asarray(b))
    if left.size and right.size and _magnitude(left) * _magnitude(right) > INT64_MAX:
        exact = np.asarray(left.astype(object) * right.astype(object), object)
        for worst in (exact.max(), exact.min()):
            if not INT64_MIN <= worst <= INT64_MAX:
                raise OverflowError(f"multiply: the product {worst} does not fit int64")
    return left * right


def _magnitude(x: Int64Array) -> int:
    """Return the largest |x| as a Python int."""
    return max(abs(int(x.min())), abs(int(x.max())))


def wrap32(x: IntArray) -> npt.NDArray[np.int32]:
    """Return x modulo 2^32 as int32, the behaviour of a 32-bit accumulator."""
    low = (as_int64(x) & 0xFFFF_FFFF).astype(np.uint32)
    return low.view(np.int32)
