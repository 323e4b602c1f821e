# SPDX-License-Identifier: Apache-2.0
"""Random products on the command port between operations of the chip."""

from __future__ import annotations

from typing import Any

import numpy as np

from npu.graph.form import Array, Element, Operation, OperationPlace, Target
from npu.graph.operations.port import FORMATS, GROUPED
from tb.stimulus.port_operands import LANES, port_operands
from tb.stimulus.random_graphs.draw import HOST, Draw, Shape

PORT = OperationPlace(Target.PORT, "drawn for the command port")


def _constant(draw: Draw, data: Array) -> str:
    return draw.tensor(data.shape, Element.of(data.dtype), data, plain=True)


def _step(
    draw: Draw,
    kind: str,
    inputs: tuple[str, ...],
    result: str,
    place: OperationPlace,
    **attributes: Any,  # noqa: ANN401
) -> str:
    name = f"o{len(draw.operations)}"
    draw.operations.append(Operation(name, kind, inputs, (result,), attributes, kind, place))
    draw.kinds.add(kind)
    return result


def port(draw: Draw) -> bool:
    """Draw a product: elements of a format for those of a tensor, times a constant, to int8."""
    x = draw.pick(Element.I8)
    if x is None:
        return False
    size = int(np.prod(draw.shape(x)))
    m, n = draw.whole(1, 5), draw.whole(1, 5)
    k = min(draw.whole(1, 24), size // m)
    if not k:
        return False
    name = draw.one_of(*FORMATS)
    group = draw.whole(1, k) if name == GROUPED else 0
    operands = port_operands(draw.random, name, (m, k, n), group)
    codes = _codes(draw, name, x, (m, k))
    if name == "sparse_int4":
        mask = np.zeros((m, k), np.int8)
        for first in range(0, k, LANES):
            mask[:, first : first + 2] = 1
        masked = draw.tensor((m, k), Element.I8, plain=True)
        codes = _step(draw, "mul", (codes, _constant(draw, mask)), masked, HOST)
    exact = name in ("fp16", "bf16") and draw.chance(0.5)
    constants = [_constant(draw, one) for one in operands[1:]]
    product = draw.tensor((m, n), Element.I32)
    attributes = {"format": name, "group": group, "exact": exact}
    _step(draw, "portmatmul", (codes, *constants), product, PORT, **attributes)
    real = draw.tensor((m, n), Element.F32, plain=True)
    _step(draw, "dequantise", (product,), real, HOST)
    scale = _spread(name, k)
    draw.add("quantise", (real,), (m, n), {}, place=HOST, scale=scale)
    return True


def _codes(draw: Draw, name: str, x: str, shape: Shape) -> str:
    """Return elements of a format, one for each of the first elements of a tensor."""
    size, taken = int(np.prod(draw.shape(x))), int(np.prod(shape))
    low, high = (-128, 127) if name == GROUPED else (FORMATS[name].low, FORMATS[name].high)
    if low < high:
        table = draw.random.integers(low, high + 1, 256).astype(np.int8)
    else:
        table = port_operands(draw.random, name, (1, 256, 1))[0][0]
    flat = _step(
        draw,
        "cast",
        (x,),
        draw.tensor(draw.shape(x), Element.I32, plain=True),
        HOST,
        element="int32",
    )
    flat = _step(
        draw, "reshape", (flat,), draw.tensor((size,), Element.I32, plain=True), HOST, shape=(size,)
    )
    cut = draw.tensor((taken,), Element.I32, plain=True)
    span = {"starts": (0,), "stops": (taken,), "steps": (1,)}
    flat = _step(draw, "slice", (flat,), cut, HOST, **span)
    index = _step(
        draw, "reshape", (flat,), draw.tensor(shape, Element.I32, plain=True), HOST, shape=shape
    )
    found = draw.tensor(shape, Element.of(table.dtype), plain=True)
    return _step(draw, "gather", (_constant(draw, table), index), found, HOST, axis=0)


def _spread(name: str, k: int) -> float:
    """Return a scale with which products of a format spread over int8."""
    sizes = {"int8": 5000.0, "int4": 20.0, "int2": 1.2, "ternary": 0.7, "sparse_int4": 12.0}
    sizes |= {"fp8": 1e5, "fp16": 4e4, "bf16": 4e4, GROUPED: 5e6}
    return float(np.float32(sizes[name] * np.sqrt(k) / 45))
