# SPDX-License-Identifier: Apache-2.0
"""Products in integers: bias, zero points and factors of matmul and conv."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Array, Element, Operation, Quantisation, TensorType
from npu.graph.passes.factors import factor
from npu.graph.passes.facts import affine_of, quantisation_of
from npu.graph.passes.integer_writer import IntegerWriter, Lowering
from npu.graph.passes.products import UNFUSED, KnownProduct, requantised


def _matmul(writer: IntegerWriter, op: Operation) -> None:
    a, b = op.inputs[:2]
    data = writer.value(b)
    constant = data is not None and data.ndim == 2
    x, w = writer.type(a), writer.type(b)
    if data is None:
        a, b = (_as_bytes(writer, op, name, index) for index, name in enumerate((a, b)))
        x, w = writer.type(a), writer.type(b)
    matrix = None
    if constant:
        assert data is not None
        matrix = data.astype(np.int64) - quantisation_of(w).zero
        matrix = matrix.T if op["transpose_b"] else matrix
    shape = writer.shape(b)
    product = KnownProduct(
        x,
        w,
        matrix,
        _real_bias(writer, op),
        shape[-2] if op["transpose_b"] else shape[-1],
        writer.shape(a)[-1],
    )
    zeros = (
        {"a_zero": 0, "b_zero": quantisation_of(w).zero}
        if constant
        else {"a_zero": quantisation_of(x).zero, "b_zero": quantisation_of(w).zero}
    )
    _finish(writer, op, product, (a, b), transpose_b=op["transpose_b"], **zeros)


def _as_bytes(writer: IntegerWriter, op: Operation, name: str, index: int) -> str:
    """Return an operand as int8; the left one may be uint8."""
    kind = writer.type(name)
    if kind.element == Element.I8 or (kind.element == Element.U8 and index == 0):
        return name
    found = quantisation_of(kind)
    if kind.element == Element.U8:
        found = Quantisation(found.scales, found.zero - 128)
    else:
        found = Quantisation((found.scale * 256,))
    return writer.convert(op, name, TensorType(kind.shape, Element.I8, found))


def _conv(writer: IntegerWriter, op: Operation) -> None:
    x, w = _as_bytes(writer, op, op.inputs[0], 1), op.inputs[1]
    data = writer.value(w)
    assert data is not None
    kind = writer.type(w)
    wide = data.astype(np.int64) - quantisation_of(kind).zero
    matrix = wide.reshape(-1, wide.shape[-1])
    product = KnownProduct(
        writer.type(x), kind, matrix, _real_bias(writer, op), matrix.shape[1], matrix.shape[0]
    )
    _finish(
        writer,
        op,
        product,
        (x, w),
        x_zero=0,
        w_zero=quantisation_of(kind).zero,
        pad_value=quantisation_of(writer.type(x)).zero,
    )


def _real_bias(writer: IntegerWriter, op: Operation) -> Array | None:
    data = writer.value(op.inputs[2]) if len(op.used) > 2 else None
    return None if data is None else data.astype(np.float64)


def _finish(
    writer: IntegerWriter,
    op: Operation,
    product: KnownProduct,
    inputs: tuple[str, str],
    **attributes: int | bool,
) -> None:
    """Write the product with what follows its sums."""
    output, sources = op.outputs[0], [op.source]
    behind = _affine_behind(writer, op)
    if behind is not None:
        after, gain, shift = behind
        product = replace(product, gain=gain, shift=shift)
        output = after.outputs[0]
        sources.append(after.source)
        writer.done.add(after.name)
    kind = writer.type(output)
    kept = {name: value for name, value in op.attributes.items() if name != "transpose_b"}
    more: dict[str, Any] = {**kept, **UNFUSED, **attributes}
    integers = requantised(product, kind)
    writer.emit(
        replace(op, source=" + ".join(dict.fromkeys(filter(None, sources)))),
        op.kind,
        inputs,
        output=output,
        integers=integers,
        **more,
    )


def _affine_behind(writer: IntegerWriter, op: Operation) -> tuple[Operation, float, float] | None:
    """Return the table behind a product if it is x * gain + shift with a positive gain."""
    reader = writer.facts.only_reader(op.outputs[0])
    if reader is None or not writer.facts.absorbed(reader):
        return None
    found = affine_of(reader)
    assert found is not None
    return reader, *found


def combine(writer: IntegerWriter, op: Operation, kind: str, operands: tuple[str, str]) -> bool:
    """Make an addition or multiplication part of the product that makes one operand."""
    result = writer.type(op.outputs[0])
    for index in (1, 0):
        name, other = operands[index], operands[1 - index]
        before = writer.product_before(name)
        free = before is not None and not before["combine"] and name != other
        if not free or writer.shape(name) != result.shape or writer.shape(other) != result.shape:
            continue
        assert before is not None
        extra: dict[str, Any] = {"combine": kind}
        if kind == "mul":
            scales = [quantisation_of(writer.type(each)).scale for each in operands]
            scale = scales[0] * scales[1] / quantisation_of(result).scale
            mult, shift = factor(scale)
            extra |= {"product_mult": mult, "product_shift": shift}
        writer.merge(before, op, inputs=(other,), **extra)
        return True
    return False


def with_table(writer: IntegerWriter, op: Operation, name: str, table: Array) -> bool:
    """Make a table part of the product that makes its input, as the relu flag if it is that."""
    before = writer.product_before(name)
    if before is None or before["combine"] or before["relu"]:
        return False
    if writer.type(name).element != Element.I8:
        return False
    stored = np.arange(256, dtype=np.uint8).view(np.int8)
    if "table" in before.integers:
        first = before.integers["table"].astype(np.int64) & 255
        writer.merge(before, op, integers={"table": table[first]})
    elif np.array_equal(table, stored):
        writer.merge(before, op)
    elif np.array_equal(table, np.maximum(stored, 0)):
        writer.merge(before, op, relu=True)
    else:
        writer.merge(before, op, integers={"table": table})
    return True


LOWERINGS: dict[str, Lowering] = {"matmul": _matmul, "conv": _conv}
