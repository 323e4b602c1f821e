# SPDX-License-Identifier: Apache-2.0
"""A graph under construction, for files whose operations may be evaluated as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from npu.graph.build import Builder
from npu.graph.evaluate import run
from npu.graph.form import (
    LARGEST,
    RANK,
    Attribute,
    Element,
    Graph,
    GraphError,
    Operation,
    Quantisation,
    Tensor,
    TensorType,
)
from npu.graph.operations import TABLE, Trait, infer, with_trait

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

    def tensor(self, wish: str, found: TensorType) -> str:
        """Add a tensor under a name like the one wished for; return its name."""
        return self.declare(Tensor(self.fresh(wish or "tensor"), found))

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

    def emit(
        self,
        kind: str,
        inputs: Sequence[str],
        results: Sequence[tuple[str, TensorType]],
        attributes: Mapping[str, Attribute] | None = None,
        *,
        label: str = "",
        source: str = "",
    ) -> tuple[str, ...]:
        """Add an operation.

        Args:
            kind: of the table.
            inputs: names of tensors.
            results: a wish for the name and the type of each output.
            attributes: of the operation.
            label: a wish for its own name; the first output's without one.
            source: what it is called in the user's file.

        Returns:
            Names of the outputs.
        """
        outputs = tuple(self.tensor(wish, found) for wish, found in results)
        name = self._operation_names.fresh(label or outputs[0])
        # In the order of the table, so that equal operations have equal texts.
        given = {key: (attributes or {})[key] for key in TABLE[kind].attributes}
        made = Operation(name, kind, tuple(inputs), outputs, given, source)
        if not self._folded(made):
            self.operations.append(made)
            self._producers.update(dict.fromkeys(outputs, made))
        return outputs

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

    def one(
        self,
        kind: str,
        inputs: Sequence[str],
        wish: str,
        found: TensorType,
        source: str,
        **attributes: Attribute,
    ) -> str:
        """Add an operation of one result; return the result's name."""
        return self.emit(kind, inputs, [(wish, found)], attributes, source=source)[0]

    def infer(
        self, kind: str, inputs: Sequence[str], wish: str, source: str, **attributes: Attribute
    ) -> str:
        """Add an operation of one result whose type follows from the table; return its name."""
        types = [self.type(name) if name else None for name in inputs]
        (result,) = infer(kind, attributes, types)
        if result.shape is None:
            raise GraphError(f"{kind}: the shape of the result does not follow from its inputs")
        found = TensorType(tuple(result.shape), result.element or Element.I32)
        return self.one(kind, inputs, wish, found, source, **attributes)

    def reshape(self, name: str, shape: Iterable[int], source: str, wish: str = "") -> str:
        """Return a tensor in another shape; itself if it has it already."""
        shape = tuple(int(size) for size in shape)
        found = self.type(name)
        if shape == found.shape:
            return name
        return self.one(
            "reshape", [name], wish or f"{name}.shaped", replace(found, shape=shape), source,
            shape=shape,
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
        return self.one(
            "transpose", [name], wish or f"{name}.turned",
            TensorType(shape, found.element, quantisation), source, order=order,
        )  # fmt: skip

    def expand(self, name: str, shape: Iterable[int], source: str, wish: str = "") -> str:
        """Return a tensor broadcast as numpy does; itself if it has the shape already."""
        shape = tuple(int(size) for size in shape)
        found = self.type(name)
        if shape == found.shape:
            return name
        return self.one(
            "expand", [name], wish or f"{name}.wide", replace(found, shape=shape), source,
            shape=shape,
        )  # fmt: skip

    def cast(self, name: str, element: Element, source: str, wish: str = "") -> str:
        """Return a tensor in another element type; itself if it has it already."""
        found = self.type(name)
        if found.element == element:
            return name
        return self.one(
            "cast", [name], wish or f"{name}.{element.value}", TensorType(found.shape, element),
            source, element=element.value,
        )  # fmt: skip

    def dequantise(self, name: str, source: str, quantisation: Quantisation = UNIT) -> str:
        """Return the float tensor that integers stand for, made once for each tensor.

        Integers that do not say what they stand for yet do so afterwards.
        """
        key = (name, "dequantise")
        if key not in self._made:
            self.quantised(name, quantisation)
            found = TensorType(self.shape(name), Element.F32)
            self._made[key] = self.one("dequantise", [name], f"{name}.real", found, source)
        return self._made[key]

    def quantise(self, name: str, wish: str, found: TensorType, source: str) -> str:
        """Return the integers that stand for a float tensor."""
        made = self.one("quantise", [name], wish, found, source)
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
                output = self.one("identity", [output], f"{output}.out", found, "output")
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


def renamed(graph: Graph, names: Mapping[str, str]) -> Graph:
    """Return a graph whose tensors have other names."""

    def told(given: Iterable[str]) -> tuple[str, ...]:
        return tuple(names.get(name, name) for name in given)

    operations = tuple(
        replace(one, inputs=told(one.inputs), outputs=told(one.outputs)) for one in graph.operations
    )
    tensors = {
        names.get(name, name): replace(tensor, name=names.get(name, name))
        for name, tensor in graph.tensors.items()
    }
    states = tuple(
        replace(
            one, input=names.get(one.input, one.input), output=names.get(one.output, one.output)
        )
        for one in graph.states
    )
    return Graph(graph.name, told(graph.inputs), told(graph.outputs), tensors, operations, states)
