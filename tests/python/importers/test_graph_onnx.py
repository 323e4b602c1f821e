# SPDX-License-Identifier: Apache-2.0
"""ONNX models become graphs that compute what the suite of onnx expects."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Element, Graph, GraphError
from npu.graph.importers import read
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.verify import verify
from tests.needs import needs

needs("graphs")

import onnx
from onnx.backend.test import loader

helper = onnx.helper
FLOAT = onnx.TensorProto.FLOAT

# Operators of which the chip executes cases of the suite, with how many float32 or integer cases
# import without a host operation besides side results. The softmax of 10,000 counts here.
CHIP = {
    **{"Attention": 38, "LayerNormalization": 19, "RMSNormalization": 19, "AveragePool": 14},
    **{"MaxPool": 13, "Gemm": 11, "Clip": 9, "RotaryEmbedding": 8, "MatMul": 7, "Conv": 6},
    **{"Softmax": 7, "Add": 2, "Sub": 3, "Mul": 3, "Gelu": 4, "Elu": 3, "Selu": 3},
    **{"LeakyRelu": 3, "HardSigmoid": 3, "ThresholdedRelu": 3, "BatchNormalization": 4},
    **{"GlobalAveragePool": 2, "GlobalMaxPool": 2, "Sigmoid": 2, "Tanh": 2, "Softplus": 2},
    **{"Softsign": 2, "SwiGLU": 2, "Neg": 2, "Abs": 1, "Celu": 1, "Erf": 1, "HardSwish": 1},
    **{"Mish": 1, "Relu": 1, "Swish": 1, "QLinearMatMul": 8, "QLinearConv": 1},
    **{"MatMulInteger": 1, "ConvInteger": 2, "QuantizeLinear": 3, "DequantizeLinear": 3},
}
# Inputs of a case that stay inputs; the others are weights, as they are in a network.
ACTIVATIONS = {
    **dict.fromkeys(("Add", "Sub", "Mul", "SwiGLU", "MatMul"), 2),
    "Attention": 3,
}


@cache
def cases() -> list[Any]:
    """Return the single node cases of the suite for the operators above."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = loader.load_model_tests(kind="node")
    return [
        one
        for one in found
        if len(one.model.graph.node) == 1
        and one.model.graph.node[0].op_type in CHIP
        and not one.name.endswith("_expanded")
    ]


def activations(case: Any) -> set[str]:  # noqa: ANN401
    """Return the names of the inputs that stay inputs."""
    names = [one.name for one in case.model.graph.input]
    if case.model.graph.node[0].op_type == "QLinearMatMul":
        return {names[0], names[3]}
    return set(names[: ACTIVATIONS.get(case.model.graph.node[0].op_type, 1)])


def array(value: Any) -> Any:  # noqa: ANN401
    """Return a value of a case as numpy has it."""
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    return np.asarray(value)


def imported(case: Any) -> tuple[Graph, dict[str, Any]] | None:  # noqa: ANN401
    """Return the graph of a case and its inputs; None for types that no graph has."""
    names = [one.name for one in case.model.graph.input]
    values = {
        name: np.asarray(value) for name, value in zip(names, case.data_sets[0][0], strict=True)
    }
    kept = activations(case)
    weights = {name: value for name, value in values.items() if name not in kept}
    try:
        graph = read(case.model, constants=weights)
    except GraphError as error:
        assert "element type" in str(error) or "allowed float32" in str(error), case.name
        return None
    return graph, {name: values[name] for name in graph.inputs}


def on_chip(graph: Graph) -> bool:
    """Say whether the chip has instructions for all operations but side results."""
    wide = any(one.type.element in (Element.F16, Element.F64) for one in graph.tensors.values())
    return not wide and not any(
        (one.kind == "host" and not one["reason"].startswith("side results"))
        or (one.kind == "attention" and one["softcap"])
        for one in graph.operations
    )


