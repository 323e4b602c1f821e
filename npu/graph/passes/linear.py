# SPDX-License-Identifier: Apache-2.0
"""Rules around matrix products and convolutions: bias, batch norm, pads and transposed operands."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Array, Operation
from npu.graph.operations.base import FLOATS
from npu.graph.passes.layout import groups
from npu.graph.passes.rewrite import Walk

_CHAIN = frozenset({"table", "clip", "quantise", "dequantise", "cast"})


def columns_of(walk: Walk, name: str, one: Operation) -> Array | None:
    """Return a constant as one number per column of a result, None if it is none such."""
    data = walk.value(name)
    shape = walk.shape(one.outputs[0])
    if data is None or walk.type(name).element not in FLOATS or not shape:
        return None
    if data.ndim > len(shape) or any(size != 1 for size in data.shape[:-1]):
        return None
    flat = data.reshape(-1)
    if flat.size not in (1, shape[-1]):
        return None
    return np.broadcast_to(flat, (shape[-1],)).astype(np.float64)


def _linear(walk: Walk, one: Operation, index: int) -> Operation | None:
    """Return the product that makes an input, if nobody else reads it and its types are real."""
    before = walk.only(one.inputs[index], "matmul", "conv")
    if before is None or walk.shape(one.inputs[index]) != walk.shape(one.outputs[0]):
        return None
    if walk.type(one.outputs[0]).element not in FLOATS:
        return None
    return before if len(before.inputs) < 3 or _bias(walk, before) is not None else None


def _bias(walk: Walk, one: Operation) -> Array | None:
    """Return the bias of a product as float64, zeros if it has none, None if unknown."""
    columns = walk.shape(one.outputs[0])[-1]
    if len(one.inputs) < 3 or not one.inputs[2]:
        return np.zeros(columns)
    data = walk.value(one.inputs[2])
    return None if data is None else data.astype(np.float64)


def _joined(walk: Walk, one: Operation, before: Operation, weight: str, bias: Array) -> bool:
    """Emit a product with other weights and bias in place of what followed it."""
    dtype = walk.type(one.outputs[0]).element.dtype
    inputs = [before.inputs[0], weight]
    if bias.any() or (len(before.inputs) > 2 and before.inputs[2]):
        inputs.append(walk.constant(bias.astype(dtype), f"{before.name}.bias"))
    names = [*before.source.split(" + "), *one.source.split(" + ")]
    source = " + ".join(dict.fromkeys(name for name in names if name))
    walk.again(
        before, inputs, output=one.outputs[0], source=source, result=walk.type(one.outputs[0])
    )
    return True


def biases(walk: Walk, one: Operation) -> bool:
    """Make a constant addend per column the bias of the product before it."""
    if one.kind == "add":
        for index in (0, 1):
            columns = columns_of(walk, one.inputs[1 - index], one)
            before = _linear(walk, one, index)
            if columns is not None and before is not None:
                bias = _bias(walk, before)
                assert bias is not None
                return _joined(walk, one, before, before.inputs[1], bias + columns)
    return _first_of_table(walk, one, "shift")


def scales(walk: Walk, one: Operation) -> bool:
    """Put a constant factor per column into the weights of the product before it."""
    if one.kind == "mul":
        for index in (0, 1):
            columns = columns_of(walk, one.inputs[1 - index], one)
            before = _linear(walk, one, index)
            if columns is not None and before is not None:
                return _scaled(walk, one, before, columns)
    return _first_of_table(walk, one, "scale")


def _scaled(walk: Walk, one: Operation, before: Operation, columns: Array) -> bool:
    data, bias = walk.value(before.inputs[1]), _bias(walk, before)
    if data is None or bias is None or walk.type(before.inputs[1]).element not in FLOATS:
        return False
    if before.kind == "matmul" and before["transpose_b"]:
        return False
    weight = (data.astype(np.float64) * columns).astype(data.dtype)
    name = walk.constant(weight, before.inputs[1])
    return _joined(walk, one, before, name, bias * columns)


def _first_of_table(walk: Walk, one: Operation, function: str) -> bool:
    """Put the scale or shift that a table begins with into the product before it."""
    if one.kind != "table" or one["functions"][0] not in (function, "neg"):
        return False
    if one["functions"][0] == "neg" and function != "scale":
        return False
    before = _linear(walk, one, 0)
    if before is None:
        return False
    taken = 0 if one["functions"][0] == "neg" else 1
    number = one["parameters"][0] if taken else -1.0
    columns = np.full(walk.shape(one.outputs[0])[-1], number)
    rest, values = one["functions"][1:], one["parameters"][taken:]
    bias = _bias(walk, before)
    weight = walk.value(before.inputs[1])
    if bias is None or (
        function == "scale"
        and (weight is None or walk.type(before.inputs[1]).element not in FLOATS)
    ):
        return False
    if not rest:
        if function == "shift":
            return _joined(walk, one, before, before.inputs[1], bias + columns)
        return _scaled(walk, one, before, columns)
    middle = replace(one, name=f"{one.name}.{function}", source=before.source)
    part = walk.emit(middle, "identity", [one.inputs[0]])
    middle = walk.operations.pop()
    done = (
        _joined(walk, middle, before, before.inputs[1], bias + columns)
        if function == "shift"
        else _scaled(walk, middle, before, columns)
    )
    if not done:
        return False
    walk.emit(
        one,
        "table",
        [part],
        source=one.source.split(" + ")[-1],
        output=one.outputs[0],
        result=walk.type(one.outputs[0]),
        functions=rest,
        parameters=values,
    )
    return True


def alone(walk: Walk, one: Operation) -> bool:
    """Make a factor and addend per channel of an image a convolution of single pixels."""
    if one.kind != "mul" or len(walk.shape(one.outputs[0])) != 4:
        return False
    for index in (0, 1):
        x = one.inputs[1 - index]
        columns = columns_of(walk, one.inputs[index], one)
        if columns is None or walk.value(x) is not None:
            continue
        if walk.shape(x) != walk.shape(one.outputs[0]) or walk.type(x).element not in FLOATS:
            continue
        dtype = walk.type(x).element.dtype
        weight = columns.reshape(1, 1, 1, -1).astype(dtype)
        walk.emit(
            one,
            "conv",
            [x, walk.constant(weight, one.inputs[index])],
            output=one.outputs[0],
            strides=(1, 1),
            pads=(0,) * 4,
            dilations=(1, 1),
            groups=columns.size,
        )
        return True
    return False


def operands(walk: Walk, one: Operation) -> bool:
    """Bring the operands of a matrix product to their form.

    The second one carries a transpose as a flag if it is no constant; a constant one is turned,
    and has no batch axes of size 1. The first one is never transposed by a flag.
    """
    if one.kind != "matmul":
        return False
    a, b, *rest = one.inputs
    flags = {"transpose_a": one["transpose_a"], "transpose_b": one["transpose_b"]}
    if one["transpose_a"]:
        a, flags["transpose_a"] = (
            walk.emit(one, "transpose", [a], part="a", order=_swap(walk, a)),
            False,
        )
    before = walk.maker(b, "transpose")
    integers = walk.maker(b, "dequantise")
    known = walk.value(b) is not None or (
        integers is not None and walk.value(integers.inputs[0]) is not None
    )
    if one["transpose_b"] and known:
        b, flags["transpose_b"] = (
            walk.emit(one, "transpose", [b], part="b", order=_swap(walk, b)),
            False,
        )
    elif before is not None and before["order"] == _swap(walk, b):
        b, flags["transpose_b"] = before.inputs[0], not one["transpose_b"]
    elif known and len(walk.shape(b)) > 2 and all(size == 1 for size in walk.shape(b)[:-2]):
        if len(walk.shape(b)) > len(walk.shape(a)):
            return False
        b = walk.emit(one, "reshape", [b], part="b", shape=walk.shape(b)[-2:])
    else:
        if a == one.inputs[0]:
            return False
    walk.again(one, [a, b, *rest], output=one.outputs[0], result=walk.type(one.outputs[0]), **flags)
    return True


def _swap(walk: Walk, name: str) -> tuple[int, ...]:
    rank = len(walk.shape(name))
    return (*range(rank - 2), rank - 1, rank - 2)


def flattened(walk: Walk, one: Operation) -> bool:
    """Permute the rows of a constant matrix instead of the pixels that it multiplies.

    Before the matrix stands a reshape that joins the trailing axes of a transposed tensor, and
    between them at most what works on each element.
    """
    if one.kind != "matmul" or one["transpose_b"] or one["transpose_a"]:
        return False
    chain: list[Operation] = []
    name = one.inputs[0]
    while (step := walk.only(name, *_CHAIN)) is not None:
        chain.append(step)
        name = step.inputs[0]
    joined = walk.only(name, "reshape")
    before = walk.maker(joined.inputs[0], "transpose") if joined else None
    if joined is None or before is None or len(joined["shape"]) < 2:
        return False
    order, shape = before["order"], walk.shape(before.outputs[0])
    runs = groups(shape, joined["shape"])
    axes, into = runs[-1]
    if len(into) != 1 or any(len(left) != len(right) for left, right in runs[:-1]):
        return False
    sources = [order[axis] for axis in axes]
    if sorted(sources) != list(range(axes[0], len(order))):
        return False
    if list(order[: axes[0]]) != list(range(axes[0])):
        return False
    weight = _permuted(walk, one, [shape[axis] for axis in axes], np.argsort(sources))
    if weight is None:
        return False
    x = walk.emit(
        joined, "reshape", before.inputs, result=walk.type(joined.outputs[0]), shape=joined["shape"]
    )
    for step in reversed(chain):
        x = walk.again(step, [x], result=walk.type(step.outputs[0]))
    walk.again(
        one, [x, weight, *one.inputs[2:]], output=one.outputs[0], result=walk.type(one.outputs[0])
    )
    return True


def _permuted(walk: Walk, one: Operation, sizes: list[int], order: Array) -> str | None:
    """Return the second operand with its rows in another order, None if it is not constant."""
    name = one.inputs[1]
    integers = walk.maker(name, "dequantise")
    held = integers.inputs[0] if integers else name
    data, kind = walk.value(held), walk.type(held)
    if data is None or data.ndim != 2 or data.shape[0] != math.prod(sizes):
        return None
    if kind.quantisation is not None and kind.quantisation.axis == 0:
        return None
    rows = data.reshape(*sizes, data.shape[1]).transpose(*order, len(sizes)).reshape(data.shape)
    fresh = walk.constant(rows, held, kind.quantisation)
    if integers is None:
        return fresh
    return walk.emit(integers, "dequantise", [fresh], result=walk.type(name))


def pads(walk: Walk, one: Operation) -> bool:
    """Put zeros around an image into the pads of the convolution or pool that reads it."""
    if one.kind not in ("conv", "maxpool", "avgpool"):
        return False
    before = walk.maker(one.inputs[0], "pad")
    if before is None or before["before"][0] or before["before"][3]:
        return False
    if before["after"][0] or before["after"][3]:
        return False
    needed = -math.inf if one.kind == "maxpool" else 0.0
    given: dict[str, Any] = {}
    if before["value"] != needed or walk.type(one.inputs[0]).element not in FLOATS:
        return False
    if one.kind == "avgpool":
        if any(one["pads"]):
            return False
        given["count_pads"] = True
    more = (*before["before"][1:3], *before["after"][1:3])
    given["pads"] = tuple(a + b for a, b in zip(one["pads"], more, strict=True))
    walk.again(
        one,
        [*before.inputs, *one.inputs[1:]],
        output=one.outputs[0],
        result=walk.type(one.outputs[0]),
        **given,
    )
    return True


def without_pads(walk: Walk, one: Operation) -> bool:
    """Let a mean without pads count none."""
    if one.kind != "avgpool" or not one["count_pads"] or any(one["pads"]):
        return False
    walk.again(
        one, one.inputs, output=one.outputs[0], result=walk.type(one.outputs[0]), count_pads=False
    )
    return True


RULES = (operands, flattened, pads, without_pads)
"""Rules that keep the numbers as they are."""
FOLDS = (scales, biases)
"""Rules that compute new weights."""
