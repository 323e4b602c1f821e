# SPDX-License-Identifier: Apache-2.0
"""Networks in reals of 16 and 64 bits run on the chip as those in 32 do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, Target
from npu.graph.importers import read
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.planner.build_plan import CompileOptions, build_plan
from tests.forms import sample
from tests.needs import needs

needs("graphs")

import onnx
from onnx import TensorProto, numpy_helper

from npu.runtime.plan import Plan
from tessera.golden_chip import run_on_golden
from tests.python.importers.quantised_networks import NETWORKS, inputs

OTHERS = {"float16": TensorProto.FLOAT16, "float64": TensorProto.DOUBLE}
FIRST = ("residual", "dense", "clip")
# Scales of Resize are float32 in every network, and onnxruntime has no LSTM in float64.
NAMES = [*FIRST, *sorted({*NETWORKS} - {*FIRST, "resize", "lstm"})]


def in_reals(model: Any, element: int) -> Any:  # noqa: ANN401
    """Return a network with other reals."""
    made = onnx.ModelProto.FromString(model.SerializeToString())
    for one in made.graph.initializer:
        if one.data_type == TensorProto.FLOAT:
            data = numpy_helper.to_array(one)
            if element == TensorProto.BFLOAT16:
                bits = data.view(np.uint32) >> 16
                one.CopyFrom(TensorProto(name=one.name, dims=data.shape, data_type=element))
                one.raw_data = bits.astype(np.uint16).tobytes()
            else:
                dtype = onnx.helper.tensor_dtype_to_np_dtype(element)
                one.CopyFrom(numpy_helper.from_array(data.astype(dtype), one.name))
    for one in (*made.graph.input, *made.graph.output):
        if one.type.tensor_type.elem_type == TensorProto.FLOAT:
            one.type.tensor_type.elem_type = element
    for node in made.graph.node:
        if node.op_type == "Cast" and node.attribute[0].i == TensorProto.FLOAT:
            node.attribute[0].i = element
    del made.graph.value_info[:]
    return made


def built(model: Any, dtype: str = "float32") -> tuple[Plan, Array]:  # noqa: ANN401
    """Return the plan of a network, and an input."""
    shape = [one.dim_value for one in model.graph.input[0].type.tensor_type.shape.dim]
    samples = np.stack(list(inputs(shape, 16))).astype(dtype)
    return build_plan(model, CompileOptions(calibrate={"x": samples})).plan, next(
        inputs(shape, 1, 5)
    ).astype(dtype)


def on_chip(graph: Graph) -> Counter[str]:
    """Count operations of the chip by kind."""
    placed = [one for one in graph.operations if one.place and one.place.target == Target.NPU]
    return Counter(one.kind for one in placed)


@pytest.mark.parametrize("dtype", OTHERS)
@pytest.mark.parametrize("name", sample(NAMES, 3))
def test_a_network_in_other_reals(name: str, dtype: str) -> None:
    """The same operations on the chip, results in the type of the file, as near as those of 32."""
    model = NETWORKS[name]()
    plan, x = built(in_reals(model, OTHERS[dtype]), dtype)
    plain, _ = built(model)
    wanted = evaluate(read(model), {"x": x.astype(np.float32)})
    (exact,) = wanted.values()
    (found,) = run_on_golden(plan, {"x": x}).outputs.values()
    (other,) = run_on_golden(plain, {"x": x.astype(np.float32)}).outputs.values()
    assert found.dtype == dtype
    assert on_chip(plan.graph)
    if name != "transformer":  # half the digits of the numbers that make a Gelu
        assert on_chip(plan.graph) == on_chip(plain.graph)
    largest = np.abs(exact).max()
    lost, before = (np.abs(one.astype(np.float64) - exact).max() for one in (found, other))
    assert lost <= 1.2 * before + 0.01 * largest


def test_bfloat16_is_held_in_float32() -> None:
    """Its weights, inputs and outputs."""
    model = in_reals(NETWORKS["dense"](), TensorProto.BFLOAT16)
    plan, x = built(model)
    (found,) = run_on_golden(plan, {"x": x}).outputs.values()
    (exact,) = evaluate(read(NETWORKS["dense"]()), {"x": x}).values()
    assert found.dtype == np.float32
    assert on_chip(plan.graph)["matmul"] == 2
    assert np.abs(found - exact).max() <= 0.04 * np.abs(exact).max()


def test_inputs_and_outputs_keep_their_types_and_what_is_between_does_not() -> None:
    """But what only the host's evaluator knows."""
    nodes = [
        onnx.helper.make_node("Relu", ["x"], ["a"]),
        onnx.helper.make_node("CumSum", ["a", "axis"], ["b"]),
        onnx.helper.make_node("Add", ["b", "c"], ["y"]),
    ]
    graph = onnx.helper.make_graph(
        nodes,
        "net",
        [onnx.helper.make_tensor_value_info("x", TensorProto.DOUBLE, (2, 3))],
        [onnx.helper.make_tensor_value_info(name, TensorProto.DOUBLE, (2, 3)) for name in "ya"],
        [
            numpy_helper.from_array(np.array(1), "axis"),
            numpy_helper.from_array(np.array([-1e300, 1.0, np.inf]), "c"),
        ],
    )
    sets = [onnx.helper.make_opsetid("", 21)]
    after = canonicalise(read(onnx.helper.make_model(graph, opset_imports=sets, ir_version=10)))
    for one in after.operations:
        kinds = {after.type(name).element for name in (*one.used, *one.outputs)}
        assert one.kind in ("cast", "host") or Element.F64 not in kinds, one
    x = np.array([[1.0, -2.0, 3.0], [4.0, 5.0, 6.0]])
    found = evaluate(after, {"x": x})
    assert {found[name].dtype for name in "ya"} == {np.dtype(np.float64)}
    np.testing.assert_array_equal(found["a"], np.maximum(x, 0))
    least = -float(np.finfo(np.float32).max)
    np.testing.assert_array_equal(found["y"][:, 1:], [[2, np.inf], [10, np.inf]])
    assert (found["y"][:, 0] == least).all()
