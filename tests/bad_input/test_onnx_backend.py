# SPDX-License-Identifier: Apache-2.0
"""What the backend of ONNX refuses: one line that says what was given and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import onnx
from onnx import TensorProto, helper

from npu.graph.form import GraphError
from tessera import onnx_backend


def _model() -> Any:  # noqa: ANN401
    """Return y = relu(x)."""
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "net",
        [value("x", TensorProto.FLOAT, (2, 16))],
        [value("y", TensorProto.FLOAT, (2, 16))],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _dangling() -> Any:  # noqa: ANN401
    model = _model()
    model.graph.node[0].input[0] = "nowhere"
    return model


NODE = helper.make_node("Relu", ["x"], ["y"])
X = np.zeros((2, 16), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: onnx_backend.prepare("net.onnx"), "model: given str, allowed onnx.ModelProto"),
        (lambda: onnx_backend.prepare(b""), "model: given bytes, allowed onnx.ModelProto"),
        (lambda: onnx_backend.prepare(onnx.ModelProto()), "model: the checker of onnx refuses it"),
        (lambda: onnx_backend.prepare(_dangling()), "model: the checker of onnx refuses it"),
        (lambda: onnx_backend.prepare(_model(), "GPU"), "device: given 'GPU', allowed CPU, NPU"),
        (lambda: onnx_backend.prepare(_model(), speed=3), "prepare: given 'speed', allowed calib"),
        (lambda: onnx_backend.prepare(_model()).run([X, X]), "inputs: given 2, allowed 1"),
        (lambda: onnx_backend.prepare(_model()).run({"z": X}), "input 'z': allowed x"),
        (lambda: onnx_backend.prepare(_model()).run([X], fast=1), "run: given fast, allowed"),
        (lambda: onnx_backend.run_node(NODE, [X, X]), "inputs: given 2, allowed 1"),
        (lambda: onnx_backend.run_node(NODE, [X], "GPU"), "device: given 'GPU', allowed CPU, NPU"),
    ],
)
def test_calls_that_make_no_sense(call: Callable[[], object], message: str) -> None:
    """Each is a GraphError that says so."""
    with pytest.raises(GraphError) as caught:
        call()
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_what_the_chip_cannot_take_goes_to_the_host() -> None:
    """With the reason."""
    rep = onnx_backend.prepare(_model(), "NPU")
    rep.run([np.full((2, 16), np.nan, np.float32)])
    assert rep.reason.startswith("samples of input 'x': given nan at [0, 0, 0]"), rep.reason
    assert rep.report is None


@pytest.mark.parametrize("device", onnx_backend.DEVICES)
@pytest.mark.parametrize("x", [np.zeros((3, 16), np.float32), np.zeros((2, 16), complex)])
def test_what_the_model_does_not_take_is_refused(x: Any, device: str) -> None:  # noqa: ANN401
    """Another shape, and another type."""
    with pytest.raises(GraphError, match=r"^onnxruntime: ") as caught:
        onnx_backend.prepare(_model(), device).run([x])
    assert "\n" not in str(caught.value)
