# SPDX-License-Identifier: Apache-2.0
"""Moves and pools on integers as what they are: the same on the numbers that these stand for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from npu.graph.form import Element, Graph, Operation, Quantisation
from npu.graph.passes.facts import CHIP_BYTES, UNARY_MOVES, Facts
from npu.graph.passes.rewriter import Rewriter

_COUNTS = Quantisation((1.0,))


def real_operations(graph: Graph) -> Graph:
    """Put moves and pools of int8 and uint8 between a dequantise and a quantise.

    So the passes behind know one form of quantised networks. A pool of integers that stand for
    nothing counts them as they are.
    """
    facts, writer = Facts(graph), Rewriter(graph)
    for op in graph.operations:
        if not _on_integers(facts, writer, op):
            writer.keep(op)
            continue
        x, y = op.inputs[0], op.outputs[0]
        for name in (x, y):
            kind = writer.type(name)
            if kind.quantisation is None:
                writer.swap(name, replace(kind, quantisation=_COUNTS))
        real = writer.emit(op, "dequantise", (x,), part="real")
        attributes: dict[str, Any] = dict(op.attributes)
        made = replace(graph.type(y), element=Element.F32, quantisation=None)
        result = writer.emit(op, op.kind, (real,), result=made, **attributes)
        writer.emit(op, "quantise", (result,), part="integers", output=y)
    return writer.rewritten()


def _on_integers(facts: Facts, writer: Rewriter, op: Operation) -> bool:
    if op.kind not in (*UNARY_MOVES, "maxpool"):
        return False
    kinds = [writer.type(name) for name in (op.inputs[0], op.outputs[0])]
    if kinds[0].element not in CHIP_BYTES or facts.graph.constant(op.inputs[0]) is not None:
        return False
    if kinds[0].element != kinds[1].element:
        return False
    if kinds[1].quantisation is not None and kinds[0].quantisation != kinds[1].quantisation:
        return False
    if op.kind == "maxpool":
        return True
    found = kinds[0].quantisation
    return found is not None and found.axis is None and op.kind != "pad"