@pytest.mark.parametrize("canonical", [False, True])
def test_cases_of_the_suite_compute_what_it_expects(canonical: bool) -> None:
    """Every case that imports is right, before and after canonicalise; counted by operator."""
    counts: Counter[str] = Counter()
    for case in cases():
        found = imported(case)
        if found is None:
            continue
        graph, inputs = found
        verify(graph, file=case.name)
        if canonical:
            graph = canonicalise(graph)
        values = evaluate(graph, inputs)
        outputs = [one.name for one in case.model.graph.output]
        for name, expected in zip(outputs, case.data_sets[0][1], strict=True):
            wanted = array(expected).dtype
            short = wanted.name == "bfloat16"
            assert values[name].dtype == (np.float32 if short else wanted), case.name
            real = values[name].astype(np.float64)
            # The least float stands for a score that is hidden, in onnxruntime.
            real = np.where(real < -1e38, -np.inf, real)
            np.testing.assert_allclose(
                real,
                array(expected).astype(np.float64),
                rtol=2**-6 if short else case.rtol,
                atol=max(case.atol, 1e-6),
                err_msg=case.name,
            )
        counts[case.model.graph.node[0].op_type] += on_chip(graph) and plain(case)
    assert dict(counts) == {**dict.fromkeys(counts, 0), **CHIP}


@pytest.mark.parametrize(("kind", "count"), [("pytorch-converted", 82), ("pytorch-operator", 35)])
def test_what_pytorch_exported_computes_what_it_expects(kind: str, count: int) -> None:
    """All of them, operator set 6; every convolution of one or two dimensions is a conv."""
    every = loader.load_model_tests(kind=kind)
    kinds: Counter[str] = Counter()
    for case in every:
        folder = Path(case.model_dir)
        graph = read(folder / "model.onnx")
        inputs, outputs = (
            [
                onnx.numpy_helper.to_array(onnx.load_tensor(path))
                for path in sorted(folder.glob(f"test_data_set_0/{what}_*.pb"))
            ]
            for what in ("input", "output")
        )
        values = dict(zip(graph.inputs, inputs, strict=True))
        for one in (graph, canonicalise(graph)):
            results = evaluate(one, values)
            for name, expected in zip(one.outputs, outputs, strict=True):
                # Some have numbers of float64 beyond the range of float32, in which all is made.
                with np.errstate(over="ignore"):
                    found, wanted = np.float32(results[name]), np.float32(expected)
                np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-5, err_msg=case.name)
        kinds.update(one.kind for one in canonicalise(graph).operations)
    assert len(every) == count
    assert kinds["conv"] == {82: 19, 35: 1}[count]


def plain(case: Any) -> bool:  # noqa: ANN401
    """Say whether the activations of a case are float32, or integers where that is the point."""
    kept = activations(case)
    types = {one.type.tensor_type.elem_type for one in case.model.graph.input if one.name in kept}
    operator = case.model.graph.node[0].op_type
    return (
        types == {FLOAT} or "Linear" in operator or "Integer" in operator or operator == "MaxPool"
    )


