# SPDX-License-Identifier: Apache-2.0
"""Matrix products, convolutions and batch norms of ONNX."""

from __future__ import annotations

import numpy as np

from npu.graph.form import GraphError
from npu.graph.importers.onnx_images import from_image, geometry, to_image
from npu.graph.importers.onnx_node import Node, mapped
from npu.graph.importers.unmapped import UnmappedError


def matmul_of(node: Node, a: str, b: str) -> str:
    """Add the product of two tensors as numpy.matmul has it, vectors included."""
    first, second = node.shape(a), node.shape(b)
    if not first or not second:
        raise GraphError("a scalar, allowed rank 1 and more")
    if len(first) == 1:
        a = node.reshape(a, (1, *first), "row")
    if len(second) == 1:
        b = node.reshape(b, (*second, 1), "column")
    y = node.add("matmul", [a, b], transpose_a=False, transpose_b=False)
    shape = list(node.shape(y))
    if len(second) == 1:
        shape.pop()
    if len(first) == 1:
        shape.pop(-1 if len(second) == 1 else -2)
    return node.reshape(y, shape)


@mapped("MatMul")
def _matmul(node: Node) -> None:
    node.give(matmul_of(node, node.input(0), node.input(1)))


@mapped("Gemm")
def _gemm(node: Node) -> None:
    a, b, c = node.input(0), node.input(1), node.input(2)
    node.floats(a, b)
    alpha, beta = (float(node.attributes.get(name, 1.0)) for name in ("alpha", "beta"))
    y = node.add(
        "matmul",
        [a, b],
        transpose_a=bool(node.attributes.get("transA", 0)),
        transpose_b=bool(node.attributes.get("transB", 0)),
    )
    if alpha != 1.0:
        y = node.table(y, "scale", parameters=[alpha], part="alpha")
    if c and beta != 0.0:
        if beta != 1.0:
            c = node.table(c, "scale", parameters=[beta], part="beta")
        y = node.add("add", [y, node.broadcast_from(y, c)], "bias")
    node.give(y)


def conv_of(node: Node, x: str, w: str, bias: str) -> str:
    """Add a convolution of one or two dimensions; w is (O, I / groups, ...)."""
    rank = len(node.shape(x))
    shape = node.shape(w)
    if rank not in (3, 4) or len(shape) != rank:
        raise UnmappedError(f"convolutions of rank {rank} are not mapped, only 3 and 4")
    kernel = shape[2:]
    window = geometry(node, kernel, node.shape(x)[2:])
    image = to_image(node, x)
    if rank == 3:
        w = node.reshape(w, (*shape[:2], 1, shape[2]), "height")
    filters = node.transpose(w, (2, 3, 1, 0), "filters")
    y = node.add(
        "conv",
        [image, filters, bias] if bias else [image, filters],
        strides=window.strides,
        pads=window.pads,
        dilations=window.dilations,
        groups=int(node.attributes.get("group", 1)),
    )
    return from_image(node, y, rank)


@mapped("Conv")
def _conv(node: Node) -> None:
    x, w, bias = node.input(0), node.input(1), node.input(2)
    node.floats(x, w)
    node.give(conv_of(node, x, w, bias))


@mapped("BatchNormalization")
def _batch_norm(node: Node) -> None:
    node.attributes.get("training_mode", 0)  # in training other operators stand in its place
    if node.version < 7 and not node.attributes.get("is_test", 0):
        raise GraphError("in training, as is_test is 0, allowed is_test = 1")
    if any(node.wants(index) for index in range(1, 5)):
        raise GraphError("in training, as more than its first result is read, allowed that alone")
    x, gain, beta, mean, variance = (node.input(index) for index in range(5))
    node.floats(x, gain, mean)
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    rank = len(node.shape(x))
    column = (-1,) + (1,) * max(rank - 2, 0) if rank > 1 else (-1,)
    known = [node.build.value(name) for name in (gain, beta, mean, variance)]
    values = [one.astype(np.float64) for one in known if one is not None]
    if len(values) == 4:
        dtype = node.type(x).element.dtype
        factor = values[0] / np.sqrt(values[3] + epsilon)
        addend = values[1] - values[2] * factor
        factors = node.constant(factor.astype(dtype).reshape(column), f"{node.name}.factor")
        addends = node.constant(addend.astype(dtype).reshape(column), f"{node.name}.addend")
    else:
        root = node.table(variance, "shift", "rsqrt", parameters=[epsilon], part="rsqrt")
        factors = node.add("mul", [gain, root], "factor")
        moved = node.add("mul", [mean, factors], "mean")
        addends = node.add("sub", [beta, moved], "addend")
        channels = node.shape(factors)[0]
        shape = (channels, *column[1:])
        factors = node.reshape(factors, shape, "factors")
        addends = node.reshape(addends, shape, "addends")
    node.give(node.add("add", [node.add("mul", [x, factors], "scaled"), addends]))
