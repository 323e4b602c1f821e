# SPDX-License-Identifier: Apache-2.0
"""Forms of products: constant vectors as diagonal matrices, means over rows, turned operands."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Operation
from npu.graph.passes.facts import LINEAR, NORMS, Facts
from npu.graph.passes.rewriter import Rewriter

DIAGONAL_MOST = 2048


def diagonal(
    writer: Rewriter, like: Operation, x: str, output: str, gain: Array, beta: Array | None
) -> None:
    """Write x * gain + beta, vectors along the last axis, as a convolution or a product.

    An image becomes a convolution of one pixel with a group per channel, which the chip does in
    planes of 16 channels; rows become a product with a diagonal matrix, a vector as one row.
    """
    gain, shape = gain.astype(np.float32), writer.shape(x)
    if len(shape) == 1:
        row = (1, *shape)
        x = writer.emit(like, "reshape", (x,), part="row", shape=row)
        made = writer.tensor(f"{like.name}.made", replace(writer.type(x), shape=row))
        diagonal(writer, like, x, made, gain, beta)
        writer.emit(like, "reshape", (made,), part="whole", output=output, shape=shape)
        return
    inputs = [x]
    # The rows of a norm are int16, which a convolution does not take.
    depthwise = len(writer.shape(x)) == 4 and like.kind not in NORMS
    matrix = gain.reshape(1, 1, 1, -1) if depthwise else np.diag(gain)
    inputs.append(writer.constant(matrix.astype(np.float32), f"{like.name}.diagonal"))
    if beta is not None and np.any(beta):
        inputs.append(writer.constant(beta.astype(np.float32), f"{like.name}.beta"))
    if not depthwise:
        writer.emit(like, "matmul", inputs, output=output, transpose_a=False, transpose_b=False)
        return
    writer.emit(
        like,
        "conv",
        inputs,
        output=output,
        strides=(1, 1),
        pads=(0, 0, 0, 0),
        dilations=(1, 1),
        groups=gain.size,
    )


def _vector(facts: Facts, op: Operation) -> tuple[str, Array, bool] | None:
    """Return activation, constant vector along the last axis, and whether it is on the right."""
    values = [facts.value(name) for name in op.inputs]
    for index in (1, 0):
        data, x = values[index], op.inputs[1 - index]
        shape = facts.graph.type(x).shape
        if data is None or values[1 - index] is not None or not np.isfinite(data).all():
            continue
        alike = facts.graph.type(op.outputs[0]).shape == shape
        if alike and data.size in (1, shape[-1]) and data.size == math.prod(data.shape[-1:]):
            return x, np.broadcast_to(data.reshape(-1), shape[-1:]), index == 1
    return None


def channelwise(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Make a diagonal product of an operation with a constant vector, and of the two of a norm."""
    found = _vector(facts, op)
    if found is None:
        return False
    x, vector, right = found
    if len(facts.graph.type(x).shape) != 4 and vector.size > DIAGONAL_MOST:
        return False
    if vector.size == 1 or np.all(vector == vector[0]):
        return _uniform(writer, op, x, float(vector[0]), right)
    ones = np.ones_like(vector)
    gain, beta = _affine(op.kind, vector, ones, right)
    maker = facts.maker(x)
    previous = next((each for each in writer.operations if x in each.outputs), None)
    if (
        op.kind != "mul"
        and right
        and maker is not None
        and maker.on_chip
        and maker.kind == "mul"
        and facts.only_reader(x) is op
        and previous is not None
        and previous.kind in LINEAR
        and len(previous.inputs) == 2
    ):
        writer.operations.remove(previous)
        bias = writer.constant(beta.astype(np.float32), f"{op.name}.beta")
        source = " + ".join(dict.fromkeys(filter(None, (previous.source, op.source))))
        writer.keep(
            replace(
                previous,
                name=op.name,
                inputs=(*previous.inputs, bias),
                outputs=op.outputs,
                source=source,
            )
        )
        return True
    diagonal(writer, op, x, op.outputs[0], gain, beta)
    return True


def _affine(kind: str, vector: Array, ones: Array, right: bool) -> tuple[Array, Array]:
    if kind == "mul":
        return vector, np.zeros_like(vector)
    if kind == "add":
        return ones, vector
    return (ones, -vector) if right else (-ones, vector)


def _uniform(writer: Rewriter, op: Operation, x: str, value: float, right: bool) -> bool:
    """Make a table of an operation with one number."""
    steps: dict[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
        "mul": (("scale",), (value,)),
        "add": (("shift",), (value,)),
        "sub": (("shift",), (-value,)) if right else (("scale", "shift"), (-1.0, value)),
    }
    functions, parameters = steps[op.kind]
    writer.emit(op, "table", (x,), output=op.outputs[0], functions=functions, parameters=parameters)
    return True


def unturned(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Turn the left operand by an operation of its own, and drop batch axes of one matrix."""
    a, b, rest = op.inputs[0], op.inputs[1], op.inputs[2:]
    shape = facts.graph.type(b).shape
    flat = len(shape) > 2 and math.prod(shape[:-2]) == 1 and facts.graph.constant(b) is not None
    flat = flat and len(facts.graph.type(a).shape) >= len(shape)
    if not op["transpose_a"] and not flat:
        return False
    if op["transpose_a"]:
        rank = len(facts.graph.type(a).shape)
        order = (*range(rank - 2), rank - 1, rank - 2)
        data = facts.graph.constant(a)
        if data is not None:
            a = writer.constant(data.transpose(order), f"{op.name}.turned")
        else:
            a = writer.emit(op, "transpose", (a,), part="turned", order=order)
    if flat:
        data = facts.graph.constant(b)
        assert data is not None
        b = writer.constant(data.reshape(shape[-2:]), f"{op.name}.matrix")
    writer.emit(
        op,
        "matmul",
        (a, b, *rest),
        output=op.outputs[0],
        transpose_a=False,
        transpose_b=op["transpose_b"],
    )
    return True


def mean(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Bring a mean to neighbouring axes before the last, or make a product of it."""
    x, shape = op.inputs[0], facts.graph.type(op.inputs[0]).shape
    rank, axes = len(shape), tuple(sorted(op["axes"]))
    if axes == tuple(range(axes[0], rank - 1)) if axes else False:
        return False
    result = facts.graph.type(op.outputs[0]).shape
    kept = tuple(axis for axis in range(rank) if axis not in axes)
    if not axes:
        writer.emit(op, "identity", (x,), output=op.outputs[0])
        return True
    if (*kept, *axes) != tuple(range(rank)):
        x = writer.emit(op, "transpose", (x,), part="turned", order=(*kept, *axes))
    length = math.prod(shape[axis] for axis in axes)
    rows = math.prod(shape) // length
    x = writer.emit(op, "reshape", (x,), part="rows", shape=(rows, length))
    column = writer.constant(np.full((length, 1), 1.0 / length, np.float32), f"{op.name}.share")
    y = writer.emit(op, "matmul", (x, column), transpose_a=False, transpose_b=False)
    writer.emit(op, "reshape", (y,), part="result", output=op.outputs[0], shape=result)
    return True
