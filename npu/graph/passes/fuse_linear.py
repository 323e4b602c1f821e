# SPDX-License-Identifier: Apache-2.0
"""Products in integers: bias, zero points and factors of matmul and conv."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from npu.graph.form import Array, Element, GraphError, Operation, Quantisation, TensorType
from npu.graph.passes.factors import INT32_MAX, factor, factors, in_int32
from npu.graph.passes.facts import affine_of, quantisation_of
from npu.graph.passes.integer_writer import UNFUSED, IntegerWriter, Lowering

_STEP = 64
"""The weight of a product that only changes the scale: leaves room for fractions of zero points."""


@dataclass(frozen=True)
class _Product:
    """A linear operation whose operands are known.

    Attributes:
        x, w: types of the operands.
        matrix: (K, N) constant integers less their zero point, None for activations.
        bias: real, (N,).
        gain, shift: what is done to the real result at once.
    """

    x: TensorType
    w: TensorType
    matrix: Array | None
    bias: Array | None
    columns: int
    depth: int
    gain: float = 1.0
    shift: float = 0.0


def _matmul(writer: IntegerWriter, one: Operation) -> None:
    a, b = one.inputs[:2]
    data = writer.data(b)
    constant = data is not None and data.ndim == 2
    x, w = writer.type(a), writer.type(b)
    if not constant:
        a, b = (_as_bytes(writer, one, name, index) for index, name in enumerate((a, b)))
        x, w = writer.type(a), writer.type(b)
    matrix = None
    if constant:
        assert data is not None
        matrix = data.astype(np.int64) - quantisation_of(w).zero
        matrix = matrix.T if one["transpose_b"] else matrix
    shape = writer.shape(b)
    product = _Product(
        x,
        w,
        matrix,
        _real_bias(writer, one),
        shape[-2] if one["transpose_b"] else shape[-1],
        writer.shape(a)[-1],
    )
    zeros = (
        {"a_zero": 0, "b_zero": quantisation_of(w).zero}
        if constant
        else {"a_zero": quantisation_of(x).zero, "b_zero": quantisation_of(w).zero}
    )
    _finish(writer, one, product, (a, b), transpose_b=one["transpose_b"], **zeros)


def _as_bytes(writer: IntegerWriter, one: Operation, name: str, index: int) -> str:
    """Return an operand as int8; the left one may be uint8."""
    kind = writer.type(name)
    if kind.element == Element.I8 or (kind.element == Element.U8 and index == 0):
        return name
    found = quantisation_of(kind)
    if kind.element == Element.U8:
        found = Quantisation(found.scales, found.zero - 128)
    else:
        found = Quantisation((found.scale * 256,))
    return writer.convert(one, name, TensorType(kind.shape, Element.I8, found))


def _conv(writer: IntegerWriter, one: Operation) -> None:
    x, w = _as_bytes(writer, one, one.inputs[0], 1), one.inputs[1]
    data = writer.data(w)
    assert data is not None
    kind = writer.type(w)
    wide = data.astype(np.int64) - quantisation_of(kind).zero
    matrix = wide.reshape(-1, wide.shape[-1])
    product = _Product(
        writer.type(x), kind, matrix, _real_bias(writer, one), matrix.shape[1], matrix.shape[0]
    )
    _finish(
        writer,
        one,
        product,
        (x, w),
        x_zero=0,
        w_zero=quantisation_of(kind).zero,
        pad_value=quantisation_of(writer.type(x)).zero,
    )


def _real_bias(writer: IntegerWriter, one: Operation) -> Array | None:
    data = writer.data(one.inputs[2]) if len(one.used) > 2 else None
    return None if data is None else data.astype(np.float64)


def _finish(
    writer: IntegerWriter,
    one: Operation,
    product: _Product,
    inputs: tuple[str, str],
    **attributes: int | bool,
) -> None:
    """Write the product with what follows its sums."""
    output, sources = one.outputs[0], [one.source]
    behind = _affine_behind(writer, one)
    if behind is not None:
        after, gain, shift = behind
        product = replace(product, gain=gain, shift=shift)
        output = after.outputs[0]
        sources.append(after.source)
        writer.done.add(after.name)
    kind = writer.type(output)
    kept = {name: value for name, value in one.attributes.items() if name != "transpose_b"}
    more: dict[str, Any] = {**kept, **UNFUSED, **attributes}
    integers = requantised(product, kind)
    writer.add(
        replace(one, source=" + ".join(dict.fromkeys(filter(None, sources)))),
        one.kind,
        inputs,
        output=output,
        integers=integers,
        **more,
    )


def _affine_behind(writer: IntegerWriter, one: Operation) -> tuple[Operation, float, float] | None:
    """Return the table behind a product if it is x * gain + shift with a positive gain."""
    reader = writer.facts.only_reader(one.outputs[0])
    if reader is None or not writer.facts.absorbed(reader):
        return None
    found = affine_of(reader)
    assert found is not None
    return reader, *found


def requantised(product: _Product, kind: TensorType) -> dict[str, Array]:
    """Return bias, mult and shift of a product whose result has a type.

    bias = bias / (sx * sw) - zx * sum(w) + round(zy * 2^s / M). An int32 result has its bias only.

    Raises:
        GraphError: the sums or the bias leave int32.
    """
    x, y = quantisation_of(product.x), quantisation_of(kind)
    scales = np.asarray(quantisation_of(product.w).scales, np.float64) * x.scale
    bias = np.zeros(product.columns)
    if product.bias is not None:
        bias = product.bias / scales
    if product.shift:
        bias = bias + product.shift / product.gain / scales
    bias = np.rint(bias)
    if product.matrix is not None:
        bias = bias - x.zero * product.matrix.sum(axis=0)
    check_sums(product, bias)
    if kind.element == Element.I32:
        return {"bias": in_int32(bias, "a bias")} if bias.any() else {}
    mult, shift = factors(scales * product.gain / y.scale)
    exact = mult.astype(np.float64) / np.exp2(shift.astype(np.float64))
    if y.zero:
        bias = bias + np.rint(y.zero / exact)
    return {"bias": in_int32(bias, "a bias"), "mult": mult, "shift": shift}


def check_sums(product: _Product, bias: Array) -> None:
    """Raise GraphError if the sums of a product can leave what accumulators hold."""
    bounds = np.iinfo(product.x.element.dtype)
    largest = max(-int(bounds.min), int(bounds.max))
    if product.matrix is not None:
        sums = np.abs(product.matrix).sum(axis=0, initial=0) * largest
    else:
        # Zero points are taken off by sums of their own, so each factor counts in full.
        wide = largest + abs(quantisation_of(product.x).zero)
        sums = np.asarray(product.depth * wide * (128 + abs(quantisation_of(product.w).zero)))
    most = INT32_MAX if product.x.element != Element.I16 else 1 << 42
    total = float(np.max(sums + np.abs(bias), initial=0.0))
    if total > most:
        raise GraphError(f"its sums reach {total:.6g}, the accumulators hold {most}")


def uniform(
    writer: IntegerWriter, like: Operation, name: str, kind: TensorType, output: str
) -> str:
    """Change scale and zero point by a product with a diagonal matrix; return the result."""
    shape = writer.shape(name)
    width = max((d for d in range(1, min(256, shape[-1]) + 1) if shape[-1] % d == 0), default=1)
    rows = shape if width == shape[-1] and len(shape) > 1 else (math.prod(shape) // width, width)
    source = writer.type(name)
    flat = name
    if rows != shape:
        flat = writer.add(
            like, "reshape", (name,), part="rows", result=replace(source, shape=rows), shape=rows
        )
    matrix = np.diag(np.full(width, _STEP, np.int8))
    b = writer.constant(f"{like.name}.identity", matrix, Quantisation((1 / _STEP,)))
    product = _Product(source, writer.type(b), matrix.astype(np.int64), None, width, width)
    made = writer.add(
        like,
        "matmul",
        (flat, b),
        part="scaled",
        result=replace(kind, shape=rows),
        integers=requantised(product, kind),
        transpose_a=False,
        transpose_b=False,
        a_zero=0,
        b_zero=0,
        **UNFUSED,
    )
    if rows == shape and not output:
        return made
    if rows == shape:
        writer.operations[-1] = replace(writer.operations[-1], outputs=(output,))
        return output
    return writer.add(
        like, "reshape", (made,), part="whole", output=output, result=kind, shape=shape
    )


def combine(writer: IntegerWriter, one: Operation, kind: str, operands: tuple[str, str]) -> bool:
    """Make an addition or multiplication part of the product that makes one operand."""
    result = writer.type(one.outputs[0])
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
        writer.merge(before, one, inputs=(other,), **extra)
        return True
    return False


def with_table(writer: IntegerWriter, one: Operation, name: str, table: Array) -> bool:
    """Make a table part of the product that makes its input, as the relu flag if it is that."""
    before = writer.product_before(name)
    if before is None or before["combine"] or before["relu"]:
        return False
    if writer.type(name).element != Element.I8:
        return False
    stored = np.arange(256, dtype=np.uint8).view(np.int8)
    if "table" in before.integers:
        first = before.integers["table"].astype(np.int64) & 255
        writer.merge(before, one, integers={"table": table[first]})
    elif np.array_equal(table, stored):
        writer.merge(before, one)
    elif np.array_equal(table, np.maximum(stored, 0)):
        writer.merge(before, one, relu=True)
    else:
        writer.merge(before, one, integers={"table": table})
    return True


LOWERINGS: dict[str, Lowering] = {"matmul": _matmul, "conv": _conv}
