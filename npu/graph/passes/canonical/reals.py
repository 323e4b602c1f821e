# SPDX-License-Identifier: Apache-2.0
"""Reals of 16 and 64 bits become those of 32, which the chip takes, between the graph's borders.

Inputs and outputs keep their types, and so does what has them for a reason: an operation of the
host that only its source knows, and a product on the command port, whose operands are codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from npu.graph.form import Array, Element, Graph, Operation, TensorType
from npu.graph.passes.rewriter import Rewriter

_OTHER = frozenset({Element.F16, Element.F64})
_KEPT = frozenset({"host", "portmatmul"})


def as_float32(graph: Graph) -> Graph:
    """Return a graph whose operations compute with reals of 32 bits."""
    if all(one.type.element not in _OTHER for one in graph.tensors.values()):
        return graph
    return _Change(graph).changed()


class _Change(Rewriter):
    """A graph on its way."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.real: dict[str, str] = {}
        """What stands for a tensor of other reals, in 32 bits."""

    def changed(self) -> Graph:
        for name in self.graph.inputs:
            self._taken(name)
        for op in self.graph.operations:
            self._operation(op)
        return self.rewritten()

    def _is_other(self, name: str) -> bool:
        return bool(name) and self.graph.type(name).element in _OTHER

    def _taken(self, name: str) -> None:
        """Add what stands for a tensor that keeps its type."""
        if self._is_other(name):
            self.real[name] = self._narrow(name)
            self._cast(name, self.real[name], Element.F32)

    def _narrow(self, name: str, data: Array | None = None) -> str:
        kind = TensorType(self.graph.type(name).shape, Element.F32)
        return self.tensor(f"{name}.float32", kind, data)

    def _cast(self, source: str, result: str, element: Element) -> None:
        like = Operation(f"{result}.cast", "cast", (source,), (result,), source="Cast")
        self.emit(like, "cast", (source,), output=result, element=element.value)

    def _real(self, name: str) -> str:
        """Return the tensor of 32 bits in place of one; a constant is turned at once."""
        if not self._is_other(name):
            return name
        data = self.graph.tensors[name].data
        if name not in self.real and data is not None:
            edge = np.finfo(np.float32).max
            finite = np.clip(data, -edge, edge) if data.dtype.itemsize > 4 else data
            kept = np.where(np.isfinite(data), finite, data).astype(np.float32)
            self.real[name] = self._narrow(name, kept)
        return self.real[name]

    def _operation(self, op: Operation) -> None:
        if op.kind in _KEPT:
            self.keep(op)
            for name in op.outputs:
                self._taken(name)
            return
        results = [self._result(name) for name in op.outputs]
        given = dict(op.attributes)
        if op.kind == "cast" and given["element"] in _OTHER:
            given["element"] = Element.F32.value
        inputs = tuple(self._real(name) for name in op.inputs)
        self.keep(replace(op, inputs=inputs, outputs=tuple(results), attributes=given))
        for name in op.outputs:
            if self._is_other(name) and self._wanted(name):
                self._cast(self.real[name], name, self.graph.type(name).element)

    def _result(self, name: str) -> str:
        if self._is_other(name):
            self.real[name] = self._narrow(name)
            return self.real[name]
        return name

    def _wanted(self, name: str) -> bool:
        """Say whether a result is needed in its own type."""
        readers: Sequence[Operation] = self.graph.operations
        kept = (each for each in readers if each.kind in _KEPT)
        return name in self.graph.outputs or any(name in each.used for each in kept)
