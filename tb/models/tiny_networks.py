# SPDX-License-Identifier: Apache-2.0
"""The networks of MLPerf Tiny by their published shapes, with random weights and quantised."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from npu.graph.form import Graph
from npu.graph.importers import read
from npu.graph.prepare import prepare


class _Network:
    """An ONNX model that grows layer by layer behind its one input.

    Args:
        shape: of the input, (1, C, H, W) or (1, N).
    """

    def __init__(self, *shape: int) -> None:
        self._random = np.random.default_rng(1)
        self._nodes: list[Any] = []
        self._weights: list[Any] = []
        self._input = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        self.last, self.channels = "x", shape[1]

    def _add(self, kind: str, inputs: list[str], **attributes: Any) -> str:  # noqa: ANN401
        self.last = f"{kind.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [self.last], self.last, **attributes))
        return self.last

    def _weight(self, *shape: int, inputs: int) -> str:
        """Return the name of weights whose sums over so many inputs neither vanish nor explode."""
        name = f"w{len(self._weights)}"
        values = self._random.normal(0, np.sqrt(2 / inputs), shape).astype(np.float32)
        self._weights.append(numpy_helper.from_array(values, name))
        return name

    def conv(
        self,
        filters: int,
        *kernel: int,
        stride: int = 1,
        groups: int = 1,
        relu: bool = True,
        padded: bool = True,
    ) -> str:
        """Add a convolution with a bias; padded it keeps the size, or its share by the stride."""
        inner = self.channels // groups
        weight = self._weight(filters, inner, *kernel, inputs=inner * int(np.prod(kernel)))
        bias = self._weight(filters, inputs=800)
        pad = "SAME_UPPER" if padded else "VALID"
        same = {"auto_pad": pad, "strides": [stride, stride], "group": groups}
        self.channels = filters
        self._add("Conv", [self.last, weight, bias], kernel_shape=list(kernel), **same)
        return self._add("Relu", [self.last]) if relu else self.last

    def separable(self, filters: int, stride: int = 1) -> None:
        """Add a depthwise convolution of 3 by 3 and one of single pixels."""
        self.conv(self.channels, 3, 3, stride=stride, groups=self.channels)
        self.conv(filters, 1, 1)

    def residual(self, filters: int, stride: int) -> None:
        """Add two convolutions beside their input, which is convolved where its size changes."""
        before, channels = self.last, self.channels
        self.conv(filters, 3, 3, stride=stride)
        inner = self.conv(filters, 3, 3, relu=False)
        self.last, self.channels = before, channels
        if stride > 1:
            self.conv(filters, 1, 1, stride=stride, relu=False)
        self.channels = filters
        self._add("Add", [self.last, inner])
        self._add("Relu", [self.last])

    def dense(self, outputs: int, *, relu: bool = False) -> None:
        """Add a matrix with a bias."""
        weight = self._weight(self.channels, outputs, inputs=self.channels)
        self._add("Gemm", [self.last, weight, self._weight(outputs, inputs=800)])
        self.channels = outputs
        if relu:
            self._add("Relu", [self.last])

    def flatten(self) -> None:
        """Add a view of images of one pixel as rows."""
        self._add("Flatten", [self.last])

    def classify(self, classes: int) -> None:
        """Add the mean of all pixels and the probabilities of classes."""
        self._add("GlobalAveragePool", [self.last])
        self.flatten()
        self.dense(classes)
        self._add("Softmax", [self.last])

    def model(self) -> Any:  # noqa: ANN401
        """Return the model."""
        output = helper.make_tensor_value_info(self.last, TensorProto.FLOAT, (1, self.channels))
        graph = helper.make_graph(self._nodes, "tiny", [self._input], [output], self._weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _kws() -> _Network:
    net = _Network(1, 1, 49, 10)
    net.conv(64, 10, 4, stride=2)
    for _ in range(4):
        net.separable(64)
    net.classify(12)
    return net


def _ww() -> _Network:
    net = _Network(1, 40, 30, 1)
    for taps, filters in ((3, 128), (5, 128), (10, 128), (15, 32)):
        net.conv(net.channels, taps, 1, groups=net.channels, relu=False, padded=False)
        net.conv(filters, 1, 1)
    net.flatten()
    net.dense(3)
    return net


def _vww() -> _Network:
    net = _Network(1, 3, 96, 96)
    net.conv(8, 3, 3, stride=2)
    halved = {32, 64, 128, 256}
    for filters in (16, 32, 32, 64, 64, *[128] * 6, 256, 256):
        net.separable(filters, 2 if filters in halved and filters != net.channels else 1)
    net.classify(2)
    return net


def _ic() -> _Network:
    net = _Network(1, 3, 32, 32)
    net.conv(16, 3, 3)
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        net.residual(filters, stride)
    net.classify(10)
    return net


def _ad() -> _Network:
    net = _Network(1, 640)
    for outputs in (*[128] * 4, 8, *[128] * 4):
        net.dense(outputs, relu=True)
    net.dense(640)
    return net


TINY = {"kws": _kws, "ww": _ww, "vww": _vww, "ic": _ic, "ad": _ad}
"""Keywords, streaming wake word, visual wake words, image classification, anomaly detection."""


@cache
def tiny_network(name: str) -> Graph:
    """Return one of TINY with random weights, calibrated on one random input and fused."""
    model = TINY[name]().model()
    onnx.checker.check_model(model)
    return prepare(read(model), samples="random:1")
