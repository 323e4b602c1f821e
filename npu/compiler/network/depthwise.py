# SPDX-License-Identifier: Apache-2.0
"""Depthwise convolutions: GEMMs whose columns multiply their own channel of neighbouring pixels."""

from __future__ import annotations

import numpy as np

from npu.compiler.network.bands import BandKernel, Filters, band_kernel, line_of
from npu.compiler.network.convolution import MovingWindow
from npu.compiler.network.kernel import Context
from npu.compiler.network.layout import StorageView
from npu.compiler.network.linear import Wide, summands
from npu.graph.form import Operation
from spec.isa import DEPTHWISE_TAPS, GEMM_LINES
from spec.isa.operands import up

Lines = tuple[int, Wide]
"""Pixels from line to line, and their taps (lines, DEPTHWISE_TAPS, C)."""


def _lines(weight: Wide, window: MovingWindow, line: int) -> Lines | None:
    """Return filters (KH, KW, C) in lines over an image of `line` pixels; None if they do not fit.

    A row of taps that is longer than a line is several lines, and so is a column of an image that
    is one pixel wide.
    """
    height, width, channels = weight.shape
    down, across = window.dilations
    if height == 1 or (width == 1 and line == 1):
        count, apart = (width, across) if height == 1 else (height, down)
        row = weight.reshape(count, channels)
        if count <= GEMM_LINES and apart >= DEPTHWISE_TAPS:
            return (apart, _spread(row[:, None], 1))
        taps = _spread(row[None], apart).reshape(-1, DEPTHWISE_TAPS, channels)
        return (DEPTHWISE_TAPS, taps) if taps.shape[0] <= GEMM_LINES else None
    if height > GEMM_LINES or window.span[1] > DEPTHWISE_TAPS:
        return None
    return (down * line, _spread(weight, across))


def _spread(rows: Wide, apart: int) -> Wide:
    """Return taps (rows, taps, C) `apart` pixels apart, in whole lines."""
    count, taps, channels = rows.shape
    found = np.zeros((count, up((taps - 1) * apart + 1, DEPTHWISE_TAPS), channels), np.int64)
    found[:, : (taps - 1) * apart + 1 : apart] = rows
    return found


def depthwise_kernel(
    context: Context,
    operation: Operation,
    x: StorageView,
    operand: StorageView | None,
    writes: StorageView,
) -> BandKernel | None:
    """Return a depthwise convolution cut in the way that takes the fewest cycles.

    None if the operation is another one, or the chip has no such product, or nothing fits.
    """
    weight, limits = context.graph.constant(operation.inputs[1]), context.limits
    assert weight is not None
    channels = x.columns
    if (
        limits.array_dim != limits.edge
        or weight.shape[2:] != (1, channels)
        or operation["groups"] != channels
        or x.size != 1
    ):
        return None

    def filters_of(wide: Wide, window: MovingWindow) -> Filters | None:
        line = line_of(window)
        lines = _lines(wide[:, :, 0], window, line)
        if lines is None:
            return None
        apart, taps = lines
        tiles = np.zeros((taps.shape[0], limits.edge, channels), np.int64)
        tiles[:, 1 : 1 + DEPTHWISE_TAPS] = taps
        return Filters(
            summands(tiles.reshape(-1, channels)),
            taps.sum((0, 1)),
            line,
            taps.shape[0],
            apart,
            DEPTHWISE_TAPS,
            depthwise=True,
        )

    return band_kernel(context, operation, x, operand, writes, filters_of)
