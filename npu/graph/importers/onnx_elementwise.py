# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, comparisons and functions of one variable of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from npu.graph.form import Element
from npu.graph.importers.onnx_node import Mapping_, Node, mapped
from npu.graph.importers.unmapped import UnmappedError
from npu.graph.operations import TABLE, direct

_COMPARISONS = {
    "Equal": "EQ",
    "Less": "LT",
    "Greater": "GT",
    "LessOrEqual": "LE",
    "GreaterOrEqual": "GE",
}
_FUNCTIONS = {
    "Relu": "relu",
    "Sigmoid": "sigmoid",
    "Tanh": "tanh",
    "Erf": "erf",
    "HardSwish": "hard_swish",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Mish": "mish",
    "Exp": "exp",
    "Log": "log",
    "Sqrt": "sqrt",
    "Reciprocal": "reciprocal",
    "Neg": "neg",
    "Abs": "abs",
    "Floor": "floor",
    "Ceil": "ceil",
    "Round": "round",
    "Sign": "sign",
    "Sin": "sin",
    "Cos": "cos",
}
# Function and defaults of its parameters; attributes in the order of the parameters.
_WITH_PARAMETERS: dict[str, tuple[str, Sequence[tuple[str, float]]]] = {
    "Elu": ("elu", [("alpha", 1.0)]),
    "Celu": ("celu", [("alpha", 1.0)]),
    "Selu": ("selu", [("alpha", 1.67326319217681884765625), ("gamma", 1.05070102214813232421875)]),
    "LeakyRelu": ("leaky_relu", [("alpha", float(np.float32(0.01)))]),
    "HardSigmoid": ("hard_sigmoid", [("alpha", float(np.float32(0.2))), ("beta", 0.5)]),
    "ThresholdedRelu": ("thresholded_relu", [("alpha", 1.0)]),
}


def _direct(kind: str) -> Mapping_:
    count = len(TABLE[kind].inputs)

    def mapping(node: Node) -> None:
        inputs = node.inputs
        if len(inputs) != count:
            raise UnmappedError(f"{len(inputs)} inputs, mapped are {count}")
        if count == 2:
            inputs[1] = node.broadcast_from(*inputs)
        node.give(node.add(kind, inputs))

    return mapping


def _comparison(direction: str) -> Mapping_:
    def mapping(node: Node) -> None:
        a, b = node.input(0), node.input(1)
        node.give(node.add("compare", [a, node.broadcast_from(a, b)], direction=direction))

    return mapping


@mapped("IsNaN")
def _is_nan(node: Node) -> None:
    node.floats(node.input(0))
    node.give(node.add("compare", [node.input(0)] * 2, direction="NE"))


def _function(name: str) -> Mapping_:
    def mapping(node: Node) -> None:
        node.floats(node.input(0))
        node.give(node.table(node.input(0), name))

    return mapping


def _with_parameters(name: str, parameters: Sequence[tuple[str, float]]) -> Mapping_:
    def mapping(node: Node) -> None:
        node.floats(node.input(0))
        values = [float(node.attributes.get(key, default)) for key, default in parameters]
        node.give(node.table(node.input(0), name, parameters=values))

    return mapping


def _register(names: dict[str, str], make: Callable[[str], Mapping_]) -> None:
    for operator, name in names.items():
        mapped(operator)(make(name))


_register(direct("onnx"), _direct)
_register(_COMPARISONS, _comparison)
_register(_FUNCTIONS, _function)
for _operator, (_name, _parameters) in _WITH_PARAMETERS.items():
    mapped(_operator)(_with_parameters(_name, _parameters))


@mapped("Pow")
def _pow(node: Node) -> None:
    x, exponent = node.input(0), node.input(1)
    node.floats(x)
    if node.type(exponent).element != node.type(x).element:
        exponent = node.add("cast", [exponent], "exponent", element=node.type(x).element.value)
    node.give(node.add("pow", [x, node.broadcast_from(x, exponent)]))


