# SPDX-License-Identifier: Apache-2.0
"""Writes the quantised graph: images in integers of real tensors, and the borders to the host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from npu.graph.form import (
    Element,
    Graph,
    GraphError,
    Operation,
    OperationPlace,
    Quantisation,
    Target,
    TensorType,
)
from npu.graph.operations import Trait, with_trait
from npu.graph.operations.borders import quantised
from npu.graph.passes.facts import (
    LINEAR,
    Facts,
    chip_type,
    quantisation_of,
    same_numbers,
    turns_rows,
)
from npu.graph.passes.quantising.calibrate import Range
from npu.graph.passes.quantising.scale_groups import FINER
from npu.graph.passes.quantising.tensor_types import MARGIN16
from npu.graph.passes.quantising.weight_integers import NEAREST_INT8, Rounding, int8_weights
from npu.graph.passes.rewriter import Rewriter

TO_CHIP = OperationPlace(Target.HOST, "the border to the chip")
TO_HOST = OperationPlace(Target.HOST, "the border to the host")
_BYTES_ONLY = with_trait(Trait.BYTES) - {"softmax"}


class ImageWriter:
    """Writes the quantised graph: an image of integers for each real tensor of the chip."""

    def __init__(
        self,
        graph: Graph,
        ranges: Mapping[str, Range] | None,
        types: Mapping[str, TensorType],
        wide: frozenset[str] = frozenset(),
        roundings: Mapping[str, Rounding] | None = None,
    ) -> None:
        """Begin.

        Args:
            graph: after the pass `place`.
            ranges: of calibration, None without samples.
            types: on the chip, of each real tensor of the chip.
            wide: tensors of which a convolution is to read all of 16 bits.
            roundings: of the weights of products by name, to nearest int8 where there is none.
        """
        self.graph = graph
        self.facts = Facts(graph)
        self.ranges = ranges
        self.types = types
        self.wide = wide
        self.roundings = roundings or {}
        self.writer = Rewriter(graph)
        self.images: dict[str, str] = {}
        self.bytes: dict[str, str] = {}
        self.real = {name for name in graph.inputs if name in types}
        self.wanted = self._wanted()

    def _wanted(self) -> set[str]:
        """Return the tensors that must exist as the graph has them, for the host or the user."""
        found = set(self.graph.outputs)
        for op in reversed(self.graph.operations):
            if not (op.on_chip or self._elided(op)):
                found.update(op.used)
        return found

    def _elided(self, op: Operation) -> bool:
        """Say whether a border of the network becomes a border of the chip, or nothing."""
        if op.kind == "dequantise":
            return op.outputs[0] in self.types or self.facts.value(op.outputs[0]) is not None
        if op.kind == "quantise" and op.inputs[0] in self.types:
            return self._is_image(op)
        return False

    def _is_image(self, op: Operation) -> bool:
        """Say whether the result of a quantise is what the chip makes of its input."""
        maker = self.facts.maker(op.inputs[0])
        if maker is None or not maker.on_chip:
            return False
        kind = self.graph.type(op.outputs[0])
        image = kind if kind.element == Element.I32 else chip_type(kind)
        return image is not None and same_numbers(image, self.types[op.inputs[0]])

    def write(self) -> Graph:
        """Return the quantised graph."""
        for name in self.graph.inputs:
            self._arrives(name, None)
        for op in self.graph.operations:
            if op.on_chip:
                self._chip(op)
            elif not self._elided(op):
                self._host(op)
            else:
                self._border(op)
        return self.writer.rewritten()

    def _arrives(self, name: str, like: Operation | None) -> None:
        """Quantise a real tensor of the host that the chip reads."""
        if name not in self.types or not self._read_by_chip(name):
            return
        kind = self.types[name]
        like = like or Operation(name, "quantise", (name,), (name,))
        image = self.writer.tensor(f"{name}.{kind.element.value}", kind)
        self.images[name] = image
        self.writer.emit(like, "quantise", (name,), part="in", output=image, place=TO_CHIP)

    def _read_by_chip(self, name: str) -> bool:
        return any(
            one.on_chip and name in self.facts.activations(one) for one in self.facts.readers[name]
        )

    def _host(self, op: Operation) -> None:
        self.writer.keep(op)
        for name in op.outputs:
            self._arrives(name, op)

    def _border(self, op: Operation) -> None:
        """Write what is left of a border of the network."""
        x, y = op.inputs[0], op.outputs[0]
        if op.kind == "dequantise":
            if self.graph.constant(x) is not None:
                if y in self.wanted:
                    self.writer.keep(op)
                return
            image = self._integers(x)
            if image is None:
                self.writer.keep(op)
                self._arrives(y, op)
                return
            self.images[y] = image
            if y in self.wanted:
                self.writer.emit(op, "dequantise", (image,), output=y, place=TO_HOST)
            return
        if y in self.wanted and self.graph.type(y).element in (Element.U8, Element.U16):
            real = self._real(x, op)
            self.writer.emit(op, "quantise", (real,), output=y, place=TO_HOST)

    def _integers(self, name: str) -> str | None:
        """Return the integers of the chip that a given tensor of integers is, if there are."""
        kind = self.graph.type(name)
        maker = self.facts.maker(name)
        if maker is not None and maker.kind == "quantise" and self._elided(maker):
            return self.images[maker.inputs[0]]
        if maker is not None and maker.on_chip and maker.kind == "requantise":
            return self.bytes.get(name, name)
        return name if chip_type(kind) == kind else None

    def _real(self, name: str, like: Operation) -> str:
        """Return real numbers for a tensor of the chip."""
        if name in self.wanted or name in self.real:
            return name
        image = self.images[name]
        return self.writer.emit(like, "dequantise", (image,), part="real", place=TO_HOST)

    def _chip(self, op: Operation) -> None:
        inputs = list(op.inputs)
        active = set(self.facts.activations(op))
        for index, name in enumerate(inputs):
            if name and name in active:
                inputs[index] = self._operand(op, index, name)
        if op.kind in LINEAR and self.facts.weights(op):
            rounding = self.roundings.get(op.name, NEAREST_INT8)
            x = self.writer.type(inputs[0])
            inputs[1] = int8_weights(self.writer, self.facts, op, x, rounding)
        for index, name in enumerate(inputs):
            if name and name == op.inputs[index] and name not in active:
                inputs[index] = self._parameter(op, name)
        outputs = [self._result(name, op) for name in op.outputs]
        if op.kind == "conv" and op.inputs[0] in self.wide and self._is_wide(op.inputs[0]):
            self._in_halves(op, inputs, outputs[0])
        else:
            self.writer.keep(replace(op, inputs=tuple(inputs), outputs=tuple(outputs)))
        for name in op.outputs:
            if name in self.wanted and name in self.types:
                self.writer.emit(
                    op, "dequantise", (self.images[name],), part="out", output=name, place=TO_HOST
                )

    def _is_wide(self, name: str) -> bool:
        return name in self.types and self.types[name].element == Element.I16

    def _in_halves(self, op: Operation, inputs: list[str], output: str) -> None:
        """Write a convolution of int16 as two of int8: of the upper byte, and of what it leaves."""
        image = self.images[op.inputs[0]]
        whole, made = self.writer.type(image), self.writer.type(output)
        step = quantisation_of(whole).scale
        bytes_ = [
            TensorType(whole.shape, Element.I8, Quantisation((step * unit,))) for unit in (256, 1)
        ]
        place = OperationPlace(Target.NPU, "conv takes int8, twice for int16")

        def add(kind: str, part: str, given: Sequence[str], result: TensorType) -> str:
            return self.writer.emit(op, kind, given, part=part, result=result, place=place)

        high = add("requantise", "high", (image,), bytes_[0])
        known = add("requantise", "known", (high,), whole)
        rest = add("sub", "rest", (image, known), whole)
        low = add("requantise", "low", (rest,), bytes_[1])
        scale = quantisation_of(made).scale / (1 if made.element == Element.I16 else FINER)
        part = TensorType(made.shape, Element.I16, Quantisation((scale,)))
        sums = []
        for name, given in ((high, inputs[1:]), (low, inputs[1:2])):
            sums.append(self.writer.tensor(f"{name}.conv", part))
            self.writer.keep(
                replace(
                    op,
                    name=self.writer.fresh(f"{name}.conv"),
                    inputs=(name, *given),
                    outputs=(sums[-1],),
                )
            )
        self.writer.emit(op, "add", sums, output=output, place=place)

    def _parameter(self, op: Operation, name: str) -> str:
        """Return a constant of an instruction, in real numbers if it is given as integers."""
        if self.graph.constant(name) is not None or self.facts.given_integers(name) is None:
            return name
        data = self.facts.value(name)
        assert data is not None
        return self.writer.constant(data, f"{name}.real")

    def _operand(self, op: Operation, index: int, name: str) -> str:
        """Return the integers that an operation reads, int8 where it takes nothing else."""
        if name not in self.types:
            return self._integers(name) or name
        if name not in self.images:
            self.images[name] = self._constant(name)
        image = self.images[name]
        if self.writer.type(image).element != Element.I16 or not self._takes_bytes(op, index):
            return image
        if name not in self.bytes:
            self.bytes[name] = self._narrowed(op, name, image)
        return self.bytes[name]

    def _takes_bytes(self, op: Operation, index: int) -> bool:
        if op.kind == "matmul":
            return not self.facts.weights(op)
        if op.kind == "transpose":
            return turns_rows(op)
        mask = (op.kind, index) == ("attention", 3)
        return op.kind in _BYTES_ONLY and not mask

    def _narrowed(self, op: Operation, name: str, image: str) -> str:
        wide = self.writer.type(image)
        magnitude = quantisation_of(wide).scale * 32767 / MARGIN16
        if self.ranges is not None and name in self.ranges and self.ranges[name].magnitude > 0:
            magnitude = self.ranges[name].magnitude
        kind = TensorType(wide.shape, Element.I8, Quantisation((magnitude / 127,)))
        place = OperationPlace(Target.NPU, f"{op.kind} takes int8")
        return self.writer.emit(op, "requantise", (image,), part="int8", result=kind, place=place)

    def _constant(self, name: str) -> str:
        kind, value = self.types[name], self.facts.value(name)
        if value is None:
            raise GraphError(f"tensor {name!r} is read by the chip before it exists")
        given = self.facts.given_integers(name)
        if given is not None and same_numbers(given[1], kind):
            data = given[0]
        else:
            data = quantised(value, kind)
        return self.writer.constant(data, f"{name}.{kind.element.value}", kind.quantisation)

    def _result(self, name: str, op: Operation) -> str:
        """Name the integers that an operation of the chip assigns."""
        if name not in self.types:
            kind = self.graph.type(name)
            image = chip_type(kind)
            if image is None or image == kind:
                return name
            self.bytes[name] = self.writer.tensor(f"{name}.int8", image)
            return self.bytes[name]
        kind = self.types[name]
        for reader in self.facts.readers[name]:
            result = reader.outputs[0]
            alike = self.graph.type(result).element == kind.element
            if reader.kind == "quantise" and self._elided(reader) and alike:
                self.images[name] = result
                return result
        if name in self.wanted:
            self.images[name] = self.writer.tensor(f"{name}.{kind.element.value}", kind)
        else:
            self.writer.swap(name, kind)
            self.images[name] = name
        return self.images[name]
