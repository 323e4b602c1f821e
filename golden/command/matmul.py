# SPDX-License-Identifier: Apache-2.0
"""Matrix products on the command port whose elements are not what its operations take.

    FP16, BF16   Q8.8, half away from zero;  sum floor(a * b / 2^8), exact: floor(sum a * b / 2^8)
    groups       sum over the groups of (sum a * q) * scale, a int8, q int4, scale Q8.8
    MX           sum a * 2^(sa - 127) * b * 2^(sb - 127), elements and scales of OCP MX v1.0

All but MX end modulo 2^32, as a signed number. Nothing else is rounded.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.integer[Any]]
Words = npt.NDArray[np.int32]
Numbers = npt.NDArray[np.object_]

HALVES = {"FP16": (5, 10), "BF16": (8, 7)}
"""Bits of exponent and mantissa."""
MINIFLOATS = {
    "mxfp8e4": (4, 3),
    "mxfp8e5": (5, 2),
    "mxfp6e3": (3, 2),
    "mxfp6e2": (2, 3),
    "mxfp4": (2, 1),
}
"""Bits of exponent and mantissa of the float elements of MX."""
BLOCK = 32
"""Elements along K that share a scale."""
E8M0_BIAS = 127


def float_value(code: int, exponent: int, mantissa: int) -> Fraction:
    """Return what sign, `exponent` bits and `mantissa` bits say, every exponent a number's."""
    bias = (1 << (exponent - 1)) - 1
    e, m = code >> mantissa & ((1 << exponent) - 1), code & ((1 << mantissa) - 1)
    fraction = Fraction(m, 1 << mantissa) + (e > 0)
    size = fraction * Fraction(2) ** (max(e, 1) - bias)
    return -size if code >> (exponent + mantissa) & 1 else size


def half_value(code: int, fmt: str) -> Fraction:
    """Return the value of an FP16 or BF16 code.

    Raises:
        ValueError: it is not a number, infinite or subnormal.

    """
    exponent, mantissa = HALVES[fmt]
    e, m = code >> mantissa & ((1 << exponent) - 1), code & ((1 << mantissa) - 1)
    if e == (1 << exponent) - 1 or (e == 0 and m):
        raise ValueError(f"{fmt}: given {code:#06x}, allowed zero and finite normal numbers")
    return float_value(code, exponent, mantissa)


def half_q8_8(code: int, fmt: str) -> int:
    """Return an FP16 or BF16 code in Q8.8, half away from zero.

    Raises:
        ValueError: it is refused by `half_value`, or leaves int16.

    """
    value = half_value(code, fmt)
    size = floor(abs(value) * 256 + Fraction(1, 2))
    fixed = -size if value < 0 else size
    if not -(1 << 15) <= fixed < 1 << 15:
        raise ValueError(f"{fmt}: given {code:#06x}, {fixed} in Q8.8, allowed int16")
    return fixed


def _fixed(codes: Integers, fmt: str) -> npt.NDArray[np.int64]:
    return np.array([[half_q8_8(code, fmt) for code in row] for row in codes.tolist()], np.int64)


def half_matmul(a: Integers, b: Integers, fmt: str, *, exact: bool = False) -> Words:
    """Return (M, K) times (K, N) codes of FP16 or BF16 as int32 in Q8.8."""
    left, right = _fixed(a, fmt), _fixed(b, fmt)
    products = left[:, :, None] * right[None]
    sums: npt.NDArray[np.int64]
    sums = products.sum(axis=1) // 256 if exact else (products // 256).sum(axis=1)
    return sums.astype(np.int32)


def scale_q8_8(scale: int, kind: str) -> int:
    """Return a scale of a group in Q8.8: as it is (q8_8), an integer (int8), a float's code."""
    match kind:
        case "q8_8":
            return scale
        case "int8":
            return scale * 256
        case "fp16" | "bf16":
            return half_q8_8(scale, kind.upper())
    raise ValueError(f"scale: given {kind!r}, allowed q8_8, int8, fp16, bf16")


def group_matmul(a: Integers, q: Integers, scales: Integers, group: int, kind: str) -> Words:
    """Return int8 (M, K) times int4 (K, N) with scales (ceil(K / group), N), int32 in Q8.8."""
    total = np.zeros((a.shape[0], q.shape[1]), np.int64)
    for row, first in enumerate(range(0, a.shape[1], group)):
        rows = slice(first, first + group)
        dots = a[:, rows].astype(np.int64) @ q[rows].astype(np.int64)
        total += dots * np.array([scale_q8_8(one, kind) for one in scales[row].tolist()])
    return total.astype(np.int32)


def mx_value(kind: str, code: int) -> Fraction:
    """Return the value of an MX element; codes that are no numbers are not looked for."""
    if kind == "mxint8":
        return Fraction(code - (code >> 7 << 8), 64)
    return float_value(code, *MINIFLOATS[kind])


def mx_values(kind: str, codes: Integers, scales: Integers) -> Numbers:
    """Return the values of elements (R, K) with E8M0 scales (R, ceil(K / 32)) as fractions."""
    values = np.empty(codes.shape, np.object_)
    for i, k in np.ndindex(*codes.shape):
        factor = Fraction(2) ** (int(scales[i, k // BLOCK]) - E8M0_BIAS)
        values[i, k] = mx_value(kind, int(codes[i, k])) * factor
    return values


def mx_matmul(
    a: Integers, a_scales: Integers, b: Integers, b_scales: Integers, kind: str
) -> Numbers:
    """Return (M, K) times (K, N) as fractions; scales are (M, ceil(K / 32)), (ceil(K / 32), N)."""
    product: Numbers = mx_values(kind, a, a_scales) @ mx_values(kind, b.T, b_scales.T).T
    return product
