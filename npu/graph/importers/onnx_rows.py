# SPDX-License-Identifier: Apache-2.0
"""Softmax, norms, rotary positions, means and the place of the maximum of ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npu.graph.form import Element, GraphError, TensorType
from npu.graph.importers.onnx_node import Mapping_, Node, mapped
from npu.graph.importers.unmapped import UnmappedError


@mapped("Softmax", since=13)
def _softmax(node: Node) -> None:
    x = node.input(0)
    node.floats(x)
    axis = node.axis(node.attributes.get("axis", -1), len(node.shape(x)))
    node.give(node.add("softmax", [x], axis=axis))


@mapped("Softmax", until=12)
def _softmax_of_a_matrix(node: Node) -> None:
    """Up to version 12 all axes from the given one on are one row."""
    x = node.input(0)
    node.floats(x)
    shape = node.shape(x)
    axis = node.axis(node.attributes.get("axis", 1), len(shape))
    rows = (math.prod(shape[:axis]), math.prod(shape[axis:]))
    if axis == len(shape) - 1:
        node.give(node.add("softmax", [x], axis=axis))
        return
    y = node.add("softmax", [node.reshape(x, rows, "rows")], axis=1)
    node.give(node.reshape(y, shape))


def _trailing(node: Node, name: str, shape: tuple[int, ...]) -> str:
    """Bring a gain or beta to the shape of the trailing axes."""
    found = node.shape(name)
    lead = found[: max(0, len(found) - len(shape))]
    if any(size != 1 for size in lead):
        raise UnmappedError(f"{name!r} has shape {list(found)}, mapped is {list(shape)}")
    name = node.reshape(name, found[len(lead) :], "row")
    if node.shape(name) == shape:
        return name
    data = node.build.value(name)
    if data is not None:
        return node.constant(np.broadcast_to(data, shape), f"{name}.row")
    return node.add("expand", [name], "expand", shape=shape)


def _norm(kind: str) -> Mapping_:
    def mapping(node: Node) -> None:
        x = node.input(0)
        node.floats(x)
        if node.attributes.get("stash_type", 1) != 1:
            raise UnmappedError("a stash_type other than float32 is not mapped")
        shape = node.shape(x)
        axis = node.axis(node.attributes.get("axis", -1), len(shape))
        parts = [_trailing(node, name, shape[axis:]) for name in node.inputs[1:] if name]
        epsilon = float(node.attributes.get("epsilon", 1e-5))
        node.give(node.add(kind, [x, *parts], axes=len(shape) - axis, epsilon=epsilon))

    return mapping


mapped("LayerNormalization", since=17)(_norm("layernorm"))
mapped("RMSNormalization", since=23)(_norm("rmsnorm"))


@mapped("RotaryEmbedding", since=23)
def _rope(node: Node) -> None:
    x, cos, sin = node.input(0), node.input(1), node.input(2)
    node.floats(x)
    shape = node.shape(x)
    if len(shape) == 3:
        heads = int(node.attributes.get("num_heads", 0))
        if heads < 1 or shape[2] % heads:
            raise GraphError(f"num_heads {heads} for rows of {shape[2]}")
        y = _turned(
            node, node.reshape(x, (*shape[:2], heads, shape[2] // heads), "heads"), cos, sin
        )
    else:
        swapped = (0, 2, 1, 3)
        y = node.transpose(_turned(node, node.transpose(x, swapped, "rows"), cos, sin), swapped)
    node.give(node.reshape(y, shape))


def _turned(node: Node, x: str, cos: str, sin: str) -> str:
    """Turn x (B, S, H, D); several batches become rows of one, each with its angles."""
    batch, rows, heads, depth = node.shape(x)
    if node.input(3):
        cos = node.add("gather", [cos, node.input(3)], "cos", axis=0)
        sin = node.add("gather", [sin, node.input(3)], "sin", axis=0)
    turning = int(node.attributes.get("rotary_embedding_dim", 0)) or depth
    if node.shape(cos) != (batch, rows, turning // 2) or node.shape(sin) != node.shape(cos):
        raise GraphError(
            f"angles have shape {list(node.shape(cos))}, allowed {[batch, rows, turning // 2]}"
        )
    flat = node.reshape(x, (batch * rows, heads, depth), "flat")
    angles = [node.reshape(name, (batch * rows, turning // 2), "angles") for name in (cos, sin)]
    kept = ""
    if turning < depth:
        kept = _columns(node, flat, turning, depth, "kept")
        flat = _columns(node, flat, 0, turning, "turning")
    y = node.add(
        "rope",
        [flat, *angles],
        interleaved=bool(node.attributes.get("interleaved", 0)),
        heads_axis=1,
    )
    if kept:
        y = node.add("concat", [y, kept], "whole", axis=2)
    return node.reshape(y, (batch, rows, heads, depth), "batches")


def _columns(node: Node, x: str, first: int, after: int, part: str) -> str:
    """Return columns of x (rows, heads, D)."""
    shape = node.shape(x)
    return node.add(
        "slice", [x], part, starts=(0, 0, first), stops=(*shape[:2], after), steps=(1, 1, 1)
    )


@mapped("ArgMax")
def _argmax(node: Node) -> None:
    x = node.input(0)
    if node.attributes.get("select_last_index", 0):
        raise UnmappedError("the last of equal elements is not mapped")
    axis = node.axis(node.attributes.get("axis", 0), len(node.shape(x)))
    keep = bool(node.attributes.get("keepdims", 1))
    shape = list(node.shape(x))
    shape[axis : axis + 1] = [1] if keep else []
    kind = TensorType(tuple(shape), Element.I64)
    node.give(node.add("argmax", [x], result=kind, axis=axis, keep=keep))


def _reduced(kind: str, since: int, **attributes: Any) -> Mapping_:  # noqa: ANN401
    """Make a mapping of a reduction whose axes became an input in version `since`."""

    def mapping(node: Node) -> None:
        x = node.input(0)
        rank = len(node.shape(x))
        axes = node.listed("axes", 1, since)
        # Read in any case: beside axes it says nothing.
        if node.attributes.get("noop_with_empty_axes", 0) and not axes:
            node.give(x)
            return
        if kind == "mean":
            node.floats(x)
        counted = sorted({node.axis(one, rank) for one in axes} if axes else range(rank))
        keep = bool(node.attributes.get("keepdims", 1))
        node.give(node.add(kind, [x], axes=counted, keep=keep, **attributes))

    return mapping


mapped("ReduceMean")(_reduced("mean", 18))
mapped("ReduceSum")(_reduced("reduce", 13, function="sum"))
for _operator in ("Max", "Min", "Prod"):
    mapped(f"Reduce{_operator}")(_reduced("reduce", 18, function=_operator.lower()))
