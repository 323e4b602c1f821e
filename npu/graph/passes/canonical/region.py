# SPDX-License-Identifier: Apache-2.0
"""Parts of a graph with one way in: what a pattern of operations is looked for in.

All that leads from one tensor to another, constants aside, is a function of that tensor. What it
computes can be asked by computing it, in float64, however it is spelled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from npu.graph.form import Array, Graph, GraphError, Operation, TensorType
from npu.graph.operations import TABLE, Call, Trait, with_trait
from npu.graph.operations.functions import steps

MOVES = with_trait(Trait.COPY) | {"cast"}
ASIDE = MOVES - {"cast", "pad", "concat", "slice"}
"""Moves that keep all elements as they are."""
ELEMENTWISE = with_trait(Trait.POINTWISE)
LONGEST = 64


@dataclass(frozen=True)
class Region:
    """All operations from a tensor to the result of another operation.

    Attributes:
        entry: the tensor that all of it depends on.
        operations: in their order; the last one gives the result.
    """

    entry: str
    operations: tuple[Operation, ...]

    @property
    def root(self) -> Operation:
        """The operation that gives the result."""
        return self.operations[-1]

    def kinds(self) -> set[str]:
        """Return the kinds of the operations."""
        return {op.kind for op in self.operations}

    def functions(self) -> set[str]:
        """Return the functions of the tables in it."""
        return {name for op in self.operations if op.kind == "table" for name in op["functions"]}


class GraphView:
    """A graph whose regions are asked for."""

    def __init__(self, graph: Graph) -> None:
        """Take the graph."""
        self.graph = graph
        self.tensors = dict(graph.tensors)
        self._makers = graph.producers()
        self._readers = Counter(name for op in graph.operations for name in op.used)
        self._readers.update(graph.outputs)
        self._place = {one.name: index for index, one in enumerate(graph.operations)}

    def maker(self, name: str, *kinds: str) -> Operation | None:
        """Return the operation that assigns a tensor, if it is of one of some kinds."""
        found = self._makers.get(name)
        return found if found is not None and (not kinds or found.kind in kinds) else None

    def readers(self, name: str) -> int:
        """Return how often a tensor is read, as an output of the graph too."""
        return self._readers[name]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self.graph.type(name).shape

    def free(self, op: Operation) -> list[str]:
        """Return the inputs of an operation that are not constant, each once."""
        names = dict.fromkeys(op.used)
        return [name for name in names if self.graph.constant(name) is None]

    def regions(self, root: Operation, allowed: Collection[str]) -> Iterator[Region]:
        """Yield the regions that end with an operation, from the smallest to the largest.

        Args:
            root: gives the result.
            allowed: kinds of operations; the search ends in front of others.
        """
        frontier: set[str] = {root.outputs[0]}
        inside: list[Operation] = []
        while frontier and len(inside) < LONGEST:
            # What stands last is expanded first, so that what is left over is the way in.
            name = max(frontier, key=self._index)
            one = self._makers.get(name)
            if one is None or one.kind not in allowed or len(one.outputs) != 1:
                return
            frontier.discard(name)
            frontier.update(self.free(one))
            inside.append(one)
            if len(frontier) == 1:
                yield Region(next(iter(frontier)), tuple(reversed(inside)))

    def _index(self, name: str) -> int:
        one = self._makers.get(name)
        return -1 if one is None else self._place[one.name]

    def path(self, start: str, end: str, allowed: Collection[str]) -> Region | None:
        """Return the region from one tensor to another, None if there is more than one way in."""
        root = self._makers.get(end)
        if root is None or start == end:
            return None
        for region in self.regions(root, allowed):
            if region.entry == start:
                return region
        return None

    def compute(self, region: Region, value: Array) -> Array:
        """Compute the result of a region for a value of its entry, in float64."""
        return self.computed(region.operations, {region.entry: value})[region.root.outputs[0]]

    def computed(
        self, operations: Sequence[Operation], given: Mapping[str, Array]
    ) -> dict[str, Array]:
        """Compute operations one after the other; return all values by name."""
        values = dict(given)
        for one in operations:
            inputs = [self._value(name, values) for name in one.inputs]
            values[one.outputs[0]] = meaning(
                one.kind,
                one.attributes,
                inputs,
                [self.graph.type(name) if name else None for name in one.inputs],
                self.graph.type(one.outputs[0]),
            )
        return values

    def _value(self, name: str, values: Mapping[str, Array]) -> Array | None:
        if not name:
            return None
        if name in values:
            return values[name]
        constant = self.graph.constant(name)
        if constant is None:
            raise GraphError(f"tensor {name!r} is not known")
        return constant.astype(np.float64) if constant.dtype.kind == "f" else constant

    def numbers(self, region: Region) -> list[float]:
        """Return the numbers in a region: of constants of one value and of tables."""
        found: dict[float, None] = {}
        for op in region.operations:
            for name in op.used:
                value = uniform(self.graph.constant(name))
                if value is not None:
                    found[value] = None
            if op.kind == "table":
                for _, values in steps(op["functions"], op["parameters"]):
                    found.update(dict.fromkeys(values))
            if op.kind == "clip":
                found.update({op["low"]: None, op["high"]: None})
        return [value for value in found if np.isfinite(value)]

    def vectors(self, region: Region, row: Sequence[int]) -> dict[str, Array]:
        """Return the constants in a region that are one value per element of a row, so shaped."""
        found: dict[str, Array] = {}
        for op in region.operations:
            for name in op.used:
                value = self.graph.constant(name)
                if value is not None and value.dtype.kind == "f" and value.size > 1:
                    vector = _row(value, tuple(row))
                    if vector is not None:
                        found[name] = vector
        return found


def _row(value: Array, row: tuple[int, ...]) -> Array | None:
    """Return one row of a constant along trailing axes, None if rows differ."""
    try:
        wide = np.broadcast_to(value, np.broadcast_shapes(value.shape, row))
    except ValueError:
        return None
    if wide.shape[wide.ndim - len(row) :] != row:
        return None
    rows = wide.reshape(-1, *row)
    return np.ascontiguousarray(rows[0]) if bool((rows == rows[0]).all()) else None


def meaning(
    kind: str,
    attributes: Mapping[str, Any],
    values: Sequence[Array | None],
    types: Sequence[TensorType | None],
    result: TensorType,
) -> Array:
    """Compute one operation of the table, floats in float64."""
    call = Call(attributes, values, types, [result])
    with np.errstate(all="ignore"):
        value = np.asarray(TABLE[kind].meaning(call)[0])
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def uniform(value: Array | None) -> float | None:
    """Return the one number that all elements of a constant are, None if there is none."""
    if value is None or not value.size or value.dtype.kind not in "fiu":
        return None
    first = value.reshape(-1)[0]
    return float(first) if bool((value == first).all()) else None


def agree(found: Array, wanted: Array, tolerance: float = 1e-5) -> bool:
    """Say whether two results agree to 1e-5 of the largest, infinities where the other has them."""
    if found.shape != wanted.shape:
        return False
    finite = np.isfinite(wanted)
    if not np.array_equal(finite, np.isfinite(found)):
        return False
    # Not of 1: the probabilities of a long row are small, and so are their differences.
    largest = float(np.abs(wanted[finite]).max(initial=0.0))
    return bool(np.all(np.abs(found[finite] - wanted[finite]) <= tolerance * largest))
