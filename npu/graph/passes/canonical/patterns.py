# SPDX-License-Identifier: Apache-2.0
"""Replaces what is spelled with primitive operations by the operation that it computes.

Sources have no softmax, norm, GELU or attention, or spell them their own way. A pattern is a guess
from the structure, with holes for scales and axes; it is taken only if the float meanings agree on
random input to 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from npu.graph.form import Graph, GraphError, Names, Operation, Tensor, all_names
from npu.graph.passes.canonical import (
    pattern_attention,
    pattern_functions,
    pattern_integers,
    pattern_moves,
    pattern_rope,
    pattern_rows,
    pattern_windows,
)
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import GraphView

Pattern: TypeAlias = Callable[[GraphView, Operation, Names], Replacement | None]
"""Looks at the last operation of a guess; what replaces it, or None."""

PATTERNS: tuple[tuple[Pattern, ...], ...] = (
    (pattern_integers.gathered, pattern_integers.filled, pattern_moves.chosen),
    (pattern_integers.quantised, pattern_integers.dequantised),
    (pattern_windows.means, pattern_windows.averages),
    (pattern_rows.norms,),
    (pattern_rows.softmaxes,),
    (pattern_functions.functions,),
    (pattern_rope.ropes,),
    (pattern_attention.attentions,),
    (pattern_moves.scaled, pattern_moves.grouped, pattern_moves.shortened),
)
_ROUNDS = 8


def replace_patterns(graph: Graph) -> Graph:
    """Return a graph in which patterns are one operation each.

    Args:
        graph: its constants computed; any spelling.

    Returns:
        The graph that computes the same to 1e-5, with the names of inputs and outputs.
    """
    for _ in range(_ROUNDS):
        before = len(graph.operations)
        changed = False
        for patterns in PATTERNS:
            graph, found = _replaced(graph, patterns)
            changed |= found
        if not changed or len(graph.operations) > 2 * before:
            break
    return graph


def _replaced(graph: Graph, patterns: Sequence[Pattern]) -> tuple[Graph, bool]:
    """Apply patterns to each operation, the last one first, so that the largest guess is found."""
    view, names = GraphView(graph), Names(all_names(graph))
    edits: dict[str, Replacement] = {}
    tensors: dict[str, Tensor] = {}
    alive = _alive(graph, edits)
    for op in reversed(graph.operations):
        if op.name not in alive or len(op.outputs) != 1:
            continue
        for pattern in patterns:
            try:
                edit = pattern(view, op, names)
            except GraphError:
                # A guess that is no legal operation is none.
                continue
            if edit is not None:
                edits[op.name] = edit
                tensors.update(edit.made)
                alive = _alive(graph, edits)
                break
    if not edits:
        return graph, False
    operations: list[Operation] = []
    for op in graph.operations:
        if op.name in alive:
            operations.extend(edits[op.name].operations if op.name in edits else [op])
    return graph.with_operations(operations, tensors.values()), True


def _alive(graph: Graph, edits: dict[str, Replacement]) -> set[str]:
    """Return the names of the operations whose results something still reads."""
    needed, alive = set(graph.outputs), set()
    for op in reversed(graph.operations):
        if needed.isdisjoint(op.outputs):
            continue
        alive.add(op.name)
        parts = edits[op.name].operations if op.name in edits else [op]
        for part in parts:
            needed.update(part.used)
    return alive
