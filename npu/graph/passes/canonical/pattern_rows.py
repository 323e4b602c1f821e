# SPDX-License-Identifier: Apache-2.0
"""Softmax and norms of rows, told by their values."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from npu.graph.form import Array, Element, Names, Operation
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import ELEMENTWISE, GraphView, Region, agree, meaning
from npu.graph.passes.facts import NORMS

_ALLOWED = ELEMENTWISE | {"reduce", "mean", "reshape", "expand", "transpose"}
_ENDS = frozenset({"div", "mul", "add", "sub", "table"})
_ROOTS = frozenset({"sqrt", "rsqrt", "power"})
_LARGEST_EPSILON = 1.0


def _regions(view: GraphView, root: Operation) -> list[Region]:
    """Return regions of rows: from a tensor to one of the same type, with a sum inside."""
    result = view.graph.type(root.outputs[0])
    if root.kind not in _ENDS or result.element != Element.F32 or result.quantisation is not None:
        return []
    found = [
        one
        for one in view.regions(root, _ALLOWED)
        if view.graph.type(one.entry) == result and one.kinds() & {"reduce", "mean"}
    ]
    # The largest first: a softmax of x less its maximum is one of x.
    return found[::-1]


def _axes(view: GraphView, region: Region) -> set[tuple[int, ...]]:
    """Return the axes that a region sums over, of tensors shaped like its entry."""
    shape = view.shape(region.entry)
    return {
        tuple(sorted(op["axes"]))
        for op in region.operations
        if op.kind in ("reduce", "mean") and view.shape(op.inputs[0]) == shape
    }


def softmaxes(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace exponentials over their sum."""
    result = view.graph.type(root.outputs[0])
    if root.kind not in ("div", "mul") or result.element != Element.F32:
        return None
    regions = [
        one
        for one in view.regions(root, _ALLOWED)
        if "exp" in one.functions()
        and "reduce" in one.kinds()
        and view.graph.type(one.entry).size == result.size
    ]
    for region in reversed(regions):
        for start in _starts(view, region):
            for axis in reversed(range(len(result.shape))):
                if _is_softmax(view, region, start, axis):
                    edit = Replacement(view, region, names)
                    edit.last("softmax", [start], axis=axis)
                    return edit
    return None


def _starts(view: GraphView, region: Region) -> list[str]:
    """Return the tensors of the type of the result that moves alone make of the entry."""
    result = view.graph.type(region.root.outputs[0])
    moved, found = {region.entry}, []
    for one in (None, *region.operations):
        name = region.entry if one is None else one.outputs[0]
        if one is not None and one.kind in ("reshape", "transpose") and one.inputs[0] in moved:
            moved.add(name)
        if name in moved and view.graph.type(name) == result:
            found.append(name)
    return found


def _is_softmax(view: GraphView, region: Region, start: str, axis: int) -> bool:
    """Compare on rows of several sizes."""
    random = np.random.default_rng(7)
    for size in (1.0, 8.0):
        x = size * random.standard_normal(view.shape(region.entry))
        values = view.computed(region.operations, {region.entry: x})
        found = _value(view, region, "softmax", values[start], [], {"axis": axis})
        if not agree(found, values[region.root.outputs[0]]):
            return False
    return True


def norms(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace layer norms and RMS norms, with the gain and beta that are constant."""
    for region in _regions(view, root):
        rank = len(view.shape(region.entry))
        axes = _axes(view, region)
        rooted = region.functions() & _ROOTS or "pow" in region.kinds()
        if not rooted or len(axes) != 1:
            continue
        (found,) = axes
        if found != tuple(range(rank - len(found), rank)) or not found:
            continue
        edit = _norm(view, region, len(found), names)
        if edit is not None:
            return edit
    return None


def _norm(view: GraphView, region: Region, axes: int, names: Names) -> Replacement | None:
    """Try both norms with the numbers and vectors that stand in a region."""
    shape = view.shape(region.entry)
    row = shape[len(shape) - axes :]
    vectors = view.vectors(region, row)
    small = [one for one in view.numbers(region) if 0 < one < _LARGEST_EPSILON]
    wanted = [view.compute(region, one) for one in _samples(shape, small)]
    for epsilon, kind in itertools.product((*small, 0.0), sorted(NORMS)):
        for gain, beta in itertools.product(("", *vectors), ("", *vectors)):
            if (beta and kind == "rmsnorm") or (gain and gain == beta):
                continue
            values = _values(vectors, row, gain, beta)
            attributes: dict[str, Any] = {"axes": axes, "epsilon": float(epsilon)}
            for sample, want in zip(_samples(shape, small), wanted, strict=True):
                if not agree(_value(view, region, kind, sample, values, attributes), want):
                    break
            else:
                return _normed(view, region, kind, values, attributes, names)
    return None


def _values(
    vectors: Mapping[str, Array], row: tuple[int, ...], gain: str, beta: str
) -> list[Array]:
    """Return gain and beta as far as they are given; a beta needs a gain."""
    values = [vectors[name] for name in (gain, beta) if name]
    if beta and not gain:
        values.insert(0, np.ones(row, np.float32))
    return values


def _samples(shape: tuple[int, ...], small: list[float]) -> list[Array]:
    """Return inputs: of size 1 beside 0, and so small that an epsilon counts."""
    random = np.random.default_rng(len(shape))
    found: list[Array] = [random.standard_normal(shape) + 0.5]
    found += [random.standard_normal(shape) * np.sqrt(one) for one in small]
    return found


def _normed(
    view: GraphView,
    region: Region,
    kind: str,
    values: list[Array],
    attributes: dict[str, Any],
    names: Names,
) -> Replacement:
    edit = Replacement(view, region, names)
    wishes = (f"{region.root.name}.gain", f"{region.root.name}.beta")
    inputs = [
        edit.constant(value.astype(np.float32), wish)
        for value, wish in zip(values, wishes, strict=False)
    ]
    edit.last(kind, [region.entry, *inputs], **attributes)
    return edit


def _value(
    view: GraphView,
    region: Region,
    kind: str,
    x: Array,
    values: list[Array],
    attributes: dict[str, Any],
) -> Array:
    found = view.graph.type(region.root.outputs[0])
    given = [x, *(one.astype(np.float64) for one in values)]
    return meaning(kind, attributes, given, [None] * len(given), found)
