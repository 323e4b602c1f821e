# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX that move elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from npu.graph.form import GraphError
from npu.graph.importers.onnx_node import Node, element_of, mapped
from npu.graph.importers.unmapped import UnmappedError


@mapped("Identity")
def _identity(node: Node) -> None:
    node.give(node.input(0))


@mapped("Dropout")
def _dropout(node: Node) -> None:
    if node.wants(1):
        raise UnmappedError("the mask of a dropout is not mapped")
    node.input(1)  # how much of it is left away in training
    training = node.build.value(node.input(2)) if node.input(2) else np.array(False)
    if node.version < 7:
        training = np.array(not node.attributes.get("is_test", 0))
    if training is None or bool(training.reshape(-1)[0]):
        raise UnmappedError("a dropout in training is not mapped")
    node.give(node.input(0))


@mapped("Shape")
def _shape(node: Node) -> None:
    shape = node.shape(node.input(0))
    start, end = node.attributes.get("start", 0), node.attributes.get("end", len(shape))
    node.give(node.constant(np.array(shape, np.int64)[start:end], node.name))


@mapped("Size")
def _size(node: Node) -> None:
    node.give(node.constant(np.array(math.prod(node.shape(node.input(0))), np.int64), node.name))


@mapped("Reshape")
def _reshape(node: Node) -> None:
    x, wanted = node.input(0), list(node.integers(1, "the shape"))
    shape = node.shape(x)
    if not node.attributes.get("allowzero", 0):
        for axis, size in enumerate(wanted):
            if size == 0:
                if axis >= len(shape):
                    raise GraphError(f"shape {wanted} copies axis {axis} of {list(shape)}")
                wanted[axis] = shape[axis]
    if wanted.count(-1) == 1:
        rest = -math.prod(wanted)
        wanted[wanted.index(-1)] = math.prod(shape) // rest if rest else 0
    node.give(node.reshape(x, wanted))


@mapped("Flatten")
def _flatten(node: Node) -> None:
    x = node.input(0)
    shape = node.shape(x)
    axis = node.attributes.get("axis", 1)
    axis = axis + len(shape) if axis < 0 else axis
    node.give(node.reshape(x, (math.prod(shape[:axis]), math.prod(shape[axis:]))))


@mapped("Squeeze")
def _squeeze(node: Node) -> None:
    x = node.input(0)
    shape = node.shape(x)
    axes = node.listed("axes", 1, 13)
    gone = {node.axis(one, len(shape)) for one in axes} if axes is not None else set()
    if axes is None:
        gone = {axis for axis, size in enumerate(shape) if size == 1}
    node.give(node.reshape(x, [size for axis, size in enumerate(shape) if axis not in gone]))


@mapped("Unsqueeze")
def _unsqueeze(node: Node) -> None:
    x = node.input(0)
    axes = node.listed("axes", 1, 13) or ()
    shape = list(node.shape(x))
    rank = len(shape) + len(axes)
    for axis in sorted(node.axis(one, rank) for one in axes):
        shape.insert(axis, 1)
    node.give(node.reshape(x, shape))


@mapped("Transpose")
def _transpose(node: Node) -> None:
    x = node.input(0)
    order = node.attributes.get("perm", tuple(range(len(node.shape(x))))[::-1])
    node.give(node.add("transpose", [x], order=order))


@mapped("Concat")
def _concat(node: Node) -> None:
    names = node.inputs
    axis = node.axis(node.attributes["axis"], len(node.shape(names[0])))
    node.give(node.add("concat", names, axis=axis))


