# SPDX-License-Identifier: Apache-2.0
"""Random operations of the host between those of the chip."""

from __future__ import annotations

from typing import Any

import numpy as np

from npu.graph.form import Element
from tb.stimulus.random_graphs.draw import HOST, Draw


def host(draw: Draw) -> bool:
    """Draw operations of the host behind a dequantisation, and the way back."""
    x = draw.pick(Element.I8, Element.I8, Element.U8)
    if x is None:
        return False
    shape, size = draw.shape(x), draw.scale(x)
    plain: dict[str, Any] = {"element": Element.F32, "place": HOST, "live": False}
    real = draw.add("dequantise", (x,), shape, {}, **plain)
    scale = draw.one_of(1.0, 0.25, 0.003)
    kind = draw.one_of("table", "div", "reduce")
    if kind == "table":
        attributes: dict[str, Any] = {
            "functions": ("sin", "scale"),
            "parameters": (100.0 * scale,),
        }
        made = draw.add(kind, (real,), shape, attributes, **plain)
    elif kind == "div":
        by = np.full(shape, draw.one_of(0.75, -1.5) * size / scale, np.float32)
        divisor = draw.tensor(shape, Element.F32, by)
        made = draw.add(kind, (real, divisor), shape, {}, **plain)
    else:
        axis = draw.whole(0, len(shape) - 1)
        shape = tuple(1 if i == axis else n for i, n in enumerate(shape))
        attributes = {"axes": (axis,), "keep": True, "function": draw.one_of("max", "min")}
        made = draw.add(kind, (real,), shape, attributes, **plain)
        scale = size
    draw.add("quantise", (made,), shape, {}, place=HOST, scale=scale)
    return True
