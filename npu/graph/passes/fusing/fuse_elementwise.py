# SPDX-License-Identifier: Apache-2.0
"""Sums, products, comparisons, clips and tables in integers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Element, Operation, Quantisation, TensorType
from npu.graph.operations import Trait, with_trait
from npu.graph.passes.factors import CHANNEL_BITS, factor, signed_factor
from npu.graph.passes.facts import SUMS, quantisation_of, same_numbers
from npu.graph.passes.fusing.fuse_linear import combine, with_table
from npu.graph.passes.integer_writer import IntegerWriter, Lowering, symmetric, table_of
from npu.graph.passes.wide_sums import largest, plain, wide_types

_HALF = 32767


def _sum(writer: IntegerWriter, op: Operation) -> None:
    """Add or subtract, in one scale or through int16."""
    a, b = op.inputs
    kind, types = writer.type(op.outputs[0]), [writer.type(name) for name in op.inputs]
    if plain(kind) and all(same_numbers(each, kind) for each in types):
        if op.kind != "add" or not combine(writer, op, "add", (a, b)):
            writer.emit(op, op.kind, (a, b), output=op.outputs[0])
        return
    if kind.element == Element.I16 and quantisation_of(kind).zero == 0:
        a, b = (writer.convert(op, name, kind) for name in (a, b))
        if op.kind != "add" or not combine(writer, op, "add", (a, b)):
            writer.emit(op, op.kind, (a, b), output=op.outputs[0])
        return
    first, second, total = wide_types(types, kind, 1 if op.kind == "add" else -1)
    a, b = writer.convert(op, a, first), writer.convert(op, b, second)
    made = replace(total, shape=writer.shape(op.outputs[0]))
    result = writer.intermediate(op, "wide", made)
    if op.kind != "add" or not combine(writer, replace(op, outputs=(result,)), "add", (a, b)):
        writer.emit(op, op.kind, (a, b), part="wide", output=result)
    writer.convert(op, result, kind, op.outputs[0])


def _product(writer: IntegerWriter, op: Operation) -> None:
    """Multiply, in the product before it or in int16 with the factor in one operand."""
    kind = writer.type(op.outputs[0])
    a, b = op.inputs
    kinds = [writer.type(a), writer.type(b), kind]
    bytes_only = all(plain(each) and each.element == Element.I8 for each in kinds)
    if bytes_only and combine(writer, op, "mul", (a, b)):
        return
    # In steps of the result, so that the product alone is rounded.
    target = quantisation_of(kind).scale
    first, second, shift = _shares(kinds[0], kinds[1], target)
    a = writer.convert(op, a, symmetric((), Element.I16, first))
    b = writer.convert(op, b, symmetric((), Element.I16, second))
    product = symmetric(writer.shape(op.outputs[0]), Element.I16, target)
    if same_numbers(product, kind):
        writer.emit(op, "mul", (a, b), output=op.outputs[0], shift=shift)
        return
    result = writer.emit(op, "mul", (a, b), part="wide", result=product, shift=shift)
    writer.convert(op, result, kind, op.outputs[0])


def _shares(a: TensorType, b: TensorType, target: float) -> tuple[float, float, int]:
    """Return the scales of the int16 factors of a product in steps of `target`, and its shift.

    One factor is exact, a whole multiple of its integers. It and the multiple are chosen so that
    rounding the other one changes the product least.
    """
    options = []
    for rounded, exact in ((a, b), (b, a)):
        scale, step = quantisation_of(rounded).scale, quantisation_of(exact).scale
        stored = _numbers(rounded)
        most = max(1, _HALF // largest(exact))
        for multiple in range(most, most // 2, -1):
            unit = step / multiple
            reach = largest(rounded) * scale * unit / target
            shift = max(0, min(30, math.floor(math.log2(_HALF / reach))))
            gain = scale * unit * 2**shift / target
            known = signed_factor(gain) if plain(rounded) else factor(gain, CHANNEL_BITS)
            mult, down = known
            off = np.abs(np.rint(stored * (mult / 2**down)) / gain - stored).mean()
            loss = float(off * np.abs(_numbers(exact)).mean())
            scales = target / (unit * 2**shift), unit
            options.append((loss, *(scales if rounded is a else scales[::-1]), shift))
    return min(options)[1:]


def _numbers(kind: TensorType) -> Array:
    """Return evenly spread integers of a type, less its zero point."""
    edge = np.iinfo(kind.element.dtype)
    return np.linspace(edge.min, edge.max, 256).round() - quantisation_of(kind).zero


def _within(writer: IntegerWriter, op: Operation) -> None:
    """Compute what stays in the range of its operands, in one scale or in int16."""
    kind = writer.type(op.outputs[0])
    a, b = op.inputs
    types = [writer.type(name) for name in (a, b)]
    if kind.element != Element.U8 and all(same_numbers(each, kind) for each in types):
        writer.emit(op, op.kind, (a, b), output=op.outputs[0])
        return
    reach = max(quantisation_of(each).scale * largest(each) for each in types)
    # Beyond it the result saturates, as do its operands.
    reach = min(reach, 2 * quantisation_of(kind).scale * (largest(kind) + 1))
    wide = symmetric(writer.shape(op.outputs[0]), Element.I16, reach / _HALF)
    a, b = (writer.convert(op, name, wide) for name in (a, b))
    result = writer.emit(op, op.kind, (a, b), part="wide", result=wide)
    writer.convert(op, result, kind, op.outputs[0])


def _clip(writer: IntegerWriter, op: Operation) -> None:
    """Clip integers where the scale stays, else by a table."""
    x, kind = op.inputs[0], writer.type(op.outputs[0])
    low, high = op["low"], op["high"]
    if kind.element == Element.I16 or (
        same_numbers(writer.type(x), kind) and kind.element == Element.I8
    ):
        x = writer.convert(op, x, kind)
        _clip_integers(writer, op, x, kind)
        return
    x = _bytes(writer, op, x)
    table = table_of(writer.type(x), kind, ("clip",), (low, high))
    if not with_table(writer, op, x, table):
        writer.table(op, x, kind, ("clip",), (low, high), output=op.outputs[0])


def _clip_integers(writer: IntegerWriter, op: Operation, x: str, kind: TensorType) -> None:
    edge, found = np.iinfo(kind.element.dtype), quantisation_of(kind)
    bounds = [
        int(np.clip(np.rint(bound / found.scale) + found.zero, edge.min, edge.max))
        for bound in (op["low"], op["high"])
    ]
    low, high = bounds
    before = writer.product_before(x)
    if before is not None and not before["combine"] and "table" not in before.integers:
        if (low, high) == (edge.min, edge.max):
            writer.merge(before, op)
            return
        if (low, high) == (0, edge.max):
            writer.merge(before, op, relu=True)
            return
    if kind.element == Element.I8:
        stored = np.arange(256, dtype=np.uint8).view(np.int8)
        if with_table(writer, op, x, np.clip(stored, low, high).astype(np.int8)):
            return
    writer.emit(
        op,
        "clip",
        (x,),
        output=op.outputs[0],
        low=op["low"],
        high=op["high"],
        low_int=low,
        high_int=high,
    )


def _bytes(writer: IntegerWriter, op: Operation, x: str) -> str:
    """Return an input as bytes."""
    kind = writer.type(x)
    if kind.element != Element.I16:
        return x
    scale = quantisation_of(kind).scale * 256
    return writer.convert(op, x, symmetric(kind.shape, Element.I8, scale))


def _table(writer: IntegerWriter, op: Operation) -> None:
    """Make a table, in the product before it if there is one."""
    x, kind = _bytes(writer, op, op.inputs[0]), writer.type(op.outputs[0])
    if kind.element != Element.I8:
        narrow = _narrow(kind)
        made = writer.table(op, x, narrow, op["functions"], op["parameters"], part="int8")
        writer.convert(op, made, kind, op.outputs[0])
        return
    table = table_of(writer.type(x), kind, op["functions"], op["parameters"])
    if not with_table(writer, op, x, table):
        writer.table(op, x, kind, op["functions"], op["parameters"], output=op.outputs[0])


def _narrow(kind: TensorType) -> TensorType:
    """Return the int8 type on the way to a given int16 or uint8 one."""
    found = quantisation_of(kind)
    if kind.element == Element.U8:
        return TensorType(kind.shape, Element.I8, Quantisation(found.scales, found.zero - 128))
    return symmetric(kind.shape, Element.I8, found.scale * 256)


def _requantise(writer: IntegerWriter, op: Operation) -> None:
    writer.convert(op, op.inputs[0], writer.type(op.outputs[0]), op.outputs[0])


LOWERINGS: dict[str, Lowering] = {
    **dict.fromkeys(SUMS, _sum),
    **dict.fromkeys(with_trait(Trait.WITHIN), _within),
    "mul": _product,
    "clip": _clip,
    "table": _table,
    "requantise": _requantise,
}
