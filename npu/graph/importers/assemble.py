# SPDX-License-Identifier: Apache-2.0
"""A graph under construction, for files whose operations may be evaluated as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from npu.graph.build import Builder, renamed
from npu.graph.evaluate import run
from npu.graph.form import (
    LARGEST,
    RANK,
    Element,
    Graph,
    GraphError,
    Operation,
    Quantisation,
    Tensor,
    TensorType,
)
from npu.graph.operations import Trait, with_trait
from npu.graph.operations.moves import check_indices

# Weights keep their integers and scales; what nobody knows is the host's.
_KEPT = with_trait(Trait.BORDER) | {"host"}
UNIT = Quantisation((1.0,))


class Assembler(Builder):
    """A graph under construction; what has constant inputs only is evaluated at once.

    Attributes:
        file: what messages call the file.
    """

    def __init__(self, file: str) -> None:
        """Begin an empty graph."""
        super().__init__()
        self.file = file
        self._producers: dict[str, Operation] = {}
        self._made: dict[tuple[str, str], str] = {}

    def producer(self, name: str) -> Operation | None:
        """Return the operation that assigns a tensor, None for an input or a constant."""
        return self._producers.get(name)

    def declare(self, tensor: Tensor) -> str:
        """Add a tensor; return its name. Raises GraphError if it is larger than a file has them."""
        if len(tensor.shape) > RANK or tensor.type.size > LARGEST:
            raise GraphError(
                f"{self.file}: {tensor.name}: shape {list(tensor.shape)[:20]}, allowed up to "
                f"{RANK} axes and {LARGEST:,} elements"
            )
        return super().declare(tensor)

    def back(self, mark: tuple[int, int]) -> None:
        """Take back what was added since a mark, and what is known of it."""
        super().back(mark)
        self._producers = {
            name: one for name, one in self._producers.items() if name in self.tensors
        }
        self._made = {
            key: made
            for key, made in self._made.items()
            if key[0] in self.tensors and made in self.tensors
        }

    def add_input(self, wish: str, found: TensorType) -> str:
        """Add an input of the graph under a name like the one wished for; return its name."""
        name = self.tensor(wish, found)
        self.inputs.append(name)
        return name

    def quantised(self, name: str, quantisation: Quantisation) -> None:
        """Say what the integers of a tensor stand for, unless that is known."""
        tensor = self.tensors[name]
        if tensor.type.quantisation is None:
            kept = replace(tensor.type, quantisation=quantisation)
            self.tensors[name] = replace(tensor, type=kept)

    def add_many(
        self,
        kind: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        results: Sequence[TensorType],
        **given: Any,  # noqa: ANN401
    ) -> tuple[str, ...]:
        """Add an operation, or evaluate it if it needs constants only."""
        if kind == "gather":
            self._check_indices(inputs, given["axis"])
        names = super().add_many(kind, inputs, outputs, results, **given)
        made = self.operations[-1]
        if self._folded(made):
            self.operations.pop()
        else:
            self._producers.update(dict.fromkeys(names, made))
        return names

    def _check_indices(self, inputs: Sequence[str], axis: int) -> None:
        """Raise GraphError for a constant index that the axis has not."""
        indices = self.value(inputs[1])
        if indices is not None:
            check_indices(indices, self.shape(inputs[0])[axis])

    def _folded(self, made: Operation) -> bool:
        """Evaluate an operation if that needs constants only."""
        given = [self.value(name) for name in made.used]
        if made.kind in _KEPT or len(made.inputs) != len(given):
            return False
        values = [value for value in given if value is not None]
        if len(values) != len(given):
            return False
        names = (*made.used, *made.outputs)
        graph = Graph("", (), (), {name: self.tensors[name] for name in names}, (made,))
        for name, value in zip(made.outputs, run(graph, made, values), strict=True):
            self.tensors[name] = replace(self.tensors[name], data=value)
        return True

    def reshape(self, name: str, shape: Iterable[int], source: str, wish: str = "") -> str:
        """Return a tensor in another shape; itself if it has it already."""
        shape = tuple(int(size) for size in shape)
        found = self.type(name)
        if shape == found.shape:
            return name
        return self.add(
            "reshape", [name], wish=wish or f"{name}.shaped", source=source,
            result=replace(found, shape=shape), shape=shape,
        )  # fmt: skip

    def transpose(self, name: str, order: Iterable[int], source: str, wish: str = "") -> str:
        """Return a tensor with its axes in another order; itself if nothing moves."""
        order = tuple(int(axis) for axis in order)
        if order == tuple(range(len(order))):
            return name
        found = self.type(name)
        quantisation = found.quantisation
        if quantisation is not None and quantisation.axis is not None:
            quantisation = replace(quantisation, axis=order.index(quantisation.axis))
        shape = tuple(found.shape[axis] for axis in order)
        return self.add(
            "transpose", [name], wish=wish or f"{name}.turned",
            result=TensorType(shape, found.element, quantisation), source=source, order=order,
        )  # fmt: skip

    def expand(self, name: str, shape: Iterable[int], source: str, wish: str = "") -> str:
        """Return a tensor broadcast as numpy does; itself if it has the shape already."""
        shape = tuple(int(size) for size in shape)
        found = self.type(name)
        if shape == found.shape:
            return name
        return self.add(
            "expand", [name], wish=wish or f"{name}.wide", source=source,
            result=replace(found, shape=shape), shape=shape,
        )  # fmt: skip

    def cast(self, name: str, element: Element, source: str, wish: str = "") -> str:
        """Return a tensor in another element type; itself if it has it already."""
        found = self.type(name)
        if found.element == element:
            return name
        return self.add(
            "cast", [name], wish=wish or f"{name}.{element.value}", source=source,
            result=TensorType(found.shape, element), element=element.value,
        )  # fmt: skip

    def dequantise(self, name: str, source: str, quantisation: Quantisation = UNIT) -> str:
        """Return the float tensor that integers stand for, made once for each tensor.

        Integers that do not say what they stand for yet do so afterwards.
        """
        key = (name, "dequantise")
        if key not in self._made:
            self.quantised(name, quantisation)
            found = TensorType(self.shape(name), Element.F32)
            self._made[key] = self.add(
                "dequantise", [name], wish=f"{name}.real", result=found, source=source
            )
        return self._made[key]

    def quantise(self, name: str, wish: str, found: TensorType, source: str) -> str:
        """Return the integers that stand for a float tensor."""
        made = self.add("quantise", [name], wish=wish, result=found, source=source)
        self._made[made, "quantised from"] = name
        return made

    def real(self, name: str) -> str | None:
        """Return the float tensor that an integer one was quantised from, if there is one."""
        return self._made.get((name, "quantised from"))

    def finish(self, outputs: Sequence[str], wishes: Sequence[str] = ()) -> Graph:
        """Return the graph of what the outputs need.

        An input that is an output too, and a tensor that is an output twice, go through an
        operation `identity`.

        Args:
            outputs: names of tensors.
            wishes: what the outputs shall be called; as they are without.
        """
        results: list[str] = []
        for output in outputs:
            if output in results or output in self.inputs or self.value(output) is not None:
                found = self.type(output)
                output = self.add(
                    "identity", [output], wish=f"{output}.out", result=found, source="output"
                )
            results.append(output)
        needed, kept = set(results), []
        for one in reversed(self.operations):
            if needed.intersection(one.outputs):
                needed.update(one.used)
                kept.append(one)
        for one in kept:
            needed.update(one.outputs)
        tensors = {
            key: tensor
            for key, tensor in self.tensors.items()
            if key in needed or key in self.inputs
        }
        graph = Graph(self.name, tuple(self.inputs), tuple(results), tensors, tuple(reversed(kept)))
        fresh = [self._names.fresh(wish) for wish in wishes]
        return renamed(graph, dict(zip(results, fresh, strict=True))) if wishes else graph
