# SPDX-License-Identifier: Apache-2.0
"""Rules that move transposes down until they meet their opposites.

A network of images with channels first arrives with a transpose in front of and behind each
operation on images. Each moves behind what follows it as long as that is possible, two that meet
become one, and those of opposite order vanish.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Array, Operation
from npu.graph.operations import Trait, with_trait
from npu.graph.passes.canonical.rewrite import Walk
from npu.graph.passes.facts import BROADCASTING, NORMS, POINTWISE

_BORDERS = with_trait(Trait.BORDER)
_CHANNELS_FIRST = (0, 3, 1, 2)


def merged(walk: Walk, op: Operation) -> bool:
    """Make one transpose of two."""
    if op.kind != "transpose":
        return False
    before = walk.maker(op.inputs[0], "transpose")
    if before is None:
        return False
    order = tuple(before["order"][axis] for axis in op["order"])
    walk.emit(op, "transpose", before.inputs, output=op.outputs[0], order=order)
    return True


def reshaped(walk: Walk, op: Operation) -> bool:
    """Move a reshape that adds or drops axes of size 1 behind an operation on each element.

    So what a transpose of one pixel became is in nobody's way.
    """
    before = walk.only(op.inputs[0], "reshape") if op.kind in POINTWISE - BROADCASTING else None
    if before is None:
        return False
    source, result = walk.type(before.inputs[0]), walk.type(op.outputs[0])
    sizes = [[size for size in kind.shape if size != 1] for kind in (source, result)]
    if sizes[0] != sizes[1] or walk.type(op.inputs[0]).quantisation != source.quantisation:
        return False
    if result.quantisation is not None and result.quantisation.axis is not None:
        return False
    y = walk.again(op, before.inputs, result=replace(result, shape=source.shape))
    shape = result.shape
    walk.emit(op, "reshape", [y], output=op.outputs[0], part="shape", result=result, shape=shape)
    return True


def _behind(
    walk: Walk,
    op: Operation,
    inputs: Sequence[str],
    order: Sequence[int],
    **changes: Any,  # noqa: ANN401
) -> bool:
    """Emit an operation on untransposed inputs and the transpose behind it."""
    inverse = tuple(int(axis) for axis in np.argsort(order))
    result = walk.type(op.outputs[0])
    shape = tuple(result.shape[axis] for axis in inverse)
    quantisation = result.quantisation
    if quantisation is not None and quantisation.axis is not None:
        return False
    kind = type(result)(shape, result.element, quantisation)
    y = walk.again(op, inputs, result=kind, **changes)
    walk.emit(op, "transpose", [y], output=op.outputs[0], part="order", result=result, order=order)
    return True


def elementwise(walk: Walk, op: Operation) -> bool:
    """Move a transpose behind an operation on each element."""
    if op.kind in _BORDERS or op.kind in POINTWISE - BROADCASTING:
        before = walk.maker(op.inputs[0], "transpose")
        if before is None or walk.type(op.inputs[0]).quantisation not in (
            None,
            walk.type(before.inputs[0]).quantisation,
        ):
            return False
        return _behind(walk, op, before.inputs, before["order"])
    if op.kind not in BROADCASTING - {"select"}:
        return False
    found = [walk.maker(name, "transpose") for name in op.inputs]
    orders = {before["order"] for before in found if before is not None}
    if len(orders) != 1:
        return False
    (order,) = orders
    rank = len(walk.shape(op.outputs[0]))
    inverse = np.argsort(order)
    inputs = []
    for name, before in zip(op.inputs, found, strict=True):
        shape, data = walk.shape(name), walk.value(name)
        if before is not None and len(shape) == rank:
            inputs.append(before.inputs[0])
        elif data is not None and walk.type(name).quantisation is None:
            whole = data.reshape((1,) * (rank - data.ndim) + data.shape)
            inputs.append(walk.constant(_shortest(whole.transpose(inverse)), name))
        elif math.prod(shape) == 1 and len(shape) <= rank:
            inputs.append(name)
        elif order == _CHANNELS_FIRST and len(shape) == rank:
            # Images stay with their channels last; the other side is turned to them.
            inputs.append(walk.emit(op, "transpose", [name], part="layout", order=inverse))
        else:
            return False
    return _behind(walk, op, inputs, order)


def _shortest(data: Array) -> Array:
    """Drop leading axes of size 1: broadcasting adds them."""
    while data.ndim > 1 and data.shape[0] == 1:
        data = data[0]
    return data


def reductions(walk: Walk, op: Operation) -> bool:
    """Move a transpose behind what works along axes."""
    before = walk.maker(op.inputs[0], "transpose") if op.inputs and op.inputs[0] else None
    if before is None:
        return False
    order = before["order"]
    rank = len(order)
    if op.kind in ("softmax", "argmax"):
        if op.kind == "argmax" or op["axis"] != rank - 1 or order[rank - 1] != rank - 1:
            return False
        return _behind(walk, op, before.inputs, order)
    if op.kind in NORMS:
        tail = list(range(rank - op["axes"], rank))
        if list(order[rank - op["axes"] :]) != tail:
            return False
        return _behind(walk, op, [*before.inputs, *op.inputs[1:]], order)
    if op.kind in ("mean", "reduce"):
        axes = tuple(sorted(order[axis] for axis in op["axes"]))
        if op["keep"]:
            return _behind(walk, op, before.inputs, order, axes=axes)
        left = [axis for axis in order if axis not in axes]
        ranks = {axis: index for index, axis in enumerate(sorted(left))}
        return _behind(walk, op, before.inputs, [ranks[axis] for axis in left], axes=axes)
    return False


def moves(walk: Walk, op: Operation) -> bool:
    """Move a transpose behind slices, pads and concatenations."""
    if op.kind == "concat":
        found = [walk.maker(name, "transpose") for name in op.inputs]
        orders = {before["order"] if before else None for before in found}
        if len(orders) != 1 or None in orders:
            return False
        order = next(before["order"] for before in found if before)
        inputs = [before.inputs[0] for before in found if before]
        return _behind(walk, op, inputs, order, axis=order[op["axis"]])
    if op.kind not in ("slice", "pad"):
        return False
    before = walk.maker(op.inputs[0], "transpose")
    if before is None:
        return False
    order = before["order"]
    names = ("starts", "stops", "steps") if op.kind == "slice" else ("before", "after")
    inverse = np.argsort(order)
    lists = {name: tuple(op[name][axis] for axis in inverse) for name in names}
    return _behind(walk, op, before.inputs, order, **lists)


def groups(before: Sequence[int], after: Sequence[int]) -> list[tuple[list[int], list[int]]]:
    """Split a reshape into runs of axes of equal size, as short as possible.

    Returns:
        Per run the axes of the input and of the result; axes of size 1 stand with a neighbour or
        alone.
    """
    found: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        left, right = [], []
        if i < len(before):
            left.append(i)
            i += 1
        if j < len(after):
            right.append(j)
            j += 1
        while math.prod(before[k] for k in left) != math.prod(after[k] for k in right):
            small = math.prod(before[k] for k in left) < math.prod(after[k] for k in right)
            if small and i < len(before):
                left.append(i)
                i += 1
            elif j < len(after):
                right.append(j)
                j += 1
            else:
                left.append(i)
                i += 1
        found.append((left, right))
    return found


def splits(walk: Walk, op: Operation) -> bool:
    """Move a transpose behind a reshape that takes apart or joins axes which stay together."""
    if op.kind != "reshape":
        return False
    before = walk.maker(op.inputs[0], "transpose")
    if before is None or 0 in op["shape"]:
        return False
    order = before["order"]
    runs = groups(walk.shape(op.inputs[0]), op["shape"])
    if any(not left or not right for left, right in runs):
        return False
    sources = [[order[axis] for axis in left] for left, _ in runs]
    if any(
        list(one_run) != list(range(one_run[0], one_run[0] + len(one_run))) for one_run in sources
    ):
        return False
    ranked = sorted(range(len(runs)), key=lambda index: sources[index][0])
    shape = [op["shape"][axis] for index in ranked for axis in runs[index][1]]
    place, position = {}, 0
    for index in ranked:
        for axis in runs[index][1]:
            place[axis] = position
            position += 1
    new = [place[axis] for axis in range(len(op["shape"]))]
    if new == sorted(new):
        # Nothing is left to transpose: what the transpose moved was one axis after all.
        walk.emit(op, "reshape", before.inputs, output=op.outputs[0], shape=shape)
        return True
    return _behind(walk, op, before.inputs, new, shape=shape)


def joins(walk: Walk, op: Operation) -> bool:
    """Move a transpose in front of a reshape that only joins axes, to meet another there."""
    if op.kind != "transpose":
        return False
    joined = walk.only(op.inputs[0], "reshape")
    first = walk.maker(joined.inputs[0], "transpose") if joined else None
    if joined is None or first is None or 0 in joined["shape"]:
        return False
    runs = groups(walk.shape(joined.inputs[0]), joined["shape"])
    if any(len(right) != 1 or not left for left, right in runs):
        return False
    order = [axis for new in op["order"] for axis in runs[new][0]]
    y = walk.emit(op, "transpose", joined.inputs, part="order", order=order)
    walk.emit(joined, "reshape", [y], output=op.outputs[0], shape=walk.shape(op.outputs[0]))
    return True


def last_axis(walk: Walk, op: Operation) -> bool:
    """Let softmax and argmax work along the last axis."""
    if op.kind not in ("softmax", "argmax"):
        return False
    shape, axis = walk.shape(op.inputs[0]), op["axis"]
    last = len(shape) - 1
    if axis == last:
        return False
    order = [*(other for other in range(last + 1) if other != axis), axis]
    x = walk.emit(op, "transpose", [op.inputs[0]], part="rows", order=order)
    result = walk.type(op.outputs[0])
    if op.kind == "argmax":
        small = type(result)(
            tuple(size for index, size in enumerate(shape) if index != axis), result.element
        )
        y = walk.emit(op, "argmax", [x], result=small, axis=last, keep=False)
        walk.emit(
            op,
            "reshape",
            [y],
            output=op.outputs[0],
            part="kept",
            result=result,
            shape=result.shape,
        )
        return True
    y = walk.emit(op, "softmax", [x], axis=last)
    walk.emit(
        op,
        "transpose",
        [y],
        output=op.outputs[0],
        part="order",
        result=result,
        order=tuple(int(index) for index in np.argsort(order)),
    )
    return True


RULES = (merged, reshaped, elementwise, reductions, moves, splits, joins, last_axis)
