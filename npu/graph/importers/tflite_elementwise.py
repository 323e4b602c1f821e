# SPDX-License-Identifier: Apache-2.0
"""TFLite operators on each element."""

from __future__ import annotations

import math

import numpy as np

from npu.graph.form import Element, TensorType
from npu.graph.importers.tflite_reader import Handler, TfliteNode, stands
from npu.graph.operations import TABLE, direct

_DIRECT = direct("tflite")
_ACTIVATED = ("ADD", "SUB", "MUL", "DIV")
_TABLES: dict[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    "RELU": (("relu",), ()),
    "LOGISTIC": (("sigmoid",), ()),
    "TANH": (("tanh",), ()),
    "HARD_SWISH": (("hard_swish",), ()),
    "ELU": (("elu",), (1.0,)),
    "EXP": (("exp",), ()),
    "LOG": (("log",), ()),
    "SQRT": (("sqrt",), ()),
    "RSQRT": (("rsqrt",), ()),
    "NEG": (("neg",), ()),
    "ABS": (("abs",), ()),
    "SQUARE": (("square",), ()),
    "FLOOR": (("floor",), ()),
    "CEIL": (("ceil",), ()),
    "ROUND": (("round",), ()),
    "SIGN": (("sign",), ()),
    "SIN": (("sin",), ()),
    "COS": (("cos",), ()),
}
_CLIPS = {"RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}
_COMPARISONS = {
    "EQUAL": "EQ",
    "NOT_EQUAL": "NE",
    "LESS": "LT",
    "LESS_EQUAL": "LE",
    "GREATER": "GT",
    "GREATER_EQUAL": "GE",
}
_WHOLE = frozenset({"FLOOR", "CEIL", "ROUND"})


def arithmetic(node: TfliteNode) -> str:
    """Map an operator of two tensors with a fused activation."""
    kind = _DIRECT[node.source]
    made = node.emit(kind, [node.real(0), node.real(1)], node.before(0))
    return node.fused(made, 0)


def plain(node: TfliteNode) -> str:
    """Map an operator of tensors alone."""
    kind = _DIRECT[node.source]
    return node.emit(kind, [node.real(index) for index in range(len(TABLE[kind].inputs))])


def table(node: TfliteNode) -> str:
    """Map a function of one variable."""
    functions, parameters = _TABLES[node.source]
    return node.emit("table", [node.real(0)], functions=functions, parameters=parameters)


def clip(node: TfliteNode) -> str:
    """Map an activation with bounds."""
    low, high = _CLIPS[node.source]
    return node.emit("clip", [node.real(0)], low=low, high=high)


def leaky(node: TfliteNode) -> str:
    """Map LEAKY_RELU."""
    alpha = node.option_real(0)
    if not math.isfinite(alpha):
        raise node.error(f"alpha {alpha}, allowed finite numbers")
    return node.emit("table", [node.real(0)], functions=("leaky_relu",), parameters=(alpha,))


def gelu(node: TfliteNode) -> str:
    """Map GELU, either form."""
    name = "gelu_tanh" if node.option(0, "b") else "gelu"
    return node.emit("table", [node.real(0)], functions=(name,), parameters=())


def prelu(node: TfliteNode) -> str:
    """Map PRELU: the positive part plus alpha times the negative part."""
    x, alpha = node.real(0), node.real(1)
    value = node.build.value(alpha)
    if value is not None and value.size and np.all(value == value.reshape(-1)[0]):
        slope = float(value.reshape(-1)[0])
        return node.emit("table", [x], functions=("leaky_relu",), parameters=(slope,))
    wish = node.wish
    above = node.emit("table", [x], f"{wish}.above", functions=("relu",), parameters=())
    below = node.emit("sub", [x, above], f"{wish}.below")
    return node.emit("add", [above, node.emit("mul", [below, alpha], f"{wish}.slope")])


def squared_difference(node: TfliteNode) -> str:
    """Map SQUARED_DIFFERENCE."""
    made = node.emit("sub", [node.real(0), node.real(1)], f"{node.wish}.difference")
    return node.emit("table", [made], functions=("square",), parameters=())


def compare(node: TfliteNode) -> str:
    """Map a comparison."""
    inputs = [node.real(0), node.real(1)]
    return node.emit("compare", inputs, direction=_COMPARISONS[node.source])


def select(node: TfliteNode) -> str:
    """Map a choice; a condition of one axis chooses rows."""
    condition = node.name(0)
    shape, rank = node.shape(0), len(node.shape(1))
    if node.source == "SELECT" and len(shape) == 1 and rank > 1:
        condition = node.build.reshape(condition, (*shape, *(1,) * (rank - 1)), node.source)
    return node.emit("select", [condition, node.real(1), node.real(2)])


def cast(node: TfliteNode) -> str:
    """Map CAST between types that stand for themselves."""
    element = node.output().element
    if element is None:
        raise node.error(node.output().trouble)
    if node.build.type(node.name(0)).element == element:
        return node.emit("identity", [node.name(0)])
    return node.emit("cast", [node.name(0)], element=element.value)


def quantize(node: TfliteNode) -> str:
    """Map QUANTIZE: the border itself is made with the output, but for one of int32 here."""
    given, made = node.input(0), node.output()
    if made.quantisation is None or not (stands(made) or made.element == Element.I32):
        raise node.error(f"output of {made.kind} without scale, allowed int8, int16, int32, uint8")
    real = node.real(0)
    if given.element == Element.I32:
        if given.quantisation is None:
            raise node.error("input of int32 without scale")
        found = TensorType(node.shape(0), Element.F32)
        real = node.emit("dequantise", [real], f"{node.wish}.real", found)
    if made.element != Element.I32:
        return real
    return node.emit(
        "quantise", [real], "", TensorType(node.shape(0), Element.I32, made.quantisation)
    )


def dequantize(node: TfliteNode) -> str:
    """Map DEQUANTIZE; of float16 it is a conversion."""
    if node.build.type(node.name(0)).element == Element.F16:
        return node.build.cast(node.name(0), Element.F32, node.source, node.wish)
    given = node.input(0)
    if given.quantisation is None or not (stands(given) or given.element == Element.I32):
        raise node.error(f"input of {given.kind} without scale, allowed int8, int16, int32, uint8")
    found = TensorType(node.shape(0), Element.F32)
    return node.emit("dequantise", [node.name(0)], "", found)


def densify(node: TfliteNode) -> str:
    """Map DENSIFY: sparse constants have been read with their zeros."""
    return node.name(0)


def add_n(node: TfliteNode) -> str:
    """Map ADD_N."""
    total = node.real(0)
    last = len(node.operator.inputs) - 1
    for index in range(1, last + 1):
        wish = node.wish if index == last else f"{node.wish}.{index}"
        total = node.emit("add", [total, node.real(index)], wish)
    return total if last else node.emit("identity", [total])


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(_DIRECT, plain),
    **dict.fromkeys(_ACTIVATED, arithmetic),
    **dict.fromkeys(_TABLES, table),
    **dict.fromkeys(_CLIPS, clip),
    **dict.fromkeys(_COMPARISONS, compare),
    "LEAKY_RELU": leaky,
    "GELU": gelu,
    "PRELU": prelu,
    "SQUARED_DIFFERENCE": squared_difference,
    "SELECT": select,
    "SELECT_V2": select,
    "CAST": cast,
    "QUANTIZE": quantize,
    "DEQUANTIZE": dequantize,
    "DENSIFY": densify,
    "ADD_N": add_n,
}
