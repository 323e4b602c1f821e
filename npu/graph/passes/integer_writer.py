# SPDX-License-Identifier: Apache-2.0
"""Writes integer operations, and brings integers of one scale to another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from npu.graph.form import Array, Element, Graph, Operation, Quantisation, TensorType
from npu.graph.operations.borders import dequantised, quantised
from npu.graph.operations.functions import apply
from npu.graph.passes.factors import PREFIX_MAX, signed_factor
from npu.graph.passes.facts import CHIP_BYTES, LINEAR, Facts, quantisation_of, same_numbers
from npu.graph.passes.products import uniform
from npu.graph.passes.rewriter import Rewriter

Lowering: TypeAlias = "Callable[[IntegerWriter, Operation], None]"


class IntegerWriter(Rewriter):
    """A rewriter that knows conversions.

    Attributes:
        done: names of operations that became part of an earlier one.
        facts: of the quantised graph.
    """

    def __init__(self, graph: Graph) -> None:
        """Begin an empty list of operations."""
        super().__init__(graph)
        self.facts = Facts(graph)
        self.done: set[str] = set()
        self._converted: dict[tuple[str, TensorType], str] = {}
        self._makers: dict[str, int] = {}

    def alone(self, name: str) -> bool:
        """Say whether one operation reads a tensor of the quantised graph, and no user."""
        return name not in self.graph.tensors or self.facts.only_reader(name) is not None

    def product_before(self, name: str) -> Operation | None:
        """Return the written product that makes a tensor which one operation alone reads."""
        if not self.alone(name):
            return None
        for op in reversed(self.operations):
            if name in op.outputs:
                return op if op.kind in LINEAR and "mult" in op.integers else None
        return None

    def merge(
        self,
        before: Operation,
        after: Operation,
        *,
        inputs: Sequence[str] = (),
        integers: Mapping[str, Array] | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> None:
        """Write a product again that now does what followed it, in the place of that."""
        self.operations.remove(before)
        source = " + ".join(dict.fromkeys(filter(None, (before.source, after.source))))
        self.operations.append(
            replace(
                before,
                inputs=(*before.inputs, *inputs),
                outputs=after.outputs,
                attributes={**before.attributes, **attributes},
                integers={**before.integers, **(integers or {})},
                source=source,
            )
        )

    def convert(self, like: Operation, name: str, kind: TensorType, output: str = "") -> str:
        """Return the same real numbers in integers of another type.

        Args:
            like: the operation that wants them.
            name: of integers.
            kind: element type and quantisation; the shape is that of the tensor.
            output: an existing tensor to assign; if empty, a conversion is made once.
        """
        source = self.type(name)
        kind = replace(kind, shape=source.shape)
        if same_numbers(source, kind) and not output:
            return name
        data = self.value(name)
        if data is not None:
            made = quantised(dequantised(data, source), kind)
            return self.constant(made, f"{name}.{kind.element.value}", kind.quantisation)
        if (name, kind) in self._converted and not output:
            return self._converted[name, kind]
        made_name = self._convert(like, name, source, kind, output)
        self._converted[name, kind] = made_name
        return made_name

    def _convert(
        self, like: Operation, name: str, source: TensorType, kind: TensorType, output: str
    ) -> str:
        old, new = quantisation_of(source), quantisation_of(kind)
        part = "" if output else f"as.{kind.element.value}"
        if same_numbers(source, kind):
            return self.emit(like, "identity", (name,), part=part, output=output, result=kind)
        if source.element in CHIP_BYTES and kind.element == Element.I8:
            return self.table(like, name, kind, (), (), part=part, output=output)
        if old.zero == 0 and new.zero == 0 and source.element != Element.U8:
            real = old.scale / new.scale
            if kind.element == Element.I16:
                real = min(real, PREFIX_MAX)  # All but 0 saturates.
            mult, shift = signed_factor(real)
            return self.emit(
                like,
                "requantise",
                (name,),
                part=part,
                output=output,
                result=kind,
                mult=mult,
                shift=shift,
            )
        return uniform(self, like, name, kind, output)

    def table(
        self,
        like: Operation,
        name: str,
        kind: TensorType,
        functions: Sequence[str],
        parameters: Sequence[float],
        *,
        part: str = "",
        output: str = "",
    ) -> str:
        """Write a table of functions from a tensor of bytes to int8; return its result."""
        entries = table_of(self.type(name), kind, functions, parameters)
        return self.emit(
            like,
            "table",
            (name,),
            part=part,
            output=output,
            result=kind,
            integers={"table": entries},
            functions=functions or ("scale",),
            parameters=parameters if functions else (1.0,),
        )

    def intermediate(self, like: Operation, part: str, kind: TensorType) -> str:
        """Add a tensor that an operation makes on the way to its result."""
        return self.tensor(f"{like.name}.{part}", kind)


def table_of(
    source: TensorType, kind: TensorType, functions: Sequence[str], parameters: Sequence[float]
) -> Array:
    """Return (256,) int8: entry i is the result for the byte i of the input.

    What has no finite value is 0, as zero is where a function ends.
    """
    stored = np.arange(256, dtype=np.uint8).view(source.element.dtype).astype(np.float64)
    old, new = quantisation_of(source), quantisation_of(kind)
    real = (stored - old.zero) * old.scale
    if functions:
        real = apply(functions, parameters, real)
    with np.errstate(all="ignore"):
        steps = np.rint(real / new.scale)
    steps = np.nan_to_num(steps, nan=0.0, posinf=1e9, neginf=-1e9) + new.zero
    return np.clip(steps, -128, 127).astype(np.int8)


def symmetric(shape: tuple[int, ...], element: Element, scale: float) -> TensorType:
    """Return a type with zero point 0."""
    return TensorType(shape, element, Quantisation((float(scale),)))
