# SPDX-License-Identifier: Apache-2.0
"""Single operations of the ONNX suite on the instruction model: equal to golden, near the suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache

import numpy as np

from tests.needs import needs

needs("graphs")

from golden.graph import run
from npu.graph.form import Array, Graph
from tests.python.compiler.network_runs import run_graph
from tests.python.importers.graph_node_cases import BORDER, INTEGER, NodeResult, cases, run_case

READABLE = {1, 2, 3, 5, 6, 7, 9, 10, 11}
"""Types of elements that graphs hold, as ONNX numbers them."""
BROKEN = ("test_quantizelinear_blocked_symmetric",)
"""The suite's own data of this case has no values."""
TOLERANCE, WIDE = 0.02, 0.04
"""Of the largest output; the wide one for the one case whose outputs nearly cancel."""


def _equal(graph: Graph, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the outputs of the instruction model, which golden must have too."""
    found, expected = run_graph(graph, inputs), run(graph, inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    return found


def _readable(name: str) -> bool:
    types = {value.type.tensor_type.elem_type for value in cases()[name].model.graph.input}
    types |= {value.type.tensor_type.elem_type for value in cases()[name].model.graph.output}
    return types <= READABLE and name not in BROKEN


@cache
def _results() -> tuple[NodeResult, ...]:
    return tuple(run_case(name, _equal) for name in cases() if _readable(name))


def test_as_many_cases_run_on_the_chip_as_the_chip_has_operations_for() -> None:
    """As many cases run there as the chip has operations for: nothing hides on the host."""
    placed = Counter(
        "integer" if one.operator in INTEGER else "float" for one in _results() if one.on_chip
    )
    assert placed == {"integer": 12, "float": 206}


def test_integer_cases_are_equal_or_one_apart() -> None:
    """Given integers come out as they must: sums equal, requantised ones at most one apart."""
    for one in _results():
        if one.operator in INTEGER:
            most = 0 if one.outputs[0].dtype == np.int32 else 1
            assert one.steps <= most, one.name


def test_borders_are_equal() -> None:
    """Quantising and dequantising are the suite's, bit for bit."""
    found = [one for one in _results() if one.operator in BORDER and not one.steps]
    assert len(found) >= 6


def test_float_cases_stay_near_the_suite() -> None:
    """Calibrated on themselves, real numbers lose at most 2 % of the largest output."""
    far = {one.name: one.error for one in _results() if one.error > TOLERANCE}
    assert set(far) <= {"test_matmul_1d_3d"}
    assert all(error <= WIDE for error in far.values())


def test_no_case_on_the_chip_is_constant_by_accident() -> None:
    """What varies in the suite varies on the chip."""
    for one in _results():
        reference = np.asarray(one.references[0])
        if one.on_chip and reference.size > 4 and np.ptp(reference.astype(np.float64)) > 0:
            assert np.ptp(one.outputs[0].astype(np.float64)) > 0, one.name
