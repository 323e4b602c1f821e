# SPDX-License-Identifier: Apache-2.0
"""Pools and means in integers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Array, Element, Operation, Quantisation, TensorType
from npu.graph.operations.windows import _fold, _windows
from npu.graph.passes.factors import INT32_MAX, factors, in_int32
from npu.graph.passes.facts import quantisation_of, same_numbers
from npu.graph.passes.integer_writer import IntegerWriter, Lowering
from npu.graph.passes.products import STEP


def _as_int8(writer: IntegerWriter, op: Operation) -> str:
    """Return the input as int8."""
    kind = writer.type(op.inputs[0])
    found = quantisation_of(kind)
    if kind.element == Element.U8:
        found = Quantisation(found.scales, found.zero - 128)
    elif kind.element == Element.I16:
        found = Quantisation((found.scale * 256,))
    return writer.convert(op, op.inputs[0], TensorType(kind.shape, Element.I8, found))


def _maxpool(writer: IntegerWriter, op: Operation) -> None:
    kind = writer.type(op.outputs[0])
    x = _as_int8(writer, op)
    made = replace(writer.type(x), shape=kind.shape)
    rest: dict[str, Any] = dict(op.attributes)
    if same_numbers(made, kind):
        writer.emit(op, "maxpool", (x,), output=op.outputs[0], **rest)
        return
    result = writer.emit(op, "maxpool", (x,), part="largest", result=made, **rest)
    writer.convert(op, result, kind, op.outputs[0])


def _avgpool(writer: IntegerWriter, op: Operation) -> None:
    x = _as_int8(writer, op)
    shape = writer.shape(x)
    ones = np.ones((1, *shape[1:3], 1))
    inside = _fold(_windows(ones, op.attributes, 0.0), np.add)[0, ..., 0]
    divisor = np.full(inside.shape, math.prod(op["window"])) if op["count_pads"] else inside
    _average(writer, op, x, inside, divisor)


def _mean(writer: IntegerWriter, op: Operation) -> None:
    x = _as_int8(writer, op)
    shape = writer.shape(x)
    count = np.array([math.prod(shape[axis] for axis in op["axes"])])
    _average(writer, op, x, count, count)


def _average(writer: IntegerWriter, op: Operation, x: str, inside: Array, divisor: Array) -> None:
    """Write a sum over places, some of them inside, with its factor per result."""
    kind = writer.type(op.outputs[0])
    made = kind
    if kind.element != Element.I8:
        found = quantisation_of(kind)
        scale = found.scale * (256 if kind.element == Element.I16 else 1)
        zero = found.zero - 128 if kind.element == Element.U8 else 0
        made = TensorType(kind.shape, Element.I8, Quantisation((scale,), zero))
    source, y = quantisation_of(writer.type(x)), quantisation_of(made)
    # Weights beyond 1 leave room for fractions of the zero point.
    weight = STEP if STEP * 256 * int(inside.max()) <= INT32_MAX else 1
    ratio = source.scale / (y.scale * divisor * weight)
    # Means of even counts are halves: away from zero, as TFLite has it.
    mult, shift = factors(ratio, above=source.scale == y.scale)
    bias = np.rint(y.zero / ratio) - source.zero * weight * inside
    integers = {"bias": in_int32(bias, "a bias"), "mult": mult, "shift": shift}
    rest: dict[str, Any] = {**op.attributes, "weight": weight}
    if made is kind:
        writer.emit(op, op.kind, (x,), output=op.outputs[0], integers=integers, **rest)
        return
    result = writer.emit(op, op.kind, (x,), part="int8", result=made, integers=integers, **rest)
    writer.convert(op, result, kind, op.outputs[0])


LOWERINGS: dict[str, Lowering] = {"maxpool": _maxpool, "avgpool": _avgpool, "mean": _mean}
