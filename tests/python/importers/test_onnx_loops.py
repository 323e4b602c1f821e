# SPDX-License-Identifier: Apache-2.0
"""Loops whose turns are known are their bodies one behind the other; others are the host's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Graph
from npu.graph.importers import read
from tests.needs import needs

needs("graphs")

import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from tests.python.importers.onnx_forms import real

ROWS, WIDTH, TURNS = 4, 16, 3


def model(
    inside: list[Any],
    go: str = "go",
    *,
    count: int | None = TURNS,
    given: bool = False,
    scan: bool = True,
) -> Any:  # noqa: ANN401
    """Return h = relu(h w + turn), TURNS times, with all h as rows.

    Args:
        inside: nodes before it in the body.
        go: what the body says of the next turn.
        count: of turns, None if there is none.
        given: whether the number of turns is an input.
        scan: whether what turns make is a result.
    """
    described = helper.make_tensor_value_info
    nodes = [
        *inside,
        helper.make_node("MatMul", ["h", "w"], ["p"], "product"),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["p", "f"], ["s"], "sum"),
        helper.make_node("Relu", ["s"], ["next"]),
        helper.make_node("Identity", ["next"], ["row"]),
    ]
    square = (ROWS, WIDTH)
    body = helper.make_graph(
        nodes,
        "body",
        [
            described("i", TensorProto.INT64, ()),
            described("go", TensorProto.BOOL, ()),
            described("h", TensorProto.FLOAT, square),
        ],
        [
            described(go, TensorProto.BOOL, ()),
            described("next", TensorProto.FLOAT, square),
            *([described("row", TensorProto.FLOAT, square)] if scan else []),
        ],
        [numpy_helper.from_array(np.array(2), "two")],
    )
    outputs = ["y", *(["rows"] if scan else [])]
    loop = helper.make_node(
        "Loop", ["" if count is None else "count", "", "x"], outputs, "loop", body=body
    )
    weights = {"w": real(WIDTH, WIDTH) / 4}
    inputs = [described("x", TensorProto.FLOAT, square)]
    if given:
        inputs.append(described("count", TensorProto.INT64, ()))
    elif count is not None:
        weights["count"] = np.array(count)
    graph = helper.make_graph(
        [loop],
        "net",
        inputs,
        [
            described("y", TensorProto.FLOAT, square),
            *([described("rows", TensorProto.FLOAT, (TURNS, *square))] if scan else []),
        ],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def compared(source: Any, **more: Any) -> Graph:  # noqa: ANN401
    """Return the graph of a model, after comparing it with onnxruntime."""
    inputs = {"x": real(ROWS, WIDTH, seed=2), **more}
    session = onnxruntime.InferenceSession(
        source.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    graph = read(source)
    found = evaluate(graph, inputs)
    for name, wanted in zip(graph.outputs, session.run(None, inputs), strict=True):
        np.testing.assert_allclose(found[name], wanted, rtol=1e-4, atol=1e-5)
    return graph


def kinds(graph: Graph) -> list[str]:
    """Return the kinds of operations in their order."""
    return [one.kind for one in graph.operations]


@pytest.mark.parametrize("scan", [False, True])
def test_a_loop_of_known_turns(scan: bool) -> None:
    """As many products as turns, each with its number."""
    graph = compared(model([], scan=scan))
    assert kinds(graph).count("matmul") == TURNS
    assert kinds(graph).count("concat") == scan
    assert "host" not in kinds(graph)


def test_a_loop_that_ends_by_its_number() -> None:
    """The condition follows from the turn: go on while it is less than two."""
    less = helper.make_node("Less", ["i", "two"], ["again"])
    graph = compared(model([less], "again", count=None))
    assert kinds(graph).count("matmul") == TURNS
    assert "host" not in kinds(graph)


def test_branches_in_a_loop_read_from_around_it() -> None:
    """Graphs inside of nodes of the body know the names of their turn."""
    described = helper.make_empty_tensor_value_info
    branches = {
        name: helper.make_graph(
            [helper.make_node(operator, ["h"], ["z"])], name, [], [described("z")]
        )
        for name, operator in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    inside = [
        helper.make_node("ReduceSum", ["h"], ["total"], keepdims=0),
        helper.make_node("Cast", ["total"], ["positive"], to=TensorProto.BOOL),
        helper.make_node("If", ["positive"], ["branch"], **branches),
    ]
    source = model(inside)
    body = source.graph.node[0].attribute[0].g
    next(one for one in body.node if one.op_type == "MatMul").input[0] = "branch"
    graph = compared(source)
    assert kinds(graph).count("matmul") == TURNS
    assert kinds(graph).count("host") == TURNS


@pytest.mark.parametrize("unknown", ["count", "condition", "long"])
def test_other_loops_are_the_hosts(unknown: str) -> None:
    """What depends on values, or would be too much."""
    if unknown == "count":
        source = model([], given=True, scan=False)
        graph = compared(source, count=np.array(2))
    elif unknown == "condition":
        nodes = [
            helper.make_node("ReduceSum", ["h"], ["total"], keepdims=0),
            helper.make_node("Cast", ["total"], ["again"], to=TensorProto.BOOL),
        ]
        graph = compared(model(nodes, "again", scan=False))
    else:
        graph = read(model([], count=1000, scan=False))
    assert kinds(graph) == ["host"]


@pytest.mark.parametrize("chosen", [True, False])
def test_an_if_that_the_file_decides_is_its_branch(chosen: bool) -> None:
    """As PyTorch writes a squeeze; the condition may have an axis, the shapes may be unknown."""
    described = helper.make_empty_tensor_value_info
    branches = {
        "then_branch": helper.make_graph(
            [
                helper.make_node("Squeeze", ["x", "axis"], ["s"]),
                helper.make_node("Neg", ["s"], ["z"]),
            ],
            "then",
            [],
            [described("z")],
            [numpy_helper.from_array(np.array([0]), "axis")],
        ),
        "else_branch": helper.make_graph(
            [helper.make_node("Identity", ["x"], ["same"])], "else", [], [described("same")]
        ),
    }
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"], end=1),
        helper.make_node("Equal", ["shape", "size"], ["one"]),
        helper.make_node("If", ["one"], ["z"], **branches),
        helper.make_node("Relu", ["z"], ["y"]),
    ]
    x = real(1 if chosen else 2, 4)
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.array([1]), "size")],
    )
    source = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = read(source)
    assert "host" not in kinds(found)
    assert (
        evaluate(found, {"x": x})["y"].tolist()
        == (np.maximum(-x[0], 0) if chosen else np.maximum(x, 0)).tolist()
    )
