# SPDX-License-Identifier: Apache-2.0
"""Products: many matrices at once, convolutions in groups."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Element
from npu.graph.library.sketch import Sketch


def batched_matmul(
    draw: Sketch, *, batch: int = 3, rows: int = 10, inner: int = 24, columns: int = 18
) -> tuple[str, ...]:
    """Products of a (batch, rows, inner) and b (batch, inner, columns), matrix by matrix."""
    a, b = draw.given("a", batch, rows, inner), draw.given("b", batch, inner, columns)
    return (draw.stage("product", "matmul", a, b),)


def narrow_matmul(
    draw: Sketch, *, batch: int = 2, rows: int = 6, inner: int = 20, columns: int = 7
) -> tuple[str, ...]:
    """Products of int4 matrices a (batch, rows, inner) and b (batch, inner, columns), int32."""
    a = draw.given("a", batch, rows, inner, element=Element.I8)
    b = draw.given("b", batch, inner, columns, element=Element.I8)
    return (narrow_products(draw, "product", a, b),)


def narrow_products(draw: Sketch, name: str, a: str, b: str) -> str:
    """Add products of int4 matrices (..., M, K) and (..., K, N); return the result."""
    *outer, rows, _ = draw.shape(a)
    columns = draw.shape(b)[-1]
    parts = []
    for at in np.ndindex(*outer):
        left, right = (_matrix(draw, x, at) for x in (a, b))
        made = draw.step("portmatmul", left, right, format="int4", group=0, exact=False)
        parts.append(draw.step("reshape", made, shape=(1, rows, columns)))
    whole = draw.step("concat", *parts, axis=0) if len(parts) > 1 else parts[0]
    return draw.stage(name, "reshape", whole, shape=(*outer, rows, columns))


def _matrix(draw: Sketch, x: str, at: tuple[int, ...]) -> str:
    """Return one matrix of many."""
    shape = draw.shape(x)
    rest = len(shape) - len(at)
    starts = (*at, *(0 for _ in range(rest)))
    stops = (*(place + 1 for place in at), *shape[len(at) :])
    part = draw.step("slice", x, starts=starts, stops=stops, steps=[1] * len(shape))
    return draw.step("reshape", part, shape=shape[len(at) :])


def conv(
    draw: Sketch, *, size: int = 8, channels: int = 8, filters: int = 12, window: int = 3
) -> tuple[str, ...]:
    """The convolution of an image (1, size, size, channels) with square filters."""
    return (_conv(draw, size, channels, filters, window, 1),)


def grouped_conv(
    draw: Sketch,
    *,
    size: int = 8,
    channels: int = 12,
    filters: int = 24,
    window: int = 3,
    groups: int = 3,
) -> tuple[str, ...]:
    """The same in groups: each has its share of channels and filters."""
    return (_conv(draw, size, channels, filters, window, groups),)


def depthwise_conv(
    draw: Sketch, *, size: int = 8, channels: int = 16, times: int = 2, window: int = 3
) -> tuple[str, ...]:
    """The same with a group per channel, and `times` filters for each."""
    return (_conv(draw, size, channels, channels * times, window, channels),)


def _conv(draw: Sketch, size: int, channels: int, filters: int, window: int, groups: int) -> str:
    x = draw.given("x", 1, size, size, channels)
    inner = channels // groups
    w = draw.weights("filters", window, window, inner, filters, fan_in=window * window * inner)
    return draw.stage("image", "conv", x, w, groups=groups)
