# SPDX-License-Identifier: Apache-2.0
"""Rules that compute new weights: bias and batch norm become part of the product before them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Operation
from npu.graph.operations.base import FLOATS
from npu.graph.passes.canonical.rewrite import Walk
from npu.graph.passes.facts import LINEAR


def columns_of(walk: Walk, name: str, op: Operation) -> Array | None:
    """Return a constant as one number per column of a result, None if it is none such."""
    data = walk.value(name)
    shape = walk.shape(op.outputs[0])
    if data is None or walk.type(name).element not in FLOATS or not shape:
        return None
    if data.ndim > len(shape) or any(size != 1 for size in data.shape[:-1]):
        return None
    flat = data.reshape(-1)
    if flat.size not in (1, shape[-1]):
        return None
    return np.broadcast_to(flat, (shape[-1],)).astype(np.float64)


def _linear(walk: Walk, op: Operation, index: int) -> Operation | None:
    """Return the product that makes an input, if nobody else reads it and its types are real."""
    before = walk.only(op.inputs[index], *LINEAR)
    if before is None or walk.shape(op.inputs[index]) != walk.shape(op.outputs[0]):
        return None
    if walk.type(op.outputs[0]).element not in FLOATS:
        return None
    return before if len(before.inputs) < 3 or _bias(walk, before) is not None else None


def _bias(walk: Walk, op: Operation) -> Array | None:
    """Return the bias of a product as float64, zeros if it has none, None if unknown."""
    columns = walk.shape(op.outputs[0])[-1]
    if len(op.inputs) < 3 or not op.inputs[2]:
        return np.zeros(columns)
    data = walk.value(op.inputs[2])
    return None if data is None else data.astype(np.float64)


def _joined(walk: Walk, op: Operation, before: Operation, weight: str, bias: Array) -> bool:
    """Emit a product with other weights and bias in place of what followed it."""
    dtype = walk.type(op.outputs[0]).element.dtype
    inputs = [before.inputs[0], weight]
    if bias.any() or (len(before.inputs) > 2 and before.inputs[2]):
        inputs.append(walk.constant(bias.astype(dtype), f"{before.name}.bias"))
    names = [*before.source.split(" + "), *op.source.split(" + ")]
    source = " + ".join(dict.fromkeys(name for name in names if name))
    walk.again(before, inputs, output=op.outputs[0], source=source)
    return True


def biases(walk: Walk, op: Operation) -> bool:
    """Make a constant addend per column the bias of the product before it."""
    if op.kind == "add":
        for index in (0, 1):
            columns = columns_of(walk, op.inputs[1 - index], op)
            before = _linear(walk, op, index)
            if columns is not None and before is not None:
                bias = _bias(walk, before)
                assert bias is not None
                return _joined(walk, op, before, before.inputs[1], bias + columns)
    return _first_of_table(walk, op, "shift")


def bias_of_sums(walk: Walk, op: Operation) -> bool:
    """Bring a constant addend behind a sum to the product that the sum contains."""
    if op.kind != "add" or walk.type(op.outputs[0]).element not in FLOATS:
        return False
    for index in (0, 1):
        total = walk.only(op.inputs[index], "add")
        columns = columns_of(walk, op.inputs[1 - index], op)
        if total is None or columns is None:
            continue
        for side in (0, 1):
            if not _holds_product(walk, total, side):
                continue
            part = walk.emit(op, "add", [total.inputs[side], op.inputs[1 - index]], part="bias")
            walk.emit(total, "add", [part, total.inputs[1 - side]], output=op.outputs[0])
            return True
    return False


def bias_beside_sums(walk: Walk, op: Operation) -> bool:
    """Bring a constant addend on the other side of a sum to the product in it."""
    if op.kind != "add" or walk.type(op.outputs[0]).element not in FLOATS:
        return False
    for index in (0, 1):
        beside = walk.only(op.inputs[index], "add")
        if beside is None or not _holds_product(walk, op, 1 - index):
            continue
        for side in (0, 1):
            x, constant = beside.inputs[side], beside.inputs[1 - side]
            if columns_of(walk, constant, op) is None or walk.value(x) is not None:
                continue
            part = walk.emit(op, "add", [op.inputs[1 - index], constant], part="bias")
            result = walk.type(op.outputs[0])
            walk.emit(op, "add", [x, part], output=op.outputs[0], result=result)
            return True
    return False


def _holds_product(walk: Walk, total: Operation, side: int) -> bool:
    """Say whether an operand of a sum is a product, or a sum that contains one."""
    if _linear(walk, total, side) is not None:
        return True
    inner = walk.only(total.inputs[side], "add")
    if inner is None or walk.shape(inner.outputs[0]) != walk.shape(total.outputs[0]):
        return False
    return any(_holds_product(walk, inner, index) for index in (0, 1))


def scales(walk: Walk, op: Operation) -> bool:
    """Put a constant factor per column into the weights of the product before it."""
    if op.kind == "mul":
        for index in (0, 1):
            columns = columns_of(walk, op.inputs[1 - index], op)
            before = _linear(walk, op, index)
            if columns is not None and before is not None:
                return _scaled(walk, op, before, columns)
    return _first_of_table(walk, op, "scale")


def _scaled(walk: Walk, op: Operation, before: Operation, columns: Array) -> bool:
    name, bias = before.inputs[1], _bias(walk, before)
    if bias is None or (before.kind == "matmul" and before["transpose_b"]):
        return False
    data = walk.value(name)
    if data is None or walk.type(name).element not in FLOATS:
        scaled = _scaled_integers(walk, name, columns)
    else:
        scaled = walk.constant((data.astype(np.float64) * columns).astype(data.dtype), name)
    return scaled is not None and _joined(walk, op, before, scaled, bias * columns)


def _scaled_integers(walk: Walk, name: str, columns: Array) -> str | None:
    """Put factors into the scales of given integers, their signs into the integers.

    Integers of few bits become bytes: sums of such have finer steps, to which a bias is rounded.
    None if they are not constant, count another axis, or do not hold the signs.
    """
    made = walk.maker(name, "dequantise")
    data = walk.value(made.inputs[0]) if made else None
    given = walk.type(made.inputs[0]).quantisation if made else None
    if made is None or data is None or given is None or given.axis not in (None, data.ndim - 1):
        return None
    edge = np.iinfo(data.dtype)
    apart = np.sign(columns).astype(np.int64) * (data.astype(np.int64) - given.zero)
    finer = 1
    while apart.any() and not given.zero and 2 * finer * np.abs(apart).max() <= edge.max:
        finer *= 2
    signed = given.zero + finer * apart
    scales = np.abs(columns) * given.scales
    scales = np.where(columns == 0, given.scales, scales) / finer
    if not np.all(np.isfinite(scales) & (scales > 0)) or not signed.size:
        return None
    if signed.min() < edge.min or signed.max() > edge.max:
        return None
    kept = replace(given, scales=tuple(scales.tolist()), axis=data.ndim - 1)
    held = walk.constant(signed.astype(data.dtype), made.inputs[0], kept)
    return walk.emit(made, "dequantise", [held], result=walk.type(name))


def _first_of_table(walk: Walk, op: Operation, function: str) -> bool:
    """Put the scale or shift that a table begins with into the product before it."""
    if op.kind != "table" or op["functions"][0] not in (function, "neg"):
        return False
    if op["functions"][0] == "neg" and function != "scale":
        return False
    before = _linear(walk, op, 0)
    if before is None:
        return False
    taken = 0 if op["functions"][0] == "neg" else 1
    number = op["parameters"][0] if taken else -1.0
    columns = np.full(walk.shape(op.outputs[0])[-1], number)
    rest, values = op["functions"][1:], op["parameters"][taken:]
    bias = _bias(walk, before)
    weight = walk.value(before.inputs[1])
    if bias is None or (
        function == "scale"
        and (weight is None or walk.type(before.inputs[1]).element not in FLOATS)
    ):
        return False
    if not rest:
        if function == "shift":
            return _joined(walk, op, before, before.inputs[1], bias + columns)
        return _scaled(walk, op, before, columns)
    middle = replace(op, name=f"{op.name}.{function}", source=before.source)
    part = walk.emit(middle, "identity", [op.inputs[0]])
    middle = walk.operations.pop()
    done = (
        _joined(walk, middle, before, before.inputs[1], bias + columns)
        if function == "shift"
        else _scaled(walk, middle, before, columns)
    )
    if not done:
        return False
    walk.emit(
        op,
        "table",
        [part],
        source=op.source.split(" + ")[-1],
        output=op.outputs[0],
        functions=rest,
        parameters=values,
    )
    return True


def alone(walk: Walk, op: Operation) -> bool:
    """Make a factor and addend per channel of an image a convolution of single pixels."""
    if op.kind != "mul" or len(walk.shape(op.outputs[0])) != 4:
        return False
    for index in (0, 1):
        x = op.inputs[1 - index]
        columns = columns_of(walk, op.inputs[index], op)
        if columns is None or walk.value(x) is not None:
            continue
        if walk.shape(x) != walk.shape(op.outputs[0]) or walk.type(x).element not in FLOATS:
            continue
        dtype = walk.type(x).element.dtype
        weight = columns.reshape(1, 1, 1, -1).astype(dtype)
        walk.emit(
            op,
            "conv",
            [x, walk.constant(weight, op.inputs[index])],
            output=op.outputs[0],
            strides=(1, 1),
            pads=(0,) * 4,
            dilations=(1, 1),
            groups=columns.size,
        )
        return True
    return False


FOLDS = (scales, biases, bias_of_sums, bias_beside_sums)
