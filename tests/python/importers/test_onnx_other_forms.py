# SPDX-License-Identifier: Apache-2.0
"""Forms of ONNX that onnxruntime does not have are computed by operators that it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from golden.graph import run
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, GraphError
from npu.graph.importers import read
from npu.graph.prepare import prepare
from npu.graph.verify import verify
from tests.needs import needs

needs("graphs")

import onnxruntime

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


def random(seed: int, *shape: int) -> Array:
    """Return seeded normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def model(
    operator: str,
    given: dict[str, Array],
    held: dict[str, Array],
    outputs: Sequence[str],
    version: int = 21,
    **attributes: Any,  # noqa: ANN401
) -> onnx.ModelProto:
    """Return a model of one operator; an output without a name is not wanted."""
    node = helper.make_node(operator, [*given, *held], outputs, "it", **attributes)
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(one.dtype), one.shape)
        for name, one in given.items()
    ]
    weights = [onnx.numpy_helper.from_array(one, name) for name, one in held.items()]
    made = [onnx.ValueInfoProto(name=name) for name in outputs if name]
    graph = helper.make_graph([node], "graph", inputs, made, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def ours(made: onnx.ModelProto, given: dict[str, Array]) -> list[Array]:
    """Return what the graph of a model gives."""
    graph = read(made)
    verify(graph)
    return list(evaluate(graph, given).values())


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("operator", GATES)
def test_batches_that_come_first_are_turned(operator: str, direction: str) -> None:
    """Inputs, states and results, compared with onnxruntime's own order."""
    count, gates = 2 if direction == "bidirectional" else 1, GATES[operator]
    x, first = random(1, 3, 7, 6), random(2, 3, count, 5)
    held: dict[str, Array] = {
        "w": random(3, count, gates * 5, 6) / 3,
        "r": random(4, count, gates * 5, 5) / 3,
        "b": random(5, count, gates * 10) / 3,
        "lengths": np.array([7, 2, 5], np.int32),
    }
    outputs = ["y", "h", "c"][: 3 if operator == "LSTM" else 2]
    options: dict[str, Any] = {"hidden_size": 5, "direction": direction}
    turned = {"x": x.transpose(1, 0, 2), "first": first.transpose(1, 0, 2)}

    def ordered(first: dict[str, Array]) -> tuple[dict[str, Array], dict[str, Array]]:
        return {"x": first["x"]}, {**held, "first": first["first"]}

    inside = model(operator, *ordered(turned), outputs, **options)
    session = onnxruntime.InferenceSession(inside.SerializeToString())
    y, *states = session.run(None, {"x": turned["x"]})
    wanted = [y.transpose(2, 0, 1, 3), *(one.transpose(1, 0, 2) for one in states)]
    made = model(operator, *ordered({"x": x, "first": first}), outputs, **options, layout=1)
    for found, want in zip(ours(made, {"x": x}), wanted, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("outputs", [["y"], ["y", "", ""], ["y", "mean", "variance"]])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5), (2, 3, 4, 5)])
def test_batches_are_normalised_by_themselves(
    shape: tuple[int, ...], outputs: Sequence[str]
) -> None:
    """In training; onnxruntime ends with a signal where results have no names."""
    x, gain, beta, mean = random(1, *shape), random(2, 3), random(3, 3), random(4, 3)
    held = {"gain": gain, "beta": beta, "held": mean, "spread": np.abs(random(5, 3))}
    made = model(
        "BatchNormalization", {"x": x}, held, outputs, training_mode=1, epsilon=1e-3, momentum=0.75
    )
    axes, column = tuple(axis for axis in range(x.ndim) if axis != 1), (3, *(1,) * (x.ndim - 2))
    middle, spread = x.mean(axes), x.var(axes)
    real = (x - middle.reshape(column)) / np.sqrt(spread.reshape(column) + 1e-3)
    wanted = [
        real * gain.reshape(column) + beta.reshape(column),
        mean * 0.75 + middle * 0.25,
        held["spread"] * 0.75 + spread * 0.25,
    ]
    for found, want in zip(ours(made, {"x": x}), wanted, strict=False):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("version", "outputs", "said"),
    [
        (6, ["y"], "in training, as is_test is 0, allowed is_test = 1"),
        (9, [*"yabcd"], "in training, as more than its first result is read, allowed that alone"),
    ],
)
def test_training_of_earlier_sets_is_refused(
    version: int, outputs: Sequence[str], said: str
) -> None:
    """In one line, before any runtime sees it."""
    held = {name: np.abs(random(1, 3)) for name in ("gain", "beta", "mean", "variance")}
    made = model("BatchNormalization", {"x": random(1, 2, 3)}, held, outputs, version)
    with pytest.raises(GraphError, match=rf"'it' \(BatchNormalization\): {said}$"):
        read(made)


