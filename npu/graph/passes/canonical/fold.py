# SPDX-License-Identifier: Apache-2.0
"""Rules that compute what is known and remove what changes nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from npu.graph.evaluate import run
from npu.graph.form import Array, Element, Graph, Operation, Quantisation, Tensor, TensorType
from npu.graph.passes.canonical.rewrite import Walk
from npu.graph.passes.facts import BROADCASTING, LINEAR

_LARGEST = 1 << 26
_KEPT = frozenset({"host", "dequantise"})


def constants(walk: Walk, op: Operation) -> bool:
    """Compute an operation whose inputs are all known; weights stay behind their dequantise."""
    values = [walk.value(name) for name in op.inputs]
    unknown = any(name and value is None for name, value in zip(op.inputs, values, strict=True))
    output = op.outputs[0]
    largest = max(_LARGEST, *(walk.type(name).size for name in op.used), 0)
    if unknown or op.kind in _KEPT or walk.type(output).size > largest:
        return False
    names = (*op.used, output)
    tensors = {name: Tensor(name, walk.type(name)) for name in names}
    (result,) = run(Graph("", (), (), tensors, ()), op, values)
    walk.give(op, walk.constant(result, f"{op.name}.value", walk.type(output).quantisation))
    return True


def bias_dequantised(walk: Walk, op: Operation) -> bool:
    """Compute what constant integers of 32 bits stand for: they are no weights."""
    if op.kind != "dequantise" or walk.type(op.inputs[0]).element != Element.I32:
        return False
    return _dequantised(walk, op)


def small_dequantised(walk: Walk, op: Operation) -> bool:
    """Compute what constant integers stand for that no product reads: an addend, a factor."""
    if op.kind != "dequantise":
        return False
    weights = any(
        other.kind in LINEAR and op.outputs[0] in other.inputs[:2]
        for other in walk.readers(op.outputs[0])
    )
    return not weights and _dequantised(walk, op)


def _dequantised(walk: Walk, op: Operation) -> bool:
    if walk.value(op.inputs[0]) is None:
        return False
    tensors = {name: Tensor(name, walk.type(name)) for name in (*op.inputs, *op.outputs)}
    (result,) = run(Graph("", (), (), tensors, ()), op, [walk.value(op.inputs[0])])
    walk.give(op, walk.constant(result, f"{op.name}.value"))
    return True


def nothing(walk: Walk, op: Operation) -> bool:
    """Remove an operation that changes nothing."""
    if not op.inputs or not op.inputs[0] or op.kind in ("host", "quantise", "dequantise"):
        return False
    x = op.inputs[0]
    if walk.type(x) != walk.type(op.outputs[0]):
        return False
    useless = op.kind in ("identity", "reshape", "expand", "cast", "pad")
    if op.kind == "concat":
        useless = len(op.inputs) == 1
    elif op.kind == "transpose":
        useless = list(op["order"]) == sorted(op["order"])
    elif op.kind == "slice":
        useless = all(step > 0 for step in op["steps"])
    elif op.kind == "clip":
        useless = (op["low"], op["high"]) == (-math.inf, math.inf)
    elif op.kind == "table":
        useless = not _effective(op)
    if useless:
        walk.give(op, x)
    return useless


def round_trips(walk: Walk, op: Operation) -> bool:
    """Remove integers to real numbers and back to the same integers: that is exact."""
    if op.kind != "quantise":
        return False
    before = walk.maker(op.inputs[0], "dequantise")
    if before is None or walk.type(before.inputs[0]) != walk.type(op.outputs[0]):
        return False
    walk.give(op, before.inputs[0])
    return True


def _effective(op: Operation) -> bool:
    """Say whether a table does anything; scales by 1 and shifts by 0 do not."""
    return (op["functions"], op["parameters"]) not in ((("scale",), (1.0,)), (("shift",), (0.0,)))


def reshapes(walk: Walk, op: Operation) -> bool:
    """Make one reshape of two, and one of a transpose that moves only axes of size 1."""
    if op.kind == "reshape":
        before = walk.maker(op.inputs[0], "reshape")
        if before is None:
            return False
        walk.emit(op, "reshape", before.inputs, output=op.outputs[0], shape=op["shape"])
        return True
    if op.kind == "transpose":
        shape = walk.shape(op.inputs[0])
        moved = [axis for axis in op["order"] if shape[axis] != 1]
        if moved == sorted(moved) and list(op["order"]) != sorted(op["order"]):
            result = walk.type(op.outputs[0])
            if result.quantisation is not None and result.quantisation.axis is not None:
                return False
            walk.emit(
                op, "reshape", op.inputs, output=op.outputs[0], result=result, shape=result.shape
            )
            return True
    return False


def into_dequantise(walk: Walk, op: Operation) -> bool:
    """Move constant integers instead of the real numbers that they stand for."""
    if op.kind not in ("transpose", "reshape"):
        return False
    before = walk.maker(op.inputs[0], "dequantise")
    data = walk.value(before.inputs[0]) if before else None
    if before is None or data is None:
        return False
    quantisation = walk.type(before.inputs[0]).quantisation
    if quantisation is None:
        return False
    moved = _moved(quantisation, op, data.shape)
    if moved is None:
        return False
    after = data.transpose(op["order"]) if op.kind == "transpose" else data.reshape(op["shape"])
    name = walk.constant(after, before.inputs[0], moved)
    walk.emit(before, "dequantise", [name], output=op.outputs[0])
    return True


def _moved(
    quantisation: Quantisation, op: Operation, shape: tuple[int, ...]
) -> Quantisation | None:
    """Return the quantisation after a move, None if it has no axis for the scales."""
    axis = quantisation.axis
    if axis is None:
        return quantisation
    if op.kind == "transpose":
        return replace(quantisation, axis=op["order"].index(axis))
    before = int(np.prod(shape[:axis]))
    for new, size in enumerate(op["shape"]):
        if size == shape[axis] and int(np.prod(op["shape"][:new])) == before:
            return replace(quantisation, axis=new)
    return None


def expands(walk: Walk, op: Operation) -> bool:
    """Let an operation that broadcasts do so itself instead of an expand before it."""
    if op.kind not in BROADCASTING:
        return False
    inputs = list(op.inputs)
    rank = len(walk.shape(op.outputs[0]))
    for index, name in enumerate(op.inputs):
        before = walk.maker(name, "expand")
        if before is None:
            continue
        inputs[index] = before.inputs[0]
        shapes = [walk.shape(each) for each in inputs]
        if np.broadcast_shapes(*shapes) != walk.shape(op.outputs[0]):
            inputs[index] = name
        del shapes
    if tuple(inputs) == op.inputs or rank == 0:
        return False
    walk.again(op, inputs, output=op.outputs[0])
    return True


def small_constants(walk: Walk, op: Operation) -> bool:
    """Write a constant operand without its copies: what broadcasts makes them again."""
    if op.kind not in BROADCASTING:
        return False
    inputs = list(op.inputs)
    for index, name in enumerate(op.inputs):
        data = walk.value(name)
        if data is None or not data.size or walk.type(name).quantisation is not None:
            continue
        others = [walk.shape(each) for each in inputs if each != name]
        small = _small(data, np.broadcast_shapes(*others), walk.shape(op.outputs[0]))
        if small.shape != data.shape:
            inputs[index] = walk.constant(small, name)
    if tuple(inputs) == op.inputs:
        return False
    walk.again(op, inputs, output=op.outputs[0])
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


def means(walk: Walk, op: Operation) -> bool:
    """Write a mean without kept axes, and a pool over the whole image as a mean."""
    if op.kind == "mean" and op["keep"]:
        axes = op["axes"]
    elif op.kind == "avgpool" and not any(op["pads"]):
        axes = (1, 2)
        if op["window"] != walk.shape(op.inputs[0])[1:3]:
            return False
    else:
        return False
    result = walk.type(op.outputs[0])
    if result.quantisation is not None:
        return False
    small = tuple(size for axis, size in enumerate(result.shape) if axis not in axes)
    y = walk.emit(
        op, "mean", op.inputs, result=TensorType(small, result.element), axes=axes, keep=False
    )
    walk.emit(
        op, "reshape", [y], output=op.outputs[0], part="kept", result=result, shape=result.shape
    )
    return True
