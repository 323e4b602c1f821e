# SPDX-License-Identifier: Apache-2.0
"""Random operations of the host between those of the chip: every kind, on every element type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from npu.graph.form import Element
from tb.stimulus.random_graphs.draw import HOST, Draw, Shape

_LOGIC = ("and", "or", "xor", "not_")
_OF_ALL = ("div", "pow", "mod", "compare", "select", "iota")
_OF_REALS = ("sub", "min", "clip", "softmax", "mean", "argmax", "gather")
"""Kinds that the chip has as well, for integers."""
_REALS = (Element.F32, Element.F32, Element.F32, Element.F16, Element.F64)
_WHOLE = (Element.I32, Element.I64, Element.U16, Element.U32, Element.U64)


def host(draw: Draw) -> bool:
    """Draw operations of the host behind a dequantisation, and the way back."""
    x = draw.pick(Element.I8, Element.I8, Element.U8)
    if x is None:
        return False
    shape, size = draw.shape(x), draw.scale(x)
    real = _add(draw, "dequantise", (x,), shape, Element.F32)
    scale = draw.one_of(1.0, 0.25, 0.003)
    kind = draw.one_of("table", "div", "reduce", "others", "others")
    if kind == "table":
        attributes: dict[str, Any] = {"functions": ("sin", "scale"), "parameters": (100.0 * scale,)}
        made = _add(draw, kind, (real,), shape, Element.F32, attributes)
    elif kind == "div":
        divisor = _constant(draw, shape, Element.F32, draw.one_of(0.75, -1.5) * size / scale)
        made = _add(draw, kind, (real, divisor), shape, Element.F32)
    elif kind == "reduce":
        axis = draw.whole(0, len(shape) - 1)
        shape = tuple(1 if i == axis else n for i, n in enumerate(shape))
        attributes = {"axes": (axis,), "keep": True, "function": draw.one_of("max", "min")}
        made = _add(draw, kind, (real,), shape, Element.F32, attributes)
        scale = size
    else:
        made, shape = _other(draw, real, shape)
    draw.add("quantise", (made,), shape, {}, place=HOST, scale=scale)
    return True


def _add(
    draw: Draw,
    kind: str,
    inputs: tuple[str, ...],
    shape: Shape,
    element: Element,
    attributes: Mapping[str, Any] | None = None,
) -> str:
    return draw.add(
        kind, inputs, shape, attributes or {}, element=element, place=HOST, live=False, plain=True
    )


def _constant(draw: Draw, shape: Shape, element: Element, value: float) -> str:
    return draw.tensor(shape, element, np.full(shape, value, element.dtype), plain=True)


def _cast(draw: Draw, name: str, shape: Shape, element: Element) -> str:
    return _add(draw, "cast", (name,), shape, element, {"element": element.value})


def _other(draw: Draw, real: str, shape: Shape) -> tuple[str, Shape]:
    """Draw a kind on one of the element types; return its result as float32, and the shape."""
    whole = draw.chance(0.6)
    element = draw.one_of(*(_WHOLE if whole else _REALS))
    kind = draw.one_of(*_OF_ALL, *(_LOGIC if whole else _OF_REALS))
    # What is negative has no place in a type without sign.
    small = _add(draw, "max", (real, _constant(draw, shape, Element.F32, 0)), shape, Element.F32)
    value = small if element is Element.F32 else _cast(draw, small, shape, element)
    two = _constant(draw, shape, element, draw.one_of(1, 2, 3))
    if kind == "iota":
        attributes = {
            "shape": shape,
            "axis": draw.whole(0, len(shape) - 1),
            "element": element.value,
        }
        count = _add(draw, kind, (), shape, element, attributes)
        value = _add(draw, "add", (value, count), shape, element)
    elif kind in ("clip", "softmax", "mean", "argmax"):
        value, shape, element = _of_rows(draw, kind, value, shape, element)
    elif kind == "gather":
        indices = draw.random.integers(0, shape[0], draw.whole(1, 8)).astype(np.int64)
        chosen = draw.tensor(indices.shape, Element.I64, indices, plain=True)
        shape = (len(indices), *shape[1:])
        value = _add(draw, kind, (value, chosen), shape, element, {"axis": 0})
    elif kind == "not_":
        value = _add(draw, kind, (value,), shape, element)
    elif kind in ("compare", "select"):
        directions = ("EQ", "NE", "LT", "LE", "GT", "GE")
        attributes = {"direction": draw.one_of(*directions)}
        holds = _add(draw, "compare", (value, two), shape, Element.BOOL, attributes)
        if kind == "select":
            value = _add(draw, kind, (holds, value, two), shape, element)
        else:
            value = _add(draw, "not_", (holds,), shape, Element.BOOL)
            element = Element.BOOL
    else:
        value = _add(draw, kind, (value, two), shape, element)
    plain = value if element is Element.F32 else _cast(draw, value, shape, Element.F32)
    return plain, shape


def _of_rows(
    draw: Draw, kind: str, value: str, shape: Shape, element: Element
) -> tuple[str, Shape, Element]:
    """Draw a kind with attributes of its own, on the last axis; return what it makes."""
    last = len(shape) - 1
    attributes: dict[str, dict[str, Any]] = {
        "clip": {"low": 0.5, "high": 20.0},
        "softmax": {"axis": last},
        "mean": {"axes": (last,), "keep": True},
        "argmax": {"axis": last, "keep": True},
    }
    if kind in ("mean", "argmax"):
        shape = (*shape[:-1], 1)
    if kind == "argmax":
        element = Element.I64
    return _add(draw, kind, (value,), shape, element, attributes[kind]), shape, element
