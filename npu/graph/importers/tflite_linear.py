# SPDX-License-Identifier: Apache-2.0
"""TFLite products, convolutions and windows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Element, Quantisation, TensorType
from npu.graph.importers.tflite_reader import QUANTISED, Handler, TfliteNode

_SAME = 0


def edges(size: int, window: int, stride: int, padding: int) -> tuple[int, int]:
    """Return the padding in front and behind that TFLite puts along an axis."""
    if padding != _SAME:
        return 0, 0
    whole = max((math.ceil(size / stride) - 1) * stride + window - size, 0)
    return whole // 2, whole - whole // 2


def weights(
    node: TfliteNode,
    index: int,
    order: tuple[int, ...],
    shape: tuple[int, ...] = (),
    flip: tuple[int, ...] = (),
) -> str:
    """Return weights as floats, axes in another order; integers are moved before that.

    Args:
        node: whose input they are.
        index: of the input.
        order: of the axes.
        shape: instead of an order, one of as many elements with the same last axis.
        flip: axes of the file that are turned round.
    """
    build, name = node.build, node.name(index)
    value, tensor = build.value(name), node.input(index)
    if value is None or tensor.quantisation is None or tensor.element not in QUANTISED:
        real = node.real(index)
        if flip:
            if value is None:
                raise node.error("weights are computed, allowed a constant")
            real = build.constant(np.flip(value, flip).astype(np.float32), f"{name}.turned")
        real = build.transpose(real, order, node.source)
        return build.reshape(real, shape, node.source) if shape else real
    quantisation = _moved(tensor.quantisation, order, value, shape)
    turned: Array = np.flip(value, flip).transpose(order)
    turned = turned.reshape(shape) if shape else turned
    moved = build.constant(turned, f"{name}.moved", quantisation)
    return build.dequantise(moved, node.source)


def _moved(
    given: Quantisation, order: tuple[int, ...], value: Array, shape: tuple[int, ...]
) -> Quantisation:
    if given.axis is None:
        return given
    axis = order.index(given.axis)
    return replace(given, axis=len(shape) - 1 if shape and axis == value.ndim - 1 else axis)


def bias(node: TfliteNode, index: int, scale_of: int, image: int = 0) -> list[str]:
    """Return a list of the bias as floats, an empty one without bias.

    Integers that do not say what they stand for stand for units of input times weights.
    """
    if not node.given(index):
        return []
    tensor, name = node.input(index), node.name(index)
    if len(node.shape(index)) != 1:
        raise node.error(f"bias of shape {list(node.shape(index))}, allowed one axis")
    if tensor.element in (Element.I32, Element.I64):
        unit = tensor.quantisation
        if unit is None:
            x, w = node.input(image).quantisation, node.input(scale_of).quantisation
            if x is None or w is None:
                raise node.error("bias of integers without scale")
            scales = tuple(x.scales[0] * one for one in w.scales)
            unit = Quantisation(scales, 0, 0 if len(scales) > 1 else None)
        return [node.build.dequantise(_narrow(node, name), node.source, unit)]
    return [node.real(index)]


def _narrow(node: TfliteNode, name: str) -> str:
    """Return a bias of int64 as int32."""
    value = node.build.value(name)
    if node.build.type(name).element == Element.I32:
        return name
    if value is None or np.any(np.abs(value) >= 1 << 31):
        raise node.error("bias of int64, allowed constants that fit int32")
    return node.build.constant(
        value.astype(np.int32), f"{name}.int32", node.build.type(name).quantisation
    )


def conv(node: TfliteNode) -> str:
    """Map CONV_2D: filters OHWI."""
    filters = node.shape(1)
    if len(filters) != 4 or len(node.shape(0)) != 4:
        raise node.error(f"image {list(node.shape(0))}, filter {list(filters)}, allowed rank 4")
    if not filters[3] or node.shape(0)[3] % filters[3]:
        raise node.error(
            f"{node.shape(0)[3]} channels, filter {list(filters)}, allowed a multiple of the "
            "filter's last axis"
        )
    w = weights(node, 1, (1, 2, 3, 0))
    return _conv(node, w, node.shape(0)[3] // filters[3], (4, 5), 3)


def depthwise(node: TfliteNode) -> str:
    """Map DEPTHWISE_CONV_2D: filters (1, KH, KW, C * multiplier)."""
    filters = node.shape(1)
    if len(filters) != 4 or filters[0] != 1 or len(node.shape(0)) != 4:
        raise node.error(
            f"image {list(node.shape(0))}, filter {list(filters)}, allowed rank 4 and a filter "
            "whose first axis is 1"
        )
    w = weights(node, 1, (0, 1, 2, 3), (filters[1], filters[2], 1, filters[3]))
    return _conv(node, w, node.shape(0)[3], (5, 6), 4)


def _conv(node: TfliteNode, w: str, groups: int, dilation: tuple[int, int], fused: int) -> str:
    image, (height, width, *_) = node.shape(0), node.build.shape(w)
    padding, strides = _steps(node)
    across, down = (node.option(field, "i", 1) for field in dilation)
    if min(across, down) < 1:
        raise node.error(f"dilations {[down, across]}, allowed from 1")
    top, bottom = edges(image[1], (height - 1) * down + 1, strides[0], padding)
    left, right = edges(image[2], (width - 1) * across + 1, strides[1], padding)
    made = node.emit(
        "conv", [node.real(0), w, *bias(node, 2, 1)], node.before(fused),
        strides=strides, pads=(top, left, bottom, right), dilations=(down, across), groups=groups,
    )  # fmt: skip
    return node.fused(made, fused)


def _steps(node: TfliteNode) -> tuple[int, tuple[int, int]]:
    """Return the padding and the strides of an operator with windows."""
    padding, across, down = node.option(0, "b"), node.option(1), node.option(2)
    if padding not in (0, 1) or min(across, down) < 1:
        raise node.error(
            f"padding {padding}, strides {[down, across]}, allowed 0 (SAME) or 1 (VALID) and "
            "strides from 1"
        )
    return padding, (down, across)


def pool(kind: str, *, squared: bool = False) -> Handler:
    """Make the mapping of a pool, of the squares on request, whose root it gives."""

    def mapped(node: TfliteNode) -> str:
        image = node.shape(0)
        if len(image) != 4:
            raise node.error(f"image {list(image)}, allowed rank 4")
        padding, strides = _steps(node)
        window = node.option(4), node.option(3)
        if min(window) < 1:
            raise node.error(f"window {list(window)}, allowed from 1")
        top, bottom = edges(image[1], window[0], strides[0], padding)
        left, right = edges(image[2], window[1], strides[1], padding)
        x, wish = node.real(0), node.before(5)
        if squared:
            wish = f"{node.wish}.mean"
            x = node.emit("table", [x], f"{wish}.of", functions=("square",), parameters=())
        made = node.emit(
            kind, [x], wish,
            window=window, strides=strides, pads=(top, left, bottom, right),
            **({"dilations": (1, 1)} if kind == "maxpool" else {"count_pads": False}),
        )  # fmt: skip
        if squared:
            made = node.emit("table", [made], node.before(5), functions=("sqrt",), parameters=())
        return node.fused(made, 5)

    return mapped


def fully_connected(node: TfliteNode) -> str:
    """Map FULLY_CONNECTED: weights (N, K), rows flattened unless dimensions are kept."""
    w = node.shape(1)
    if len(w) != 2:
        raise node.error(f"weights {list(w)}, allowed rank 2")
    if node.option(1, "b"):
        raise node.error("shuffled weights, allowed weights in their order")
    x = node.real(0)
    shape = node.shape(0)
    if not node.option(2, "b") or not shape:
        if not w[1] or math.prod(shape) % w[1]:
            raise node.error(f"input {list(shape)}, weights {list(w)}, allowed rows of {w[1]}")
        x = node.build.reshape(x, (math.prod(shape) // w[1], w[1]), node.source)
    if len(node.build.shape(x)) < 2:
        row = node.build.reshape(x, (1, *node.build.shape(x)), node.source)
        made = _product(node, row)
        return node.build.reshape(made, (w[0],), node.source, node.wish)
    return _product(node, x)


def _product(node: TfliteNode, x: str) -> str:
    # Constant weights lie as (K, N), as everywhere else in a graph.
    constant = node.build.value(node.name(1)) is not None
    w = weights(node, 1, (1, 0)) if constant else node.real(1)
    made = node.emit(
        "matmul", [x, w, *bias(node, 2, 1)], node.before(0),
        transpose_a=False, transpose_b=not constant,
    )  # fmt: skip
    return node.fused(made, 0)


def batch_matmul(node: TfliteNode) -> str:
    """Map BATCH_MATMUL."""
    if min(len(node.shape(0)), len(node.shape(1))) < 2:
        raise node.error(f"{list(node.shape(0))} and {list(node.shape(1))}, allowed rank 2 or more")
    return node.emit(
        "matmul", [node.real(0), node.real(1)],
        transpose_a=bool(node.option(0, "b")), transpose_b=bool(node.option(1, "b")),
    )  # fmt: skip


def axes_of(node: TfliteNode, index: int) -> tuple[int, ...]:
    """Return the axes that an input names, each once, in order."""
    rank = len(node.shape(0))
    return tuple(sorted({node.axis(one, rank) for one in node.ints(index, "axes")}))


def mean(node: TfliteNode) -> str:
    """Map MEAN."""
    return node.emit("mean", [node.real(0)], axes=axes_of(node, 1), keep=bool(node.option(0, "b")))


def reduction(function: str) -> Handler:
    """Make the mapping of a reduction."""

    def mapped(node: TfliteNode) -> str:
        return node.emit(
            "reduce", [node.real(0)],
            axes=axes_of(node, 1), keep=bool(node.option(0, "b")), function=function,
        )  # fmt: skip

    return mapped


def argmax(node: TfliteNode) -> str:
    """Map ARG_MAX."""
    (axis,) = node.ints(1, "axis")[:1] or (0,)
    shape = node.shape(0)
    axis = node.axis(axis, len(shape))
    kept = (*shape[:axis], *shape[axis + 1 :])
    found = TensorType(kept, Element.I32)
    return node.emit("argmax", [node.real(0)], result=found, axis=axis, keep=False)


def softmax(node: TfliteNode) -> str:
    """Map SOFTMAX over the last axis, its input times beta."""
    x, beta = node.real(0), node.option_real(0)
    if not np.isfinite(beta):
        raise node.error(f"beta {beta}, allowed finite numbers")
    if beta != 1.0:
        x = node.emit("table", [x], f"{node.wish}.scaled", functions=("scale",), parameters=(beta,))
    return node.emit("softmax", [x], axis=len(node.shape(0)) - 1)


def log_softmax(node: TfliteNode) -> str:
    """Map LOG_SOFTMAX."""
    y = node.emit("softmax", [node.real(0)], f"{node.wish}.exp", axis=len(node.shape(0)) - 1)
    return node.emit("table", [y], functions=("log",), parameters=())


HANDLERS: dict[str, Handler] = {
    "CONV_2D": conv,
    "DEPTHWISE_CONV_2D": depthwise,
    "FULLY_CONNECTED": fully_connected,
    "BATCH_MATMUL": batch_matmul,
    "AVERAGE_POOL_2D": pool("avgpool"),
    "MAX_POOL_2D": pool("maxpool"),
    "L2_POOL_2D": pool("avgpool", squared=True),
    "MEAN": mean,
    "SUM": reduction("sum"),
    "REDUCE_MAX": reduction("max"),
    "REDUCE_MIN": reduction("min"),
    "REDUCE_PROD": reduction("prod"),
    "REDUCE_ANY": reduction("max"),
    "REDUCE_ALL": reduction("min"),
    "ARG_MAX": argmax,
    "SOFTMAX": softmax,
    "LOG_SOFTMAX": log_softmax,
}
