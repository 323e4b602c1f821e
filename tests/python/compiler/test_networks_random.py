# SPDX-License-Identifier: Apache-2.0
"""Random quantised graphs: compiled and run on the instruction model they are what golden says."""

from __future__ import annotations

import numpy as np
import pytest

from golden.graph import MEANINGS, run
from npu.graph.verify import verify
from tb.stimulus.random_graphs import MAKERS, random_graph
from tests.python.compiler.network_runs import run_graph


def _check(seed: int, only: str = "") -> None:
    graph, inputs = random_graph(seed, only=only)
    verify(graph, placed=True)
    expected, found = run(graph, inputs), run_graph(graph, inputs)
    for name in graph.outputs:
        np.testing.assert_array_equal(
            found[name], expected[name], err_msg=f"random_graph({seed}, only={only!r}): {name}"
        )


@pytest.mark.parametrize("seed", range(16))
def test_the_instruction_model_makes_of_a_graph_what_golden_makes(seed: int) -> None:
    """Any mixture of operations, of the host too."""
    _check(seed)


@pytest.mark.parametrize("kind", MAKERS)
def test_graphs_around_one_kind_of_operation_are_right(kind: str) -> None:
    """One kind behind another, in shapes that a mixture seldom has."""
    for seed in range(3):
        _check(1000 + seed, kind)


def test_every_operation_of_the_chip_is_drawn() -> None:
    """What golden has a meaning for occurs within 60 seeds."""
    drawn = {
        one.kind for seed in range(60) for one in random_graph(seed)[0].operations if one.on_chip
    }
    assert drawn == set(MEANINGS)


def test_results_spread_over_their_range() -> None:
    """Few results are constant, and few are mostly at the ends of their range."""
    poor = whole = 0
    for seed in range(20):
        graph, inputs = random_graph(seed)
        for value in run(graph, inputs).values():
            if value.dtype.kind not in "iu" or value.size < 9:
                continue
            ends = np.iinfo(value.dtype)
            at_ends = np.mean((value == ends.min) | (value == ends.max))
            whole += 1
            poor += bool(at_ends > 1 / 3 or np.ptp(value.astype(np.int64)) == 0)
    assert poor < whole / 5
