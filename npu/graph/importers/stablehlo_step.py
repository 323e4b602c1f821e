# SPDX-License-Identifier: Apache-2.0
"""One operation of a StableHLO module as its mapping sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from npu.graph.form import Array, Element, GraphError, TensorType
from npu.graph.importers.assemble import Assembler
from npu.graph.importers.unmapped import UnmappedError

if TYPE_CHECKING:
    from npu.graph.importers.stablehlo_reader import ModuleReader

# What says nothing that a mapping must know: how exactly floats are multiplied, what makes another
# compiler faster, what a composite says once more in other words, and how calls of known targets
# are made.
_SAYS_NOTHING: dict[str, tuple[str, ...]] = {
    "stablehlo.composite": ("composite_attributes", "decomposition", "version"),
    "stablehlo.convolution": ("precision_config",),
    "stablehlo.custom_call": (
        *("api_version", "backend_config", "called_computations", "has_side_effect"),
        *("error_message", "operand_layouts", "output_operand_aliases", "result_layouts"),
    ),
    "stablehlo.dot": ("precision_config",),
    "stablehlo.dot_general": ("precision_config",),
    "stablehlo.gather": ("indices_are_sorted",),
}


@dataclass(frozen=True)
class Step:
    """One operation of the module on its way into the graph.

    Attributes:
        reader: that walks.
        operation: of MLIR.
        inputs: names of tensors.
        results: types of the results.
        wish: for the name of the result.
        asked: names of the attributes that the mapping has asked for.
    """

    reader: ModuleReader
    operation: Any
    inputs: tuple[str, ...]
    results: tuple[TensorType, ...]
    wish: str
    asked: set[str] = field(default_factory=set)

    @property
    def build(self) -> Assembler:
        """The graph under construction."""
        return self.reader.build

    @property
    def source(self) -> str:
        """What it is called in the file."""
        return str(self.operation.name)

    @property
    def type(self) -> TensorType:
        """The type of the first result."""
        return self.results[0]

    def has(self, name: str) -> bool:
        """Say whether an attribute is given."""
        self.asked.add(name)
        return name in self.operation.attributes

    def attribute(self, name: str) -> Any:  # noqa: ANN401
        """Return an attribute that is given, as MLIR has it."""
        self.asked.add(name)
        return self.operation.attributes[name]

    def refuse_unread(self) -> None:
        """Raise UnmappedError for an attribute that the mapping has not asked for.

        What other dialects note about an operation, with a dot in its name, is no part of it.
        """
        known = self.asked.union(_SAYS_NOTHING.get(self.source, ()))
        for name in sorted(self.operation.attributes):
            if name not in known and "." not in name:
                self.refuse(name)

    def refuse(self, name: str) -> None:
        """Raise UnmappedError for the value of an attribute."""
        raise UnmappedError(f"attribute {name} = {str(self.attribute(name))[:80]} is not mapped")

    def only(self, name: str, value: int, count: int = 1) -> None:
        """Raise UnmappedError unless an attribute of integers has one value throughout."""
        if self.ints(name, (value,) * count) != (value,) * count:
            self.refuse(name)

    def ints(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        if not self.has(name):
            return tuple(default)
        return tuple(int(one) for one in np.array(self.attribute(name)).reshape(-1))

    def number(self, name: str, default: int = 0) -> int:
        """Return an attribute that is an integer."""
        return int(self.attribute(name).value) if self.has(name) else default

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of an input."""
        return self.build.shape(self.inputs[index])

    def scalar(self, index: int) -> float | None:
        """Return the value of an input if it is constant and has one value everywhere."""
        return uniform(self.build.value(self.inputs[index]))

    def emit(
        self,
        kind: str,
        inputs: Sequence[str] | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation with the result of this one; return the result's name."""
        given = self.inputs if inputs is None else inputs
        return self.also(kind, given, "", self.type, **attributes)

    def also(
        self,
        kind: str,
        inputs: Sequence[str],
        part: str,
        result: TensorType | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation on the way to the result; return the name of what it gives."""
        wish = f"{self.wish}.{part}" if part else self.wish
        return self.build.add(
            *(kind, inputs), wish=wish, source=self.source, result=result, **attributes
        )

    def error(self, text: str) -> GraphError:
        """Return an error that names the operation."""
        return GraphError(f"{self.build.file}: {self.source} {self.wish}: {text}")


Handler: TypeAlias = Callable[[Step], str | tuple[str, ...] | None]
"""Maps one operation: the name of its result, names of all, or None if it is not known."""


def uniform(value: Array | None) -> float | None:
    """Return the one value that all elements have, None if there is no such value."""
    if value is None or not value.size or value.dtype.kind not in "fiub":
        return None
    first = value.reshape(-1)[0]
    return float(first) if bool(np.all(value == first)) else None


@cache
def defined(kind: type) -> frozenset[str]:
    """Return what the definition of an operation names, of the class that jaxlib has of it."""
    return frozenset(
        name
        for one in kind.__mro__
        if one.__module__.startswith("jaxlib.mlir.dialects.")
        for name, value in vars(one).items()
        if isinstance(value, property)
    )


def refuse_unknown(step: Step) -> None:
    """Raise GraphError for an attribute that nobody reads: MLIR keeps those of any name."""
    kind: type = type(step.operation.opview)
    known = defined(kind).union(_SAYS_NOTHING.get(step.source, ()))
    for name in sorted(step.operation.attributes):
        if "." not in name and name not in known:
            raise step.error(f"attribute {name}, allowed those of its definition")


def narrow(step: Step, inputs: Sequence[str]) -> list[str]:
    """Return operands as they were in front of a broadcast, as far as the result's shape stays."""
    chosen = list(inputs)
    for index, name in enumerate(inputs):
        small = _before_broadcast(step.build, name)
        shapes = [step.build.shape(one) for one in chosen]
        shapes[index] = step.build.shape(small)
        if np.broadcast_shapes(*shapes) == step.type.shape:
            chosen[index] = small
    return chosen


def _before_broadcast(build: Assembler, name: str) -> str:
    value = build.value(name)
    if value is not None:
        one = uniform(value) if value.size > 1 else None
        if one is None:
            return name
        return build.constant(value.reshape(-1)[0].reshape(()), name)
    made = build.producer(name)
    return made.inputs[0] if made is not None and made.kind == "expand" else name


def retyped(found: TensorType, element: Element) -> TensorType:
    """Return a type with another element and no scale."""
    return replace(found, element=element, quantisation=None)
