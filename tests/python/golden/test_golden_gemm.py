# SPDX-License-Identifier: Apache-2.0
"""GEMM: sums, planes and the post-processing chain against exact Python integers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden.gemm import (
    GEMM_MAX_ERROR,
    GEMM_MUL_MAX_ERROR,
    Post,
    Requant,
    accumulate,
    combined,
    depthwise,
    gemm,
    per_channel,
    per_row,
    per_tensor,
    running_argmax,
)
from golden.softmax import RECIPROCAL_MAX_RELATIVE_ERROR
from spec.isa import GemmOp
from tests.python.golden.golden_support import Rng, integers, seeded

A_TYPES = [np.int8, np.uint8, np.int16, np.uint16]
SHAPES = [(1, 1, 1), (1, 17, 3), (5, 16, 16), (7, 33, 19), (16, 129, 48)]


def exact_product(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> list[list[int]]:
    """Return A * B in Python integers."""
    return [
        [sum(int(x) * int(y) for x, y in zip(row, column, strict=True)) for column in b.T]
        for row in a
    ]


def wrapped(x: int) -> int:
    """Return x modulo 2^32 as a signed number."""
    return (x + (1 << 31)) % (1 << 32) - (1 << 31)


def saturate(x: int, bits: int) -> int:
    """Limit to a signed number of bits."""
    return min(max(x, -(1 << (bits - 1))), (1 << (bits - 1)) - 1)


def rounded(x: Fraction) -> int:
    """Return floor(x + 1/2)."""
    return math.floor(x + Fraction(1, 2))


@pytest.mark.parametrize("dtype", A_TYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_sums_are_exact(dtype: type[np.integer[Any]], shape: tuple[int, int, int]) -> None:
    """Full-range data; the planes of a 16-bit A are high and low bytes."""
    m, k, n = shape
    rng = seeded(60 + m + k + n)
    a, b = integers(rng, dtype, (m, k)), integers(rng, np.int8, (k, n))
    planes = accumulate(a, b)
    assert planes.dtype == np.int32
    assert planes.shape == (np.dtype(dtype).itemsize, m, n)
    assert combined(planes).tolist() == exact_product(a, b)
    if planes.shape[0] == 2:
        assert planes[0].tolist() == exact_product(a >> 8, b)
        assert planes[1].tolist() == exact_product(a & 255, b)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("edge", [16, 32])
@pytest.mark.parametrize("lines", [1, 2, 3, 4])
def test_depthwise_sums_are_exact(dtype: type[np.int8 | np.uint8], edge: int, lines: int) -> None:
    """Column by column: rows 1 to 4 of each line's tile of B times neighbouring rows of A."""
    rng = seeded(212)
    a = integers(rng, dtype, (lines, 8, 9))
    b = integers(rng, np.int8, (lines * edge, 9))
    partial = integers(rng, np.int32, (1, 5, 9))
    pixels, weights, before = a.tolist(), b.tolist(), partial.tolist()
    sums = [
        [
            before[0][m][n]
            + sum(
                pixels[t][m + j][n] * weights[edge * t + 1 + j][n]
                for t in range(lines)
                for j in range(4)
            )
            for n in range(9)
        ]
        for m in range(5)
    ]
    expected = [[wrapped(value) for value in row] for row in sums]
    assert depthwise(a, b, partial).tolist() == [expected]
    with pytest.raises(ValueError, match="allowed int8 uint8 and int8"):
        depthwise(a.astype(np.int16), b)


@pytest.mark.parametrize("dtype", A_TYPES)
def test_longest_inner_length_does_not_wrap(dtype: type[np.integer[Any]]) -> None:
    """The bound of the static inner length, at the extreme operands."""
    info = np.iinfo(dtype)
    a = np.full((2, 61439), info.max, dtype)
    a[1] = info.min
    b = np.full((61439, 1), -128, np.int8)
    assert combined(accumulate(a, b)).tolist() == [
        [61439 * -128 * info.max],
        [61439 * -128 * info.min],
    ]


@pytest.mark.parametrize("dtype", A_TYPES)
@pytest.mark.parametrize("inner", [511, 512, 513, 61439])
def test_long_sums_keep_every_bit(dtype: type[np.integer[Any]], inner: int) -> None:
    """Large odd products of one sign, against 64-bit integers."""
    rng = seeded(69)
    info = np.iinfo(dtype)
    a = (info.max - 2 * rng.integers(0, 20, (3, inner))).astype(dtype)
    b = (127 - 2 * rng.integers(0, 20, (inner, 4))).astype(np.int8)
    expected = a.astype(np.int64) @ b.astype(np.int64)
    assert np.array_equal(combined(accumulate(a, b)), expected)
    assert np.array_equal(combined(accumulate(a, -b)), -expected)


