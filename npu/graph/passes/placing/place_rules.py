# SPDX-License-Identifier: Apache-2.0
"""What the chip executes: the rules of each kind, and those of all kinds."""

from __future__ import annotations

import math

from npu.graph.form import Element, Operation
from npu.graph.operations import TABLE
from npu.graph.passes.facts import PAIRS, Facts, chip_type
from npu.graph.passes.placing.place_widths import clipped, narrowed, rounded_terms

UNIT = math.log(2) / 64
"""Scores of SOFTMAX are integers in units of 2^-6 of a binary logarithm."""


def refusal(facts: Facts, op: Operation) -> str:
    """Return the sentence why the chip cannot execute an operation, "" if it can."""
    if op.kind == "host":
        return str(op["reason"]) or f"the chip has no {op['operator']}"
    if not TABLE[op.kind].chip:
        return f"the chip has no {op.kind}"
    rules = (_types, narrowed, *(each.refusal for each in TABLE[op.kind].constraints), _given)
    return next((text for rule in rules if (text := rule(facts, op))), "")


def _given(facts: Facts, op: Operation) -> str:
    """Refuse results that a network gives in more bits than the chip makes here."""
    return rounded_terms(facts, op) if op.kind in PAIRS else clipped(facts, op)


def _types(facts: Facts, op: Operation) -> str:
    graph = facts.graph
    if op.kind == "requantise":
        elements = {graph.type(name).element for name in (*op.used, *op.outputs)}
        if Element.U8 in elements:
            return "the host turns the sign bit of unsigned bytes as it copies them"
        for name in (op.inputs[0], op.outputs[0]):
            if chip_type(graph.type(name)) is None:
                return f"{name!r} is {graph.type(name).element}, the chip takes int8 and int16"
        return ""
    for name in (*facts.activations(op)[: 1 if op.kind == "gather" else None], *op.outputs):
        kind = graph.type(name)
        if kind.element != Element.F32:
            return f"{name!r} is {kind.element}; the chip takes real numbers that it holds in int8"
        if 0 in kind.shape:
            return f"{name!r} is empty"
        if not kind.shape:
            return f"{name!r} is a single number without axes"
    if all(facts.value(name) is not None for name in facts.activations(op)):
        return "all that it reads is constant"
    return ""
