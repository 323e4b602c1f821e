# SPDX-License-Identifier: Apache-2.0
"""A walk over a graph in order of execution that exchanges operations by rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from npu.graph.build import coerced
from npu.graph.form import (
    Array,
    Element,
    Graph,
    GraphError,
    Names,
    Operation,
    Quantisation,
    Tensor,
    TensorType,
    all_names,
)
from npu.graph.operations import infer
from npu.graph.verify import named


class Walk:
    """A graph during a walk: what stands behind the present operation is rewritten already.

    Attributes:
        graph: as it was.
        operations: rewritten so far; the dead ones go at the end.
    """

    def __init__(self, graph: Graph) -> None:
        """Begin in front of the first operation."""
        self.graph = graph
        self.operations: list[Operation] = []
        self._tensors = dict(graph.tensors)
        self._names = Names(all_names(graph))
        self._makers: dict[str, Operation] = {}
        self._replaced: dict[str, str] = {}
        self._readers: dict[str, list[Operation]] | None = None
        self._uses = Counter(name for one in graph.operations for name in one.used)
        self._uses.update(graph.outputs)

    def readers(self, name: str) -> list[Operation]:
        """Return what read a tensor before the walk."""
        if self._readers is None:
            self._readers = self.graph.consumers()
        return self._readers[name]

    def type(self, name: str) -> TensorType:
        """Return the type of a tensor."""
        return self._tensors[name].type

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self._tensors[name].shape

    def value(self, name: str) -> Array | None:
        """Return the value of a tensor if it is constant; None for "" too."""
        return self._tensors[name].data if name else None

    def maker(self, name: str, *kinds: str) -> Operation | None:
        """Return what assigns a tensor, if it is of one of some kinds."""
        found = self._makers.get(name)
        return found if found is not None and (not kinds or found.kind in kinds) else None

    def only(self, name: str, *kinds: str) -> Operation | None:
        """Return what assigns a tensor that has one reader and is no output of the graph."""
        if self._uses[name] != 1 or name in self.graph.outputs:
            return None
        return self.maker(name, *kinds)

    def constant(self, data: Array, wish: str, quantisation: Quantisation | None = None) -> str:
        """Add a constant; return its name."""
        data = np.ascontiguousarray(data).reshape(data.shape)
        name = self._names.fresh(wish)
        kind = TensorType(data.shape, Element.of(data.dtype), quantisation)
        self._tensors[name] = Tensor(name, kind, data)
        return name

    def keep(self, operation: Operation) -> None:
        """Keep an operation as it is."""
        self.operations.append(operation)
        for name in operation.outputs:
            self._makers[name] = operation

    def emit(
        self,
        like: Operation,
        kind: str,
        inputs: Sequence[str],
        *,
        output: str = "",
        part: str = "",
        source: str = "",
        result: TensorType | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation with one result; return the name of the result.

        Args:
            like: whose name and source it takes.
            kind: of the new one.
            inputs: names of tensors.
            output: name of the result, one that `like` gives up; fresh if empty.
            part: put behind the name of `like`.
            source: instead of that of `like`.
            result: type of the result where the inputs do not say it.
            attributes: as in the table.
        """
        given = coerced(kind, attributes)
        if result is None:
            types = [self.type(name) if name else None for name in inputs]
            (found,) = infer(kind, given, types)
            first = self.type(inputs[0])
            result = TensorType(
                tuple(found.shape or ()), found.element or first.element, first.quantisation
            )
            if found.element is not None:
                result = replace(result, quantisation=None)
        wish = f"{like.name}.{part}" if part else like.name
        if not output:
            output = self._names.fresh(wish)
        self._tensors[output] = Tensor(output, result)
        name = self._names.fresh(wish) if part else like.name
        one = Operation(name, kind, tuple(inputs), (output,), given, source or like.source)
        self._uses.update(one.used)
        self.keep(one)
        return output

    def again(
        self,
        one: Operation,
        inputs: Sequence[str],
        *,
        output: str = "",
        like: Operation | None = None,
        source: str = "",
        result: TensorType | None = None,
        **changes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation like another one, on other inputs, with some attributes changed."""
        given: dict[str, Any] = {**one.attributes, **changes}
        return self.emit(
            like or one, one.kind, inputs, output=output, source=source, result=result, **given
        )

    def give(self, operation: Operation, name: str) -> None:
        """Let everybody read another tensor instead of the result of an operation."""
        self._replaced[operation.outputs[0]] = name
        self._uses[name] += self._uses[operation.outputs[0]]

    def drop(self, operation: Operation) -> None:
        """Forget that an operation reads its inputs."""
        self._uses.subtract(operation.used)

    def mapped(self, operation: Operation) -> Operation:
        """Return an operation that reads what its inputs were replaced by."""
        inputs = tuple(self._replaced.get(name, name) for name in operation.inputs)
        return operation if inputs == operation.inputs else replace(operation, inputs=inputs)

    def finish(self) -> Graph:
        """Return the graph without what nothing reads."""
        self._outputs()
        alive, kept = set(self.graph.outputs), []
        for one in reversed(self.operations):
            if not alive.isdisjoint(one.outputs):
                alive.update(one.used)
                kept.append(one)
        names = Names(())
        operations = []
        for one in reversed(kept):
            name = names.fresh(one.name)
            operations.append(one if name == one.name else replace(one, name=name))
        graph = replace(self.graph, tensors=self._tensors, operations=tuple(operations))
        return graph.with_operations(graph.operations)

    def _outputs(self) -> None:
        """Give the graph's outputs their names back."""
        for name in self.graph.outputs:
            new = self._replaced.get(name)
            if new is None:
                continue
            kind = self._tensors[new].type
            data = self._tensors[new].data
            if data is not None:
                self._tensors[name] = Tensor(name, kind, data)
            elif new in self._makers and new not in self.graph.outputs:
                self._rename(new, name)
            else:
                self._tensors[name] = Tensor(name, kind)
                wish = self._names.fresh(name)
                self.keep(Operation(wish, "identity", (new,), (name,), {}, "Identity"))

    def _rename(self, old: str, new: str) -> None:
        self._tensors[new] = replace(self._tensors[old], name=new)
        for key, target in self._replaced.items():
            if target == old:
                self._replaced[key] = new

        def other(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(new if name == old else name for name in names)

        self.operations = [
            replace(one, inputs=other(one.inputs), outputs=other(one.outputs))
            for one in self.operations
            if new not in one.outputs
        ]
        self._makers = {name: one for one in self.operations for name in one.outputs}


Rule: TypeAlias = Callable[[Walk, Operation], bool]


def rewrite(graph: Graph, rules: Sequence[Rule]) -> Graph:
    """Apply rules to each operation in order; the first that returns True has exchanged it.

    A rule that returns True has emitted what takes the place of the operation: under the name of
    its result, or under another that it gave instead.
    """
    walk = Walk(graph)
    for operation in graph.operations:
        one = walk.mapped(operation)
        try:
            exchanged = len(one.outputs) == 1 and any(rule(walk, one) for rule in rules)
        except GraphError as error:
            raise GraphError(f"{named(one)}: {error}") from None
        if exchanged:
            walk.drop(one)
        else:
            walk.keep(one)
    return walk.finish()


def settled(graph: Graph, rules: Sequence[Rule], rounds: int = 50) -> Graph:
    """Rewrite until nothing changes any more."""
    for _ in range(rounds):
        after = rewrite(graph, rules)
        if _same(after, graph):
            return after
        graph = after
    return graph


def _same(one: Graph, other: Graph) -> bool:
    return len(one.operations) == len(other.operations) and all(
        a is b
        or (a.kind, a.inputs, a.outputs, a.attributes)
        == (b.kind, b.inputs, b.outputs, b.attributes)
        for a, b in zip(one.operations, other.operations, strict=True)
    )
