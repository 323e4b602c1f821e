# SPDX-License-Identifier: Apache-2.0
"""Pools of ONNX."""

from __future__ import annotations

import math

import numpy as np

from npu.graph.form import Element, Quantisation
from npu.graph.importers.onnx_images import ImageWindow, from_image, geometry, to_image
from npu.graph.importers.onnx_node import Node, mapped
from npu.graph.importers.unmapped import UnmappedError


def _window(node: Node, x: str) -> ImageWindow:
    """Return the window of a pool over one or two dimensions."""
    shape = node.shape(x)
    if len(shape) not in (3, 4):
        raise UnmappedError(f"pools over tensors of rank {len(shape)} are not mapped, only 3 and 4")
    return geometry(node, tuple(node.attributes.get("kernel_shape", ())), shape[2:])


@mapped("MaxPool")
def _maxpool(node: Node) -> None:
    x = node.input(0)
    if node.wants(1):
        raise UnmappedError("a maximum with its indices is not mapped")
    window = _window(node, x)
    if node.type(x).element in (Element.I8, Element.U8):
        # Integers that stand for themselves: tagged so, the chip's pool of bytes does it.
        node.build.scale_input(x, Quantisation((1.0,)))
    y = node.add(
        "maxpool",
        [to_image(node, x)],
        window=window.size,
        strides=window.strides,
        pads=window.reach,
        dilations=window.dilations,
    )
    node.give(from_image(node, y, len(node.shape(x))))


@mapped("GlobalMaxPool")
def _global_maxpool(node: Node) -> None:
    x = node.input(0)
    rank = len(node.shape(x))
    if rank not in (3, 4):
        raise UnmappedError(f"pools over tensors of rank {rank} are not mapped, only 3 and 4")
    image = to_image(node, x)
    y = node.add(
        "maxpool",
        [image],
        window=node.shape(image)[1:3],
        strides=(1, 1),
        pads=(0,) * 4,
        dilations=(1, 1),
    )
    node.give(from_image(node, y, rank))


@mapped("AveragePool")
def _avgpool(node: Node) -> None:
    x = node.input(0)
    node.floats(x)
    window = _window(node, x)
    count = bool(node.attributes.get("count_include_pad", 0)) and any(window.pads)
    image = to_image(node, x)
    if window.dilations != (1, 1):
        y = _dilated(node, image, window, count)
    else:
        pads = window.reach
        if count and any(window.beyond):
            # What lies beyond the pads never counts: let the pads be part of the image.
            top, left, bottom, right = window.pads
            image = node.add(
                "pad",
                [image],
                "pad",
                before=(0, top, left, 0),
                after=(0, bottom, right, 0),
                value=0.0,
            )
            pads, count = (0, 0, *window.beyond), False
        y = node.add(
            "avgpool",
            [image],
            window=window.size,
            strides=window.strides,
            pads=pads,
            count_pads=count,
        )
    node.give(from_image(node, y, len(node.shape(x))))


def _dilated(node: Node, image: str, window: ImageWindow, count: bool) -> str:
    """Add a mean with gaps as a depthwise convolution with equal weights."""
    if any(window.beyond) or (any(window.pads) and not count):
        raise UnmappedError("a mean with gaps whose windows leave the image is not mapped")
    channels = node.shape(image)[3]
    weight = np.full(
        (*window.size, 1, channels),
        1.0 / math.prod(window.size),
        node.type(image).element.dtype,
    )
    return node.add(
        "conv",
        [image, node.constant(weight, f"{node.name}.weight")],
        strides=window.strides,
        pads=window.pads,
        dilations=window.dilations,
        groups=channels,
    )


@mapped("GlobalAveragePool")
def _global_avgpool(node: Node) -> None:
    x = node.input(0)
    node.floats(x)
    rank = len(node.shape(x))
    if rank not in (3, 4):
        node.give(node.add("mean", [x], axes=tuple(range(2, rank)), keep=True))
        return
    y = node.add("mean", [to_image(node, x)], axes=(1, 2), keep=True)
    node.give(from_image(node, y, rank))
