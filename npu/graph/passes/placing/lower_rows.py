# SPDX-License-Identifier: Apache-2.0
"""Forms of softmax, norms and attention."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Array, Operation, OperationPlace, Target
from npu.graph.operations.composites import visible
from npu.graph.passes.facts import Facts
from npu.graph.passes.placing.lower_linear import DIAGONAL_MOST, diagonal
from npu.graph.passes.rewriter import Rewriter

_HIDDEN = -500.0
"""What is added to a score that is not to count: below it no numerator is left."""
HOST_TURN = OperationPlace(Target.HOST, "rows of 16 bits are turned where they come from")


def softmax(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Turn rows so that they lie along the last axis."""
    x, axis = op.inputs[0], op["axis"]
    rank = len(facts.graph.type(x).shape)
    if axis == rank - 1:
        return False
    order = (*(i for i in range(rank) if i != axis), axis)
    back = tuple(int(i) for i in np.argsort(order))
    maker = facts.maker(x)
    # A turn of int16 would be one of int8 on the chip; the host turns real numbers.
    place = None if maker is not None and maker.on_chip else HOST_TURN
    turned = writer.emit(op, "transpose", (x,), part="turned", order=order, place=place)
    rows = writer.emit(op, "softmax", (turned,), axis=rank - 1)
    writer.emit(op, "transpose", (rows,), part="back", output=op.outputs[0], order=back)
    return True


