# SPDX-License-Identifier: Apache-2.0
"""Matrix products and convolutions, and what follows their sums."""

from __future__ import annotations

import numpy as np

from golden.fixed import Int64Array, multiply, rs, sat
from golden.graph.call import BITS, Call
from npu.graph.form import Array

INT32 = np.iinfo(np.int32)
EXACT = 1 << 53
"""Sums below this are exact in float64, in whatever order they are formed."""


def product(a: Int64Array, b: Int64Array) -> Int64Array:
    """Return a @ b, exact, by the float64 product where that is exact."""
    depth = a.shape[-1]
    most = depth * max(1, int(np.abs(a).max(initial=0))) * max(1, int(np.abs(b).max(initial=0)))
    if most >= EXACT:
        return np.asarray(np.matmul(a, b), np.int64)
    return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)), np.int64)


def finished(call: Call, total: Int64Array) -> Array:
    """Return what bias, requantisation, ReLU, table and operand make of the sums (..., N)."""
    total = total + call.integers("bias")
    narrow = call.array(0).dtype.itemsize == 1
    if narrow and total.size and (total.min() < INT32.min or total.max() > INT32.max):
        raise OverflowError(f"a sum of {np.abs(total).max()} leaves int32")
    if "mult" not in call.operation.integers:
        return total
    combine = call["combine"]
    bits = 8 if combine == "mul" else BITS[call.result.element]
    value = sat(rs(multiply(total, call.integers("mult")), call.integers("shift")), bits)
    if call["relu"]:
        value = np.maximum(value, 0)
    if "table" in call.operation.integers:
        value = call.integers("table")[value & 255]
    if not combine:
        return value
    operand = call.wide(len(call.values) - 1)
    if combine == "add":
        return sat(value + operand, bits)
    wide = multiply(multiply(value, operand), call["product_mult"])
    return sat(rs(wide, call["product_shift"]), 8)


def matmul(call: Call) -> Array:
    """Return finished(sum over k of (a - za) * (b - zb))."""
    a = call.wide(0) - call["a_zero"]
    b = call.wide(1) - call["b_zero"]
    if call["transpose_b"]:
        b = np.swapaxes(b, -1, -2)
    return finished(call, product(a, b))


def conv(call: Call) -> Array:
    """Return finished(sum over a window of (x - zx) * (w - zw)); the border holds pad_value."""
    x, weight = call.wide(0), call.wide(1) - call["w_zero"]
    top, left, bottom, right = call["pads"]
    (sy, sx), (dy, dx), groups = call["strides"], call["dilations"], call["groups"]
    x = np.pad(
        x,
        ((0, 0), (top, bottom), (left, right), (0, 0)),
        constant_values=call["pad_value"],
    )
    x = x - call["x_zero"]
    batch, height, width = call.result.shape[:3]
    rows, columns, inputs, outputs = weight.shape
    each = outputs // groups
    total = np.zeros((batch, height, width, outputs), np.int64)
    for tap in np.ndindex(rows, columns):
        y, at = tap[0] * dy, tap[1] * dx
        part = x[:, y : y + (height - 1) * sy + 1 : sy, at : at + (width - 1) * sx + 1 : sx]
        for group in range(groups):
            kernel = weight[tap][:, group * each : (group + 1) * each]
            lanes = part[..., group * inputs : (group + 1) * inputs]
            total[..., group * each : (group + 1) * each] += product(lanes, kernel)
    return finished(call, total)


MEANINGS = {"matmul": matmul, "conv": conv}
