# SPDX-License-Identifier: Apache-2.0
"""What onnxruntime's quantiser writes compiles, and the chip makes of it what onnxruntime makes."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Array
from npu.graph.importers import read
from npu.planner.build_plan import CompileOptions, build_plan
from tests.forms import sample
from tests.needs import needs

needs("graphs")

import onnxruntime

from tessera.golden_chip import run_on_golden
from tests.python.importers.quantised_networks import FORMATS, NETWORKS, inputs, quantised

FIRST = ("residual", "squeeze and excite", "pad", "lstm", "products", "concat")
NAMES = [*FIRST, *(name for name in NETWORKS if name not in FIRST)]
EVERY = [
    *((name, "QOperator", False, "u8s8") for name in FIRST),
    *((name, "QDQ", True, "u8u8") for name in FIRST[:2]),
]
EVERY += [
    one
    for one in product(NAMES, FORMATS, (False, True), ("s8s8", "u8s8", "u8u8"))
    if one not in EVERY
]
LOSS = 0.01
"""Of the largest output; or a step of it, where that is more."""
HOST = {"lstm": "LSTM", "resize": "Resize", "embedding": "QLinearMatMul"}
"""What the host executes."""
STEPS = {"average pool": 2, "transformer": 4}
"""Steps of an output whose way has ties of floats, or softmax and norms in floats."""


def session_of(model: Any) -> Any:  # noqa: ANN401
    """Return onnxruntime, operator by operator: fused it rounds elsewhere."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _allowed(name: str, wanted: Array) -> float:
    values = np.unique(wanted.astype(np.float64))
    step = float(np.diff(values).min()) if values.size > 1 else 0.0
    return max(LOSS * float(np.abs(values).max()), STEPS.get(name, 1) * 1.001 * step)


@pytest.mark.parametrize(("name", "form", "per_channel", "kinds"), sample(EVERY, 8))
def test_a_quantised_network(name: str, form: str, per_channel: bool, kinds: str) -> None:
    """As imported, and compiled."""
    model = quantised(name, form, per_channel, kinds)
    session = session_of(model)
    shape = session.get_inputs()[0].shape
    graph = read(model)
    assert {one["operator"] for one in graph.operations if one.kind == "host"} <= {HOST.get(name)}
    plan = build_plan(
        model, CompileOptions(calibrate={"x": np.stack(list(inputs(shape, 16)))})
    ).plan
    assert plan.segments
    for x in inputs(shape, 3, seed=5):
        (wanted,) = session.run(None, {"x": x})
        for found in (evaluate(graph, {"x": x}), run_on_golden(plan, {"x": x}).outputs):
            (value,) = (found[one] for one in graph.outputs)
            assert value.shape == wanted.shape
            assert np.abs(value - wanted).max() <= _allowed(name, wanted)


@pytest.mark.parametrize(("name", "kinds"), sample(list(product(NAMES, ("s6s8", "u6u8"))), 4))
def test_a_network_with_tensors_of_16_bits(name: str, kinds: str) -> None:
    """Without samples; what the chip would make int8 of is the host's, so that no bit is lost."""
    model = quantised(name, "QDQ", True, kinds)
    session = session_of(model)
    shape = session.get_inputs()[0].shape
    plan = build_plan(model).plan
    for x in inputs(shape, 3, seed=5):
        (wanted,) = session.run(None, {"x": x})
        (found,) = run_on_golden(plan, {"x": x}).outputs.values()
        assert np.abs(found - wanted).max() <= LOSS / 16 * max(1e-6, np.abs(wanted).max())


@pytest.mark.parametrize("name", sample(NAMES, 2))
def test_a_network_that_quantises_as_it_runs(name: str) -> None:
    """The host does it: its scales follow from values."""
    model = quantised(name, "dynamic", True)
    session = session_of(model)
    shape = session.get_inputs()[0].shape
    graph = read(model)
    for x in inputs(shape, 2, seed=5):
        (wanted,) = session.run(None, {"x": x})
        found = evaluate(graph, {"x": x})[graph.outputs[0]]
        assert np.abs(found - wanted).max() <= LOSS * np.abs(wanted).max()
