# SPDX-License-Identifier: Apache-2.0
"""TFLite operators that count, choose by index or add up what indices name.

What the table of operations has no words for is a node of ONNX, which the host executes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import helper

from npu.graph.form import Array, Element, TensorType
from npu.graph.importers.onnx_host import payload
from npu.graph.importers.tflite_moves import reshaped
from npu.graph.importers.tflite_reader import Handler, TfliteNode, stands

_VERSION = 18
"""Of the operator set whose nodes stand for operators here; the first with all of them."""


def hosted(
    node: TfliteNode,
    operator: str,
    inputs: Sequence[str],
    results: Sequence[TensorType],
    wishes: Sequence[str] = (),
    **attributes: Any,  # noqa: ANN401
) -> tuple[str, ...]:
    """Add a node of ONNX that the host executes; return names of its results."""
    given = [f"x{index}" for index in range(len(inputs))]
    made = [f"y{index}" for index in range(len(results))]
    types = {name: node.build.type(one) for name, one in zip(given, inputs, strict=True)}
    one = helper.make_node(operator, given, made, **attributes)
    imports = [helper.make_opsetid("", _VERSION)]
    return node.build.add_many(
        "host",
        inputs,
        wishes or [node.wish_of(index) for index in range(len(results))],
        results,
        wish=node.wish,
        source=node.source,
        evaluator="onnx",
        operator=operator,
        payload=payload(one, imports, types, made),
        reason=f"{node.source} has no counterpart in the table of operations",
    )


def _plain(node: TfliteNode, index: int) -> str:
    """Return an input whose integers are numbers of their own."""
    if stands(node.input(index)):
        raise node.error(f"{node.input(index).kind} with a scale, allowed plain numbers")
    return node.name(index)


def _wide(node: TfliteNode, name: str) -> str:
    return node.build.cast(name, Element.I64, node.source)


def _number(node: TfliteNode, value: int, like: str) -> str:
    """Return a constant of the type of a tensor."""
    kind = node.build.type(like).element.dtype
    return node.build.constant(np.array(value, kind), f"{node.wish}.{abs(value)}")


def floor_divide(node: TfliteNode) -> str:
    """Map FLOOR_DIV: the quotient, rounded down."""
    a, b = _plain(node, 0), _plain(node, 1)
    whole = node.emit("div", [a, b], f"{node.wish}.quotient")
    if node.build.type(a).element.dtype.kind == "f":
        return node.emit("table", [whole], functions=("floor",), parameters=())
    less = node.emit("sub", [whole, _number(node, 1, whole)], f"{node.wish}.less")
    return node.emit("select", [_beyond(node, a, b)[1], less, whole])


def floor_modulo(node: TfliteNode) -> str:
    """Map FLOOR_MOD: the remainder, with the sign of the divisor."""
    a, b = _plain(node, 0), _plain(node, 1)
    rest, beyond = _beyond(node, a, b)
    moved = node.emit("add", [rest, b], f"{node.wish}.moved")
    return node.emit("select", [beyond, moved, rest])


def _beyond(node: TfliteNode, a: str, b: str) -> tuple[str, str]:
    """Return the remainder towards zero, and where it has another sign than the divisor."""
    rest = node.emit("mod", [a, b], f"{node.wish}.rest")
    zero = _number(node, 0, rest)
    signs = [
        node.emit("compare", [one, zero], f"{node.wish}.sign{side}", direction="LT")
        for side, one in enumerate((rest, b))
    ]
    apart = node.emit("xor", signs, f"{node.wish}.apart")
    some = node.emit("compare", [rest, zero], f"{node.wish}.some", direction="NE")
    return rest, node.emit("and", [some, apart], f"{node.wish}.beyond")


def argmin(node: TfliteNode) -> str:
    """Map ARG_MIN: the first largest of the opposite."""
    x, shape = node.real(0), node.shape(0)
    (axis,) = node.ints(1, "axis")[:1] or (0,)
    axis = node.axis(axis, len(shape))
    wish = f"{node.wish}.opposite"
    if node.build.type(x).element.dtype.kind == "f":
        x = node.emit("table", [x], wish, functions=("neg",), parameters=())
    else:
        x = node.emit("not_", [x], wish)
    found = TensorType((*shape[:axis], *shape[axis + 1 :]), Element.I32)
    return node.emit("argmax", [x], result=found, axis=axis, keep=False)


def gather_nd(node: TfliteNode) -> str:
    """Map GATHER_ND: the last axis of the indices names places along the first axes."""
    shape, kind = node.shape(0), node.build.type(node.name(1))
    depth = kind.shape[-1] if kind.shape else 0
    if not 1 <= depth <= len(shape):
        raise node.error(f"indices {list(kind.shape)} of {list(shape)}")
    # Behind the sum an index beyond one axis would be one of the next.
    value = node.build.value(node.name(1))
    if value is not None and np.any((value < 0) | (value >= np.array(shape[:depth]))):
        raise node.error(
            f"indices {int(value.min())}..{int(value.max())}, allowed 0 up to less than "
            f"{list(shape[:depth])}"
        )
    steps = [math.prod(shape[axis + 1 : depth]) for axis in range(depth)]
    held = node.build.constant(np.array(steps, kind.element.dtype), f"{node.wish}.steps")
    parts = node.emit("mul", [node.name(1), held], f"{node.wish}.parts")
    last = (len(kind.shape) - 1,)
    places = node.emit(
        "reduce", [parts], f"{node.wish}.places", axes=last, keep=False, function="sum"
    )
    flat = reshaped(node, (math.prod(shape[:depth]), *shape[depth:]), wish=f"{node.wish}.flat")
    return node.emit("gather", [flat, places], axis=0)


def scatter_nd(node: TfliteNode) -> str:
    """Map SCATTER_ND: what indices name, added up; zeros elsewhere."""
    _plain(node, 1)
    return _scattered(node, node.ints(2, "shape"), _wide(node, node.name(0)), "add", 0)


def segments(reduction: str) -> Handler:
    """Make the mapping of an operator that joins the rows whose segment is the same."""

    def mapped(node: TfliteNode) -> str:
        shape, kind = node.shape(0), node.build.type(node.real(0)).element.dtype
        count = _segments(node)
        ids = node.build.reshape(node.name(1), (*node.shape(1), 1), node.source)
        if len(node.shape(1)) > len(shape) or node.shape(1) != shape[: len(node.shape(1))]:
            raise node.error(f"segments {list(node.shape(1))} of {list(shape)}")
        edge = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
        start = {"add": 0, "mul": 1, "max": edge.min, "min": edge.max}[reduction]
        rest = shape[len(node.shape(1)) :]
        return _scattered(node, (count, *rest), _wide(node, ids), reduction, start, 0)

    return mapped


def _segments(node: TfliteNode) -> int:
    if node.source == "SEGMENT_SUM":
        return int(node.constant(1, "segments").max(initial=-1)) + 1
    count: int = (*node.ints(2, "number of segments"), 0)[0]
    return count


def _scattered(
    node: TfliteNode,
    shape: tuple[int, ...],
    indices: str,
    reduction: str,
    start: float,
    source: int = 1,
) -> str:
    """Return what rows are joined to that indices name."""
    node.fits(*shape)
    updates = node.real(source)
    element = node.build.type(updates).element
    whole = node.build.constant(np.full(shape, start, element.dtype), f"{node.wish}.start")
    found = [TensorType(shape, element)]
    (name,) = hosted(node, "ScatterND", [whole, indices, updates], found, reduction=reduction)
    return name


def top_k(node: TfliteNode) -> tuple[str, ...]:
    """Map TOPK_V2: the largest of the last axis, and where they are."""
    x, shape = node.real(0), node.shape(0)
    (k,) = node.ints(1, "k")[:1] or (0,)
    if not shape or not 0 <= k <= shape[-1]:
        raise node.error(f"{k} of {list(shape)}")
    count = node.build.constant(np.array([k], np.int64), f"{node.wish}.k")
    found = (*shape[:-1], k)
    kinds = [TensorType(found, node.build.type(x).element), TensorType(found, Element.I64)]
    wishes = [node.wish, f"{node.wish_of(1)}.wide"]
    return hosted(node, "TopK", [x, count], kinds, wishes)


def cumulated(node: TfliteNode) -> str:
    """Map CUMSUM along an axis."""
    x, (axis,) = node.real(0), node.ints(1, "axis")[:1] or (0,)
    kind = node.build.type(x)
    place = np.array(node.axis(axis, len(kind.shape)), np.int64)
    held = node.build.constant(place, f"{node.wish}.axis")
    exclusive, reverse = node.option(0, "b"), node.option(1, "b")
    (name,) = hosted(node, "CumSum", [x, held], [kind], exclusive=exclusive, reverse=reverse)
    return name


def reverse_sequence(node: TfliteNode) -> str:
    """Map REVERSE_SEQUENCE: of each row so many elements turned round."""
    kind = node.build.type(node.real(0))
    time, batch = node.option(0), node.option(1)
    if sorted((time, batch)) != [0, 1]:
        raise node.error(f"axes {time} and {batch}, allowed 0 and 1")
    given = [node.real(0), _wide(node, node.name(1))]
    (name,) = hosted(node, "ReverseSequence", given, [kind], time_axis=time, batch_axis=batch)
    return name


def response_normalised(node: TfliteNode) -> str:
    """Map LOCAL_RESPONSE_NORMALIZATION: each element over the power of its neighbours' squares."""
    shape, radius = node.shape(0), node.option(0)
    if len(shape) != 4 or radius < 0:
        raise node.error(f"image {list(shape)}, radius {radius}, allowed rank 4 and from 0")
    bias, alpha, beta = (node.option_real(field) for field in (1, 2, 3))
    size = 2 * radius + 1
    turned = node.build.transpose(node.real(0), (0, 3, 1, 2), node.source)
    (made,) = hosted(
        node, "LRN", [turned], [node.build.type(turned)], [f"{node.wish}.turned"],
        size=size, bias=bias, alpha=alpha * size, beta=beta,
    )  # fmt: skip
    return node.build.transpose(made, (0, 2, 3, 1), node.source, node.wish)


