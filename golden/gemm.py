# SPDX-License-Identifier: Apache-2.0
"""Matrix product with wrapping int32 accumulation and the chain of post-processing.

C = post(A[M, K] * B[K, N]); A int8, uint8, int16 or uint16, B int8. A 16-bit A is taken in two
passes: sums of its high bytes (signed for int16) and of its low bytes (unsigned), each an int32
plane. In this order, rounding only where written (section 3 of the ISA):

    1. acc = sum over k, plus partial sums, modulo 2^32 per plane; v = acc or (hi << 8) + lo
       (`depthwise`: the sum is over taps of the column's own channel of A)
    2. without requantisation the planes are the result
    3. v += bias[n]
    4. y = sat(rs(v * m, s)) to the output width
    5. ReLU: y = max(y, 0)
    6. table: y = table[y mod 256]
    7. ADD: y = sat(y + d);  MUL: y = sat8(rs(y * d * mul, sh))
    8. argmax: the largest value of a row, over several results (`Argmax`)
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from golden.fixed import Int64Array, IntArray, as_int64, multiply, rs, sat, wrap32
from golden.gelu import apply_table
from golden.requantize import requantize
from golden.softmax import reciprocal
from spec.isa import DEPTHWISE_TAPS, GemmOp

GEMM_MAX_ERROR = 0.5
"""Largest |C - clip((A*B + bias) * m / 2^s)| in units of C, requantised without table or second
operand; ADD is exact behind it. int32 results are exact modulo 2^32."""
GEMM_MUL_MAX_ERROR = 0.5
"""Largest |C - clip(y * d * mul / 2^sh)| in units of C, y being the integer of step 4 to 6."""

EXACT_INNER = 512
"""Longest inner length of one float32 product."""

Planes = npt.NDArray[np.int32]
"""(P, M, N) int32: P = 1 plain sums, P = 2 high sums then low sums of a 16-bit A."""


@dataclass(frozen=True, slots=True, eq=False)
class Requant:
    """Factors of step 3 and 4, broadcast against (M, N).

    Attributes:
        mult: int64, 0..65535; shape (), (N,) or (M, 1).
        shift: int64, 0..63; shape (), (N,) or (M, 1).
        bias: int64, (N,) or ().

    """

    mult: Int64Array
    shift: Int64Array
    bias: Int64Array = field(default_factory=lambda: np.zeros((), np.int64))


def per_tensor(mult: int, shift: int) -> Requant:
    """Return one factor mult / 2^shift for the whole result."""
    return Requant(np.array(mult, np.int64), np.array(shift, np.int64))


def per_channel(mult: IntArray, shift: IntArray, bias: IntArray | None = None) -> Requant:
    """Return one factor per column: mult (N,), shift (N,) and optionally an int32 bias (N,)."""
    added = np.zeros((), np.int64) if bias is None else as_int64(bias)
    return Requant(as_int64(mult), as_int64(shift), added)


def per_row(sums: IntArray) -> Requant:
    """Return one factor per row: the reciprocal R / 2^(16 + msb S) of the softmax sums (M,)."""
    recip = reciprocal(sums)
    return Requant(recip.value[:, None], recip.shift[:, None])


@dataclass(frozen=True, slots=True, eq=False)
class Post:
    """Steps 5 to 7 and the output width.

    Attributes:
        out_bits: 8 or 16.
        relu: step 5.
        table: (256,) int8 of step 6, only with out_bits 8.
        combine: step 7; ADD takes d in the output width, MUL an int8 d and out_bits 8.
        d: (M, N) second operand.
        mul, sh: factor of MUL, mul unsigned 16 bits, sh 0..63.

    """

    out_bits: int = 8
    relu: bool = False
    table: npt.NDArray[np.int8] | None = None
    combine: GemmOp = GemmOp.NONE
    d: IntArray | None = None
    mul: int = 0
    sh: int = 0

    def __post_init__(self) -> None:
        """Refuse combinations that the instruction cannot say."""
        if self.out_bits not in (8, 16):
            raise ValueError(f"Post.out_bits: given {self.out_bits}, allowed 8 and 16")
        if self.out_bits != 8 and (self.table is not None or self.combine is GemmOp.MUL):
            raise ValueError("Post: given 16-bit output with a table or MUL, allowed 8-bit output")
        if (self.d is None) != (self.combine is GemmOp.NONE):
            raise ValueError(f"Post: given combine {self.combine.name}, d must come with ADD, MUL")


def _product(a: IntArray, b: IntArray) -> Int64Array:
    """Return the exact product of two matrices of 8-bit numbers.

    float32 sums of integers up to 2^24 are exact in any order, and EXACT_INNER * 255 * 128 is
    below that; longer sums are added as integers.
    """
    result = np.zeros((a.shape[0], b.shape[1]), np.int64)
    for first in range(0, a.shape[1], EXACT_INNER):
        part = slice(first, first + EXACT_INNER)
        exact: npt.NDArray[np.float32] = a[:, part].astype(np.float32) @ b[part].astype(np.float32)
        result += exact.astype(np.int64)
    return result


def accumulate(a: IntArray, b: npt.NDArray[np.int8], partial: Planes | None = None) -> Planes:
    """Return the accumulators of A * B plus partial sums.

    Args:
        a: (M, K) int8, uint8, int16 or uint16.
        b: (K, N) int8.
        partial: (P, M, N) int32 sums of the same form, or None.

    Returns:
        (P, M, N) int32 modulo 2^32, P = 2 for a 16-bit A (high sums, low sums), else 1; exact as
        long as K <= 61,439 and there are no partial sums. K = 0 gives the empty sum.

    """
    if a.dtype not in (np.dtype(t) for t in (np.int8, np.uint8, np.int16, np.uint16)):
        raise ValueError(f"accumulate: given A of {a.dtype}, allowed int8 uint8 int16 uint16")
    if b.dtype != np.int8:
        raise ValueError(f"accumulate: given B of {b.dtype}, allowed int8")
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"accumulate: given A{a.shape} and B{b.shape}, allowed (M, K) and (K, N)")
    passes = [a] if a.dtype.itemsize == 1 else [a >> 8, a & 0xFF]
    planes = np.stack([_product(part, b) for part in passes])
    if partial is not None:
        if partial.shape != planes.shape:
            raise ValueError(f"accumulate: given partial {partial.shape}, allowed {planes.shape}")
        planes = planes + as_int64(partial)
    return wrap32(planes)


def depthwise(a: IntArray, b: npt.NDArray[np.int8], partial: Planes | None = None) -> Planes:
    """Return the accumulators of columns that each have their own channel of A.

    Args:
        a: (T, M + 3, N) int8 or uint8: lines, pixels, channels.
        b: (T * E, N) int8; rows 1 to 4 of the E rows of a line are its taps, the others unused.
        partial: (1, M, N) int32, or None.

    Returns:
        (1, M, N) int32 modulo 2^32: sum over t, j of a[t, m + j, n] * b[E*t + 1 + j, n].

    """
    if a.dtype not in (np.dtype(np.int8), np.dtype(np.uint8)) or b.dtype != np.int8:
        raise ValueError(f"depthwise: given {a.dtype} and {b.dtype}, allowed int8 uint8 and int8")
    lines, rows, columns = a.shape
    taps = as_int64(b).reshape(lines, -1, columns)[:, 1 : 1 + DEPTHWISE_TAPS]
    m = rows - (DEPTHWISE_TAPS - 1)
    sums = np.zeros((1, m, columns), np.int64) if partial is None else as_int64(partial)
    for j in range(DEPTHWISE_TAPS):
        sums = sums + (as_int64(a[:, j : j + m]) * taps[:, j : j + 1]).sum(axis=0)
    return wrap32(sums)


def combined(planes: Planes) -> Int64Array:
    """Return v (M, N) int64 of step 1: the single plane, or (hi << 8) + lo."""
    if planes.shape[0] == 1:
        return as_int64(planes[0])
    return (as_int64(planes[0]) << 8) + as_int64(planes[1])


def postprocess(v: Int64Array, requant: Requant, post: Post) -> IntArray:
    """Apply steps 3 to 7.

    Args:
        v: (M, N) int64 sums.
        requant: factors of step 3 and 4.
        post: the rest of the chain.

    Returns:
        (M, N) int8 or int16 by post.out_bits. Maximum error: GEMM_MAX_ERROR, GEMM_MUL_MAX_ERROR.

    """
    y = requantize(v + requant.bias, requant.mult, requant.shift, post.out_bits)
    if post.relu:
        y = np.maximum(y, 0)
    if post.table is not None:
        y = as_int64(apply_table(y.astype(np.int8), post.table))
    if post.combine is GemmOp.ADD and post.d is not None:
        y = sat(y + as_int64(post.d), post.out_bits)
    elif post.combine is GemmOp.MUL and post.d is not None:
        y = sat(rs(multiply(y * as_int64(post.d), post.mul), post.sh), 8)
    return y.astype(np.int8 if post.out_bits == 8 else np.int16)


def gemm(
    a: IntArray,
    b: npt.NDArray[np.int8],
    requant: Requant | None = None,
    post: Post | None = None,
    partial: Planes | None = None,
) -> IntArray:
    """Return A * B, as int32 planes (P, M, N) without `requant`, else as (M, N) int8 or int16.

    Args and errors as `accumulate` and `postprocess`; `post` defaults to plain int8 output.
    """
    planes = accumulate(a, b, partial)
    if requant is None:
        if post is not None:
            raise ValueError("gemm: given post-processing without requantisation, allowed both")
        return planes
    return postprocess(combined(planes), requant, post if post is not None else Post())


@dataclass(frozen=True, slots=True)
class Argmax:
    """The running argmax of a row of outputs that come in pieces.

    Attributes:
        value: the largest value so far.
        column: its column; of equal values the first.
        columns: how many columns have been seen.

    """

    value: int
    column: int
    columns: int


def running_argmax(before: Argmax | None, y: IntArray) -> Argmax:
    """Return the argmax with the next piece y, (N,) or (1, N) integers, N >= 1; exact."""
    row = y.reshape(-1)
    best, seen = int(np.argmax(row)), 0 if before is None else before.columns
    columns = seen + row.size
    if before is not None and before.value >= row[best]:
        return Argmax(before.value, before.column, columns)
    return Argmax(int(row[best]), seen + best, columns)
