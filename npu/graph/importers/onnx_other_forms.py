# SPDX-License-Identifier: Apache-2.0
"""Forms of operators of the standard that runtimes do not have, in operators that they have."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from npu.graph.form import Array, GraphError
from npu.graph.importers.onnx_dialects import Entry, ForeignNode
from npu.graph.importers.unmapped import UnmappedError


def other_form(node: onnx.NodeProto, version: int, build: Any) -> Entry | None:  # noqa: ANN401
    """Return what puts other operators in the place of a node, None where it stays.

    Args:
        node: of the standard.
        version: of its operator set.
        build: the graph so far.
    """
    said = {one.name: one for one in node.attribute}
    if node.op_type in _RECURRENT and "layout" in said and said["layout"].i == 1:
        return _batch_first
    if node.op_type == "BatchNormalization" and "training_mode" in said:
        return _of_batches if said["training_mode"].i else None
    nothing = any(_is_empty(build.value(name)) for name in node.input)
    if node.op_type == "Resize" and version >= _EITHER and nothing:
        return _without_empty
    if node.op_type in _PRODUCTS:
        entry, right, places = _PRODUCTS[node.op_type]
        fixed = build.value(node.input[right]) is not None
        if any(_many(node, place, build) for place in places[: 2 if fixed else 3]):
            return entry
    return None


def _many(node: onnx.NodeProto, places: tuple[int, ...], build: Any) -> bool:  # noqa: ANN401
    """Say whether an input of some places has several elements."""
    names = [node.input[place] for place in places if place < len(node.input)]
    return any(name and math.prod(build.shape(name)) > 1 for name in names)


def _is_empty(value: Array | None) -> bool:
    return value is not None and value.size == 0


def _without_empty(one: ForeignNode) -> None:
    """Leave away the region, scales or sizes that are given without an element."""
    said = {name: one.attributes[name] for name in list(one.attributes)}
    given = ["" if _is_empty(one.known(name)) else name for name in one.rest(0)]
    one.become(one.operator, given, **said)


def _batch_first(one: ForeignNode) -> None:
    """Turn what begins with the batch."""
    if one.attributes["layout"] != 1:
        raise UnmappedError("another layout is not mapped")
    given = one.rest(0)
    for index in (0, 5, 6):
        if index < len(given) and given[index]:
            given[index] = one.add("Transpose", [given[index]], perm=(1, 0, 2))
    said = {name: one.attributes[name] for name in list(one.attributes) if name != "layout"}
    results = one.add_many(one.operator, given, **said)
    orders = ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2))
    for index, (name, order) in enumerate(zip(results, orders, strict=False)):
        if name:
            one.give("Transpose", [name], index, perm=order)


def _of_batches(one: ForeignNode) -> None:
    """Normalise by mean and variance of what is given, and bring those held nearer to them."""
    x, gain, beta, mean, variance = (one.input(index) for index in range(5))
    epsilon = one.attributes.get("epsilon", 1e-5)
    momentum = one.attributes.get("momentum", 0.9)
    if not one.attributes["training_mode"]:
        raise GraphError("training_mode 0, allowed 1")
    rank, dtype = len(one.shape(x)), one.dtype(x)
    axes = one.constant(np.array([axis for axis in range(rank) if axis != 1], np.int64))
    column = one.constant(np.array([-1, *(1,) * max(0, rank - 2)], np.int64))
    middle = one.add("ReduceMean", [x, axes], keepdims=1)
    apart = one.add("Sub", [x, middle])
    spread = one.add("ReduceMean", [one.add("Mul", [apart, apart]), axes], keepdims=1)
    root = one.add("Sqrt", [one.add("Add", [spread, one.constant(np.array(epsilon, dtype))])])
    scaled = one.add("Mul", [one.add("Div", [apart, root]), one.add("Reshape", [gain, column])])
    one.give("Add", [scaled, one.add("Reshape", [beta, column])])
    line = one.constant(np.array([-1], np.int64))
    for index, (held, found) in enumerate(((mean, middle), (variance, spread)), 1):
        kind = one.dtype(held)
        near = one.add("Reshape", [found, line])
        if kind != dtype:
            near = one.add("CastLike", [near, held])
        parts = [
            one.add("Mul", [name, one.constant(np.array(share, kind))])
            for name, share in ((held, momentum), (near, 1 - momentum))
        ]
        one.give("Add", parts, index)


def _integers(one: ForeignNode) -> None:
    """Take zero points off before a product of int32; a list of the first counts rows."""
    sides = []
    for index in (0, 1):
        wide = one.add("Cast", [one.input(index)], to=TensorProto.INT32)
        zero = one.input(2 + index)
        if zero:
            zero = one.add("Cast", [zero], to=TensorProto.INT32)
            wide = one.add("Sub", [wide, _lying(one, zero, rows=not index)])
        sides.append(wide)
    one.give("MatMul", sides)


def _scaled(one: ForeignNode) -> None:
    """Multiply real numbers; a list of the first and of the result counts rows."""
    reals = []
    for index in (0, 3):
        x, scale, zero = (one.input(index + place) for place in range(3))
        real = one.add("Cast", [x], to=TensorProto.FLOAT)
        less = one.add("Cast", [zero], to=TensorProto.FLOAT)
        rows = index == 0
        real = one.add("Sub", [real, _lying(one, less, rows=rows)])
        scale = one.add("Cast", [scale], to=TensorProto.FLOAT)
        reals.append(one.add("Mul", [real, _lying(one, scale, rows=rows)]))
    made = one.add("MatMul", reals)
    scale, zero = one.input(6), one.input(7)
    scale = one.add("Cast", [scale], to=TensorProto.FLOAT)
    if math.prod(one.shape(scale)) == 1:
        line = one.constant(np.zeros(0, np.int64))
        scale, zero = (one.add("Reshape", [name, line]) for name in (scale, zero))
        one.give("QuantizeLinear", [made, scale, zero])
        return
    if len(one.shape(scale)) != 1:
        raise GraphError(f"scales {list(one.shape(scale))} of the result, allowed one per row")
    one.give("QuantizeLinear", [made, scale, zero], axis=len(one.shape(made)) - 2)


def _lying(one: ForeignNode, name: str, *, rows: bool) -> str:
    """Return a list so that it broadcasts over the columns of a matrix, or over its rows."""
    if len(one.shape(name)) != 1 or not rows:
        return name
    return one.add("Reshape", [name, one.constant(np.array([-1, 1], np.int64))])


_EITHER = 13
"""The first operator set whose Resize takes no scales beside sizes, not even empty ones."""
_RECURRENT = ("RNN", "GRU", "LSTM")
_PRODUCTS: dict[str, tuple[Entry, int, tuple[tuple[int, ...], ...]]] = {
    "MatMulInteger": (_integers, 1, ((2,), (), (3,))),
    "QLinearMatMul": (_scaled, 3, ((1, 2), (6, 7), (4, 5))),
}
"""By operator: its other form, the place of the matrix that may be constant, and places of scales
and zero points of one side, of the result, and of that matrix, which may differ if it is one."""
