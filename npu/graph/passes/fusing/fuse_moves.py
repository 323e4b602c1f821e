# SPDX-License-Identifier: Apache-2.0
"""Moves in integers: the same elements, so the same type on both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Operation
from npu.graph.passes.facts import MOVES, quantisation_of, same_numbers
from npu.graph.passes.integer_writer import IntegerWriter, Lowering


def _move(writer: IntegerWriter, op: Operation) -> None:
    x, kind = op.inputs[0], writer.type(op.outputs[0])
    source = writer.type(x)
    rest: dict[str, Any] = dict(op.attributes)
    if op.kind == "pad":
        edge, found = np.iinfo(source.element.dtype), quantisation_of(source)
        value = np.rint(op["value"] / found.scale) + found.zero
        rest["value_int"] = int(np.clip(value, edge.min, edge.max))
    if same_numbers(source, kind):
        writer.emit(op, op.kind, (x,), output=op.outputs[0], **rest)
        return
    moved = replace(source, shape=kind.shape)
    made = writer.emit(op, op.kind, (x,), part="moved", result=moved, **rest)
    writer.convert(op, made, kind, op.outputs[0])


def _concat(writer: IntegerWriter, op: Operation) -> None:
    kind = writer.type(op.outputs[0])
    inputs = [writer.convert(op, name, kind) for name in op.inputs]
    writer.emit(op, "concat", inputs, output=op.outputs[0], axis=op["axis"])


LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys(MOVES, _move),
    "concat": _concat,
}
