# SPDX-License-Identifier: Apache-2.0
"""The typed form of a network: tensors, operations and graphs, in single assignment.

A graph is a value: a pass takes one and returns another, and nothing changes one in place. Layout
is no part of a type; which words of SRAM or memory a tensor takes is the schedule's affair. The
text of a graph is written and read by `npu.graph.text`, what each kind of operation takes and means
stands in `npu.graph.operations`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
Attribute: TypeAlias = (
    bool | int | float | str | bytes | tuple[int, ...] | tuple[float, ...] | tuple[str, ...]
)

RANK = 16
LARGEST = 1 << 28
"""Limits of a tensor: what is larger is a damaged file."""


class Element(StrEnum):
    """The type of an element; the values are the names of numpy."""

    F32 = "float32"
    I32 = "int32"
    I16 = "int16"
    I8 = "int8"
    U8 = "uint8"
    BOOL = "bool"
    F16 = "float16"
    F64 = "float64"
    I64 = "int64"
    U16 = "uint16"
    U32 = "uint32"
    U64 = "uint64"

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type as numpy has it."""
        return np.dtype(self.value)

    @classmethod
    def of(cls, dtype: npt.DTypeLike) -> Element:
        """Return the type of a numpy type. Raises ValueError for one that a graph cannot hold."""
        return cls(np.dtype(dtype).name)


@dataclass(frozen=True, slots=True)
class Quantisation:
    """What the integers of a tensor stand for: real = scale * (integer - zero).

    Attributes:
        scales: one for the tensor, or one for each index of `axis`.
        zero: the integer that stands for 0.
        axis: None for one scale.
        format: the word of a recipe for weights that a narrow format holds exactly, and that are
            to lie so in the stream; "" for all else.
    """

    scales: tuple[float, ...]
    zero: int = 0
    axis: int | None = None
    format: str = ""

    @property
    def scale(self) -> float:
        """The scale of a tensor that has one. Raises ValueError for one that has several."""
        if self.axis is not None:
            raise ValueError(f"a scale per index of axis {self.axis}, allowed one scale")
        return self.scales[0]


@dataclass(frozen=True, slots=True)
class TensorType:
    """Shape, element type and, once quantised, what the integers stand for."""

    shape: tuple[int, ...]
    element: Element = Element.F32
    quantisation: Quantisation | None = None

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of all elements, with the host."""
        return self.size * self.element.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of a graph.

    Attributes:
        name: unique in the graph, the one in the user's file where it has one there.
        type: as above.
        data: its value if it is constant, in `type.shape` and `type.element.dtype`.
    """

    name: str
    type: TensorType
    data: Array | None = field(default=None, repr=False)

    @property
    def constant(self) -> bool:
        """Whether its value is known."""
        return self.data is not None

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        return self.type.shape


class Target(StrEnum):
    """Who executes an operation."""

    NPU = "npu"
    PORT = "port"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class OperationPlace:
    """Who executes an operation, and why; the reason is a sentence for people."""

    target: Target
    reason: str


