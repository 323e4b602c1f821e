# SPDX-License-Identifier: Apache-2.0
"""Means over axes and over windows that are spelled as sums."""

from __future__ import annotations

from typing import Any

import numpy as np

from npu.graph.form import Element, Names, Operation
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import ELEMENTWISE, GraphView, agree, meaning, uniform

_SUMS = ELEMENTWISE | {"reduce", "reshape"}
_POOLS = ELEMENTWISE | {"avgpool", "reshape", "expand"}


def means(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace a sum over axes divided by the number of elements."""
    if root.kind not in ("div", "mul") or view.graph.type(root.outputs[0]).element != Element.F32:
        return None
    for region in view.regions(root, _SUMS):
        first = region.operations[0]
        if first.kind != "reduce" or first["function"] != "sum":
            continue
        if any(op.kind not in ("div", "mul", "reshape", "reduce") for op in region.operations):
            return None
        count = int(np.prod([view.shape(region.entry)[axis] for axis in first["axes"]]))
        numbers = [uniform(view.graph.constant(name)) for name in root.used]
        factor = next((one for one in numbers if one is not None), None)
        if not factor or abs((factor if root.kind == "div" else 1 / factor) / count - 1) > 1e-6:
            return None
        edit = Replacement(view, region, names)
        shape = view.shape(root.outputs[0])
        attributes: dict[str, Any] = {"axes": tuple(sorted(first["axes"]))}
        for keep in (False, True):
            if _kept(view.shape(region.entry), attributes["axes"], keep) == shape:
                edit.last("mean", [region.entry], keep=keep, **attributes)
                return edit
        made = edit.step("mean", [region.entry], keep=False, **attributes)
        edit.last("reshape", [made], shape=shape)
        return edit
    return None


def _kept(shape: tuple[int, ...], axes: tuple[int, ...], keep: bool) -> tuple[int, ...]:
    if keep:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def averages(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace a pool times something by the pool that counts other elements."""
    if root.kind not in ("div", "mul"):
        return None
    for region in view.regions(root, _POOLS):
        first = region.operations[0]
        if first.kind != "avgpool" or len(region.operations) < 2:
            continue
        result = view.graph.type(root.outputs[0])
        if any(one.kind == "avgpool" for one in region.operations[1:]):
            return None
        x = np.random.default_rng(3).standard_normal(view.shape(region.entry))
        wanted = view.compute(region, x)
        for count_pads in (True, False):
            attributes: dict[str, Any] = {**first.attributes, "count_pads": count_pads}
            if agree(meaning("avgpool", attributes, [x], [None], result), wanted):
                if not any(first["pads"]):
                    attributes["count_pads"] = first["count_pads"]
                edit = Replacement(view, region, names)
                edit.last("avgpool", [region.entry], **attributes)
                return edit
        return None
    return None