@pytest.mark.parametrize("dtype", A_TYPES)
def test_partial_sums_wrap_per_plane(dtype: type[np.integer[Any]]) -> None:
    """Accumulation wraps modulo 2^32, each plane for itself."""
    rng = seeded(61)
    a, b = integers(rng, dtype, (6, 40)), integers(rng, np.int8, (40, 5))
    passes = np.dtype(dtype).itemsize
    partial = integers(rng, np.int32, (passes, 6, 5), 0.5)
    parts = [a] if passes == 1 else [a >> 8, a & 255]
    expected = [
        [
            [wrapped(x + int(p)) for x, p in zip(*rows, strict=True)]
            for rows in zip(s, q, strict=True)
        ]
        for s, q in zip([exact_product(part, b) for part in parts], partial, strict=True)
    ]
    assert accumulate(a, b, partial).tolist() == expected
    overflow = np.full((passes, 6, 5), (1 << 31) - 1, np.int32)
    assert (accumulate(a, b, overflow) < 0).any()


def random_requant(rng: Rng, form: str, m: int, n: int, passes: int) -> Requant:
    """Return factors that bring sums of about 2^15 (2^23 with two passes) to that of int8."""
    mult = rng.integers(1 << 14, 1 << 15, n)
    shift = rng.integers(21, 25, n) + 8 * (passes - 1)
    if form == "tensor":
        return per_tensor(int(mult[0]), int(shift[0]))
    if form == "channel":
        return per_channel(mult.astype(np.uint16), shift.astype(np.uint8))
    if form == "bias":
        bias = integers(rng, np.int32, (n,)) >> 12
        return per_channel(mult.astype(np.uint16), shift.astype(np.uint8), bias)
    return per_row(rng.integers(1 << 7, 1 << 11, m) << (8 * (passes - 1)))


@pytest.mark.parametrize("form", ["tensor", "channel", "bias", "row"])
@pytest.mark.parametrize("dtype", A_TYPES)
@pytest.mark.parametrize("out_bits", [8, 16])
def test_requantised_results(form: str, dtype: type[np.integer[Any]], out_bits: int) -> None:
    """Every form of factors against exact fractions and float64."""
    rng = seeded(62)
    a, b = integers(rng, dtype, (9, 50)), integers(rng, np.int8, (50, 21))
    requant = random_requant(rng, form, 9, 21, a.dtype.itemsize)
    mult = np.broadcast_to(requant.mult, (9, 21)).tolist()
    shift = np.broadcast_to(requant.shift, (9, 21)).tolist()
    bias = np.broadcast_to(requant.bias, (9, 21)).tolist()
    sums = exact_product(a, b)
    expected = [
        [
            saturate(
                rounded(Fraction((sums[i][j] + bias[i][j]) * mult[i][j], 1 << shift[i][j])),
                out_bits,
            )
            for j in range(21)
        ]
        for i in range(9)
    ]
    result = gemm(a, b, requant, Post(out_bits))
    assert result.dtype.itemsize * 8 == out_bits
    assert result.tolist() == expected
    low, high = -(1 << (out_bits - 1)), (1 << (out_bits - 1)) - 1
    exact = (a.astype(np.float64) @ b + np.array(bias)) * np.array(mult) / np.exp2(shift)
    assert np.abs(result - np.clip(exact, low, high)).max() <= GEMM_MAX_ERROR
    assert np.unique(result).size > 16


def test_row_factors_divide_by_the_sum() -> None:
    """Numerators * V / S within the error of the reciprocal."""
    rng = seeded(63)
    e = integers(rng, np.uint16, (30, 64), 0.1)
    v = integers(rng, np.int8, (64, 16))
    sums = e.sum(axis=1, dtype=np.int64)
    result = gemm(e, v, per_row(sums))
    exact = (e.astype(np.float64) @ v) / sums[:, None]
    bound = 0.5 + RECIPROCAL_MAX_RELATIVE_ERROR * np.abs(exact)
    assert np.all(np.abs(result - exact) <= bound)
    assert gemm(e, v, per_row(np.zeros(30, np.uint32))).any() == np.False_


def chain_inputs(rng: Rng) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int8], Requant]:
    """Return A, B and factors with results over all of int8."""
    a, b = integers(rng, np.int8, (12, 40)), integers(rng, np.int8, (40, 24))
    return a, b, per_tensor(20011, 24)


