# SPDX-License-Identifier: Apache-2.0
"""Moves what a norm of the chip cannot do into the products that read it.

Gains of the chip are unsigned and its beta is int8: signs go into the rows of the next weights,
beta times these weights into their bias. Both are exact in real numbers and cost nothing.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Graph, Operation
from npu.graph.passes.facts import NORMS, Facts
from npu.graph.passes.rewriter import Rewriter


def fold_norms(graph: Graph) -> Graph:
    """Return the graph with the signs and betas of norms in the products behind them."""
    facts = Facts(graph)
    signs: dict[str, tuple[Array, Array]] = {}
    writer = Rewriter(graph)
    for one in graph.operations:
        if one.on_chip and one.kind in NORMS and _folds(facts, one):
            one = _positive(writer, facts, one, signs)
        elif one.kind == "matmul" and one.inputs[0] in signs:
            one = _taken(writer, facts, one, *signs[one.inputs[0]])
        writer.keep(one)
    return writer.rewritten()


def _folds(facts: Facts, op: Operation) -> bool:
    """Say whether there is something to fold, and only products with constants read the norm."""
    gain, beta = (facts.value(name) for name in (*op.inputs[1:], "", "")[:2])
    negative = gain is not None and bool(np.any(gain < 0))
    y = op.outputs[0]
    readers = facts.readers[y]
    if op["axes"] != 1 or not (negative or beta is not None):
        return False
    if not readers or y in facts.graph.outputs:
        return False
    return all(_product(facts, reader, y) for reader in readers)


def _product(facts: Facts, reader: Operation, y: str) -> bool:
    return (
        reader.on_chip
        and reader.kind == "matmul"
        and reader.inputs[0] == y
        and y not in reader.inputs[1:]
        and not reader["transpose_a"]
        and facts.weights(reader)
        and facts.graph.constant(reader.inputs[1]) is not None
    )


def _positive(
    writer: Rewriter, facts: Facts, op: Operation, signs: dict[str, tuple[Array, Array]]
) -> Operation:
    gain, beta = (facts.value(name) for name in (*op.inputs[1:], "", "")[:2])
    length = facts.graph.type(op.inputs[0]).shape[-1]
    gain = np.ones(length, np.float32) if gain is None else gain
    sign = np.where(gain < 0, -1.0, 1.0).astype(np.float32)
    signs[op.outputs[0]] = (sign, np.zeros(length, np.float32) if beta is None else beta)
    name = writer.constant(np.abs(gain), f"{op.name}.gain")
    return replace(op, inputs=(op.inputs[0], name))


def _taken(writer: Rewriter, facts: Facts, op: Operation, sign: Array, beta: Array) -> Operation:
    weight = facts.graph.constant(op.inputs[1])
    assert weight is not None
    matrix = weight.T if op["transpose_b"] else weight
    bias = facts.value(op.inputs[2]) if len(op.used) > 2 else None
    # The sign leaves the norm, so beta meets the weights as they were.
    total = beta.astype(np.float64) @ matrix.astype(np.float64)
    total = total if bias is None else total + bias
    signed = (matrix * sign[:, None]).astype(np.float32)
    signed = signed.T if op["transpose_b"] else signed
    inputs = [op.inputs[0], writer.constant(np.ascontiguousarray(signed), f"{op.name}.signed")]
    if np.any(total):
        inputs.append(writer.constant(total.astype(np.float32), f"{op.name}.bias"))
    return replace(op, inputs=tuple(inputs))
