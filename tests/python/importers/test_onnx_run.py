# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX, imported and evaluated, are what onnxruntime makes of them, in every form."""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

import onnx
import onnxruntime
from onnx import helper, numpy_helper

from npu.graph.evaluate import evaluate
from npu.graph.form import Graph, GraphError
from npu.graph.host_evaluators import MissingError
from npu.graph.importers import onnx_run, read
from npu.graph.importers.onnx_run import runner, spoken
from tests.forms import sample
from tests.python.importers.onnx_form_grids import forms
from tests.python.importers.onnx_forms import OperatorForm, form, real

TOLERANCE = 1e-3
"""Of the largest element: where floats are added up in another order."""


def _drawn() -> list[OperatorForm]:
    """Return all forms, or a sample with every operator in it."""
    every = list(forms())
    random.Random(1).shuffle(every)
    counts: Counter[str] = Counter()
    turns = []
    for one in every:
        counts[one.node.op_type] += 1
        turns.append(counts[one.node.op_type])
    ordered = sorted(zip(turns, range(len(every)), strict=True))
    return sample([every[index] for _, index in ordered], 200)


def expected_of(one: OperatorForm) -> list[Any] | None:
    """Return what onnxruntime makes of a form as it comes, None if it refuses it."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            one.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        return list(session.run(None, one.values))
    except Exception:
        return None


def imported(one: OperatorForm) -> Graph:
    """Return a form as a graph: what stands behind its first input is constant."""
    _, *more = one.values
    return read(one.model, constants={name: one.values[name] for name in more})


def alike(found: Any, wanted: Any) -> bool:  # noqa: ANN401
    """Say whether a result is another one in shape, type and, nearly, in value."""
    if isinstance(wanted, list) or isinstance(found, list):
        both = isinstance(wanted, list) and isinstance(found, list) and len(found) == len(wanted)
        return both and all(map(alike, found, wanted))
    if wanted is None or found is None:
        return wanted is found
    found, wanted = np.asarray(found), np.asarray(wanted)
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return False
    if wanted.dtype.kind not in "fiuV":
        return bool(np.array_equal(found, wanted))
    a, b = (one.astype(np.float32).astype(np.float64) for one in (found, wanted))
    finite = np.abs(b[np.isfinite(b)]).max(initial=0.0)
    step = 0.05 if wanted.dtype.itemsize < 4 and wanted.dtype.kind in "fV" else TOLERANCE
    near = 1.0 if wanted.dtype.kind in "iu" else step * finite + 1e-6
    return bool(np.allclose(a, b, rtol=0, atol=near, equal_nan=True))


def test_every_form_is_what_onnxruntime_makes_of_it() -> None:
    """Mapped or executed by the host."""
    wrong, refused, compared = [], set(), 0
    for one in _drawn():
        wanted = expected_of(one)
        if wanted is None:
            continue
        try:
            graph = imported(one)
            found = evaluate(graph, {name: one.values[name] for name in graph.inputs})
        except GraphError:
            refused.add(one.node.op_type)
            continue
        compared += 1
        if not all(map(alike, [found[name] for name in graph.outputs], wanted)):
            wrong.append(str(one))
    assert wrong == []
    assert refused <= {*SHAPES_OF_VALUES, *SHAPES_OF_ITS_OWN}
    assert compared > 100


SHAPES_OF_VALUES = (
    "Compress",
    "ConstantOfShape",
    "NonMaxSuppression",
    "NonZero",
    "Range",
    "Unique",
)
SHAPES_OF_ITS_OWN = ("AveragePool", "LpPool", "MaxPool", "MeanVarianceNormalization", "STFT")
"""Where onnxruntime has other shapes than the standard, or none are inferred."""
WRONG: dict[str, tuple[str, str, dict[str, Any]]] = {
    "lengths of sequences": ("LSTM", "xxx-x", {"hidden_size": 3}),
    "bounds of an LSTM": ("LSTM", "xxx", {"hidden_size": 3, "clip": 0.3}),
    "functions of a GRU": ("GRU", "xxx", {"hidden_size": 3, "activations": ["Sigmoid", "Relu"]}),
    "a bias of groups": ("ConvTranspose", "xxx", {"group": 4}),
    "squares of neighbours": ("LRN", "x", {"size": 5, "alpha": 0.1}),
    "rows of several axes": ("LogSoftmax", "x", {"axis": 1}),
    "the one of rows": ("Hardmax", "x", {"axis": 1}),
    "sums of magnitudes": ("LpNormalization", "x", {"p": 1}),
    "rounded up": (
        "MaxPool",
        "x",
        {"kernel_shape": [3], "ceil_mode": 1, "pads": [1, 1], "strides": [2]},
    ),
}
"""Forms that the reference evaluator of onnx has wrong."""


def _one(name: str) -> OperatorForm:
    operator, given, attributes = WRONG[name]
    gates = {"LSTM": 4, "GRU": 3}.get(operator, 0)
    inputs: list[Any] = [real(2, 3, 4, 5)]
    if gates:
        shapes = ((3, 2, 4), (1, gates * 3, 4), (1, gates * 3, 3))
        inputs = [real(*shape, seed=gates) for shape in shapes]
        inputs += [None, np.array([3, 1], np.int32)][: len(given) - 3]
    if operator == "ConvTranspose":
        inputs = [real(1, 4, 5, 5), real(4, 1, 3, 3), real(4)]
    if operator == "MaxPool":
        inputs = [real(2, 4, 9)]
    version = {"LpNormalization": 21, "MaxPool": 21}.get(operator, 11)
    return form(operator, inputs, attributes, version)


@pytest.mark.parametrize("name", WRONG)
def test_what_the_reference_evaluator_has_wrong_is_right_here(name: str) -> None:
    """In onnxruntime; and refused without it, with what to install."""
    one = _one(name)
    (wanted,) = expected_of(one) or [None]
    (found,) = runner(one.model)(one.values)
    assert alike(found, wanted)
    graph = imported(one)
    given = {name: one.values[name] for name in graph.inputs}
    assert alike(evaluate(graph, given)[graph.outputs[0]], wanted)


@pytest.mark.parametrize("name", WRONG)
def test_without_onnxruntime_it_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to install."""
    monkeypatch.setattr(onnx_run, "onnxruntime", None)
    one = _one(name)
    with pytest.raises(MissingError, match=r"takes onnxruntime.* pip install -e .\[graphs\]"):
        runner(one.model)


def test_what_is_listed_the_reference_evaluator_has_right(monkeypatch: pytest.MonkeyPatch) -> None:
    """Form by form, against onnxruntime; an error is no wrong number."""
    listed = []
    for one in _drawn():
        wanted = expected_of(one)
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            patch.setattr(onnx_run, "onnxruntime", None)
            try:
                found = runner(one.model)(one.values)
            except GraphError:
                continue
        listed.append(spoken(one.node, one.model.opset_import[0].version)[0])
        assert wanted is None or all(map(alike, found, wanted)), one
    assert len({*listed}) > 40


def test_what_numpy_does_not_have_takes_the_reference_evaluator() -> None:
    """Elements of less than a byte, and of other floats."""
    x = helper.make_tensor_value_info("x", onnx.TensorProto.BFLOAT16, [2])
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
    node = helper.make_node("Cast", ["x"], ["y"], to=onnx.TensorProto.FLOAT)
    graph = helper.make_graph([node], "cast", [x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    tensor = helper.make_tensor("x", onnx.TensorProto.BFLOAT16, [2], [1.5, -2.0])
    (found,) = runner(model)({"x": numpy_helper.to_array(tensor)})
    np.testing.assert_array_equal(found, np.array([1.5, -2.0], np.float32))
