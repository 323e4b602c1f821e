# SPDX-License-Identifier: Apache-2.0
"""Operators of the first operator sets of ONNX are read as those of later ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, GraphError
from npu.graph.importers import read
from npu.graph.verify import verify
from tests.needs import needs

needs("graphs")

import onnxruntime


def random(*shape: int) -> Array:
    """Return seeded numbers above 0."""
    return np.random.default_rng(sum(shape)).random(shape, np.float32) + np.float32(0.1)


def model(
    operator: str,
    given: dict[str, Array],
    held: dict[str, Array],
    version: int,
    outputs: int = 1,
    **attributes: Any,  # noqa: ANN401
) -> onnx.ModelProto:
    """Return a model of one operator."""
    names = [*given, *held]
    results = [f"y{index}" for index in range(outputs)]
    node = helper.make_node(operator, names, results, "it", **attributes)
    kinds = {
        name: helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in (given | held).items()
    }
    weights = [onnx.numpy_helper.from_array(value, name) for name, value in held.items()]
    logic = operator in ("And", "Or", "Xor", "Equal", "Greater", "Less")
    element = TensorProto.BOOL if logic else TensorProto.FLOAT
    made = [helper.make_tensor_value_info(name, element, None) for name in results]
    graph = helper.make_graph([node], "graph", list(kinds.values()), made, weights)
    imports = [helper.make_opsetid("", version)]
    return helper.make_model(graph, opset_imports=imports, ir_version=3)


def ours(made: onnx.ModelProto, given: dict[str, Array]) -> list[Array]:
    """Return what the graph of a model gives."""
    graph = read(made)
    verify(graph)
    return list(evaluate(graph, given).values())


def wanted(made: onnx.ModelProto, given: dict[str, Array]) -> list[Array]:
    """Return what onnxruntime makes of a model."""
    session = onnxruntime.InferenceSession(made.SerializeToString())
    return list(session.run(None, given))


@pytest.mark.parametrize("version", [1, 5])
@pytest.mark.parametrize(
    "operator",
    [one.name for one in onnx.defs.get_all_schemas_with_history()
     if one.since_version == 1 and "consumed_inputs" in one.attributes and one.name != "Reshape"],
)  # fmt: skip
def test_what_a_result_may_overwrite_says_nothing(operator: str, version: int) -> None:
    """Every operator that could say it computes what its sixth version does."""
    two = operator in ("Add", "Sub", "Mul", "Div", "Max", "Min", "Mean", "Sum", "PRelu")
    given = {"a": random(2, 3, 4, 5)} | ({"b": random(2, 3, 4, 5)} if two else {})
    few = {"BatchNormalization": 4, "InstanceNormalization": 2}.get(operator, 0)
    held = {f"c{index}": random(3) for index in range(few)}
    if operator == "PRelu":
        held = {"c": random(3)}
        del given["b"]
    more: dict[str, Any] = {"min": 0.2, "max": 0.7} if operator == "Clip" else {}
    if operator in ("BatchNormalization", "Dropout"):
        more["is_test"] = 1
    old = model(operator, given, held, version, consumed_inputs=[0] * 5, **more)
    if operator == "PRelu":
        held = {"c": held["c"].reshape(3, 1, 1)}
    late = model(operator, given, held, 7, **{k: v for k, v in more.items() if k != "is_test"})
    for found, want in zip(ours(old, given), wanted(late, given), strict=True):
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=1e-6)


X = random(2, 3, 4, 6)
FORMS: dict[str, tuple[str, dict[str, Array], dict[str, Any], int, Array]] = {
    "concat": ("Concat", {}, {}, 1, X),
    "pad": (
        *("Pad", {}, {"paddings": [0, 0, 1, 0, 0, 0, 0, 2], "value": 1.5}, 1),
        np.pad(X, ((0, 0), (0, 0), (1, 0), (0, 2)), constant_values=1.5),
    ),
    "cast": ("Cast", {}, {"to": "FLOAT"}, 5, X),
    "upsample": (
        *("Upsample", {}, {"height_scale": 2.0, "width_scale": 3.0}, 6),
        X.repeat(2, 2).repeat(3, 3),
    ),
    "reshape": (
        *("Reshape", {}, {"shape": [0, -1], "consumed_inputs": [0]}, 4),
        X.reshape(2, -1),
    ),
    "tile": (
        "Tile",
        {"times": np.array(2, np.float32), "axis": np.array(1, np.float32)},
        {},
        1,
        np.tile(X, (1, 2, 1, 1)),
    ),
    "global pool": (
        *("GlobalLpPool", {}, {"p": 2.0}, 1),
        np.sqrt(np.square(X).sum((2, 3), keepdims=True)),
    ),
    "less": ("Less", {"b": random(3, 4)}, {"broadcast": 1, "axis": 1}, 4, X),
}


@pytest.mark.parametrize("name", FORMS)
def test_forms_are_those_of_later_sets(name: str) -> None:
    """Names and types of attributes, and what stands in an input."""
    operator, held, attributes, version, want = FORMS[name]
    if name == "less":
        want = held["b"][:, :, None] > X
    (found,) = ours(model(operator, {"x": X}, held, version, **attributes), {"x": X})
    np.testing.assert_allclose(found, want, rtol=1e-6)


def test_parts_come_from_an_input() -> None:
    """Split of the first set."""
    held = {"sizes": np.array([1, 3, 2], np.float32)}
    found = ours(model("Split", {"x": X}, held, 1, 3, axis=3), {"x": X})
    for one, want in zip(found, np.split(X, [1, 4], 3), strict=True):
        np.testing.assert_array_equal(one, want)


def test_what_decides_a_shape_is_constant() -> None:
    """Or refused by name."""
    given = {"x": X, "times": np.array(2, np.float32), "axis": np.array(1, np.float32)}
    with pytest.raises(GraphError, match=r"'it' \(Tile\): tiles 'times' is not constant"):
        read(model("Tile", given, {}, 1))
    with pytest.raises(GraphError, match=r"type 'FLOOT', allowed names of types of ONNX"):
        read(model("Cast", {"x": X}, {}, 1, to="FLOOT"))