def one_hot(node: TfliteNode) -> str:
    """Map ONE_HOT: along a new axis, on where its index is, off elsewhere."""
    shape, (depth,) = node.shape(0), node.ints(1, "depth")[:1] or (0,)
    axis = node.axis(node.option(0), len(shape) + 1)
    if depth < 0:
        raise node.error(f"depth {depth}, allowed from 0")
    node.fits(*shape, depth)
    wide = node.build.reshape(node.name(0), (*shape[:axis], 1, *shape[axis:]), node.source)
    kind = node.build.type(wide).element.dtype
    line = np.arange(depth, dtype=kind).reshape(-1, *(1,) * (len(shape) - axis))
    places = node.build.constant(line, f"{node.wish}.places")
    here = node.emit("compare", [wide, places], f"{node.wish}.here", direction="EQ")
    return node.emit("select", [here, node.real(2), node.real(3)])


def bucketize(node: TfliteNode) -> str:
    """Map BUCKETIZE: how many boundaries are not above each element."""
    x, shape = node.real(0), node.shape(0)
    given = node.options.vector(0, np.float32) if node.options is not None else np.zeros(0)
    kind = node.build.type(x).element
    x = node.build.reshape(x, (*shape, 1), node.source)
    if kind != Element.F32:
        x = node.build.cast(x, Element.F32, node.source)
    edges = node.build.constant(given.astype(np.float32), f"{node.wish}.boundaries")
    above = node.emit("compare", [x, edges], f"{node.wish}.above", direction="GE")
    above = node.build.cast(above, Element.I32, node.source)
    return node.emit("reduce", [above], axes=(len(shape),), keep=False, function="sum")