def test_relu_table_and_add_in_order() -> None:
    """Requantise, ReLU, table, ADD, in this order."""
    rng = seeded(64)
    a, b, requant = chain_inputs(rng)
    table = integers(rng, np.int8, (256,))
    d = integers(rng, np.int8, (12, 24))
    plain = gemm(a, b, requant)
    relu = np.maximum(plain, 0)
    assert np.array_equal(gemm(a, b, requant, Post(relu=True)), relu)
    looked = table[plain.view(np.uint8)]
    assert np.array_equal(gemm(a, b, requant, Post(table=table)), looked)
    both = table[relu.view(np.uint8)]
    assert np.array_equal(gemm(a, b, requant, Post(relu=True, table=table)), both)
    added = np.clip(both.astype(int) + d, -128, 127)
    post = Post(relu=True, table=table, combine=GemmOp.ADD, d=d)
    assert np.array_equal(gemm(a, b, requant, post), added)


def test_add_of_16_bits_saturates_twice() -> None:
    """Once after requantisation, once after the addition."""
    rng = seeded(65)
    a, b = integers(rng, np.int8, (12, 200)), integers(rng, np.int8, (200, 24))
    requant = per_tensor(30000, 17)
    d = integers(rng, np.int16, (12, 24))
    plain = gemm(a, b, requant, Post(16))
    assert plain.max() == 32767
    expected = np.clip(plain.astype(int) + d, -32768, 32767)
    assert np.array_equal(gemm(a, b, requant, Post(16, combine=GemmOp.ADD, d=d)), expected)


@pytest.mark.parametrize(("mul", "sh"), [(17003, 22), (32767, 15), (1, 0), (0, 0), (65535, 40)])
def test_mul(mul: int, sh: int) -> None:
    """The product and its own rounding, against exact fractions and float64."""
    rng = seeded(66)
    a, b, requant = chain_inputs(rng)
    d = integers(rng, np.int8, (12, 24))
    y = gemm(a, b, requant)
    expected = [
        [
            saturate(rounded(Fraction(int(p) * int(q) * mul, 1 << sh)), 8)
            for p, q in zip(*r, strict=True)
        ]
        for r in zip(y, d, strict=True)
    ]
    result = gemm(a, b, requant, Post(combine=GemmOp.MUL, d=d, mul=mul, sh=sh))
    assert result.tolist() == expected
    exact = np.clip(y.astype(float) * d * mul / 2.0**sh, -128, 127)
    assert np.abs(result - exact).max() <= GEMM_MUL_MAX_ERROR


@pytest.mark.parametrize("dtype", A_TYPES)
def test_the_empty_sum(dtype: type[np.integer[Any]]) -> None:
    """K = 0 gives zeros, the partial sums, or what the bias becomes."""
    a, b = np.zeros((3, 0), dtype), np.zeros((0, 4), np.int8)
    planes = accumulate(a, b)
    passes = a.dtype.itemsize
    assert planes.tolist() == [[[0] * 4] * 3] * passes
    partial = integers(seeded(67), np.int32, (passes, 3, 4))
    assert accumulate(a, b, partial).tolist() == partial.tolist()
    bias = np.array([5, -900, 70, 1 << 20], np.int32)
    requant = per_channel(np.full(4, 1 << 14), np.full(4, 16), bias)
    assert gemm(a, b, requant).tolist() == [[1, -128, 18, 127]] * 3


def test_argmax_over_pieces() -> None:
    """The first of the largest values, whatever the cut; columns count on."""
    rng = seeded(68)
    for dtype in (np.int8, np.int16):
        for _ in range(200):
            y = rng.integers(-3, 4, int(rng.integers(1, 40))).astype(dtype)
            cuts = sorted(rng.integers(0, y.size + 1, 3).tolist())
            state = None
            for piece in np.split(y, cuts):
                state = running_argmax(state, piece[None]) if piece.size else state
            assert state is not None
            assert (state.value, state.columns) == (max(y.tolist()), y.size)
            assert state.column == y.tolist().index(max(y.tolist()))
    low = running_argmax(None, np.full(3, -128, np.int8))
    assert (low.value, low.column) == (-128, 0)


def test_arguments_are_checked() -> None:
    """Wrong arguments are refused by name."""
    a, b = np.zeros((2, 3), np.int8), np.zeros((3, 4), np.int8)
    with pytest.raises(ValueError, match="A of int32"):
        accumulate(a.astype(np.int32), b)
    with pytest.raises(ValueError, match=r"A\(2, 3\) and B\(4, 3\)"):
        accumulate(a, np.zeros((4, 3), np.int8))
    with pytest.raises(ValueError, match="partial"):
        accumulate(a, b, np.zeros((2, 2, 4), np.int32))
    with pytest.raises(ValueError, match="16-bit output"):
        Post(16, table=np.zeros(256, np.int8))
    with pytest.raises(ValueError, match="d must come"):
        Post(combine=GemmOp.ADD)
    with pytest.raises(ValueError, match="without requantisation"):
        gemm(a, b, None, Post())