@dataclass(frozen=True, eq=False)
class Operation:
    """An operation of a graph.

    Attributes:
        name: unique in the graph, the one in the user's file where it has one there.
        kind: a name of the table of operations.
        inputs: names of tensors; "" for an optional one that is not given.
        outputs: names of tensors that it alone assigns.
        attributes: as the table has them for the kind; every one is given.
        source: what it is called in the user's file ("Conv", "stablehlo.dot_general"), with what
            else became part of it behind it, separated by " + ".
        place: who executes it, from the pass `place` on.
        integers: what the chip computes with, from the pass `fuse` on: arrays by name, as the
            table's integer meaning has them.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Attribute] = field(default_factory=dict)
    source: str = ""
    place: OperationPlace | None = None
    integers: Mapping[str, Array] = field(default_factory=dict, repr=False)

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        """Return an attribute."""
        return self.attributes[name]

    @property
    def used(self) -> tuple[str, ...]:
        """The inputs that are given."""
        return tuple(name for name in self.inputs if name)

    @property
    def on_chip(self) -> bool:
        """Whether a program of the chip executes it."""
        return self.place is not None and self.place.target == Target.NPU

    @property
    def on_port(self) -> bool:
        """Whether the command port executes it."""
        return self.place is not None and self.place.target == Target.PORT


@dataclass(frozen=True, eq=False)
class State:
    """A tensor that lives from run to run.

    Attributes:
        input: of the graph, what the run before has left.
        output: of the graph, what this run leaves; of the same type.
        initial: what the first run finds; None for zeros, which are zero points of integers.
    """

    input: str
    output: str
    initial: Array | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Graph:
    """A network.

    Attributes:
        name: of the network.
        inputs, outputs: names of tensors in the order of the user's file.
        tensors: all of them by name.
        operations: in an order in which each stands behind those whose results it takes.
        states: inputs that nobody gives, and outputs that nobody gets but the next run.
    """

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    tensors: Mapping[str, Tensor]
    operations: tuple[Operation, ...]
    states: tuple[State, ...] = ()

    def __getitem__(self, name: str) -> Tensor:
        """Return a tensor."""
        return self.tensors[name]

    def type(self, name: str) -> TensorType:
        """Return the type of a tensor."""
        return self.tensors[name].type

    @property
    def arguments(self) -> tuple[str, ...]:
        """The inputs that somebody gives."""
        kept = {one.input for one in self.states}
        return tuple(name for name in self.inputs if name not in kept)

    @property
    def results(self) -> tuple[str, ...]:
        """The outputs that somebody gets."""
        kept = {one.output for one in self.states}
        return tuple(name for name in self.outputs if name not in kept)

    def constant(self, name: str) -> Array | None:
        """Return the value of a tensor if it is constant; None for "" too."""
        return self.tensors[name].data if name else None

    def producers(self) -> dict[str, Operation]:
        """Return the operation that assigns each tensor that one assigns."""
        return {name: op for op in self.operations for name in op.outputs}

    def consumers(self) -> dict[str, list[Operation]]:
        """Return the operations that read each tensor, each once, in their order."""
        found: dict[str, list[Operation]] = {name: [] for name in self.tensors}
        for op in self.operations:
            for name in dict.fromkeys(op.used):
                found[name].append(op)
        return found

    def with_operations(
        self, operations: Iterable[Operation], tensors: Iterable[Tensor] = ()
    ) -> Graph:
        """Return the graph with other operations, and tensors added or exchanged by name.

        Tensors that nothing reads, assigns or returns any more are dropped.
        """
        kept = tuple(operations)
        known = {**self.tensors, **{tensor.name: tensor for tensor in tensors}}
        alive = {*self.inputs, *self.outputs}
        for one in kept:
            alive.update(one.used, one.outputs)
        return replace(
            self,
            operations=kept,
            tensors={name: tensor for name, tensor in known.items() if name in alive},
        )


class Names:
    """Hands out names that a graph does not have yet."""

    def __init__(self, taken: Iterable[str]) -> None:
        """Take the names that exist."""
        self._taken = set(taken)
        self._last: dict[str, int] = {}  # number given to a wish; all below it are taken

    def fresh(self, wish: str) -> str:
        """Return the wish, or the wish with a number behind it."""
        name, number = wish, self._last.get(wish, 1)
        while name in self._taken:
            number += 1
            name = f"{wish}.{number}"
        self._last[wish] = number
        self._taken.add(name)
        return name


def all_names(graph: Graph) -> Iterator[str]:
    """Yield the names of tensors and operations."""
    yield from graph.tensors
    for op in graph.operations:
        yield op.name


class GraphError(ValueError):
    """A graph or its file is wrong; the message says where, what was given and what is allowed."""


class UnfusedError(GraphError):
    """An operation of the chip whose numbers its instructions do not hold.

    Attributes:
        operation: its name.
        why: the reason.
    """

    def __init__(self, where: str, operation: str, why: str) -> None:
        """Take how an error calls the operation, its name and the reason."""
        super().__init__(f"{where}: {why}")
        self.operation, self.why = operation, why
