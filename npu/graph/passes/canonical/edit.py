# SPDX-License-Identifier: Apache-2.0
"""What takes the place of operations that a pattern was found in."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from npu.graph.form import Names, Operation, Quantisation, Tensor
from npu.graph.passes.canonical.region import GraphView, Region
from npu.graph.passes.rewriter import Rewriter


class Replacement(Rewriter):
    """What takes the place of the operations of a region.

    Attributes:
        root: the last operation of the region.
        made: tensors that are added or exchanged.
    """

    def __init__(self, view: GraphView, region: Region | Operation, names: Names) -> None:
        """Begin; the last operation written gives the result under its old name."""
        self.made: dict[str, Tensor] = {}
        super().__init__(view.graph, ChainMap(self.made, view.tensors), names)
        operations = region.operations if isinstance(region, Region) else (region,)
        self.root = operations[-1]
        self.source = " + ".join(dict.fromkeys(one.source for one in operations if one.source))

    def quantised(self, name: str, quantisation: Quantisation) -> None:
        """Say what the integers of a tensor stand for."""
        self.swap(name, replace(self.type(name), quantisation=quantisation))

    def step(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:  # noqa: ANN401
        """Write an operation on the way to the result."""
        label = f"{self.root.outputs[0]}.{kind}"
        output = self.fresh(label)
        like = replace(self.root, name=output, source=self.source)
        self.tensors[output] = Tensor(output, self._inferred(kind, attributes, inputs))
        return self.emit(like, kind, inputs, output=output, **attributes)

    def last(
        self,
        kind: str,
        inputs: Sequence[str],
        quantisation: Quantisation | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Write the operation that gives the result under its old name."""
        output = self.root.outputs[0]
        kept = self.type(output)
        result = replace(kept, quantisation=quantisation) if quantisation else kept
        return self.emit(
            *(self.root, kind, inputs),
            output=output,
            source=self.source,
            result=result,
            **attributes,
        )

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """Return a tensor in another shape; itself if it has it already."""
        return (
            name if tuple(shape) == self.shape(name) else self.step("reshape", [name], shape=shape)
        )

    def transpose(self, name: str, order: Sequence[int]) -> str:
        """Return a tensor with its axes in another order; itself if nothing moves."""
        return name if list(order) == sorted(order) else self.step("transpose", [name], order=order)

    def named(self, name: str) -> Replacement:
        """Give the last result the old name of the result; return this replacement."""
        output = self.root.outputs[0]
        last = self.operations[-1]
        if last.outputs == (name,) and name != output:
            self.operations[-1] = replace(last, name=self.root.name, outputs=(output,))
            self.made[output] = replace(self.made.pop(name), name=output)
        return self