def _folded(kind: str) -> Mapping_:
    """Make a mapping of an operator with any number of inputs."""

    def mapping(node: Node) -> None:
        names = [name for name in node.inputs if name]
        total = names[0]
        for index, name in enumerate(names[1:]):
            part = "" if index == len(names) - 2 else f"{index}"
            total = node.add(kind, [total, name], part)
        node.give(total)

    return mapping


for _operator, _kind in {"Max": "max", "Min": "min", "Sum": "add"}.items():
    mapped(_operator)(_folded(_kind))


@mapped("Gelu", since=20)
def _gelu(node: Node) -> None:
    node.floats(node.input(0))
    name = "gelu_tanh" if node.attributes.get("approximate", b"none") == b"tanh" else "gelu"
    node.give(node.table(node.input(0), name))


def _swish_of(node: Node, x: str, part: str = "") -> str:
    alpha = float(node.attributes.get("alpha", 1.0))
    if alpha == 1.0:
        return node.table(x, "silu", part=part)
    return node.table(x, "swish", parameters=[alpha], part=part)


@mapped("Swish", since=24)
def _swish(node: Node) -> None:
    node.floats(node.input(0))
    node.give(_swish_of(node, node.input(0)))


@mapped("SwiGLU", since=28)
def _swiglu(node: Node) -> None:
    node.floats(node.input(0), node.input(1))
    node.give(node.add("mul", [_swish_of(node, node.input(0), "swish"), node.input(1)]))


@mapped("PRelu")
def _prelu(node: Node) -> None:
    x, slope = node.input(0), node.input(1)
    node.floats(x)
    value = node.build.value(slope)
    if value is not None and value.size == 1:
        node.give(node.table(x, "leaky_relu", parameters=[float(value.reshape(-1)[0])]))
        return
    if node.version < 7:
        ones = (1,) * (len(node.shape(x)) - 2)
        slope = node.reshape(slope, (node.type(slope).size, *ones), "channels")
    positive = node.table(x, "relu", part="positive")
    negative = node.add("sub", [x, positive], "negative")
    node.give(node.add("add", [positive, node.add("mul", [negative, slope], "slope")]))


@mapped("Clip", until=10)
def _clip_attributes(node: Node) -> None:
    low, high = node.attributes.get("min", -math.inf), node.attributes.get("max", math.inf)
    node.give(node.add("clip", [node.input(0)], low=low, high=high))


@mapped("Clip", since=11)
def _clip(node: Node) -> None:
    low = float(node.value(1, "the lower bound").reshape(-1)[0]) if node.input(1) else -math.inf
    high = float(node.value(2, "the upper bound").reshape(-1)[0]) if node.input(2) else math.inf
    if low > high:
        # Every element becomes the upper bound then.
        low = -math.inf if math.isinf(high) else high
    if math.isnan(low) or math.isnan(high):
        raise UnmappedError("a bound is no number")
    if node.type(node.input(0)).quantisation is not None:
        node.give(_clipped_integers(node, low, high))
        return
    node.give(node.add("clip", [node.input(0)], low=low, high=high))


def _clipped_integers(node: Node, low: float, high: float) -> str:
    """Clip integers with a scale: what QuantizeLinear has made, to fewer bits than it has."""
    x, kind = node.input(0), node.type(node.input(0))
    given, edge = kind.quantisation, np.iinfo(kind.element.dtype)
    assert given is not None
    scales = np.array(given.scales)
    lows, highs = (
        scales * (min(max(each, edge.min), edge.max) - given.zero) for each in (low, high)
    )
    made = node.build.producer(x)
    real = (
        node.build.value(made.inputs[0]) if made is not None and made.kind == "quantise" else None
    )
    if real is not None:
        column = [-1 if axis == given.axis else 1 for axis in range(real.ndim)]
        inside = np.clip(real, *(each.reshape(column) for each in (lows, highs)))
        clipped = node.constant(inside.astype(np.float32), f"{node.name}.clipped")
        return node.add("quantise", [clipped], result=kind)
    if kind.element == Element.I32:  # whose reals are not exact
        raise UnmappedError("clip of int32 with a scale is not mapped")
    return node.in_reals("clip", [x], low=float(lows[0]), high=float(highs[0]))
