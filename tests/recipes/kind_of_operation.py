# SPDX-License-Identifier: Apache-2.0
"""What `recipes/kind_of_operation.patch` adds, means: run in a copy of the tree with it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from golden.graph import run as golden_run
from npu.graph.form import Array, Element, Graph, Quantisation, TensorType
from npu.planner.build_plan import CompileOptions, build_plan
from spec.isa.operands import Limits
from tessera.session import Session
from tests.dev.test_graphs_page import test_the_page_is_as_generated as check_page
from tests.dev.test_graphs_page import test_the_page_names_what_is_mapped as check_names
from tests.python.compiler.network_runs import run_graph
from tests.python.compiler.test_networks_random import (
    test_every_operation_of_the_chip_is_drawn as check_drawn,
)
from tests.python.compiler.test_networks_random import (
    test_graphs_around_one_kind_of_operation_are_right as check_programs,
)
from tests.python.golden.test_golden_graph import single
from tests.python.golden.test_golden_graph import (
    test_each_kind_equals_integers_one_by_one as check_one_by_one,
)
from tests.python.golden.test_golden_graph import (
    test_every_meaning_has_a_slow_one as check_other_witness,
)

ROWS, COLUMNS = 70, 40


def model(*means: tuple[str, ...]) -> onnx.ModelProto:
    """Return two products of x, a and b, and means; that of the last ones is y."""
    random = np.random.default_rng(1)
    weights = [
        onnx.numpy_helper.from_array(
            (random.normal(size=(COLUMNS, COLUMNS)) * scale).astype(np.float32), name
        )
        for name, scale in (("u", 0.1), ("v", 0.3))
    ]
    results = [f"m{number}" for number in range(1, len(means))] + ["y"]
    nodes = [
        onnx.helper.make_node("MatMul", ["x", "u"], ["a"], "a"),
        onnx.helper.make_node("MatMul", ["x", "v"], ["b"], "b"),
        *(
            onnx.helper.make_node("Mean", names, [result], result)
            for names, result in zip(means, results, strict=True)
        ),
    ]
    x, y = (
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (ROWS, COLUMNS))
        for name in "xy"
    )
    graph = onnx.helper.make_graph(nodes, "means", [x], [y], weights)
    return onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 21)], ir_version=10
    )


def samples(count: int) -> Array:
    """Return values of x."""
    drawn = np.random.default_rng(2).standard_normal((count, ROWS, COLUMNS))
    return drawn.astype(np.float32)


def pairs(element: Element) -> tuple[Graph, dict[str, Array]]:
    """Return a mean, and all pairs of bytes or many of int16, its ends among them."""
    edge = np.iinfo(element.dtype)
    values = np.arange(-128, 128)
    if element is Element.I16:
        values = np.random.default_rng(3).integers(edge.min, edge.max, 256, endpoint=True)
        values[:4] = edge.min, edge.min + 1, edge.max - 1, edge.max
    a, b = np.meshgrid(values.astype(element.dtype), values.astype(element.dtype))
    kind = TensorType(a.shape, element, Quantisation((0.05,)))
    return single("average", [np.ascontiguousarray(a), np.ascontiguousarray(b)], kind, {})


@pytest.mark.parametrize("element", [Element.I8, Element.I16])
@pytest.mark.parametrize("sram", [256, 64])
def test_integers_are_the_nearest(element: Element, sram: int) -> None:
    """Within a half, to neither side, at the ends too, on the model of instructions as in golden.

    With little SRAM operands come from memory in parts.
    """
    graph, inputs = pairs(element)
    (found,) = golden_run(graph, inputs).values()
    twice = sum(value.astype(np.int64) for value in inputs.values())
    off = 2 * found.astype(np.int64) - twice
    assert np.abs(off).max() == 1
    assert abs(Fraction(int(off.sum()), off.size)) < Fraction(1, 10)
    made = run_graph(graph, inputs, limits=Limits(sram_bytes=sram * 1024))
    np.testing.assert_array_equal(made["y"], found)


def test_a_file_runs_on_the_chip(tmp_path: Path) -> None:
    """Means of results of products, of a mean and an input: near to what onnx says of them."""
    network = model(("a", "b"), ("m1", "x"))
    onnx.save(network, tmp_path / "net.onnx")
    given = samples(16)
    built = build_plan(
        tmp_path / "net.onnx", CompileOptions(calibrate={"x": given}, calibration="max")
    )
    placed = {one.name: one for one in built.plan.graph.operations if one.kind == "average"}
    assert all(one.on_chip for one in placed.values())
    assert len(placed) == 2
    found = Session(built.plan).run({"x": given[0]})["y"]
    wanted = golden_run(built.passes["fuse"], {"x": given[0]})["y"]
    np.testing.assert_array_equal(found, wanted)
    (real,) = ReferenceEvaluator(network).run(None, {"x": given[0]})
    assert np.abs(found - real).max() < 0.03 * np.abs(real).max()


@pytest.mark.parametrize("names", [("a",), ("a", "b", "x")])
def test_other_numbers_of_tensors_stay_with_the_host(names: tuple[str, ...]) -> None:
    """And are right there."""
    network, given = model(names), samples(8)
    built = build_plan(network, CompileOptions(calibrate={"x": given}, calibration="max"))
    (mean,) = [one for one in built.plan.graph.operations if one.kind == "host"]
    assert (mean["operator"], mean["reason"]) == ("Mean", f"{len(names)} inputs, mapped are 2")
    (real,) = ReferenceEvaluator(network).run(None, {"x": given[0]})
    found = Session(built.plan).run({"x": given[0]})["y"]
    assert np.abs(found - real).max() < 0.03 * np.abs(real).max()


def test_all_that_knows_kinds_knows_it() -> None:
    """Random graphs and their programs, the other witness of integers, the page."""
    check_drawn()
    check_programs("elementwise")
    check_other_witness()
    check_one_by_one("elementwise")
    check_names("onnx")
    check_page()