A = np.random.default_rng(1).integers(0, 256, (2, 4, 6)).astype(np.uint8)
B = np.random.default_rng(2).integers(-128, 128, (6, 5)).astype(np.int8)
ROWS, COLUMNS = np.array([3, 120, 255, 0], np.uint8), np.array([1, -5, 100, -128, 7], np.int8)
ONE = np.array(9, np.uint8), np.array(-9, np.int8)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("left", "right"), [(ROWS, ONE[1]), (ONE[0], COLUMNS), (ROWS, COLUMNS), ONE]
)
def test_products_of_integers_know_zero_points_of_rows(
    left: Array, right: Array, known: bool
) -> None:
    """And of columns, of a matrix that is constant or not."""
    given = {"a": A} | ({} if known else {"b": B})
    held = ({"b": B} if known else {}) | {"left": left, "right": right}
    made = model("MatMulInteger", given, held, ["y"])
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None))
    less = left.reshape(-1, 1) if left.ndim else left
    wanted = (A.astype(int) - less.astype(int)) @ (B.astype(int) - right.astype(int))
    np.testing.assert_array_equal(ours(made, given)[0], wanted)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("rows", [True, False])
def test_products_of_reals_know_scales_of_rows(rows: bool, known: bool) -> None:
    """Those of the first matrix and of the result; of the second they count columns."""
    left = np.array([0.01, 0.03, 0.02, 0.005], np.float32) if rows else np.array(0.02, np.float32)
    right = np.linspace(0.01, 0.05, 5).astype(np.float32)
    out = np.array([0.5, 0.3, 0.9, 0.7], np.float32) if rows else np.array(0.5, np.float32)
    zero = np.array([100, 120, 140, 128], np.uint8) if rows else np.array(128, np.uint8)
    node = ["a", "left", "left_zero", "b", "right", "right_zero", "out", "out_zero"]
    values: list[Array] = [A, left, ROWS if rows else ONE[0], B, right, COLUMNS, out, zero]
    given = {"a": A} | ({} if known else {"b": B})
    held = {name: one for name, one in zip(node, values, strict=True) if name not in given}
    made = model("QLinearMatMul", given, held, ["y"])
    made.graph.node[0].input[:] = node
    made.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, None))

    def column(one: Array) -> Array:
        return (one.reshape(-1, 1) if one.ndim else one).astype(np.float64)

    first = (A - column(values[2])) * column(left)
    real = first @ ((B.astype(int) - COLUMNS.astype(int)) * right.astype(np.float64))
    wanted = np.clip(np.rint(real / column(out)) + column(zero), 0, 255)
    assert np.abs(ours(made, given)[0] - wanted).max() <= 1


def test_a_value_may_be_an_output_twice() -> None:
    """As in onnxruntime, which gives it twice; the second has a name of its own."""
    x = random(1, 2, 3)
    made = model("Relu", {"x": x}, {}, ["y"])
    made.graph.output.append(made.graph.output[0])
    graph = read(made)
    verify(graph)
    assert graph.outputs[0] == "y" and len(graph.outputs) == 2
    for found in evaluate(graph, {"x": x}).values():
        np.testing.assert_array_equal(found, np.maximum(x, 0))


@pytest.mark.parametrize("operator", ["Add", "Sub", "Mul"])
def test_vectors_meet_constant_vectors_on_the_chip(operator: str) -> None:
    """A tensor of one axis is one row there."""
    x, held = random(1, 24), np.linspace(0.5, 2, 24, dtype=np.float32)
    graph = prepare(
        read(model(operator, {"x": x}, {"v": held}, ["y"])), samples={"x": np.stack([x] * 2)}
    )
    assert any(one.on_chip and one.kind == "matmul" for one in graph.operations)
    wanted = {"Add": x + held, "Sub": x - held, "Mul": x * held}[operator]
    found = run(graph, {"x": x})["y"]
    assert np.abs(found - wanted).max() <= 0.02 * np.abs(wanted).max()


@pytest.mark.parametrize("version", [11, 13, 18])
@pytest.mark.parametrize("sizes", [False, True])
def test_a_resize_may_have_scales_and_a_region_without_elements(sizes: bool, version: int) -> None:
    """As exporters of the first sets write them, and onnxruntime takes them in all."""
    x, nothing = random(1, 1, 2, 3, 4), np.zeros(0, np.float32)
    held = {"roi": nothing, "scales": np.array([1, 1, 2, 2], np.float32)}
    if sizes:
        held |= {"scales": nothing, "sizes": np.array([1, 2, 6, 8])}
    made = model("Resize", {"x": x}, held, ["y"], version, mode="linear")
    session = onnxruntime.InferenceSession(made.SerializeToString())
    (found,) = ours(made, {"x": x})
    np.testing.assert_allclose(found, session.run(None, {"x": x})[0], rtol=1e-6)


@pytest.mark.parametrize("version", [9, 13])
def test_an_operator_whose_shape_onnx_does_not_infer(version: int) -> None:
    """It is tried."""
    x = random(1, 2, 3, 4, 5)
    (found,) = ours(model("MeanVarianceNormalization", {"x": x}, {}, ["y"], version), {"x": x})
    apart = x - x.mean((0, 2, 3), keepdims=True)
    wanted = apart / np.sqrt((apart**2).mean((0, 2, 3), keepdims=True))
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
