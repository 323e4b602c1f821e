# SPDX-License-Identifier: Apache-2.0
"""What an ONNX node says is read or refused: no attribute and no input is passed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from npu.graph.build import Builder
from npu.graph.evaluate import evaluate
from npu.graph.importers import read
from tests.needs import needs

needs("graphs")

import onnx
from onnx import helper
from onnx.defs import OpSchema
from onnx.reference import ReferenceEvaluator

from npu.graph.importers import onnx_file, onnx_node
from npu.graph.importers.onnx_node import Node
from npu.graph.importers.unmapped import UnmappedError
from tests.python.importers.graph_node_cases import cases

assert onnx_file.GROUPS, "all mappings are registered"


def schemas() -> Iterator[OpSchema]:
    """Yield the schemas of all mapped operators, of every version."""
    for one in onnx.defs.get_all_schemas_with_history():
        if one.domain in {"", "ai.onnx"} and one.name in onnx_node.MAPPINGS and not one.deprecated:
            yield one


def test_what_says_nothing_is_there_and_little() -> None:
    """Attributes that no mapping must know belong to operators that have them."""
    known = {(one.name, name) for one in schemas() for name in one.attributes}
    listed = {(op, name) for op, names in onnx_node._SAYS_NOTHING.items() for name in names}
    assert listed <= known
    assert len(listed) < len(known) / 10


def _value(attribute: OpSchema.Attribute) -> Any:  # noqa: ANN401
    """Return a value that is not the attribute's default."""
    kinds = OpSchema.AttrType
    values = {kinds.INT: 77, kinds.FLOAT: 7.5, kinds.STRING: "seven"}
    return values.get(attribute.type, [7, 7])


@pytest.mark.parametrize("operator", sorted(onnx_node.MAPPINGS))
def test_a_mapping_that_reads_nothing_refuses_all(
    operator: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each attribute of each version, set by itself, and each input."""
    monkeypatch.setattr(onnx_node, "_SAYS_NOTHING", {})
    for schema in (one for one in schemas() if one.name == operator):
        for name, attribute in schema.attributes.items():
            if attribute.type in {OpSchema.AttrType.GRAPH, OpSchema.AttrType.TENSOR}:
                continue
            proto = helper.make_node(operator, [], ["y"], **{name: _value(attribute)})
            node = Node(Builder("g"), proto, schema.since_version, set())
            with pytest.raises(UnmappedError, match=f"attribute {name} "):
                node.refuse_unread()
            assert node.attributes.get(name) is not None
            node.refuse_unread()
        proto = helper.make_node(operator, ["a"], ["y"])
        node = Node(Builder("g"), proto, schema.since_version, set())
        with pytest.raises(UnmappedError, match="input 0, 'a', is not mapped"):
            node.refuse_unread()
        assert node.input(0) == "a"
        node.refuse_unread()


CHANGES: dict[str, tuple[str, dict[str, Any]]] = {
    "bias of attention's scores": ("test_attention_4d", {"softcap": 2.0, "is_causal": 1}),
    "pixels apart": ("test_basic_conv_without_padding", {"dilations": [2, 2]}),
    "rounded up": ("test_averagepool_2d_default", {"ceil_mode": 1, "strides": [2, 2]}),
    "border counted": ("test_averagepool_2d_pads", {"count_include_pad": 1}),
    "axis": ("test_softmax_example", {"axis": 0}),
    "scaled sum": ("test_gemm_all_attributes", {"alpha": -0.5, "beta": 2.0}),
    "turned": ("test_gemm_transposeA", {"transA": 1, "alpha": 3.0}),
    "slope": ("test_leakyrelu", {"alpha": 0.9}),
    "by tanh": ("test_gelu_default_1", {"approximate": "tanh"}),
    "noise": ("test_batchnorm_example", {"epsilon": 0.5}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_attribute_changes_the_result(name: str) -> None:
    """As the reference evaluator of onnx has it."""
    case, changes = CHANGES[name]
    one = cases()[case]
    source = onnx.ModelProto()
    source.CopyFrom(one.model)
    (node,) = source.graph.node
    kept = [each for each in node.attribute if each.name not in changes]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.extend(helper.make_attribute(*each) for each in changes.items())
    for output in source.graph.output:
        for axis, size in enumerate(output.type.tensor_type.shape.dim):
            size.dim_param = f"size{axis}"
    values = [np.asarray(value) for value in one.data_sets[0][0]]
    inputs = {each.name: value for each, value in zip(source.graph.input, values, strict=True)}
    graph = read(source)
    assert not [each for each in graph.operations if each.kind == "host"]
    found = evaluate(graph, inputs)[graph.outputs[0]]
    (expected, *_) = ReferenceEvaluator(source).run(None, inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    (before, *_) = ReferenceEvaluator(one.model).run(None, inputs)
    assert before.shape != expected.shape or not np.allclose(before, expected, rtol=1e-4)


def _alone(operator: str, version: int, results: int, *inputs: Any, **attributes: Any) -> Any:  # noqa: ANN401
    """Return a model of one node; what stands behind its first input is constant."""
    names = [f"x{index}" if value is not None else "" for index, value in enumerate(inputs)]
    outputs = [f"y{index}" for index in range(results)]
    node = helper.make_node(operator, names, outputs, **attributes)
    weights = [
        onnx.numpy_helper.from_array(value, name)
        for name, value in zip(names[1:], inputs[1:], strict=True)
        if value is not None
    ]
    described = [helper.make_tensor_value_info(one, 1, ()) for one in outputs]
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info("x0", 1, inputs[0].shape)], described, weights
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


def test_what_the_shapes_say_too_is_no_reason_to_refuse() -> None:
    """Operators of before version 7 broadcast, parts are counted, a ratio is for training."""
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    row = np.ones(4, np.float32)
    for model, wanted in (
        (_alone("Add", 6, 1, x, row, broadcast=1), x + row),
        (_alone("Add", 6, 1, x, np.ones(3, np.float32), broadcast=1, axis=0), x + 1),
        (_alone("Gemm", 6, 1, x, np.eye(4, dtype=np.float32), row, broadcast=1), x + row),
        (_alone("Split", 21, 2, x, axis=1, num_outputs=2), x[:, :2]),
        (_alone("Dropout", 13, 1, x, np.array(0.3, np.float32)), x),
        (
            _alone("ReduceSum", 13, 1, x, np.array([1]), noop_with_empty_axes=1, keepdims=0),
            x.sum(1),
        ),
    ):
        graph = read(model)
        assert "host" not in {one.kind for one in graph.operations}, graph.operations
        np.testing.assert_array_equal(evaluate(graph, {"x0": x})[graph.outputs[0]], wanted)
