# SPDX-License-Identifier: Apache-2.0
"""Graphs are checked: names, order, shapes, types and scales, each error naming its place."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from npu.graph.build import Builder, bind
from npu.graph.evaluate import evaluate
from npu.graph.form import (
    Element,
    Graph,
    GraphError,
    Names,
    Operation,
    OperationPlace,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)
from npu.graph.verify import verify


def small() -> Graph:
    """Return x (2, 3) times w (3, 4), then relu."""
    build = Builder("small")
    build.input("x", TensorType((2, 3)))
    build.constant(np.arange(12, dtype=np.float32).reshape(3, 4), "w")
    y = build.add("matmul", ["x", "w"], wish="dense", transpose_a=False, transpose_b=False)
    y = build.add("table", [y], wish="relu", output="y", functions=["relu"], parameters=[])
    return build.finish([y])


def changed(graph: Graph, index: int, **parts: object) -> Graph:
    """Return the graph with parts of one operation exchanged."""
    operations = list(graph.operations)
    operations[index] = replace(operations[index], **parts)  # type: ignore[arg-type]
    return replace(graph, operations=tuple(operations))


def typed(graph: Graph, name: str, kind: TensorType) -> Graph:
    """Return the graph with another type of a tensor."""
    return replace(graph, tensors={**graph.tensors, name: replace(graph[name], type=kind)})


def test_a_right_graph_is_accepted() -> None:
    """The graph that the other tests break is right."""
    verify(small())


def test_each_fault_is_named() -> None:
    """Every way to break the graph gives an error that names operation and tensor."""
    graph = small()
    places = tuple(replace(one, place=OperationPlace(Target.HOST, "")) for one in graph.operations)
    verify(replace(graph, operations=places), placed=True)
    wrong = {
        "'relu'.*'dense'.*order or a cycle": replace(graph, operations=graph.operations[::-1]),
        "'dense'.*'gone' does not exist": changed(graph, 0, inputs=("x", "gone")),
        "'relu'.*'y' is assigned further": changed(graph, 1, inputs=("y",)),
        "'relu'.*'dense' is assigned twice": changed(graph, 1, outputs=("y", "dense")),
        "'relu'.*used twice or empty": changed(graph, 0, name="relu"),
        "'dense'.*kind 'mutmul'": changed(graph, 0, kind="mutmul"),
        "'dense'.*'transpose_b' is missing": changed(graph, 0, attributes={"transpose_a": True}),
        "'relu'.*'parameters' is \\[\\]": changed(
            graph, 1, attributes={"functions": ("relu",), "parameters": []}
        ),
        "'relu'.*function 'rolu'": changed(
            graph, 1, attributes={"functions": ("rolu",), "parameters": ()}
        ),
        "'relu'.*takes 1": changed(graph, 1, attributes={"functions": ("elu",), "parameters": ()}),
        "'relu'.*2 inputs, allowed x": changed(graph, 1, inputs=("dense", "x")),
        "'dense'.*inner axes differ: 4.*3": typed(graph, "x", TensorType((2, 4))),
        "'y' has shape \\[2, 5\\]": typed(graph, "y", TensorType((2, 5))),
        "'y' is float16": typed(graph, "y", TensorType((2, 4), Element.F16)),
        "'w' holds float32": typed(graph, "w", TensorType((4, 3))),
        "output 'z'": replace(graph, outputs=("z",)),
        "input 'z'": replace(graph, inputs=("z",)),
        "nothing assigns tensor 'x'": replace(graph, inputs=()),
    }
    for message, broken in wrong.items():
        with pytest.raises(GraphError, match=f"net.onnx: .*{message}"):
            verify(broken, file="net.onnx")
    with pytest.raises(GraphError, match="no place"):
        verify(graph, placed=True)


@pytest.mark.parametrize(
    ("quantisation", "message"),
    [
        (None, "'y' is int8 without scale"),
        (Quantisation((0.0,)), "not a positive number"),
        (Quantisation((1.0, 2.0)), "2 scales, allowed 1"),
        (Quantisation((1.0,) * 3, 0, 1), "3 scales, allowed 4"),
        (Quantisation((1.0,), 0, 2), "axis 2"),
        (Quantisation((1.0,), 128), "zero point 128, allowed -128..127"),
    ],
)
def test_a_quantised_tensor_has_a_scale(quantisation: Quantisation | None, message: str) -> None:
    """Integers of a product need one positive scale, or one per index, and a zero in range."""
    build = Builder()
    build.input("x", TensorType((2, 4)))
    kind = TensorType((2, 4), Element.I8, quantisation)
    graph = build.finish([build.add("quantise", ["x"], output="y", result=kind)])
    with pytest.raises(GraphError, match=message):
        verify(graph)


def test_quantised_tensors_carry_integers() -> None:
    """What reads integers computes with the real numbers, what makes them rounds."""
    build = Builder()
    half = TensorType((3,), Element.I8, Quantisation((0.5,), 3))
    build.input("x", TensorType((3,)))
    build.add("quantise", ["x"], output="q", result=half)
    build.add("add", ["q", "q"], output="s", result=half)
    build.add("dequantise", ["s"], output="y")
    graph = build.finish(["y", "s"])
    verify(graph)
    found = evaluate(graph, {"x": np.array([0.25, 1.0, -100.0], np.float32)}, keep=["q"])
    assert found["q"].tolist() == [3, 5, -128]
    assert found["s"].tolist() == [3, 7, -128]
    assert found["y"].tolist() == [0.0, 2.0, -65.5]


def test_evaluation_refuses_wrong_inputs() -> None:
    """A missing input, a wrong shape and a wrong type are named."""
    graph = small()
    for inputs, message in (
        ({}, "input 'x' is missing"),
        ({"x": np.zeros((3, 2), np.float32)}, "'x' has shape"),
        ({"x": np.zeros((2, 3), np.complex64)}, "'x' is complex64"),
    ):
        with pytest.raises(GraphError, match=message):
            evaluate(graph, inputs)
    build = Builder()
    build.input("i", TensorType((2,), Element.I8))
    bytes_ = build.finish([build.add("identity", ["i"])])
    assert evaluate(bytes_, {"i": np.array([1, -128])})["identity"].dtype == np.int8
    with pytest.raises(GraphError, match="'i' holds integers that are no int8"):
        evaluate(bytes_, {"i": np.array([1, 128])})
    with pytest.raises(GraphError, match="'gone' does not exist"):
        evaluate(graph, {"x": np.zeros((2, 3), np.float32)}, keep=["gone"])


def test_inputs_are_bound_to_constants() -> None:
    """A bound input is none any more; another name or type is refused."""
    graph, x = small(), np.ones((2, 3), np.float32)
    bound = bind(graph, {"x": x})
    verify(bound)
    assert bound.inputs == ()
    assert np.array_equal(evaluate(bound, {})["y"], evaluate(graph, {"x": x})["y"])
    for values in ({"z": x}, {"x": x.T}, {"x": x.astype(np.float64)}):
        with pytest.raises(GraphError, match="input"):
            bind(graph, values)


def test_names_are_unique() -> None:
    """A taken name gets a number behind it."""
    names = Names(["x"])
    assert [names.fresh(one) for one in ("x", "x", "y", "x.2")] == ["x.2", "x.3", "y", "x.2.2"]


def test_unread_tensors_are_dropped() -> None:
    """Exchanging operations drops what nothing names any more."""
    graph = small()
    kept = graph.with_operations(
        [Operation("id", "identity", ("x",), ("y",))], [Tensor("y", TensorType((2, 3)))]
    )
    assert set(kept.tensors) == {"x", "y"}
    verify(kept)
