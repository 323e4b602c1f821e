# SPDX-License-Identifier: Apache-2.0
"""Runs a fused graph step by step: each run finds in the states what the one before has left."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from golden.graph.evaluate import Host, run
from npu.graph import evaluate as floats
from npu.graph.form import Array, Graph, GraphError


def run_steps(
    graph: Graph, inputs: Mapping[str, Array], *, host: Host = floats.run
) -> dict[str, Array]:
    """Evaluate a fused graph several times.

    Args:
        graph: as `run` takes it.
        inputs: an array per input that is no state's; its first axis counts steps.
        host: as `run` takes it.

    Returns:
        All outputs by name, those of states as well; their first axis counts steps.

    Raises:
        GraphError: as `run`, or inputs for several numbers of steps, or for none.
    """
    counts = {len(values) for values in inputs.values()}
    if len(counts) != 1 or not min(counts):
        raise GraphError(f"steps: given {sorted(counts)}, allowed one number for every input")
    held = {}
    for state in graph.states:
        kind = graph.type(state.input)
        zero = kind.quantisation.zero if kind.quantisation else 0
        held[state.input] = np.full(kind.shape, zero, kind.element.dtype)
        if state.initial is not None:
            held[state.input] = state.initial
    steps = []
    for number in range(counts.pop()):
        given = {name: values[number] for name, values in inputs.items()}
        made = run(graph, {**given, **held}, host=host)
        held = {state.input: made[state.output] for state in graph.states}
        steps.append(made)
    return {name: np.stack([made[name] for made in steps]) for name in graph.outputs}
