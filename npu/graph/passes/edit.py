# SPDX-License-Identifier: Apache-2.0
"""What takes the place of operations that a pattern was found in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import (
    Array,
    Element,
    Graph,
    GraphError,
    Names,
    Operation,
    Quantisation,
    Tensor,
    TensorType,
    all_names,
)
from npu.graph.operations import TABLE, infer
from npu.graph.passes.region import Region, View


def in_order(kind: str, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes in the order of the table, so that equal operations have equal texts."""
    order = list(TABLE[kind].attributes)
    return dict(sorted(attributes.items(), key=lambda one: order.index(one[0])))


class Edit:
    """What takes the place of the operations of a region."""

    def __init__(self, view: View, region: Region | Operation, names: Names) -> None:
        """Begin; the last operation emitted gives the result under its old name."""
        self.view = view
        operations = region.operations if isinstance(region, Region) else (region,)
        self.root = operations[-1]
        self.source = " + ".join(dict.fromkeys(one.source for one in operations if one.source))
        self.operations: list[Operation] = []
        self.tensors: dict[str, Tensor] = {}
        self._names = names

    def type(self, name: str) -> TensorType:
        """Return the type of a tensor, new ones too."""
        found = self.tensors.get(name)
        return found.type if found is not None else self.view.graph.type(name)

    def constant(self, value: Array, wish: str) -> str:
        """Add a constant; return its name."""
        name = self._names.fresh(wish)
        kept = np.ascontiguousarray(value).reshape(value.shape)
        self.tensors[name] = Tensor(name, TensorType(value.shape, Element.of(value.dtype)), kept)
        return name

    def quantised(self, name: str, quantisation: Quantisation) -> None:
        """Say what the integers of a tensor stand for."""
        tensor = self.view.graph.tensors[name]
        self.tensors[name] = replace(tensor, type=replace(tensor.type, quantisation=quantisation))

    def emit(
        self,
        kind: str,
        inputs: Sequence[str],
        *,
        last: bool = False,
        quantisation: Quantisation | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation; the last one gives the result under its old name."""
        output = self.root.outputs[0]
        if last:
            found = self.view.graph.type(output)
            if quantisation is not None:
                found = replace(found, quantisation=quantisation)
            name, label = output, self.root.name
        else:
            types = [self.type(one) if one else None for one in inputs]
            (result,) = infer(kind, attributes, types)
            if result.shape is None:
                raise GraphError(f"{kind}: no shape")
            label = name = self._names.fresh(f"{output}.{kind}")
            found = TensorType(result.shape, result.element or Element.F32, quantisation)
        self.tensors[name] = Tensor(name, found)
        self.operations.append(
            Operation(label, kind, tuple(inputs), (name,), in_order(kind, attributes), self.source)
        )
        return name

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """Return a tensor in another shape; itself if it has it already."""
        if tuple(shape) == self.type(name).shape:
            return name
        return self.emit("reshape", [name], shape=tuple(int(one) for one in shape))

    def transpose(self, name: str, order: Sequence[int]) -> str:
        """Return a tensor with its axes in another order; itself if nothing moves."""
        if list(order) == sorted(order):
            return name
        return self.emit("transpose", [name], order=tuple(int(one) for one in order))

    def named(self, name: str) -> Edit:
        """Give the last result the old name of the result; return this edit."""
        output, last = self.root.outputs[0], self.operations[-1]
        if last.outputs == (name,) and name != output:
            self.operations[-1] = replace(last, name=self.root.name, outputs=(output,))
            self.tensors[output] = replace(self.tensors.pop(name), name=output)
        return self


def names_of(graph: Graph) -> Names:
    """Return what hands out names that a graph does not have."""
    return Names(all_names(graph))
