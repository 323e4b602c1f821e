# SPDX-License-Identifier: Apache-2.0
"""Windows that move over images, and means."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from golden.fixed import Int64Array, multiply, rs, sat
from golden.graph.call import IntegerCall
from npu.graph.form import Array


def _taps(call: IntegerCall, fill: int) -> Iterator[Int64Array]:
    """Yield for each place in the window what stands there, (B, OH, OW, C)."""
    x = call.wide(0)
    top, left, bottom, right = call["pads"]
    sy, sx = call["strides"]
    dilated = "dilations" in call.operation.attributes
    dy, dx = call["dilations"] if dilated else (1, 1)
    height, width = call.result.shape[1:3]
    rows, columns = call["window"]
    # Windows of the ceiling mode reach past the padded image.
    down = max(0, (height - 1) * sy + (rows - 1) * dy + 1 - x.shape[1] - top - bottom)
    across = max(0, (width - 1) * sx + (columns - 1) * dx + 1 - x.shape[2] - left - right)
    x = np.pad(
        x, ((0, 0), (top, bottom + down), (left, right + across), (0, 0)), constant_values=fill
    )
    for y, at in np.ndindex(rows, columns):
        yield x[
            :,
            y * dy : y * dy + (height - 1) * sy + 1 : sy,
            at * dx : at * dx + (width - 1) * sx + 1 : sx,
        ]


def maxpool(call: IntegerCall) -> Array:
    """Return the largest of each window; the border never wins."""
    best = np.full(call.result.shape, -128, np.int64)
    for tap in _taps(call, -128):
        best = np.maximum(best, tap)
    return best


def avgpool(call: IntegerCall) -> Array:
    """Return sat8(rs((weight * sum + bias) * mult, shift)), the factors by output pixel."""
    total = np.zeros(call.result.shape, np.int64)
    for tap in _taps(call, 0):
        total += tap
    size = call.result.shape[1:3]

    def factor(name: str) -> Int64Array:
        value = call.integers(name)
        whole = value.reshape(size) if value.size > 1 else np.broadcast_to(value.reshape(()), size)
        return whole[None, :, :, None]

    total = call["weight"] * total + factor("bias")
    return sat(rs(multiply(total, factor("mult")), factor("shift")), 8)


def mean(call: IntegerCall) -> Array:
    """Return sat8(rs((weight * sum + bias) * mult, shift))."""
    total = call.wide(0).sum(axis=tuple(call["axes"]), keepdims=call["keep"])
    total = call["weight"] * total + int(call.integers("bias").reshape(-1)[0])
    mult, shift = (int(call.integers(name).reshape(-1)[0]) for name in ("mult", "shift"))
    return sat(rs(multiply(total, mult), shift), 8)


MEANINGS = {"maxpool": maxpool, "avgpool": avgpool, "mean": mean}