def model(
    nodes: list[Any],
    inputs: dict[str, tuple[int | str, ...]],
    outputs: list[str],
    weights: dict[str, Any] | None = None,
    version: int = 21,
    **more: Any,  # noqa: ANN401
) -> Any:  # noqa: ANN401
    """Return a model with float inputs."""
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info(name, FLOAT, ()) for name in outputs],
        [onnx.numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    imports = [helper.make_opsetid("", version), *more.pop("imports", [])]
    return helper.make_model(graph, opset_imports=imports, ir_version=10, **more)


def test_names_of_the_file_stay() -> None:
    """Operations are called as nodes are, tensors as in the file, sources name the operator."""
    node = helper.make_node("Relu", ["x"], ["y"], name="first")
    graph = read(model([node, helper.make_node("Exp", ["y"], ["z"])], {"x": (2, 3)}, ["z"]))
    assert [(one.name, one.source, one.outputs) for one in graph.operations] == [
        ("first", "Relu", ("y",)),
        ("z", "Exp", ("z",)),
    ]


def test_weights_stand_in_four_places() -> None:
    """Initialisers, constants, constants of a shape and inputs with a default are all weights."""
    value = np.full((3,), 2.0, np.float32)
    nodes = [
        helper.make_node("Constant", [], ["a"], value=onnx.numpy_helper.from_array(value)),
        helper.make_node(
            "ConstantOfShape", ["s"], ["b"], value=onnx.numpy_helper.from_array(value[:1])
        ),
        helper.make_node("Sum", ["x", "a", "b", "c", "d"], ["y"]),
    ]
    weights = {"s": np.array([3]), "c": value, "d": value}
    graph = read(model(nodes, {"x": (3,), "d": (3,)}, ["y"], weights))
    assert graph.inputs == ("x",)
    assert evaluate(graph, {"x": value})["y"].tolist() == [10.0, 10.0, 10.0]


def test_a_sparse_constant_is_its_numbers() -> None:
    """As the attribute of a node, by place or by coordinates."""
    for places in (np.array([1, 5]), np.array([[0, 1], [1, 2]])):
        values = onnx.numpy_helper.from_array(np.array([2, 3], np.float32))
        sparse = helper.make_sparse_tensor(values, onnx.numpy_helper.from_array(places), [2, 3])
        nodes = [
            helper.make_node("Constant", [], ["w"], sparse_value=sparse),
            helper.make_node("Add", ["x", "w"], ["y"]),
        ]
        graph = read(model(nodes, {"x": (2, 3)}, ["y"]))
        found = evaluate(graph, {"x": np.zeros((2, 3), np.float32)})["y"]
        assert found.tolist() == [[0, 2, 0], [0, 0, 3]]


def test_functions_are_inlined() -> None:
    """A function of the model becomes what is inside it."""
    inside = [helper.make_node("Mul", ["a", "a"], ["b"]), helper.make_node("Neg", ["b"], ["c"])]
    function = helper.make_function(
        "own", "minus_square", ["a"], ["c"], inside, [helper.make_opsetid("", 21)]
    )
    node = helper.make_node("minus_square", ["x"], ["y"], domain="own")
    source = model(
        [node], {"x": (3,)}, ["y"], functions=[function], imports=[helper.make_opsetid("own", 1)]
    )
    graph = read(source)
    assert [one.kind for one in graph.operations] == ["mul", "table"]


@pytest.mark.parametrize(("version", "own"), [(13, 21), (21, 13)])
def test_functions_of_another_version_are_inlined_where_it_means_the_same(
    version: int, own: int
) -> None:
    """Softmax does from 13 on, Relu's types grew in 14; before 13 Softmax joined axes."""
    sets = [helper.make_opsetid("", version)]
    imports = [helper.make_opsetid("own", 1)]

    def called(kind: str, sets: list[onnx.OperatorSetIdProto], own: int) -> onnx.ModelProto:
        inside = [helper.make_node(kind, ["a"], ["b"])]
        function = helper.make_function("own", "f", ["a"], ["b"], inside, sets)
        node = helper.make_node("f", ["x"], ["y"], domain="own")
        source = model([node], {"x": (2, 3)}, ["y"], functions=[function], imports=imports)
        source.opset_import[0].version = own
        return source

    assert [one.kind for one in read(called("Softmax", sets, own)).operations] == ["softmax"]
    with pytest.raises(GraphError, match=rf"'f' of domain 'own': Relu of version {version}, allo"):
        read(called("Relu", sets, own))
    with pytest.raises(GraphError, match=r"Softmax of version 11, allowed one that means the sa"):
        read(called("Softmax", [helper.make_opsetid("", 11)], own))


def test_functions_know_what_their_attributes_are_by_default() -> None:
    """Where a call says nothing else, in the graph or in another function."""
    leaky = helper.make_node("LeakyRelu", ["a"], ["b"])
    leaky.attribute.add(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    default = [helper.make_attribute("slope", 0.75)]
    inner = helper.make_function(
        "own", "leaky", ["a"], ["b"], [leaky], sets, attribute_protos=default
    )
    call = helper.make_node("leaky", ["a"], ["b"], domain="own")
    outer = helper.make_function("own", "outer", ["a"], ["b"], [call], sets)
    nodes = [
        helper.make_node("leaky", ["x"], ["y"], domain="own"),
        helper.make_node("leaky", ["x"], ["given"], domain="own", slope=0.5),
        helper.make_node("outer", ["x"], ["deeper"], domain="own"),
    ]
    names = ["y", "given", "deeper"]
    source = model(nodes, {"x": (2,)}, names, functions=[inner, outer], imports=sets[1:])
    found = evaluate(read(source), {"x": np.array([-4, 4], np.float32)})
    assert [found[name].tolist() for name in names] == [[-3, 4], [-2, 4], [-3, 4]]


def test_calls_of_functions_end() -> None:
    """Each calls the next twice, or one calls itself."""
    sets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]

    def calling(name: str, called: str) -> onnx.FunctionProto:
        ends = [("a", "b"), ("b", "c")]
        nodes = [helper.make_node(called, [x], [y], domain="own") for x, y in ends]
        return helper.make_function("own", name, ["a"], ["c"], nodes, sets)

    last = helper.make_function(
        "own", "f30", ["a"], ["c"], [helper.make_node("Neg", "a", "c")], sets
    )
    many = [*(calling(f"f{one}", f"f{one + 1}") for one in range(30)), last]
    node = helper.make_node("f0", ["x"], ["y"], domain="own")
    for functions, text in (
        (many, r"calls of functions stand for [0-9,]{13} operations, allowed up to 32,768"),
        ([calling("f0", "f0")], "'f0' of domain 'own': it calls itself"),
    ):
        source = model([node], {"x": (2,)}, ["y"], functions=functions, imports=sets[1:])
        with pytest.raises(GraphError, match=text):
            read(source)


def test_what_a_file_need_not_say() -> None:
    """The name of the graph, types and shapes of outputs; the shape of an input is asked for."""
    source = model([helper.make_node("Relu", ["x"], ["y"])], {"x": (2, 3)}, ["y"])
    source.graph.ClearField("name")
    source.graph.output[0].type.tensor_type.ClearField("shape")
    assert read(source).type("y").shape == (2, 3)
    source.graph.output[0].ClearField("type")
    assert read(source).type("y").shape == (2, 3)
    source.graph.input[0].type.tensor_type.ClearField("shape")
    assert read(source, shapes={"x": (4, 3)}).type("y").shape == (4, 3)
    with pytest.raises(GraphError, match="'x' has no shape: --shape x=1,3"):
        read(source)


def test_weights_of_the_third_version_need_not_be_inputs() -> None:
    """Its text says that they are; runtimes take them as those of later versions."""
    w = np.ones((3, 2), np.float32)
    source = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (2, 3)}, ["y"], {"w": w}, 7
    )
    source.ir_version = 3
    assert evaluate(read(source), {"x": w.T})["y"].tolist() == [[3, 3], [3, 3]]


