# SPDX-License-Identifier: Apache-2.0
"""Integers: indices counted from behind, borders spelled as rounding and clamping."""

from __future__ import annotations

import itertools

import numpy as np

from npu.graph.form import Array, Element, Names, Operation, Quantisation
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import ELEMENTWISE, GraphView, Region

_INDICES = ELEMENTWISE | {"reshape", "expand", "reduce"}
_BYTES = (Element.I8, Element.U8)


def _places(view: GraphView, name: str, size: int, least: int) -> Array:
    """Return seeded indices for a tensor."""
    shape = view.shape(name)
    found: Array = np.random.default_rng(5).integers(least, size, shape)
    return found.astype(view.graph.type(name).element.dtype)


def gathered(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Take indices as they are where a select only counts negative ones from behind.

    Those out of range stay clamped, but where what they gather is not a number: they are refused.
    """
    if root.kind != "gather":
        return None
    made = view.maker(root.inputs[1])
    size = view.shape(root.inputs[0])[root["axis"]]
    if made is None:
        return None
    best = None
    for region in view.regions(made, ELEMENTWISE | {"reshape"}):
        if not region.kinds() & {"select", "add"} or _floats(view, region.entry):
            continue
        places = _places(view, region.entry, size, -size)
        if view.graph.type(region.entry).size != view.graph.type(made.outputs[0]).size:
            continue
        found = view.compute(region, places)
        if not np.array_equal(found.reshape(-1), places.reshape(-1) % size):
            continue
        if _filled(view, root) or _as_outside(view, region, size):
            best = region
    if best is None:
        return None
    edit = Replacement(view, root, names)
    rows = edit.reshape(best.entry, view.shape(root.inputs[1]))
    if "clip" in best.kinds() and not _filled(view, root):
        rows = edit.step("clip", [rows], low=float(-size), high=float(size - 1))
    edit.last("gather", [root.inputs[0], rows], axis=root["axis"])
    return edit


def _as_outside(view: GraphView, region: Region, size: int) -> bool:
    """Say whether indices out of range stay so, or are clamped: a remainder turns them round."""
    edge = np.iinfo(view.graph.type(region.entry).element.dtype)
    least, most = max(-3 * size, edge.min), min(3 * size, edge.max - size + 1)
    if most <= size:
        return True
    places = _places(view, region.entry, most, least)
    wanted = np.where(places < 0, places + size, places)
    if "clip" in region.kinds():
        wanted = np.clip(wanted, 0, size - 1)
    return np.array_equal(view.compute(region, places).reshape(-1), wanted.reshape(-1))


def _filled(view: GraphView, op: Operation) -> bool:
    """Say whether what indices out of range gather is not a number for all who read it."""
    readers = [one for one in view.graph.operations if op.outputs[0] in one.used]
    return bool(readers) and all(
        _filled(view, one) if one.kind in ("reshape", "identity") else _fills(view, one)
        for one in readers
    )


def _fills(view: GraphView, op: Operation) -> bool:
    value = view.graph.constant(op.inputs[2]) if op.kind == "select" else None
    return value is not None and value.dtype.kind == "f" and bool(np.isnan(value).all())


def _floats(view: GraphView, name: str) -> bool:
    return view.graph.type(name).element.dtype.kind not in "iu"


def filled(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Drop the choice between what indices in range gather and what others would."""
    if not _fills(view, root):
        return None
    condition, taken, _ = root.inputs
    source = view.maker(taken)
    while source is not None and source.kind in ("reshape", "identity"):
        source = view.maker(source.inputs[0])
    made = view.maker(condition)
    if source is None or source.kind != "gather" or made is None:
        return None
    size = view.shape(source.inputs[0])[source["axis"]]
    for region in view.regions(made, _INDICES):
        if (
            not _floats(view, region.entry)
            and view.compute(region, _places(view, region.entry, size, 0)).all()
        ):
            edit = Replacement(view, root, names)
            edit.last("identity", [taken])
            return edit
    return None


def quantised(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace rounding, clamping and conversion by the border that they are."""
    result = view.graph.type(root.outputs[0])
    if root.kind != "cast" or result.element not in _BYTES or result.quantisation is not None:
        return None
    best = None
    for region in view.regions(root, ELEMENTWISE):
        entry = view.graph.type(region.entry)
        if entry.element != Element.F32 or entry.shape != result.shape:
            continue
        if "round" not in region.functions():
            continue
        found = _border(view, region, result.element)
        if found is None:
            break
        best = (region, found)
    if best is None:
        return None
    region, quantisation = best
    edit = Replacement(view, region, names)
    edit.last("quantise", [region.entry], quantisation=quantisation)
    return edit


def _border(view: GraphView, region: Region, element: Element) -> Quantisation | None:
    """Return scale and zero point of a border, None if a region is none."""
    edge = np.iinfo(element.dtype)
    shape = view.shape(region.entry)
    zero = int(view.compute(region, np.zeros(shape)).reshape(-1)[0])
    scales = {1.0: None}
    for number in view.numbers(region):
        if number > 0:
            scales.update({number: None, 1.0 / number: None})
    random = np.random.default_rng(11)
    for scale in scales:
        places = random.uniform(edge.min - 40, edge.max + 40, shape)
        # Not where rounding could go either way.
        places = np.rint(places) + np.clip(places - np.rint(places), -0.45, 0.45)
        wanted = np.clip(np.rint(places) + zero, edge.min, edge.max)
        if np.array_equal(view.compute(region, places * scale).astype(np.float64), wanted):
            return Quantisation((float(np.float32(scale)),), zero)
    return None


def dequantised(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace conversion to floats, less a zero point, times a scale."""
    result = view.graph.type(root.outputs[0])
    if root.kind not in ("mul", "div", "cast") or result.element != Element.F32:
        return None
    for region in view.regions(root, ELEMENTWISE):
        entry = view.graph.type(region.entry)
        if entry.element not in _BYTES or entry.shape != result.shape:
            continue
        found = _scale(view, region, entry.element)
        if found is None or entry.quantisation not in (None, found):
            return None
        readers = [op for op in view.graph.operations if region.entry in op.used]
        if entry.quantisation is None and any(one not in region.operations for one in readers):
            return None
        edit = Replacement(view, region, names)
        edit.quantised(region.entry, found)
        edit.last("dequantise", [region.entry])
        return edit
    return None


def _scale(view: GraphView, region: Region, element: Element) -> Quantisation | None:
    if region.kinds() - {"cast", "sub", "add", "mul", "div"}:
        return None
    shape, edge = view.shape(region.entry), np.iinfo(element.dtype)
    values = np.random.default_rng(2).integers(edge.min, edge.max + 1, shape)
    wanted = view.compute(region, values.astype(element.dtype))
    numbers = view.numbers(region)
    scales = [1.0, *numbers, *(1.0 / one for one in numbers if one)]
    zeros = [0, *(int(one * sign) for one in numbers for sign in (1, -1) if one == int(one))]
    for scale, zero in itertools.product(scales, zeros):
        if scale <= 0 or not edge.min <= zero <= edge.max:
            continue
        if np.allclose(wanted, (values - zero) * scale, rtol=1e-6, atol=1e-6 * scale):
            return Quantisation((float(np.float32(scale)),), zero)
    return None
