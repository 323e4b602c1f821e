# SPDX-License-Identifier: Apache-2.0
"""Borders between real numbers and integers that stand for them."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, Element, GraphError, TensorType
from npu.graph.operations.base import (
    FLOATS,
    Attributes,
    Call,
    Kind,
    ResultType,
    Trait,
    Types,
    known,
)
from npu.graph.operations.constraints import Constraint


def scale_of(kind: TensorType, dtype: type[np.floating]) -> Array:
    """Return the scales of a quantised tensor, shaped so that they broadcast over it.

    Raises:
        GraphError: the tensor has no quantisation.
    """
    quantisation = kind.quantisation
    if quantisation is None:
        raise GraphError("the tensor has no scale, allowed one or one per index of an axis")
    scales = np.asarray(quantisation.scales, dtype=dtype)
    if quantisation.axis is None:
        result: Array = scales[0]
        return result
    shape = [1] * len(kind.shape)
    shape[quantisation.axis] = -1
    return scales.reshape(shape)


def quantised(x: Array, kind: TensorType, dtype: type[np.floating] = np.float32) -> Array:
    """Return sat(rint(x / scale) + zero), by default in float32 as the host computes it.

    Args:
        x: real numbers.
        kind: of the result; its shape may differ from that of x only by broadcasting.
        dtype: what the quotient is computed in.

    Returns:
        Integers of the element type of `kind`.
    """
    edge = np.iinfo(kind.element.dtype)
    with np.errstate(all="ignore"):
        scaled = np.rint(x.astype(dtype) / scale_of(kind, dtype)).astype(np.float64)
    zero = kind.quantisation.zero if kind.quantisation else 0
    moved = np.nan_to_num(scaled, nan=0.0, posinf=2.0**40, neginf=-(2.0**40)) + zero
    return np.clip(moved, edge.min, edge.max).astype(kind.element.dtype)


def dequantised(x: Array, kind: TensorType, dtype: type[np.floating] = np.float32) -> Array:
    """Return scale * (x - zero), by default in float32; `kind` is the type of x."""
    zero = kind.quantisation.zero if kind.quantisation else 0
    wide = (x.astype(np.int64) - zero).astype(np.float64)
    return (wide.astype(dtype) * scale_of(kind, dtype)).astype(dtype)


def _quantise_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x = known(types, 0)
    if x.element not in FLOATS:
        raise GraphError(f"the input is {x.element}, allowed floats")
    return (ResultType(x.shape),)


def _integers(types: Types) -> TensorType:
    x = known(types, 0)
    if x.quantisation is None or x.element in FLOATS:
        raise GraphError(f"the input is {x.element} without scale, allowed quantised integers")
    return x


def _dequantise_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    return (ResultType(_integers(types).shape, Element.F32),)


def _requantise_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    return (ResultType(_integers(types).shape),)


def _width(kind: TensorType) -> type[np.floating]:
    """Return what a border computes in: float64 where its real numbers are."""
    return np.float64 if kind.element == Element.F64 else np.float32


def _quantise(call: Call) -> tuple[Array, ...]:
    return (quantised(call.value(0), call.results[0], _width(known(call.types, 0))),)


def _dequantise(call: Call) -> tuple[Array, ...]:
    return (dequantised(call.value(0), known(call.types, 0), _width(call.results[0])),)


def _requantise(call: Call) -> tuple[Array, ...]:
    x = call.value(0)
    return (quantised(dequantised(x, known(call.types, 0)), call.results[0]),)


KINDS = (
    Kind(
        name="quantise",
        group="borders",
        inputs=("x",),
        attributes={},
        rule=_quantise_rule,
        meaning=_quantise,
        summary="Real numbers to integers with the scale and zero point of the output.",
        integer="y = sat(rint(x / scale) + zero) in the width of x, halves to even.",
        lowering="None: the host does it where a segment begins.",
        constraints=(Constraint("it is an edge between host and chip"),),
        sources={
            "onnx": ("QuantizeLinear",),
            "stablehlo": ("composite tessera.quantize",),
            "tflite": ("QUANTIZE",),
        },
        traits=frozenset({Trait.BORDER}),
    ),
    Kind(
        name="dequantise",
        group="borders",
        inputs=("x",),
        attributes={},
        rule=_dequantise_rule,
        meaning=_dequantise,
        summary="Integers to the real numbers that they stand for.",
        integer="y = scale * (x - zero) in the width of y.",
        lowering="None: the host does it where a segment ends.",
        constraints=(Constraint("it is an edge between chip and host"),),
        sources={
            "onnx": ("DequantizeLinear",),
            "stablehlo": ("composite tessera.dequantize",),
            "tflite": ("DEQUANTIZE",),
        },
        traits=frozenset({Trait.BORDER}),
    ),
    Kind(
        name="requantise",
        group="borders",
        inputs=("x",),
        attributes={},
        rule=_requantise_rule,
        meaning=_requantise,
        summary="Integers to integers of another scale or width.",
        integer="y = sat(rs(x * mult, shift)).",
        lowering="VEC SCALE_SHIFT.",
        constraints=(Constraint("both are int8 or int16 with one scale and zero points of 0"),),
        sources={"onnx": ("DequantizeLinear + QuantizeLinear",), "tflite": ("QUANTIZE",)},
        fused={"mult": "int", "shift": "int"},
        traits=frozenset({Trait.BORDER}),
        chip="VEC scales, or a table",
    ),
)
