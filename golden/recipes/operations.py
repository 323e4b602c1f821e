# SPDX-License-Identifier: Apache-2.0
"""Coprocessor instructions on numpy arrays, many rows at once, for the references of the recipes.

Floats are float32. Sums are in float64 from +0, term by term along the last axis, each product
exact and each addition rounded to nearest even (FVMAC, FVREDUCE); `rounded` is what FRSTACC reads.
exp, GELU and 1/sqrt are those of golden.coprocessor.arrays.
Integers are int64 arrays that hold the 32-bit values of registers and memory.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from golden.coprocessor import arrays

Float32 = npt.NDArray[np.float32]
Float64 = npt.NDArray[np.float64]
Int64 = npt.NDArray[np.int64]


def _each(function: Callable[[arrays.Words], arrays.Words], x: Float32) -> Float32:
    """Return a function of bit patterns for each float32 of an array of any shape."""
    bits = np.ascontiguousarray(x).view(np.uint32).ravel()
    return function(bits).view(np.float32).reshape(x.shape)


def _each_word(function: Callable[[arrays.Words], arrays.Words], x: Int64) -> Int64:
    """Return a function of 32-bit words, signed, for each number of an array of any shape."""
    words = x.astype(np.int32).view(np.uint32).ravel()
    return function(words).view(np.int32).astype(np.int64).reshape(x.shape)


def rounded(x: Float64) -> Float32:
    """Return float64 rounded to float32, to nearest even."""
    with np.errstate(over="ignore"):
        return x.astype(np.float32)


def products(weight: Float32, x: Float32) -> Float32:
    """FVMAC and FRSTACC for each row of `weight`.

    Args:
        weight: (out, in) float32, or (..., out, in) for weights of each row of `x`.
        x: (..., in) float32.

    Returns:
        (..., out) float32.
    """
    columns, lanes = np.moveaxis(weight, -1, 0).astype(np.float64), x.astype(np.float64)
    total = np.zeros(np.broadcast_shapes((*x.shape[:-1], 1), weight.shape[:-1]), np.float64)
    for i in range(x.shape[-1]):
        total = total + columns[i] * lanes[..., i, None]
    return rounded(total)


def sums(x: Float32) -> Float32:
    """FVREDUCE along the last axis: (..., n) to (...)."""
    return products(x[..., None, :], np.ones_like(x))[..., 0]


def squares(x: Float32) -> Float32:
    """FVMAC of a vector with itself along the last axis: (..., n) to (...)."""
    return products(x[..., None, :], x)[..., 0]


def exp(x: Float32) -> Float32:
    """FVEXP."""
    return _each(arrays.exp_float32, x)


def gelu(x: Float32) -> Float32:
    """FVGELU."""
    return _each(arrays.gelu_float32, x)


def inverse_root(x: Float32) -> Float32:
    """FRSQRT."""
    return _each(arrays.rsqrt_float32, x)


def high_product(a: Int64, b: Int64 | int) -> Int64:
    """QMUL: floor(a * b / 256) mod 2^32, signed; |a * b| must be below 2^63."""
    product = (a * b) >> 8
    return ((product + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)


def byte(x: Int64) -> Int64:
    """CLAMP: saturate to -128..127."""
    return np.clip(x, -128, 127)


def scaled_bytes(x: Int64, scale: Int64) -> Int64:
    """VMUL: floor(x * scale / 65536), saturated to -128..127."""
    return byte((x * scale) >> 16)


def exp_q16_16(x: Int64) -> Int64:
    """VEXP."""
    return _each_word(arrays.exp_q16_16, x)


def inverse_root_q16_16(x: Int64) -> Int64:
    """VRSQRT."""
    return _each_word(arrays.rsqrt_q16_16, x)


def gelu_byte(x: Int64) -> Int64:
    """GELU of values -128..127."""
    return _each_word(arrays.gelu_int8, x)
