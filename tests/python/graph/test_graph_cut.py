# SPDX-License-Identifier: Apache-2.0
"""The border between chip and host against all other borders that there could be."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from npu.graph.form import Graph, Operation, OperationPlace, Target
from npu.graph.passes.placing.cut import CHEAP, MOVES_ALONE, WISH, bytes_of, least_cut, work_of
from tests.python.compiler.small_networks import PLAIN, Net, grown

MOST = 9
"""Operations of a network: 2 to the power of it borders are looked at."""


def _drawn(seed: int) -> Graph:
    """Return a network of cheap and dear operations and moves, with places by chance."""
    rng = np.random.default_rng(seed)

    def make(net: Net) -> str:
        alive = [net.input("x", 4, 16), net.input("y", 4, 16)]
        for _ in range(int(rng.integers(3, MOST + 1))):
            x, y = (alive[int(i)] for i in rng.integers(len(alive), size=2))
            match int(rng.integers(6)):
                case 0:
                    alive.append(net.table(x, "relu"))
                case 1:
                    alive.append(net.build.add("matmul", [x, net.floats(16, 16)], **PLAIN))
                case 2:
                    alive.append(net.build.add("softmax", [x], axis=1))
                case 3:
                    alive.append(net.build.add("transpose", [x], order=(0, 1)))
                case _:
                    alive.append(net.build.add("add", [x, y]))
        return alive[-1]

    graph = grown(make, seed)
    drawn = rng.choice([Target.NPU, Target.NPU, Target.HOST, Target.PORT], len(graph.operations))
    wishes = rng.random(len(graph.operations)) < 0.1
    return graph.with_operations(
        replace(
            one,
            place=OperationPlace(
                Target(target), WISH if wish and target == Target.NPU else "drawn"
            ),
        )
        for one, target, wish in zip(graph.operations, drawn, wishes, strict=True)
    )


def _cost(graph: Graph, chip: set[str]) -> int:
    """Return eight times what a border costs, counted tensor by tensor."""
    found = sum(8 * work_of(graph, one) for one in graph.operations if one.name not in chip)
    made = graph.producers()
    for name in graph.tensors:
        readers = {one.name in chip for one in graph.operations if name in one.used}
        if name in graph.inputs:
            found += bytes_of(graph, name) * (True in readers)
        elif name in made:
            mine = made[name].name in chip
            found += 8 * bytes_of(graph, name) * ((not mine) in readers)
            found += bytes_of(graph, name) * (mine and name in graph.outputs)
    return found


def _is_open(one: Operation) -> bool:
    return one.on_chip and one.place is not None and one.place.reason != WISH


@pytest.mark.parametrize("first", range(0, 200, 20))
def test_no_other_border_costs_less(first: int) -> None:
    """Of those that cost the same it has most operations on the chip."""
    moved = 0
    for seed in range(first, first + 20):
        graph = _drawn(seed)
        found = {one.name for one in least_cut(graph).operations if one.on_chip}
        fixed = {one.name for one in graph.operations if one.on_chip and not _is_open(one)}
        free = [one.name for one in graph.operations if _is_open(one)]
        every = [
            {name for name, wanted in zip(free, choice, strict=True) if wanted} | fixed
            for choice in itertools.product((False, True), repeat=len(free))
        ]
        costs = [_cost(graph, chip) for chip in every]
        where = f"_drawn({seed})"
        assert _cost(graph, found) == min(costs), where
        least = [chip for chip, cost in zip(every, costs, strict=True) if cost == min(costs)]
        assert len(found) == max(map(len, least)), where
        moved += len(fixed) + len(free) - len(found)
    assert moved > 2


def test_every_operation_that_is_moved_has_a_sentence() -> None:
    """Moves alone are told from what is cheap."""
    seen = {
        one.place.reason
        for seed in range(60)
        for one in least_cut(_drawn(seed)).operations
        if one.place is not None and one.place.target is Target.HOST
    }
    assert seen == {"drawn", CHEAP, MOVES_ALONE}
