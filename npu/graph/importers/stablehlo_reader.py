# SPDX-License-Identifier: Apache-2.0
"""Walking through a StableHLO module: calls inlined, each operation handed to its mapping."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from npu.graph.form import LARGEST, RANK, Element, GraphError, TensorType
from npu.graph.importers.assemble import Assembler
from npu.graph.importers.stablehlo_module import argument_name, functions
from npu.graph.importers.stablehlo_step import Handler, Step, refuse_unknown
from npu.graph.importers.unmapped import UnmappedError

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


class ModuleReader:
    """Walks through a module."""

    def __init__(
        self,
        module: Any,  # noqa: ANN401
        file: str,
        handlers: Mapping[str, Handler],
        opaque: Callable[[Step, str], tuple[str, ...]],
    ) -> None:
        """Begin.

        Args:
            module: of MLIR.
            file: what messages call it.
            handlers: mappings by name of operation.
            opaque: the mapping of all others, with the reason why they have none.
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
        for op in block.operations:
            operation = op.operation
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
        if self._depth > 1:
            self.build.called()
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
            refuse_unknown(step)
            made = self._mapped(step)
        names = (made,) if isinstance(made, str) else made or ()
        self._values.update(zip(operation.results, names, strict=True))

    def _mapped(self, step: Step) -> str | tuple[str, ...]:
        """Map an operation, or make it the host's if its mapping does not know what it says."""
        reason = f"{step.source} has no counterpart among the operations of a graph"
        mark = self.build.mark()
        try:
            handler = self._handlers.get(step.source)
            made = handler(step) if handler else None
            if made is not None:
                step.refuse_unread()
                return made
        except UnmappedError as error:
            reason = f"{step.source}: {error}"
        self.build.back(mark)
        return self._opaque(step, reason)

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
