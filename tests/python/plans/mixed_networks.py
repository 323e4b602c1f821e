# SPDX-License-Identifier: Apache-2.0
"""Networks of programs, products on the command port and operations of the host."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.form import Target
from npu.planner.network_plan import plan_of
from npu.runtime.replay import By
from tb.stimulus.random_graphs import random_graph
from tests.python.plans.other_process import replayed


def replays_as_golden(place: Path, seeds: Iterable[int]) -> None:
    """Check that plans of random networks give golden's outputs in another process.

    Segments are cut at random places; every second seed goes by the descriptor ring.
    """
    targets: set[Target] = set()
    for parity, by in enumerate(_WAYS):
        drawn = {
            seed: random_graph(seed, operations=(4, 30), mixed=True)
            for seed in seeds
            if seed % len(_WAYS) == parity
        }
        work = []
        for seed, (graph, inputs) in drawn.items():
            network = compile_network(graph, split=_cuts(seed, graph_names(seed)))
            work.append((plan_of(network), inputs))
            targets |= {one.place.target for one in graph.operations if one.place is not None}
        folder = place / by
        folder.mkdir()
        found, process = replayed(folder, work, by)
        assert process["packages"] == ["numpy"]
        for (seed, (graph, inputs)), outputs in zip(drawn.items(), found, strict=True):
            for name, value in run(graph, inputs).items():
                same = np.array_equal(outputs[name], value, equal_nan=True)
                assert same, f"random_graph({seed}, operations=(4, 30), mixed=True): {name}, {by}"
    assert targets == set(Target)


_WAYS: tuple[By, ...] = ("registers", "ring")


def graph_names(seed: int) -> list[str]:
    """Return the operations of the chip in a mixed network, as the compiler has them."""
    graph, _ = random_graph(seed, operations=(4, 30), mixed=True)
    return [one.name for one in compile_network(graph).graph.operations if one.on_chip]


def _cuts(seed: int, names: list[str]) -> list[str]:
    random = np.random.default_rng(seed)
    count = int(random.integers(0, min(3, len(names)) + 1))
    return [str(one) for one in random.choice(names, count, replace=False)] if names else []
