# SPDX-License-Identifier: Apache-2.0
"""Who executes each operation, and why."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from npu.graph.form import Graph, GraphError, Operation, OperationPlace, Target
from npu.graph.operations import TABLE
from npu.graph.passes.facts import BORDERS, Facts
from npu.graph.passes.placing.cut import WISH, least_cut
from npu.graph.passes.placing.host_sums import exact_sums
from npu.graph.passes.placing.lower import lower
from npu.graph.passes.placing.lower_integers import real_operations
from npu.graph.passes.placing.place_rules import refusal
from npu.graph.verify import named

PORT_KIND = "portmatmul"
BORDER = "it is a border between real numbers and integers"


def place(
    graph: Graph,
    *,
    host: Sequence[str] = (),
    npu: Sequence[str] = (),
    port: Sequence[str] = (),
    refused: Mapping[str, str] | None = None,
) -> Graph:
    """Give each operation a place with its reason, and bring those of the chip to its forms.

    Args:
        graph: canonical.
        host: names of operations, of kinds, or of operations in the file ("Conv"), that the host
            is to execute.
        npu: the same for programs of the chip.
        port: the same for the chip's command port.
        refused: operations for which the chip has no room, each with the reason.

    Returns:
        The graph with places; operations of the chip are such as its instructions take them, for
        example norms without negative gains and softmax along the last axis.

    Raises:
        GraphError: a name does not exist, or an operation is impossible where it is named.
    """
    graph = real_operations(graph)
    wishes = _wishes(graph, {"host": host, "npu": npu, "port": port})
    facts, full = Facts(graph), refused or {}
    placed = [
        _placed(op, wishes.get(op.name, ""), refusal(facts, op) or full.get(op.name, ""))
        for op in graph.operations
    ]
    found = graph.with_operations(placed)
    return exact_sums(lower(least_cut(found)))


def _wishes(graph: Graph, lists: Mapping[str, Sequence[str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for wish, wanted in lists.items():
        for name in wanted:
            for one in (each.name for each in operations_named(graph, wish, name)):
                if found.get(one, wish) != wish:
                    raise GraphError(
                        f"--{wish} {name}: it is named for {found[one]} too, allowed one place"
                    )
                found[one] = wish
    return found


def operations_named(graph: Graph, option: str, name: str) -> list[Operation]:
    """Return the operation of a name, else those of a kind, or of an operation in the file.

    Raises:
        GraphError: there is none; `option` is what asked for it.
    """
    by_name = {op.name: op for op in graph.operations}
    if name in by_name:
        return [by_name[name]]
    found = [
        op
        for op in graph.operations
        if op.kind == name or (name and name in op.source.split(" + "))
    ]
    if not found:
        near = difflib.get_close_matches(name, sorted(by_name), 3) or sorted(by_name)[:3]
        raise GraphError(
            f"--{option} {name}: there is no such operation, allowed for example {', '.join(near)}"
        )
    return found


def _placed(op: Operation, wish: str, why_not: str) -> Operation:
    if op.kind == PORT_KIND or wish == "port":
        return _on_port(op, wish)
    if op.kind in BORDERS and wish != "npu":
        return replace(op, place=OperationPlace(Target.HOST, BORDER))
    if wish == "npu" and why_not:
        raise GraphError(f"--npu {op.name}: {named(op)} cannot be executed by the chip: {why_not}")
    if wish == "host":
        return replace(op, place=OperationPlace(Target.HOST, "the user wants it on the host"))
    if why_not:
        return replace(op, place=OperationPlace(Target.HOST, why_not))
    reason = WISH if wish else TABLE[op.kind].chip
    return replace(op, place=OperationPlace(Target.NPU, reason))


def _on_port(op: Operation, wish: str) -> Operation:
    """Place a product in a format of the command port, or refuse another operation there."""
    if op.kind != PORT_KIND:
        raise GraphError(
            f"--port {op.name}: {named(op)} cannot be executed by the command port: it "
            f"multiplies matrices in formats of its own ({PORT_KIND})"
        )
    if wish == "npu":
        raise GraphError(
            f"--npu {op.name}: {named(op)} cannot be executed by a program: its array multiplies "
            f"int8, {op['format']} is a format of the command port"
        )
    if wish == "host":
        return replace(op, place=OperationPlace(Target.HOST, "the user wants it on the host"))
    return replace(
        op, place=OperationPlace(Target.PORT, f"the command port multiplies {op['format']}")
    )
