# SPDX-License-Identifier: Apache-2.0
"""Writes a graph anew, operation by operation; what passes that replace operations share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.build import coerced
from npu.graph.form import (
    Array,
    Attribute,
    Element,
    Graph,
    Names,
    Operation,
    Place,
    Quantisation,
    Tensor,
    TensorType,
    all_names,
)
from npu.graph.operations import infer


class Rewriter:
    """Collects the operations of the new graph in order.

    Attributes:
        graph: the one that is rewritten.
        operations: those written so far.
        tensors: added or exchanged ones by name.
    """

    def __init__(self, graph: Graph) -> None:
        """Begin an empty list of operations."""
        self.graph = graph
        self.operations: list[Operation] = []
        self.tensors: dict[str, Tensor] = {}
        self.names = Names(all_names(graph))

    def type(self, name: str) -> TensorType:
        """Return the type of a tensor, a new one before an old one."""
        found = self.tensors.get(name)
        return found.type if found is not None else self.graph.type(name)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self.type(name).shape

    def tensor(self, wish: str, kind: TensorType, data: Array | None = None) -> str:
        """Add a tensor under a fresh name; return the name."""
        name = self.names.fresh(wish)
        self.tensors[name] = Tensor(name, kind, data)
        return name

    def constant(self, wish: str, data: Array, quantisation: Quantisation | None = None) -> str:
        """Add a constant; return its name."""
        array = np.ascontiguousarray(data).reshape(np.shape(data))
        kind = TensorType(array.shape, Element.of(array.dtype), quantisation)
        return self.tensor(wish, kind, array)

    def keep(self, operation: Operation) -> None:
        """Write an operation as it is."""
        self.operations.append(operation)

    def add(
        self,
        like: Operation,
        kind: str,
        inputs: Sequence[str],
        *,
        part: str = "",
        output: str = "",
        result: TensorType | None = None,
        place: Place | None = None,
        integers: Mapping[str, Array] | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Write an operation that becomes of another one; return the name of its result.

        Args:
            like: that gives name, source and place.
            kind: a name of the table.
            inputs: names of tensors.
            part: behind the name of `like`; empty for the operation that takes its place.
            output: an existing tensor to assign; a fresh one if empty.
            result: type of a fresh result where the inputs do not say it.
            place: another one than that of `like`.
            integers: of the fused operation.
            **attributes: as in the table.
        """
        given: dict[str, Attribute] = coerced(kind, attributes)
        if result is None and not output:
            types = [self.type(name) if name else None for name in inputs]
            (found,) = infer(kind, given, types)
            assert found.shape is not None
            element = found.element or self.type(inputs[0]).element
            result = TensorType(tuple(found.shape), element)
        name = f"{like.name}.{part}" if part else like.name
        if not output:
            assert result is not None
            output = self.tensor(name, result)
        unique = like.name if not part and not self._written(like.name) else self.names.fresh(name)
        self.operations.append(
            Operation(
                unique,
                kind,
                tuple(inputs),
                (output,),
                given,
                like.source,
                place or like.place,
                integers or {},
            )
        )
        return output

    def _written(self, name: str) -> bool:
        return any(one.name == name for one in self.operations)

    def finish(self) -> Graph:
        """Return the new graph."""
        return self.graph.with_operations(self.operations, self.tensors.values())

    def swap(self, name: str, kind: TensorType) -> None:
        """Give an existing tensor another type."""
        old = self.tensors.get(name) or self.graph[name]
        self.tensors[name] = replace(old, type=kind)
