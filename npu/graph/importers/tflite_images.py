# SPDX-License-Identifier: Apache-2.0
"""TFLite operators that resize, tile or mirror images, and convolutions turned round."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, Element
from npu.graph.importers.tflite_linear import bias, edges, weights
from npu.graph.importers.tflite_moves import reshaped
from npu.graph.importers.tflite_reader import Handler, TfliteNode

_IMAGE = "image {}, allowed rank 4"


def _chosen(node: TfliteNode, name: str, axis: int, places: Array, wish: str) -> str:
    """Return the slices of an axis at constant places."""
    index = node.build.constant(places.astype(np.int32), f"{wish}.places")
    return node.emit("gather", [name, index], wish, axis=axis)


def mirror_pad(node: TfliteNode) -> str:
    """Map MIRROR_PAD: the edge repeated (SYMMETRIC) or not (REFLECT)."""
    shape, offset = node.shape(0), 0 if node.option(0, "b") else 1
    widths = np.array(node.ints(1, "paddings"))
    if widths.size != 2 * len(shape):
        raise node.error(f"{widths.size} paddings, allowed {2 * len(shape)}")
    name = node.real(0)
    for axis, (before, after) in enumerate(widths.reshape(-1, 2)):
        most = shape[axis] - offset
        if min(before, after) < 0 or max(before, after) > most:
            raise node.error(f"paddings {before}, {after} of an axis, allowed 0..{most}")
        if before or after:
            places = np.pad(
                np.arange(shape[axis]), (before, after), "reflect" if offset else "symmetric"
            )
            name = _chosen(node, name, axis, places, f"{node.wish}.axis{axis}")
    return node.emit("identity", [name])


def _new_size(node: TfliteNode) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the shape of an image and height and width of the result."""
    shape, size = node.shape(0), node.ints(1, "size")
    if len(shape) != 4 or len(size) != 2 or min(size) < 1:
        raise node.error(f"image {list(shape)}, size {list(size)}, allowed rank 4 and two numbers")
    node.fits(shape[0], *size, shape[3])
    return shape, size


def _places(size: int, wanted: int, *, corners: bool, centres: bool) -> Array:
    """Return where elements of a resized axis lie in the old one, float32 as TFLite has it.

    Elements with centres reach half an element further.
    """
    scale = np.float32(size) / np.float32(wanted)
    if corners and wanted > 1:
        scale = np.float32(size - 1) / np.float32(wanted - 1)
    at = np.arange(wanted, dtype=np.float32)
    return (at + np.float32(0.5)) * scale if centres else at * scale


def resize_nearest(node: TfliteNode) -> str:
    """Map RESIZE_NEAREST_NEIGHBOR: rows and columns by constant places."""
    shape, size = _new_size(node)
    corners, centres = bool(node.option(0, "b")), bool(node.option(1, "b"))
    name = node.real(0)
    for axis, wanted in zip((1, 2), size, strict=True):
        at = _places(shape[axis], wanted, corners=corners, centres=centres)
        # Halves go up, away from zero: nothing here is negative.
        places = np.floor(at + np.float32(0.5)) if corners else np.floor(at)
        places = np.clip(places, 0, shape[axis] - 1)
        name = _chosen(node, name, axis, places, f"{node.wish}.axis{axis}")
    return node.emit("identity", [name])


def resize_bilinear(node: TfliteNode) -> str:
    """Map RESIZE_BILINEAR: along each axis two neighbours, each times its share."""
    shape, size = _new_size(node)
    corners, centres = bool(node.option(2, "b")), bool(node.option(3, "b"))
    name = node.real(0)
    for axis, wanted in zip((1, 2), size, strict=True):
        at = _places(shape[axis], wanted, corners=corners, centres=centres)
        at = at - np.float32(0.5) if centres else at
        low = np.maximum(np.floor(at), 0)
        high = np.minimum(np.ceil(at), shape[axis] - 1)
        low = np.minimum(low, shape[axis] - 1)
        share = (at - low).astype(np.float32).reshape(-1, *(1,) * (3 - axis))
        wish = f"{node.wish}.axis{axis}"
        sides = []
        for side, places, part in (("low", low, 1 - share), ("high", high, share)):
            found = _chosen(node, name, axis, places, f"{wish}.{side}")
            factor = node.build.constant(part.astype(np.float32), f"{wish}.{side}.share")
            sides.append(node.emit("mul", [found, factor], f"{wish}.{side}.part"))
        name = node.emit("add", sides, wish)
    return node.emit("identity", [name])


