# SPDX-License-Identifier: Apache-2.0
"""Random fused graphs are graphs, run in integers, and say something about what executes them."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from golden.graph import MEANINGS, run
from npu.graph.form import Array, Graph
from npu.graph.operations import TABLE
from npu.graph.verify import verify
from tests.python.graph_random import KINDS, random_graph

SEEDS = 100


def small(graph: Graph) -> list[tuple[str, object, object]]:
    """Return what identifies a graph."""
    return [(one.kind, one.inputs, dict(one.attributes)) for one in graph.operations]


def varied(value: Array) -> bool:
    """Say whether a tensor is not constant and mostly not at the ends of its type."""
    if value.dtype.kind == "f" or value.size < 8:
        return True
    edge = np.iinfo(value.dtype)
    ends = np.mean((value == edge.min) | (value == edge.max))
    return bool(value.min() < value.max() and ends < 0.5)


def test_hundred_seeds_verify_run_and_have_every_kind() -> None:
    """Nothing is wrong with a graph, and each kind with an integer meaning occurs often."""
    seen: Counter[str] = Counter()
    for seed in range(SEEDS):
        graph, inputs = random_graph(seed)
        verify(graph, file=f"seed {seed}", placed=True)
        found = run(graph, inputs)
        assert set(found) == set(graph.outputs)
        for name, value in found.items():
            assert value.shape == graph.type(name).shape, (seed, name)
            assert value.dtype == graph.type(name).element.dtype, (seed, name)
        seen.update(one.kind for one in graph.operations if one.on_chip)
    assert set(KINDS) == set(MEANINGS) - {"cast"}, "a kind of the chip that nothing draws"
    assert min(seen[kind] for kind in KINDS) >= 20, seen


def test_a_seed_gives_one_graph_and_a_lower_count_its_beginning() -> None:
    """The same twice; fewer operations are the first of many."""
    for seed in range(10):
        one, inputs = random_graph(seed, operations=(12, 12))
        again, others = random_graph(seed, operations=(12, 12))
        assert small(one) == small(again)
        assert all(np.array_equal(inputs[name], others[name]) for name in inputs)
        fewer, _ = random_graph(seed, operations=(5, 5))
        assert small(fewer) == small(one)[: len(fewer.operations)]


def test_results_are_spread_over_their_range() -> None:
    """Few tensors are constant or saturated: a wrong factor or bias would show."""
    tried, good = Counter[str](), Counter[str]()
    for seed in range(SEEDS):
        graph, inputs = random_graph(seed)
        chip = [one for one in graph.operations if one.on_chip]
        values = run(graph, inputs, keep=[one.outputs[0] for one in chip])
        for one in chip:
            tried[one.kind] += 1
            good[one.kind] += varied(values[one.outputs[0]])
    shares = {kind: good[kind] / tried[kind] for kind in tried}
    assert good.total() / tried.total() > 0.85, shares
    assert min(shares.values()) > 0.5, shares


def test_the_results_follow_the_inputs() -> None:
    """Other inputs give other outputs."""
    changed = 0
    for seed in range(30):
        graph, inputs = random_graph(seed)
        before = run(graph, inputs)
        after = run(graph, {name: np.zeros_like(value) for name, value in inputs.items()})
        changed += any(not np.array_equal(before[name], after[name]) for name in before)
    assert changed >= 28


@pytest.mark.parametrize("kind", KINDS)
def test_graphs_of_one_kind(kind: str) -> None:
    """Of the chip's operations only that one, and the table has it with its attributes."""
    for seed in range(8):
        graph, inputs = random_graph(seed, operations=(1, 4), only=kind)
        verify(graph, file=f"seed {seed}", placed=True)
        run(graph, inputs)
        chip = [one for one in graph.operations if one.on_chip]
        assert chip, seed
        assert {one.kind for one in chip} == {kind}, seed
        entry = TABLE[kind]
        for one in chip:
            full = {*entry.attributes, *entry.fused}
            assert set(one.attributes) == full, (seed, full ^ set(one.attributes))


def test_an_unknown_kind_is_refused() -> None:
    """The sentence names those that there are."""
    with pytest.raises(ValueError, match="given 'fft', allowed matmul, conv"):
        random_graph(0, only="fft")
