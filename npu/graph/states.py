# SPDX-License-Identifier: Apache-2.0
"""Tensors that live from run to run: which they are, and what they hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Graph, GraphError, State
from npu.graph.text import type_text


def with_states(graph: Graph, pairs: Mapping[str, str]) -> Graph:
    """Make inputs of a graph what its last run has left as outputs.

    Args:
        graph: of an importer.
        pairs: by the name of an input, the name of the output that is its next value.

    Raises:
        GraphError: a name is none, or has a state already; input and output differ in type.
    """
    for name, left in pairs.items():
        where = f"state {name}={left}"
        if name not in graph.arguments:
            raise GraphError(f"{where}: given {name!r}, allowed inputs {_listed(graph.arguments)}")
        if left not in graph.results:
            raise GraphError(f"{where}: given {left!r}, allowed outputs {_listed(graph.results)}")
        kinds = graph.type(name), graph.type(left)
        if kinds[0] != kinds[1]:
            raise GraphError(
                f"{where}: given {type_text(kinds[0])} and {type_text(kinds[1])}, allowed one type"
            )
        graph = replace(graph, states=(*graph.states, State(name, left)))
    return graph


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names) or "none: there is no other"


def first_value(graph: Graph, state: State) -> Array:
    """Return what the first run finds in a state."""
    if state.initial is not None:
        return state.initial
    kind = graph.type(state.input)
    zero = 0 if kind.quantisation is None else kind.quantisation.zero
    return np.full(kind.shape, zero, kind.element.dtype)


class States:
    """What the states of a graph hold between two runs.

    Attributes:
        values: by the name of the input.
    """

    values: dict[str, Array]

    def __init__(self, graph: Graph, values: Mapping[str, Array] | None = None) -> None:
        """Begin as the first run does, or with given values."""
        self._graph = graph
        self.reset()
        self.values |= values or {}

    def reset(self) -> None:
        """Forget all runs."""
        self.values = {one.input: first_value(self._graph, one) for one in self._graph.states}

    def advance(self, outputs: Mapping[str, Array]) -> None:
        """Take what a run has left, by the names of the outputs."""
        self.values = {one.input: outputs[one.output] for one in self._graph.states}