def _blocks(node: TfliteNode) -> tuple[tuple[int, ...], tuple[int, ...], Array]:
    """Return the shape of an image, the block along its inner axes, and two numbers for each."""
    shape, block = node.shape(0), node.ints(1, "block")
    pairs = np.array(node.ints(2, "paddings"))
    inner = len(shape) - 2
    if inner < 1 or len(block) != inner or min(block) < 1 or pairs.size != 2 * inner:
        raise node.error(
            f"image {list(shape)}, block {list(block)}, {pairs.size} numbers for the edges, "
            "allowed a number and a pair for each axis between the first and the last"
        )
    if pairs.min(initial=0) < 0:
        raise node.error(f"{pairs.min()} at an edge, allowed from 0")
    return shape, block, pairs.reshape(-1, 2)


def space_to_batch(node: TfliteNode) -> str:
    """Map SPACE_TO_BATCH_ND: blocks of an image become images of their own."""
    shape, block, pairs = _blocks(node)
    inner = len(block)
    before, after = ((0, *(int(one) for one in pairs[:, side]), 0) for side in (0, 1))
    wide = node.emit(
        "pad", [node.real(0)], f"{node.wish}.wide", before=before, after=after, value=0.0
    )
    size = node.build.shape(wide)[1:-1]
    if any(one % step for one, step in zip(size, block, strict=True)):
        raise node.error(f"{list(size)} with its edges, allowed multiples of {list(block)}")
    cut = [(one // step, step) for one, step in zip(size, block, strict=True)]
    split = (shape[0], *(each for pair in cut for each in pair), shape[-1])
    order = (*range(2, 2 * inner + 1, 2), 0, *range(1, 2 * inner, 2), 2 * inner + 1)
    parts = reshaped(node, split, wide, f"{node.wish}.blocks")
    moved = node.emit("transpose", [parts], f"{node.wish}.moved", order=order)
    images = shape[0] * int(np.prod(block))
    return reshaped(node, (images, *(one for one, _ in cut), shape[-1]), moved)


def batch_to_space(node: TfliteNode) -> str:
    """Map BATCH_TO_SPACE_ND: images become blocks of larger ones, whose edges are cut off."""
    shape, block, pairs = _blocks(node)
    inner, count = len(block), int(np.prod(block))
    if shape[0] % count:
        raise node.error(f"{shape[0]} images, allowed a multiple of {count}")
    parts = reshaped(node, (*block, shape[0] // count, *shape[1:]), "", f"{node.wish}.blocks")
    turned = [each for axis in range(inner) for each in (inner + 1 + axis, axis)]
    order = (inner, *turned, 2 * inner + 1)
    moved = node.emit("transpose", [parts], f"{node.wish}.moved", order=order)
    size = tuple(one * step for one, step in zip(shape[1:-1], block, strict=True))
    whole = reshaped(node, (shape[0] // count, *size, shape[-1]), moved, f"{node.wish}.whole")
    stops = tuple(int(one - last) for one, (_, last) in zip(size, pairs, strict=True))
    starts = tuple(int(first) for first, _ in pairs)
    if any(first > stop for first, stop in zip(starts, stops, strict=True)):
        raise node.error(f"edges {pairs.tolist()} of {list(size)}, allowed no more than there is")
    return node.emit(
        "slice",
        [whole],
        starts=(0, *starts, 0),
        stops=(shape[0] // count, *stops, shape[-1]),
        steps=(1,) * len(shape),
    )


def transpose_conv(node: TfliteNode) -> str:
    """Map TRANSPOSE_CONV: a convolution, turned round, of an image with zeros between pixels."""
    result, filters, image = node.ints(0, "shape of the result"), node.shape(1), node.shape(2)
    if not len(result) == len(filters) == len(image) == 4:
        raise node.error(_IMAGE.format(list(image)))
    padding, across, down = node.option(0, "b"), node.option(1), node.option(2)
    if padding not in (0, 1) or min(across, down) < 1:
        raise node.error(f"padding {padding}, strides {[down, across]}, allowed 0, 1, and from 1")
    pads, name = [], node.real(2)
    steps = (down, across)
    for axis, step in enumerate(steps):
        kernel, size = filters[1 + axis], (image[1 + axis] - 1) * step + 1
        first = kernel - 1 - edges(result[1 + axis], kernel, step, padding)[0]
        last = result[1 + axis] - size - first + kernel - 1
        if first < 0 or last < 0:
            raise node.error(f"a result of {list(result)}, allowed one that windows cover")
        pads.append((first, last))
    if steps != (1, 1):
        name = _spread(node, name, image, steps)
    w = weights(node, 1, (1, 2, 3, 0), flip=(1, 2))
    made = node.emit(
        "conv",
        [name, w, *bias(node, 3, 1, 2)],
        node.before(3),
        strides=(1, 1),
        pads=(pads[0][0], pads[1][0], pads[0][1], pads[1][1]),
        dilations=(1, 1),
        groups=1,
    )
    return node.fused(made, 3)


def _spread(node: TfliteNode, name: str, image: tuple[int, ...], steps: tuple[int, int]) -> str:
    """Return an image with zeros between its pixels."""
    images, height, width, channels = image
    down, across = steps
    wish = f"{node.wish}.spread"
    name = reshaped(node, (images, height, 1, width, 1, channels), name, f"{wish}.pixels")
    after = (0, 0, down - 1, 0, across - 1, 0)
    name = node.emit("pad", [name], f"{wish}.zeros", before=(0,) * 6, after=after, value=0.0)
    name = reshaped(node, (images, height * down, width * across, channels), name, f"{wish}.whole")
    stops = (images, (height - 1) * down + 1, (width - 1) * across + 1, channels)
    return node.emit("slice", [name], wish, starts=(0,) * 4, stops=stops, steps=(1,) * 4)


def l2_normalisation(node: TfliteNode) -> str:
    """Map L2_NORMALIZATION: the last axis over the root of its squares, which is 1e-6 at least."""
    x, wish = node.real(0), node.wish
    square = node.emit("table", [x], f"{wish}.square", functions=("square",), parameters=())
    last = len(node.shape(0)) - 1
    total = node.emit("reduce", [square], f"{wish}.sum", axes=(last,), keep=True, function="sum")
    root = node.emit("table", [total], f"{wish}.root", functions=("sqrt",), parameters=())
    least = node.build.constant(np.array(1e-6, np.float32), f"{wish}.least")
    norm = node.emit("max", [root, least], f"{wish}.norm")
    return node.fused(node.emit("div", [x, norm], node.before(0)), 0)


def zeros_like(node: TfliteNode) -> str:
    """Map ZEROS_LIKE: a constant."""
    element = node.build.type(node.real(0)).element
    return node.build.constant(np.zeros(node.shape(0), element.dtype), node.wish)


def filled(node: TfliteNode) -> str:
    """Map FILL: one value of a shape."""
    return node.emit("expand", [node.real(1)], shape=node.ints(0, "shape"))


def rank(node: TfliteNode) -> str:
    """Map RANK: a constant."""
    kind = np.int64 if node.output().element == Element.I64 else np.int32
    return node.build.constant(np.array(len(node.shape(0)), kind), node.wish)


HANDLERS: dict[str, Handler] = {
    "MIRROR_PAD": mirror_pad,
    "RESIZE_NEAREST_NEIGHBOR": resize_nearest,
    "RESIZE_BILINEAR": resize_bilinear,
    "SPACE_TO_BATCH_ND": space_to_batch,
    "BATCH_TO_SPACE_ND": batch_to_space,
    "TRANSPOSE_CONV": transpose_conv,
    "L2_NORMALIZATION": l2_normalisation,
    "ZEROS_LIKE": zeros_like,
    "FILL": filled,
    "RANK": rank,
}
