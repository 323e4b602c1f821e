# SPDX-License-Identifier: Apache-2.0
"""Sums, products, comparisons, clips and tables in integers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from npu.graph.form import Element, Operation, Quantisation, TensorType
from npu.graph.passes.facts import quantisation_of, same_numbers
from npu.graph.passes.fuse_linear import combine, with_table
from npu.graph.passes.integer_writer import IntegerWriter, Lowering, symmetric, table_of
from npu.graph.passes.wide_sums import largest, plain, wide_types

_HALF = 32767


def _sum(writer: IntegerWriter, one: Operation) -> None:
    """Add or subtract, in one scale or through int16."""
    a, b = one.inputs
    kind, types = writer.type(one.outputs[0]), [writer.type(name) for name in one.inputs]
    if plain(kind) and all(same_numbers(each, kind) for each in types):
        if one.kind != "add" or not combine(writer, one, "add", (a, b)):
            writer.add(one, one.kind, (a, b), output=one.outputs[0])
        return
    if kind.element == Element.I16 and quantisation_of(kind).zero == 0:
        a, b = (writer.convert(one, name, kind) for name in (a, b))
        if one.kind != "add" or not combine(writer, one, "add", (a, b)):
            writer.add(one, one.kind, (a, b), output=one.outputs[0])
        return
    first, second, total = wide_types(types, kind, 1 if one.kind == "add" else -1)
    a, b = writer.convert(one, a, first), writer.convert(one, b, second)
    made = replace(total, shape=writer.shape(one.outputs[0]))
    result = writer.intermediate(one, "wide", made)
    if one.kind != "add" or not combine(writer, replace(one, outputs=(result,)), "add", (a, b)):
        writer.add(one, one.kind, (a, b), part="wide", output=result)
    writer.convert(one, result, kind, one.outputs[0])


def _product(writer: IntegerWriter, one: Operation) -> None:
    """Multiply, in the product before it or in int16 with the factor in one operand."""
    kind = writer.type(one.outputs[0])
    operands = []
    for name in one.inputs:
        old = writer.type(name)
        if not plain(old):
            reach = largest(old) * quantisation_of(old).scale
            name = writer.convert(one, name, symmetric((), Element.I16, reach / _HALF))
        operands.append(name)
    a, b = operands
    bytes_only = {writer.type(name).element for name in (a, b)} | {kind.element} == {Element.I8}
    if bytes_only and plain(kind) and combine(writer, one, "mul", (a, b)):
        return
    target = _fine(kind)
    second = writer.type(b)
    if second.element == Element.I8:
        second = symmetric((), Element.I16, quantisation_of(second).scale / 256)
        b = writer.convert(one, b, second)
    first = writer.type(a)
    reach = largest(first) * quantisation_of(first).scale
    per_step = quantisation_of(second).scale / target
    shift = max(0, min(30, math.floor(math.log2(_HALF / (reach * per_step)))))
    a = writer.convert(
        one, a, symmetric((), Element.I16, target / (quantisation_of(second).scale * 2**shift))
    )
    fine = symmetric(writer.shape(one.outputs[0]), Element.I16, target)
    if same_numbers(fine, kind):
        writer.add(one, "mul", (a, b), output=one.outputs[0], shift=shift)
        return
    result = writer.add(one, "mul", (a, b), part="wide", result=fine, shift=shift)
    writer.convert(one, result, kind, one.outputs[0])


def _fine(kind: TensorType) -> float:
    """Return the scale of an int16 from which a result is made."""
    found = quantisation_of(kind)
    if kind.element == Element.I16:
        return found.scale
    return found.scale / (256 if found.zero == 0 else 128)


def _extreme(writer: IntegerWriter, one: Operation) -> None:
    """Compare, in one scale or in int16."""
    kind = writer.type(one.outputs[0])
    a, b = one.inputs
    types = [writer.type(name) for name in (a, b)]
    if kind.element != Element.U8 and all(same_numbers(each, kind) for each in types):
        writer.add(one, one.kind, (a, b), output=one.outputs[0])
        return
    reach = max(quantisation_of(each).scale * largest(each) for each in types)
    wide = symmetric(writer.shape(one.outputs[0]), Element.I16, reach / _HALF)
    a, b = (writer.convert(one, name, wide) for name in (a, b))
    result = writer.add(one, one.kind, (a, b), part="wide", result=wide)
    writer.convert(one, result, kind, one.outputs[0])


def _clip(writer: IntegerWriter, one: Operation) -> None:
    """Clip integers where the scale stays, else by a table."""
    x, kind = one.inputs[0], writer.type(one.outputs[0])
    low, high = one["low"], one["high"]
    if kind.element == Element.I16 or (
        same_numbers(writer.type(x), kind) and kind.element == Element.I8
    ):
        x = writer.convert(one, x, kind)
        _clip_integers(writer, one, x, kind)
        return
    x = _bytes(writer, one, x)
    table = table_of(writer.type(x), kind, ("clip",), (low, high))
    if not with_table(writer, one, x, table):
        writer.table(one, x, kind, ("clip",), (low, high), output=one.outputs[0])


def _clip_integers(writer: IntegerWriter, one: Operation, x: str, kind: TensorType) -> None:
    edge, found = np.iinfo(kind.element.dtype), quantisation_of(kind)
    bounds = [
        int(np.clip(np.rint(bound / found.scale) + found.zero, edge.min, edge.max))
        for bound in (one["low"], one["high"])
    ]
    low, high = bounds
    before = writer.product_before(x)
    if before is not None and not before["combine"] and "table" not in before.integers:
        if (low, high) == (edge.min, edge.max):
            writer.merge(before, one)
            return
        if (low, high) == (0, edge.max):
            writer.merge(before, one, relu=True)
            return
    if kind.element == Element.I8:
        stored = np.arange(256, dtype=np.uint8).view(np.int8)
        if with_table(writer, one, x, np.clip(stored, low, high).astype(np.int8)):
            return
    writer.add(
        one,
        "clip",
        (x,),
        output=one.outputs[0],
        low=one["low"],
        high=one["high"],
        low_int=low,
        high_int=high,
    )


def _bytes(writer: IntegerWriter, one: Operation, x: str) -> str:
    """Return an input as bytes."""
    kind = writer.type(x)
    if kind.element != Element.I16:
        return x
    scale = quantisation_of(kind).scale * 256
    return writer.convert(one, x, symmetric(kind.shape, Element.I8, scale))


def _table(writer: IntegerWriter, one: Operation) -> None:
    """Make a table, in the product before it if there is one."""
    x, kind = _bytes(writer, one, one.inputs[0]), writer.type(one.outputs[0])
    if kind.element != Element.I8:
        narrow = _narrow(kind)
        made = writer.table(one, x, narrow, one["functions"], one["parameters"], part="int8")
        writer.convert(one, made, kind, one.outputs[0])
        return
    table = table_of(writer.type(x), kind, one["functions"], one["parameters"])
    if not with_table(writer, one, x, table):
        writer.table(one, x, kind, one["functions"], one["parameters"], output=one.outputs[0])


def _narrow(kind: TensorType) -> TensorType:
    """Return the int8 type on the way to a given int16 or uint8 one."""
    found = quantisation_of(kind)
    if kind.element == Element.U8:
        return TensorType(kind.shape, Element.I8, Quantisation(found.scales, found.zero - 128))
    return symmetric(kind.shape, Element.I8, found.scale * 256)


def _requantise(writer: IntegerWriter, one: Operation) -> None:
    writer.convert(one, one.inputs[0], writer.type(one.outputs[0]), one.outputs[0])


LOWERINGS: dict[str, Lowering] = {
    "add": _sum,
    "sub": _sum,
    "mul": _product,
    "max": _extreme,
    "min": _extreme,
    "clip": _clip,
    "table": _table,
    "requantise": _requantise,
}
