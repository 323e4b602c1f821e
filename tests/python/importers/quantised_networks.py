# SPDX-License-Identifier: Apache-2.0
"""Small networks of many architectures, and what onnxruntime's quantiser makes of them."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

from npu.graph.form import Array

_KINDS = {
    "s8": QuantType.QInt8,
    "u8": QuantType.QUInt8,
    "s6": QuantType.QInt16,
    "u6": QuantType.QUInt16,
}
FORMATS = {"QOperator": QuantFormat.QOperator, "QDQ": QuantFormat.QDQ}


class QuantisedNet:
    """A network that grows; every call returns the name of a result."""

    def __init__(self, *shape: int, seed: int = 1) -> None:
        """Begin with the shape of the input x."""
        self.shape = shape
        self.nodes: list[Any] = []
        self.weights: dict[str, Array] = {}
        self.random = np.random.default_rng(seed)
        self.channels = shape[1] if len(shape) == 4 else shape[-1]

    def __call__(self, operator: str, *inputs: str, results: int = 1, **attributes: Any) -> Any:  # noqa: ANN401
        """Add an operator."""
        number = len(self.nodes)
        outputs = [f"t{number}_{index}" for index in range(results)]
        self.nodes.append(
            helper.make_node(operator, list(inputs), outputs, f"{operator}{number}", **attributes)
        )
        return outputs[0] if results == 1 else outputs

    def weight(self, *shape: int, fan: int = 0) -> str:
        """Add normal weights, their deviation one over the root of the fan-in."""
        fan = fan or int(np.prod(shape[1:]))
        return self.fixed(self.random.standard_normal(shape) / np.sqrt(fan))

    def fixed(self, data: Any, dtype: Any = np.float32) -> str:  # noqa: ANN401
        """Add a constant."""
        name = f"w{len(self.weights)}"
        self.weights[name] = np.asarray(data, dtype)
        return name

    def conv(self, x: str, wide: int, size: int = 3, group: int = 1, **more: Any) -> str:  # noqa: ANN401
        """Add a convolution that keeps the image's size."""
        w = self.weight(wide, self.channels // group, size, size)
        bias = self.fixed(self.random.standard_normal(wide) * 0.1)
        self.channels = wide
        pads = [size // 2] * 4
        name: str = self("Conv", x, w, bias, pads=pads, group=group, **more)
        return name

    def dense(self, x: str, inner: int, wide: int) -> str:
        """Add a linear layer of rows."""
        w, bias = self.weight(wide, inner), self.fixed(self.random.standard_normal(wide) * 0.1)
        name: str = self("Gemm", x, w, bias, transB=1)
        return name

    def product(self, x: str, inner: int, wide: int) -> str:
        """Add a product with a matrix."""
        name: str = self("MatMul", x, self.weight(inner, wide, fan=inner))
        return name

    def model(self, y: str) -> Any:  # noqa: ANN401
        """Return the model, y being its output."""
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)
        result = helper.make_tensor_value_info(y, TensorProto.FLOAT, None)
        graph = helper.make_graph(
            self.nodes,
            "net",
            [x],
            [result],
            [numpy_helper.from_array(value, name) for name, value in self.weights.items()],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return onnx.shape_inference.infer_shapes(made)


def _image() -> QuantisedNet:
    return QuantisedNet(1, 8, 8, 8)


def _chained(*steps: Callable[[QuantisedNet, str], str]) -> Any:  # noqa: ANN401
    net, y = _image(), "x"
    for step in steps:
        y = step(net, y)
    return net.model(y)


def _conv(net: QuantisedNet, x: str) -> str:
    return net.conv(x, 16)


def _plain(operator: str, **attributes: Any) -> Callable[[QuantisedNet, str], str]:  # noqa: ANN401
    return lambda net, x: str(net(operator, x, **attributes))


_relu = _plain("Relu")


def _head(net: QuantisedNet, x: str) -> str:
    pooled = net("Flatten", net("GlobalAveragePool", x))
    return net.dense(pooled, net.channels, 10)


def _residual() -> Any:  # noqa: ANN401
    net = _image()
    a = net("Relu", net.conv("x", 16))
    b = net.conv(net("Relu", net.conv(a, 16)), 16)
    return net.model(_head(net, net("Relu", net("Add", a, b))))


def _concat() -> Any:  # noqa: ANN401
    net = _image()
    a = net("Relu", net.conv("x", 8, 1))
    net.channels = 8
    b = net("Relu", net.conv("x", 16))
    net.channels = 24
    return net.model(net.conv(net("Concat", a, b, axis=1), 8, 1))


def _squeeze_excite() -> Any:  # noqa: ANN401
    net = _image()
    a = net("Relu", net.conv("x", 16))
    s = net("GlobalAveragePool", a)
    s = net("Relu", net.conv(s, 8, 1))
    s = net("Sigmoid", net.conv(s, 16, 1))
    return net.model(net.conv(net("Mul", a, s), 8, 1))


def _lstm() -> Any:  # noqa: ANN401
    net = QuantisedNet(6, 1, 12)
    w, r = net.weight(1, 64, 12), net.weight(1, 64, 16)
    y = net("LSTM", net.product("x", 12, 12), w, r, hidden_size=16)
    rows = net("Reshape", y, net.fixed([6, 16], np.int64))
    return net.model(net.dense(rows, 16, 10))


def _split() -> Any:  # noqa: ANN401
    net = _image()
    a, b = net("Split", net("Relu", net.conv("x", 16)), results=2, axis=1)
    return net.model(net("Add", net("Sigmoid", a), b))


def _resize() -> Any:  # noqa: ANN401
    net = _image()
    scales = net.fixed([1, 1, 2, 2])
    a = net("Resize", net.conv("x", 8), "", scales, mode="nearest", nearest_mode="floor",
            coordinate_transformation_mode="asymmetric")  # fmt: skip
    return net.model(net.conv(a, 8))


def _pad() -> Any:  # noqa: ANN401
    net = _image()
    a = net("Pad", net("Relu", net.conv("x", 8)), net.fixed([0, 0, 1, 1, 0, 0, 1, 1], np.int64))
    return net.model(net("Conv", a, net.weight(8, 8, 3, 3)))


def _argmax() -> Any:  # noqa: ANN401
    net = QuantisedNet(4, 32)
    y = net.dense(net("Relu", net.dense("x", 32, 24)), 24, 10)
    return net.model(net("Cast", net("ArgMax", y, axis=1, keepdims=0), to=1))


def _embedding() -> Any:  # noqa: ANN401
    net = QuantisedNet(1, 8)
    codes = net("Cast", net("Abs", net("Mul", "x", net.fixed(4))), to=7)
    rows = net("Gather", net.weight(40, 16, fan=1), codes)
    return net.model(net.product(net("Tanh", net.product(rows, 16, 24)), 24, 8))


def _transformer() -> Any:  # noqa: ANN401
    net = QuantisedNet(1, 8, 32)
    gains = [net.fixed(np.ones(32)) for _ in range(2)]
    betas = [net.fixed(np.zeros(32)) for _ in range(2)]
    n = net("LayerNormalization", "x", gains[0], betas[0])
    q, k, v = (net.product(n, 32, 32) for _ in range(3))
    scores = net("Mul", net("MatMul", q, net("Transpose", k, perm=[0, 2, 1])), net.fixed(32**-0.5))
    h = net("Add", "x", net.product(net("MatMul", net("Softmax", scores, axis=-1), v), 32, 32))
    u = net.product(net("LayerNormalization", h, gains[1], betas[1]), 32, 64)
    half = net("Mul", u, net.fixed(2**-0.5))
    erf = net("Add", net("Erf", half), net.fixed(1))
    g = net("Mul", net("Mul", u, erf), net.fixed(0.5))
    return net.model(net("Add", h, net.product(g, 64, 32)))


def _dense_network() -> Any:  # noqa: ANN401
    net = QuantisedNet(4, 32)
    return net.model(net.dense(net("Relu", net.dense("x", 32, 48)), 48, 10))


def _products() -> Any:  # noqa: ANN401
    net = QuantisedNet(1, 6, 32)
    y = net("Add", net.product("x", 32, 48), net.fixed(net.random.standard_normal(48)))
    return net.model(net.product(net("Relu", y), 48, 16))


def _depthwise(net: QuantisedNet, x: str) -> str:
    return net.conv(net("Relu", net.conv(x, 8, group=8)), 16, 1)


def _rows(net: QuantisedNet, x: str) -> str:
    turned = net("Transpose", x, perm=[0, 2, 3, 1])
    return str(net("Reshape", turned, net.fixed([64, net.channels], np.int64)))


_POOL = {"kernel_shape": [2, 2], "strides": [2, 2]}
NETWORKS: dict[str, Callable[[], Any]] = {
    "convolutions": lambda: _chained(_conv, _relu, _conv, _relu, _head),
    "residual": _residual,
    "concat": _concat,
    "average pool": lambda: _chained(_conv, _relu, _plain("AveragePool", **_POOL), _conv),
    "global pool": lambda: _chained(_conv, _relu, _plain("GlobalAveragePool")),
    "max pool": lambda: _chained(_conv, _relu, _plain("MaxPool", **_POOL), _conv),
    "softmax": lambda: _chained(_conv, _relu, _head, _plain("Softmax", axis=1)),
    "sigmoid": lambda: _chained(_conv, _plain("Sigmoid"), _conv),
    "leaky relu": lambda: _chained(_conv, _plain("LeakyRelu", alpha=0.1), _conv),
    "dense": _dense_network,
    "products": _products,
    "lstm": _lstm,
    "depthwise": lambda: _chained(_depthwise, _relu, _conv),
    "transpose": lambda: _chained(_conv, _rows, lambda net, x: net.dense(x, 16, 12)),
    "split": _split,
    "pad": _pad,
    "resize": _resize,
    "argmax": _argmax,
    "embedding": _embedding,
    "clip": lambda: _chained(
        _conv, lambda net, x: str(net("Clip", x, net.fixed(0), net.fixed(6))), _conv
    ),
    "hard swish": lambda: _chained(_conv, _plain("HardSwish"), _conv),
    "transformer": _transformer,
    "squeeze and excite": _squeeze_excite,
    "mean": lambda: _chained(_conv, _relu, _plain("ReduceMean", axes=[2, 3], keepdims=0)),
}
"""By what is in them."""


class _Calibration(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, shape: Sequence[int]) -> None:
        self.left = iter(inputs(shape, 16))

    def get_next(self) -> dict[str, Array] | None:
        """Return the next sample, None behind the last."""
        found = next(self.left, None)
        return None if found is None else {"x": found}


def inputs(shape: Sequence[int], count: int, seed: int = 3) -> Iterator[Array]:
    """Yield inputs."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        yield random.standard_normal(shape).astype(np.float32)


def quantised(name: str, form: str, per_channel: bool, kinds: str = "s8s8") -> Any:  # noqa: ANN401
    """Return a network as the quantiser of onnxruntime leaves it.

    Weights have 7 bits: some machines saturate sums of pairs of products.

    Args:
        name: of `NETWORKS`.
        form: QOperator, QDQ or dynamic.
        per_channel: whether weights have a scale per channel.
        kinds: of integers, those of tensors and those of weights: s8s8, u8s8 or u8u8; of tensors
            also s6 and u6, of 16 bits.
    """
    tensors, weights = (_KINDS[kinds[index : index + 2]] for index in (0, 2))
    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before, after = Path(folder, "before.onnx"), Path(folder, "after.onnx")
        made = NETWORKS[name]()
        onnx.save(made, before)
        said: dict[str, Any] = {"per_channel": per_channel, "reduce_range": True}
        if form == "dynamic":
            quantize_dynamic(before, after, weight_type=weights, **said)
        else:
            shape = [one.dim_value for one in made.graph.input[0].type.tensor_type.shape.dim]
            said |= {"quant_format": FORMATS[form], "activation_type": tensors}
            quantize_static(before, after, _Calibration(shape), weight_type=weights, **said)
        return onnx.load(after)
