# SPDX-License-Identifier: Apache-2.0
"""Rules around matrix products and convolutions: pads, transposed and permuted operands."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npu.graph.form import Array, Operation
from npu.graph.operations.base import FLOATS
from npu.graph.passes.canonical.layout import groups
from npu.graph.passes.canonical.rewrite import Walk

_CHAIN = frozenset({"table", "clip", "quantise", "dequantise", "cast"})


def operands(walk: Walk, op: Operation) -> bool:
    """Bring the operands of a matrix product to their form.

    The second one carries a transpose as a flag if it is no constant; a constant one is turned,
    and has no batch axes of size 1. The first one is never transposed by a flag.
    """
    if op.kind != "matmul":
        return False
    a, b, *rest = op.inputs
    flags = {"transpose_a": op["transpose_a"], "transpose_b": op["transpose_b"]}
    if op["transpose_a"]:
        a, flags["transpose_a"] = (
            walk.emit(op, "transpose", [a], part="a", order=_swap(walk, a)),
            False,
        )
    before = walk.maker(b, "transpose")
    integers = walk.maker(b, "dequantise")
    known = walk.value(b) is not None or (
        integers is not None and walk.value(integers.inputs[0]) is not None
    )
    if op["transpose_b"] and known:
        b, flags["transpose_b"] = (
            walk.emit(op, "transpose", [b], part="b", order=_swap(walk, b)),
            False,
        )
    elif before is not None and before["order"] == _swap(walk, b):
        b, flags["transpose_b"] = before.inputs[0], not op["transpose_b"]
    elif known and len(walk.shape(b)) > 2 and all(size == 1 for size in walk.shape(b)[:-2]):
        if len(walk.shape(b)) > len(walk.shape(a)):
            return False
        b = walk.emit(op, "reshape", [b], part="b", shape=walk.shape(b)[-2:])
    else:
        if a == op.inputs[0]:
            return False
    walk.again(op, [a, b, *rest], output=op.outputs[0], **flags)
    return True


def _swap(walk: Walk, name: str) -> tuple[int, ...]:
    rank = len(walk.shape(name))
    return (*range(rank - 2), rank - 1, rank - 2)


def flattened(walk: Walk, op: Operation) -> bool:
    """Permute the rows of a constant matrix instead of the pixels that it multiplies.

    Before the matrix stands a reshape that joins the trailing axes of a transposed tensor, and
    between them at most what works on each element.
    """
    if op.kind != "matmul" or op["transpose_b"] or op["transpose_a"]:
        return False
    chain: list[Operation] = []
    name = op.inputs[0]
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
    if not axes or len(into) != 1 or any(len(left) != len(right) for left, right in runs[:-1]):
        return False
    sources = [order[axis] for axis in axes]
    if sorted(sources) != list(range(axes[0], len(order))):
        return False
    if list(order[: axes[0]]) != list(range(axes[0])):
        return False
    weight = _permuted(walk, op, [shape[axis] for axis in axes], np.argsort(sources))
    if weight is None:
        return False
    x = walk.emit(
        joined, "reshape", before.inputs, result=walk.type(joined.outputs[0]), shape=joined["shape"]
    )
    for step in reversed(chain):
        x = walk.again(step, [x], result=walk.type(step.outputs[0]))
    walk.again(op, [x, weight, *op.inputs[2:]], output=op.outputs[0])
    return True


def _permuted(walk: Walk, op: Operation, sizes: list[int], order: Array) -> str | None:
    """Return the second operand with its rows in another order, None if it is not constant."""
    name = op.inputs[1]
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


def pads(walk: Walk, op: Operation) -> bool:
    """Put zeros around an image into the pads of the convolution or pool that reads it."""
    if op.kind not in ("conv", "maxpool", "avgpool"):
        return False
    before = walk.maker(op.inputs[0], "pad")
    if before is None or before["before"][0] or before["before"][3]:
        return False
    if before["after"][0] or before["after"][3]:
        return False
    needed = -math.inf if op.kind == "maxpool" else 0.0
    given: dict[str, Any] = {}
    if before["value"] != needed or walk.type(op.inputs[0]).element not in FLOATS:
        return False
    if op.kind == "avgpool":
        if any(op["pads"]):
            return False
        given["count_pads"] = True
    more = (*before["before"][1:3], *before["after"][1:3])
    given["pads"] = tuple(a + b for a, b in zip(op["pads"], more, strict=True))
    walk.again(op, [*before.inputs, *op.inputs[1:]], output=op.outputs[0], **given)
    return True


def without_pads(walk: Walk, op: Operation) -> bool:
    """Let a mean without pads count none."""
    if op.kind != "avgpool" or not op["count_pads"] or any(op["pads"]):
        return False
    walk.again(op, op.inputs, output=op.outputs[0], count_pads=False)
    return True


RULES = (operands, flattened, pads, without_pads)
