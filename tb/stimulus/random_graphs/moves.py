# SPDX-License-Identifier: Apache-2.0
"""Random moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from npu.graph.form import Element
from tb.stimulus.random_graphs.draw import MOST_ELEMENTS, Draw


def move(draw: Draw) -> bool:
    """Draw a move of one or two tensors."""
    x = draw.pick(Element.I8, Element.I8, Element.I16, Element.U8)
    if x is None:
        return False
    shape, element = draw.shape(x), draw.element(x)
    more: dict[str, Any] = {
        "element": element,
        "scale": draw.scale(x),
    }
    axes = len(shape)
    kind = draw.one_of("reshape", "transpose", "slice", "pad", "expand", "concat", "identity")
    if kind == "reshape":
        size = int(np.prod(shape))
        rows = draw.one_of(*(n for n in range(1, min(size, 64) + 1) if size % n == 0))
        result = draw.one_of((rows, size // rows), (1, *shape), (*shape[:-2], 1, *shape[-2:]))
        if len(result) > 5:
            return False
        draw.add(kind, (x,), result, {"shape": result}, **more)
    elif kind == "transpose":
        order = [int(i) for i in draw.random.permutation(axes)]
        if element is Element.I16:
            order = [*(i for i in order if i != axes - 1), axes - 1]
        result = tuple(shape[i] for i in order)
        draw.add(kind, (x,), result, {"order": tuple(order)}, **more)
    elif kind == "slice":
        starts = [draw.whole(0, n - 1) for n in shape]
        steps = [draw.one_of(1, 1, 2) for _ in shape]
        attributes: dict[str, Any] = {
            "starts": tuple(starts),
            "stops": shape,
            "steps": tuple(steps),
        }
        result = tuple(-(-(n - a) // s) for n, a, s in zip(shape, starts, steps, strict=True))
        draw.add(kind, (x,), result, attributes, **more)
    elif kind == "pad":
        before, after = ([draw.one_of(0, 0, 1, 3) for _ in shape] for _ in range(2))
        result = tuple(n + a + b for n, a, b in zip(shape, before, after, strict=True))
        value = draw.one_of(0, 0, draw.whole(0 if element is Element.U8 else -128, 127))
        attributes = {
            "before": tuple(before),
            "after": tuple(after),
            "value": value * draw.scale(x),
            "value_int": value,
        }
        draw.add(kind, (x,), result, attributes, **more)
    elif kind == "expand":
        result = (draw.one_of(1, 2, 3), *shape)
        if len(result) > 5 or np.prod(result) > MOST_ELEMENTS:
            return False
        draw.add(kind, (x,), result, {"shape": result}, **more)
    elif kind == "identity":
        draw.add(kind, (x,), shape, {}, **more)
    else:
        axis = draw.whole(0, axes - 1)
        other = tuple(draw.one_of(1, 16, 32) if i == axis else n for i, n in enumerate(shape))
        words = 16 if element is not Element.I16 else 8
        if axis == axes - 1 and shape[-1] % words:
            return False
        second = draw.operand(other, element, draw.scale(x))
        if element is Element.U8 or np.prod(other) > MOST_ELEMENTS:
            return False
        result = tuple(
            n + m if i == axis else n for i, (n, m) in enumerate(zip(shape, other, strict=True))
        )
        draw.add(kind, (x, second), result, {"axis": axis}, **more)
    return True
