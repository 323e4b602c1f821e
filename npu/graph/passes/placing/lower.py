# SPDX-License-Identifier: Apache-2.0
"""Brings real operations of the chip to the forms that its instructions have.

Everything here is exact in real numbers: the graph afterwards has the same float meaning. So the
passes behind it choose scales for tensors that exist on the chip.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Element, Graph, Operation, OperationPlace, Target
from npu.graph.passes.facts import BORDERS, LINEAR, NORMS, UNARY_MOVES, Facts, chip_type, turns_rows
from npu.graph.passes.placing.fold_norms import fold_norms
from npu.graph.passes.placing.lower_linear import channelwise, mean, unturned
from npu.graph.passes.placing.lower_rows import HOST_TURN, attention, norm, softmax
from npu.graph.passes.placing.place_widths import rescaled
from npu.graph.passes.rewriter import Rewriter

Rule = Callable[[Rewriter, Facts, Operation], bool]


def lower(graph: Graph) -> Graph:
    """Return the graph with operations of the chip in its forms; those of the host stay."""
    graph = fold_norms(graph)
    for rules in (_FIRST, _SECOND):
        graph = _apply(graph, rules)
    return _read(graph)


def _read(graph: Graph) -> Graph:
    """Drop borders whose result nobody reads any more."""
    facts = Facts(graph)
    return graph.with_operations(
        op
        for op in graph.operations
        if op.kind not in BORDERS or op.outputs[0] in graph.outputs or facts.readers[op.outputs[0]]
    )


def _apply(graph: Graph, rules: dict[str, tuple[Rule, ...]]) -> Graph:
    facts, writer = Facts(graph), Rewriter(graph)
    for op in graph.operations:
        done = (op.on_chip or op.kind == "quantise") and any(
            rule(writer, facts, op) for rule in rules.get(op.kind, ())
        )
        if not done:
            writer.keep(op)
    return writer.rewritten()


def _clip(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Make clips of tables that clip, because bounds need no table."""
    low, high = -np.inf, np.inf
    values = list(op["parameters"])
    for name in op["functions"]:
        if name == "relu":
            low, high = max(low, 0.0), max(high, 0.0)
        elif name == "clip":
            least, most = values.pop(0), values.pop(0)
            low, high = min(max(low, least), most), min(max(high, least), most)
        else:
            return False
    writer.emit(op, "clip", op.inputs, output=op.outputs[0], low=low, high=high)
    return True


def _requantise(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Make one operation of real numbers that are read only to be quantised again."""
    maker = facts.maker(op.inputs[0])
    if maker is None or maker.kind != "dequantise":
        return False
    x, y = maker.inputs[0], op.outputs[0]
    if facts.graph.constant(x) is not None or facts.only_reader(op.inputs[0]) is None:
        return False
    source = facts.maker(x)
    inside = source is not None and source.kind == "quantise"
    if not inside or not any(other.kind == "dequantise" for other in facts.readers[y]):
        return False
    if chip_type(facts.graph.type(x)) is None or chip_type(facts.graph.type(y)) is None:
        return False
    if not rescaled(facts.graph.type(x), facts.graph.type(y)):
        return False
    place = OperationPlace(Target.NPU, "a table, or VEC scales")
    writer.emit(op, "requantise", (x,), output=y, place=place)
    return True


def _gather(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Make slices of constant indices, one per run of neighbours."""
    indices = facts.value(op.inputs[1])
    assert indices is not None
    x, axis = op.inputs[0], op["axis"]
    shape = facts.graph.type(x).shape
    flat = [int(i) % shape[axis] for i in indices.reshape(-1)]
    cuts = [0, *(i for i in range(1, len(flat)) if flat[i] != flat[i - 1] + 1), len(flat)]
    parts: list[str] = []
    for first, after in itertools.pairwise(cuts):
        starts, stops = [0] * len(shape), list(shape)
        starts[axis], stops[axis] = flat[first], flat[after - 1] + 1
        parts.append(
            writer.emit(
                op,
                "slice",
                (x,),
                part=f"run{len(parts)}",
                starts=starts,
                stops=stops,
                steps=[1] * len(shape),
            )
        )
    whole = parts[0]
    if len(parts) > 1:
        whole = writer.emit(op, "concat", parts, part="runs", axis=axis)
    result = facts.graph.type(op.outputs[0]).shape
    writer.emit(op, "reshape", (whole,), output=op.outputs[0], shape=result)
    return True


def _turn(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Let the host turn rows of 16 bits that come from it: the chip turns bytes."""
    maker, reader = facts.maker(op.inputs[0]), facts.only_reader(op.outputs[0])
    if (maker is not None and maker.on_chip) or reader is None or not turns_rows(op):
        return False
    if not reader.on_chip or reader.kind not in {"softmax", *NORMS}:
        return False
    writer.keep(replace(op, place=HOST_TURN))
    return True


def _sums(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Take int32 sums from the product itself; the host moves what it gets."""
    x, kind = op.inputs[0], facts.graph.type(op.outputs[0])
    if kind.element != Element.I32:
        return False
    moves: list[Operation] = []
    maker = facts.maker(x)
    while maker is not None and maker.kind in UNARY_MOVES and facts.only_reader(x) is not None:
        moves.insert(0, maker)
        x = maker.inputs[0]
        maker = facts.maker(x)
    alone = facts.only_reader(x) is not None
    if not moves or not alone or maker is None or maker.kind not in LINEAR:
        return False
    for move in moves:
        writer.operations = [each for each in writer.operations if each.name != move.name]
    made = replace(kind, shape=facts.graph.type(x).shape)
    y = writer.emit(op, "quantise", (x,), result=made)
    for move in moves:
        output = op.outputs[0] if move is moves[-1] else ""
        result = replace(kind, shape=facts.graph.type(move.outputs[0]).shape)
        attributes: dict[str, Any] = dict(move.attributes)
        place = OperationPlace(Target.HOST, "the chip moves no int32")
        y = writer.emit(
            move, move.kind, (y,), output=output, result=result, place=place, **attributes
        )
    return True


_FIRST: dict[str, tuple[Rule, ...]] = {
    "table": (_clip,),
    "softmax": (softmax,),
    "layernorm": (norm,),
    "rmsnorm": (norm,),
    "attention": (attention,),
    "matmul": (unturned,),
    "mean": (mean,),
    "gather": (_gather,),
    "quantise": (_requantise, _sums),
    "transpose": (_turn,),
}
_SECOND: dict[str, tuple[Rule, ...]] = {
    "add": (channelwise,),
    "sub": (channelwise,),
    "mul": (channelwise,),
}