def test_the_standard_has_two_names() -> None:
    """One of them is empty; nodes, functions and imports may have either."""
    inside = [helper.make_node("Neg", ["a"], ["c"], domain="ai.onnx")]
    function = helper.make_function(
        "own", "minus", ["a"], ["c"], inside, [helper.make_opsetid("ai.onnx", 21)]
    )
    nodes = [
        helper.make_node("minus", ["x"], ["n"], domain="own"),
        helper.make_node("Relu", ["n"], ["y"], domain="ai.onnx"),
    ]
    own = [helper.make_opsetid("own", 1)]
    source = model(nodes, {"x": (3,)}, ["y"], functions=[function], imports=own)
    source.opset_import[0].domain = "ai.onnx"
    assert [one.kind for one in read(source).operations] == ["table", "table"]


def test_free_dimensions_are_bound_by_name() -> None:
    """With a shape the model imports; other dimensions must agree."""
    source = model([helper.make_node("Relu", ["x"], ["y"])], {"x": ("batch", 3)}, ["y"])
    assert read(source, shapes={"x": (4, 3)}).type("y").shape == (4, 3)
    with pytest.raises(GraphError, match=r"\[batch, 3\] with free dimensions batch: --shape x=1,3"):
        read(source)
    for shape in ((4, 2), (4,)):
        with pytest.raises(GraphError, match="given"):
            read(source, shapes={"x": shape})
    with pytest.raises(GraphError, match="'z': no such input, allowed x"):
        read(source, shapes={"z": (1,)})
    with pytest.raises(GraphError, match=r"'x' has shape \[10+, 3\], allowed up to 16 axes and"):
        read(source, shapes={"x": (10**20, 3)})


