# SPDX-License-Identifier: Apache-2.0
"""Results that are to have 16 bits because somebody wants them so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from npu.graph.form import Element, Graph, Operation, OperationPlace, Target
from npu.graph.passes.facts import LINEAR, MOVES, Facts
from npu.graph.passes.placing.place import operations_named
from npu.graph.passes.quantising.calibrate import Range
from npu.graph.passes.rewriter import Rewriter

OPTION = "wide"
GELUS = (("gelu",), ("gelu_tanh",))
NEAR, REST = 4.0, 0.1701
"""Where GELU differs from what is above 0 by more than 0.0002, and the most that it does."""


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


def without_tables(
    graph: Graph, ranges: Mapping[str, Range] | None, wide: frozenset[str]
) -> tuple[Graph, Mapping[str, Range] | None, frozenset[str]]:
    """Say tables of 8 bits in products, clips and sums that have 16, or in part.

    Args:
        graph: after the pass `place`.
        ranges: of calibration, None without samples.
        wide: tensors that are to have 16 bits.

    Returns:
        The graph, and ranges and wide tensors with those that are new in it.
    """
    found, more = dict(ranges or {}), set(wide)
    facts, writer = Facts(graph), Rewriter(graph)
    for op in graph.operations:
        if not op.on_chip or wide.isdisjoint(op.outputs):
            writer.keep(op)
        elif _is_gelu(facts, op) and op.inputs[0] in found:
            _divided(writer, op, found, more)
        else:
            writer.keep(_untabled(op))
    return writer.rewritten(), None if ranges is None else found, frozenset(more)


def _is_gelu(facts: Facts, op: Operation) -> bool:
    """Say whether an operation is GELU of what a product has made for it alone."""
    if op.kind != "table" or op["functions"] not in GELUS:
        return False
    maker = facts.maker(op.inputs[0])
    alone = facts.only_reader(op.inputs[0]) is op
    return alone and maker is not None and maker.on_chip and maker.kind in LINEAR


def _divided(writer: Rewriter, op: Operation, ranges: dict[str, Range], wide: set[str]) -> None:
    """Write GELU as what is above 0, in 16 bits, and a small rest that is a table.

    gelu(x) = max(x, 0) + gelu(-|x|), and the second is nearly 0 where x is far from it.
    """
    x, y = op.inputs[0], op.outputs[0]
    place = OperationPlace(Target.NPU, "of a table of 8 bits only what is near 0")
    wide.add(x)
    seen = ranges[x]
    high = max(seen.high, 0.0)
    above = writer.emit(op, "clip", (x,), part="above", place=place, low=0.0, high=math.inf)
    ranges[above] = Range(0.0, high, high)
    # The table reads int8 of x that saturate where the rest is 0.
    ranges[x] = replace(seen, magnitude=NEAR)
    functions = ("abs", "neg", *op["functions"])
    rest = writer.emit(
        op, "table", (x,), part="rest", place=place, functions=functions, parameters=()
    )
    ranges[rest] = Range(-REST, 0.0, REST)
    writer.emit(op, "add", (above, rest), output=y, place=place)


def _untabled(op: Operation) -> Operation:
    place = OperationPlace(Target.NPU, "VEC has 16 bits where a table would make 8")
    if op.kind != "table" or op["functions"] not in (("square",), ("relu",)):
        return op
    if op["functions"] == ("square",):
        return replace(op, kind="mul", inputs=op.inputs * 2, attributes={}, place=place)
    return replace(op, kind="clip", attributes={"low": 0.0, "high": math.inf}, place=place)
