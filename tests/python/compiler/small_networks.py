# SPDX-License-Identifier: Apache-2.0
"""Small networks as graphs: what the tests of the passes run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from npu.graph.build import Builder
from npu.graph.form import Array, Element, Graph, Quantisation, TensorType

SAME: Mapping[str, Any] = {
    "strides": (1, 1),
    "pads": (1, 1, 1, 1),
    "dilations": (1, 1),
    "groups": 1,
}
POINT: Mapping[str, Any] = {**SAME, "pads": (0, 0, 0, 0)}
PLAIN: Mapping[str, Any] = {"transpose_a": False, "transpose_b": False}


@dataclass
class Net:
    """A graph that grows, with seeded constants.

    Attributes:
        build: the graph so far.
        rng: where constants come from.
    """

    build: Builder
    rng: np.random.Generator

    def floats(self, *shape: int, scale: float = 1.0) -> str:
        """Add a constant of normal numbers."""
        data = self.rng.standard_normal(shape) * scale
        return self.build.constant(data.astype(np.float32))

    def input(self, name: str, *shape: int) -> str:
        """Add an input of real numbers."""
        return self.build.input(name, TensorType(shape))

    def conv(self, x: str, filters: int, kernel: int = 3, stride: int = 1, groups: int = 1) -> str:
        """Add a convolution that keeps the size of the image at stride 1."""
        channels, pad = self.build.shape(x)[3] // groups, kernel // 2
        scale = (2 / (kernel * kernel * channels)) ** 0.5
        weight = self.floats(kernel, kernel, channels, filters, scale=scale)
        return self.build.add(
            "conv",
            [x, weight, self.floats(filters, scale=0.1)],
            strides=(stride, stride),
            pads=(pad,) * 4,
            dilations=(1, 1),
            groups=groups,
        )

    def linear(self, x: str, columns: int) -> str:
        """Add a product with a constant matrix, and a bias."""
        depth = self.build.shape(x)[-1]
        weight = self.floats(depth, columns, scale=depth**-0.5)
        return self.build.add("matmul", [x, weight, self.floats(columns, scale=0.1)], **PLAIN)

    def table(self, x: str, name: str, *parameters: float) -> str:
        """Add a function of one variable."""
        return self.build.add("table", [x], functions=(name,), parameters=parameters)

    def norm(self, x: str) -> str:
        """Add a layer norm with gains of both signs."""
        width = self.build.shape(x)[-1]
        parts = [x, self.floats(width), self.floats(width, scale=0.2)]
        return self.build.add("layernorm", parts, axes=1, epsilon=1e-5)


def residual_images(net: Net) -> str:
    """Return a classifier with residual blocks of convolutions."""
    x = net.table(net.conv(net.input("x", 1, 12, 12, 3), 16), "relu")
    for _ in range(2):
        y = net.conv(net.table(net.conv(x, 16), "relu"), 16)
        x = net.table(net.build.add("add", [y, x]), "relu")
    x = net.build.add(
        "maxpool", [x], window=(2, 2), strides=(2, 2), pads=(0,) * 4, dilations=(1, 1)
    )
    return net.linear(net.build.add("mean", [x], axes=(1, 2), keep=False), 10)


def gated_images(net: Net) -> str:
    """Return depthwise convolutions with a gate per channel and a softmax."""
    x = net.build.add("clip", [net.conv(net.input("x", 1, 8, 8, 3), 16)], low=0.0, high=6.0)
    y = net.conv(net.build.add("clip", [net.conv(x, 16, groups=16)], low=0.0, high=6.0), 16, 1)
    x = net.build.add("add", [x, y])
    gate = net.build.add("mean", [x], axes=(1, 2), keep=True)
    x = net.build.add("mul", [x, net.table(net.conv(gate, 16, 1), "sigmoid")])
    x = net.build.add(
        "avgpool", [x], window=(3, 3), strides=(2, 2), pads=(1,) * 4, count_pads=False
    )
    shape = net.build.shape(x)
    x = net.build.add("reshape", [x], shape=(1, int(np.prod(shape))))
    return net.build.add("softmax", [net.linear(x, 6)], axis=1)


def transformer(net: Net) -> str:
    """Return two pre-norm blocks of causal attention and a final norm and product."""
    width, heads, rows = 32, 4, 8
    x = net.input("x", 1, rows, width)
    for _ in range(2):
        y = net.norm(x)
        q, k, v = (_heads(net, net.linear(y, width), heads) for _ in range(3))
        y = net.build.add(
            "attention",
            [q, k, v],
            scale=(width // heads) ** -0.5,
            causal=True,
            offset=0,
            window=0,
            softcap=0.0,
        )
        y = net.build.add("transpose", [y], order=(0, 2, 1, 3))
        y = net.build.add("reshape", [y], shape=(1, rows, width))
        x = net.build.add("add", [x, net.linear(y, width)])
        y = net.linear(net.table(net.linear(net.norm(x), 2 * width), "gelu"), width)
        x = net.build.add("add", [x, y])
    return net.linear(net.norm(x), 20)


def _heads(net: Net, x: str, heads: int) -> str:
    batch, rows, width = net.build.shape(x)
    x = net.build.add("reshape", [x], shape=(batch, rows, heads, width // heads))
    return net.build.add("transpose", [x], order=(0, 2, 1, 3))


def gated_rows(net: Net) -> str:
    """Return rope, a gate of silu and an rms norm."""
    x = net.input("x", 1, 6, 32)
    angles = np.outer(np.arange(6), 100.0 ** (-np.arange(4) / 4))
    cos, sin = (
        net.build.constant(part.astype(np.float32)) for part in (np.cos(angles), np.sin(angles))
    )
    y = net.build.add("reshape", [x], shape=(1, 6, 4, 8))
    y = net.build.add("rope", [y, cos, sin], interleaved=True, heads_axis=2)
    y = net.build.add("reshape", [y], shape=(1, 6, 32))
    y = net.build.add("mul", [net.table(net.linear(y, 32), "silu"), net.linear(y, 32)])
    return net.build.add("rmsnorm", [y, net.floats(32)], axes=1, epsilon=1e-6)


def pieces(net: Net) -> str:
    """Return slices, pads, comparisons and sums of tensors of different sizes."""
    x = net.input("x", 2, 7, 9, 5)
    y = net.build.add("slice", [x], starts=(0, 1, 0, 0), stops=(2, 6, 9, 5), steps=(1, 2, 2, 1))
    y = net.build.add("pad", [y], before=(0, 1, 0, 0), after=(0, 0, 1, 0), value=0.5)
    y = net.conv(y, 8)
    z = net.build.add("concat", [net.conv(y, 8, 1), y], axis=3)
    z = net.build.add("max", [z, net.floats(1, 1, 1, 16)])
    z = net.build.add("gather", [z, net.build.constant(np.array([1, 2, 0], np.int64))], axis=1)
    return net.build.add("sub", [net.conv(z, 8, 1), net.conv(z, 8)])


def other_axes(net: Net) -> str:
    """Return a softmax and means along axes that the chip does not have."""
    x = net.linear(net.input("x", 4, 6, 16), 16)
    y = net.build.add("softmax", [x], axis=1)
    z = net.build.add("mean", [x], axes=(2,), keep=True)
    z = net.build.add("sub", [x, z])
    return net.build.add("matmul", [y, z], transpose_a=True, transpose_b=False)


NETWORKS: Mapping[str, Callable[[Net], str]] = {
    one.__name__: one
    for one in (
        residual_images,
        gated_images,
        transformer,
        gated_rows,
        pieces,
        other_axes,
    )
}


def network(name: str, seed: int = 0) -> Graph:
    """Return a network by name."""
    return grown(NETWORKS[name], seed)


def grown(make: Callable[[Net], str], seed: int = 0) -> Graph:
    """Return the graph that a function makes."""
    net = Net(Builder(make.__name__), np.random.default_rng(seed))
    return net.build.finish([make(net)])


def samples(graph: Graph, seed: int = 0, count: int = 8) -> dict[str, Array]:
    """Return normal samples, first axis samples."""
    rng = np.random.default_rng(seed)
    return {
        name: rng.standard_normal((count, *graph.type(name).shape)).astype(np.float32)
        for name in graph.inputs
    }


def first(stacked: Mapping[str, Array]) -> dict[str, Array]:
    """Return the first of samples."""
    return {name: stack[0] for name, stack in stacked.items()}


def quantised_input(
    net: Net,
    name: str,
    shape: tuple[int, ...],
    scale: float,
    zero: int = 0,
    element: Element = Element.I8,
) -> str:
    """Add an input of integers and return the real numbers that they stand for."""
    kind = TensorType(shape, element, Quantisation((scale,), zero))
    return net.build.add("dequantise", [net.build.input(name, kind)])


def quantised(net: Net, x: str, scale: float, zero: int = 0, element: Element = Element.I8) -> str:
    """Add the integers of real numbers."""
    kind = TensorType(net.build.shape(x), element, Quantisation((scale,), zero))
    return net.build.add("quantise", [x], result=kind)


def integer_weights(
    net: Net,
    shape: tuple[int, ...],
    scales: tuple[float, ...],
    element: Element = Element.I8,
    zero: int = 0,
    low: int = -127,
    high: int = 127,
) -> str:
    """Add constant integers with a scale per index of the last axis, or one."""
    data = net.rng.integers(low, high + 1, shape).astype(element.dtype)
    axis = len(shape) - 1 if len(scales) > 1 else None
    name = net.build.constant(data, "w", Quantisation(scales, zero, axis))
    return net.build.add("dequantise", [name])


def integers(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Return an input over the whole range of each type."""
    rng = np.random.default_rng(seed)
    found = {}
    for name in graph.inputs:
        kind = graph.type(name)
        edge = np.iinfo(kind.element.dtype)
        found[name] = rng.integers(edge.min, edge.max + 1, kind.shape).astype(kind.element.dtype)
    return found
