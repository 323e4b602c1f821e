# SPDX-License-Identifier: Apache-2.0
"""Rules that compute what is known and remove what changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from npu.graph.evaluate import run
from npu.graph.form import Array, Element, Graph, Operation, Quantisation, Tensor, TensorType
from npu.graph.passes.facts import BROADCASTING, LINEAR
from npu.graph.passes.rewrite import Walk

_LARGEST = 1 << 26
_KEPT = frozenset({"host", "dequantise"})


def constants(walk: Walk, one: Operation) -> bool:
    """Compute an operation whose inputs are all known; weights stay behind their dequantise."""
    values = [walk.value(name) for name in one.inputs]
    unknown = any(name and value is None for name, value in zip(one.inputs, values, strict=True))
    output = one.outputs[0]
    largest = max(_LARGEST, *(walk.type(name).size for name in one.used), 0)
    if unknown or one.kind in _KEPT or walk.type(output).size > largest:
        return False
    names = (*one.used, output)
    tensors = {name: Tensor(name, walk.type(name)) for name in names}
    (result,) = run(Graph("", (), (), tensors, ()), one, values)
    walk.give(one, walk.constant(result, f"{one.name}.value", walk.type(output).quantisation))
    return True


def bias_dequantised(walk: Walk, one: Operation) -> bool:
    """Compute what constant integers of 32 bits stand for: they are no weights."""
    if one.kind != "dequantise" or walk.type(one.inputs[0]).element != Element.I32:
        return False
    return _dequantised(walk, one)


def small_dequantised(walk: Walk, one: Operation) -> bool:
    """Compute what constant integers stand for that no product reads: an addend, a factor."""
    if one.kind != "dequantise":
        return False
    weights = any(
        other.kind in LINEAR and one.outputs[0] in other.inputs[:2]
        for other in walk.readers(one.outputs[0])
    )
    return not weights and _dequantised(walk, one)


def _dequantised(walk: Walk, one: Operation) -> bool:
    if walk.value(one.inputs[0]) is None:
        return False
    tensors = {name: Tensor(name, walk.type(name)) for name in (*one.inputs, *one.outputs)}
    (result,) = run(Graph("", (), (), tensors, ()), one, [walk.value(one.inputs[0])])
    walk.give(one, walk.constant(result, f"{one.name}.value"))
    return True


def nothing(walk: Walk, one: Operation) -> bool:
    """Remove an operation that changes nothing."""
    if not one.inputs or not one.inputs[0] or one.kind in ("host", "quantise", "dequantise"):
        return False
    x = one.inputs[0]
    if walk.type(x) != walk.type(one.outputs[0]):
        return False
    useless = one.kind in ("identity", "reshape", "expand", "cast", "pad")
    if one.kind == "concat":
        useless = len(one.inputs) == 1
    elif one.kind == "transpose":
        useless = list(one["order"]) == sorted(one["order"])
    elif one.kind == "slice":
        useless = all(step > 0 for step in one["steps"])
    elif one.kind == "clip":
        useless = (one["low"], one["high"]) == (-math.inf, math.inf)
    elif one.kind == "table":
        useless = not _effective(one)
    if useless:
        walk.give(one, x)
    return useless


def round_trips(walk: Walk, one: Operation) -> bool:
    """Remove integers to real numbers and back to the same integers: that is exact."""
    if one.kind != "quantise":
        return False
    before = walk.maker(one.inputs[0], "dequantise")
    if before is None or walk.type(before.inputs[0]) != walk.type(one.outputs[0]):
        return False
    walk.give(one, before.inputs[0])
    return True


def _effective(one: Operation) -> bool:
    """Say whether a table does anything; scales by 1 and shifts by 0 do not."""
    return (one["functions"], one["parameters"]) not in ((("scale",), (1.0,)), (("shift",), (0.0,)))


def reshapes(walk: Walk, one: Operation) -> bool:
    """Make one reshape of two, and one of a transpose that moves only axes of size 1."""
    if one.kind == "reshape":
        before = walk.maker(one.inputs[0], "reshape")
        if before is None:
            return False
        walk.emit(one, "reshape", before.inputs, output=one.outputs[0], shape=one["shape"])
        return True
    if one.kind == "transpose":
        shape = walk.shape(one.inputs[0])
        moved = [axis for axis in one["order"] if shape[axis] != 1]
        if moved == sorted(moved) and list(one["order"]) != sorted(one["order"]):
            result = walk.type(one.outputs[0])
            if result.quantisation is not None and result.quantisation.axis is not None:
                return False
            walk.emit(
                one, "reshape", one.inputs, output=one.outputs[0], result=result, shape=result.shape
            )
            return True
    return False


def into_dequantise(walk: Walk, one: Operation) -> bool:
    """Move constant integers instead of the real numbers that they stand for."""
    if one.kind not in ("transpose", "reshape"):
        return False
    before = walk.maker(one.inputs[0], "dequantise")
    data = walk.value(before.inputs[0]) if before else None
    if before is None or data is None:
        return False
    quantisation = walk.type(before.inputs[0]).quantisation
    if quantisation is None:
        return False
    moved = _moved(quantisation, one, data.shape)
    if moved is None:
        return False
    after = data.transpose(one["order"]) if one.kind == "transpose" else data.reshape(one["shape"])
    name = walk.constant(after, before.inputs[0], moved)
    walk.emit(before, "dequantise", [name], output=one.outputs[0])
    return True


def _moved(
    quantisation: Quantisation, one: Operation, shape: tuple[int, ...]
) -> Quantisation | None:
    """Return the quantisation after a move, None if it has no axis for the scales."""
    axis = quantisation.axis
    if axis is None:
        return quantisation
    if one.kind == "transpose":
        return replace(quantisation, axis=one["order"].index(axis))
    before = int(np.prod(shape[:axis]))
    for new, size in enumerate(one["shape"]):
        if size == shape[axis] and int(np.prod(one["shape"][:new])) == before:
            return replace(quantisation, axis=new)
    return None


def expands(walk: Walk, one: Operation) -> bool:
    """Let an operation that broadcasts do so itself instead of an expand before it."""
    if one.kind not in BROADCASTING:
        return False
    inputs = list(one.inputs)
    rank = len(walk.shape(one.outputs[0]))
    for index, name in enumerate(one.inputs):
        before = walk.maker(name, "expand")
        if before is None:
            continue
        inputs[index] = before.inputs[0]
        shapes = [walk.shape(each) for each in inputs]
        if np.broadcast_shapes(*shapes) != walk.shape(one.outputs[0]):
            inputs[index] = name
        del shapes
    if tuple(inputs) == one.inputs or rank == 0:
        return False
    walk.again(one, inputs, output=one.outputs[0])
    return True


def small_constants(walk: Walk, one: Operation) -> bool:
    """Write a constant operand without its copies: what broadcasts makes them again."""
    if one.kind not in BROADCASTING:
        return False
    inputs = list(one.inputs)
    for index, name in enumerate(one.inputs):
        data = walk.value(name)
        if data is None or not data.size or walk.type(name).quantisation is not None:
            continue
        others = [walk.shape(each) for each in inputs if each != name]
        small = _small(data, np.broadcast_shapes(*others), walk.shape(one.outputs[0]))
        if small.shape != data.shape:
            inputs[index] = walk.constant(small, name)
    if tuple(inputs) == one.inputs:
        return False
    walk.again(one, inputs, output=one.outputs[0])
    return True


def _small(data: Array, other: tuple[int, ...], result: tuple[int, ...]) -> Array:
    """Return a constant with one of equal slices, as long as the result keeps its shape."""
    if len(other) == len(result):
        while data.ndim and data.shape[0] == 1:
            data = data[0]
    for axis in range(data.ndim):
        behind = data.ndim - axis
        needed = behind > len(other) or other[-behind] != result[-behind]
        first = data.take([0], axis=axis)
        if not needed and data.shape[axis] > 1 and bool((data == first).all()):
            data = first
    if len(other) == len(result):
        while data.ndim and data.shape[0] == 1:
            data = data[0]
    return np.asarray(data)


def means(walk: Walk, one: Operation) -> bool:
    """Write a mean without kept axes, and a pool over the whole image as a mean."""
    if one.kind == "mean" and one["keep"]:
        axes = one["axes"]
    elif one.kind == "avgpool" and not any(one["pads"]):
        axes = (1, 2)
        if one["window"] != walk.shape(one.inputs[0])[1:3]:
            return False
    else:
        return False
    result = walk.type(one.outputs[0])
    if result.quantisation is not None:
        return False
    small = tuple(size for axis, size in enumerate(result.shape) if axis not in axes)
    y = walk.emit(
        one, "mean", one.inputs, result=TensorType(small, result.element), axes=axes, keep=False
    )
    walk.emit(
        one, "reshape", [y], output=one.outputs[0], part="kept", result=result, shape=result.shape
    )
    return True
