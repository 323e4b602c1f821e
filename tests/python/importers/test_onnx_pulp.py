# SPDX-License-Identifier: Apache-2.0
"""Networks of PULP's tools, integers in tensors of floats: exact, and without samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from golden.graph import run
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, GraphError
from npu.graph.importers import read
from npu.graph.operations.linear import convolve
from npu.graph.prepare import prepare
from tests.needs import needs

needs("graphs")

import onnx
from onnx import helper, numpy_helper

DIV = 1 << 14


def rescaled(sums: Array, mul: Array, add: Array, signed: bool, levels: int = 256) -> Array:
    """Return clip(floor((sums * mul + add) / div + 1/2)), in 64 bits."""
    low = -levels // 2 if signed else 0
    found = (2 * (sums.astype(np.int64) * mul + add) + DIV) // (2 * DIV)
    return np.clip(found, low, low + levels - 1)


def convolved(x: Array, w: Array, pad: int, groups: int) -> Array:
    """Return the sums of a convolution of images with channels in front."""
    images, filters = (one.astype(np.float64) for one in (x, w))
    pads = (pad,) * 4
    found = convolve(
        images.transpose(0, 2, 3, 1), filters.transpose(2, 3, 1, 0), (1, 1), pads, (1, 1), groups
    )
    return np.rint(found).transpose(0, 3, 1, 2).astype(np.int64)


class PulpNet:
    """A network under construction: its values are integers beside the nodes."""

    def __init__(self, x: Array, domain: str = "PACTOps", seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.domain, self.x = domain, x
        self.nodes: list[Any] = []
        self.weights: dict[str, Array] = {}

    def held(self, value: Array) -> str:
        """Add a constant in floats; return its name."""
        self.weights[f"c{len(self.weights)}"] = np.asarray(value, np.float32)
        return list(self.weights)[-1]

    def node(self, operator: str, inputs: list[str], **attributes: Any) -> str:  # noqa: ANN401
        """Add a node of one result; return its name."""
        domain = self.domain if operator == "RequantShift" else ""
        name = f"t{len(self.nodes)}"
        made = helper.make_node(operator, inputs, [name], name, domain=domain, **attributes)
        self.nodes.append(made)
        return name

    def rescale(
        self, x: str, sums: Array, shape: tuple[int, ...], signed: bool, levels: int = 256
    ) -> tuple[str, Array]:
        """Add a RequantShift that uses all of its range; return name and integers."""
        most = max(1, int(np.abs(sums).max()))
        top = max(2, levels * DIV // most)
        mul = self.random.integers(top // 2, top, shape)
        add = self.random.integers(-DIV, DIV, shape)
        said = {"div": DIV, "n_levels_out": levels, "signed": int(signed)}
        tensors = {
            key: numpy_helper.from_array(np.array([value], np.float32))
            for key, value in said.items()
        }
        name = self.node("RequantShift", [x, self.held(mul), self.held(add)], **tensors)
        return name, rescaled(sums, mul, add, signed, levels)

    def model(self, y: str) -> Any:  # noqa: ANN401
        """Return the model."""
        graph = helper.make_graph(
            self.nodes,
            "net",
            [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, self.x.shape)],
            [helper.make_tensor_value_info(y, onnx.TensorProto.FLOAT, ())],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()],
        )
        sets = [helper.make_opsetid("", 10)]
        if self.domain:
            sets.append(helper.make_opsetid(self.domain, 1))
        return helper.make_model(graph, opset_imports=sets, ir_version=8)

    def check(self, y: str, wanted: Array, products: int) -> None:
        """Compare the graph as it is read, and as the chip computes it, with the integers."""
        graph = read(self.model(y))
        np.testing.assert_array_equal(evaluate(graph, {"x": self.x})[y], wanted)
        prepared = prepare(graph)
        np.testing.assert_array_equal(run(prepared, {"x": self.x})[y], wanted)
        kinds = [one.kind for one in prepared.operations if one.on_chip]
        assert sum(kind in ("conv", "matmul") for kind in kinds) == products


def bytes_of(shape: tuple[int, ...], unsigned: bool, seed: int = 1) -> Array:
    """Return bytes as floats, the ends of their range among them."""
    low, high = (0, 255) if unsigned else (-128, 127)
    found = np.random.default_rng(seed).integers(low, high + 1, shape)
    found.reshape(-1)[:2] = low, high
    return found.astype(np.float32)


@pytest.mark.parametrize("domain", ["PACTOps", ""])
@pytest.mark.parametrize("unsigned", [False, True])
@pytest.mark.parametrize("groups", [1, 4])
def test_a_classifier_of_images(groups: int, unsigned: bool, domain: str) -> None:
    """Nothing says whether an input is signed: it is multiplied in two parts."""
    net = PulpNet(bytes_of((1, 4, 7, 6), unsigned), domain)
    w = net.random.integers(-128, 128, (8, 4 // groups, 3, 3))
    y = net.node("Conv", ["x", net.held(w)], pads=[1] * 4, group=groups)
    y, value = net.rescale(y, convolved(net.x, w, 1, groups), (1, 8, 1, 1), False)
    w = net.random.integers(-8, 8, (8, 1, 3, 3))
    y = net.node("Conv", [y, net.held(w)], kernel_shape=[3, 3], group=8)
    y, value = net.rescale(y, convolved(value, w, 0, 8), (8, 1, 1), True)
    y = net.node("Add", [y, net.node("Relu", [y])])
    y, value = net.rescale(y, value + np.maximum(value, 0), (1,), True)
    y, value = net.node("Flatten", [y]), value.reshape(1, -1)
    w, b = net.random.integers(-128, 128, (5, value.shape[1])), net.random.integers(-999, 999, 5)
    y = net.node("Gemm", [y, net.held(w), net.held(b)], transB=1)
    y, value = net.rescale(y, value @ w.T + b, (5,), True)
    net.check(y, value, 4)


def test_sums_beyond_what_float32_counts() -> None:
    """2,000 products of bytes and a bias: neither sums nor numerators are rounded."""
    net = PulpNet(bytes_of((3, 2000), True))
    w = np.abs(net.random.integers(-128, 128, (2000, 6)))
    b = net.random.integers(1 << 24, 1 << 25, 6)
    y = net.node("Gemm", ["x", net.held(w), net.held(b // 2 * 2)])
    sums = net.x.astype(np.int64) @ w + b // 2 * 2
    assert sums.min() > 1 << 24
    y, value = net.rescale(y, sums, (6,), False)
    net.check(y, value, 2)


def test_whole_factors_of_a_product_are_exact() -> None:
    """Those that are not leave it to real numbers."""
    net = PulpNet(bytes_of((3, 20), True))
    w, b = net.random.integers(-128, 128, (20, 6)), net.random.integers(-999, 999, 6)
    y = net.node("Gemm", ["x", net.held(w), net.held(b)], alpha=3.0, beta=-2.0)
    y, value = net.rescale(y, 3 * (net.x.astype(np.int64) @ w) - 2 * b, (6,), True)
    net.check(y, value, 2)


@pytest.mark.parametrize("levels", [4, 16, 256])
def test_convolutions_along_time(levels: int) -> None:
    """One channel at a time; fewer levels than a byte has are bytes too."""
    net = PulpNet(bytes_of((1, 4, 16), False))
    y, value = net.rescale("x", net.x, (1, 4, 1), True, levels)
    assert value.min() == -levels // 2 and value.max() == levels // 2 - 1
    w = net.random.integers(-128, 128, (4, 1, 5))
    y = net.node("Conv", [y, net.held(w)], kernel_shape=[5], group=4, pads=[2, 2])
    y, value = net.rescale(y, _along(value, w), (1, 4, 1), True)
    net.check(y, value, 1)


def _along(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (0, 0), (2, 2)))
    taps = [padded[:, :, tap : tap + x.shape[2]] * w[:, 0, tap, None] for tap in range(5)]
    found: Array = np.sum(taps, 0)
    return found


def test_products_of_sums() -> None:
    """A sum of two bytes is no byte, but again two of them."""
    net = PulpNet(bytes_of((3, 40), False))
    y, value = net.rescale("x", net.x, (40,), True)
    y, value = net.node("Add", [y, y]), 2 * value
    w = net.random.integers(-128, 128, (40, 6))
    y, value = net.rescale(net.node("MatMul", [y, net.held(w)]), value @ w, (6,), True)
    net.check(y, value, 2)


def test_products_of_two_activations() -> None:
    """As attention has them."""
    net = PulpNet(bytes_of((1, 6, 16), False))
    w = net.random.integers(-128, 128, (16, 16))
    y = net.node("MatMul", ["x", net.held(w)])
    y, value = net.rescale(y, net.x.astype(np.int64) @ w, (1,), True)
    turned = net.node("Transpose", [y], perm=[0, 2, 1])
    scores = net.node("MatMul", [y, turned])
    y, value = net.rescale(scores, value @ value.transpose(0, 2, 1), (1,), True)
    net.check(y, value, 3)


def test_rescaled_sums_of_reals_stay_reals() -> None:
    """A mean is no integer that could be counted in 64 bits."""
    net = PulpNet(bytes_of((1, 4, 8), False))
    y = net.node("AveragePool", ["x"], kernel_shape=[2])
    means = (net.x[:, :, :-1] + net.x[:, :, 1:]) / 2
    name, _ = net.rescale(y, means, (1,), True)
    mul, add = list(net.weights.values())
    wanted = np.floor((means.astype(np.float64) * mul + add) / DIV + 0.5)
    found = evaluate(read(net.model(name)), {"x": net.x})[name]
    np.testing.assert_array_equal(found, np.clip(wanted, -128, 127))


def test_weights_that_are_no_bytes_stay_as_they_are() -> None:
    """The product is one of floats, its rescaling exact."""
    net = PulpNet(bytes_of((3, 8), False))
    w = net.random.integers(-500, 500, (8, 6))
    y = net.node("MatMul", ["x", net.held(w)])
    y, value = net.rescale(y, net.x.astype(np.int64) @ w, (6,), True)
    np.testing.assert_array_equal(evaluate(read(net.model(y)), {"x": net.x})[y], value)


@pytest.mark.parametrize("name", ["iGELU", "iLayerNorm", "iRMSNorm", "ITAMax", "RequantizedAdd"])
@pytest.mark.parametrize("domain", ["PACTOps", ""])
def test_other_operators_of_these_tools_are_refused_by_name(domain: str, name: str) -> None:
    """In a line."""
    net = PulpNet(bytes_of((3, 8), False), domain)
    net.rescale("x", net.x, (1,), True)
    net.nodes.append(helper.make_node(name, ["t0"], ["y"], "it", domain=domain))
    with pytest.raises(GraphError, match=rf"operation 'it' \({name}\): no operator of") as error:
        read(net.model("y"))
    assert "\n" not in str(error.value)
