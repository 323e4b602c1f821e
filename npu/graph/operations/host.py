# SPDX-License-Identifier: Apache-2.0
"""Operations that only the host executes: what importers bring, and what nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from npu.graph.form import Array, Element, GraphError
from npu.graph.operations.base import (
    Attributes,
    Call,
    Direct,
    Kind,
    Meaning,
    ResultType,
    Trait,
    Types,
    axis_of,
    broadcast,
    known,
    plain,
)
from npu.graph.operations.constraints import Constraint
from npu.graph.operations.elementwise import binary, binary_rule
from npu.graph.operations.windows import reduced

_COMPARISONS: dict[str, Callable[..., Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}
_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
}


def _chosen(what: str, name: str, table: dict[str, Callable[..., Any]]) -> Callable[..., Any]:
    if name not in table:
        raise GraphError(f"{what} {name!r}, allowed {', '.join(table)}")
    return table[name]


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind == "f":
        return np.asarray(a / b)
    safe = np.where(b == 0, 1, b)
    return np.asarray((a - np.fmod(a, safe)) // safe)


def _power(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu":
        return np.power(a.astype(np.float64), b).astype(a.dtype)
    return np.asarray(np.power(a, b))


def _remainder(a: Array, b: Array) -> Array:
    return np.asarray(np.fmod(a, b if a.dtype.kind == "f" else np.where(b == 0, 1, b)))


def _compare_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    _chosen("direction", attributes["direction"], _COMPARISONS)
    (result,) = binary_rule(attributes, types)
    return (ResultType(result.shape, Element.BOOL),)


def _compare(call: Call) -> tuple[Array, ...]:
    function = _COMPARISONS[call.attributes["direction"]]
    return (np.asarray(function(call.value(0), call.value(1))),)


def _select_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    condition, a, b = known(types, 0), known(types, 1), known(types, 2)
    if condition.element != Element.BOOL:
        raise GraphError(f"the condition is {condition.element}, allowed bool")
    return (ResultType(broadcast(condition.shape, a.shape, b.shape), plain(a, b)),)


def _not_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    return (ResultType(known(types, 0).shape, known(types, 0).element),)


def _reduce_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    _chosen("function", attributes["function"], _REDUCTIONS)
    x = known(types, 0)
    return (ResultType(reduced(x.shape, attributes["axes"], attributes["keep"]), plain(x)),)


def _lowest(dtype: np.dtype[Any], low: bool) -> Any:  # noqa: ANN401
    """Return the extreme of a type that is the maximum or minimum of nothing."""
    if dtype.kind == "b":
        return not low
    edge = np.iinfo(dtype) if dtype.kind in "iu" else None
    if edge is None:
        return -np.inf if low else np.inf
    return edge.min if low else edge.max


def _reduce(call: Call) -> tuple[Array, ...]:
    name, x = call.attributes["function"], call.wide(0)
    start = {"initial": _lowest(x.dtype, name == "max")} if name in ("max", "min") else {}
    with np.errstate(all="ignore"):
        value = _REDUCTIONS[name](
            x, axis=call.attributes["axes"], keepdims=call.attributes["keep"], **start
        )
    return (np.asarray(value),)


def _iota_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    axis_of(attributes["axis"], len(attributes["shape"]))
    try:
        return (ResultType(attributes["shape"], Element(attributes["element"])),)
    except ValueError:
        allowed = ", ".join(Element)
        raise GraphError(f"element {attributes['element']!r}, allowed {allowed}") from None


def _iota(call: Call) -> tuple[Array, ...]:
    shape, axis = call.attributes["shape"], call.attributes["axis"]
    line = np.arange(shape[axis]).reshape([-1 if one == axis else 1 for one in range(len(shape))])
    return (np.broadcast_to(line, shape).astype(Element(call.attributes["element"]).dtype),)


def _opaque(call: Call) -> tuple[Array, ...]:
    raise GraphError("an opaque operation has no meaning of its own, its evaluator has it")


def _host(
    name: str,
    inputs: tuple[str, ...],
    meaning: Meaning,
    summary: str,
    direct: Direct = ("", "", ""),
    sources: Mapping[str, tuple[str, ...]] | None = None,
    rule: Callable[[Attributes, Types], tuple[ResultType, ...]] = binary_rule,
    attributes: dict[str, str] | None = None,
    traits: frozenset[Trait] = frozenset({Trait.POINTWISE}),
) -> Kind:
    return Kind(
        name=name,
        group="host",
        inputs=inputs,
        attributes=attributes or {},
        rule=rule,
        meaning=meaning,
        summary=summary,
        integer="None: the host computes with the types of the graph.",
        lowering="None: the host executes it.",
        constraints=(Constraint("the chip has no instruction for it"),),
        direct=direct,
        sources=sources or {},
        host_only=True,
        traits=traits,
    )


_PLACED = ("DYNAMIC_UPDATE_SLICE", "MATRIX_DIAG", "MATRIX_SET_DIAG")
_NODES = (
    *("TOPK_V2", "CUMSUM", "SCATTER_ND", "REVERSE_SEQUENCE", "LOCAL_RESPONSE_NORMALIZATION"),
    *("SEGMENT_SUM", *(f"UNSORTED_SEGMENT_{name}" for name in ("SUM", "PROD", "MAX", "MIN"))),
)
_LOGIC = frozenset({Trait.POINTWISE, Trait.COMMUTES})

KINDS = (
    _host(
        "div",
        ("a", "b"),
        binary(_divide),
        "The quotient of two tensors; of integers the part before the point.",
        ("Div", "divide", "DIV"),
        {"tflite": ("L2_NORMALIZATION", "FLOOR_DIV")},
    ),
    _host(
        "pow",
        ("a", "b"),
        binary(_power),
        "One tensor to the power of another.",
        ("", "power", "POW"),
        {"onnx": ("Pow",)},
    ),
    _host(
        "mod",
        ("a", "b"),
        binary(_remainder),
        "The remainder of a division, with the sign of the dividend.",
        ("", "remainder", ""),
        {"tflite": ("FLOOR_MOD",)},
    ),
    _host(
        "compare",
        ("a", "b"),
        _compare,
        "Whether a comparison EQ, NE, LT, LE, GT or GE holds.",
        sources={
            "onnx": ("Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual", "IsNaN"),
            "stablehlo": ("compare", "is_finite"),
            "tflite": ("EQUAL", "NOT_EQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"),
        },
        rule=_compare_rule,
        attributes={"direction": "str"},
    ),
    _host(
        "select",
        ("condition", "a", "b"),
        lambda call: (np.where(call.value(0), call.value(1), call.value(2)),),
        "The element of a where the condition holds, else that of b.",
        ("Where", "select", ""),
        {"tflite": ("SELECT", "SELECT_V2", "IF", "ONE_HOT", *_PLACED)},
        _select_rule,
    ),
    _host(
        "and",
        ("a", "b"),
        binary(np.bitwise_and),
        "Both, bit by bit.",
        ("And", "and", "LOGICAL_AND"),
        traits=_LOGIC,
    ),
    _host(
        "or",
        ("a", "b"),
        binary(np.bitwise_or),
        "One or both, bit by bit.",
        ("Or", "or", "LOGICAL_OR"),
        traits=_LOGIC,
    ),
    _host(
        "xor",
        ("a", "b"),
        binary(np.bitwise_xor),
        "One but not both, bit by bit.",
        ("Xor", "xor", ""),
        traits=_LOGIC,
    ),
    _host(
        "not_",
        ("x",),
        lambda call: (np.invert(call.value(0)),),
        "The opposite, bit by bit.",
        ("Not", "not", "LOGICAL_NOT"),
        rule=_not_rule,
    ),
    _host(
        "reduce",
        ("x",),
        _reduce,
        "The sum, product, largest or smallest element over axes.",
        sources={
            "onnx": ("ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd"),
            "stablehlo": ("reduce",),
            "tflite": (
                *("SUM", "BUCKETIZE"),
                *(f"REDUCE_{name}" for name in ("MAX", "MIN", "PROD", "ANY", "ALL")),
            ),
        },
        rule=_reduce_rule,
        attributes={"axes": "ints", "keep": "bool", "function": "str"},
        traits=frozenset(),
    ),
    _host(
        "iota",
        (),
        _iota,
        "The index along an axis.",
        sources={"stablehlo": ("iota",)},
        rule=_iota_rule,
        attributes={"shape": "ints", "axis": "int", "element": "str"},
        traits=frozenset(),
    ),
    Kind(
        name="host",
        group="opaque",
        inputs=("xs*",),
        attributes={"evaluator": "str", "operator": "str", "payload": "bytes", "reason": "str"},
        rule=lambda attributes, types: (),
        meaning=_opaque,
        summary="Anything else: what the evaluator of its source makes of the payload.",
        integer="None: the host computes with the types of the graph.",
        lowering="None: the host executes it.",
        constraints=(Constraint("the table of operations does not know it"),),
        sources={
            "onnx": ("any other",),
            "stablehlo": ("any other",),
            "tflite": _NODES,
        },
        host_only=True,
        outputs=-1,
    ),
)
