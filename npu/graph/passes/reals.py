# SPDX-License-Identifier: Apache-2.0
"""Reals of 16 and 64 bits become those of 32, which the chip takes, between the graph's borders.

Inputs and outputs keep their types, and so does what has them for a reason: an operation of the
host that only its source knows, and a product on the command port, whose operands are codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Element, Graph, Names, Operation, Tensor, TensorType

_OTHER = frozenset({Element.F16, Element.F64})
_KEPT = frozenset({"host", "portmatmul"})


def as_float32(graph: Graph) -> Graph:
    """Return a graph whose operations compute with reals of 32 bits."""
    if all(one.type.element not in _OTHER for one in graph.tensors.values()):
        return graph
    return _Change(graph).graph()


class _Change:
    """A graph on its way."""

    def __init__(self, graph: Graph) -> None:
        self.before = graph
        self.names = Names(graph.tensors)
        self.labels = Names(op.name for op in graph.operations)
        self.tensors = dict(graph.tensors)
        self.operations: list[Operation] = []
        self.real: dict[str, str] = {}
        """What stands for a tensor of other reals, in 32 bits."""

    def graph(self) -> Graph:
        for name in self.before.inputs:
            self._taken(name)
        for op in self.before.operations:
            self._operation(op)
        return replace(self.before, tensors=self.tensors, operations=tuple(self.operations))

    def _is_other(self, name: str) -> bool:
        return bool(name) and self.before.type(name).element in _OTHER

    def _taken(self, name: str) -> None:
        """Add what stands for a tensor that keeps its type."""
        if self._is_other(name):
            self.real[name] = self._tensor(name)
            self._cast(name, self.real[name], Element.F32)

    def _tensor(self, name: str, data: Array | None = None) -> str:
        kind = TensorType(self.before.type(name).shape, Element.F32)
        made = self.names.fresh(f"{name}.float32")
        self.tensors[made] = Tensor(made, kind, data)
        return made

    def _cast(self, source: str, result: str, element: Element) -> None:
        given = {"element": element.value}
        label = self.labels.fresh(f"{result}.cast")
        self.operations.append(Operation(label, "cast", (source,), (result,), given, "Cast"))

    def _real(self, name: str) -> str:
        """Return the tensor of 32 bits in place of one; a constant is turned at once."""
        if not self._is_other(name):
            return name
        data = self.before.tensors[name].data
        if name not in self.real and data is not None:
            edge = np.finfo(np.float32).max
            finite = np.clip(data, -edge, edge) if data.dtype.itemsize > 4 else data
            kept = np.where(np.isfinite(data), finite, data).astype(np.float32)
            self.real[name] = self._tensor(name, kept)
        return self.real[name]

    def _operation(self, op: Operation) -> None:
        if op.kind in _KEPT:
            self.operations.append(op)
            for name in op.outputs:
                self._taken(name)
            return
        results = [self._result(name) for name in op.outputs]
        given = dict(op.attributes)
        if op.kind == "cast" and given["element"] in _OTHER:
            given["element"] = Element.F32.value
        inputs = tuple(self._real(name) for name in op.inputs)
        self.operations.append(replace(op, inputs=inputs, outputs=tuple(results), attributes=given))
        for name in op.outputs:
            if self._is_other(name) and self._wanted(name):
                self._cast(self.real[name], name, self.before.type(name).element)
            elif self._is_other(name):
                del self.tensors[name]

    def _result(self, name: str) -> str:
        if self._is_other(name):
            self.real[name] = self._tensor(name)
            return self.real[name]
        return name

    def _wanted(self, name: str) -> bool:
        """Say whether a result is needed in its own type."""
        readers: Sequence[Operation] = self.before.operations
        kept = (each for each in readers if each.kind in _KEPT)
        return name in self.before.outputs or any(name in each.used for each in kept)
