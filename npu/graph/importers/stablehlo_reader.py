# SPDX-License-Identifier: Apache-2.0
"""Walking through a StableHLO module: calls inlined, each operation handed to its mapping."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from npu.graph.form import LARGEST, RANK, Array, Attribute, Element, GraphError, TensorType
from npu.graph.importers.assemble import Assembler
from npu.graph.importers.stablehlo_module import argument_name, functions

ELEMENTS = {
    "f32": Element.F32,
    "f16": Element.F16,
    "f64": Element.F64,
    "i1": Element.BOOL,
    "i8": Element.I8,
    "i16": Element.I16,
    "i32": Element.I32,
    "i64": Element.I64,
    "ui8": Element.U8,
    "ui16": Element.U16,
    "ui32": Element.U32,
    "ui64": Element.U64,
}
_DEPTH = 64


@dataclass(frozen=True)
class Step:
    """One operation of the module on its way into the graph.

    Attributes:
        reader: that walks.
        operation: of MLIR.
        inputs: names of tensors.
        results: types of the results.
        wish: for the name of the result.
    """

    reader: Reader
    operation: Any
    inputs: tuple[str, ...]
    results: tuple[TensorType, ...]
    wish: str

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
        return name in self.operation.attributes

    def ints(self, name: str, default: Sequence[int] = ()) -> tuple[int, ...]:
        """Return an attribute that is a list of integers."""
        if not self.has(name):
            return tuple(default)
        return tuple(int(one) for one in np.array(self.operation.attributes[name]).reshape(-1))

    def number(self, name: str, default: int = 0) -> int:
        """Return an attribute that is an integer."""
        return int(self.operation.attributes[name].value) if self.has(name) else default

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of an input."""
        return self.build.shape(self.inputs[index])

    def scalar(self, index: int) -> float | None:
        """Return the value of an input if it is constant and has one value everywhere."""
        return uniform(self.build.value(self.inputs[index]))

    def emit(self, kind: str, inputs: Sequence[str] | None = None, **attributes: Attribute) -> str:
        """Add an operation with the result of this one; return the result's name."""
        given = self.inputs if inputs is None else inputs
        return self.build.one(kind, given, self.wish, self.type, self.source, **attributes)

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


class Reader:
    """Walks through a module."""

    def __init__(
        self,
        module: Any,  # noqa: ANN401
        file: str,
        handlers: Mapping[str, Handler],
        opaque: Handler,
    ) -> None:
        """Begin.

        Args:
            module: of MLIR.
            file: what messages call it.
            handlers: mappings by name of operation.
            opaque: the mapping of all others.
        """
        self.module = module
        self.build = Assembler(file)
        self.functions = functions(module)
        self._handlers, self._opaque = handlers, opaque
        self._values: dict[Any, str] = {}
        self._depth = 0

    def inputs(self) -> list[str]:
        """Add the inputs of the graph."""
        block = self.functions["@main"].regions[0].blocks[0]
        found = []
        for index, argument in enumerate(block.arguments):
            name = argument_name(argument, index)
            found.append(self.build.add_input(name, self.type_of(argument.type, name)))
        return found

    def type_of(self, given: Any, where: str) -> TensorType:  # noqa: ANN401
        """Return the type of a tensor of MLIR. Raises GraphError if a graph cannot hold it."""
        text = str(given)
        found = re.fullmatch(r"tensor<((?:[0-9?]+x)*)([a-z0-9]+)(?:, .*)?>", text)
        if found is None or found[2] not in ELEMENTS:
            raise GraphError(
                f"{self.build.file}: {where}: type {text}, allowed tensors of "
                f"{', '.join(ELEMENTS)} (other floats: convert them to f32 in the network)"
            )
        if "?" in found[1]:
            raise GraphError(
                f"{self.build.file}: {where}: free dimensions in {text}, allowed fixed ones: "
                "give --shape for each input with a free dimension"
            )
        shape = tuple(int(size) for size in found[1].split("x")[:-1])
        if len(shape) > RANK or math.prod(shape) > LARGEST:
            raise GraphError(
                f"{self.build.file}: {where}: type {text[:200]}, allowed up to {RANK} axes and "
                f"{LARGEST:,} elements"
            )
        return TensorType(shape, ELEMENTS[found[2]])

    def call(self, function: Any, inputs: Sequence[str]) -> tuple[str, ...]:  # noqa: ANN401
        """Inline a function; return the names of its results."""
        self._depth += 1
        if self._depth > _DEPTH:
            raise GraphError(f"{self.build.file}: calls {_DEPTH} deep, allowed less")
        if len(function.regions[0].blocks) != 1:
            raise GraphError(
                f"{self.build.file}: {function.attributes['sym_name']}: "
                f"{len(function.regions[0].blocks)} blocks, allowed 1"
            )
        block = function.regions[0].blocks[0]
        outer = self._values
        self._values = dict(zip(block.arguments, inputs, strict=True))
        results: tuple[str, ...] = ()
        for one in block.operations:
            operation = one.operation
            if operation.name in ("func.return", "stablehlo.return"):
                results = tuple(self._values[value] for value in operation.operands)
            else:
                self._read(operation)
        self._values = outer
        self._depth -= 1
        return results

    def name_of(self, value: Any) -> str:  # noqa: ANN401
        """Return the name of the tensor that a value of MLIR became."""
        return self._values[value]

    def _read(self, operation: Any) -> None:  # noqa: ANN401
        wish = _wish(operation)
        inputs = tuple(self._values[value] for value in operation.operands)
        if operation.name in ("func.call", "call"):
            made: str | tuple[str, ...] | None = self.call(
                self._callee(operation, "callee"), inputs
            )
        else:
            where = f"{operation.name} {wish}"
            types = tuple(self.type_of(one.type, where) for one in operation.results)
            step = Step(self, operation, inputs, types, wish)
            handler = self._handlers.get(operation.name)
            made = handler(step) if handler else None
            if made is None:
                made = self._opaque(step)
        names = (made,) if isinstance(made, str) else made or ()
        self._values.update(zip(operation.results, names, strict=True))

    def inline(self, step: Step, attribute: str) -> tuple[str, ...]:
        """Inline the function that an attribute of an operation names."""
        return self.call(self._callee(step.operation, attribute), step.inputs)

    def _callee(self, operation: Any, attribute: str) -> Any:  # noqa: ANN401
        name = str(operation.attributes[attribute]).replace('"', "")
        if name not in self.functions:
            raise GraphError(f"{self.build.file}: call of {name}, allowed functions of the module")
        return self.functions[name]


def _wish(operation: Any) -> str:  # noqa: ANN401
    """Return a name for what an operation makes: the end of its location, else of its name."""
    found = re.match(r'loc\("([^"()]*/)?([A-Za-z0-9_.]+)"', str(operation.location))
    return found[2] if found else str(operation.name).split(".")[-1]


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


def result_names(function: Any) -> list[str]:  # noqa: ANN401
    """Return what the results of @main are called."""
    count = len(function.attributes["function_type"].value.results)
    names = [f"result{index}" if count > 1 else "result" for index in range(count)]
    if "res_attrs" not in function.attributes:
        return names
    for index, one in enumerate(function.attributes["res_attrs"]):
        found = re.search(r'jax.result_info = "([^"]+)"', str(one))
        names[index] = found[1] if found else names[index]
    return names


def retyped(found: TensorType, element: Element) -> TensorType:
    """Return a type with another element and no scale."""
    return replace(found, element=element, quantisation=None)
