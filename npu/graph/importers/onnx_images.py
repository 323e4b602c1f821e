# SPDX-License-Identifier: Apache-2.0
"""Images of ONNX, channels first, as images of the graph, channels last; windows over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from npu.graph.form import GraphError
from npu.graph.importers.onnx_node import Node


@dataclass(frozen=True)
class ImageWindow:
    """Where windows lie on a two-dimensional image, first vertical, then horizontal.

    Attributes:
        size, strides, dilations: two numbers each.
        pads: top, left, bottom, right as given.
        beyond: how much further down and right the last windows reach, with `ceil_mode`.
    """

    size: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    beyond: tuple[int, int]

    @property
    def reach(self) -> tuple[int, ...]:
        """The pads with what lies beyond."""
        top, left, bottom, right = self.pads
        return (top, left, bottom + self.beyond[0], right + self.beyond[1])


def geometry(node: Node, size: Sequence[int], image: Sequence[int]) -> ImageWindow:
    """Read window, strides, pads and dilations of one or two dimensions.

    Args:
        node: with the attributes of a convolution or pool.
        size: of the window.
        image: spatial shape.

    Raises:
        GraphError: lists of the wrong length, or an unknown `auto_pad`.
    """
    rank = len(image)
    if not 1 <= rank <= 2 or len(size) != rank:
        raise GraphError(f"window {list(size)} over an image of shape {list(image)}")
    strides = _listed(node, "strides", rank)
    dilations = _listed(node, "dilations", rank)
    reach = [(one - 1) * step + 1 for one, step in zip(size, dilations, strict=True)]
    before, after = _pads(node, reach, strides, image)
    beyond = [0] * rank
    if node.attributes.get("ceil_mode", 0):
        for axis in range(rank):
            beyond[axis] = _beyond(
                image[axis], reach[axis], strides[axis], before[axis], after[axis]
            )
    missing = 2 - rank
    return ImageWindow(
        (1,) * missing + tuple(size),
        (1,) * missing + strides,
        (0,) * missing + before + (0,) * missing + after,
        (1,) * missing + dilations,
        (0, beyond[0]) if rank == 1 else (beyond[0], beyond[1]),
    )


def _listed(node: Node, name: str, rank: int) -> tuple[int, ...]:
    found = tuple(int(one) for one in node.attributes.get(name, ())) or (1,) * rank
    if len(found) != rank or min(found) < 1:
        raise GraphError(f"{name} {list(found)}, allowed {rank} numbers from 1")
    return found


def _pads(
    node: Node, reach: Sequence[int], strides: Sequence[int], image: Sequence[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    rank = len(image)
    mode = node.attributes.get("auto_pad", b"NOTSET").decode()
    if mode == "NOTSET":
        pads = tuple(int(one) for one in node.attributes.get("pads", ())) or (0,) * (2 * rank)
        if len(pads) != 2 * rank or min(pads) < 0:
            raise GraphError(f"pads {list(pads)}, allowed {2 * rank} numbers from 0")
        return pads[:rank], pads[rank:]
    if mode == "VALID":
        return (0,) * rank, (0,) * rank
    if mode not in ("SAME_UPPER", "SAME_LOWER"):
        raise GraphError(f"auto_pad {mode!r}, allowed NOTSET, VALID, SAME_UPPER, SAME_LOWER")
    totals = [
        max(0, (-(-size // step) - 1) * step + one - size)
        for size, step, one in zip(image, strides, reach, strict=True)
    ]
    small, large = tuple(one // 2 for one in totals), tuple(one - one // 2 for one in totals)
    return (small, large) if mode == "SAME_UPPER" else (large, small)


def _beyond(size: int, reach: int, stride: int, before: int, after: int) -> int:
    """Return how far the last window of a rounded up number reaches behind the pads."""
    count = -(-(size + before + after - reach) // stride) + 1
    if (count - 1) * stride >= size + before:
        count -= 1
    return max(0, (count - 1) * stride + reach - size - before - after)


def to_image(node: Node, x: str) -> str:
    """Turn (N, C, W) or (N, C, H, W) into an image."""
    shape = node.shape(x)
    if len(shape) == 3:
        x = node.reshape(x, (*shape[:2], 1, shape[2]), "height")
    return node.transpose(x, (0, 2, 3, 1), "nhwc")


def from_image(node: Node, x: str, rank: int) -> str:
    """Turn an image back."""
    x = node.transpose(x, (0, 3, 1, 2), "nchw")
    shape = node.shape(x)
    return node.reshape(x, (*shape[:2], shape[3])) if rank == 3 else x
