# SPDX-License-Identifier: Apache-2.0
"""TFLite: other subgraphs stand in the place of what runs them; constants decide shapes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Graph, GraphError
from npu.graph.importers import tflite_file
from npu.graph.verify import verify
from tests.needs import needs
from tests.python.importers.tflite_cases import floats
from tests.python.importers.tflite_control import (
    MODELS,
    branched,
    called,
    looped,
    of_constants,
    sparse,
)
from tests.python.importers.tflite_writer import Writer

needs("graphs")


def run(data: bytes, given: list[Array]) -> tuple[Graph, Array]:
    """Return the graph of a model, and what it gives."""
    graph = tflite_file.read(data)
    verify(graph)
    (found,) = evaluate(graph, dict(zip(graph.inputs, given, strict=True))).values()
    return graph, found


@pytest.mark.parametrize("name", MODELS)
def test_a_graph_is_what_subgraphs_compute(name: str) -> None:
    """And can be evaluated."""
    _, found = run(*MODELS[name]())
    assert found.size and np.any(found)


def test_a_call_is_its_subgraph() -> None:
    """Nothing else is left of it."""
    graph, found = run(*called())
    assert [one.kind for one in graph.operations] == ["add"]
    np.testing.assert_array_equal(found, 2 * floats(1, 2, 3))


@pytest.mark.parametrize("known", [True, False])
def test_a_known_condition_leaves_one_branch(known: bool) -> None:
    """Of an unknown one both are computed, and one is chosen."""
    graph, found = run(*branched(known))
    (x,) = branched(known)[1]
    np.testing.assert_allclose(found, x + x if known else x * x)
    assert [one.kind for one in graph.operations] == ["add" if known else "mul"]
    both = tflite_file.read(branched(None)[0])
    assert {"add", "mul", "select"} <= {one.kind for one in both.operations}


def test_turns_share_their_weights() -> None:
    """A loop of four turns is four products with one constant."""
    graph, found = run(*looped(4))
    assert [one.kind for one in graph.operations] == ["matmul"] * 4
    x, w = floats(4, 2, 3), floats(3, 3, 3)
    np.testing.assert_allclose(found, x @ np.linalg.matrix_power(w.T, 4), rtol=1e-4)
    assert sum(one.name.startswith("w") and one.data is not None for one in graph.tensors.values())


@pytest.mark.parametrize(
    ("order", "blocks"), [((0, 1), False), ((1, 0), False), ((0, 1, 2, 3), True)]
)
def test_sparse_weights_are_read_with_their_zeros(order: tuple[int, ...], blocks: bool) -> None:
    """By rows, by columns, and in blocks of two by four."""
    data, given, value = sparse(order, blocks)
    _, found = run(data, given)
    np.testing.assert_allclose(found, given[0] @ value.T, rtol=1e-5, atol=1e-5)


def test_what_values_decide_is_refused() -> None:
    """By name: turns of a loop, shapes of a result, loops without end."""
    said = r"\(WHILE\) 'count': its condition depends on values, allowed what constants decide"
    with pytest.raises(GraphError, match=said):
        tflite_file.read(looped(None)[0])
    with pytest.raises(GraphError, match=r"\(WHILE\) 'count': more than 4,096 operators"):
        tflite_file.read(looped(10000)[0])
    writer = Writer()
    x, y = writer.tensor("x", (3,), "bool"), writer.tensor("y", (-1, 1), "int64")
    writer.operator("WHERE", (x,), (y,))
    with pytest.raises(GraphError, match=r"\(WHERE\) 'y': the shape of its result depends on val"):
        tflite_file.read(writer.write((x,), (y,)))
    writer = Writer()
    x, y = writer.tensor("x", (3,)), writer.tensor("y", (3,))
    writer.operator("CALL", (x,), (y,), subgraph=0)
    with pytest.raises(GraphError, match=r"\(CALL\) 'y': subgraphs more than 16 deep"):
        tflite_file.read(writer.write((x,), (y,)))


def test_integers_of_another_scale_are_no_inputs_of_a_subgraph() -> None:
    """They would stand for other numbers there."""
    writer, below = Writer(), Writer()
    x, y = (writer.tensor(name, (3,), "int8", scale=0.5) for name in "xy")
    writer.operator("CALL", (x,), (y,), subgraph=1)
    a, b = (below.tensor(name, (3,), "int8", scale=0.25) for name in "ab")
    below.operator("RELU", (a,), (b,))
    data = writer.write((x,), (y,), below=[(below, (a,), (b,))])
    with pytest.raises(GraphError, match=r"tensor 'a' of int8 is given int8\[3\] scale \[0\.5\]"):
        tflite_file.read(data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ((((0, 0), (), [8, 12])), r"sparse along axes \[0, 0\] of \[8, 12\], blocks \[\]"),
        ((((0, 1), (), [8, ([0, 1], [0])])), "2 ends of 8 parts, allowed one more"),
        ((((0, 1), (), [9, 12])), r"value of 384 bytes|outside of \[8, 12\]"),
        ((((0, 1, 2), (7,), [8, 12, 1])), r"blocks along axes \[7\]"),
        ((((0, 1), (), [1 << 30, 12])), "elements of an axis of"),
    ],
)
def test_sparse_weights_that_are_refused(
    change: tuple[tuple[int, ...], tuple[int, ...], list[int]], said: str
) -> None:
    """Each by name."""
    writer = Writer()
    held = writer.tensor("w", (8, 12), data=floats(1, 8, 12), sparse=change)
    x, y = writer.tensor("x", (2, 12)), writer.tensor("y", (2, 8))
    writer.operator("FULLY_CONNECTED", (x, held), (y,), fused=0)
    with pytest.raises(GraphError, match=said):
        tflite_file.read(writer.write((x,), (y,)))


@pytest.mark.parametrize("operator", ["SCATTER_ND", "MATRIX_DIAG", "FLOOR_DIV", "FLOOR_MOD"])
def test_kernels_that_pass_over_a_scale_are_refused(operator: str) -> None:
    """What they compute of such integers stands for no real numbers."""
    writer = Writer()
    x = writer.tensor("x", (3,), "int8", scale=0.5, zero=3)
    y = writer.tensor("y", (3, 3), "int8", scale=0.5, zero=3)
    place = writer.constant("place", np.array([[2], [0], [1]], np.int32))
    size = writer.constant("size", np.array([3], np.int32))
    given = {"SCATTER_ND": (place, x, size), "MATRIX_DIAG": (x,)}.get(operator, (x, x))
    writer.operator(operator, given, (y,))
    with pytest.raises(GraphError, match=rf"\({operator}\) 'y': int8 with a scale, allowed plain"):
        tflite_file.read(writer.write((x,), (y,)))


def test_an_output_of_another_type_has_the_name_of_the_file() -> None:
    """Though what is converted to it came first."""
    writer = Writer()
    x, y = writer.tensor("x", (2, 5)), writer.tensor("y", (2,), "int64")
    axis = writer.constant("axis", np.array(1, np.int32))
    writer.operator("ARG_MAX", (x, axis), (y,), type=4)
    graph = tflite_file.read(writer.write((x,), (y,)))
    verify(graph)
    assert graph.outputs == ("y",)


def test_constants_leave_nothing_else() -> None:
    """RANGE, BROADCAST_ARGS and WHERE are constants."""
    kinds = {
        name: [one.kind for one in tflite_file.read(of_constants(name)[0]).operations]
        for name in ("RANGE", "BROADCAST_ARGS", "WHERE")
    }
    assert kinds["RANGE"] == ["add"] and kinds["BROADCAST_ARGS"] == ["expand"]
    assert kinds["WHERE"][-1] == "gather"


def test_calls_end() -> None:
    """Each subgraph calls the next nine times."""
    levels = []
    for level in range(7):
        writer = Writer()
        places = [writer.tensor(f"t{one}", (2,)) for one in range(10)]
        for one, after in pairwise(places):
            name = "CALL" if level < 6 else "NEG"
            options = {"subgraph": level + 1} if level < 6 else {}
            writer.operator(name, (one,), (after,), **options)
        levels.append((writer, (places[0],), (places[-1],)))
    (main, *ends), *below = levels
    with pytest.raises(GraphError, match="calls and loops stand for more than 32,768 operations"):
        tflite_file.read(main.write(*ends, below=below))
