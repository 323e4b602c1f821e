# SPDX-License-Identifier: Apache-2.0
"""Random operations on single elements."""

from __future__ import annotations

from npu.graph.form import Element
from npu.graph.operations import TABLE, Trait
from tb.stimulus.random_graphs.draw import Draw


def elementwise(draw: Draw) -> bool:
    """Draw an operation of two tensors, one of them broadcast now and then."""
    x = draw.pick(Element.I8, Element.I16)
    if x is None:
        return False
    shape, element = draw.shape(x), draw.element(x)
    if draw.chance(0.2):
        narrow = tuple(1 if draw.chance(0.5) else n for n in shape)
        span = 128 if element is Element.I8 else 1 << 15
        data = draw.random.integers(-span, span, narrow).astype(element.dtype)
        other = draw.tensor(narrow, element, data)
    else:
        other = draw.operand(shape, element)
        if other == x:
            other = draw.input(shape, element)
    kind = draw.one_of(*(name for name, one in TABLE.items() if Trait.PAIR in one.traits))
    shift = 7 if element is Element.I8 else 14
    attributes = {"shift": shift} if TABLE[kind].fused else {}
    draw.add(kind, (x, other), shape, attributes, element=element)
    return True


def clip(draw: Draw) -> bool:
    """Draw bounds."""
    x = draw.pick(Element.I8, Element.I16)
    if x is None:
        return False
    element = draw.element(x)
    span = 128 if element is Element.I8 else 1 << 15
    low, high = sorted(draw.whole(-span, span - 1) for _ in range(2))
    attributes = {"low": float(low), "high": float(high), "low_int": low, "high_int": high}
    draw.add("clip", (x,), draw.shape(x), attributes, element=element)
    return True


def table(draw: Draw) -> bool:
    """Draw a table."""
    x = draw.pick(Element.I8, Element.U8)
    if x is None:
        return False
    attributes = {"functions": ("relu",), "parameters": ()}
    draw.add("table", (x,), draw.shape(x), attributes, {"table": draw.bytes((256,))})
    return True


def requantise(draw: Draw) -> bool:
    """Draw a change of scale, mostly of the width too."""
    x = draw.pick(Element.I8, Element.I16)
    if x is None:
        return False
    element = draw.one_of(Element.I8, Element.I16)
    wider = element.dtype.itemsize - draw.element(x).dtype.itemsize
    mult = draw.whole(1 << 13, (1 << 15) - 1) * draw.one_of(1, 1, -1)
    attributes = {"mult": mult, "shift": 15 - 7 * wider}
    draw.add("requantise", (x,), draw.shape(x), attributes, element=element)
    return True


def wide(draw: Draw) -> str | None:
    """Return an int16 tensor, made of an int8 one if there is none."""
    if draw.pick(Element.I16) is None and (x := draw.pick()) is not None:
        attributes = {"mult": draw.whole(1 << 13, (1 << 15) - 1), "shift": 9}
        return draw.add("requantise", (x,), draw.shape(x), attributes, element=Element.I16)
    return draw.pick(Element.I16)
