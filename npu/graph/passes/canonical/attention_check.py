# SPDX-License-Identifier: Apache-2.0
"""Compares attention in one operation with the operations that it replaces."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npu.graph.form import Array, Operation
from npu.graph.passes.canonical.edit import Replacement
from npu.graph.passes.canonical.region import MOVES, GraphView, agree, meaning


@dataclass(frozen=True)
class AttentionParts:
    """Operations that are attention together.

    Attributes:
        root: the product with values.
        side: which of its operands the probabilities are.
        product: of queries and keys.
        steps: from that to the softmax.
        softmax: of rows.
        between: moves from the softmax to the product with values.
    """

    root: Operation
    side: int
    product: Operation
    steps: tuple[Operation, ...]
    softmax: Operation
    between: tuple[Operation, ...]

    @property
    def operations(self) -> list[Operation]:
        """All of them, in their order."""
        return [self.product, *self.steps, self.softmax, *self.between, self.root]

    @property
    def operands(self) -> tuple[str, ...]:
        """Queries, keys and values."""
        return (*self.product.inputs, self.root.inputs[1 - self.side])


def same(view: GraphView, edit: Replacement, found: AttentionParts) -> bool:
    """Compare both spellings on random queries, keys and values."""
    random = np.random.default_rng(6)
    made = {name for op in edit.operations for name in op.outputs}
    values: dict[str, Array] = {}
    for name in dict.fromkeys(name for op in edit.operations for name in op.used):
        if name not in made:
            data = _known(view, edit, name)
            shape = edit.type(name).shape
            values[name] = random.standard_normal(shape) if data is None else data
    given = _operands(view, found, values)
    if given is None:
        return False
    result = found.root.outputs[0]
    wanted = view.computed(found.operations, given)[result]
    for op in edit.operations:
        inputs = [values[name] for name in op.inputs]
        types = [edit.type(name) for name in op.inputs]
        output = op.outputs[0]
        values[output] = meaning(op.kind, op.attributes, inputs, types, edit.type(output))
    return agree(values[result], wanted)


def _known(view: GraphView, edit: Replacement, name: str) -> Array | None:
    """Return a constant for computing with."""
    data = edit.value(name)
    return data.astype(np.float64) if data is not None and data.dtype.kind == "f" else data


def _operands(
    view: GraphView, found: AttentionParts, values: dict[str, Array]
) -> dict[str, Array] | None:
    """Return queries, keys and values that follow from what the new operations read.

    Keys and values may be read in front of a repetition.
    """
    given: dict[str, Array] = {}
    for name in found.operands:
        if name in values:
            given[name] = values[name]
        elif view.graph.constant(name) is None:
            ways = ((source, view.path(source, name, MOVES)) for source in values)
            way = next(((source, one) for source, one in ways if one is not None), None)
            if way is None:
                return None
            given[name] = view.compute(way[1], values[way[0]])
    return given


def moves_between(view: GraphView, name: str, start: str) -> list[Operation]:
    """Return the moves from one tensor to another."""
    found: list[Operation] = []
    while name != start:
        made = view.maker(name)
        if made is None:
            return found
        found.insert(0, made)
        name = made.inputs[0]
    return found
