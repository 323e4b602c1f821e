# SPDX-License-Identifier: Apache-2.0
"""The integers behind the sums of a product: bias, multiplier and shift of each column."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from npu.graph.form import Array, Element, GraphError, Operation, Quantisation, TensorType
from npu.graph.passes.factors import INT32_MAX, factors, in_int32
from npu.graph.passes.facts import quantisation_of

if TYPE_CHECKING:
    from npu.graph.passes.integer_writer import IntegerWriter

UNFUSED: Mapping[str, Any] = {"relu": False, "combine": "", "product_mult": 0, "product_shift": 0}
"""What a product has that nothing became part of."""
CONSTANT_PLACES = {Element.I8: 22, Element.U8: 22, Element.I16: 15}
"""Shift of a column that is constant, by the type of the result: the constant stands above it."""
STEP = 64
"""The weight of a product that only changes the scale: leaves room for fractions of zero points."""


@dataclass(frozen=True)
class KnownProduct:
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


def requantised(product: KnownProduct, kind: TensorType) -> dict[str, Array]:
    """Return bias, mult and shift of a product whose result has a type.

    bias = bias / (sx * sw) - zx * sum(w) + round(zy * 2^s / M). An int32 result has its bias only.
    Where the bias leaves int32 because the factor of a column is next to nothing, and no sum can
    move the result, the column is that constant.

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
    if kind.element == Element.I32:
        check_sums(product, bias)
        return {"bias": in_int32(bias, "a bias")} if bias.any() else {}
    mult, shift = factors(scales * product.gain / y.scale)
    exact = mult.astype(np.float64) / np.exp2(shift.astype(np.float64))
    moved = bias + np.rint(y.zero / exact) if y.zero else bias
    constant = np.abs(moved) > INT32_MAX
    if constant.any():
        ends, reach = np.iinfo(kind.element.dtype), largest_sums(product)
        low, high = (
            np.clip(np.rint((bias + sign * reach) * exact) + y.zero, ends.min, ends.max)
            for sign in (-1, 1)
        )
        places = CONSTANT_PLACES[kind.element]
        constant &= (low == high) & (reach < 1 << places - 1)
        held = low * (1 << places)
        bias, moved = np.where(constant, 0, bias), np.where(constant, held, moved)
        mult = np.where(constant, 1, mult).astype(np.uint16)
        shift = np.where(constant, places, shift).astype(np.uint8)
    check_sums(product, bias)
    return {"bias": in_int32(moved, "a bias"), "mult": mult, "shift": shift}


def largest_sums(product: KnownProduct) -> Array:
    """Return the largest magnitude of the sums of columns, (N,) or a scalar."""
    bounds = np.iinfo(product.x.element.dtype)
    largest = max(-int(bounds.min), int(bounds.max))
    if product.matrix is not None:
        return np.asarray(np.abs(product.matrix).sum(axis=0, initial=0) * largest)
    # Zero points are taken off by sums of their own, so each factor counts in full.
    wide = largest + abs(quantisation_of(product.x).zero)
    return np.asarray(product.depth * wide * (128 + abs(quantisation_of(product.w).zero)))


def check_sums(product: KnownProduct, bias: Array) -> None:
    """Raise GraphError if the sums of a product can leave what accumulators hold."""
    most = INT32_MAX if product.x.element != Element.I16 else 1 << 42
    total = float(np.max(largest_sums(product) + np.abs(bias), initial=0.0))
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
        flat = writer.emit(
            like, "reshape", (name,), part="rows", result=replace(source, shape=rows), shape=rows
        )
    matrix = np.diag(np.full(width, STEP, np.int8))
    b = writer.constant(matrix, f"{like.name}.identity", Quantisation((1 / STEP,)))
    product = KnownProduct(source, writer.type(b), matrix.astype(np.int64), None, width, width)
    made = writer.emit(
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
    return writer.emit(
        like, "reshape", (made,), part="whole", output=output, result=kind, shape=shape
    )
