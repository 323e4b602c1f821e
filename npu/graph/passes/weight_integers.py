# SPDX-License-Identifier: Apache-2.0
"""Weights as int8, a scale per output channel."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, Element, Operation, Quantisation, TensorType
from npu.graph.passes.facts import Facts, quantisation_of
from npu.graph.passes.rewriter import Rewriter

BIAS_MOST = 1 << 30
FACTOR_LEAST = 2.0**-12
"""Weights of a channel that is this much smaller than the largest lose bits instead of range."""


def int8_weights(writer: Rewriter, facts: Facts, one: Operation, x: TensorType) -> str:
    """Write the weights of a linear operation as integers; return their name.

    Given integers stay: uint8 become int8, and where w - zero fits int8 the zero point goes.
    """
    name = one.inputs[1]
    axis = (
        0 if one.kind == "matmul" and one["transpose_b"] else len(facts.graph.type(name).shape) - 1
    )
    given = facts.given_integers(name)
    if given is not None:
        return _given(writer, name, *given)
    data = facts.value(name)
    assert data is not None
    bias = facts.value(one.inputs[2]) if len(one.used) > 2 else None
    integers, scales = quantised_weights(data, axis, quantisation_of(x).scale, bias)
    wish = f"{name}.int8"
    return writer.constant(wish, integers, Quantisation(tuple(map(float, scales)), 0, axis))


def _given(writer: Rewriter, name: str, data: Array, kind: TensorType) -> str:
    found = quantisation_of(kind)
    zero, wide = found.zero, data.astype(np.int64)
    if kind.element == Element.U8:
        wide, zero = wide - 128, zero - 128
    moved = wide - zero
    if moved.size and moved.min() >= -128 and moved.max() <= 127:
        wide, zero = moved, 0
    return writer.constant(
        f"{name}.int8", wide.astype(np.int8), Quantisation(found.scales, zero, found.axis)
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
    other = tuple(each for each in range(data.ndim) if each != axis)
    largest = np.abs(data.astype(np.float64)).max(axis=other)
    top = float(largest.max()) if largest.size else 0.0
    scales = np.where(largest > 0, largest / 127, 0.0)
    if bias is not None:
        scales = np.maximum(scales, np.abs(bias.astype(np.float64)) / (BIAS_MOST * x_scale))
    scales = np.maximum(scales, top / 127 * FACTOR_LEAST)
    scales = np.where(largest > 0, scales, np.maximum(scales, top / 127 if top > 0 else 1.0))
    scales = scales.astype(np.float32).astype(np.float64)
    shape = [1] * data.ndim
    shape[axis] = -1
    integers = np.clip(np.rint(data / scales.reshape(shape)), -127, 127).astype(np.int8)
    return integers, scales
