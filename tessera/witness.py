# SPDX-License-Identifier: Apache-2.0
"""The programs of a plan against the integers of its graph, on inputs that are drawn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from golden.graph import run
from npu.graph.form import Array, Graph, GraphError
from npu.graph.macs import macs_of
from npu.graph.passes.quantising.samples import random_samples
from npu.graph.states import States
from npu.planner.build_plan import Built
from tessera.golden_chip import run_on_golden

STEPS = 3
"""Runs of a network with states, each with what the one before has left."""
MOST = 200_000_000
"""Multiplications of the largest network that is checked, about a minute of the model."""


class WitnessError(ValueError):
    """Programs do not compute what the integers of their graph are: the compiler is wrong."""


def checked(built: Built) -> str:
    """Run a plan once on the instruction model and compare its outputs with `golden.graph`.

    That evaluates the fused graph and knows nothing of tiles, addresses and split weights.

    Returns:
        What was found, or why nothing was, for a table.

    Raises:
        WitnessError: an element differs; naming the output and the first such element.
    """
    graph = built.passes["fuse"]
    work = sum(macs_of(graph, op) for op in graph.operations)
    if work > MOST:
        return f"not: {work:,} multiplications, at most {MOST:,} are run here"
    count = STEPS if graph.states else 1
    right, ours = States(graph), States(built.plan.graph)
    for number in range(1, count + 1):
        inputs = _drawn(graph, number)
        try:
            wanted = run(graph, {**inputs, **right.values})
            found = run_on_golden(built.plan, inputs, states=ours).outputs
        except GraphError as error:
            return f"not: {error}"
        right.advance(wanted)
        results = {name: wanted[name] for name in graph.results}
        _compare({**results, **right.values}, {**found, **ours.values})
    drawn = "a drawn input" if count == 1 else f"{count} drawn inputs, and states behind each"
    names = graph.results
    return f"{len(names)} of {len(names)} outputs equal golden.graph on {drawn}"


def _compare(wanted: Mapping[str, Array], found: Mapping[str, Array]) -> None:
    """Raise WitnessError for the first element that differs."""
    for name, expected in wanted.items():
        differs = ~(
            (found[name] == expected) | ((expected != expected) & (found[name] != found[name]))
        )
        if differs.any():
            place = tuple(int(i) for i in np.argwhere(differs)[0])
            raise WitnessError(
                f"{name}{list(place)}: the programs give {found[name][place]}, the graph's "
                f"integers {expected[place]}: an error of the compiler, please report it"
            )


def _drawn(graph: Graph, seed: int) -> dict[str, Array]:
    """Return normal numbers for real inputs, and all codes for integers with a scale."""
    drawn = {name: data[-1] for name, data in random_samples(graph, seed).items()}
    random = np.random.default_rng(seed)
    for name in graph.arguments:
        kind = graph.type(name)
        if kind.quantisation is not None:
            ends = np.iinfo(kind.element.dtype)
            codes = random.integers(ends.min, ends.max, kind.shape, endpoint=True)
            drawn[name] = codes.astype(kind.element.dtype)
    return drawn
