# SPDX-License-Identifier: Apache-2.0
"""Quantisation that an ONNX file gives: every form becomes quantise and dequantise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import onnx

from npu.graph.form import Array, Element, Quantisation, TensorType
from npu.graph.importers.onnx_linear import conv_of, matmul_of
from npu.graph.importers.onnx_node import OWN_DOMAIN, Node, element_of, mapped
from npu.graph.importers.unmapped import UnmappedError
from npu.graph.operations import infer

_INTEGERS = (Element.I8, Element.U8, Element.I16, Element.U16, Element.I32)


@dataclass(frozen=True)
class GivenScales:
    """Scales and zero points as a file gives them.

    Attributes:
        scales: not negative; 0 only of constants, whose numbers are then 0.
        zeros: one, or one per index of the axis.
        axis: that they count if there are several.
        element: type of the zero points, None if none are given.
    """

    scales: tuple[float, ...]
    zeros: tuple[int, ...] = (0,)
    axis: int = 0
    element: Element | None = None

    @property
    def quantisation(self) -> Quantisation:
        """The same with one zero point. Raises UnmappedError if they differ, or a scale is 0."""
        if len(set(self.zeros)) > 1:
            raise UnmappedError("several zero points of what is not constant are not mapped")
        if not all(self.scales):
            raise UnmappedError("a scale of 0 of what is not constant is not mapped")
        return Quantisation(self.scales, self.zeros[0], self.axis if len(self.scales) > 1 else None)


def _parameters(node: Node, scale: int, zero: int, axis: int) -> GivenScales:
    """Read constant scales and zero points; without an input of scales they are 1."""
    zeros: tuple[int, ...] = (0,)
    element = None
    if node.input(zero):
        zeros = tuple(int(one) for one in node.value(zero, "the zero point").reshape(-1))
        element = node.type(node.input(zero)).element
    found = node.value(scale, "the scale") if scale >= 0 else np.ones(1)
    if found.ndim > 1:
        raise UnmappedError("scales per block are not mapped")
    scales = tuple(float(one) for one in found.reshape(-1))
    if not all(np.isfinite(one) and one >= 0 for one in scales):
        raise UnmappedError("a scale is not a positive number")
    return GivenScales(scales, zeros, axis, element)


def _centred(data: Array, given: GivenScales) -> tuple[Array, GivenScales]:
    """Take zero points that differ along an axis off constant integers."""
    if len(set(given.zeros)) == 1:
        return data, given
    axis = given.axis + data.ndim if given.axis < 0 else given.axis
    if not 0 <= axis < data.ndim or data.shape[axis] != len(given.zeros):
        raise UnmappedError(f"{len(given.zeros)} zero points do not fit {list(data.shape)}")
    column = [-1 if one == axis else 1 for one in range(data.ndim)]
    wide = data.astype(np.int64) - np.array(given.zeros).reshape(column)
    for dtype in (np.int8, np.int16, np.int32):
        edge = np.iinfo(dtype)
        if edge.min <= wide.min() and wide.max() <= edge.max:
            return wide.astype(dtype), replace(given, zeros=(0,))
    raise UnmappedError("integers less their zero points do not fit 32 bits")


def _alive(data: Array, given: GivenScales) -> tuple[Array, GivenScales]:
    """Make what a scale of 0 stands for zero points, which any other scale makes 0 as well."""
    dead = np.array(given.scales) == 0
    if not dead.any():
        return data, given
    if dead.size > 1:
        axis = given.axis + data.ndim if given.axis < 0 else given.axis
        if not 0 <= axis < data.ndim or data.shape[axis] != dead.size:
            raise UnmappedError(f"{dead.size} scales do not fit {list(data.shape)}")
        dead = dead.reshape([-1 if one == axis else 1 for one in range(data.ndim)])
    data = np.where(dead, data.dtype.type(given.zeros[0]), data)
    return data, replace(given, scales=tuple(one or 1.0 for one in given.scales))


def _fitting(quantisation: Quantisation, kind: TensorType) -> Quantisation:
    """Check a scale per index against the axis that it counts."""
    axis = quantisation.axis
    if axis is None:
        return quantisation
    rank = len(kind.shape)
    axis = axis + rank if axis < 0 else axis
    if not 0 <= axis < rank or kind.shape[axis] != len(quantisation.scales):
        raise UnmappedError(
            f"{len(quantisation.scales)} scales do not fit shape {list(kind.shape)}"
        )
    return replace(quantisation, axis=axis)


def dequantise(node: Node, x: str, given: GivenScales, part: str = "") -> str:
    """Add the real numbers that integers stand for.

    Integers that stand for something else already are scaled and moved to what they are to
    stand for.
    """
    kind = node.type(x)
    if kind.element not in _INTEGERS:
        raise UnmappedError(f"{x!r} is {kind.element}, mapped are {', '.join(_INTEGERS)}")
    data = node.build.value(x)
    if data is not None:
        data, given = _alive(*_centred(data, given))
    quantisation = _fitting(given.quantisation, kind)
    if data is not None:
        name = node.build.constant(data, f"{x}.integers", quantisation)
        return node.add("dequantise", [name], part)
    node.build.scale_input(x, quantisation)
    found = node.type(x).quantisation
    if found == quantisation:
        return node.add("dequantise", [x], part)
    if found is None or found.axis is not None or quantisation.axis is not None:
        raise UnmappedError(f"{x!r} has two scales of different meaning")
    real = node.add("dequantise", [x], f"{part}.first".strip("."))
    moved = quantisation.scale * (found.zero - quantisation.zero)
    factor = quantisation.scale / found.scale
    return node.table(real, "scale", "shift", parameters=[factor, moved], part=part)


def quantise(node: Node, x: str, given: GivenScales) -> str:
    """Add the integers that stand for real numbers."""
    kind, element = node.type(x), given.element or Element.U8
    if kind.element != Element.F32 or element not in _INTEGERS:
        raise UnmappedError(f"{kind.element} to {element} is not mapped")
    quantisation = _fitting(given.quantisation, kind)
    return node.add("quantise", [x], result=TensorType(kind.shape, element, quantisation))


@mapped("QuantizeLinear", since=10)
def _quantize_linear(node: Node) -> None:
    if node.attributes.get("block_size", 0):
        raise UnmappedError("scales per block are not mapped")
    given = _parameters(node, 1, 2, node.attributes.get("axis", 1))
    element = node.attributes.get("output_dtype", 0)
    if element and given.element is None:
        given = replace(given, element=element_of(element))
    if node.attributes.get("precision", 0) not in {0, onnx.TensorProto.FLOAT}:
        raise UnmappedError("a precision other than float32 is not mapped")
    node.give(quantise(node, node.input(0), given))


@mapped("DequantizeLinear", since=10)
def _dequantize_linear(node: Node) -> None:
    if node.type(node.input(1)).element != Element.F32:
        raise UnmappedError("a scale that is not float32 is not mapped")
    if node.attributes.get("output_dtype", 0) not in {0, onnx.TensorProto.FLOAT}:
        raise UnmappedError("results other than float32 are not mapped")
    if node.attributes.get("block_size", 0):
        node.give(_of_blocks(node))
        return
    given = _parameters(node, 1, 2, node.attributes.get("axis", 1))
    node.give(dequantise(node, node.input(0), given))


def _of_blocks(node: Node) -> str:
    """Return the real numbers of constant integers with a scale per block, which are constant."""
    x = node.value(0, "the tensor")
    axis = node.axis(node.attributes.get("axis", 1), x.ndim)
    blocks = [node.value(1, "the scale").astype(np.float32)]
    if node.input(2):
        blocks.append(node.value(2, "the zero point").astype(np.float32))
    size, count = node.attributes["block_size"], x.shape[axis]
    fits = size > 0 and all(
        one.shape == (*x.shape[:axis], -(-count // size), *x.shape[axis + 1 :]) for one in blocks
    )
    if not fits:
        raise UnmappedError(f"blocks of {size} do not fit {list(x.shape)}")
    scale, *zero = (np.repeat(one, size, axis).take(range(count), axis) for one in blocks)
    real = (x.astype(np.float32) - sum(zero)) * scale
    return node.constant(real.astype(np.float32), f"{node.input(0)}.real")


@mapped("QLinearMatMul", since=10)
def _qlinear_matmul(node: Node) -> None:
    rank = len(node.shape(node.input(3)))
    a = dequantise(node, node.input(0), _parameters(node, 1, 2, -2), "a")
    b = dequantise(node, node.input(3), _parameters(node, 4, 5, rank - 1), "b")
    given = _parameters(node, 6, 7, -1)
    node.give(quantise(node, matmul_of(node, a, b), given))


@mapped("QLinearConv", since=10)
def _qlinear_conv(node: Node) -> None:
    x_scale, w_scale = _parameters(node, 1, 2, 1), _parameters(node, 4, 5, 0)
    x = dequantise(node, node.input(0), x_scale, "x")
    w = dequantise(node, node.input(3), w_scale, "w")
    bias = ""
    if node.input(8):
        scales = np.array(w_scale.scales) * x_scale.scales[0]
        real = node.value(8, "the bias").astype(np.float64) * scales
        bias = node.constant(real.astype(np.float32), f"{node.input(8)}.real")
    given = _parameters(node, 6, 7, 1)
    node.give(quantise(node, conv_of(node, x, w, bias), given))


_INT32 = GivenScales((1.0,), (0,), 0, Element.I32)


@mapped("MatMulInteger", since=10)
def _matmul_integer(node: Node) -> None:
    a = dequantise(node, node.input(0), _parameters(node, -1, 2, -2), "a")
    b = dequantise(node, node.input(1), _parameters(node, -1, 3, -1), "b")
    node.give(quantise(node, matmul_of(node, a, b), _INT32))


@mapped("ConvInteger", since=10)
def _conv_integer(node: Node) -> None:
    x = dequantise(node, node.input(0), _parameters(node, -1, 2, 1), "x")
    w = dequantise(node, node.input(1), _parameters(node, -1, 3, 0), "w")
    node.give(quantise(node, conv_of(node, x, w, ""), _INT32))


@mapped(f"{OWN_DOMAIN}.PortMatMul")
def _port_matmul(node: Node) -> None:
    """Map a product in a format of the command port: attributes format, group and exact."""
    fmt = node.attributes.get("format", b"")
    attributes: dict[str, Any] = {
        "format": fmt.decode("utf-8", "replace") if isinstance(fmt, bytes) else str(fmt),
        "group": int(node.attributes.get("group", 0)),
        "exact": bool(node.attributes.get("exact", 0)),
    }
    inputs = node.inputs
    (found,) = infer("portmatmul", attributes, [node.type(one) if one else None for one in inputs])
    assert found.shape is not None
    result = TensorType(tuple(found.shape), Element.I32)
    node.give(node.add("portmatmul", inputs, result=result, **attributes))
