# SPDX-License-Identifier: Apache-2.0
"""Moves in integers: the same elements, so the same type on both sides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Operation
from npu.graph.passes.facts import MOVES, quantisation_of, same_numbers
from npu.graph.passes.integer_writer import IntegerWriter, Lowering


def _move(writer: IntegerWriter, one: Operation) -> None:
    x, kind = one.inputs[0], writer.type(one.outputs[0])
    source = writer.type(x)
    rest: dict[str, Any] = dict(one.attributes)
    if one.kind == "pad":
        edge, found = np.iinfo(source.element.dtype), quantisation_of(source)
        value = np.rint(one["value"] / found.scale) + found.zero
        rest["value_int"] = int(np.clip(value, edge.min, edge.max))
    if same_numbers(source, kind):
        writer.emit(one, one.kind, (x,), output=one.outputs[0], **rest)
        return
    moved = replace(source, shape=kind.shape)
    made = writer.emit(one, one.kind, (x,), part="moved", result=moved, **rest)
    writer.convert(one, made, kind, one.outputs[0])


def _concat(writer: IntegerWriter, one: Operation) -> None:
    kind = writer.type(one.outputs[0])
    inputs = [writer.convert(one, name, kind) for name in one.inputs]
    writer.emit(one, "concat", inputs, output=one.outputs[0], axis=one["axis"])


LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys(MOVES, _move),
    "concat": _concat,
}