def norm(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Make one axis of several; take negative gains and beta out of the norm."""
    x, shape = op.inputs[0], facts.graph.type(op.inputs[0]).shape
    gain, beta = (facts.value(name) if name else None for name in (*op.inputs[1:], "", "")[:2])
    plain = beta is None and (gain is None or not np.any(gain < 0))
    if plain and op["axes"] == 1:
        return False
    length = math.prod(shape[len(shape) - op["axes"] :])
    output, result = op.outputs[0], op.outputs[0]
    if op["axes"] > 1:
        lead = shape[: len(shape) - op["axes"]]
        x = writer.emit(op, "reshape", (x,), part="rows", shape=(*(lead or (1,)), length))
        result = ""
    gain = None if gain is None else gain.reshape(-1)
    beta = None if beta is None else beta.reshape(-1)
    rest: dict[str, Any] = {"axes": 1, "epsilon": op["epsilon"]}
    if plain:
        inputs = [x] if gain is None else [x, writer.constant(gain, f"{op.name}.gain")]
        y = writer.emit(op, op.kind, inputs, **rest, output=result)
    elif length <= DIAGONAL_MOST:
        y = _split(writer, op, x, gain, beta, result)
    else:
        return False
    if y != output:
        writer.emit(op, "reshape", (y,), part="shape", output=output, shape=shape)
    return True


def _split(
    writer: Rewriter,
    op: Operation,
    x: str,
    gain: Array | None,
    beta: Array | None,
    output: str,
) -> str:
    """Write the norm without gain and, as a product with a diagonal matrix, what is left."""
    length = writer.shape(x)[-1]
    y = writer.emit(op, op.kind, (x,), part="rows", axes=1, epsilon=op["epsilon"])
    if not output:
        output = writer.tensor(f"{op.name}.scaled", writer.type(y))
    scale = np.ones(length, np.float32) if gain is None else gain
    diagonal(writer, op, y, output, scale, beta)
    return output


def attention(writer: Rewriter, facts: Facts, op: Operation) -> bool:
    """Make a mask of what the causal flag cannot say; give values the width of keys."""
    q, k, v = op.inputs[:3]
    depth, width = facts.graph.type(q).shape[3], facts.graph.type(v).shape[3]
    rows, keys = facts.graph.type(q).shape[2], facts.graph.type(k).shape[2]
    given = facts.value(op.inputs[3]) if len(op.used) > 3 else None
    seen = visible(op.attributes, rows, keys)
    blind = _hides_all(given, seen)
    limited = bool(op["window"] or op["causal"])
    masked = limited and (blind or not (op["causal"] and op["offset"] >= 0))
    batches = 1 if given is None or given.ndim < 4 else given.shape[0]
    if depth == width and not masked and not blind and batches == 1:
        return False
    mask = _both(given, seen) if masked else given
    if blind:
        assert mask is not None
        mask = _with_escape(np.broadcast_to(mask, (*mask.shape[:-1], keys)))
        k, v = (_longer(writer, op, name, part) for name, part in ((k, "k"), (v, "v")))
    sight: dict[str, Any] = {
        "causal": op["causal"] and not masked,
        "offset": 0 if masked else op["offset"],
        "window": 0 if masked else op["window"],
    }
    inner = max(depth, width)
    q, k, v = (
        _widened(writer, op, name, inner, part) for name, part in ((q, "q"), (k, "k"), (v, "v"))
    )
    parts = []
    for batch in range(batches):
        inputs = (
            [q, k, v]
            if batches == 1
            else [
                _row(writer, op, name, batch, f"{part}{batch}")
                for name, part in ((q, "q"), (k, "k"), (v, "v"))
            ]
        )
        if mask is not None:
            own = mask if batches == 1 else mask[batch : batch + 1]
            inputs.append(writer.constant(own, f"{op.name}.mask"))
        parts.append(
            writer.emit(
                op,
                "attention",
                inputs,
                part=f"batch{batch}" if batches > 1 else "heads",
                scale=op["scale"],
                softcap=0.0,
                **sight,
            )
        )
    y = parts[0] if batches == 1 else writer.emit(op, "concat", parts, part="batches", axis=0)
    shape = writer.shape(y)
    if shape[3] == width:
        writer.operations[-1] = replace(writer.operations[-1], outputs=op.outputs)
        return True
    writer.emit(
        op,
        "slice",
        (y,),
        part="values",
        output=op.outputs[0],
        starts=(0, 0, 0, 0),
        stops=(*shape[:3], width),
        steps=(1, 1, 1, 1),
    )
    return True


def _widened(writer: Rewriter, op: Operation, name: str, width: int, part: str) -> str:
    missing = width - writer.shape(name)[3]
    if not missing:
        return name
    return writer.emit(
        op,
        "pad",
        (name,),
        part=f"{part}.wide",
        before=(0, 0, 0, 0),
        after=(0, 0, 0, missing),
        value=0.0,
    )


def _row(writer: Rewriter, op: Operation, name: str, batch: int, part: str) -> str:
    shape = writer.shape(name)
    return writer.emit(
        op,
        "slice",
        (name,),
        part=part,
        starts=(batch, 0, 0, 0),
        stops=(batch + 1, *shape[1:]),
        steps=(1, 1, 1, 1),
    )


def _both(mask: Array | None, seen: Array) -> Array:
    """Return a mask that also hides what a query does not see by its place."""
    if mask is None:
        return seen
    if mask.dtype == np.bool_:
        return mask & seen
    return np.where(seen, mask, -np.inf).astype(np.float32)


def _hides_all(mask: Array | None, seen: Array) -> bool:
    """Say whether some query sees no key at all."""
    if mask is not None:
        seen = (mask if mask.dtype == np.bool_ else mask > _HIDDEN) & seen
    return bool((~seen.any(axis=-1)).any())


def _with_escape(mask: Array) -> Array:
    """Add a key that only queries see which see no other: its value is 0, as their result."""
    shown = mask if mask.dtype == np.bool_ else mask > _HIDDEN
    blind = ~shown.any(axis=-1, keepdims=True)
    if mask.dtype == np.bool_:
        return np.concatenate([mask, blind], axis=-1)
    return np.concatenate([mask, np.where(blind, 0.0, -np.inf)], axis=-1).astype(np.float32)


def _longer(writer: Rewriter, op: Operation, name: str, part: str) -> str:
    after = (0, 0, 1, 0)
    return writer.emit(
        op, "pad", (name,), part=f"{part}.long", before=(0, 0, 0, 0), after=after, value=0.0
    )
