# SPDX-License-Identifier: Apache-2.0
"""Graphs inside nodes of ONNX: of a Loop whose turns are known, of an If that is decided."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper

from npu.graph.importers.onnx_dialects import Adding
from npu.graph.importers.onnx_load import array, node_name
from npu.graph.importers.unmapped import UnmappedError

NODES = 4096
"""More are left to the host."""


def unrolled(node: onnx.NodeProto, build: Any, add: Adding) -> None:  # noqa: ANN401
    """Add what a Loop computes, turn by turn.

    Args:
        node: a Loop.
        build: the graph so far.
        add: adds a node of its operator set.

    Raises:
        UnmappedError: how many turns it has depends on values, or is too large.
    """
    body = next(one.g for one in node.attribute if one.name == "body")
    name = node_name(node)
    inputs = [*node.input, "", ""][: max(2, len(node.input))]
    count = _known(build, inputs[0], "the number of turns") if inputs[0] else None
    go = bool(_known(build, inputs[1], "the condition")) if inputs[1] else True
    states, scanned = list(inputs[2:]), len(body.output) - 1 - len(inputs[2:])
    scans: list[list[str]] = [[] for _ in range(scanned)]
    turn, size = 0, max(1, len(body.node))
    while go and (count is None or turn < count):
        if max(turn + 1, count or 0) * size > NODES:
            raise UnmappedError(f"more than {NODES:,} operations in all turns are not mapped")
        results = _turn(body, f"{name}.{turn}", turn, states, build, add)
        go = bool(_known(build, results[0], "the condition of a turn"))
        states = results[1 : 1 + len(states)]
        for rows, result in zip(scans, results[1 + len(states) :], strict=True):
            rows.append(result)
        turn += 1
    if not turn and scanned:
        raise UnmappedError("a loop without a turn is not mapped")
    for result, output in zip([*states, *scans], node.output, strict=False):
        if output:
            _give(result, output, f"{name}.{output}", build, add)


def decided(node: onnx.NodeProto, build: Any, add: Adding) -> None:  # noqa: ANN401
    """Add what the branch of an If computes that its condition chooses.

    Args:
        node: an If.
        build: the graph so far.
        add: adds a node of its operator set.

    Raises:
        UnmappedError: the condition depends on values.
    """
    wanted = "then_branch" if _known(build, node.input[0], "the condition") else "else_branch"
    branch = next(one.g for one in node.attribute if one.name == wanted)
    name = node_name(node)
    results = _inside(branch, name, {}, build, add)
    for result, output in zip(results, node.output, strict=True):
        if output:
            _give(result, output, f"{name}.{output}", build, add)


def _known(build: Any, name: str, what: str) -> int:  # noqa: ANN401
    found = build.value(name)
    if found is None:
        raise UnmappedError(f"{what} {name!r} is not constant")
    return int(np.asarray(found).reshape(-1)[0])


def _turn(
    body: onnx.GraphProto,
    prefix: str,
    turn: int,
    states: list[str],
    build: Any,  # noqa: ANN401
    add: Adding,
) -> list[str]:
    """Add the nodes of one turn; return the names of the results of the body."""
    given = [build.constant(np.array(turn), f"{prefix}.turn")]
    given += [build.constant(np.array(True), f"{prefix}.go"), *states]
    names = dict(zip((one.name for one in body.input), given, strict=True))
    return _inside(body, prefix, names, build, add)


def _inside(
    body: onnx.GraphProto,
    prefix: str,
    names: dict[str, str],
    build: Any,  # noqa: ANN401
    add: Adding,
) -> list[str]:
    """Add the nodes of a graph inside a node; return the names of its results."""
    for tensor in body.initializer:
        names[tensor.name] = build.constant(array(tensor), f"{prefix}.{tensor.name}")
    for one in body.node:
        names |= {each: build.fresh(f"{prefix}.{each}") for each in one.output if each}
    for one in body.node:
        build.called()
        add(renamed(one, names, prefix))
    return [names.get(one.name, one.name) for one in body.output]


def renamed(node: onnx.NodeProto, names: Mapping[str, str], prefix: str = "") -> onnx.NodeProto:
    """Return a node with other names of tensors, those that graphs inside it read included."""
    made = onnx.NodeProto()
    made.CopyFrom(node)
    if prefix:
        made.name = f"{prefix}.{node_name(node)}"
    for field in (made.input, made.output):
        field[:] = [names.get(name, name) for name in field]
    for attribute in made.attribute:
        for graph in (*attribute.graphs, *([attribute.g] if attribute.HasField("g") else [])):
            own = {one.name for one in (*graph.input, *graph.initializer)}
            own |= {name for one in graph.node for name in one.output}
            outer = {name: new for name, new in names.items() if name not in own}
            nodes = [renamed(one, outer) for one in graph.node]
            del graph.node[:]
            graph.node.extend(nodes)
            for one in graph.output:
                one.name = outer.get(one.name, one.name)
    return made


def _give(result: str | list[str], output: str, label: str, build: Any, add: Adding) -> None:  # noqa: ANN401
    """Add what makes a result of the loop: its last state, or what its turns have made in a row."""
    if isinstance(result, str):
        add(helper.make_node("Identity", [result], [output], label))
        return
    rows = []
    for name in result:
        shape = build.constant(np.array([1, *build.shape(name)], np.int64), f"{name}.shape")
        rows.append(build.fresh(f"{name}.row"))
        add(helper.make_node("Reshape", [name, shape], [rows[-1]], f"{name}.row"))
    add(helper.make_node("Concat", rows, [output], label, axis=0))
