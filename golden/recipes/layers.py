# SPDX-License-Identifier: Apache-2.0
"""The recipes: linear layer, softmax and RMSNorm, in FP32 and quantised.

linear FP32       FVMAC, FRSTACC per row; FVADD of the bias
softmax FP32      FVMAX m; FVSUB_SCALAR of m; FVEXP; FVREDUCE s; then FVDIV by s, or r = 1 / s
                  (FVDIV of one 1.0) and FVMUL by r
RMSNorm FP32      FVMAC of x with itself, FRSTACC: ss; m = float32(ss * (1/n) + epsilon * 1 in
                  facc); r = FRSQRT m; FVMUL by r; with gains float32(y * g) by FMACC, FRSTACC
linear quantised  VMAC, RSTACC per row; add the bias; QMUL by the row's factor; shift right
                  (floor); CLAMP to a byte, or add to the residual stream
softmax quantised VMAX; subtract it; VEXP; VREDUCE s; r = floor(255 * 2^24 / s); C = 2^23 and, for
                  each numerator e in order, C += e * r; p = floor(C / 2^24) less that of before.
                  So the rounding errors of a row do not add up: its sum is 255, or 254 where r
                  was cut by much
RMSNorm quantised e: the least with |x| >> e <= 127 for all x (of x < 0: ~x); x8 = x / 2^e rounded
                  half up, CLAMP; VMAC of x8 with itself, RSTACC: ss;
                  r = VRSQRT(floor(ss * 65536 / n) + (epsilon >> 2e)); acc = r * steps (MACC);
                  VMUL of x8
"""

from __future__ import annotations

import numpy as np

from golden.recipes.operations import (
    Float32,
    Int64,
    byte,
    exp,
    exp_q16_16,
    high_product,
    inverse_root,
    inverse_root_q16_16,
    products,
    rounded,
    scaled_bytes,
    squares,
    sums,
)


def linear(weight: Float32, bias: Float32, x: Float32) -> Float32:
    """Return weight . x + bias: (out, in), (out,) and (..., in) to (..., out)."""
    return products(weight, x) + bias


def softmax(scores: Float32, by_reciprocal: bool = False) -> Float32:
    """Return the softmax of finite scores along the last axis, (..., n) with n >= 1."""
    top = scores.max(axis=-1, keepdims=True)
    numerators = exp(scores - top)
    total = sums(numerators)[..., None]
    if by_reciprocal:
        return numerators * (np.float32(1.0) / total)
    return numerators / total


def rmsnorm(x: Float32, epsilon: float, gain: Float32 | None = None) -> Float32:
    """Return x / sqrt(mean(x^2) + epsilon) along the last axis, whose size is a power of two."""
    size = x.shape[-1]
    mean = squares(x).astype(np.float64) * (1.0 / size)  # exact: a power of two
    scale = inverse_root(rounded(mean + np.float64(np.float32(epsilon))))
    y = x * scale[..., None]
    return y if gain is None else y * gain


def requantised(sums: Int64, factor: Int64, shift: int) -> Int64:
    """Return floor(QMUL(sum, factor) / 2^shift); a layer's `sums` are (..., out) with the bias."""
    return high_product(sums, factor) >> shift


def softmax_bytes(scores: Int64) -> Int64:
    """Return probabilities in units of 1/255, 0..255, of Q16.16 scores (..., n), 1 <= n <= 255."""
    numerators = exp_q16_16(scores - scores.max(axis=-1, keepdims=True))
    scale = (255 << 24) // numerators.sum(axis=-1, keepdims=True)
    running = ((1 << 23) + np.cumsum(numerators * scale, axis=-1)) >> 24
    return np.diff(running, axis=-1, prepend=0)


def rmsnorm_bytes(x: Int64, epsilon: int, steps: int) -> Int64:
    """Return bytes, 1/`steps` each, of the RMSNorm of a residual stream (..., n)."""
    top = np.max(x ^ (x >> 31), axis=-1, keepdims=True)
    exponent = np.maximum(np.ceil(np.log2(top + 1)).astype(np.int64) - 7, 0)
    small = byte((x + ((1 << exponent) >> 1)) >> exponent)
    mean = ((small * small).sum(axis=-1) << 16) // x.shape[-1]
    scale = inverse_root_q16_16(mean + (epsilon >> (2 * exponent[..., 0]))) * steps
    return scaled_bytes(small, scale[..., None])
