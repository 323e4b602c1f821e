# SPDX-License-Identifier: Apache-2.0
"""Weights as int8, a scale per output channel, or as a narrow format that expands to int8."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from npu.graph.form import Array, Element, Operation, Quantisation, TensorType
from npu.graph.passes.facts import Facts, quantisation_of
from npu.graph.passes.rewriter import Rewriter
from npu.graph.weight_rows import packs, stream_matrices
from weights.formats.linear import expand
from weights.formats.recipe import INT8, Encoding
from weights.formats.rounding import Feedback, column_scale, rounded

BIAS_MOST = 1 << 30
FACTOR_LEAST = 2.0**-12
"""Weights of a channel that is this much smaller than the largest lose bits instead of range."""


@dataclass(frozen=True, slots=True, eq=False)
class Rounding:
    """How real weights become integers.

    Attributes:
        encoding: what is to hold them.
        learned: of the inputs, with which the rows of a narrow format make up for the errors of
            those above them; None: to nearest.
    """

    encoding: Encoding = INT8
    learned: Feedback | None = None


NEAREST_INT8 = Rounding()


def int8_weights(
    writer: Rewriter,
    facts: Facts,
    op: Operation,
    x: TensorType,
    rounding: Rounding = NEAREST_INT8,
) -> str:
    """Write the weights of a linear operation as integers; return their name.

    Given integers stay: uint8 become int8, and where w - zero fits int8 the zero point goes.
    """
    name = op.inputs[1]
    axis = 0 if op.kind == "matmul" and op["transpose_b"] else len(facts.graph.type(name).shape) - 1
    given = facts.given_integers(name)
    if given is not None:
        return _given(writer, name, *given)
    data = facts.value(name)
    assert data is not None
    bias = facts.value(op.inputs[2]) if len(op.used) > 2 else None
    scale, encoding = quantisation_of(x).scale, rounding.encoding
    if encoding.format is None:
        integers, scales = quantised_weights(data, axis, scale, bias)
    else:
        integers, scales = narrow_weights(op, data, axis, scale, bias, rounding)
    word = "" if encoding.format is None else str(encoding)
    wish = f"{name}.int8"
    return writer.constant(integers, wish, Quantisation(tuple(map(float, scales)), 0, axis, word))


def _given(writer: Rewriter, name: str, data: Array, kind: TensorType) -> str:
    found = quantisation_of(kind)
    zero, wide = found.zero, data.astype(np.int64)
    if kind.element == Element.U8:
        wide, zero = wide - 128, zero - 128
    moved = wide - zero
    if moved.size and moved.min() >= -128 and moved.max() <= 127:
        wide, zero = moved, 0
    return writer.constant(
        wide.astype(np.int8), f"{name}.int8", Quantisation(found.scales, zero, found.axis)
    )


def quantised_weights(
    data: Array, axis: int, x_scale: float, bias: Array | None
) -> tuple[Array, Array]:
    """Return int8 weights in -127..127 and a scale per index of an axis.

    Args:
        data: real weights.
        axis: of the output channels.
        x_scale: of what they are multiplied with.
        bias: real, per output channel.

    Returns:
        Integers of the shape of `data`, and (N,) scales: absmax / 127, but no smaller than what
        keeps the bias and the factors of the channel in range; 1 if all weights are zero.
    """
    largest = _largest(data, axis)
    scales = _in_range(np.where(largest > 0, largest / 127, 0.0), largest, x_scale, bias)
    integers = np.clip(np.rint(data / _along(scales, data.ndim, axis)), -127, 127).astype(np.int8)
    return integers, scales


def _largest(data: Array, axis: int) -> Array:
    """Return the largest magnitude at each index of an axis."""
    other = tuple(each for each in range(data.ndim) if each != axis)
    found: Array = np.abs(data.astype(np.float64)).max(axis=other)
    return found


def _along(scales: Array, rank: int, axis: int) -> Array:
    """Return numbers as an array of a rank, along an axis."""
    shape = [1] * rank
    shape[axis] = -1
    return scales.reshape(shape)


def _in_range(wish: Array, largest: Array, x_scale: float, bias: Array | None) -> Array:
    """Return scales in float32, no smaller than bias and factors allow; 1 if all weights are 0."""
    top = float(largest.max()) if largest.size else 0.0
    scales = wish
    if bias is not None:
        scales = np.maximum(scales, np.abs(bias.astype(np.float64)) / (BIAS_MOST * x_scale))
    scales = np.maximum(scales, top / 127 * FACTOR_LEAST)
    scales = np.where(largest > 0, scales, np.maximum(scales, top / 127 if top > 0 else 1.0))
    return scales.astype(np.float32).astype(np.float64)


def narrow_weights(
    op: Operation,
    data: Array,
    axis: int,
    x_scale: float,
    bias: Array | None,
    rounding: Rounding,
) -> tuple[Array, Array]:
    """Return weights that a narrow format holds exactly, as int8; else as `quantised_weights`.

    Args:
        op: the product: its kind says in which rows the stream has them.
        data: real weights.
        axis: of the output channels.
        x_scale: of what they are multiplied with.
        bias: real, per output channel.
        rounding: to a narrow format.
    """
    encoding, learned = rounding.encoding, rounding.learned
    matrices = stream_matrices(op, data.astype(np.float64))
    places = stream_matrices(op, np.arange(1, data.size + 1).reshape(data.shape))
    if encoding.group and op.kind == "conv" and packs(op, data.shape, encoding):
        encoding = replace(encoding, group=len(matrices[0]))
    ones = np.ones(len(matrices[0]))
    importance = ones if learned is None else learned.importance
    wish = np.concatenate([column_scale(encoding, real, importance) for real in matrices])
    scales = _in_range(wish, _largest(data, axis), x_scale, bias)
    integers, first = np.zeros(data.size, np.int8), 0
    for real, place in zip(matrices, places, strict=True):
        columns = slice(first, first + real.shape[1])
        codes, side = rounded(encoding, real / scales[columns], learned)
        there = place > 0
        assert encoding.format is not None
        expanded = expand(encoding.format, encoding.group, codes, side)
        integers[place[there] - 1] = expanded[there]
        first += real.shape[1]
    return integers.reshape(data.shape), scales
