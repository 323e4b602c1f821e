# SPDX-License-Identifier: Apache-2.0
"""The backend of ONNX: a sample of the suite on both devices, and what it promises.

The whole suite is in tests/suites/test_onnx_suite.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnx.backend.base import Backend

from dev import onnx_suite_page
from dev.onnx_suite import ChipResult, on_chip, suite
from tessera import onnx_backend

SAMPLE = {
    "test_add_bcast": "chip",
    "test_attention_4d_causal": "chip",
    "test_basic_conv_with_padding": "chip",
    "test_batchnorm_example": "chip",
    "test_cast_FLOAT_to_BFLOAT16": "host",
    "test_det_2d": "host",
    "test_flexattention_fp16_expanded_ver26": "chip",
    "test_layer_normalization_4d_axis1": "chip",
    "test_log": "host",
    "test_matmulinteger": "chip",
    "test_maxpool_2d_pads": "chip",
    "test_qlinearconv": "chip",
    "test_qlinearmatmul_2D_int8_float32": "chip",
    "test_rotary_embedding": "chip",
    "test_softmax_axis_2": "chip",
    "test_strnormalizer_nostopwords_nochangecase": "host",
}


def _dense(weights: np.ndarray | None = None) -> Any:  # noqa: ANN401
    """Return y = relu(x w), w a parameter among the inputs unless its values are given."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 32))]
    initialisers = []
    if weights is None:
        inputs.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, (8, 32, 1, 1)))
    else:
        initialisers.append(numpy_helper.from_array(weights, "w"))
    nodes = [
        helper.make_node("Reshape", ["x", "image"], ["i"]),
        helper.make_node("Conv", ["i", "w"], ["c"]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    shape = numpy_helper.from_array(np.array([4, 32, 1, 1]), "image")
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, (4, 8, 1, 1))
    graph = helper.make_graph(nodes, "dense", inputs, [output], [shape, *initialisers])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _values(seed: int, *shape: int) -> Any:  # noqa: ANN401
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.fixture(scope="module")
def results() -> dict[str, ChipResult]:
    """Return what the sample gives on device NPU."""
    return {case.name: on_chip(case) for case in suite("node") if case.name in SAMPLE}


def test_the_sample_runs_where_it_can_and_is_right(results: dict[str, ChipResult]) -> None:
    """Floats within 2 % of the largest output, integers at most one apart."""
    assert {name: "host" if one.reason else "chip" for name, one in results.items()} == SAMPLE
    for one in results.values():
        assert one.alike, one
        assert one.steps <= 1 if one.integers else one.error <= 0.02, one


def test_the_page_has_the_errors_of_the_sample(results: dict[str, ChipResult]) -> None:
    """The page is of this tree, as far as the sample can tell."""
    page = onnx_suite_page.PAGE.read_text(encoding="utf-8").splitlines()
    made = onnx_suite_page.text({"node": list(results.values())}).splitlines()
    rows = [line for line in made if line.startswith("| `")]
    assert len(rows) == sum(where == "chip" for where in SAMPLE.values())
    for row in rows:
        name = row.split("`")[1]
        (line,) = [line for line in page if line.startswith(f"| `{name}` ")]
        assert onnx_suite_page.differences(line, row) == []


def test_device_cpu_is_onnxruntime() -> None:
    """Bit for bit, and it says so."""
    model, inputs = _dense(), [_values(1, 4, 32), _values(2, 8, 32, 1, 1)]
    rep = onnx_backend.prepare(model)
    (found,) = rep.run(inputs)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    (wanted,) = session.run(None, dict(zip(("x", "w"), inputs, strict=True)))
    np.testing.assert_array_equal(found, wanted)
    assert (rep.reason, rep.report) == ("device CPU", None)


def test_parameters_among_the_inputs_are_bound_and_bound_again() -> None:
    """Other weights are another program; other data are not."""
    rep = onnx_backend.prepare(_dense(), "NPU")
    x, first, second = _values(1, 4, 32), _values(2, 8, 32, 1, 1), _values(3, 8, 32, 1, 1)
    for weights in (first, second):
        (found,) = rep.run([x, weights])
        wanted = np.maximum(x @ weights[:, :, 0, 0].T, 0)[..., None, None]
        assert rep.reason == ""
        assert np.abs(found - wanted).max() <= 0.02 * wanted.max()
    report = rep.report
    rep.run([0.5 * x, second])
    assert rep.report == report
    assert report is not None
    assert any(one.kind == "conv" and one.segment == 0 for one in report.operations)


def test_what_loses_too_much_runs_on_the_host() -> None:
    """The reason says how much; a wider tolerance lets it run on the chip."""
    model = _dense(_values(2, 8, 32, 1, 1))
    strict = onnx_backend.prepare(model, "NPU", tolerance=1e-4)
    (exact,) = strict.run([_values(1, 4, 32)])
    assert strict.reason.startswith("its integers lose ")
    assert strict.error is not None
    assert 1e-4 < strict.error < 0.02
    wide = onnx_backend.prepare(model, "NPU", calibrate={"x": _values(5, 64, 4, 32)})
    (found,) = wide.run([_values(1, 4, 32)])
    assert wide.reason == ""
    assert 0 < np.abs(found - exact).max() <= 0.04 * exact.max()


def test_inputs_go_by_name_too() -> None:
    """As a dictionary, or one array alone."""
    x = _values(1, 4, 32)
    rep = onnx_backend.prepare(_dense(_values(2, 8, 32, 1, 1)), "NPU")
    (first,), (second,), (third,) = rep.run({"x": x}), rep.run([x]), rep.run(x)
    np.testing.assert_array_equal(first, second)
    np.testing.assert_array_equal(first, third)


def test_a_node_runs_by_itself() -> None:
    """With its outputs inferred, or told."""
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    a, b = _values(1, 8, 16), _values(2, 16, 4)
    for device in onnx_backend.DEVICES:
        for info in (None, [(np.float32, (8, 4))]):
            (found,) = onnx_backend.run_node(node, [a, b], device, outputs_info=info)
            assert np.abs(found - a @ b).max() <= 0.02 * np.abs(a @ b).max()
    (found,) = onnx_backend.run_model(_dense(), [_values(1, 4, 32), _values(2, 8, 32, 1, 1)])
    assert found.shape == (4, 8, 1, 1)


def test_it_is_a_backend() -> None:
    """With the calls that ONNX has for one."""
    assert issubclass(onnx_backend.TesseraBackend, Backend)
    assert onnx_backend.supports_device("NPU")
    assert not onnx_backend.supports_device("CUDA")
    assert onnx_backend.is_compatible(_dense(), "NPU")
    assert not onnx_backend.is_compatible("model", "NPU")
    assert isinstance(onnx.ModelProto(), onnx.ModelProto)
