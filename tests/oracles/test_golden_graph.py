# SPDX-License-Identifier: Apache-2.0
"""Fused graphs made by hand from given scales against onnxruntime and LiteRT.

Both of these round halves otherwise and use other factors, so that a few elements are 1 apart.
The zero point of a result stands in the bias as a whole number of accumulator units: with scales of
weights as below a unit is 0.001 of the result, and this costs one element in some thousands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from golden.graph import run
from golden.requantize import factor
from npu.graph.form import (
    Array,
    Attribute,
    Element,
    Graph,
    Operation,
    OperationPlace,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)
from npu.graph.verify import verify
from tests.needs import needs

needs("oracles")

import onnx
import onnxruntime

from tests.oracles.test_graph_litert import litert
from tests.python.importers.tflite_writer import Writer

X, Y, Z = (0.03, 3), (0.07, -5), (0.05, -20)
"""Scales and zero points of inputs and results."""
POST: dict[str, Attribute] = {"relu": False, "combine": "", "product_mult": 0, "product_shift": 0}
MATMUL: dict[str, Attribute] = {
    "transpose_a": False,
    "transpose_b": False,
    "a_zero": 0,
    "b_zero": 0,
    **POST,
}
MIDDLE = 4e-4
"""The scale of sums in int16."""


def close(found: Array, wanted: Array, share: float = 0.001) -> None:
    """Check that integers are 1 apart at most, and few of them."""
    assert found.shape == wanted.shape and found.dtype == wanted.dtype
    apart = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
    assert apart.max() <= 1
    assert np.count_nonzero(apart) <= share * apart.size, np.mean(apart > 0)


def folded(
    scale: Array, x_zero: int, y_zero: int, sums: Array, bias: Array | int = 0
) -> dict[str, Array]:
    """Return bias, mult and shift of factors per channel, zero points in the bias."""
    pairs = [factor(float(one)) for one in np.asarray(scale).ravel()]
    zeros = [round(y_zero * 2**shift / mult) for mult, shift in pairs]
    return {
        "bias": (bias - x_zero * sums.astype(np.int64) + zeros).astype(np.int32),
        "mult": np.array([mult for mult, _ in pairs], np.uint16),
        "shift": np.array([shift for _, shift in pairs], np.uint8),
    }


class Fused:
    """A graph of operations of the chip, made one by one."""

    def __init__(self) -> None:
        """Begin an empty graph."""
        self.tensors: dict[str, Tensor] = {}
        self.operations: list[Operation] = []

    def tensor(
        self, name: str, value: Array, unit: tuple[float, int] = (1.0, 0), *, held: bool = False
    ) -> str:
        """Add an input or a constant."""
        kind = TensorType(value.shape, Element.of(value.dtype), Quantisation(unit[:1], unit[1]))
        self.tensors[name] = Tensor(name, kind, value if held else None)
        return name

    def add(
        self,
        kind: str,
        names: tuple[str, ...],
        result: TensorType,
        attributes: Mapping[str, Attribute],
        arrays: Mapping[str, Array] | None = None,
    ) -> str:
        """Add an operation; return its result."""
        place, name = OperationPlace(Target.NPU, "test"), f"t{len(self.operations)}"
        one = Operation(name, kind, names, (name,), attributes, kind, place, arrays or {})
        self.operations.append(one)
        self.tensors[name] = Tensor(name, result)
        return name

    def run(self, **inputs: Array) -> Array:
        """Verify the graph and return its last result."""
        last = self.operations[-1].outputs[0]
        graph = Graph("f", tuple(inputs), (last,), self.tensors, tuple(self.operations))
        verify(graph, placed=True)
        return run(graph, inputs)[last]


def typed(shape: Sequence[int], unit: tuple[float, int], element: Element = Element.I8) -> Any:  # noqa: ANN401
    """Return a type with scale and zero point."""
    return TensorType(tuple(shape), element, Quantisation(unit[:1], unit[1]))


def conv(
    x: Array, w: Array, scales: Array, bias: Array, shape: Sequence[int], **attributes: Attribute
) -> Array:
    """Run a fused convolution of scales X to Y with filters w (KH, KW, C / groups, O)."""
    fused = Fused()
    names = fused.tensor("x", x, X), fused.tensor("w", w, held=True)
    arrays = folded(X[0] * scales / Y[0], X[1], Y[1], w.sum(axis=(0, 1, 2)), bias)
    zeros: dict[str, Attribute] = {"pad_value": X[1], "x_zero": 0, "w_zero": 0}
    fused.add("conv", names, typed(shape, Y), {**attributes, **zeros, **POST}, arrays)
    return fused.run(x=x)


def ort(operator: str, given: Mapping[str, Any], **attributes: object) -> Array:
    """Run one operator of ONNX in onnxruntime, all inputs but the first held."""
    helper, held = onnx.helper, list(given)[1:]
    node = helper.make_node(operator, list(given), ["y"], **attributes)
    first = next(iter(given))
    kind = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        [node],
        "g",
        [helper.make_tensor_value_info(first, kind(given[first].dtype), given[first].shape)],
        [helper.make_tensor_value_info("y", kind(given["yz"].dtype), None)],
        [onnx.numpy_helper.from_array(given[name], name) for name in held],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {first: given[first]})[0])


@pytest.mark.parametrize(
    ("groups", "strides", "pads", "dilations"),
    [
        (1, (1, 1), (1, 1, 1, 1), (1, 1)),
        (1, (2, 3), (0, 1, 2, 1), (1, 1)),
        (1, (1, 1), (2, 2, 2, 2), (2, 2)),
        (3, (1, 2), (1, 0, 1, 2), (1, 1)),
        (6, (1, 1), (1, 1, 1, 1), (1, 1)),
    ],
)
def test_qlinearconv(
    groups: int, strides: tuple[int, int], pads: tuple[int, ...], dilations: tuple[int, int]
) -> None:
    """Filters of 7 bits, because onnxruntime saturates sums of pairs on some machines."""
    rng = np.random.default_rng(groups)
    x = rng.integers(-128, 128, (2, 33, 31, 6)).astype(np.int8)
    w = rng.integers(-63, 64, (3, 3, 6 // groups, 12)).astype(np.int8)
    scales = (0.002 + 0.0002 * np.arange(12)).astype(np.float32)
    bias = rng.integers(-2000, 2000, 12).astype(np.int32)
    given = {
        "x": x.transpose(0, 3, 1, 2).copy(),
        "xs": np.float32(X[0]).reshape(()),
        "xz": np.int8(X[1]).reshape(()),
        "w": w.transpose(3, 2, 0, 1).copy(),
        "ws": scales,
        "wz": np.zeros(12, np.int8),
        "ys": np.float32(Y[0]).reshape(()),
        "yz": np.int8(Y[1]).reshape(()),
        "b": bias,
    }
    wanted = ort(
        "QLinearConv", given, group=groups, strides=strides, pads=pads, dilations=dilations
    ).transpose(0, 2, 3, 1)
    found = conv(
        x,
        w,
        scales,
        bias,
        wanted.shape,
        groups=groups,
        strides=strides,
        pads=pads,
        dilations=dilations,
    )
    close(found, wanted)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_qlinearmatmul(dtype: type[np.integer[Any]]) -> None:
    """Operands with and without sign; results have the sign of the first operand."""
    rng = np.random.default_rng(7)
    edge = np.iinfo(dtype)
    a = rng.integers(edge.min, edge.max + 1, (200, 64)).astype(dtype)
    b = rng.integers(-63, 64, (64, 48)).astype(np.int8)
    given = {
        "a": a,
        "as": np.float32(X[0]).reshape(()),
        "az": dtype(100).reshape(()),
        "b": b,
        "bs": np.float32(0.002).reshape(()),
        "bz": np.int8(0).reshape(()),
        "ys": np.float32(Y[0]).reshape(()),
        "yz": dtype(Y[1] if dtype == np.int8 else Y[1] + 128).reshape(()),
    }
    wanted = ort("QLinearMatMul", given).astype(np.int64) - (128 if dtype == np.uint8 else 0)
    fused = Fused()
    names = fused.tensor("a", a, (X[0], 100)), fused.tensor("b", b, held=True)
    scale = np.full(48, X[0] * 0.002 / Y[0])
    arrays = folded(scale, 100, Y[1], b.sum(axis=0))
    fused.add("matmul", names, typed((200, 48), Y), MATMUL, arrays)
    close(fused.run(a=a), wanted.astype(np.int8))


@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D"])
def test_convolutions_of_litert(operator: str) -> None:
    """Stride 2, SAME pads: nothing before an even image, 1 behind it.

    LiteRT itself is off the exact result in 0.05 to 0.11 % of the elements.
    """
    rng, writer = np.random.default_rng(8), Writer()
    deep = operator == "CONV_2D"
    x = rng.integers(-128, 128, (4, 32, 32, 6)).astype(np.int8)
    filters = (9, 3, 3, 6) if deep else (1, 3, 3, 6)
    count = 9 if deep else 6
    w = rng.integers(-127, 128, filters).astype(np.int8)
    scales = (0.002 + 0.0002 * np.arange(count)).astype(np.float32)
    bias = rng.integers(-2000, 2000, count).astype(np.int32)
    numbers = (
        writer.tensor("x", x.shape, "int8", scale=X[0], zero=X[1]),
        writer.constant("w", w, scale=scales.tolist(), axis=0 if deep else 3),
        writer.constant("b", bias, scale=(np.float32(X[0]) * scales).tolist()),
    )
    y = writer.tensor("y", (4, 16, 16, count), "int8", scale=Y[0], zero=Y[1])
    more = {} if deep else {"multiplier": 1}
    steps = {"padding": 0, "across": 2, "down": 2, "fused": 0}
    turns = {"dilation_across": 1, "dilation_down": 1}
    writer.operator(operator, numbers, (y,), **steps, **turns, **more)
    (wanted,) = litert(writer.write(numbers[:1], (y,)), [x])
    turned = w.transpose(1, 2, 3, 0) if deep else w.transpose(1, 2, 0, 3)
    found = conv(
        x,
        turned,
        scales,
        bias,
        wanted.shape,
        groups=1 if deep else 6,
        strides=(2, 2),
        pads=(0, 0, 1, 1),
        dilations=(1, 1),
    )
    close(found, wanted, 0.002)


def test_fully_connected_with_relu_of_litert() -> None:
    """A ReLU at a zero point of the result is a table."""
    rng, writer = np.random.default_rng(9), Writer()
    x = rng.integers(-128, 128, (256, 32)).astype(np.int8)
    w = rng.integers(-127, 128, (24, 32)).astype(np.int8)
    bias = rng.integers(-2000, 2000, 24).astype(np.int32)
    scales = np.full(24, 0.002, np.float32)
    numbers = (
        writer.tensor("x", x.shape, "int8", scale=X[0], zero=X[1]),
        writer.constant("w", w, scale=[0.002]),
        writer.constant("b", bias, scale=[float(np.float32(X[0]) * scales[0])]),
    )
    y = writer.tensor("y", (256, 24), "int8", scale=Y[0], zero=Y[1])
    writer.operator("FULLY_CONNECTED", numbers, (y,), fused=1)
    fused = Fused()
    names = fused.tensor("x", x, X), fused.tensor("w", w, held=True)
    arrays = folded(X[0] * scales / Y[0], X[1], Y[1], w.sum(axis=1), bias)
    arrays["table"] = np.maximum(np.arange(256, dtype=np.uint8).view(np.int8), np.int8(Y[1]))
    fused.add("matmul", names, typed((256, 24), Y), {**MATMUL, "transpose_b": True}, arrays)
    close(fused.run(x=x), litert(writer.write(numbers[:1], (y,)), [x])[0])


def test_add_of_litert() -> None:
    """Untied scales: both to int16 by products with the identity, ADD, and back."""
    rng, writer = np.random.default_rng(10), Writer()
    a, b = rng.integers(-128, 128, (2, 500, 16)).astype(np.int8)
    units = (X, Z)
    numbers = tuple(
        writer.tensor(name, a.shape, "int8", scale=unit[0], zero=unit[1])
        for name, unit in zip("ab", units, strict=True)
    )
    y = writer.tensor("y", a.shape, "int8", scale=Y[0], zero=Y[1])
    writer.operator("ADD", numbers, (y,), fused=0)
    fused, ones = Fused(), np.ones(16)
    eye = fused.tensor("eye", np.eye(16, dtype=np.int8), held=True)
    wide = typed(a.shape, (MIDDLE, 0), Element.I16)
    sides = [
        fused.add(
            "matmul",
            (fused.tensor(name, value, unit), eye),
            wide,
            MATMUL,
            folded(ones * unit[0] / MIDDLE, unit[1], 0, ones),
        )
        for name, value, unit in (("a", a, X), ("b", b, Z))
    ]
    total = fused.add("add", (sides[0], sides[1]), wide, {})
    back = folded(ones * MIDDLE / Y[0], 0, Y[1], ones)
    fused.add("matmul", (total, eye), typed(a.shape, Y), MATMUL, back)
    (wanted,) = litert(writer.write(numbers, (y,)), [a, b])
    close(fused.run(a=a, b=b), wanted, 0.01)


def test_mean_of_litert() -> None:
    """With weights of 64 the zero point of the result is exact to a thousandth."""
    rng, writer = np.random.default_rng(11), Writer()
    x = rng.integers(-128, 128, (64, 7, 7, 33)).astype(np.int8)
    x = (x // 4 + rng.integers(-90, 90, (64, 1, 1, 33))).astype(np.int8)
    unit = (0.021, -5)
    number = writer.tensor("x", x.shape, "int8", scale=X[0], zero=X[1])
    axes = writer.constant("axes", np.array([1, 2], np.int32))
    y = writer.tensor("y", (64, 33), "int8", scale=unit[0], zero=unit[1])
    writer.operator("MEAN", (number, axes), (y,), keep=0)
    fused = Fused()
    arrays = folded(np.array([X[0] / unit[0] / 49 / 64]), X[1], unit[1], np.array([49 * 64]))
    attributes: dict[str, Attribute] = {"axes": (1, 2), "keep": False, "weight": 64}
    fused.add("mean", (fused.tensor("x", x, X),), typed((64, 33), unit), attributes, arrays)
    data = writer.write((number,), (y,))
    (wanted,) = litert(data, [x], delegates=True)
    close(fused.run(x=x), wanted, 0.001)


@pytest.mark.parametrize("kind", ["maxpool", "avgpool"])
def test_pools_of_litert(kind: str) -> None:
    """Windows of 3 by 3 with stride 2 inside the image: nine elements have no ties."""
    rng, writer = np.random.default_rng(12), Writer()
    x = rng.integers(-128, 128, (3, 17, 15, 33)).astype(np.int8)
    shape = (3, 8, 7, 33)
    number = writer.tensor("x", x.shape, "int8", scale=X[0], zero=X[1])
    y = writer.tensor("y", shape, "int8", scale=X[0], zero=X[1])
    name = "MAX_POOL_2D" if kind == "maxpool" else "AVERAGE_POOL_2D"
    steps = {"padding": 1, "across": 2, "down": 2, "width": 3, "height": 3, "fused": 0}
    writer.operator(name, (number,), (y,), **steps)
    (wanted,) = litert(writer.write((number,), (y,)), [x])
    fused = Fused()
    attributes: dict[str, Attribute] = {"window": (3, 3), "strides": (2, 2), "pads": (0, 0, 0, 0)}
    arrays: dict[str, Array] = {}
    if kind == "maxpool":
        attributes["dilations"] = (1, 1)
    else:
        attributes |= {"count_pads": False, "weight": 1}
        mult, shift = factor(1 / 9)
        arrays = {
            "bias": np.zeros(shape[1:3], np.int32),
            "mult": np.full(shape[1:3], mult, np.uint16),
            "shift": np.full(shape[1:3], shift, np.uint8),
        }
    fused.add(kind, (fused.tensor("x", x, X),), typed(shape, X), attributes, arrays)
    close(fused.run(x=x), wanted, 0.0)
