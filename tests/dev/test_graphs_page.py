# SPDX-License-Identifier: Apache-2.0
"""docs/graphs.md names the operators that importers map, all of them and no others."""

from __future__ import annotations

from itertools import combinations

import pytest

from tests.needs import needs

needs("graphs")

import onnx

import npu.graph.importers.onnx_file  # noqa: F401  (the mappings register themselves)
from dev import graphs_page
from npu.graph import host_evaluators
from npu.graph.form import GraphError
from npu.graph.importers import (
    NO_OPERATION,
    read,
    stablehlo,
    stablehlo_composites,
    tflite_file,
)
from npu.graph.importers.onnx_node import MAPPINGS
from npu.graph.operations import TABLE
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.passes.placing.place import place
from tests.python.importers.tflite_cases import CASES, model

REGISTERED = {
    "onnx": set(MAPPINGS),
    "stablehlo": {name.removeprefix("stablehlo.") for name in stablehlo.HANDLERS}
    | {f"composite {name}" for name in stablehlo_composites.COMPOSITES},
    "tflite": set(tflite_file.HANDLERS),
}
OTHERS = "any other"


def named(origin: str) -> dict[str, set[str]]:
    """Return the kinds that the page has for each operator of an origin; patterns are none."""
    found: dict[str, set[str]] = {name: set() for name in NO_OPERATION[origin]}
    for kind in TABLE.values():
        for words in kind.operators(origin):
            for word in () if words.startswith("pattern of ") else words.split(" + "):
                found.setdefault(word.split(" of ")[0], set()).add(kind.name)
    return found


@pytest.mark.parametrize("origin", graphs_page.ORIGINS)
def test_the_page_names_what_is_mapped(origin: str) -> None:
    """In both directions: nothing is left out, nothing is invented."""
    on_page = set(named(origin)) - {OTHERS}
    assert sorted(REGISTERED[origin] - on_page) == []
    assert sorted(on_page - REGISTERED[origin]) == []


def test_others_run_where_somebody_evaluates_them() -> None:
    """`host` comes from the frameworks that have an evaluator."""
    evaluators = set(host_evaluators._MODULES)
    assert {origin for origin in graphs_page.ORIGINS if OTHERS in named(origin)} == evaluators


@pytest.mark.parametrize("name", CASES)
def test_an_operator_of_tflite_becomes_what_the_page_says(name: str) -> None:
    """The kinds that the page has for it are in its graph."""
    graph = tflite_file.read(model(CASES[name]))
    kinds = {one.kind for one in (*graph.operations, *canonicalise(graph).operations)}
    assert named("tflite")[CASES[name].operator] & kinds


def mean(axes: tuple[int, ...]) -> bytes:
    """Return a network that is a mean over axes of three."""
    shape = [2, 3, 4]
    left = [size for axis, size in enumerate(shape) if axis not in axes]
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("ReduceMean", ["x"], ["y"], "y", axes=axes, keepdims=0)],
        "net",
        [onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, left)],
    )
    versions = [onnx.helper.make_opsetid("", 13)]
    return bytes(onnx.helper.make_model(graph, opset_imports=versions).SerializeToString())


@pytest.mark.parametrize("axes", [one for n in (1, 2) for one in combinations(range(3), n)])
def test_a_mean_over_any_axes_runs_on_the_chip(axes: tuple[int, ...]) -> None:
    """As the page says: unless no axis is left."""
    placed = place(canonicalise(read(mean(axes))), npu=["y"])
    assert all(one.on_chip for one in placed.operations)
    with pytest.raises(GraphError, match="single number without axes"):
        place(canonicalise(read(mean((0, 1, 2)))), npu=["y"])


def test_the_page_is_as_generated() -> None:
    """Tables and sentence between their marks."""
    page = graphs_page.PAGE.read_text(encoding="utf-8")
    assert graphs_page.filled(page) == page, "run python -m dev.graphs_page"
