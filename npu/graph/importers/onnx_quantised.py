# SPDX-License-Identifier: Apache-2.0
"""Quantisation that an ONNX file gives: every form becomes quantise and dequantise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Element, Quantisation, TensorType
from npu.graph.importers.onnx_linear import conv_of, matmul_of
from npu.graph.importers.onnx_node import Node, UnmappedError, mapped

_INTEGERS = (Element.I8, Element.U8, Element.I16, Element.I32)


def _quantisation(scale: Array, zero: Array | None, axis: int) -> Quantisation:
    """Return what integers stand for; several zero points must be equal."""
    scales = tuple(float(one) for one in scale.reshape(-1))
    zeros = {0} if zero is None else {int(one) for one in zero.reshape(-1)}
    if len(zeros) != 1 or scale.ndim > 1:
        raise UnmappedError("several zero points, or scales per block, are not mapped")
    if not all(np.isfinite(one) and one > 0 for one in scales):
        raise UnmappedError("a scale is not a positive number")
    return Quantisation(scales, zeros.pop(), axis if scale.size > 1 else None)


def _parameters(
    node: Node, scale: int, zero: int, axis: int
) -> tuple[Quantisation, Element | None]:
    """Read constant scale and zero point; the element type is that of the zero point if given."""
    zeros = node.value(zero, "the zero point") if node.input(zero) else None
    element = None if zeros is None else node.type(node.input(zero)).element
    return _quantisation(node.value(scale, "the scale"), zeros, axis), element


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


def dequantise(node: Node, x: str, quantisation: Quantisation, part: str = "") -> str:
    """Add the real numbers that integers stand for.

    Integers that stand for something else already are scaled and moved to what they are to
    stand for.
    """
    kind = node.type(x)
    if kind.element not in _INTEGERS:
        raise UnmappedError(f"{x!r} is {kind.element}, mapped are {', '.join(_INTEGERS)}")
    quantisation = _fitting(quantisation, kind)
    data = node.build.value(x)
    if data is not None:
        name = node.build.constant(data, f"{x}.integers", quantisation)
        return node.add("dequantise", [name], part)
    if kind.quantisation is None and x in node.build.inputs:
        tensor = node.build.tensors[x]
        node.build.tensors[x] = replace(tensor, type=replace(kind, quantisation=quantisation))
    found = node.type(x).quantisation
    if found == quantisation:
        return node.add("dequantise", [x], part)
    if found is None or found.axis is not None or quantisation.axis is not None:
        raise UnmappedError(f"{x!r} has two scales of different meaning")
    real = node.add("dequantise", [x], f"{part}.first".strip("."))
    moved = quantisation.scale * (found.zero - quantisation.zero)
    factor = quantisation.scale / found.scale
    return node.table(real, "scale", "shift", parameters=[factor, moved], part=part)


def quantise(node: Node, x: str, quantisation: Quantisation, element: Element) -> str:
    """Add the integers that stand for real numbers."""
    kind = node.type(x)
    if kind.element != Element.F32 or element not in _INTEGERS:
        raise UnmappedError(f"{kind.element} to {element} is not mapped")
    quantisation = _fitting(quantisation, kind)
    return node.add("quantise", [x], result=TensorType(kind.shape, element, quantisation))


@mapped("QuantizeLinear", since=10)
def _quantize_linear(node: Node) -> None:
    if node.attributes.get("block_size", 0):
        raise UnmappedError("scales per block are not mapped")
    found, element = _parameters(node, 1, 2, node.attributes.get("axis", 1))
    node.give(quantise(node, node.input(0), found, element or Element.U8))


@mapped("DequantizeLinear", since=10)
def _dequantize_linear(node: Node) -> None:
    if node.attributes.get("block_size", 0):
        raise UnmappedError("scales per block are not mapped")
    if node.type(node.input(1)).element != Element.F32:
        raise UnmappedError("a scale that is not float32 is not mapped")
    found, _ = _parameters(node, 1, 2, node.attributes.get("axis", 1))
    node.give(dequantise(node, node.input(0), found))


@mapped("QLinearMatMul", since=10)
def _qlinear_matmul(node: Node) -> None:
    rank = len(node.shape(node.input(3)))
    a = dequantise(node, node.input(0), _parameters(node, 1, 2, -2)[0], "a")
    b = dequantise(node, node.input(3), _parameters(node, 4, 5, rank - 1)[0], "b")
    found, element = _parameters(node, 6, 7, -1)
    y = matmul_of(node, a, b)
    node.give(quantise(node, y, found, element or Element.U8))


@mapped("QLinearConv", since=10)
def _qlinear_conv(node: Node) -> None:
    x_scale, w_scale = _parameters(node, 1, 2, 1)[0], _parameters(node, 4, 5, 0)[0]
    x = dequantise(node, node.input(0), x_scale, "x")
    w = dequantise(node, node.input(3), w_scale, "w")
    bias = ""
    if node.input(8):
        scales = np.array(w_scale.scales) * x_scale.scale
        real = node.value(8, "the bias").astype(np.float64) * scales
        bias = node.constant(real.astype(np.float32), f"{node.input(8)}.real")
    found, element = _parameters(node, 6, 7, 1)
    node.give(quantise(node, conv_of(node, x, w, bias), found, element or Element.U8))


def _plain(node: Node, index: int) -> Quantisation:
    """Return scale 1 and the zero point of an input, 0 if it is not given."""
    zero = node.value(index, "the zero point") if node.input(index) else None
    return _quantisation(np.ones(1), zero, 0)


@mapped("MatMulInteger", since=10)
def _matmul_integer(node: Node) -> None:
    a = dequantise(node, node.input(0), _plain(node, 2), "a")
    b = dequantise(node, node.input(1), _plain(node, 3), "b")
    node.give(quantise(node, matmul_of(node, a, b), Quantisation((1.0,)), Element.I32))


@mapped("ConvInteger", since=10)
def _conv_integer(node: Node) -> None:
    x = dequantise(node, node.input(0), _plain(node, 2), "x")
    w = dequantise(node, node.input(1), _plain(node, 3), "w")
    node.give(quantise(node, conv_of(node, x, w, ""), Quantisation((1.0,)), Element.I32))
