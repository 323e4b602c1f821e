# SPDX-License-Identifier: Apache-2.0
"""What random graphs grow in: the tensors so far, with their values, and how more are added.

Values are known while a graph grows, so that factors of requantisation are drawn to fit them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from golden.graph import run
from golden.requantize import factor
from npu.graph.form import (
    Array,
    Attribute,
    Element,
    Graph,
    Operation,
    Place,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)
from npu.graph.operations import infer
from tests.python.golden_support import integers

SIZES = (1, 1, 2, 3, 4, 7, 8, 15, 16, 17, 24, 31, 32, 33, 48, 64)
MOST = 1 << 14
"""Elements of a tensor."""
SCORE = float(np.log(2) / 64)
"""The scale of scores: 2^-6 of a binary logarithm."""
STEP8, STEP16 = 0.05, 0.001
PLAIN8 = Quantisation((STEP8,))
PLAIN16 = Quantisation((STEP16,))
SCORES = Quantisation((SCORE,))
Predicate = Callable[[TensorType], bool]


def factors(scale: Array) -> dict[str, Array]:
    """Return mult and shift of positive factors, in their shape."""
    found = [factor(float(one)) for one in np.asarray(scale).ravel()]
    return {
        "mult": np.array([one[0] for one in found], np.uint16).reshape(scale.shape),
        "shift": np.array([one[1] for one in found], np.uint8).reshape(scale.shape),
    }


class Pool:
    """A graph that grows, and the value of each of its tensors."""

    def __init__(self, seed: int) -> None:
        """Begin an empty graph."""
        self.rng = np.random.default_rng(seed)
        self.name = f"random {seed}"
        self.tensors: dict[str, Tensor] = {}
        self.values: dict[str, Array] = {}
        self.inputs: list[str] = []
        self.operations: list[Operation] = []
        self.final: set[str] = set()

    def chance(self, probability: float) -> bool:
        """Return True with a probability."""
        return bool(self.rng.random() < probability)

    def number(self, low: int, high: int) -> int:
        """Return an integer of low..high."""
        return int(self.rng.integers(low, high + 1))

    def choice(self, among: Any) -> Any:  # noqa: ANN401
        """Return one of a sequence."""
        return among[self.number(0, len(among) - 1)]

    def shape(self, rank: int, *, even: bool = False) -> tuple[int, ...]:
        """Return a shape of awkward sizes that is not too large."""
        while True:
            sizes = [self.choice(SIZES) for _ in range(rank)]
            sizes[-1] *= 1 + (even and sizes[-1] % 2)
            if np.prod(sizes) <= MOST:
                return tuple(sizes)

    def quantisation(self, element: Element) -> Quantisation:
        """Return a scale and a zero point; most zero points are 0."""
        if element == Element.I16:
            return self.choice((PLAIN16, PLAIN16, SCORES))  # type: ignore[no-any-return]
        edge = np.iinfo(element.dtype)
        zeros = (int(edge.min), int(edge.max), self.number(int(edge.min), int(edge.max)))
        return Quantisation((STEP8,), self.choice(zeros) if self.chance(0.35) else 0)

    def constant(self, value: Array, quantisation: Quantisation | None = None) -> str:
        """Add a constant."""
        kind = TensorType(value.shape, Element.of(value.dtype), quantisation)
        name = f"c{len(self.tensors)}"
        self.tensors[name] = Tensor(name, kind, value)
        self.values[name] = value
        return name

    def fresh(self, kind: TensorType) -> str:
        """Return an input of the graph, quantised by the host now and then."""
        shape, element = kind.shape, kind.element
        dtype = element.dtype.type
        value = integers(self.rng, dtype, shape, corners=self.choice((0.0, 0.2)))
        if kind.quantisation == SCORES and self.chance(0.7):
            value = np.clip(np.rint(self.rng.normal(0, 200, shape)), -32768, 32767).astype(dtype)
        if kind.quantisation is not None and self.chance(0.3):
            wide = value.astype(np.float32) - kind.quantisation.zero
            real = (wide * np.float32(kind.quantisation.scale)).astype(np.float32)
            name = self._input(TensorType(shape), real)
            return self.add("quantise", (name,), element, kind.quantisation, chip=False)
        return self._input(kind, value)

    def _input(self, kind: TensorType, value: Array) -> str:
        name = f"x{len(self.inputs)}"
        self.inputs.append(name)
        self.tensors[name] = Tensor(name, kind)
        self.values[name] = value
        return name

    def indices(self, shape: tuple[int, ...], size: int) -> str:
        """Return an input of the graph that holds indices below a size."""
        value = self.rng.integers(0, size, shape).astype(np.int32)
        return self._input(TensorType(shape, Element.I32), value)

    def take(self, wanted: Predicate, make: Callable[[], TensorType]) -> str:
        """Return a tensor that fits, mostly one that an operation made, else a new input."""
        fitting = [
            name
            for name, one in self.tensors.items()
            if not one.constant and name not in self.final and wanted(one.type)
        ]
        if fitting and self.chance(0.85):
            recent = fitting[-4:]
            return str(self.choice(recent if self.chance(0.7) else fitting))
        return self.fresh(make())

    def like(self, kind: TensorType) -> str:
        """Return a tensor of exactly this type."""
        return self.take(lambda other: other == kind, lambda: kind)

    def spread(self, name: str, zero: int = 0) -> float:
        """Return the root mean square of a tensor's integers, at least 1."""
        wide = self.values[name].astype(np.float64) - zero
        return max(1.0, float(np.sqrt(np.square(wide).mean()))) if wide.size else 1.0

    def add(
        self,
        kind: str,
        inputs: tuple[str, ...],
        element: Element,
        quantisation: Quantisation | None,
        attributes: Mapping[str, Attribute] | None = None,
        integers: Mapping[str, Array] | None = None,
        *,
        chip: bool = True,
    ) -> str:
        """Add an operation and evaluate it; return its result."""
        given = attributes or {}
        (result,) = infer(kind, given, [self.tensors[name].type for name in inputs])
        assert result.shape is not None, kind
        number = len(self.operations)
        place = Place(Target.NPU, "drawn") if chip else Place(Target.HOST, "drawn for the host")
        name = f"t{number}"
        operation = Operation(
            f"{kind}{number}", kind, inputs, (name,), given, kind, place, integers or {}
        )
        self.tensors[name] = Tensor(name, TensorType(result.shape, element, quantisation))
        self.operations.append(operation)
        self.values[name] = self._value(operation)
        return name

    def _value(self, operation: Operation) -> Array:
        names = (*operation.inputs, *operation.outputs)
        free = tuple(dict.fromkeys(n for n in operation.inputs if not self.tensors[n].constant))
        known = {name: self.tensors[name] for name in names}
        alone = Graph(self.name, free, operation.outputs, known, (operation,))
        return run(alone, {name: self.values[name] for name in free})[operation.outputs[0]]

    def finish(self) -> tuple[Graph, dict[str, Array]]:
        """Return the graph, whose outputs are what nothing reads and some more, and its inputs."""
        read = {name for one in self.operations for name in one.used}
        made = [one.outputs[0] for one in self.operations]
        outputs = tuple(n for n in made if n not in read or (n != made[-1] and self.chance(0.05)))
        graph = Graph(
            self.name, tuple(self.inputs), outputs, dict(self.tensors), tuple(self.operations)
        )
        return graph, {name: self.values[name] for name in self.inputs}
