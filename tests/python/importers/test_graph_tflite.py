# SPDX-License-Identifier: Apache-2.0
"""Graphs read from TFLite files: shapes, names, borders of quantised tensors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from golden.graph import run
from npu.graph.evaluate import evaluate
from npu.graph.form import Element, GraphError, Quantisation
from npu.graph.importers import read, tflite_file
from npu.graph.importers.tflite_linear import edges
from npu.graph.importers.tflite_names import NUMBERS
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.prepare import prepare
from npu.graph.verify import verify
from tests.needs import needs
from tests.python.compiler.network_runs import run_graph
from tests.python.importers.tflite_cases import (
    CASES,
    UNITS,
    floats,
    ints,
    model,
    quantised_model,
    samples,
)
from tests.python.importers.tflite_states import integer_lstm_model, lstm_model, svdf_model
from tests.python.importers.tflite_writer import Writer

needs("graphs")


def test_the_names_of_operators_are_those_of_the_schema() -> None:
    """By number, as far as the list goes."""
    from tflite.BuiltinOperator import BuiltinOperator

    for name, number in NUMBERS.items():
        wanted = "PLACEHOLDER_FOR_GREATER_OP_CODES" if name == "PLACEHOLDER" else name
        assert getattr(BuiltinOperator, wanted) == number


def test_every_mapped_operator_has_a_case() -> None:
    """But for those that differ in one word from one that has."""
    siblings = {"EQUAL", "NOT_EQUAL", "LESS_EQUAL", "GREATER", "REDUCE_MIN", "REDUCE_PROD"}
    siblings |= {"REDUCE_ANY", "REDUCE_ALL", "RELU_0_TO_1", "SIGN", "SELECT", "SELECT_V2"}
    siblings |= {"LOGICAL_AND", "LOGICAL_OR", "LOGICAL_NOT", "SHAPE", "RANK", "ZEROS_LIKE"}
    siblings |= {"UNIDIRECTIONAL_SEQUENCE_LSTM", "SVDF"}
    siblings |= {"VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CALL_ONCE"}
    siblings |= {"QUANTIZE", "DEQUANTIZE"}
    siblings |= {"RANGE", "BROADCAST_ARGS", "WHERE", "DENSIFY", "CALL", "IF", "WHILE"}
    assert set(tflite_file.HANDLERS) - {one.operator for one in CASES.values()} <= siblings


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_each_operator_is_read_with_its_names_and_shapes(name: str) -> None:
    """The graph is sound, can be evaluated and has what the file says."""
    case = CASES[name]
    graph = tflite_file.read(model(case))
    verify(graph)
    assert graph.inputs == tuple(f"x{index}" for index in range(len(case.shapes)))
    found = evaluate(graph, dict(zip(graph.inputs, samples(case, 1), strict=True)))
    for index, shape in enumerate(case.outputs):
        assert found[f"y{index}"].shape == shape
        assert found[f"y{index}"].dtype == np.dtype(case.kinds[index])


@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize("size", range(1, 12))
def test_same_padding_gives_as_many_windows_as_strides_fit(size: int, padding: int) -> None:
    """With one more behind than in front where it is odd."""
    for window in range(1, 5):
        for stride in range(1, 4):
            before, after = edges(size, window, stride, padding)
            if padding:
                assert (before, after) == (0, 0)
                continue
            assert 0 <= after - before <= 1
            if before + after:
                assert (size + before + after - window) // stride + 1 == -(-size // stride)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_quantised_products_stand_between_borders(operator: str, dtype: str) -> None:
    """Weights keep integers and scales per filter, the bias its own; the result is quantised."""
    data, shape = quantised_model(operator, dtype)
    graph = tflite_file.read(data)
    verify(graph)
    kinds = [one.kind for one in graph.operations]
    assert kinds[-2:] == ["table", "quantise"]
    assert kinds.count("dequantise") == 3
    makers = graph.producers()
    product = next(one for one in graph.operations if one.kind in ("conv", "matmul"))
    x, w, bias = (makers[name].inputs[0] for name in product.inputs)
    assert (x, graph.outputs) == ("x", ("y",))
    assert graph.type(x).quantisation is not None
    weights = graph.type(w)
    assert weights.element == Element.I8 and weights.quantisation is not None
    assert weights.quantisation.axis == len(weights.shape) - 1
    assert graph.type(bias).element == Element.I32
    value = np.random.default_rng(1).integers(-100, 100, shape).astype(dtype)
    result = evaluate(graph, {"x": value})["y"]
    assert result.dtype == np.dtype(dtype) and len(np.unique(result)) > 5


def test_a_bias_without_scale_is_in_units_of_input_times_weights() -> None:
    """As old converters leave it."""
    writer = Writer()
    x = writer.tensor("x", (2, 4), "int8", scale=0.5, zero=1)
    weights = np.arange(12).reshape(3, 4).astype(np.int8)
    w = writer.constant("w", weights, scale=[0.1, 0.2, 0.3])
    b = writer.constant("b", ints(10, 20, 30))
    y = writer.tensor("y", (2, 3), "int8", scale=0.1)
    writer.operator("FULLY_CONNECTED", (x, w, b), (y,), fused=0)
    graph = tflite_file.read(writer.write((x,), (y,)))
    found = graph.type("b").quantisation
    assert found is not None
    np.testing.assert_allclose(found.scales, [0.05, 0.1, 0.15], rtol=1e-6)


def test_a_change_of_scale_is_two_borders() -> None:
    """QUANTIZE from integers to integers."""
    writer = Writer()
    x = writer.tensor("x", (4,), "int8", scale=0.5, zero=1)
    y = writer.tensor("y", (4,), "int16", scale=0.25)
    writer.operator("QUANTIZE", (x,), (y,))
    graph = tflite_file.read(writer.write((x,), (y,)))
    assert [one.kind for one in graph.operations] == ["dequantise", "quantise"]
    assert graph.type("y").quantisation == Quantisation((0.25,))
    found = evaluate(graph, {"x": np.array([1, 2, 3, -4], np.int8)})["y"]
    assert found.tolist() == [0, 2, 4, -10]


@pytest.mark.parametrize("source", ["int32", "int16", "int8"])
@pytest.mark.parametrize("target", ["int16", "int8"])
def test_integers_become_integers_of_another_scale(source: str, target: str) -> None:
    """QUANTIZE scales and saturates, from the sums of a product too."""
    writer, edge, most = Writer(), np.iinfo(source), np.iinfo(target)
    x = writer.tensor("x", (6,), source, scale=0.5, zero=0 if source != "int8" else 3)
    y = writer.tensor("y", (6,), target, scale=0.2, zero=0 if target != "int8" else -9)
    writer.operator("QUANTIZE", (x,), (y,))
    graph = tflite_file.read(writer.write((x,), (y,)))
    values = np.array([edge.min, edge.min // 2, -3, 0, 5, edge.max], source)
    reals = (values.astype(np.float64) - (3 if source == "int8" else 0)) * 0.5
    moved = np.rint(reals / 0.2) + (-9 if target == "int8" else 0)
    found = evaluate(graph, {"x": values})["y"]
    assert np.abs(found - np.clip(moved, most.min, most.max)).max() <= 1
    assert np.abs(run(prepare(graph), {"x": values})["y"] - found.astype(np.int64)).max() <= 1


@pytest.mark.parametrize("source", ["float32", "int8", "int16", "int32"])
def test_integers_of_32_bits_with_a_scale_are_made_and_read(source: str) -> None:
    """Rounded once by QUANTIZE, and back to real numbers by DEQUANTIZE."""
    writer = Writer()
    x = writer.tensor("x", (2, 5), source, scale=None if source == "float32" else 0.01)
    y = writer.tensor("y", (2, 5), "int32", scale=0.0025, zero=0)
    z = writer.tensor("z", (2, 5))
    writer.operator("QUANTIZE", (x,), (y,))
    writer.operator("DEQUANTIZE", (y,), (z,))
    graph = tflite_file.read(writer.write((x,), (y, z)))
    verify(graph)
    given = np.arange(-5, 5).reshape(2, 5).astype(source)
    real = given if source == "float32" else given * np.float32(0.01)
    found = evaluate(graph, {"x": given})
    np.testing.assert_array_equal(found["y"], np.rint(real / np.float32(0.0025)))
    np.testing.assert_allclose(found["z"], real, rtol=1e-6)


def test_a_constant_may_be_an_output() -> None:
    """Beside what is computed, with its name."""
    writer = Writer()
    x, y = writer.tensor("x", (2, 3)), writer.tensor("y", (2, 3))
    anchors = writer.constant("anchors", floats(1, 4, 2))
    writer.operator("RELU", (x,), (y,))
    graph = tflite_file.read(writer.write((x,), (y, anchors)))
    verify(graph)
    found = evaluate(graph, {"x": floats(2, 2, 3)})
    assert graph.outputs == ("y", "anchors")
    np.testing.assert_array_equal(found["anchors"], floats(1, 4, 2))


def test_a_tensor_many_times_behind_itself_is_broadcast() -> None:
    """Without an operand for each copy."""
    writer = Writer()
    x, times = writer.tensor("x", (2, 3)), writer.constant("times", ints(2, 5000))
    y = writer.tensor("y", (4, 15000))
    writer.operator("TILE", (x, times), (y,))
    graph = tflite_file.read(writer.write((x,), (y,)))
    assert max(len(op.inputs) for op in graph.operations) == 2
    given = floats(1, 2, 3)
    np.testing.assert_array_equal(evaluate(graph, {"x": given})["y"], np.tile(given, (2, 5000)))


def test_given_scores_beyond_those_of_the_chip_are_the_host_s() -> None:
    """Where they saturate, several would be the largest."""
    for scale, place in ((2.7, "npu"), (5.0, "host")):
        writer = Writer()
        x = writer.tensor("x", (1, 5), "int8", scale=scale)
        y = writer.tensor("y", (1, 5), "int8", scale=1 / 256, zero=-128)
        writer.operator("SOFTMAX", (x,), (y,), beta=1.0)
        graph = prepare(tflite_file.read(writer.write((x,), (y,))))
        (softmax,) = (op for op in graph.operations if op.kind == "softmax")
        assert softmax.place is not None and softmax.place.target == place
        given = np.array([[127, 100, -128, 0, 0]], np.int8)
        assert run(graph, {"x": given})["y"].tolist() == [[127, -128, -128, -128, -128]]


def test_free_dimensions_are_bound_by_name() -> None:
    """What the file says about other shapes no longer counts then."""
    writer = Writer()
    x = writer.tensor("x", (1, 4), signature=(-1, 4))
    w = writer.constant("w", floats(1, 3, 4))
    y = writer.tensor("y", (1, 3), signature=(-1, 3))
    writer.operator("FULLY_CONNECTED", (x, w), (y,), fused=0)
    data = writer.write((x,), (y,))
    assert tflite_file.read(data).type("x").shape == (1, 4), "a batch is what the file has: one"
    with pytest.raises(GraphError, match=r"shape \[2, 5\], allowed \[N,4\]"):
        tflite_file.read(data, shapes={"x": (2, 5)})
    graph = tflite_file.read(data, shapes={"x": (5, 4)})
    assert graph.type("y").shape == (5, 3)


@pytest.mark.parametrize("zero", [-128, -3, 127])
def test_columns_that_nothing_moves_are_constant(zero: int) -> None:
    """Weights of next to nothing, whose bias would leave int32: the result is its zero point."""
    random, writer = np.random.default_rng(zero + 128), Writer()
    scales = np.array([0.01, 1e-14, 0.02, 3e-13], np.float32)
    w = random.integers(-127, 128, (4, 20)).astype(np.int8)
    w[1], w[3, ::2] = 0, 0
    bias = random.integers(-900, 900, 4).astype(np.int32)
    x = writer.tensor("x", (30, 20), "int8", scale=0.05, zero=7)
    held = writer.constant("w", w, scale=scales.tolist(), zero=[0] * 4, axis=0)
    # The axis of the weights, which a bias does not have, as some converters write it.
    units = (np.float32(0.05) * scales).tolist()
    added = writer.constant("b", bias, scale=units, axis=3)
    y = writer.tensor("y", (30, 4), "int8", scale=0.1, zero=zero)
    writer.operator("FULLY_CONNECTED", (x, held, added), (y,), fused=0)
    graph = prepare(tflite_file.read(writer.write((x,), (y,))))
    values = random.integers(-128, 128, (30, 20)).astype(np.int8)
    sums = (values.astype(np.int64) - 7) @ w.T.astype(np.int64) + bias
    expected = np.clip(np.rint(sums * (0.05 * scales.astype(np.float64)) / 0.1) + zero, -128, 127)
    found = run_graph(graph, {"x": values})["y"]
    np.testing.assert_array_equal(found, run(graph, {"x": values})["y"])
    assert np.abs(found - expected).max() <= 1
    np.testing.assert_array_equal(found[:, 1::2], zero)
    assert np.unique(found[:, ::2]).size > 2, "the others move"


def test_weights_of_float16_become_float32() -> None:
    """Behind DEQUANTIZE, as converters write them."""
    writer = Writer()
    x, half = writer.tensor("x", (2, 4)), floats(1, 3, 4).astype(np.float16)
    h, w, y = writer.constant("h", half), writer.tensor("w", (3, 4)), writer.tensor("y", (2, 3))
    writer.operator("DEQUANTIZE", (h,), (w,))
    writer.operator("FULLY_CONNECTED", (x, w), (y,), fused=0)
    graph = tflite_file.read(writer.write((x,), (y,)))
    assert [one.kind for one in graph.operations] == ["matmul"]
    value = floats(2, 2, 4)
    wanted = value @ half.astype(np.float32).T
    np.testing.assert_allclose(evaluate(graph, {"x": value})["y"], wanted, rtol=1e-5, atol=1e-6)


def test_a_path_gives_the_graph_its_name(tmp_path: Path) -> None:
    """Read by what all importers are read by; its scale is that of the file."""
    path = tmp_path / "small.tflite"
    data, _ = quantised_model("FULLY_CONNECTED")
    path.write_bytes(data)
    graph = read(path)
    assert graph.name == "small"
    assert graph.type("x").quantisation == Quantisation(
        (float(np.float32(UNITS["x"][0])),), UNITS["x"][1]
    )


@pytest.mark.parametrize("name", CASES)
def test_the_canonical_form_computes_the_same(name: str) -> None:
    """Of each operator."""
    case = CASES[name]
    graph = tflite_file.read(model(case))
    after = canonicalise(graph)
    inputs = dict(zip(graph.inputs, samples(case, 3), strict=True))
    before = evaluate(graph, inputs)
    for output, value in evaluate(after, inputs).items():
        np.testing.assert_allclose(value, before[output], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_the_canonical_form_keeps_given_quantisation(operator: str, dtype: str) -> None:
    """Integers of weights and all scales; results differ by one at most, and rarely."""
    data, shape = quantised_model(operator, dtype)
    graph = tflite_file.read(data)
    after = canonicalise(graph)
    weights = [
        one for one in after.tensors.values() if one.data is not None and one.data.dtype == np.int8
    ]
    assert len(weights) == 1 and weights[0].type.quantisation is not None
    x = np.random.default_rng(4).integers(-100, 100, shape).astype(dtype)
    found, before = (evaluate(one, {"x": x})["y"].astype(int) for one in (after, graph))
    assert np.abs(found - before).max() <= 1
    assert np.mean(found != before) < 0.01


def test_bytes_without_sign_keep_their_zero_point() -> None:
    """As older converters wrote them."""
    writer = Writer()
    x = writer.tensor("x", (2, 4), "uint8", scale=0.5, zero=128)
    weights = np.arange(12).reshape(3, 4).astype(np.uint8)
    w = writer.constant("w", weights, scale=0.1, zero=5)
    y = writer.tensor("y", (2, 3), "uint8", scale=0.2, zero=10)
    writer.operator("FULLY_CONNECTED", (x, w), (y,), fused=0)
    graph = tflite_file.read(writer.write((x,), (y,)))
    verify(graph)
    value = np.array([[128, 130, 120, 128], [1, 2, 3, 4]], np.uint8)
    wanted = 0.5 * (value.astype(float) - 128) @ (0.1 * (weights.astype(float) - 5)).T
    found = evaluate(graph, {"x": value})["y"]
    np.testing.assert_array_equal(found, np.clip(np.rint(wanted / 0.2) + 10, 0, 255))


def test_a_sequence_is_computed_step_by_step() -> None:
    """The four gates of a long short-term memory, from a state of zero."""
    data, shape = lstm_model()
    graph = tflite_file.read(data)
    held = [one.data for one in graph.tensors.values() if one.data is not None]
    matrices = [one for one in held if one.ndim == 2]
    into = [one for one in matrices if one.shape == (5, 6)]
    again = [one for one in matrices if one.shape == (6, 6)]
    biases = [one for one in held if one.shape == (6,)]
    assert (len(into), len(again), len(biases)) == (4, 4, 4)
    x = floats(8, *shape)
    hidden = cell = np.zeros((2, 6))
    wanted = []
    for step in range(shape[1]):
        sums = [
            x[:, step] @ w + hidden @ r + b for w, r, b in zip(into, again, biases, strict=True)
        ]
        i, f, o = (1 / (1 + np.exp(-sums[gate])) for gate in (0, 1, 3))
        cell = f * cell + i * np.tanh(sums[2])
        hidden = o * np.tanh(cell)
        wanted.append(hidden)
    (found,) = evaluate(graph, {"x": x}).values()
    np.testing.assert_allclose(found, np.stack(wanted, 1), atol=1e-5)


def test_a_sequence_in_integers_needs_no_samples() -> None:
    """Gates are int16 as kernels hold them, cells and outputs have the scales of the states."""
    data, shape = integer_lstm_model()
    graph = tflite_file.read(data)
    prepared = prepare(graph)
    assert any(one.on_chip and one.kind == "matmul" for one in prepared.operations)
    x = np.random.default_rng(7).integers(-128, 128, shape).astype(np.int8)
    apart = evaluate(graph, {"x": x})["y"].astype(int) - run(prepared, {"x": x})["y"]
    assert np.abs(apart).max() <= 1


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("form", ["float", "int8"])
def test_filters_with_a_memory_of_zeros(form: str, rank: int) -> None:
    """Only the last weight in time counts; integers are rounded where the memory holds them."""
    data, shape = svdf_model(form, rank)
    graph = tflite_file.read(data)
    verify(graph)
    held = [one for one in graph.tensors.values() if one.data is not None]
    first = next(one for one in held if one.type.shape == (7, 5 * rank))
    time = next(one for one in held if one.name.startswith("time.last"))
    bias = next(one for one in held if one.type.shape == (5,))
    reals = [
        one.data * (one.type.quantisation.scale if one.type.quantisation else 1.0)
        for one in (first, time, bias)
        if one.data is not None
    ]
    x = floats(3, *shape)
    if form == "float":
        wanted = np.maximum(x @ reals[0] @ reals[1] + reals[2], 0)
        np.testing.assert_allclose(evaluate(graph, {"x": x})["y"], wanted, atol=1e-5)
        return
    x = np.random.default_rng(3).integers(-128, 128, shape).astype(np.int8)
    memory = np.rint((x.astype(np.float64) - 3) * 0.05 @ reals[0] / 4e-4)
    sums = np.clip(memory, -32768, 32767) * 4e-4 @ reals[1] + reals[2]
    wanted = np.clip(np.rint(sums / 0.004) - 128, -128, 127)
    assert np.abs(evaluate(graph, {"x": x})["y"] - wanted).max() <= 1
    prepare(graph)  # without samples


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": 0}, "rank 0 of 5 features and 5 rows of weights in time, allowed a rank"),
        ({"fused": 5}, "fused activation 5, allowed 0..4"),
        ({"value": True}, "a state with a value, allowed variables"),
    ],
)
def test_filters_that_are_refused(change: dict[str, Any], message: str) -> None:
    """Each by name."""
    with pytest.raises(GraphError, match=rf"\(SVDF\) 'y': {message}"):
        tflite_file.read(svdf_model("float", **{"rank": 2, **change})[0])


@pytest.mark.parametrize("fused", [0, 1, 3])
@pytest.mark.parametrize("operator", ["ADD", "SUB", "MUL"])
def test_int16_is_rounded_once_in_front_of_an_activation_too(operator: str, fused: int) -> None:
    """Terms in steps coarser than the result's do not saturate before they meet.

    Of 16,384 elements some are nearer to the half between two steps than float32 tells.
    """
    random, shape = np.random.default_rng(2), (16, 1024)
    scales = {"a": 0.002, "b": 0.003, "y": 0.0007 if operator != "MUL" else 0.05}
    writer = Writer()
    a, b, y = (writer.tensor(name, shape, "int16", scale=scale) for name, scale in scales.items())
    writer.operator(operator, (a, b), (y,), fused=fused)
    given = {name: random.integers(-32768, 32768, shape, np.int16) for name in "ab"}
    left, right = (given[name] * np.float64(np.float32(scales[name])) for name in "ab")
    real = {"ADD": left + right, "SUB": left - right, "MUL": left * right}[operator]
    low, high = {0: (-np.inf, np.inf), 1: (0, np.inf), 3: (0, 6)}[fused]
    step = np.float64(np.float32(scales["y"]))
    wanted = np.clip(np.rint(np.clip(real, low, high) / step), -32768, 32767)
    found = run_graph(prepare(tflite_file.read(writer.write((a, b), (y,)))), given)["y"]
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
def test_weights_of_four_bits_are_the_same_numbers_in_bytes(operator: str) -> None:
    """Two in a byte, the first in its lower half; on the chip without samples."""
    graph = tflite_file.read(quantised_model(operator, few=True)[0])
    random = np.random.default_rng(5)
    shape = {"CONV_2D": (6, 3, 3, 4), "DEPTHWISE_CONV_2D": (1, 3, 3, 6)}.get(operator, (6, 32))
    wanted = random.integers(-7, 8, shape, dtype=np.int8)
    (found,) = [
        one.data
        for one in graph.tensors.values()
        if one.data is not None and one.type.element == Element.I8
    ]
    assert sorted(found.reshape(-1)) == sorted(wanted.reshape(-1))
    assert any(one.on_chip and one.kind in ("matmul", "conv") for one in prepare(graph).operations)
