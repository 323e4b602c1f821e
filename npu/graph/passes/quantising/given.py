# SPDX-License-Identifier: Apache-2.0
"""Quantisation that a network brings: which real tensors stand for which integers."""

from __future__ import annotations

from npu.graph.form import Element, Graph, Operation, TensorType
from npu.graph.passes.facts import LINEAR, UNARY_MOVES, Facts, chip_type, quantisation_of


def given_types(graph: Graph) -> dict[str, TensorType]:
    """Return how the chip holds real tensors whose integers the network gives.

    A tensor is given by what it is read from (dequantise), else by what it becomes (quantise). An
    int32 result is given only where it is the accumulator itself.
    """
    facts = Facts(graph)
    found: dict[str, TensorType] = {}
    for op in graph.operations:
        if op.kind == "dequantise" and not _constant_weights(facts, op):
            kind = chip_type(graph.type(op.inputs[0]))
            if kind is not None:
                found[op.outputs[0]] = kind
    for op in graph.operations:
        if op.kind != "quantise" or op.inputs[0] in found:
            continue
        if any(reader.kind != "quantise" for reader in facts.readers[op.inputs[0]]):
            continue  # who takes it as it is would see it clipped and rounded
        kind = graph.type(op.outputs[0])
        image = chip_type(kind)
        if image is None and kind.element == Element.I32 and _accumulator(facts, op.inputs[0]):
            image = kind
        if image is not None:
            found[op.inputs[0]] = image
    return found


def _constant_weights(facts: Facts, op: Operation) -> bool:
    """Say whether integers are weights, which keep their own form."""
    data = facts.graph.constant(op.inputs[0])
    readers = facts.readers[op.outputs[0]]
    return data is not None and all(
        reader.kind in LINEAR and op.outputs[0] not in facts.activations(reader)
        for reader in readers
    )


def _accumulator(facts: Facts, name: str) -> bool:
    """Say whether int32 integers are the sums of a linear operation: its scales' product."""
    maker, reader = facts.maker(name), facts.only_reader(name)
    if maker is None or maker.kind not in LINEAR or reader is None or len(maker.used) > 2:
        return False
    scales = 1.0
    for operand in maker.inputs[:2]:
        source = facts.maker(operand)
        while source is not None and source.kind in UNARY_MOVES:
            source = facts.maker(source.inputs[0])
        if source is None or source.kind != "dequantise":
            return False
        found = facts.graph.type(source.inputs[0]).quantisation
        if found is None or found.axis is not None:
            return False
        scales *= found.scale
    made = quantisation_of(facts.graph.type(reader.outputs[0]))
    if made.axis is not None or made.zero:
        return False
    return abs(made.scale / scales - 1) < 1e-6
