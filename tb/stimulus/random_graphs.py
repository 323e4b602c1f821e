# SPDX-License-Identifier: Apache-2.0
"""Random quantised graphs: every operation of the chip, awkward sizes, operations of the host too.

Inputs and weights are full-range, factors such that results spread over their range instead of
saturating or vanishing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npu.graph.form import (
    Array,
    Element,
    Graph,
    Operation,
    Place,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)

Shape = tuple[int, ...]
CHIP = Place(Target.NPU, "drawn for the chip")
HOST = Place(Target.HOST, "drawn for the host")
MOST_ELEMENTS = 20_000
"""Of a tensor."""
UNFUSED: dict[str, Any] = {
    "relu": False,
    "combine": "",
    "product_mult": 0,
    "product_shift": 0,
}
SPREAD = 45.0
"""Standard deviation that results of int8 aim at."""


@dataclass
class Draw:
    """A graph under construction."""

    random: np.random.Generator
    tensors: dict[str, Tensor] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    live: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)

    def whole(self, low: int, high: int) -> int:
        """Return a number of low..high."""
        return int(self.random.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:  # noqa: ANN401
        """Return one of the choices."""
        return choices[self.whole(0, len(choices) - 1)]

    def chance(self, share: float) -> bool:
        """Return True in a share of the calls."""
        return bool(self.random.random() < share)

    def bytes(self, shape: Shape, low: int = -128, high: int = 127) -> Array:
        """Return int8 numbers of low..high."""
        return self.random.integers(low, high + 1, shape).astype(np.int8)

    def tensor(
        self,
        shape: Shape,
        element: Element = Element.I8,
        data: Array | None = None,
        zero: int = 0,
        scale: float = 1.0,
    ) -> str:
        """Add a tensor; return its name."""
        name = f"t{len(self.tensors)}"
        quantisation = None if element is Element.F32 else Quantisation((scale,), zero)
        self.tensors[name] = Tensor(name, TensorType(shape, element, quantisation), data)
        return name

    def add(
        self,
        kind: str,
        inputs: tuple[str, ...],
        shape: Shape,
        attributes: Mapping[str, Any] | None = None,
        integers: Mapping[str, Array] | None = None,
        element: Element = Element.I8,
        *,
        place: Place = CHIP,
        live: bool = True,
        zero: int = 0,
        scale: float = 1.0,
    ) -> str:
        """Add an operation; return the name of its result."""
        result = self.tensor(shape, element, zero=zero, scale=scale)
        name = f"o{len(self.operations)}"
        self.operations.append(
            Operation(name, kind, inputs, (result,), attributes or {}, kind, place, integers or {})
        )
        self.kinds.add(kind)
        if live:
            self.live.append(result)
        return result

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor."""
        return self.tensors[name].shape

    def element(self, name: str) -> Element:
        """Return the element type of a tensor."""
        return self.tensors[name].type.element

    def scale(self, name: str) -> float:
        """Return the scale of a tensor."""
        quantisation = self.tensors[name].type.quantisation
        return 1.0 if quantisation is None else quantisation.scale

    def pick(self, *elements: Element, rank: int | None = None) -> str | None:
        """Return a tensor of one of the types, recent ones more often; None if there is none."""
        wanted = elements or (Element.I8,)
        found = [
            name
            for name in self.live
            if self.element(name) in wanted and rank in (None, len(self.shape(name)))
        ]
        if not found:
            return None
        return found[max(self.whole(0, len(found) - 1), self.whole(0, len(found) - 1))]

    def factors(self, columns: int, spread: float, aim: float = SPREAD) -> dict[str, Array]:
        """Return mult and shift per column that bring a spread to the aim."""
        count = columns if self.chance(0.8) else 1
        mult = self.random.integers(1 << 14, 1 << 15, count)
        shift = np.clip(np.round(np.log2(mult * max(spread, 1.0) / aim)), 0, 63)
        return {"mult": mult.astype(np.uint16), "shift": shift.astype(np.uint8)}

    def finish(self, columns: int, spread: float, *, wide: bool = False) -> dict[str, Array]:
        """Return bias and factors of a linear operation."""
        most = int(max(spread, 1))
        bias = self.random.integers(-most, most + 1, columns).astype(np.int32)
        aim = 9000.0 if wide else SPREAD
        return {"bias": bias, **self.factors(columns, spread, aim)}

    def epilogue(
        self, shape: Shape, integers: dict[str, Array], element: Element
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return attributes behind the sums and the operand; a table joins the integers."""
        attributes = dict(UNFUSED)
        attributes["relu"] = self.chance(0.3)
        if element is Element.I8 and self.chance(0.25):
            integers["table"] = self.bytes((256,))
        if self.chance(0.3):
            operand = self.operand(shape, element)
            attributes["combine"] = "add"
            if element is Element.I8 and self.chance(0.4):
                mult = self.whole(1 << 14, (1 << 15) - 1)
                attributes |= {"combine": "mul", "product_mult": mult, "product_shift": 20}
            return attributes, (operand,)
        return attributes, ()

    def operand(self, shape: Shape, element: Element) -> str:
        """Return a tensor of a shape: one that is there, or a new input."""
        for name in reversed(self.live):
            if self.shape(name) == shape and self.element(name) is element:
                return name
        return self.input(shape, element)

    def input(self, shape: Shape, element: Element = Element.I8, zero: int = 0) -> str:
        """Add an input of integers."""
        name = self.tensor(shape, element, zero=zero)
        self.inputs.append(name)
        self.live.append(name)
        return name


def _root(depth: int) -> float:
    """Return the spread of a sum of products of full-range bytes."""
    return 74.0 * 74.0 * math.sqrt(depth)


def _matmul(draw: Draw) -> bool:
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


def _batched(draw: Draw) -> bool:
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


def _conv(draw: Draw) -> bool:
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
    integers = draw.finish(outputs, spread)
    more: dict[str, Any] = dict(UNFUSED)
    operand: tuple[str, ...] = ()
    if not w_zero:
        more, operand = draw.epilogue(result, integers, Element.I8)
        if more["combine"] == "mul" and depth > 600:
            more, operand = dict(UNFUSED), ()
    draw.add("conv", (x, name, *operand), result, attributes | more, integers)
    return True


def _elementwise(draw: Draw) -> bool:
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
    kind = draw.one_of("add", "sub", "mul", "max", "min")
    shift = 7 if element is Element.I8 else 14
    attributes = {"shift": shift} if kind == "mul" else {}
    draw.add(kind, (x, other), shape, attributes, element=element)
    return True


def _clip(draw: Draw) -> bool:
    x = draw.pick(Element.I8, Element.I16)
    if x is None:
        return False
    element = draw.element(x)
    span = 128 if element is Element.I8 else 1 << 15
    low, high = sorted(draw.whole(-span, span - 1) for _ in range(2))
    attributes = {"low": float(low), "high": float(high), "low_int": low, "high_int": high}
    draw.add("clip", (x,), draw.shape(x), attributes, element=element)
    return True


def _table(draw: Draw) -> bool:
    x = draw.pick(Element.I8, Element.U8)
    if x is None:
        return False
    attributes = {"functions": ("relu",), "parameters": ()}
    draw.add("table", (x,), draw.shape(x), attributes, {"table": draw.bytes((256,))})
    return True


def _requantise(draw: Draw) -> bool:
    x = draw.pick(Element.I8, Element.I16)
    if x is None:
        return False
    wide = draw.element(x) is Element.I8
    mult = draw.whole(1 << 13, (1 << 15) - 1) * draw.one_of(1, 1, -1)
    attributes = {"mult": mult, "shift": 8 if wide else 22}
    element = Element.I16 if wide else Element.I8
    draw.add("requantise", (x,), draw.shape(x), attributes, element=element)
    return True


def _wide(draw: Draw) -> str | None:
    """Return an int16 tensor, made of an int8 one if there is none."""
    if draw.pick(Element.I16) is None and (x := draw.pick()) is not None:
        attributes = {"mult": draw.whole(1 << 13, (1 << 15) - 1), "shift": 9}
        return draw.add("requantise", (x,), draw.shape(x), attributes, element=Element.I16)
    return draw.pick(Element.I16)


def _softmax(draw: Draw) -> bool:
    x = _wide(draw)
    if x is None:
        return False
    shape = draw.shape(x)
    axis = {"axis": len(shape) - 1}
    draw.add("softmax", (x,), shape, axis, element=Element.U8, scale=1 / 256)
    return True


def _norm(draw: Draw) -> bool:
    x = _wide(draw)
    if x is None:
        return False
    shape = draw.shape(x)
    columns = shape[-1]
    if columns < 2:
        return False
    element = draw.one_of(Element.I8, Element.I16)
    integers: dict[str, Array] = {
        "eps": np.array([draw.whole(0, 1 << 30)], np.uint64),
        "gain": draw.random.integers(1 << 14, 1 << 16, columns).astype(np.uint16),
        "shift": np.full(columns, 24 if element is Element.I8 else 17, np.uint8),
        "bias": draw.bytes((columns,), -30, 30),
    }
    kind = draw.one_of("layernorm", "rmsnorm")
    attributes = {"axes": 1, "epsilon": 0.0}
    draw.add(kind, (x,), shape, attributes, integers, element)
    return True


def _rope(draw: Draw) -> bool:
    heads_inside = draw.chance(0.5)
    rows, heads = draw.one_of(1, 5, 17), draw.one_of(1, 2, 3)
    lanes = draw.one_of(4, 8, 16, 32)
    shape = (2, rows, heads, lanes) if heads_inside else (2, heads, rows, lanes)
    x = draw.operand(shape, Element.I8)
    angle = draw.random.uniform(0, 2 * np.pi, (rows, lanes // 2))
    table = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    cosine, sine = (
        draw.tensor((rows, lanes // 2), Element.F32, table[..., i].astype(np.float32))
        for i in range(2)
    )
    integers = {"table": np.round(table * (1 << 14)).astype(np.int16)}
    attributes = {"interleaved": draw.chance(0.5), "heads_axis": 2 if heads_inside else 1}
    draw.add("rope", (x, cosine, sine), shape, attributes, integers)
    return True


def _attention(draw: Draw) -> bool:
    batch, groups, each = draw.one_of(1, 2), draw.one_of(1, 2), draw.one_of(1, 2, 3)
    rows, lanes = draw.one_of(1, 7, 20), draw.one_of(8, 16, 20)
    causal = draw.chance(0.5)
    offset = draw.one_of(0, 0, 3) if causal else 0
    keys = rows + offset if causal else draw.one_of(1, 9, 33)
    heads = groups * each
    q = draw.operand((batch, heads, rows, lanes), Element.I8)
    k, v = (draw.input((batch, groups, keys, lanes)) for _ in range(2))
    integers: dict[str, Array] = {
        "mult": np.array([draw.whole(1 << 14, (1 << 15) - 1)], np.uint16),
        "shift": np.array([22], np.uint8),
    }
    mask: tuple[str, ...] = ()
    if not causal and draw.chance(0.5):
        added = draw.random.integers(-400, 400, (1, draw.one_of(1, heads), rows, keys))
        integers["mask"] = added.astype(np.int16)
        mask = (draw.tensor(added.shape, Element.F32, added.astype(np.float32)),)
    attributes = {
        "scale": 1.0,
        "causal": causal,
        "offset": offset,
        "window": draw.one_of(0, 0, 4) if causal else 0,
        "softcap": 0.0,
    }
    draw.add("attention", (q, k, v, *mask), (batch, heads, rows, lanes), attributes, integers)
    return True


def _pool(draw: Draw) -> bool:
    x = draw.pick(rank=4)
    if x is None:
        return False
    batch, height, width, channels = draw.shape(x)
    window = draw.one_of((2, 2), (3, 3), (1, 3), (3, 1))
    strides = draw.one_of((1, 1), (2, 2), (2, 1))
    pads = tuple(draw.whole(0, k // 2) for k in (*window, *window))
    out = tuple(
        (n + pads[i] + pads[i + 2] - window[i]) // strides[i] + 1
        for i, n in enumerate((height, width))
    )
    if min(out) < 1:
        return False
    attributes: dict[str, Any] = {"window": window, "strides": strides, "pads": pads}
    shape = (batch, *out, channels)
    if draw.chance(0.5):
        dilated = {"dilations": (1, 1)}
        draw.add("maxpool", (x,), shape, attributes | dilated)
        return True
    size = (1,) if draw.chance(0.5) else out
    count = window[0] * window[1]
    integers: dict[str, Array] = {
        "bias": np.full(size, draw.one_of(0, 5), np.int32),
        "mult": draw.random.choice([17000, 25000, 32000], size).astype(np.uint16),
        "shift": np.full(size, 14 + round(math.log2(count) / 2), np.uint8),
    }
    draw.add("avgpool", (x,), shape, attributes | {"count_pads": False}, integers)
    return True


def _mean(draw: Draw) -> bool:
    x = draw.pick()
    if x is None or len(draw.shape(x)) < 2:
        return False
    shape = draw.shape(x)
    first = draw.whole(0, len(shape) - 2)
    axes = tuple(range(first, len(shape) - 1))
    count = int(np.prod(shape[first:-1]))
    keep = draw.chance(0.5)
    result = (*shape[:first], *((1,) * len(axes) if keep else ()), shape[-1])
    integers: dict[str, Array] = {
        "bias": np.array([draw.one_of(0, 9)], np.int32),
        "mult": np.array([draw.whole(1 << 14, (1 << 15) - 1)], np.uint16),
        "shift": np.array([14 + round(math.log2(count) / 2)], np.uint8),
    }
    draw.add("mean", (x,), result, {"axes": axes, "keep": keep}, integers)
    return True


def _move(draw: Draw) -> bool:
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
        attributes = {
            "before": tuple(before),
            "after": tuple(after),
            "value": 0.0,
            "value_int": 0,
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
        second = draw.operand(other, element)
        if element is Element.U8 or np.prod(other) > MOST_ELEMENTS:
            return False
        result = tuple(
            n + m if i == axis else n for i, (n, m) in enumerate(zip(shape, other, strict=True))
        )
        draw.add(kind, (x, second), result, {"axis": axis}, **more)
    return True


def _host(draw: Draw) -> bool:
    x = draw.pick()
    if x is None:
        return False
    shape = draw.shape(x)
    plain: dict[str, Any] = {"element": Element.F32, "place": HOST, "live": False}
    real = draw.add("dequantise", (x,), shape, {}, **plain)
    if draw.chance(0.5):
        attributes = {"functions": ("sin", "scale"), "parameters": (100.0,)}
        made = draw.add("table", (real,), shape, attributes, **plain)
    else:
        by = np.full(shape, draw.one_of(0.75, -1.5), np.float32)
        divisor = draw.tensor(shape, Element.F32, by)
        made = draw.add("div", (real, divisor), shape, {}, **plain)
    draw.add("quantise", (made,), shape, {}, place=HOST)
    return True


MAKERS: Mapping[str, tuple[Callable[[Draw], bool], int]] = {
    "matmul": (_matmul, 4),
    "batched": (_batched, 2),
    "conv": (_conv, 4),
    "elementwise": (_elementwise, 4),
    "clip": (_clip, 1),
    "table": (_table, 1),
    "requantise": (_requantise, 1),
    "softmax": (_softmax, 1),
    "norm": (_norm, 1),
    "rope": (_rope, 1),
    "attention": (_attention, 1),
    "pool": (_pool, 2),
    "mean": (_mean, 1),
    "move": (_move, 5),
    "host": (_host, 1),
}
"""What draws an operation, by name, and how often relative to the others."""


def _start(draw: Draw) -> None:
    channels = draw.one_of(1, 3, 8, 16, 17, 20, 32, 48)
    side = draw.one_of(1, 5, 9, 14)
    batch = draw.one_of(1, 1, 1, 2, 3)
    draw.input((batch, side, draw.one_of(side, 3, 11), channels))
    if draw.chance(0.5):
        draw.input((draw.one_of(1, 2, 3), draw.one_of(1, 7, 17), draw.one_of(3, 16, 24, 64)))
    if draw.chance(0.3):
        draw.input((draw.one_of(1, 6), draw.one_of(16, 33)), Element.I16)


def random_graph(
    seed: int, *, operations: tuple[int, int] = (2, 30), only: str = ""
) -> tuple[Graph, dict[str, Array]]:
    """Return a fused graph and full-range values of its inputs.

    Args:
        seed: the same seed gives the same graph.
        operations: least and most of them.
        only: name of `MAKERS` of which all operations are; all if empty.
    """
    draw = Draw(np.random.default_rng(seed))
    _start(draw)
    wanted = draw.whole(*operations)
    names = [only] if only else [n for n, (_, weight) in MAKERS.items() for _ in range(weight)]
    tries = 0
    while len(draw.operations) < wanted and tries < 20 * wanted:
        tries += 1
        MAKERS[draw.one_of(*names)][0](draw)
        draw.live = [n for n in draw.live if np.prod(draw.shape(n)) <= MOST_ELEMENTS]
    read = {name for one in draw.operations for name in one.used}
    made = [name for one in draw.operations for name in one.outputs]
    outputs = [name for name in made if name not in read or draw.chance(0.05)]
    used = [name for name in draw.inputs if name in read]
    graph = Graph(f"random-{seed}", tuple(used), tuple(outputs), draw.tensors, ())
    graph = graph.with_operations(draw.operations)
    values = {}
    for name in used:
        dtype = draw.element(name).dtype
        bounds = np.iinfo(dtype)
        values[name] = draw.random.integers(
            bounds.min, bounds.max, draw.shape(name), endpoint=True
        ).astype(dtype)
    return graph, values
