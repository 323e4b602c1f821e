# SPDX-License-Identifier: Apache-2.0
"""TFLite operators that take tensors apart or put them together."""

from __future__ import annotations

from npu.graph.importers.tflite_moves import reshaped
from npu.graph.importers.tflite_reader import Handler, TfliteNode

_TIMES = 4096
"""A tensor more often behind itself is broadcast instead."""


def concatenation(node: TfliteNode) -> str:
    """Map CONCATENATION with its fused activation."""
    if not node.operator.inputs:
        raise node.error("no inputs, allowed one or more")
    names = [node.real(index) for index in range(len(node.operator.inputs))]
    axis = node.axis(node.option(0), len(node.shape(0)))
    return node.fused(node.emit("concat", names, node.before(1), axis=axis), 1)


def split(node: TfliteNode) -> tuple[str, ...]:
    """Map SPLIT (axis, tensor) and SPLIT_V (tensor, sizes, axis)."""
    first = node.source == "SPLIT"
    data, place = (1, 0) if first else (0, 2)
    shape = node.shape(data)
    (axis,) = node.ints(place, "axis")[:1] or (0,)
    axis = node.axis(axis, len(shape))
    count = len(node.operator.outputs)
    if first:
        if not count or shape[axis] % count:
            raise node.error(f"{count} parts of an axis of {shape[axis]}")
        sizes: tuple[int, ...] = (shape[axis] // count,) * count
    else:
        sizes = node.ints(1, "sizes")
        rest = shape[axis] - sum(one for one in sizes if one >= 0)
        sizes = tuple(rest if one == -1 else one for one in sizes)
        if len(sizes) != count or sum(sizes) != shape[axis] or min(sizes, default=0) < 0:
            raise node.error(f"sizes {list(sizes)} of an axis of {shape[axis]}, {count} outputs")
    found, start = [], 0
    for index, size in enumerate(sizes):
        found.append(_piece(node, data, axis, start, size, index))
        start += size
    return tuple(found)


def _piece(
    node: TfliteNode, data: int, axis: int, start: int, size: int, output: int, behind: str = ""
) -> str:
    shape = node.shape(data)
    return node.emit(
        "slice",
        [node.real(data)],
        node.wish_of(output) + behind,
        starts=tuple(start if one == axis else 0 for one in range(len(shape))),
        stops=tuple(start + size if one == axis else whole for one, whole in enumerate(shape)),
        steps=(1,) * len(shape),
    )


def unpack(node: TfliteNode) -> tuple[str, ...]:
    """Map UNPACK: one slice for each index of an axis."""
    shape = node.shape(0)
    axis = node.axis(node.option(1), len(shape))
    if len(node.operator.outputs) != shape[axis]:
        raise node.error(f"{len(node.operator.outputs)} outputs, allowed {shape[axis]}")
    rest = (*shape[:axis], *shape[axis + 1 :])
    return tuple(
        reshaped(node, rest, _piece(node, 0, axis, index, 1, index, ".cut"), node.wish_of(index))
        for index in range(shape[axis])
    )


def pack(node: TfliteNode) -> str:
    """Map PACK: tensors along a new axis."""
    if not node.operator.inputs:
        raise node.error("no inputs, allowed one or more")
    shape = node.shape(0)
    axis = node.axis(node.option(1), len(shape) + 1)
    wide = (*shape[:axis], 1, *shape[axis:])
    names = [
        reshaped(node, wide, node.real(index), f"{node.wish}.{index}")
        for index in range(len(node.operator.inputs))
    ]
    return node.emit("concat", names, axis=axis)


def tile(node: TfliteNode) -> str:
    """Map TILE: the tensor several times along each axis."""
    times = node.ints(1, "multiples")
    if len(times) != len(node.shape(0)) or min(times, default=1) < 1:
        raise node.error(f"multiples {list(times)} of {list(node.shape(0))}, allowed from 1")
    name, shape = node.real(0), list(node.shape(0))
    node.fits(*shape, *times)
    for axis, count in enumerate(times):
        if count > _TIMES:
            split = (*shape[:axis], 1, *shape[axis:])
            name = reshaped(node, split, name, f"{node.wish}.{axis}.once")
            name = node.build.expand(name, (*split[:axis], count, *split[axis + 1 :]), node.source)
            shape[axis] *= count
            name = reshaped(node, tuple(shape), name, f"{node.wish}.{axis}")
        elif count > 1:
            shape[axis] *= count
            name = node.emit("concat", [name] * count, f"{node.wish}.{axis}", axis=axis)
    return node.emit("identity", [name])


HANDLERS: dict[str, Handler] = {
    "CONCATENATION": concatenation,
    "SPLIT": split,
    "SPLIT_V": split,
    "UNPACK": unpack,
    "PACK": pack,
    "TILE": tile,
}
