# SPDX-License-Identifier: Apache-2.0
"""Convolutions over all channels: GEMMs whose rows of A are lines of the image, a line per tap."""

from __future__ import annotations

import numpy as np

from npu.compiler.network.bands import BandKernel, Filters, band_kernel, line_of
from npu.compiler.network.convolution import MovingWindow
from npu.compiler.network.kernel import Context
from npu.compiler.network.layout import StorageView
from npu.compiler.network.linear import Wide, summands
from npu.graph.form import Operation
from spec.isa import DYNAMIC, GEMM_LINES
from spec.isa.operands import up


def line_kernel(
    context: Context,
    operation: Operation,
    x: StorageView,
    operand: StorageView | None,
    writes: StorageView,
) -> BandKernel | None:
    """Return a convolution without copies of windows, cut in the way that takes the fewest cycles.

    None if the filter is in groups or has too many rows, or nothing fits.
    """
    edge, lanes = context.limits.edge, x.row_bytes // x.size

    def filters_of(wide: Wide, window: MovingWindow) -> Filters | None:
        (height, width, channels, outputs), (down, across) = wide.shape, window.dilations
        size = up(width * lanes, edge)
        if not 2 <= height <= GEMM_LINES or (width > 1 and across > 1) or height * size >= DYNAMIC:
            return None
        pixels = np.zeros((height, width, lanes, outputs), np.int64)
        pixels[:, :, :channels] = wide
        # Taps that fill a line to whole tiles are zero: they read what lies behind a window.
        lines = np.zeros((height, size, outputs), np.int64)
        lines[:, : width * lanes] = pixels.reshape(height, -1, outputs)
        weights = summands(lines.reshape(-1, outputs))
        if len(weights) > 1 and x.size > 1:
            return None
        # A line is whole steps, so that windows of several lines are at one distance.
        image = up(line_of(window), window.strides[1])
        return Filters(
            weights,
            wide.sum((0, 1, 2)),
            image,
            height,
            down * image,
            -(-size // lanes),
            window.strides[1],
        )

    if operation["groups"] != 1:
        return None
    return band_kernel(context, operation, x, operand, writes, filters_of)