def test_a_dimension_of_one_name_is_bound_once() -> None:
    """By the shape of one input, unless two shapes say two things of it."""
    inputs: dict[str, tuple[int | str, ...]] = dict.fromkeys("abc", ("rows", 3))
    source = model([helper.make_node("Sum", [*"abc"], ["y"])], inputs, ["y"])
    for name in "abc":
        graph = read(source, shapes={name: (4, 3)})
        assert [graph.type(one).shape for one in "abc"] == [(4, 3)] * 3
    with pytest.raises(GraphError, match=r"'c' has shape \[rows, 3\] with free dimensions rows"):
        read(source, shapes={"a": (4, 3), "b": (1, 3)})
    shapes = {"a": (4, 3), "b": (1, 3), "c": (4, 3)}
    assert read(source, shapes=shapes).type("y").shape == (4, 3)


@pytest.mark.parametrize("version", [7, 9, 11, 13, 18, 23, 28])
def test_operators_follow_their_versions(version: int) -> None:
    """Attributes that became inputs, and the softmax of a matrix, mean the same in each version."""
    x = np.random.default_rng(version).standard_normal((2, 3, 4)).astype(np.float32)
    weights = {
        **{"shape": np.array([2, 12]), "axes": np.array([1]), "low": np.float32(-0.5)},
        **{"pads": np.array([0, 1, 0, 0]), "starts": np.array([1]), "ends": np.array([9])},
    }
    names = iter("abcdefgh")
    nodes: list[Any] = []

    def add(operator: str, name: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        nodes.append(helper.make_node(operator, [name, *inputs], [next(names)], **attributes))
        return str(nodes[-1].output[0])

    y = add("Clip", "x", "low") if version >= 11 else add("Clip", "x", min=-0.5)
    y = add("Softmax", y, axis=1)
    y = add("Reshape", y, "shape")
    y = add("Pad", y, "pads") if version >= 11 else add("Pad", y, pads=[0, 1, 0, 0])
    y = (
        add("Slice", y, "starts", "ends", "axes")
        if version >= 10
        else add("Slice", y, starts=[1], ends=[9], axes=[1])
    )
    y = add("Unsqueeze", y, "axes") if version >= 13 else add("Unsqueeze", y, axes=[1])
    y = add("ReduceMean", y, "axes") if version >= 18 else add("ReduceMean", y, axes=[1])
    used = {name for node in nodes for name in node.input}
    kept = {name: value for name, value in weights.items() if name in used}
    graph = read(model(nodes, {"x": (2, 3, 4)}, [y], kept, version))
    assert "host" not in {one.kind for one in graph.operations}
    wide = np.maximum(x, -0.5).astype(np.float64)
    axes = 1 if version >= 13 else (1, 2)
    soft = np.exp(wide) / np.exp(wide).sum(axis=axes, keepdims=True)
    expected = np.pad(soft.reshape(2, 12), ((0, 0), (1, 0)))[:, 1:9].reshape(2, 1, 8)
    np.testing.assert_allclose(evaluate(graph, {"x": x})[y], expected, atol=1e-6)


def test_unknown_operators_and_forms_go_to_the_host() -> None:
    """With the reason, and the reference evaluator computes them."""
    nodes = [
        helper.make_node("CumSum", ["x", "axis"], ["a"]),
        helper.make_node("Pad", ["a", "pads"], ["b"], mode="reflect"),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    weights = {"axis": np.array(0), "pads": np.array([1, 0])}
    graph = read(model(nodes, {"x": (3,)}, ["y"], weights))
    reasons = [one["reason"] for one in graph.operations if one.kind == "host"]
    assert reasons == [
        "CumSum has no counterpart in the table of operations",
        "pads of mode reflect are not mapped",
    ]
    found = evaluate(graph, {"x": np.array([1, 2, -9], np.float32)})["y"]
    assert found.tolist() == [3.0, 1.0, 3.0, 0.0]


def test_a_dropout_that_the_first_sets_call_a_test_is_nothing() -> None:
    """Before version 7 an attribute says whether it is training."""
    node = helper.make_node("Dropout", ["x"], ["y"], is_test=1, ratio=0.3)
    assert [one.kind for one in read(model([node], {"x": (3,)}, ["y"], version=6)).operations] == [
        "identity"
    ]
    node = helper.make_node("Dropout", ["x"], ["y"])
    (found,) = read(model([node], {"x": (3,)}, ["y"], version=6)).operations
    assert (found.kind, found["reason"]) == ("host", "a dropout in training is not mapped")


def test_the_transform_of_real_signals_has_half_of_the_frequencies() -> None:
    """The inference of onnx says all of them."""
    node = helper.make_node("STFT", ["x", "step", "window"], ["y"])
    weights = {"step": np.array(8), "window": np.ones(16, np.float32)}
    graph = read(model([node], {"x": (1, 64, 1)}, ["y"], weights, version=17))
    assert graph.type("y").shape == (1, 7, 9, 2)
    assert evaluate(graph, {"x": np.ones((1, 64, 1), np.float32)})["y"].shape == (1, 7, 9, 2)


def test_graphs_inside_nodes_read_from_outside() -> None:
    """A branch that reads a tensor of the model is an input of the host operation."""
    branch = [
        helper.make_node("Add", ["x", "x"], ["t"]),
        helper.make_node("Mul", ["x", "x"], ["e"]),
    ]
    outputs = [helper.make_tensor_value_info(name, FLOAT, (2,)) for name in "te"]
    then, other = (
        helper.make_graph([node], "branch", [], [output])
        for node, output in zip(branch, outputs, strict=True)
    )
    nodes = [
        helper.make_node("ReduceSum", ["x"], ["s"], keepdims=0),
        helper.make_node("Greater", ["s", "zero"], ["c"]),
        helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other),
    ]
    graph = read(model(nodes, {"x": (2,)}, ["y"], {"zero": np.float32(0)}))
    assert graph.operations[-1].inputs == ("c", "x")
    for x, expected in (([1, 2], [2, 4]), ([-1, -2], [1, 4])):
        assert evaluate(graph, {"x": np.array(x, np.float32)})["y"].tolist() == expected


def light(name: str) -> Path:
    """Return the path of a light model of the suite."""
    return Path(onnx.__file__).parent / "backend/test/data/light" / f"light_{name}.onnx"


@pytest.mark.parametrize(
    ("name", "convolutions", "matrices"), [("squeezenet", 26, 0), ("shufflenet", 49, 1)]
)
def test_light_models_are_convolutions_and_matrices(
    name: str, convolutions: int, matrices: int
) -> None:
    """Every Conv and Gemm is conv and matmul, and one transpose of an image is left."""
    graph = canonicalise(read(light(name)))
    kinds = Counter(one.kind for one in graph.operations)
    assert (kinds["conv"], kinds["matmul"], kinds["host"]) == (convolutions, matrices, 0)
    images = [
        one for one in graph.operations if one.kind == "transpose" and one.inputs[0] in graph.inputs
    ]
    assert len(images) == 1
    # What is left is the shuffling of channels.
    assert kinds["transpose"] == 1 + (16 if name == "shufflenet" else 0)
