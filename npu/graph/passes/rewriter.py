# SPDX-License-Identifier: Apache-2.0
"""Writes a graph anew, operation by operation: what all passes that replace operations share."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

from npu.graph.build import Builder, coerced
from npu.graph.form import (
    Array,
    Graph,
    Names,
    Operation,
    OperationPlace,
    Tensor,
    TensorType,
    all_names,
)
from npu.graph.operations import infer


class Rewriter(Builder):
    """Collects the operations of the new graph in order.

    Attributes:
        graph: the one that is rewritten; its tensors are those that the new one begins with.
    """

    def __init__(
        self,
        graph: Graph,
        tensors: MutableMapping[str, Tensor] | None = None,
        names: Names | None = None,
    ) -> None:
        """Begin with no operation; tensors and the names that are taken are the graph's."""
        super().__init__(graph.name)
        self.graph = graph
        self.tensors = dict(graph.tensors) if tensors is None else tensors
        self._names = self._operation_names = names or Names(all_names(graph))

    def keep(self, operation: Operation) -> None:
        """Write an operation as it is."""
        self.operations.append(operation)

    def emit(
        self,
        like: Operation,
        kind: str,
        inputs: Sequence[str],
        *,
        part: str = "",
        output: str = "",
        source: str = "",
        result: TensorType | None = None,
        place: OperationPlace | None = None,
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
            source: another one than that of `like`.
            result: type of the result where neither `output` nor the inputs say it.
            place: another one than that of `like`.
            integers: of the fused operation.
            **attributes: as in the table.
        """
        given = coerced(kind, attributes)
        wish = f"{like.name}.{part}" if part else like.name
        if result is None:
            result = self.type(output) if output else self._inferred(kind, given, inputs)
        output = output or self.fresh(wish)
        self.tensors[output] = Tensor(output, result)
        name = self._operation_names.fresh(wish) if part else like.name
        places = place or like.place
        self.keep(
            Operation(
                *(name, kind, tuple(inputs), (output,), given),
                *(source or like.source, places, integers or {}),
            )
        )
        return output

    def _inferred(self, kind: str, given: Mapping[str, Any], inputs: Sequence[str]) -> TensorType:
        """Return the type of a result; where the table leaves it open, that of the first input."""
        types = [self.type(name) if name else None for name in inputs]
        (found,) = infer(kind, given, types)
        assert found.shape is not None
        if found.element is not None:
            return TensorType(tuple(found.shape), found.element)
        return replace(self.type(inputs[0]), shape=tuple(found.shape))

    def again(
        self,
        operation: Operation,
        inputs: Sequence[str],
        *,
        output: str = "",
        source: str = "",
        result: TensorType | None = None,
        **changes: Any,  # noqa: ANN401
    ) -> str:
        """Write an operation once more, on other inputs, with some attributes changed."""
        given: dict[str, Any] = {**operation.attributes, **changes}
        return self.emit(
            *(operation, operation.kind, inputs),
            output=output,
            source=source,
            result=result,
            **given,
        )

    def swap(self, name: str, kind: TensorType) -> None:
        """Give an existing tensor another type."""
        self.tensors[name] = replace(self.tensors[name], type=kind)

    def rewritten(self) -> Graph:
        """Return the new graph: without what nothing reads, each operation with its own name."""
        alive, kept = set(self.graph.outputs), list[Operation]()
        for operation in reversed(self.operations):
            if not alive.isdisjoint(operation.outputs):
                alive.update(operation.used)
                kept.append(operation)
        names = Names(())
        operations = (replace(each, name=names.fresh(each.name)) for each in reversed(kept))
        return self.graph.with_operations(operations, self.tensors.values())
