# SPDX-License-Identifier: Apache-2.0
"""Rotary positions: what turns pairs of elements, told by what it makes of unit vectors."""

from __future__ import annotations

from typing import Any

import numpy as np

from npu.graph.form import Array, Element, Names, Operation
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import GraphView, Region, agree, meaning

_ALLOWED = frozenset({
    *("add", "sub", "mul", "table", "slice", "concat", "reshape", "transpose", "expand"),
    *("identity", "gather", "pad"),
})  # fmt: skip
_ENDS = frozenset({"add", "concat", "reshape", "sub", "transpose"})
_LINEAR = frozenset({"neg", "scale"})


def ropes(view: GraphView, root: Operation, names: Names) -> Replacement | None:
    """Replace a sum of products of a tensor and its turned self with cosines and sines."""
    result = view.graph.type(root.outputs[0])
    if root.kind not in _ENDS or result.element != Element.F32 or len(result.shape) < 3:
        return None
    if result.shape[-1] % 2 or result.quantisation is not None:
        return None
    for region in view.regions(root, _ALLOWED):
        if view.graph.type(region.entry) != result or region.functions() - _LINEAR:
            continue
        if not region.kinds() & {"slice", "gather", "reshape"} or "mul" not in region.kinds():
            continue
        edit = _turned(view, region, names)
        if edit is not None:
            return edit
    return None


def _turned(view: GraphView, region: Region, names: Names) -> Replacement | None:
    """Try both pairings and both places of the heads."""
    shape = view.shape(region.entry)
    half = shape[-1] // 2
    random = np.random.default_rng(4).standard_normal(shape)
    wanted = view.compute(region, random)
    pairings = (
        (False, slice(0, half), slice(half, None)),
        (True, slice(0, None, 2), slice(1, None, 2)),
    )
    for interleaved, first, second in pairings:
        unit = np.zeros(shape)
        unit[..., first] = 1.0
        answer = view.compute(region, unit)
        for heads in (len(shape) - 3, len(shape) - 2):
            cos, sin = (_rows(answer[..., part], heads) for part in (first, second))
            if cos is None or sin is None or not sin.any():
                continue
            attributes: dict[str, Any] = {"interleaved": interleaved, "heads_axis": heads}
            found = meaning(
                "rope", attributes, [random, cos, sin], [None] * 3, view.graph.type(region.entry)
            )
            if agree(found, wanted):
                edit = Replacement(view, region, names)
                angles = [
                    edit.constant(value.astype(np.float32), f"{region.root.name}.{name}")
                    for name, value in (("cos", cos), ("sin", sin))
                ]
                edit.last("rope", [region.entry, *angles], **attributes)
                return edit
    return None


def _rows(values: Array, heads: int) -> Array | None:
    """Return values (S, D / 2) if they are the same for all heads and images."""
    rows = values.ndim - 2 if heads == values.ndim - 3 else values.ndim - 3
    moved = np.moveaxis(values, rows, -2)
    flat = moved.reshape(-1, *moved.shape[-2:])
    found: Array = flat[0]
    return found if bool((flat == found).all()) else None
