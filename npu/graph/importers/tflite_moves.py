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
    """Map STRIDED_SLICE without ellipsis and new axes."""
    shape = node.shape(0)
    begin, end, steps = (node.ints(1 + i, n) for i, n in enumerate(("begin", "end", "strides")))
    masks = [node.option(field) for field in range(5)]
    if masks[2] or masks[3] or node.option(5, "b"):
        raise node.error("ellipsis, new axes or offsets, allowed begin, end and shrink masks")
    if not len(begin) == len(end) == len(steps) <= len(shape) or 0 in steps:
        raise node.error(
            f"begin {list(begin)}, end {list(end)}, strides {list(steps)} of {list(shape)}"
        )
    rest = len(shape) - len(begin)
    begin, end, steps = (*begin, *(0,) * rest), (*end, *shape[len(end) :]), (*steps, *(1,) * rest)
    found, kept = [], []
    for axis, size in enumerate(shape):
        shrink = bool(masks[4] >> axis & 1)
        start = None if masks[0] >> axis & 1 and not shrink else begin[axis]
        stop = None if masks[1] >> axis & 1 else end[axis]
        if shrink:
            place = begin[axis] + size if begin[axis] < 0 else begin[axis]
            if not 0 <= place < size:
                raise node.error(f"index {begin[axis]} of an axis of {size}")
            found.append((place, place + 1, 1))
            continue
        first, last, step = slice(start, stop, steps[axis]).indices(size)
        # An empty piece has no place that a slice could name.
        length = len(range(first, last, step))
        found.append((first, last, step) if length else (0, 0, 1))
        kept.append(length)
    starts, stops, strides = (tuple(one[part] for one in found) for part in range(3))
    if not masks[4]:
        return _cut(node, starts, stops, strides)
    return reshaped(node, tuple(kept), _cut(node, starts, stops, strides, f"{node.wish}.cut"))


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
    """Map GATHER without batches."""
    if node.option(1):
        raise node.error(f"{node.option(1)} batch axes, allowed 0")
    axis = node.axis(node.option(0), len(node.shape(0)))
    return node.emit("gather", [node.real(0), node.name(1)], axis=axis)


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
