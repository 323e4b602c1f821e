# SPDX-License-Identifier: Apache-2.0
"""Lets a network take and give the integers of the chip, without real numbers at its borders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from npu.graph.form import Graph, GraphError, Operation, Tensor
from npu.graph.operations.base import FLOATS
from npu.graph.operations.borders import quantised
from npu.graph.verify import named

TEXT = "allowed with integer borders are inputs and outputs that only the chip reads and makes"


def integer_borders(graph: Graph) -> Graph:
    """Return a graph whose inputs and outputs are what its borders make of real numbers.

    Args:
        graph: of the pass `fuse`. An input that is quantised becomes the integers of that, under
            its own name, with their scale; likewise an output that is dequantised. Those that are
            no floats stay as they are, and states are the affair of `integer_states`.

    Raises:
        GraphError: an input or output stays in float; says which operation of the host has it.
    """
    return _in_integers(graph, graph.arguments, graph.results)


def integer_states(graph: Graph) -> Graph:
    """Return a graph whose states are the integers of the chip, where it alone has them.

    Who keeps such a state hands bytes on as they are. One that the host reads or makes, or that has
    one scale at the beginning of a run and another at its end, stays in real numbers.
    """
    for state in graph.states:
        try:
            changed = _in_integers(graph, [state.input], [state.output])
        except GraphError:
            continue
        kind = changed.type(state.input)
        if kind != changed.type(state.output) or kind == graph.type(state.input):
            continue
        if state.initial is not None:
            first = replace(state, initial=quantised(state.initial, kind))
            others = (first if one is state else one for one in graph.states)
            changed = replace(changed, states=tuple(others))
        graph = changed
    return graph


def _in_integers(graph: Graph, inputs: Iterable[str], outputs: Iterable[str]) -> Graph:
    """Return a graph that has the integers of some inputs and outputs in place of their reals."""
    gone: set[str] = set()
    renamed: dict[str, str] = {}
    for name in inputs:
        if graph.type(name).element in FLOATS:
            border = _border(graph, f"input {name!r}", graph.consumers()[name], "quantise")
            renamed[border.outputs[0]] = name
            gone.add(border.name)
    for name in outputs:
        if graph.type(name).element in FLOATS:
            maker = graph.producers().get(name)
            makers = [] if maker is None else [maker]
            border = _border(graph, f"output {name!r}", makers, "dequantise")
            image = border.inputs[0]
            taken = image in renamed or image in graph.inputs or image in graph.outputs
            if taken or graph.constant(image) is not None or graph.consumers()[name]:
                raise GraphError(f"output {name!r}: also an input, a constant or read; {TEXT}")
            renamed[image] = name
            gone.add(border.name)
    tensors = [Tensor(new, graph.type(old)) for old, new in renamed.items()]
    kept = [_under(op, renamed) for op in graph.operations if op.name not in gone]
    return graph.with_operations(kept, tensors)


def _border(graph: Graph, what: str, found: list[Operation], kind: str) -> Operation:
    """Return the only operation at a border if it is one of a kind."""
    others = [one for one in found if one.kind != kind or one.on_chip]
    if len(found) != 1 or others:
        who = named(others[0]) if others else f"{len(found)} operations"
        raise GraphError(f"{what}: {who} of the host has it in float; {TEXT}")
    return found[0]


def _under(op: Operation, renamed: dict[str, str]) -> Operation:
    """Return an operation that reads and makes tensors under their new names."""
    return replace(
        op,
        inputs=tuple(renamed.get(name, name) for name in op.inputs),
        outputs=tuple(renamed.get(name, name) for name in op.outputs),
    )
