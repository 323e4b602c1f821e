# SPDX-License-Identifier: Apache-2.0
"""The programs of a plan against the integers of its graph, on inputs that are drawn."""

from __future__ import annotations

import numpy as np

from golden.graph import run
from npu.graph.form import Array, Graph, GraphError
from npu.graph.macs import macs_of
from npu.graph.passes.samples import random_samples
from npu.planner.build_plan import Built
from tessera.golden_chip import run_on_golden

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
    work = sum(macs_of(graph, one) for one in graph.operations)
    if work > MOST:
        return f"not: {work:,} multiplications, at most {MOST:,} are run here"
    inputs = _drawn(graph)
    try:
        wanted, found = run(graph, inputs), run_on_golden(built.plan, inputs).outputs
    except GraphError as error:
        return f"not: {error}"
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
    return f"{len(wanted)} of {len(wanted)} outputs equal golden.graph on a drawn input"


def _drawn(graph: Graph) -> dict[str, Array]:
    """Return normal numbers for real inputs, and all codes for integers with a scale."""
    drawn = {name: data[0] for name, data in random_samples(graph, 1).items()}
    random = np.random.default_rng(1)
    for name in graph.inputs:
        kind = graph.type(name)
        if kind.quantisation is not None:
            ends = np.iinfo(kind.element.dtype)
            codes = random.integers(ends.min, ends.max, kind.shape, endpoint=True)
            drawn[name] = codes.astype(kind.element.dtype)
    return drawn
