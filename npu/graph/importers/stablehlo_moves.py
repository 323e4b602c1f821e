# SPDX-License-Identifier: Apache-2.0
"""StableHLO operations that move elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npu.graph.form import Element, TensorType
from npu.graph.importers.stablehlo_step import Handler, Step


def reshape(step: Step) -> str:
    """Map a reshape."""
    return step.build.reshape(step.inputs[0], step.type.shape, step.source, step.wish)


def transpose(step: Step) -> str:
    """Map a transpose."""
    order = step.ints("permutation")
    return step.build.transpose(step.inputs[0], order, step.source, step.wish)


def broadcast(step: Step) -> str:
    """Map a broadcast: axes of 1 put in, then an expansion."""
    shape, place = step.type.shape, step.ints("broadcast_dimensions")
    given = step.shape(0)
    order = sorted(range(len(place)), key=lambda axis: place[axis])
    name = step.build.transpose(step.inputs[0], order, step.source)
    middle = [1] * len(shape)
    for axis, target in enumerate(place):
        middle[target] = given[axis]
    # Nothing put in front is needed: a broadcast adds axes in front by itself.
    name = step.build.reshape(name, middle, step.source)
    return step.build.expand(name, shape, step.source, step.wish)


def concatenate(step: Step) -> str:
    """Map a concatenation."""
    axis = step.number("dimension")
    return step.emit("concat", axis=axis) if len(step.inputs) > 1 else step.inputs[0]


def cut(step: Step) -> str:
    """Map a slice with constant bounds."""
    starts, stops, steps = (
        step.ints(name) for name in ("start_indices", "limit_indices", "strides")
    )
    return step.emit("slice", starts=starts, stops=stops, steps=steps)


def dynamic_cut(step: Step) -> str | None:
    """Map a slice whose place is a tensor, if that tensor is constant."""
    starts = [step.scalar(1 + index) for index in range(len(step.inputs) - 1)]
    if any(start is None for start in starts):
        return None
    sizes = step.ints("slice_sizes")
    begin = tuple(
        min(max(int(start or 0), 0), whole - size)
        for start, whole, size in zip(starts, step.shape(0), sizes, strict=True)
    )
    stops = tuple(start + size for start, size in zip(begin, sizes, strict=True))
    return step.emit("slice", [step.inputs[0]], starts=begin, stops=stops, steps=(1,) * len(sizes))


def reverse(step: Step) -> str:
    """Map the opposite order along axes: a slice of step -1."""
    axes, shape = step.ints("dimensions"), step.shape(0)
    if not all(shape):
        return step.inputs[0]
    turned = [axis in axes for axis in range(len(shape))]
    pairs = list(zip(shape, turned, strict=True))
    return step.emit(
        "slice",
        starts=tuple(size - 1 if back else 0 for size, back in pairs),
        stops=tuple(-1 if back else size for size, back in pairs),
        steps=tuple(-1 if back else 1 for _, back in pairs),
    )


def pad(step: Step) -> str | None:
    """Map a padding: negative widths cut, gaps between elements are not known."""
    value = step.scalar(1)
    before, after = step.ints("edge_padding_low"), step.ints("edge_padding_high")
    step.only("interior_padding", 0, len(before))
    if value is None or not np.isfinite(value):
        return None
    name, shape = step.inputs[0], step.shape(0)
    if min((*before, *after), default=0) < 0:
        starts = tuple(max(-one, 0) for one in before)
        stops = tuple(size - max(-one, 0) for size, one in zip(shape, after, strict=True))
        if any(stop < start for start, stop in zip(starts, stops, strict=True)):
            return None
        kept = tuple(stop - start for start, stop in zip(starts, stops, strict=True))
        name = step.also(
            "slice", [name], "cut", TensorType(kept, step.type.element),
            starts=starts, stops=stops, steps=(1,) * len(kept),
        )  # fmt: skip
    wide = tuple(max(one, 0) for one in before), tuple(max(one, 0) for one in after)
    if not any(wide[0]) and not any(wide[1]):
        return name
    return step.emit("pad", [name], before=wide[0], after=wide[1], value=value)


def iota(step: Step) -> str:
    """Map the index along an axis."""
    return step.emit(
        "iota",
        [],
        shape=step.type.shape,
        axis=step.number("iota_dimension"),
        element=step.type.element.value,
    )


@dataclass(frozen=True)
class _Gather:
    """The dimension numbers of a gather."""

    offset: tuple[int, ...]
    collapsed: tuple[int, ...]
    start: tuple[int, ...]
    batching: tuple[int, ...]
    vector: int
    sizes: tuple[int, ...]


def _gather_numbers(step: Step) -> _Gather:
    from jaxlib.mlir.dialects import stablehlo

    numbers = stablehlo.GatherDimensionNumbers(step.attribute("dimension_numbers"))
    return _Gather(
        tuple(numbers.offset_dims),
        tuple(numbers.collapsed_slice_dims),
        tuple(numbers.start_index_map),
        tuple(numbers.operand_batching_dims),
        int(numbers.index_vector_dim),
        step.ints("slice_sizes"),
    )


def gather(step: Step) -> str | None:
    """Map a gather that takes rows along one axis, or one block at a constant place."""
    numbers = _gather_numbers(step)
    if numbers.batching:
        return None
    indices = step.shape(1)
    if len(indices) == 1 and numbers.vector == 0:
        return _block(step, numbers)
    whole = [axis for axis, size in enumerate(step.shape(0)) if numbers.sizes[axis] != size]
    if len(numbers.start) != 1 or numbers.collapsed != numbers.start:
        return None
    (axis,) = numbers.start
    if whole not in ([axis], []) or numbers.sizes[axis] != 1:
        return None
    if numbers.vector == len(indices) - 1 and indices[-1] == 1:
        indices = indices[:-1]
    elif numbers.vector != len(indices):
        return None
    rank = len(step.type.shape)
    expected = tuple(one for one in range(rank) if not axis <= one < axis + len(indices))
    if numbers.offset != expected:
        return None
    rows = step.build.reshape(step.inputs[1], indices, step.source)
    return step.emit("gather", [step.inputs[0], _inside(step, rows, axis)], axis=axis)


def _inside(step: Step, rows: str, axis: int) -> str:
    """Return indices as StableHLO takes them: none counts from behind, the nearest row is taken."""
    last = step.shape(0)[axis] - 1
    known = step.build.value(rows)
    if known is not None and known.min(initial=0) >= 0 and known.max(initial=0) <= last:
        return rows
    found = TensorType(step.build.shape(rows), Element.I32)
    return step.also("clip", [rows], "inside", found, low=0.0, high=float(last))


def _block(step: Step, numbers: _Gather) -> str | None:
    """Cut one block whose place is constant out of a tensor."""
    place = step.build.value(step.inputs[1])
    if place is None:
        return None
    shape = step.shape(0)
    starts = [0] * len(shape)
    for axis, start in zip(numbers.start, place, strict=True):
        starts[axis] = min(max(int(start), 0), shape[axis] - numbers.sizes[axis])
    stops = tuple(start + size for start, size in zip(starts, numbers.sizes, strict=True))
    found = type(step.type)(numbers.sizes, step.type.element)
    cut_out = step.also(
        "slice", [step.inputs[0]], "block", found,
        starts=tuple(starts), stops=stops, steps=(1,) * len(shape),
    )  # fmt: skip
    return step.build.reshape(cut_out, step.type.shape, step.source, step.wish)


HANDLERS: dict[str, Handler] = {
    "stablehlo.reshape": reshape,
    "stablehlo.transpose": transpose,
    "stablehlo.broadcast_in_dim": broadcast,
    "stablehlo.concatenate": concatenate,
    "stablehlo.slice": cut,
    "stablehlo.dynamic_slice": dynamic_cut,
    "stablehlo.reverse": reverse,
    "stablehlo.pad": pad,
    "stablehlo.iota": iota,
    "stablehlo.gather": gather,
}
