# SPDX-License-Identifier: Apache-2.0
"""A walk over a graph in order of execution that exchanges operations by rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TypeAlias

from npu.graph.form import Graph, GraphError, Operation, Tensor
from npu.graph.passes.rewriter import Rewriter
from npu.graph.verify import named


class Walk(Rewriter):
    """A graph during a walk: what stands behind the present operation is rewritten already."""

    def __init__(self, graph: Graph) -> None:
        """Begin in front of the first operation."""
        super().__init__(graph)
        self._makers: dict[str, Operation] = {}
        self._replaced: dict[str, str] = {}
        self._uses = Counter(name for op in graph.operations for name in op.used)
        self._uses.update(graph.outputs)

    @cached_property
    def _readers(self) -> Mapping[str, list[Operation]]:
        return self.graph.consumers()

    def readers(self, name: str) -> list[Operation]:
        """Return the operations that read a tensor before the walk."""
        return self._readers[name]

    def maker(self, name: str, *kinds: str) -> Operation | None:
        """Return the operation that assigns a tensor, if it is of one of some kinds."""
        found = self._makers.get(name)
        return found if found is not None and (not kinds or found.kind in kinds) else None

    def only(self, name: str, *kinds: str) -> Operation | None:
        """Return the operation that assigns a tensor with one reader, no output of the graph."""
        if self._uses[name] != 1 or name in self.graph.outputs:
            return None
        return self.maker(name, *kinds)

    def keep(self, operation: Operation) -> None:
        """Write an operation, which reads its inputs from now on."""
        super().keep(operation)
        self._uses.update(operation.used)
        self._makers.update(dict.fromkeys(operation.outputs, operation))

    def give(self, operation: Operation, name: str) -> None:
        """Let everybody read another tensor instead of the result of an operation."""
        self._replaced[operation.outputs[0]] = name
        self._uses[name] += self._uses[operation.outputs[0]]

    def drop(self, operation: Operation) -> None:
        """Forget that an operation of the graph reads its inputs: it was kept or exchanged."""
        self._uses.subtract(operation.used)

    def mapped(self, operation: Operation) -> Operation:
        """Return an operation that reads what its inputs were replaced by."""
        inputs = tuple(self._replaced.get(name, name) for name in operation.inputs)
        return operation if inputs == operation.inputs else replace(operation, inputs=inputs)

    def rewritten(self) -> Graph:
        """Return the graph without what nothing reads, its outputs under their names."""
        self._outputs()
        return super().rewritten()

    def _outputs(self) -> None:
        """Give the graph's outputs their names back."""
        for name in self.graph.outputs:
            new = self._replaced.get(name)
            if new is None:
                continue
            kind = self.tensors[new].type
            data = self.tensors[new].data
            if data is not None:
                self.tensors[name] = Tensor(name, kind, data)
            elif new in self._makers and new not in self.graph.outputs:
                self._rename(new, name)
            else:
                self.tensors[name] = Tensor(name, kind)
                wish = self._names.fresh(name)
                self.keep(Operation(wish, "identity", (new,), (name,), {}, "Identity"))

    def _rename(self, old: str, new: str) -> None:
        self.tensors[new] = replace(self.tensors[old], name=new)
        for key, target in self._replaced.items():
            if target == old:
                self._replaced[key] = new

        def other(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(new if name == old else name for name in names)

        self.operations = [
            replace(op, inputs=other(op.inputs), outputs=other(op.outputs))
            for op in self.operations
            if new not in op.outputs
        ]
        self._makers = {name: op for op in self.operations for name in op.outputs}


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
        if not exchanged:
            walk.keep(one)
        walk.drop(one)
    return walk.rewritten()


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
