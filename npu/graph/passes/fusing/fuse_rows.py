# SPDX-License-Identifier: Apache-2.0
"""Softmax, norms, rope and attention in integers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Array, Element, Operation, Quantisation, TensorType
from npu.graph.passes.factors import factor, factors
from npu.graph.passes.facts import quantisation_of, same_numbers
from npu.graph.passes.integer_writer import IntegerWriter, Lowering, symmetric
from npu.graph.passes.placing.place_rules import UNIT

NORM_FRACTION = 14
"""Fraction bits of a normalised row before its gain."""
ANGLE_FRACTION = 14
_HIDDEN = -32768


def _softmax(writer: IntegerWriter, op: Operation) -> None:
    x, y = op.inputs[0], op.outputs[0]
    kind = writer.type(y)
    scores = writer.convert(op, x, symmetric((), Element.I16, UNIT))
    made = TensorType(kind.shape, Element.U8, Quantisation((1 / 256,)))
    axis = len(kind.shape) - 1
    if same_numbers(made, kind):
        writer.emit(op, "softmax", (scores,), output=y, axis=axis)
        return
    result = writer.emit(op, "softmax", (scores,), part="rows", result=made, axis=axis)
    writer.convert(op, result, kind, y)


def _norm(writer: IntegerWriter, op: Operation) -> None:
    x, y = op.inputs[0], op.outputs[0]
    source, kind = writer.type(x), writer.type(y)
    found = quantisation_of(source)
    if source.element != Element.I16:
        # Eight fraction bits more, so that a zero point off its place costs nothing.
        scale = found.scale / (256 if found.zero == 0 and source.element == Element.I8 else 128)
        x = writer.convert(op, x, symmetric((), Element.I16, scale))
    length = kind.shape[-1]
    gain = np.ones(length) if len(op.used) < 2 else _data(writer, op.inputs[1])
    exact = (
        kind
        if quantisation_of(kind).zero == 0 and kind.element != Element.U8
        else symmetric(kind.shape, Element.I16, quantisation_of(kind).scale / 128)
    )
    mult, shift = factors(gain * 2.0**-NORM_FRACTION / quantisation_of(exact).scale)
    scale = quantisation_of(writer.type(x)).scale
    epsilon = min(round(op["epsilon"] * length**2 / scale**2), (1 << 64) - 1)
    integers = {
        "eps": np.array([epsilon], np.uint64),
        "gain": mult,
        "shift": shift,
        "bias": np.zeros(length, np.int8),
    }
    rest: dict[str, Any] = {"axes": 1, "epsilon": op["epsilon"]}
    if exact is kind:
        writer.emit(op, op.kind, (x,), output=y, integers=integers, **rest)
        return
    made = writer.emit(op, op.kind, (x,), part="rows", result=exact, integers=integers, **rest)
    writer.convert(op, made, kind, y)


def _data(writer: IntegerWriter, name: str) -> Array:
    data = writer.value(name)
    assert data is not None
    return data.astype(np.float64).reshape(-1)


def _symmetric_bytes(writer: IntegerWriter, op: Operation, name: str) -> str:
    """Return a tensor as int8 with zero point 0."""
    kind = writer.type(name)
    found = quantisation_of(kind)
    if kind.element == Element.I8 and found.zero == 0:
        return name
    edge = np.iinfo(kind.element.dtype)
    reach = max(int(edge.max) - found.zero, found.zero - int(edge.min))
    scale = found.scale * max(1.0, reach / 127)
    return writer.convert(op, name, symmetric(kind.shape, Element.I8, scale))


def _rope(writer: IntegerWriter, op: Operation) -> None:
    y = op.outputs[0]
    kind = writer.type(y)
    x = _symmetric_bytes(writer, op, op.inputs[0])
    cos, sin = (writer.value(name) for name in op.inputs[1:3])
    assert cos is not None and sin is not None
    turns = np.rint(np.stack([cos, sin], axis=-1).astype(np.float64) * 2**ANGLE_FRACTION)
    integers: dict[str, Array] = {"table": np.clip(turns, -32768, 32767).astype(np.int16)}
    rest: dict[str, Any] = {"interleaved": op["interleaved"], "heads_axis": op["heads_axis"]}
    made = replace(writer.type(x), shape=kind.shape)
    inputs = (x, *op.inputs[1:3])
    if same_numbers(made, kind):
        writer.emit(op, "rope", inputs, output=y, integers=integers, **rest)
        return
    result = writer.emit(op, "rope", inputs, part="turned", result=made, integers=integers, **rest)
    writer.convert(op, result, kind, y)


def _attention(writer: IntegerWriter, op: Operation) -> None:
    y = op.outputs[0]
    kind = writer.type(y)
    q, k, v = (_symmetric_bytes(writer, op, name) for name in op.inputs[:3])
    scale = op["scale"] * quantisation_of(writer.type(q)).scale
    mult, shift = factor(scale * quantisation_of(writer.type(k)).scale / UNIT)
    integers: dict[str, Array] = {
        "mult": np.array([mult], np.uint16),
        "shift": np.array([shift], np.uint8),
    }
    mask = writer.value(op.inputs[3]) if len(op.used) > 3 else None
    if mask is not None:
        integers["mask"] = scores_of_mask(mask)
    inputs = (q, k, v, *(op.inputs[3:] if mask is None else ()))
    made = replace(writer.type(v), shape=kind.shape)
    rest: dict[str, Any] = dict(op.attributes)
    if same_numbers(made, kind):
        writer.emit(op, "attention", inputs, output=y, integers=integers, **rest)
        return
    result = writer.emit(
        op, "attention", inputs, part="heads", result=made, integers=integers, **rest
    )
    writer.convert(op, result, kind, y)


def scores_of_mask(mask: Array) -> Array:
    """Return a mask as an addend of scores: int16 in their unit; hidden is the lowest number."""
    if mask.dtype == np.bool_:
        return np.where(mask, 0, _HIDDEN).astype(np.int16)
    units = np.nan_to_num(mask.astype(np.float64) / UNIT, nan=0.0, posinf=1e9, neginf=-1e9)
    return np.clip(np.rint(units), _HIDDEN, 32767).astype(np.int16)


LOWERINGS: dict[str, Lowering] = {
    "softmax": _softmax,
    "layernorm": _norm,
    "rmsnorm": _norm,
    "rope": _rope,
    "attention": _attention,
}
assert math.isclose(UNIT * 64, math.log(2))