def updated_slice(node: TfliteNode) -> str:
    """Map DYNAMIC_UPDATE_SLICE: a part of a tensor in place of what lies at computed indices."""
    shape, part = node.shape(0), node.shape(1)
    if len(part) != len(shape) or any(one > all_ for one, all_ in zip(part, shape, strict=True)):
        raise node.error(f"a part {list(part)} of {list(shape)}")
    starts, value, build = node.name(2), node.real(1), node.build
    kind, inside = build.type(starts).element.dtype, ""
    for axis, (size, count) in enumerate(zip(shape, part, strict=True)):
        if size == count:
            continue
        wish = f"{node.wish}.axis{axis}"
        start = node.emit(
            "slice", [starts], f"{wish}.given", starts=(axis,), stops=(axis + 1,), steps=(1,)
        )
        first = build.constant(np.array(0, kind), f"{wish}.first")
        last = build.constant(np.array(size - count, kind), f"{wish}.last")
        start = node.emit("max", [start, first], f"{wish}.from")
        start = node.emit("min", [start, last], f"{wish}.start")
        line = build.constant(np.arange(size, dtype=kind), f"{wish}.line")
        place = node.emit("sub", [line, start], f"{wish}.place")
        most = build.constant(np.array(count - 1, kind), f"{wish}.most")
        held = node.emit("min", [node.emit("max", [place, first], f"{wish}.low"), most], wish)
        same = node.emit("compare", [held, place], f"{wish}.same", direction="EQ")
        same = build.reshape(same, (size, *(1,) * (len(shape) - axis - 1)), node.source)
        inside = node.emit("and", [inside, same], f"{wish}.inside") if inside else same
        value = node.emit("gather", [value, held], f"{wish}.moved", axis=axis)
    if not inside:
        return node.emit("identity", [value])
    return node.emit("select", [inside, value, node.real(0)])


