# SPDX-License-Identifier: Apache-2.0
"""Operators of tools that train for integers: QONNX with Brevitas and FINN."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from npu.graph.form import Array, GraphError
from npu.graph.importers.onnx_dialects import ForeignNode, operator

QONNX = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")
CHANNELS_LAST = "qonnx.custom_op.channels_last"
_TYPES = ("int8", "uint8", "int16", "uint16", "int32")
_FEWER = {"FLOOR": "Floor", "CEIL": "Ceil", "ROUND": "Round"}
_ROUNDING: dict[str, tuple[str, float | None]] = {
    "ROUND": ("Round", None),
    "HALF_EVEN": ("Round", None),
    "CEIL": ("Ceil", None),
    "FLOOR": ("Floor", None),
    "UP": ("Ceil", 0.0),
    "DOWN": ("Floor", 0.0),
    "ROUND_TO_ZERO": ("Floor", 0.0),
    "HALF_UP": ("Floor", 0.5),
    "HALF_DOWN": ("Ceil", -0.5),
}
"""By mode: what rounds; and what is added to the size before, where that is rounded."""
_WHOLE: dict[str, Callable[[float], int]] = {
    "Round": round,
    "Floor": math.floor,
    "Ceil": math.ceil,
}
_OPPOSITE = {"Ceil": "Floor", "Floor": "Ceil"}


def _number(data: Array, what: str) -> float:
    found = np.unique(data)
    if found.size != 1 or not np.isfinite(found[0]):
        raise GraphError(f"{what} {data.reshape(-1)[:4].tolist()}, allowed one number")
    return float(found[0])


def _whole(data: Array, what: str) -> int:
    found = _number(data, what)
    if found != round(found):
        raise GraphError(f"{what} {data.reshape(-1)[:4].tolist()}, allowed one whole number")
    return round(found)


def _axis(one: ForeignNode, x: str, scale: Array) -> tuple[Array, int | None]:
    """Return scales as a row, and the axis of x that they count if there are several."""
    shape = (1,) * (len(one.shape(x)) - scale.ndim) + scale.shape
    counted = [axis for axis, size in enumerate(shape) if size != 1]
    if len(counted) > 1 or len(shape) > len(one.shape(x)):
        raise GraphError(f"scales of shape {list(scale.shape)}, allowed those of one axis")
    row = scale.reshape(-1).astype(np.float32)
    return (row, counted[0]) if counted else (row.reshape(()), None)


def _quantised(one: ForeignNode, x: str, scale: Array, zero: int, low: int, high: int) -> None:
    """Give x rounded to multiples of its scale from low - zero to high - zero."""
    holding = (one for one in _TYPES if np.iinfo(one).min <= low and high <= np.iinfo(one).max)
    dtype = np.dtype(next(holding, "float32"))
    if dtype.kind == "f" or not low <= zero <= high:
        raise GraphError(
            f"integers {low} to {high} with zero point {zero}, allowed those of int32 that hold it"
        )
    row, axis = _axis(one, x, scale)
    narrow = (low, high) != (np.iinfo(dtype).min, np.iinfo(dtype).max)
    # Edges in real numbers are the chip's, which rounds before; these integers are the host's.
    late = narrow and (axis is not None or dtype == np.int32) and one.known(x) is None
    if narrow and not late:
        edges = [((edge - zero) * scale).astype(np.float32) for edge in (low, high)]
        x = one.add("Min", [one.add("Max", [x, one.constant(edges[0])]), one.constant(edges[1])])
    zeros = np.full(row.shape, zero, dtype)
    given = [one.constant(row), one.constant(zeros)]
    q = one.add("QuantizeLinear", [x, *given], axis=axis)
    if late:
        q = one.add("Clip", [q, *(one.constant(np.array(edge, dtype)) for edge in (low, high))])
    one.give("DequantizeLinear", [q, *given], axis=axis)


@operator("Quant", "IntQuant", domain=QONNX)
def _quant(one: ForeignNode) -> None:
    """(round(clip(x / scale + zero)) - zero) * scale, in so many bits."""
    x, scale = one.input(0), one.value(one.input(1), "the scale")
    zero = one.value(one.input(2), "the zero point")
    bits = _number(one.value(one.input(3), "the number of bits"), "the number of bits")
    signed = bool(one.attributes.get("signed", 1))
    narrow = bool(one.attributes.get("narrow", 0))
    mode = one.attributes.get("rounding_mode", b"ROUND").decode().upper()
    if mode not in _ROUNDING:
        raise GraphError(f"rounding_mode {mode}, allowed {', '.join(_ROUNDING)}")
    least = 1 if not (signed or narrow) or bits != round(bits) else 2
    if not least <= bits <= 32:
        raise GraphError(f"{bits:g} bits, allowed {least} to 32")
    # What is clipped to the edges is rounded afterwards, so that fewer bits have whole edges too.
    low = -(2.0 ** (bits - 1)) + narrow if signed else 0.0
    high = 2.0 ** (bits - 1) - 1 if signed else 2.0**bits - 1 - narrow
    low, high = (float(_rounded_number(edge, mode)) for edge in (low, high))
    whole = np.unique(zero).tolist()
    several = len(whole) > 1 or max(scale.shape, default=1) != scale.size
    simple = _ROUNDING[mode] == _ROUNDING["ROUND"] and not several
    if not simple and one.known(x) is None and max(scale.size, len(whole)) > 1:
        raise GraphError(
            f"scales of shape {list(scale.shape)}, zero points of shape {list(zero.shape)} and "
            f"rounding_mode {mode} of {x!r}, which is not constant, allowed scales of one axis, "
            "one zero point and ROUND"
        )
    if several or whole[0] != round(whole[0]) or not low <= whole[0] <= high:
        _quantised_reals(one, x, scale, zero, low, high, mode)
        return
    if not simple:
        at = _integers(one, x, scale, zero, mode)
        x = one.add("Mul", [one.add("Sub", [at, _real(one, zero)]), _real(one, scale)])
    _quantised(one, x, scale, round(whole[0]), round(low), round(high))


def _quantised_reals(
    one: ForeignNode, x: str, scale: Array, zero: Array, low: float, high: float, mode: str
) -> None:
    """Give x rounded to what no integers with a scale per channel and one zero point are."""
    at = _integers(one, x, scale, zero, mode)
    at = one.add("Min", [one.add("Max", [at, _real(one, low)]), _real(one, high)])
    one.give("Mul", [one.add("Sub", [at, _real(one, zero)]), _real(one, scale)])


def _integers(one: ForeignNode, x: str, scale: Array, zero: Array, mode: str) -> str:
    """Add round(x / scale + zero) as real numbers."""
    at = one.add("Add", [one.add("Div", [x, _real(one, scale)]), _real(one, zero)])
    operator, apart = _ROUNDING[mode]
    if apart is None:
        return one.add(operator, [at])
    up = one.add(operator, [one.add("Add", [at, _real(one, apart)])])
    down = one.add(_OPPOSITE[operator], [one.add("Add", [at, _real(one, -apart)])])
    return one.add("Where", [one.add("GreaterOrEqual", [at, _real(one, 0.0)]), up, down])


def _rounded_number(edge: float, mode: str) -> float:
    operator, apart = _ROUNDING[mode]
    whole = _WHOLE[operator]
    return whole(edge) if apart is None else math.copysign(1, edge) * whole(abs(edge) + apart)


def _real(one: ForeignNode, data: Array | float) -> str:
    return one.constant(np.asarray(data, np.float32))


@operator("BipolarQuant", domain=QONNX)
def _bipolar(one: ForeignNode) -> None:
    """Give the scale with the sign of x, that of 0 being positive."""
    x, scale = one.input(0), one.value(one.input(1), "the scale").astype(np.float32)
    positive = one.add("GreaterOrEqual", [x, one.constant(np.zeros((), np.float32))])
    one.give("Where", [positive, one.constant(scale), one.constant(-scale)])


@operator("Trunc", domain=QONNX)
def _trunc(one: ForeignNode) -> None:
    """Leave the lower bits away: floor(round(x / scale + zero) / 2 ** n), as a real number.

    A rounding mode may say ceil or round in the place of floor.
    """
    x = one.input(0)
    scale = one.value(one.input(1), "the scale").astype(np.float32)
    zero = one.value(one.input(2), "the zero point").astype(np.float32)
    before, after = (
        _whole(one.value(one.input(index), what), what)
        for index, what in ((3, "the number of bits before"), (4, "the number of bits behind"))
    )
    mode = one.attributes.get("rounding_mode", b"FLOOR").decode()
    if mode.upper() not in _FEWER:
        raise GraphError(f"rounding_mode {mode}, allowed {', '.join(_FEWER)}")
    moved = one.add("Add", [one.add("Div", [x, one.constant(scale)]), one.constant(zero)])
    whole = one.add("Round", [moved])
    size = one.constant(np.array(2.0 ** (before - after), np.float32))
    kept = one.add(_FEWER[mode.upper()], [one.add("Div", [whole, size])])
    one.give("Mul", [one.add("Sub", [kept, one.constant(zero)]), one.constant(scale)])


@operator("Conv", "MaxPool", "AveragePool", "BatchNormalization", domain=CHANNELS_LAST)
def _channels_last(one: ForeignNode) -> None:
    """Do with channels behind what the standard's operator does with channels in front."""
    x = one.input(0)
    rank = len(one.shape(x))
    if rank < 3:
        raise GraphError(f"a tensor of rank {rank}, allowed 3 and more")
    said = {name: one.attributes[name] for name in list(one.attributes)}
    first = one.add("Transpose", [x], perm=[0, rank - 1, *range(1, rank - 1)])
    y = one.add(one.operator, [first, *one.rest(1)], **said)
    one.give("Transpose", [y], perm=[0, *range(2, rank), 1])
