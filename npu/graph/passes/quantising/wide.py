# SPDX-License-Identifier: Apache-2.0
"""Results that are to have 16 bits because somebody wants them so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from npu.graph.form import Element, Graph, Operation, OperationPlace, Target
from npu.graph.passes.facts import MOVES
from npu.graph.passes.placing.place import operations_named

OPTION = "wide"


def wide_tensors(graph: Graph, names: Sequence[str]) -> frozenset[str]:
    """Return the tensors that names stand for: inputs, or results of operations.

    Args:
        graph: after the pass `place`.
        names: of inputs, of operations, of kinds, or of operations in the file.

    Raises:
        GraphError: there is no such input or operation.
    """
    found: set[str] = set()
    for name in names:
        if name in graph.inputs:
            found.add(name)
            continue
        for one in operations_named(graph, OPTION, name):
            found.update(one.outputs)
    return frozenset(found)


def is_wide(quantised: Graph, name: str) -> bool:
    """Say whether a real tensor has 16 bits behind the pass `quantise`."""
    images = (name, f"{name}.{Element.I16.value}")
    types = (quantised.tensors[one].type for one in images if one in quantised.tensors)
    return any(one.element == Element.I16 and one.quantisation is not None for one in types)


def moved(graph: Graph, wide: frozenset[str]) -> frozenset[str]:
    """Return tensors, and what moves on the chip make of them."""
    found = set(wide)
    for op in graph.operations:
        if op.on_chip and op.kind in MOVES and not found.isdisjoint(op.inputs):
            found.update(op.outputs)
    return frozenset(found)


def without_tables(graph: Graph, wide: frozenset[str]) -> Graph:
    """Return the graph with products and clips for tables of 8 bits that say the same."""
    return graph.with_operations(
        _untabled(op) if op.on_chip and not wide.isdisjoint(op.outputs) else op
        for op in graph.operations
    )


def _untabled(op: Operation) -> Operation:
    place = OperationPlace(Target.NPU, "VEC has 16 bits where a table would make 8")
    if op.kind != "table" or op["functions"] not in (("square",), ("relu",)):
        return op
    if op["functions"] == ("square",):
        return replace(op, kind="mul", inputs=op.inputs * 2, attributes={}, place=place)
    return replace(op, kind="clip", attributes={"low": 0.0, "high": math.inf}, place=place)
