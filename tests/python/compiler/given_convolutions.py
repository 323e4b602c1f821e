# SPDX-License-Identifier: Apache-2.0
"""Convolutions of given integers: networks of one operation, and inputs of the whole range."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from npu.graph.form import (
    Array,
    Element,
    Graph,
    Operation,
    OperationPlace,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)
from spec.isa.operands import Limits

SAME = (1, 1, 1, 1)


@dataclass(frozen=True)
class GivenConvolution:
    """A convolution with random integers, depthwise unless it has filters.

    Attributes:
        shape: of the images.
        kernel, strides, pads, dilations: as the operation has them.
        relu, combine: what follows the sums.
        zeros: zero points of images and weights.
        element: of the images; results are int8, or int16 of int16.
        largest: of the weights.
        limits: of the chip.
        filters: over all channels; 0 for one to each channel.
    """

    shape: tuple[int, int, int, int]
    kernel: tuple[int, int] = (3, 3)
    strides: tuple[int, int] = (1, 1)
    pads: tuple[int, int, int, int] = SAME
    dilations: tuple[int, int] = (1, 1)
    relu: bool = False
    combine: str = ""
    zeros: tuple[int, int] = (0, 0)
    element: Element = Element.I8
    largest: int = 127
    limits: Limits = field(default_factory=Limits)
    filters: int = 0

    @property
    def out(self) -> tuple[int, int, int, int]:
        """Shape of the result."""
        images, height, width, channels = self.shape
        (top, left, bottom, right), (down, across) = self.pads, self.dilations
        rows = height + top + bottom - (self.kernel[0] - 1) * down - 1
        columns = width + left + right - (self.kernel[1] - 1) * across - 1
        shape = rows // self.strides[0] + 1, columns // self.strides[1] + 1
        return images, *shape, self.filters or channels

    def graph(self) -> Graph:
        """Return a network of nothing else."""
        channels, filters = self.shape[3], self.out[3]
        groups = 1 if self.filters else channels
        random = np.random.default_rng(1)
        inputs = {"x": TensorType(self.shape, self.element, Quantisation((1.0,), self.zeros[0]))}
        out = Element.I16 if self.element == Element.I16 else Element.I8
        result = TensorType(self.out, out, Quantisation((1.0,)))
        if self.combine:
            inputs["d"] = result
        shape = (*self.kernel, channels // groups, filters)
        weight = random.integers(-self.largest, self.largest + 1, shape, np.int8)
        kind = TensorType(shape, Element.I8, Quantisation((1.0,)))
        multiplied = self.combine == "mul"
        one = Operation(
            "dw",
            "conv",
            ("x", "w", *(["d"] if self.combine else [])),
            ("y",),
            {
                "strides": self.strides,
                "pads": self.pads,
                "dilations": self.dilations,
                "groups": groups,
                "relu": self.relu,
                "combine": self.combine,
                "product_mult": 1 << 14 if multiplied else 0,
                "product_shift": 20 if multiplied else 0,
                "pad_value": self.zeros[0],
                "x_zero": self.zeros[0],
                "w_zero": self.zeros[1],
            },
            place=OperationPlace(Target.NPU, "given"),
            integers={
                "bias": random.integers(-(1 << 12), 1 << 12, filters).astype(np.int32),
                "mult": random.integers(1 << 14, 1 << 15, filters).astype(np.uint16),
                "shift": random.integers(22, 25, filters).astype(np.uint8),
            },
        )
        tensors = {name: Tensor(name, kind, None) for name, kind in inputs.items()}
        tensors |= {"w": Tensor("w", kind, weight), "y": Tensor("y", result, None)}
        return Graph("convolution", tuple(inputs), ("y",), tensors, (one,))


def integers(graph: Graph) -> dict[str, Array]:
    """Return inputs over the whole range of their types."""
    random, found = np.random.default_rng(2), {}
    for name in graph.inputs:
        kind = graph.type(name)
        edge = np.iinfo(kind.element.dtype)
        found[name] = random.integers(edge.min, edge.max + 1, kind.shape).astype(edge.dtype)
    return found
