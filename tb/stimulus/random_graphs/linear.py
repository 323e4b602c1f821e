# SPDX-License-Identifier: Apache-2.0
"""Random products and convolutions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npu.graph.form import Element
from tb.stimulus.random_graphs.draw import MOST_ELEMENTS, UNFUSED, Draw


def _root(depth: int) -> float:
    """Return the spread of a sum of products of full-range bytes."""
    return 74.0 * 74.0 * math.sqrt(depth)


def matmul(draw: Draw) -> bool:
    """Draw a product with weights."""
    x = draw.pick(Element.I8, Element.I8, Element.U8, Element.I16)
    if x is None:
        return False
    shape, element = draw.shape(x), draw.element(x)
    depth, columns = shape[-1], draw.one_of(1, 3, 10, 16, 17, 32, 48)
    if len(shape) < 2 or depth > 3000:
        return False
    transpose = draw.chance(0.2)
    weight = draw.bytes((columns, depth) if transpose else (depth, columns), -127, 127)
    zero = draw.one_of(0, 0, 0, -7, 100) if element is not Element.I16 else 0
    name = draw.tensor(weight.shape, data=weight, zero=zero)
    result = (*shape[:-1], columns)
    spread = _root(depth) * (256.0 if element is Element.I16 else 1.0) * (1 + abs(zero) / 60)
    attributes = {
        "transpose_a": False,
        "transpose_b": transpose,
        "a_zero": draw.one_of(0, 3, -128) if element is Element.I8 else 0,
        "b_zero": zero,
    }
    if element is not Element.I16 and draw.chance(0.1):
        bias = {"bias": draw.random.integers(-999, 1000, columns).astype(np.int32)}
        integers = bias if draw.chance(0.5) else {}
        draw.add("matmul", (x, name), result, attributes | UNFUSED, integers, Element.I32)
        return True
    wide = draw.chance(0.3)
    made = Element.I16 if wide else Element.I8
    integers = draw.finish(columns, spread, wide=wide)
    combine = zero == 0
    more, operand = draw.epilogue(result, integers, made) if combine else (dict(UNFUSED), ())
    draw.add("matmul", (x, name, *operand), result, attributes | more, integers, made)
    return True


def batched(draw: Draw) -> bool:
    """Draw a product of two tensors."""
    x = draw.pick(Element.I8, Element.U8)
    if x is None or len(draw.shape(x)) < 2:
        return False
    shape = draw.shape(x)
    depth, columns = shape[-1], draw.one_of(1, 5, 16, 20, 33)
    if depth > 500:
        return False
    lead = shape[:-2] if draw.chance(0.7) else tuple(1 for _ in shape[:-2])
    transpose = draw.chance(0.5)
    b = draw.input((*lead, columns, depth) if transpose else (*lead, depth, columns))
    zeros = draw.chance(0.3) and draw.element(x) is Element.I8
    attributes = {
        "transpose_a": False,
        "transpose_b": transpose,
        "a_zero": draw.one_of(-128, 5, 0) if zeros else 0,
        "b_zero": draw.one_of(-128, -3, 0) if zeros else 0,
    }
    result = (*shape[:-1], columns)
    spread = _root(depth) * (2.0 if zeros else 1.0)
    integers = draw.finish(columns, spread)
    more: dict[str, Any] = dict(UNFUSED)
    operand: tuple[str, ...] = ()
    if not zeros:
        more, operand = draw.epilogue(result, integers, Element.I8)
    draw.add("matmul", (x, b, *operand), result, attributes | more, integers)
    return True


def conv(draw: Draw) -> bool:
    """Draw a convolution."""
    x = draw.pick(rank=4)
    if x is None:
        return False
    batch, height, width, channels = draw.shape(x)
    kernel = draw.one_of((1, 1), (3, 3), (3, 3), (2, 3), (5, 1), (1, 4))
    strides = draw.one_of((1, 1), (1, 1), (2, 2), (1, 2), (3, 1))
    dilations = draw.one_of((1, 1), (1, 1), (1, 1), (2, 2), (1, 3))
    pads = tuple(draw.whole(0, k // 2 + 1) if k > 1 else 0 for k in (*kernel, *kernel))
    out = tuple(
        (n + pads[i] + pads[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1
        for i, n in enumerate((height, width))
    )
    if min(out) < 1 or channels > 200:
        return False
    groups = draw.one_of(1, 1, 1, channels, *(g for g in (2, 3, 4, 8) if channels % g == 0))
    each = draw.one_of(1, 1, 2) if groups == channels else draw.one_of(1, 4, 8, 16)
    outputs = groups * each if groups > 1 else draw.one_of(3, 16, 17, 24, 48)
    result = (batch, *out, outputs)
    if np.prod(result) > MOST_ELEMENTS or outputs > 300:
        return False
    depth = kernel[0] * kernel[1] * channels // groups
    weight = draw.bytes((*kernel, channels // groups, outputs), -127, 127)
    w_zero = draw.one_of(0, 0, 0, 0, 90)
    name = draw.tensor(weight.shape, data=weight, zero=w_zero)
    zero = draw.one_of(0, 0, -128, 17)
    attributes = {
        "strides": strides,
        "pads": pads,
        "dilations": dilations,
        "groups": groups,
        "pad_value": zero,
        "x_zero": zero,
        "w_zero": w_zero,
    }
    spread = _root(depth) * (1 + abs(w_zero) / 60) * (1 + abs(zero) / 74)
    if draw.chance(0.05) and groups == 1:
        draw.add("conv", (x, name), result, attributes | UNFUSED, {}, Element.I32)
        return True
    wide = draw.chance(0.2)
    made = Element.I16 if wide else Element.I8
    integers = draw.finish(outputs, spread, wide=wide)
    more: dict[str, Any] = dict(UNFUSED)
    operand: tuple[str, ...] = ()
    if not w_zero:
        more, operand = draw.epilogue(result, integers, made)
        if more["combine"] == "mul" and depth > 600:
            more, operand = dict(UNFUSED), ()
    draw.add("conv", (x, name, *operand), result, attributes | more, integers, made)
    return True
