# SPDX-License-Identifier: Apache-2.0
"""Makes graphs operation by operation: what importers and tests use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import (
    Array,
    Attribute,
    Element,
    Graph,
    GraphError,
    Names,
    Operation,
    OperationPlace,
    Quantisation,
    Tensor,
    TensorType,
)
from npu.graph.operations import TABLE, Trait, infer, with_trait
from npu.graph.operations.base import ATTRIBUTE_TYPES, LISTS

# What moves integers or chooses among them keeps what they stand for.
SHARING = with_trait(Trait.SHARES)
CALLED = 1 << 15
"""Operations that calls and loops of a file may stand for: a few of them can mean endless ones."""


class Builder:
    """A graph that grows in order of execution."""

    def __init__(self, name: str = "graph") -> None:
        """Begin an empty graph."""
        self.name = name
        self.inputs: list[str] = []
        self.tensors: MutableMapping[str, Tensor] = {}
        self.operations: list[Operation] = []
        self._names = Names(())
        self._operation_names = Names(())
        self._called = 0

    def called(self) -> None:
        """Count an operation inside a call or a loop, also one that is taken back.

        Raises:
            GraphError: there are more than a file may have.
        """
        self._called += 1
        if self._called > CALLED:
            raise GraphError(f"calls and loops stand for more than {CALLED:,} operations")

    def reserve(self, names: Iterable[str]) -> None:
        """Keep names for tensors of the user's file: `fresh` does not give them away."""
        for name in names:
            self._names.fresh(name)

    def fresh(self, wish: str) -> str:
        """Return a name that no tensor has."""
        return self._names.fresh(wish or "t")

    def type(self, name: str) -> TensorType:
        """Return the type of a tensor."""
        return self.tensors[name].type

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self.tensors[name].shape

    def value(self, name: str) -> Array | None:
        """Return the value of a tensor if it is constant; None for "" too."""
        return self.tensors[name].data if name else None

    def producer(self, name: str) -> Operation | None:
        """Return the operation that makes a tensor, None for inputs and constants."""
        return next((op for op in reversed(self.operations) if name in op.outputs), None)

    def declare(self, tensor: Tensor) -> str:
        """Add a tensor under its own name, which must be free or reserved; return the name."""
        if tensor.name in self.tensors:
            raise GraphError(f"tensor {tensor.name!r} is assigned twice")
        self.tensors[tensor.name] = tensor
        return tensor.name

    def tensor(self, wish: str, kind: TensorType, data: Array | None = None) -> str:
        """Add a tensor under a name like the one wished for; return the name."""
        return self.declare(Tensor(self.fresh(wish), kind, data))

    def input(self, name: str, kind: TensorType) -> str:
        """Add an input of the graph; return its name."""
        self.inputs.append(name)
        self._names.fresh(name)
        return self.declare(Tensor(name, kind))

    def constant(
        self,
        data: Any,  # noqa: ANN401
        wish: str = "constant",
        quantisation: Quantisation | None = None,
    ) -> str:
        """Add a constant in the type that numpy gives it; return its name.

        Raises:
            GraphError: its element type is none that a graph holds.
        """
        array = np.ascontiguousarray(data).reshape(np.shape(data))
        try:
            element = Element.of(array.dtype)
        except (ValueError, TypeError):
            allowed = ", ".join(Element)
            raise GraphError(f"constant {wish!r} is {array.dtype}, allowed {allowed}") from None
        kind = TensorType(array.shape, element, quantisation)
        return self.tensor(wish, kind, array)

    def add(
        self,
        kind: str,
        inputs: Sequence[str],
        *,
        wish: str = "",
        output: str = "",
        source: str = "",
        result: TensorType | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation with one output.

        Args:
            kind: a name of the table.
            inputs: names of tensors, "" for one that is not given.
            wish: the operation's name; a number is put behind it if it is taken.
            output: name of the result, free or reserved; made from the wish if empty.
            source: what it is called in the user's file.
            result: type of the result where the inputs do not say it.
            attributes: as in the table; lists become tuples, integers floats where needed.

        Returns:
            The name of the result.

        Raises:
            GraphError: the inputs are not allowed.
        """
        wish = wish or kind
        given = coerced(kind, attributes)
        types = [self.type(name) if name else None for name in inputs]
        if result is None:
            (found,) = infer(kind, given, types)
            scaled = _scaled(kind, types) if found.element is None else None
            element = scaled.element if scaled else found.element
            if found.shape is None or element is None:
                raise GraphError(f"{wish!r} ({kind}): its inputs do not say the type of its result")
            result = TensorType(
                tuple(found.shape), element, scaled.quantisation if scaled else None
            )
        (name,) = self.add_many(kind, inputs, [output], [result], wish=wish, source=source, **given)
        return name

    def add_many(
        self,
        kind: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        results: Sequence[TensorType],
        *,
        wish: str = "",
        source: str = "",
        place: OperationPlace | None = None,
        integers: Mapping[str, Array] | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> tuple[str, ...]:
        """Add an operation whose results have given names ("" for a fresh one) and types."""
        wish = wish or kind
        names = tuple(
            self.declare(Tensor(name or self.fresh(wish), result))
            for name, result in zip(outputs, results, strict=True)
        )
        self.operations.append(
            Operation(
                self._operation_names.fresh(wish),
                kind,
                tuple(inputs),
                names,
                coerced(kind, attributes),
                source,
                place,
                integers or {},
            )
        )
        return names

    def rename_last(self, name: str) -> None:
        """Give the result of the last operation, which has one, a free or reserved name."""
        last = self.operations.pop()
        tensor = self.tensors.pop(last.outputs[0])
        self.declare(replace(tensor, name=name))
        self.operations.append(replace(last, outputs=(name,)))

    def scale_input(self, name: str, quantisation: Quantisation) -> None:
        """Say what integers from outside stand for, unless that is known or real.

        From outside are inputs of the graph, and what the host makes in its own evaluator.
        """
        tensor = self.tensors[name]
        host = (out for op in self.operations if op.kind == "host" for out in op.outputs)
        if tensor.type.quantisation is None and (name in self.inputs or name in host):
            kind = replace(tensor.type, quantisation=quantisation)
            self.tensors[name] = replace(tensor, type=kind)

    def mark(self) -> tuple[int, int]:
        """Return where the graph stands, for `back`."""
        return len(self.operations), len(self.tensors)

    def back(self, mark: tuple[int, int]) -> None:
        """Take back what was added since a mark."""
        del self.operations[mark[0] :]
        for name in list(self.tensors)[mark[1] :]:
            del self.tensors[name]

    def finish(self, outputs: Sequence[str]) -> Graph:
        """Return the graph, without tensors that nothing reads, assigns or returns."""
        graph = Graph(
            self.name, tuple(self.inputs), tuple(outputs), self.tensors, tuple(self.operations)
        )
        return graph.with_operations(graph.operations)


def _scaled(kind: str, types: Sequence[TensorType | None]) -> TensorType | None:
    """Return the type of quantised inputs that a result shares, None if it is a choice."""
    given = [one for one in types[: 1 if kind == "gather" else None] if one is not None]
    if kind not in SHARING or len({(one.element, one.quantisation) for one in given}) != 1:
        return None
    found = given[0].quantisation
    return given[0] if found is not None and found.axis is None else None


def coerced(kind: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes in types and order of the table: tuples, floats, plain Python numbers."""
    wanted = {**TABLE[kind].attributes, **TABLE[kind].fused}
    result: dict[str, Attribute] = {}
    for name, value in attributes.items():
        element = ATTRIBUTE_TYPES.get(wanted.get(name, ""), None)
        if element is None:
            raise GraphError(f"{kind}: attribute {name!r}, allowed {', '.join(wanted) or 'none'}")
        many = wanted[name] in LISTS
        result[name] = tuple(element(one) for one in value) if many else element(value)
    return {name: result[name] for name in wanted if name in result}


def bind(graph: Graph, values: Mapping[str, Array]) -> Graph:
    """Make inputs of a graph constant.

    Args:
        graph: that has the inputs.
        values: an array per name, of shape and element type of the input.

    Raises:
        GraphError: a name is no input, or a value is of another type.
    """
    bound = {}
    for name, value in values.items():
        if name not in graph.inputs:
            raise GraphError(f"{name!r} is no input, allowed {', '.join(graph.inputs)}")
        kind = graph.type(name)
        if value.shape != kind.shape or value.dtype != kind.element.dtype:
            raise GraphError(
                f"input {name!r} is {kind.element}{list(kind.shape)}, "
                f"given {value.dtype}{list(value.shape)}"
            )
        bound[name] = replace(graph[name], data=value)
    return replace(
        graph,
        inputs=tuple(name for name in graph.inputs if name not in bound),
        tensors={**graph.tensors, **bound},
    )


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return a graph whose tensors have other names."""

    def called(name: str) -> str:
        return names.get(name, name)

    def all_called(given: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(called, given))

    operations = tuple(
        replace(op, inputs=all_called(op.inputs), outputs=all_called(op.outputs))
        for op in graph.operations
    )
    tensors = {
        called(name): replace(tensor, name=called(name)) for name, tensor in graph.tensors.items()
    }
    states = tuple(
        replace(state, input=called(state.input), output=called(state.output))
        for state in graph.states
    )
    inputs, outputs = all_called(graph.inputs), all_called(graph.outputs)
    return Graph(graph.name, inputs, outputs, tensors, operations, states)
