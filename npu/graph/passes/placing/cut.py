# SPDX-License-Identifier: Apache-2.0
"""The cheapest border between chip and host.

What the chip could execute it need not: a cheap operation between two of the host costs more to
bring there and back than to compute. A cut of the graph costs the bytes that cross it and the work
of all operations on its host side; the least is a minimum cut of a network of flows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import networkx

from npu.graph.form import Element, Graph, Operation, OperationPlace, Target
from npu.graph.macs import macs_of
from npu.graph.passes.facts import BORDERS, MOVES, NORMS, Facts

WISH = "the user wants it on the chip"
MOVES_ALONE = "nothing but moves between operations of the host"
CHEAP = "its work costs the host less than the bytes that would cross the border"

_CHIP, _HOST = "chip", "host"
_FULL, _EDGE = 8, 1
"""Of a byte that crosses between operations, and between the user and the chip.

What the user gives and gets is with the host wherever the network runs: only the conversion counts.
An eighth lets an operation that stands alone run on the chip, and moves that stand alone not.
"""
_ROWS = 8
"""Passes over its elements that a softmax or a norm takes."""


def least_cut(graph: Graph) -> Graph:
    """Move to the host what costs more to bring to the chip than to compute.

    Of equal cuts it is the one with most operations on the chip. What the user wants on the chip
    stays there.
    """
    facts = Facts(graph)
    open_ones = [op for op in graph.operations if op.on_chip and not _given(facts, op)]
    if not open_ones:
        return graph
    host = _host_side(facts)
    moved = {one.name for one in open_ones if one.name in host}
    reasons = _reasons(facts, moved)
    return graph.with_operations(
        replace(op, place=OperationPlace(Target.HOST, reasons[op.name])) if op.name in moved else op
        for op in graph.operations
    )


def work_of(graph: Graph, op: Operation) -> int:
    """Return the cost of an operation on the host: multiplications, or elements that it looks at.

    A move costs nothing: the host reads the elements where they are.
    """
    if op.kind in (*MOVES, *BORDERS):
        return 0
    macs = macs_of(graph, op)
    if macs:
        return macs
    if "window" in op.attributes:
        rows, columns = op["window"]
        return graph.type(op.outputs[0]).size * int(rows) * int(columns)
    elements = sum(graph.type(name).size for name in op.used if not graph[name].constant)
    return elements * (_ROWS if op.kind in {"softmax", *NORMS} else 1)


def bytes_of(graph: Graph, name: str) -> int:
    """Return the bytes of a tensor on its way between chip and host, real numbers as int8."""
    kind = graph.type(name)
    real = kind.element in (Element.F16, Element.F32, Element.F64)
    return kind.size * (1 if real else kind.element.dtype.itemsize)


def _given(facts: Facts, op: Operation) -> bool:
    """Whether all that an operation makes is constant, so that nobody executes it."""
    return bool(op.outputs) and facts.value(op.outputs[0]) is not None


def _is_border(graph: Graph, op: Operation) -> bool:
    """Whether the host has to execute an operation wherever the border is: it is a part of it."""
    flips = op.kind == "requantise" and Element.U8 in {
        graph.type(name).element for name in (*op.used, *op.outputs)
    }
    return flips or op.kind in BORDERS


def _host_side(facts: Facts) -> set[str]:
    """Return the operations on the host's side of the least cut with fewest of them."""
    flows = networkx.DiGraph()
    for start, end, cost in _edges(facts):
        if flows.has_edge(start, end):
            if cost is None:
                flows[start][end].pop("capacity", None)
            elif "capacity" in flows[start][end]:
                flows[start][end]["capacity"] += cost
        elif cost is None:
            flows.add_edge(start, end)  # without a capacity there is no limit
        else:
            flows.add_edge(start, end, capacity=cost)
    flows.add_nodes_from((_CHIP, _HOST))
    # The second part is all from which there is a way to the host: the smallest that is possible.
    _, (_, host) = networkx.minimum_cut(flows, _CHIP, _HOST)
    return {node[1] for node in host if node[0] == "operation"}


def _edges(facts: Facts) -> Iterator[tuple[object, object, int | None]]:
    """Yield (from, to, cost of having the first on the chip and the second on the host)."""
    graph = facts.graph
    for op in graph.operations:
        if _given(facts, op) or _is_border(graph, op):
            continue
        node = ("operation", op.name)
        if not op.on_chip:
            yield node, _HOST, None
        elif op.place is not None and op.place.reason == WISH:
            yield _CHIP, node, None
        else:
            yield _CHIP, node, _FULL * work_of(graph, op)
    for name in graph.tensors:
        if facts.value(name) is None:
            yield from _crossings(facts, name)


def _crossings(facts: Facts, name: str) -> Iterator[tuple[object, object, int | None]]:
    """Yield the edges of a tensor, which crosses once, however many read it on the other side."""
    graph = facts.graph
    size = bytes_of(graph, name)
    readers: list[object] = [("operation", one.name) for one in facts.readers[name]]
    maker = facts.maker(name)
    up, down = ("up", name), ("down", name)
    if maker is None:
        if readers:
            yield up, _HOST, _EDGE * size
    else:
        node = ("operation", maker.name)
        if readers:
            yield up, node, _FULL * size
            yield node, down, _FULL * size
        if name in graph.outputs:
            yield node, _HOST, _EDGE * size
    for reader in readers:
        yield reader, up, None
        if maker is not None:
            yield down, reader, None


def _reasons(facts: Facts, moved: set[str]) -> dict[str, str]:
    """Return a sentence for each operation that is moved, one for all that belong together."""
    found: dict[str, str] = {}
    for group in _together(facts, moved):
        alone = all(one.kind in MOVES for one in group)
        found |= dict.fromkeys((one.name for one in group), MOVES_ALONE if alone else CHEAP)
    return found


def _together(facts: Facts, names: set[str]) -> Iterable[list[Operation]]:
    """Return operations of these names as connected groups, in the order of the graph."""
    groups: dict[str, list[Operation]] = {}
    for op in facts.graph.operations:
        if op.name not in names:
            continue
        groups[op.name] = [op]
        for name in op.used:
            maker = facts.maker(name)
            other = groups.get(maker.name) if maker is not None else None
            if other is None or other is groups[op.name]:
                continue
            other += groups[op.name]
            for member in groups[op.name]:
                groups[member.name] = other
    unique = {id(group): group for group in groups.values()}
    return unique.values()
