# SPDX-License-Identifier: Apache-2.0
"""Operators on integers that onnxruntime adds to ONNX: what its quantiser writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from npu.graph.form import Array, GraphError
from npu.graph.importers.dialect_microsoft import MICROSOFT
from npu.graph.importers.onnx_dialects import Entry, ForeignNode, operator


def _real(one: ForeignNode, x: int, scale: int | None = None, axis: int | None = None) -> str:
    """Add the real numbers that an input stands for; scale and zero point stand behind it."""
    at = x + 1 if scale is None else scale
    zero = _zero(one, at + 1, one.input(x))
    return one.add("DequantizeLinear", [one.input(x), one.input(at), zero], axis=axis)


def _zero(one: ForeignNode, index: int, x: str) -> str:
    """Return the zero point; without one it is 0 of the type of x."""
    return one.input(index) or one.constant(np.zeros((), one.dtype(x)))


def _give(one: ForeignNode, y: str, scale: int, like: int = 0) -> None:
    """Give the integers that stand for y."""
    given = [y, one.input(scale), _zero(one, scale + 1, one.input(like))]
    one.give("QuantizeLinear", given)


def _binary(kind: str) -> Entry:
    def entry(one: ForeignNode) -> None:
        _give(one, one.add(kind, [_real(one, 0), _real(one, 3)]), 6)

    return entry


def _unary(kind: str, **attributes: Any) -> Entry:  # noqa: ANN401
    """Make an entry of an operator with these attributes and their defaults."""

    def entry(one: ForeignNode) -> None:
        said = {name: one.attributes.get(name, value) for name, value in attributes.items()}
        _give(one, one.add(kind, [_real(one, 0)], **said), 3)

    return entry


for _kind in ("Add", "Mul"):
    operator(f"QLinear{_kind}", domain=MICROSOFT)(_binary(_kind))
operator("QLinearSigmoid", domain=MICROSOFT)(_unary("Sigmoid"))
operator("QLinearLeakyRelu", domain=MICROSOFT)(_unary("LeakyRelu", alpha=0.01))


@operator("QLinearSoftmax", domain=MICROSOFT)
def _softmax(one: ForeignNode) -> None:
    axis = int(one.attributes.get("axis", -1))
    shape = one.shape(one.input(0))
    if not -len(shape) <= axis < len(shape):
        raise GraphError(f"axis {axis}, allowed {-len(shape)}..{len(shape) - 1}")
    old = int(one.attributes.get("opset", 13)) < 13
    x = _real(one, 0)
    if not old or axis in (-1, len(shape) - 1):
        _give(one, one.add("Softmax", [x], axis=axis), 3)
        return
    rows = one.add("Softmax", [one.add("Flatten", [x], axis=axis % len(shape))], axis=-1)
    _give(one, one.add("Reshape", [rows, one.constant(np.array(shape, np.int64))]), 3)


@operator("QLinearReduceMean", domain=MICROSOFT)
def _mean(one: ForeignNode) -> None:
    axes = [int(axis) for axis in one.attributes.get("axes", ())]
    keep = one.attributes.get("keepdims", 1)
    given = [_real(one, 0), *([one.constant(np.array(axes, np.int64))] if axes else [])]
    _give(one, one.add("ReduceMean", given, keepdims=keep), 3)


@operator("QLinearConcat", domain=MICROSOFT)
def _concat(one: ForeignNode) -> None:
    if len(one.inputs) < 5 or len(one.inputs) % 3 != 2:
        raise GraphError(f"{len(one.inputs)} inputs, allowed 2 and 3 for each tensor")
    parts = [_real(one, index) for index in range(2, len(one.inputs), 3)]
    _give(one, one.add("Concat", parts, axis=one.attributes["axis"]), 0, 2)


@operator("QLinearWhere", domain=MICROSOFT)
def _where(one: ForeignNode) -> None:
    y = one.add("Where", [one.input(0), _real(one, 1), _real(one, 4)])
    _give(one, y, 7, 1)


def _pool(kind: str, *names: str) -> Entry:
    def entry(one: ForeignNode) -> None:
        last = bool(one.attributes.get("channels_last", 0))
        said = {name: one.attributes.get(name) for name in names}
        _give(one, _in_front(one, _real(one, 0), last, lambda x: one.add(kind, [x], **said)), 3)

    return entry


def _in_front(one: ForeignNode, x: str, last: bool, make: Callable[[str], str]) -> str:
    """Add an operator with channels in front, whatever x has."""
    rank = len(one.shape(x))
    if not last:
        return make(x)
    y = make(one.add("Transpose", [x], perm=[0, rank - 1, *range(1, rank - 1)]))
    return one.add("Transpose", [y], perm=[0, *range(2, rank), 1])


_WINDOW = ("auto_pad", "ceil_mode", "count_include_pad", "kernel_shape", "pads", "strides")
operator("QLinearAveragePool", domain=MICROSOFT)(_pool("AveragePool", *_WINDOW))
operator("QLinearGlobalAveragePool", domain=MICROSOFT)(_pool("GlobalAveragePool"))


@operator("QLinearConv", domain=MICROSOFT)
def _conv(one: ForeignNode) -> None:
    if one.attributes.get("channels_last", 0):
        raise GraphError("channels_last = 1, allowed 0")
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    said = {name: one.attributes.get(name) for name in names}
    one.give("QLinearConv", one.rest(0), **said)


@operator("QGemm", domain=MICROSOFT)
def _gemm(one: ForeignNode) -> None:
    """Give alpha * A * B + C; C counts in the product of alpha and the scales of both."""
    turned = bool(one.attributes.get("transB", 0))
    alpha = float(one.attributes.get("alpha", 1.0))
    given = [_real(one, 0, axis=1), _real(one, 3, axis=0 if turned else 1)]
    if one.input(6):
        scales = [one.value(one.input(at), "the scale").astype(np.float64) for at in (1, 4)]
        bias = one.value(one.input(6), "the bias").astype(np.float64)
        given.append(one.constant((bias * alpha * scales[0] * scales[1]).astype(np.float32)))
    said = {"alpha": alpha, "transA": one.attributes.get("transA", 0), "transB": int(turned)}
    if one.input(7):
        _give(one, one.add("Gemm", given, **said), 7)
    else:
        one.give("Gemm", given, **said)


@operator("MatMulIntegerToFloat", domain=MICROSOFT)
def _matmul_to_float(one: ForeignNode) -> None:
    _product(one, _scaled(one, 0, 2, 4), _scaled(one, 1, 3, 5), 6)


@operator("DynamicQuantizeMatMul", domain=MICROSOFT)
def _dynamic_matmul(one: ForeignNode) -> None:
    """Multiply A by B; the chip quantises A by its own calibration."""
    _product(one, one.input(0), _scaled(one, 1, 2, 3), 4)


def _scaled(one: ForeignNode, x: int, scale: int, zero: int) -> str:
    name = one.input(x)
    given = [name, one.input(scale), _zero(one, zero, name)]
    if one.known(given[1]) is None:
        raise GraphError(f"the scale {given[1]!r} is not constant")
    return one.add("DequantizeLinear", given, axis=len(one.shape(name)) - 1)


def _product(one: ForeignNode, a: str, b: str, bias: int) -> None:
    if not one.input(bias):
        one.give("MatMul", [a, b])
        return
    one.give("Add", [one.add("MatMul", [a, b]), one.input(bias)])


@operator("DynamicQuantizeLSTM", domain=MICROSOFT)
def _dynamic_lstm(one: ForeignNode) -> None:
    """Give the LSTM of the weights' real numbers; inputs are not quantised as it runs."""
    weights = [
        one.constant(_gates(one, index, scale, zero))
        for index, scale, zero in ((1, 8, 9), (2, 10, 11))
    ]
    given = [one.input(0), *weights, *(one.input(index) for index in range(3, 8))]
    said = {name: one.attributes[name] for name in list(one.attributes)}
    one.become("LSTM", given, **said)


def _gates(one: ForeignNode, index: int, scale: int, zero: int) -> Array:
    """Return weights of an LSTM as its gates have them in the standard: before what they read."""
    data = one.value(one.input(index), "the weight")
    if data.ndim != 3:
        raise GraphError(f"weights of shape {list(data.shape)}, allowed rank 3")
    shape = (data.shape[0], 1, -1)
    units = one.value(one.input(scale), "the scale").reshape(shape)
    zeros = one.value(one.input(zero), "the zero point").reshape(shape).astype(np.float32)
    real: Array = ((data - zeros) * units).astype(np.float32)
    return np.ascontiguousarray(real.transpose(0, 2, 1))


@operator("QuantizeLinear", "DequantizeLinear", domain=MICROSOFT)
def _border(one: ForeignNode) -> None:
    said = {name: one.attributes.get(name) for name in ("axis", "block_size")}
    one.give(one.operator, one.rest(0), **said)
