# SPDX-License-Identifier: Apache-2.0
"""Matrix products and convolutions, and what follows their sums."""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from golden.fixed import Int64Array, multiply, rs, sat
from golden.graph.call import BITS, IntegerCall
from npu.graph.form import Array

INT32 = np.iinfo(np.int32)
EXACT = 1 << 53
"""Sums below this are exact in float64, in whatever order they are formed."""
STRIP_BYTES = 1 << 25
"""Of the rows of windows that one product takes."""


def product(a: Int64Array, b: Int64Array) -> Int64Array:
    """Return a @ b, exact, by the float64 product where that is exact."""
    depth = a.shape[-1]
    most = depth * max(1, int(np.abs(a).max(initial=0))) * max(1, int(np.abs(b).max(initial=0)))
    if most >= EXACT:
        return np.asarray(np.matmul(a, b), np.int64)
    return np.asarray(np.matmul(a.astype(np.float64), b.astype(np.float64)), np.int64)


def within(total: Int64Array) -> Int64Array:
    """Return sums as they are; OverflowError if one does not fit an int32 accumulator."""
    if total.size and (int(total.min()) < INT32.min or int(total.max()) > INT32.max):
        worst = max(int(total.max()), int(total.min()), key=abs)
        raise OverflowError(f"the sum {worst} leaves an int32 accumulator")
    return total


def finished(call: IntegerCall, total: Int64Array) -> Array:
    """Return what bias, requantisation, ReLU, table and operand make of the sums (..., N)."""
    value = total + call.integers("bias")
    if "mult" not in call.operation.integers:
        return within(value)
    combine = call["combine"]
    bits = 8 if combine == "mul" else BITS[call.result.element]
    value = sat(rs(multiply(value, call.integers("mult")), call.integers("shift")), bits)
    if call["relu"]:
        value = np.maximum(value, 0)
    if "table" in call.operation.integers:
        value = call.integers("table")[value & 255]
    if not combine:
        return value
    operand = call.wide(len(call.values) - 1)
    if operand.shape != value.shape:
        raise ValueError(f"{combine} of {list(operand.shape)} to {list(value.shape)}")
    if combine == "add":
        return sat(value + operand, bits)
    if combine == "mul":
        wide = multiply(multiply(value, operand), call["product_mult"])
        return sat(rs(wide, call["product_shift"]), 8)
    raise ValueError(f"combine {combine!r}, allowed '', 'add', 'mul'")


def matmul(call: IntegerCall) -> Array:
    """Return finished(sum over k of (a - za) * (b - zb)).

    A 16-bit a has an accumulator for its high and one for its low bytes: each is checked.
    """
    if call["transpose_a"]:
        raise ValueError("transpose_a, allowed only before the graph is fused")
    a, b = call.wide(0), call.wide(1) - call["b_zero"]
    if call["transpose_b"]:
        b = np.swapaxes(b, -1, -2)
    zero = call["a_zero"]
    if call.array(0).dtype.itemsize == 1:
        return finished(call, within(product(a - zero, b)))
    high, low = within(product(a >> 8, b)), within(product(a & 255, b))
    return finished(call, (high << 8) + low - zero * b.sum(axis=-2, keepdims=True))


def conv(call: IntegerCall) -> Array:
    """Return finished(sum over a window of (x - zx) * (w - zw)); the border holds pad_value."""
    x, weight = call.wide(0), call.wide(1) - call["w_zero"]
    top, left, bottom, right = call["pads"]
    (sy, sx), (dy, dx), groups = call["strides"], call["dilations"], call["groups"]
    border = ((0, 0), (top, bottom), (left, right), (0, 0))
    x = np.pad(x, border, constant_values=call["pad_value"]) - call["x_zero"]
    rows, columns, depth, filters = weight.shape
    reach = ((rows - 1) * dy + 1, (columns - 1) * dx + 1)
    # (B, OH, OW, C, KH, KW), a view of the padded image.
    windows = sliding_window_view(x, reach, axis=(1, 2))[:, ::sy, ::sx, :, ::dy, ::dx]
    each = filters // groups
    if depth == 1 and each == 1 and groups > 1:
        return finished(call, within(_depthwise(windows, weight)))
    parts = [
        _rows(
            windows[..., one * depth : (one + 1) * depth, :, :],
            weight[..., one * each : (one + 1) * each],
        )
        for one in range(groups)
    ]
    return finished(call, within(np.concatenate(parts, axis=-1)))


def _rows(windows: Int64Array, weight: Int64Array) -> Int64Array:
    """Multiply windows (B, OH, OW, C, KH, KW) by filters (KH, KW, C, N), strip by strip."""
    batch, height, width = windows.shape[:3]
    matrix = weight.transpose(2, 0, 1, 3).reshape(-1, weight.shape[-1])
    total = np.empty((batch, height, width, weight.shape[-1]), np.int64)
    step = max(1, STRIP_BYTES // (8 * width * matrix.shape[0]))
    for image in range(batch):
        for row in range(0, height, step):
            strip = windows[image, row : row + step]
            flat = product(strip.reshape(-1, matrix.shape[0]), matrix)
            total[image, row : row + step] = flat.reshape(-1, width, matrix.shape[1])
    return total


def _depthwise(windows: Int64Array, weight: Int64Array) -> Int64Array:
    """Add up the taps: each channel of windows (B, OH, OW, C, KH, KW) has a filter of its own."""
    total = np.zeros(windows.shape[:4], np.int64)
    for y, at in np.ndindex(*weight.shape[:2]):
        total += windows[..., y, at] * weight[y, at, 0]
    return total


MEANINGS = {"matmul": matmul, "conv": conv}
