# SPDX-License-Identifier: Apache-2.0
"""A random quantised graph under construction.

Inputs and weights are full-range, factors such that results spread over their range instead of
saturating or vanishing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from npu.graph.form import (
    Array,
    Element,
    Operation,
    OperationPlace,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)

Shape = tuple[int, ...]
CHIP = OperationPlace(Target.NPU, "drawn for the chip")
HOST = OperationPlace(Target.HOST, "drawn for the host")
MOST_ELEMENTS = 20_000
"""Of a tensor."""
UNFUSED: dict[str, Any] = {
    "relu": False,
    "combine": "",
    "product_mult": 0,
    "product_shift": 0,
}
SPREAD = 45.0
"""Standard deviation that results of int8 aim at."""


@dataclass
class Draw:
    """A graph under construction."""

    random: np.random.Generator
    tensors: dict[str, Tensor] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    live: list[str] = field(default_factory=list)
    kinds: set[str] = field(default_factory=set)

    def whole(self, low: int, high: int) -> int:
        """Return a number of low..high."""
        return int(self.random.integers(low, high + 1))

    def one_of(self, *choices: Any) -> Any:  # noqa: ANN401
        """Return one of the choices."""
        return choices[self.whole(0, len(choices) - 1)]

    def chance(self, share: float) -> bool:
        """Return True in a share of the calls."""
        return bool(self.random.random() < share)

    def bytes(self, shape: Shape, low: int = -128, high: int = 127) -> Array:
        """Return int8 numbers of low..high."""
        return self.random.integers(low, high + 1, shape).astype(np.int8)

    def tensor(
        self,
        shape: Shape,
        element: Element = Element.I8,
        data: Array | None = None,
        zero: int = 0,
        scale: float = 1.0,
        *,
        plain: bool = False,
    ) -> str:
        """Add a tensor, one without scale and zero if plain; return its name."""
        name = f"t{len(self.tensors)}"
        quantisation = None if plain else Quantisation((scale,), zero)
        self.tensors[name] = Tensor(name, TensorType(shape, element, quantisation), data)
        return name

    def add(
        self,
        kind: str,
        inputs: tuple[str, ...],
        shape: Shape,
        attributes: Mapping[str, Any] | None = None,
        integers: Mapping[str, Array] | None = None,
        element: Element = Element.I8,
        *,
        place: OperationPlace = CHIP,
        live: bool = True,
        plain: bool = False,
        zero: int = 0,
        scale: float = 1.0,
    ) -> str:
        """Add an operation; return the name of its result."""
        result = self.tensor(shape, element, zero=zero, scale=scale, plain=plain)
        name = f"o{len(self.operations)}"
        self.operations.append(
            Operation(name, kind, inputs, (result,), attributes or {}, kind, place, integers or {})
        )
        self.kinds.add(kind)
        if live:
            self.live.append(result)
        return result

    def shape(self, name: str) -> Shape:
        """Return the shape of a tensor."""
        return self.tensors[name].shape

    def element(self, name: str) -> Element:
        """Return the element type of a tensor."""
        return self.tensors[name].type.element

    def scale(self, name: str) -> float:
        """Return the scale of a tensor."""
        quantisation = self.tensors[name].type.quantisation
        return 1.0 if quantisation is None else quantisation.scale

    def pick(self, *elements: Element, rank: int | None = None) -> str | None:
        """Return a tensor of one of the types, recent ones more often; None if there is none."""
        wanted = elements or (Element.I8,)
        found = [
            name
            for name in self.live
            if self.element(name) in wanted and rank in (None, len(self.shape(name)))
        ]
        if not found:
            return None
        return found[max(self.whole(0, len(found) - 1), self.whole(0, len(found) - 1))]

    def factors(self, columns: int, spread: float, aim: float = SPREAD) -> dict[str, Array]:
        """Return mult and shift per column that bring a spread to the aim."""
        count = columns if self.chance(0.8) else 1
        mult = self.random.integers(1 << 14, 1 << 15, count)
        shift = np.clip(np.round(np.log2(mult * max(spread, 1.0) / aim)), 0, 63)
        return {"mult": mult.astype(np.uint16), "shift": shift.astype(np.uint8)}

    def finish(self, columns: int, spread: float, *, wide: bool = False) -> dict[str, Array]:
        """Return bias and factors of a linear operation."""
        most = int(max(spread, 1))
        bias = self.random.integers(-most, most + 1, columns).astype(np.int32)
        aim = 9000.0 if wide else SPREAD
        return {"bias": bias, **self.factors(columns, spread, aim)}

    def epilogue(
        self, shape: Shape, integers: dict[str, Array], element: Element
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return attributes behind the sums and the operand; a table joins the integers."""
        attributes = dict(UNFUSED)
        attributes["relu"] = self.chance(0.3)
        if element is Element.I8 and self.chance(0.25):
            integers["table"] = self.bytes((256,))
        if self.chance(0.3):
            operand = self.operand(shape, element)
            attributes["combine"] = "add"
            if element is Element.I8 and self.chance(0.4):
                mult = self.whole(1 << 14, (1 << 15) - 1)
                attributes |= {"combine": "mul", "product_mult": mult, "product_shift": 20}
            return attributes, (operand,)
        return attributes, ()

    def operand(self, shape: Shape, element: Element, scale: float | None = None) -> str:
        """Return a tensor of a shape, and a scale if given: one that is there, or a new input."""
        for name in reversed(self.live):
            fits = scale is None or self.scale(name) == scale
            if fits and self.shape(name) == shape and self.element(name) is element:
                return name
        return self.input(shape, element, scale)

    def input(self, shape: Shape, element: Element = Element.I8, scale: float | None = None) -> str:
        """Add an input of integers."""
        drawn = self.one_of(1.0, 1.0, 0.05) if scale is None else scale
        name = self.tensor(shape, element, scale=drawn)
        self.inputs.append(name)
        self.live.append(name)
        return name
