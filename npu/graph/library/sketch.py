# SPDX-License-Identifier: Apache-2.0
"""Draws an operator of the library: parameters from a seed, and stages with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from npu.graph.build import Builder
from npu.graph.form import Array, Element, Graph, TensorType

_PLAIN: dict[str, dict[str, object]] = {
    "matmul": {"transpose_a": False, "transpose_b": False},
    "conv": {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)},
}
"""Attributes that an operation has unless others are given."""


class Sketch(Builder):
    """A graph of real numbers that grows stage by stage.

    Attributes:
        opened: whether every stage is a result, and none is fused into the next.
        random: where parameters come from.
        stages: names of what the operator makes on its way, the last one included.
    """

    def __init__(self, name: str, seed: int, *, opened: bool = False) -> None:
        """Begin an operator."""
        super().__init__(name)
        self.opened = opened
        self.random = np.random.default_rng(seed)
        self.stages: list[str] = []

    def given(self, name: str, *shape: int, element: Element = Element.F32) -> str:
        """Add an input; return its name."""
        return self.input(name, TensorType(shape, element))

    def parameter(self, name: str, data: Array) -> str:
        """Add a parameter with a value; return its name."""
        return self.constant(np.asarray(data, np.float32), name)

    def weights(self, name: str, *shape: int, fan_in: int = 0) -> str:
        """Add a drawn matrix whose products keep the spread of what they are made of."""
        spread = 1 / np.sqrt(fan_in or shape[-2])
        return self.parameter(name, self.random.normal(0, spread, shape))

    def vector(self, name: str, size: int, middle: float = 0.0, spread: float = 0.5) -> str:
        """Add a drawn row."""
        return self.parameter(name, self.random.normal(middle, spread, size))

    def step(self, kind: str, *inputs: str, **attributes: object) -> str:
        """Add an operation that is no stage of its own; return its result."""
        return self._added(kind, inputs, {"wish": f"{inputs[0]}.{kind}", **attributes})

    def stage(self, name: str, kind: str, *inputs: str, **attributes: object) -> str:
        """Add the operation that ends a stage; return its result, which has the stage's name."""
        self.stages.append(name)
        return self._added(kind, inputs, {"wish": name, "output": name, **attributes})

    def _added(self, kind: str, inputs: Sequence[str], attributes: Mapping[str, Any]) -> str:
        return self.add(kind, inputs, **{**_PLAIN.get(kind, {}), **attributes})

    def heads(self, x: str, count: int) -> str:
        """Return rows (B, S, H*D) as heads (B, H, S, D)."""
        batch, rows, width = self.shape(x)
        split = self.step("reshape", x, shape=(batch, rows, count, width // count))
        return self.step("transpose", split, order=(0, 2, 1, 3))

    def rows(self, x: str) -> str:
        """Return heads (B, H, S, D) as rows (B, S, H*D)."""
        batch, heads, rows, depth = self.shape(x)
        turned = self.step("transpose", x, order=(0, 2, 1, 3))
        return self.step("reshape", turned, shape=(batch, rows, heads * depth))

    def drawn(self, *outputs: str) -> Graph:
        """Return the graph with its results, behind all stages if it is opened."""
        others = [name for name in self.stages if name not in outputs] if self.opened else []
        return self.finish([*others, *outputs])
