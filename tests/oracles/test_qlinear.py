# SPDX-License-Identifier: Apache-2.0
"""Random QLinearConv and QLinearMatMul, from file to integers, against onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.forms import FULL
from tests.needs import needs

needs("oracles")

import onnx
import onnxruntime

from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.form import Array
from npu.graph.importers import read
from npu.graph.prepare import prepare
from tests.python.compiler.network_runs import run_compiled

CASES, COMPILED = 60 if FULL else 20, 3
"""Random models of an operator, and how many of them the instruction model executes."""
MOST = 0.001
"""Of the elements may be 1 apart."""
Given = Mapping[str, Any]


def _unit(random: np.random.Generator, scale: float, dtype: type) -> tuple[Array, Array]:
    """Return a scale near one and any zero point, of the rank 0."""
    edge = np.iinfo(dtype)
    value = np.float32(scale * random.uniform(0.7, 1.4))
    return np.asarray(value), np.asarray(random.integers(edge.min, edge.max + 1), dtype)


def _full(random: np.random.Generator, shape: tuple[int, ...], dtype: type) -> Array:
    edge = np.iinfo(dtype)
    return random.integers(edge.min, edge.max + 1, shape).astype(dtype)


def _conv(random: np.random.Generator, dtype: type) -> tuple[Given, Given]:
    """Weights have 7 bits, because onnxruntime saturates sums of pairs on some machines."""
    groups = int(random.integers(1, 4))
    channels, filters = groups * int(random.integers(1, 9)), groups * int(random.integers(1, 9))
    height, width = (int(one) for one in random.integers(5, 14, 2))
    x_scale, x_zero = _unit(random, 0.03, dtype)
    scales = random.uniform(0.004, 0.03, filters).astype(np.float32)
    natural = float(x_scale) * float(scales.mean()) * 74 * 37 * np.sqrt(9 * channels / groups) / 40
    y_scale, y_zero = _unit(random, natural, dtype)
    given = {
        "x": _full(random, (1, channels, height, width), dtype),
        "x_scale": x_scale,
        "x_zero": x_zero,
        "w": random.integers(-63, 64, (filters, channels // groups, 3, 3)).astype(np.int8),
        "w_scale": scales,
        "w_zero": np.zeros(filters, np.int8),
        "y_scale": y_scale,
        "y_zero": y_zero,
        "bias": random.integers(-2000, 2000, filters).astype(np.int32),
    }
    strides, pads = random.integers(1, 3, 2).tolist(), random.integers(0, 3, 4).tolist()
    return given, {"group": groups, "strides": strides, "pads": pads}


def _matmul(random: np.random.Generator, dtype: type) -> tuple[Given, Given]:
    rows, inner, columns = (int(one) for one in random.integers((1, 8, 4), (13, 200, 41)))
    (a_scale, a_zero), (b_scale, _) = _unit(random, 0.03, dtype), _unit(random, 0.03, dtype)
    natural = float(a_scale) * float(b_scale) * 74 * 37 * np.sqrt(inner) / 40
    y_scale, y_zero = _unit(random, natural, dtype)
    given = {
        "x": _full(random, (rows, inner), dtype),
        "x_scale": a_scale,
        "x_zero": a_zero,
        "w": random.integers(-63, 64, (inner, columns)).astype(np.int8),
        "w_scale": b_scale,
        "w_zero": np.zeros((), np.int8),
        "y_scale": y_scale,
        "y_zero": y_zero,
    }
    return given, {}


OPERATORS: dict[str, Callable[[np.random.Generator, type], tuple[Given, Given]]] = {
    "QLinearConv": _conv,
    "QLinearMatMul": _matmul,
}


def _model(operator: str, given: Given, attributes: Given) -> bytes:
    """Return a file whose only input is x."""
    helper, kind = onnx.helper, onnx.helper.np_dtype_to_tensor_dtype(given["x"].dtype)
    node = helper.make_node(operator, list(given), ["y"], **attributes)
    x = helper.make_tensor_value_info("x", kind, given["x"].shape)
    y = helper.make_tensor_value_info("y", kind, [None] * given["x"].ndim)
    held = [onnx.numpy_helper.from_array(one, name) for name, one in given.items() if name != "x"]
    graph = helper.make_graph([node], "g", [x], [y], held)
    opset = [helper.make_opsetid("", 13)]
    made = onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=opset, ir_version=10)
    )
    return bytes(made.SerializeToString())


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("operator", OPERATORS)
def test_integers_are_one_apart_at_most_and_few_of_them(
    operator: str, dtype: type, tmp_path: Path
) -> None:
    """Of shapes, scales and zero points by seed."""
    differ, elements = 0, 0
    for seed in range(CASES):
        random = np.random.default_rng([seed, *operator.encode()])
        given, attributes = OPERATORS[operator](random, dtype)
        data = _model(operator, given, attributes)
        session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
        want = np.asarray(session.run(None, {"x": given["x"]})[0])
        path = tmp_path / f"{seed}.onnx"
        path.write_bytes(data)
        graph = prepare(read(path))
        inputs = {graph.inputs[0]: given["x"]}
        found = run(graph, inputs)[graph.outputs[0]]
        if seed < COMPILED:
            network = compile_network(graph)
            assert network.segments, "nothing runs on the chip"
            outputs = run_compiled(network, inputs).outputs
            np.testing.assert_array_equal(outputs[graph.outputs[0]], found)
        assert found.shape == want.shape and found.dtype == want.dtype
        apart = np.abs(found.astype(np.int64) - want.astype(np.int64))
        assert apart.max() <= 1, f"seed {seed}"
        differ, elements = differ + int(np.count_nonzero(apart)), elements + apart.size
    assert differ <= MOST * elements, f"{differ / elements:.4%} of {elements} elements"
