# SPDX-License-Identifier: Apache-2.0
"""Lets a network take and give the integers of the chip, without real numbers at its borders."""

from __future__ import annotations

from dataclasses import replace

from npu.graph.form import Graph, GraphError, Operation, Tensor
from npu.graph.operations.base import FLOATS
from npu.graph.verify import named

TEXT = "allowed with integer borders are inputs and outputs that only the chip reads and makes"


def integer_borders(graph: Graph) -> Graph:
    """Return a graph whose inputs and outputs are what its borders make of real numbers.

    Args:
        graph: of the pass `fuse`. An input that is quantised becomes the integers of that, under
            its own name, with their scale; likewise an output that is dequantised. Those that are
            no floats stay as they are.

    Raises:
        GraphError: an input or output stays in float; says which operation of the host has it.
    """
    gone: set[str] = set()
    renamed: dict[str, str] = {}
    for name in graph.inputs:
        if graph.type(name).element in FLOATS:
            border = _border(graph, f"input {name!r}", graph.consumers()[name], "quantise")
            renamed[border.outputs[0]] = name
            gone.add(border.name)
    for name in graph.outputs:
        if graph.type(name).element in FLOATS:
            maker = graph.producers().get(name)
            makers = [] if maker is None else [maker]
            border = _border(graph, f"output {name!r}", makers, "dequantise")
            image = border.inputs[0]
            if image in renamed or graph.constant(image) is not None or graph.consumers()[name]:
                raise GraphError(f"output {name!r}: also an input, a constant or read; {TEXT}")
            renamed[image] = name
            gone.add(border.name)
    tensors = [Tensor(new, graph.type(old)) for old, new in renamed.items()]
    kept = [_under(one, renamed) for one in graph.operations if one.name not in gone]
    return graph.with_operations(kept, tensors)


def _border(graph: Graph, what: str, found: list[Operation], kind: str) -> Operation:
    """Return the only operation at a border if it is one of a kind."""
    others = [one for one in found if one.kind != kind or one.on_chip]
    if len(found) != 1 or others:
        who = named(others[0]) if others else f"{len(found)} operations"
        raise GraphError(f"{what}: {who} of the host has it in float; {TEXT}")
    return found[0]


def _under(one: Operation, renamed: dict[str, str]) -> Operation:
    """Return an operation that reads and makes tensors under their new names."""
    return replace(
        one,
        inputs=tuple(renamed.get(name, name) for name in one.inputs),
        outputs=tuple(renamed.get(name, name) for name in one.outputs),
    )