def diagonal(node: TfliteNode) -> str:
    """Map MATRIX_DIAG: matrices of zeros but for their diagonals."""
    return _on_diagonal(node, _plain(node, 0), node.shape(0), 0)


def set_diagonal(node: TfliteNode) -> str:
    """Map MATRIX_SET_DIAG: matrices with other diagonals."""
    return _on_diagonal(node, node.real(1), node.shape(0)[:-1], node.real(0))


def _on_diagonal(node: TfliteNode, name: str, rows: tuple[int, ...], rest: str | int) -> str:
    columns = node.build.shape(rest)[-1] if isinstance(rest, str) else rows[-1]
    count = node.build.shape(name)[-1]
    if columns != count:
        raise node.error(f"a diagonal of {count} in rows of {columns}, allowed squares")
    line = np.arange(count)
    here = node.build.constant(line[:, None] == line, f"{node.wish}.here")
    wide = node.build.reshape(name, (*node.build.shape(name), 1), node.source)
    other = rest if isinstance(rest, str) else _number(node, rest, name)
    return node.emit("select", [here, wide, other])


def counted(node: TfliteNode) -> str:
    """Map RANGE of constants: a constant."""
    first, limit, step = (
        node.constant(index, what).reshape(-1)[0]
        for index, what in enumerate(("start", "limit", "delta"))
    )
    if step == 0:
        raise node.error("delta 0, allowed others")
    size = max(0, math.ceil((float(limit) - float(first)) / float(step)))
    value: Array = (first + step * np.arange(size)).astype(first.dtype)
    return node.build.constant(value, node.wish)


def common_shape(node: TfliteNode) -> str:
    """Map BROADCAST_ARGS of constants: a constant."""
    shapes = node.ints(0, "shape"), node.ints(1, "shape")
    kind = node.build.type(node.name(0)).element.dtype
    return node.build.constant(np.array(np.broadcast_shapes(*shapes), kind), node.wish)


def where(node: TfliteNode) -> str:
    """Map WHERE of a constant: a constant."""
    value = node.build.value(node.name(0))
    if value is None:
        raise node.error("the shape of its result depends on values, allowed constants")
    return node.build.constant(np.argwhere(value).astype(np.int64), node.wish)


_SEGMENTS = {"SUM": "add", "PROD": "mul", "MAX": "max", "MIN": "min"}
HANDLERS: dict[str, Handler] = {
    "FLOOR_DIV": floor_divide,
    "FLOOR_MOD": floor_modulo,
    "ARG_MIN": argmin,
    "GATHER_ND": gather_nd,
    "SCATTER_ND": scatter_nd,
    "SEGMENT_SUM": segments("add"),
    **{f"UNSORTED_SEGMENT_{name}": segments(one) for name, one in _SEGMENTS.items()},
    "TOPK_V2": top_k,
    "CUMSUM": cumulated,
    "REVERSE_SEQUENCE": reverse_sequence,
    "LOCAL_RESPONSE_NORMALIZATION": response_normalised,
    "ONE_HOT": one_hot,
    "BUCKETIZE": bucketize,
    "DYNAMIC_UPDATE_SLICE": updated_slice,
    "MATRIX_DIAG": diagonal,
    "MATRIX_SET_DIAG": set_diagonal,
    "RANGE": counted,
    "BROADCAST_ARGS": common_shape,
    "WHERE": where,
}