@mapped("Split")
def _split(node: Node) -> None:
    x = node.input(0)
    shape = node.shape(x)
    axis = node.axis(node.attributes.get("axis", 0), len(shape))
    sizes = node.listed("split", 1, 13)
    count = len(node.proto.output)
    if node.attributes.get("num_outputs", count) != count:
        raise GraphError(f"num_outputs {node.attributes['num_outputs']}, it has {count}")
    if sizes is None:
        step = -(-shape[axis] // count)
        sizes = tuple(max(0, min(step, shape[axis] - step * one)) for one in range(count))
    if len(sizes) != count or sum(sizes) != shape[axis]:
        raise GraphError(f"split {list(sizes)} of {shape[axis]} into {count}")
    first = 0
    for index, size in enumerate(sizes):
        if node.wants(index):
            stops = list(shape)
            stops[axis] = first + size
            starts = [0] * len(shape)
            starts[axis] = first
            node.give(_sliced(node, x, starts, stops, [1] * len(shape), f"{index}"), index)
        first += size


def _sliced(
    node: Node,
    x: str,
    starts: Sequence[int],
    stops: Sequence[int],
    steps: Sequence[int],
    part: str = "",
) -> str:
    return node.add("slice", [x], part, starts=starts, stops=stops, steps=steps)


@mapped("Slice")
def _slice(node: Node) -> None:
    x = node.input(0)
    shape = node.shape(x)
    starts = node.listed("starts", 1, 10) or ()
    stops = node.listed("ends", 2, 10) or ()
    axes = node.listed("axes", 3, 10) or tuple(range(len(starts)))
    steps = (node.listed("steps", 4, 10) if node.version >= 10 else None) or (1,) * len(starts)
    if not len(starts) == len(stops) == len(axes) == len(steps):
        raise GraphError(
            f"starts {list(starts)}, ends {list(stops)}, axes {list(axes)}, steps {list(steps)}: "
            "allowed lists of one length"
        )
    first, after, by = [0] * len(shape), list(shape), [1] * len(shape)
    for start, stop, axis, step in zip(starts, stops, axes, steps, strict=True):
        place = node.axis(axis, len(shape))
        if step == 0:
            raise GraphError(f"steps {list(steps)}, allowed other than 0")
        found = range(shape[place])[slice(start, stop, step)]
        first[place], after[place], by[place] = found.start, found.stop, step
        if not found:
            first[place] = after[place] = 0
    node.give(_sliced(node, x, first, after, by))


@mapped("Pad")
def _pad(node: Node) -> None:
    x = node.input(0)
    rank = len(node.shape(x))
    mode = node.attributes.get("mode", b"constant").decode()
    if mode != "constant":
        raise UnmappedError(f"pads of mode {mode} are not mapped")
    pads = node.listed("pads", 1, 11) or ()
    axes = tuple(range(rank))
    if node.input(3) and node.version >= 18:
        axes = tuple(node.axis(one, rank) for one in node.integers(3, "the axes"))
    value = float(node.attributes.get("value", 0.0))
    if node.version >= 11 and node.input(2):
        value = float(node.value(2, "the value").reshape(-1)[0])
    if len(pads) != 2 * len(axes):
        raise GraphError(f"pads {list(pads)}, allowed {2 * len(axes)} numbers")
    before, after = [0] * rank, [0] * rank
    for index, axis in enumerate(axes):
        before[axis], after[axis] = pads[index], pads[index + len(axes)]
    if min((*before, *after), default=0) < 0:
        raise UnmappedError("negative pads are not mapped")
    scaled = node.type(x).quantisation
    if scaled is not None and scaled.axis is None:
        value = scaled.scale * (value - scaled.zero)
        node.give(node.in_reals("pad", [x], before=before, after=after, value=value))
        return
    node.give(node.add("pad", [x], before=before, after=after, value=value))


@mapped("Gather")
def _gather(node: Node) -> None:
    axis = node.axis(node.attributes.get("axis", 0), len(node.shape(node.input(0))))
    node.give(node.add("gather", [node.input(0), node.input(1)], axis=axis))


@mapped("Expand")
def _expand(node: Node) -> None:
    x = node.input(0)
    wanted = node.integers(1, "the shape")
    try:
        shape = np.broadcast_shapes(node.shape(x), wanted)
    except ValueError:
        raise GraphError(
            f"shape {list(wanted)} does not broadcast with {list(node.shape(x))}"
        ) from None
    node.give(x if shape == node.shape(x) else node.add("expand", [x], shape=shape))


@mapped("Tile")
def _tile(node: Node) -> None:
    x = node.input(0)
    shape, times = node.shape(x), node.integers(1, "the repeats")
    if len(times) != len(shape):
        raise GraphError(f"repeats {list(times)}, allowed {len(shape)} numbers")
    pairs = [size for pair in zip((1,) * len(shape), shape, strict=True) for size in pair]
    wide = [size for pair in zip(times, shape, strict=True) for size in pair]
    y = node.add("expand", [node.reshape(x, pairs, "pairs")], "repeat", shape=wide)
    node.give(node.reshape(y, [one * size for one, size in zip(times, shape, strict=True)]))


@mapped("Cast")
def _cast(node: Node) -> None:
    x, element = node.input(0), element_of(node.attributes["to"])
    node.give(node.add("cast", [x], element=element.value))


@mapped("CastLike")
def _cast_like(node: Node) -> None:
    x, element = node.input(0), node.type(node.input(1)).element
    node.give(node.add("cast", [x], element=element.value))


def _depth_first(node: Node) -> bool:
    """Say whether the depth of a block comes before its place."""
    mode = node.attributes.get("mode", b"DCR")
    if mode not in {b"DCR", b"CRD"}:
        raise UnmappedError(f"mode {mode!r} is not mapped")
    return bool(mode == b"CRD")


@mapped("DepthToSpace")
def _depth_to_space(node: Node) -> None:
    x, block = node.input(0), int(node.attributes["blocksize"])
    batch, channels, height, width = node.shape(x)
    depth = channels // block**2
    if _depth_first(node):
        split, order = (batch, depth, block, block, height, width), (0, 1, 4, 2, 5, 3)
    else:
        split, order = (batch, block, block, depth, height, width), (0, 3, 4, 1, 5, 2)
    y = node.transpose(node.reshape(x, split, "blocks"), order, "order")
    node.give(node.reshape(y, (batch, depth, height * block, width * block)))


@mapped("SpaceToDepth")
def _space_to_depth(node: Node) -> None:
    x, block = node.input(0), int(node.attributes["blocksize"])
    batch, channels, height, width = node.shape(x)
    split = (batch, channels, height // block, block, width // block, block)
    order = (0, 1, 3, 5, 2, 4) if _depth_first(node) else (0, 3, 5, 1, 2, 4)
    y = node.transpose(node.reshape(x, split, "blocks"), order, "order")
    node.give(node.reshape(y, (batch, channels * block**2, height // block, width // block)))
