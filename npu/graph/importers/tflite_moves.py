# SPDX-License-Identifier: Apache-2.0
"""TFLite operators that move elements."""

from __future__ import annotations

import math

import numpy as np

from npu.graph.form import Element
from npu.graph.importers.tflite_reader import Handler, TfliteNode


def reshape(node: TfliteNode) -> str:
    """Map RESHAPE: the shape from its input, its option, or the output."""
    if node.given(1):
        shape = node.ints(1, "shape")
    elif node.options is not None and node.options.has(0):
        shape = tuple(int(one) for one in node.options.vector(0, np.int32))
    else:
        shape = node.output().shape
    size = math.prod(node.shape(0))
    known = math.prod(one for one in shape if one != -1)
    if list(shape).count(-1) > 1 or (-1 in shape and (known <= 0 or size % known)):
        raise node.error(f"shape {list(shape)} of {size} elements")
    return reshaped(node, tuple(size // known if one == -1 else one for one in shape))


def reshaped(node: TfliteNode, shape: tuple[int, ...], name: str = "", wish: str = "") -> str:
    """Return a tensor in another shape, the first input if none is named."""
    name = name or node.real(0)
    return node.emit("reshape", [name], wish, shape=shape)


def squeeze(node: TfliteNode) -> str:
    """Map SQUEEZE: the axes given, or all of 1."""
    shape, rank = node.shape(0), len(node.shape(0))
    given = node.options.vector(0, np.int32) if node.options is not None else np.array([])
    axes = {node.axis(int(one), rank) for one in given} or {
        axis for axis, size in enumerate(shape) if size == 1
    }
    if any(shape[axis] != 1 for axis in axes):
        raise node.error(f"axes {sorted(axes)} of {list(shape)}, allowed axes of 1")
    return reshaped(node, tuple(size for axis, size in enumerate(shape) if axis not in axes))


def expand_dims(node: TfliteNode) -> str:
    """Map EXPAND_DIMS."""
    shape, (axis,) = node.shape(0), node.ints(1, "axis")[:1] or (0,)
    axis = node.axis(axis, len(shape) + 1)
    return reshaped(node, (*shape[:axis], 1, *shape[axis:]))


def transpose(node: TfliteNode) -> str:
    """Map TRANSPOSE."""
    rank = len(node.shape(0))
    order = tuple(node.axis(one, rank) for one in node.ints(1, "order"))
    return node.emit("transpose", [node.real(0)], order=order)


def _cut(
    node: TfliteNode,
    starts: tuple[int, ...],
    stops: tuple[int, ...],
    steps: tuple[int, ...] = (),
    wish: str = "",
) -> str:
    return node.emit(
        "slice",
        [node.real(0)],
        wish,
        starts=starts,
        stops=stops,
        steps=steps or (1,) * len(starts),
    )


def cut(node: TfliteNode) -> str:
    """Map SLICE: begin and size, -1 up to the end."""
    shape, begin, size = node.shape(0), node.ints(1, "begin"), node.ints(2, "size")
    if not len(begin) == len(size) == len(shape):
        raise node.error(f"begin {list(begin)}, size {list(size)} of {list(shape)}")
    stops = tuple(
        whole if length == -1 else start + length
        for whole, start, length in zip(shape, begin, size, strict=True)
    )
    return _cut(node, begin, stops)


def strided_slice(node: TfliteNode) -> str:
    """Map STRIDED_SLICE."""
    shape = node.shape(0)
    ranges, kept = _strides(node, shape)
    found, sizes = [], []
    for first, last, step in ranges:
        length = len(range(first, last, step))
        # An empty piece has no place that a slice could name.
        found.append((first, last, step) if length else (0, 0, 1))
        sizes.append(length)
    starts, stops, strides = (tuple(one[part] for one in found) for part in range(3))
    result = tuple(1 if axis < 0 else sizes[axis] for axis in kept)
    if kept == list(range(len(shape))):
        return _cut(node, starts, stops, strides)
    return reshaped(node, result, _cut(node, starts, stops, strides, f"{node.wish}.cut"))


def _strides(
    node: TfliteNode, shape: tuple[int, ...]
) -> tuple[list[tuple[int, int, int]], list[int]]:
    """Return first, end and step of each axis, and which axes are left; -1 is a new one."""
    begin, end, steps = (node.ints(1 + i, n) for i, n in enumerate(("begin", "end", "strides")))
    masks = [node.option(field) for field in range(5)]
    whole, new = (masks[place] for place in (2, 3))
    given = f"begin {list(begin)}, end {list(end)}, strides {list(steps)} of {list(shape)}"
    rest = len(shape) - sum(not (whole | new) >> one & 1 for one in range(len(begin)))
    if not len(begin) == len(end) == len(steps) or 0 in steps or rest < 0:
        raise node.error(given)
    if not whole & ((1 << len(begin)) - 1):
        whole |= 1 << len(begin)
    ranges: list[tuple[int, int, int]] = []
    kept: list[int] = []
    for place in range(len(begin) + 1):
        axis = len(ranges)
        if whole >> place & 1:
            ranges += [(0, size, 1) for size in shape[axis : axis + rest]]
            kept += range(axis, axis + rest)
            rest = 0
        elif place == len(begin):
            continue
        elif new >> place & 1:
            kept.append(-1)
        elif masks[4] >> place & 1:
            at = begin[place] + shape[axis] if begin[place] < 0 else begin[place]
            if not 0 <= at < shape[axis]:
                raise node.error(f"index {begin[place]} of an axis of {shape[axis]}")
            ranges.append((at, at + 1, 1))
        else:
            start = None if masks[0] >> place & 1 else begin[place]
            stop = None if masks[1] >> place & 1 else end[place]
            if stop is not None and node.option(5, "b"):
                stop += begin[place]
            ranges.append(slice(start, stop, steps[place]).indices(shape[axis]))
            kept.append(axis)
    return ranges, kept


def pad(node: TfliteNode) -> str:
    """Map PAD and PADV2."""
    shape = node.shape(0)
    widths = np.array(node.ints(1, "paddings"))
    if widths.size != 2 * len(shape):
        raise node.error(f"{widths.size} paddings, allowed {2 * len(shape)}")
    pairs = widths.reshape(-1, 2)
    value = 0.0
    if node.given(2):
        real = node.build.value(node.real(2))
        if real is None:
            real = _dequantised(node)
        if real.size != 1:
            raise node.error(f"{real.size} values, allowed 1")
        value = float(real.reshape(-1)[0])
    before, after = (tuple(int(one) for one in pairs[:, side]) for side in (0, 1))
    return node.emit("pad", [node.real(0)], before=before, after=after, value=value)


def _dequantised(node: TfliteNode) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Return the value of input 2 as real numbers."""
    value, unit = node.constant(2, "value"), node.input(2).quantisation
    scale, zero = (unit.scales[0], unit.zero) if unit is not None else (1.0, 0)
    return (value.astype(np.float64) - zero) * scale


def gather(node: TfliteNode) -> str:
    """Map GATHER: with batches each has indices of its own, which count through all of them."""
    shape, places = node.shape(0), node.shape(1)
    axis, batches = node.axis(node.option(0), len(shape)), node.option(1)
    if not batches:
        return node.emit("gather", [node.real(0), node.name(1)], axis=axis)
    batches = node.axis(batches, len(places) + 1)
    if batches > axis or shape[:batches] != places[:batches]:
        raise node.error(f"{batches} batch axes of {list(shape)} and {list(places)}, axis {axis}")
    build, rank = node.build, len(shape)
    order = (*range(batches), axis, *(one for one in range(batches, rank) if one != axis))
    moved = build.transpose(node.real(0), order, node.source)
    count, size = math.prod(shape[:batches]), shape[axis]
    rest = tuple(shape[one] for one in order[batches + 1 :])
    flat = build.reshape(moved, (count * size, *rest), node.source)
    kind = build.type(node.name(1)).element.dtype
    first = (np.arange(count, dtype=kind) * size).reshape(
        *shape[:batches], *(1,) * (len(places) - batches)
    )
    at = node.emit(
        "add", [node.name(1), build.constant(first, f"{node.wish}.first")], f"{node.wish}.at"
    )
    made = node.emit("gather", [flat, at], f"{node.wish}.moved", axis=0)
    before, width = axis - batches, len(places) - batches
    back = (
        *range(batches),
        *range(batches + width, batches + width + before),
        *range(batches, batches + width),
        *range(batches + width + before, len(places) + len(rest)),
    )
    return node.emit("transpose", [made], order=back)


def embedding(node: TfliteNode) -> str:
    """Map EMBEDDING_LOOKUP: ids, then the table."""
    return node.emit("gather", [node.real(1), node.name(0)], axis=0)


def broadcast_to(node: TfliteNode) -> str:
    """Map BROADCAST_TO."""
    return node.emit("expand", [node.real(0)], shape=node.ints(1, "shape"))


def reverse(node: TfliteNode) -> str:
    """Map REVERSE_V2: slices of step -1."""
    shape = node.shape(0)
    axes = {node.axis(one, len(shape)) for one in node.ints(1, "axes")}
    turned = [(size, axis in axes and size > 0) for axis, size in enumerate(shape)]
    return _cut(
        node,
        tuple(size - 1 if back else 0 for size, back in turned),
        tuple(-1 if back else size for size, back in turned),
        tuple(-1 if back else 1 for _, back in turned),
    )


def blocks(node: TfliteNode) -> str:
    """Map SPACE_TO_DEPTH and DEPTH_TO_SPACE."""
    shape, size = node.shape(0), node.option(0)
    if len(shape) != 4 or size < 1:
        raise node.error(f"image {list(shape)}, block {size}, allowed rank 4 and blocks from 1")
    images, height, width, channels = shape
    wish = node.wish
    if node.source == "SPACE_TO_DEPTH":
        if height % size or width % size:
            raise node.error(f"image {list(shape)}, allowed multiples of {size}")
        split_up = (images, height // size, size, width // size, size, channels)
        whole = (images, height // size, width // size, channels * size * size)
        order: tuple[int, ...] = (0, 1, 3, 2, 4, 5)
    else:
        if channels % (size * size):
            raise node.error(f"image {list(shape)}, allowed channels a multiple of {size * size}")
        split_up = (images, height, width, size, size, channels // (size * size))
        whole = (images, height * size, width * size, channels // (size * size))
        order = (0, 1, 3, 2, 4, 5)
    parts = reshaped(node, split_up, wish=f"{wish}.blocks")
    return reshaped(node, whole, node.emit("transpose", [parts], f"{wish}.moved", order=order))


def shape_of(node: TfliteNode) -> str:
    """Map SHAPE: a constant."""
    kind = np.int64 if node.output().element == Element.I64 else np.int32
    return node.build.constant(np.array(node.shape(0), kind), node.wish)


HANDLERS: dict[str, Handler] = {
    "RESHAPE": reshape,
    "SQUEEZE": squeeze,
    "EXPAND_DIMS": expand_dims,
    "TRANSPOSE": transpose,
    "SLICE": cut,
    "STRIDED_SLICE": strided_slice,
    "PAD": pad,
    "PADV2": pad,
    "GATHER": gather,
    "EMBEDDING_LOOKUP": embedding,
    "BROADCAST_TO": broadcast_to,
    "REVERSE_V2": reverse,
    "SPACE_TO_DEPTH": blocks,
    "DEPTH_TO_SPACE": blocks,
    "SHAPE": shape_of,
}
