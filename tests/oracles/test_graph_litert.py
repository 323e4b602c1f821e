# SPDX-License-Identifier: Apache-2.0
"""Graphs read from TFLite compute what the interpreter of LiteRT computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from golden.graph import run
from npu.graph.evaluate import evaluate
from npu.graph.form import Array
from npu.graph.importers import tflite_file
from npu.graph.prepare import prepare
from npu.graph.verify import verify
from tests.needs import needs
from tests.python.importers.tflite_cases import (
    CASES,
    UNITS,
    floats,
    model,
    quantised_model,
    samples,
)
from tests.python.importers.tflite_control import MODELS
from tests.python.importers.tflite_states import integer_lstm_model, lstm_model, svdf_model
from tests.python.importers.tflite_writer import Writer

needs("oracles")

from ai_edge_litert import interpreter


def litert(data: bytes, inputs: Sequence[Array], *, delegates: bool = False) -> list[Array]:
    """Run a file in the interpreter, with its own kernels or as it comes, with XNNPACK."""
    kinds = interpreter.OpResolverType
    resolver = kinds.BUILTIN if delegates else kinds.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    run = interpreter.Interpreter(model_content=data, experimental_op_resolver_type=resolver)
    run.allocate_tensors()
    for detail, value in zip(run.get_input_details(), inputs, strict=True):
        run.set_tensor(detail["index"], value)
    run.invoke()
    return [run.get_tensor(detail["index"]) for detail in run.get_output_details()]


def ours(data: bytes, inputs: Sequence[Array]) -> list[Array]:
    """Run a file in the float evaluator of graphs."""
    graph = tflite_file.read(data)
    verify(graph)
    found = evaluate(graph, dict(zip(graph.inputs, inputs, strict=True)))
    return [found[name] for name in graph.outputs]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_each_operator_means_what_litert_computes(name: str, seed: int) -> None:
    """In float, within 1e-5 of the largest value."""
    case = CASES[name]
    inputs = samples(case, seed)
    for found, want in zip(ours(model(case), inputs), litert(model(case), inputs), strict=True):
        assert found.shape == want.shape and found.dtype == want.dtype
        if want.dtype != np.float32:
            np.testing.assert_array_equal(found, want)
            continue
        largest = max(1.0, float(np.abs(want).max()))
        # A few kernels of LiteRT approximate exponentials in float32.
        np.testing.assert_allclose(found, want, atol=2e-6 * largest, rtol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_subgraphs_and_constants_mean_what_litert_computes(name: str) -> None:
    """In float within 1e-5 of the largest value, integers within one."""
    data, inputs = MODELS[name]()
    (found,), (want,) = ours(data, inputs), litert(data, inputs)
    assert found.shape == want.shape and found.dtype == want.dtype
    most = 1 if want.dtype == np.int8 else 1e-5 * np.abs(want).max()
    assert np.abs(found.astype(float) - want.astype(float)).max() <= most


@pytest.mark.parametrize("operator", ["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"])
@pytest.mark.parametrize(("dtype", "few"), [("int8", False), ("int16", False), ("int8", True)])
def test_quantised_products_differ_by_one_at_most(operator: str, dtype: str, few: bool) -> None:
    """And that rarely: LiteRT rounds products twice, of int16 with factors of 16 bits.

    Small weights, of four bits, make small sums, of which more lie in the middle.
    """
    data, shape = quantised_model(operator, dtype, few=few)
    edge = np.iinfo(np.dtype(dtype))
    random, differ, elements = np.random.default_rng(9), 0, 0
    for _ in range(40):
        x = random.integers(edge.min, edge.max + 1, shape).astype(dtype)
        (found,), (want,) = ours(data, [x]), litert(data, [x])
        apart = np.abs(found.astype(int) - want.astype(int))
        assert apart.max() <= 1
        differ, elements = differ + int(np.count_nonzero(apart)), elements + apart.size
    share = 0.005 if few else {"int8": 0.002, "int16": 0.1}[dtype]
    assert differ <= share * elements


MOVED = ("RESHAPE", "TRANSPOSE", "CONCATENATION", "MAX_POOL_2D", "SLICE", "PAD", "GATHER")


@pytest.mark.parametrize("name", [name for name, one in CASES.items() if one.operator in MOVED])
def test_quantised_moves_are_exact(name: str) -> None:
    """Scale and zero point are the same before and after, and so are the integers."""
    case, writer = CASES[name], Writer()
    scale, zero = UNITS["x"]
    inputs = [
        writer.tensor(f"x{index}", shape, "int8", scale=scale, zero=zero)
        for index, shape in enumerate(case.shapes)
    ]
    held = [writer.constant(f"c{index}", value) for index, value in enumerate(case.constants)]
    outputs = [writer.tensor("y", case.outputs[0], "int8", scale=scale, zero=zero)]
    writer.operator(case.operator, [*inputs, *held], outputs, **{**case.options})
    data = writer.write(inputs, outputs)
    random = np.random.default_rng(11)
    values = [random.integers(-128, 128, shape).astype(np.int8) for shape in case.shapes]
    np.testing.assert_array_equal(ours(data, values)[0], litert(data, values)[0])


@pytest.mark.parametrize("operator", ["ADD", "MUL", "LOGISTIC", "TANH", "SOFTMAX", "MEAN"])
def test_other_quantised_operators_differ_by_one_at_most(operator: str) -> None:
    """With the scales that LiteRT demands of the outputs of functions."""
    units = {"LOGISTIC": (1 / 256, -128), "TANH": (1 / 128, 0), "SOFTMAX": (1 / 256, -128)}
    writer, (scale, zero) = Writer(), UNITS["x"]
    shape, result = (2, 3, 16), (2, 16) if operator == "MEAN" else (2, 3, 16)
    count = 2 if operator in ("ADD", "MUL") else 1
    inputs = [writer.tensor(f"x{i}", shape, "int8", scale=scale, zero=zero) for i in range(count)]
    held = [writer.constant("axes", np.array([1], np.int32))] if operator == "MEAN" else []
    unit = units.get(operator, UNITS["y"])
    outputs = [writer.tensor("y", result, "int8", scale=unit[0], zero=unit[1])]
    options: dict[str, dict[str, float]] = {
        "ADD": {"fused": 0},
        "MUL": {"fused": 0},
        "SOFTMAX": {"beta": 1.0},
    }
    writer.operator(operator, [*inputs, *held], outputs, **options.get(operator, {}))
    data = writer.write(inputs, outputs)
    random = np.random.default_rng(12)
    values = [random.integers(-128, 128, shape).astype(np.int8) for _ in range(count)]
    apart = ours(data, values)[0].astype(int) - litert(data, values)[0].astype(int)
    assert np.abs(apart).max() <= 1


def test_borders_are_exact_but_for_ties() -> None:
    """QUANTIZE, and DEQUANTIZE back."""
    writer, (scale, zero) = Writer(), UNITS["x"]
    x = writer.tensor("x", (64,))
    q = writer.tensor("q", (64,), "int8", scale=scale, zero=zero)
    y = writer.tensor("y", (64,))
    writer.operator("QUANTIZE", (x,), (q,))
    writer.operator("DEQUANTIZE", (q,), (y,))
    data, values = writer.write((x,), (y,)), [3 * floats(1, 64)]
    np.testing.assert_allclose(ours(data, values)[0], litert(data, values)[0], rtol=1e-6)


@pytest.mark.parametrize(
    "form", [{}, {"time_major": True}, {"clip": 0.7}, {"coupled": True}, {"quantised": True}]
)
def test_sequences_are_what_litert_computes_from_a_state_of_zero(form: dict[str, Any]) -> None:
    """In float within 1e-5; hybrid kernels quantise their inputs as well, within 2 %."""
    data, shape = lstm_model(**form)
    x = [2 * floats(8, *shape)]
    (found,), (want,) = ours(data, x), litert(data, x)
    assert np.abs(want).max() > 0.3
    assert np.abs(found - want).max() <= (0.02 if form.get("quantised") else 1e-5)


def test_sequences_in_integers_differ_by_one_at_most() -> None:
    """As read, and on the chip; in 2 % of the elements, counted over many inputs."""
    data, shape = integer_lstm_model()
    prepared, random, apart = prepare(tflite_file.read(data)), np.random.default_rng(0), []
    for _ in range(20):
        x = random.integers(-128, 128, shape).astype(np.int8)
        (want,) = litert(data, [x])
        assert want.std() > 20
        for found in (ours(data, [x])[0], run(prepared, {"x": x})["y"]):
            apart.append(np.abs(found.astype(int) - want.astype(int)))
    assert np.max(apart) <= 1 and np.mean(apart) < 0.03


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("fused", [0, 1, 3])
@pytest.mark.parametrize("form", ["float", "hybrid"])
def test_filters_are_what_litert_computes_from_a_state_of_zero(
    form: str, fused: int, rank: int
) -> None:
    """In float within 1e-5; hybrid kernels quantise their inputs as well, within 2 %."""
    data, shape = svdf_model(form, rank, fused)
    x = [floats(8, *shape)]
    (found,), (want,) = ours(data, x), litert(data, x)
    assert np.abs(want).max() > 0.1
    assert np.abs(found - want).max() <= (0.02 if form == "hybrid" else 1e-5) * np.abs(want).max()


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("zero", [-128, 5])
def test_filters_in_integers_differ_by_one_at_most(zero: int, rank: int) -> None:
    """And that rarely; the type clamps, not RELU, which begins where its zero point is."""
    data, shape = svdf_model("int8", rank, 1, zero)
    random, apart = np.random.default_rng(9), []
    for _ in range(60):
        x = [random.integers(-128, 128, shape).astype(np.int8)]
        (found,), (want,) = ours(data, x), litert(data, x)
        apart.append(np.abs(found.astype(int) - want.astype(int)))
        assert want.std() > 10
    assert np.max(apart) <= 1 and np.mean(apart) < 0.01
