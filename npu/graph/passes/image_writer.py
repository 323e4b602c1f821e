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
from npu.graph.passes.calibrate import Range
from npu.graph.passes.facts import (
    LINEAR,
    Facts,
    chip_type,
    quantisation_of,
    same_numbers,
    turns_rows,
)
from npu.graph.passes.rewriter import Rewriter
from npu.graph.passes.scale_groups import FINER
from npu.graph.passes.tensor_types import MARGIN16
from npu.graph.passes.weight_integers import NEAREST_INT8, Rounding, int8_weights

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
        for one in reversed(self.graph.operations):
            if not (one.on_chip or self._elided(one)):
                found.update(one.used)
        return found

    def _elided(self, one: Operation) -> bool:
        """Say whether a border of the network becomes a border of the chip, or nothing."""
        if one.kind == "dequantise":
            return one.outputs[0] in self.types or self.facts.value(one.outputs[0]) is not None
        if one.kind == "quantise" and one.inputs[0] in self.types:
            return self._is_image(one)
        return False

    def _is_image(self, one: Operation) -> bool:
        """Say whether the result of a quantise is what the chip makes of its input."""
        maker = self.facts.maker(one.inputs[0])
        if maker is None or not maker.on_chip:
            return False
        kind = self.graph.type(one.outputs[0])
        image = kind if kind.element == Element.I32 else chip_type(kind)
        return image is not None and same_numbers(image, self.types[one.inputs[0]])

    def write(self) -> Graph:
        """Return the quantised graph."""
        for name in self.graph.inputs:
            self._arrives(name, None)
        for one in self.graph.operations:
            if one.on_chip:
                self._chip(one)
            elif not self._elided(one):
                self._host(one)
            else:
                self._border(one)
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

    def _host(self, one: Operation) -> None:
        self.writer.keep(one)
        for name in one.outputs:
            self._arrives(name, one)

    def _border(self, one: Operation) -> None:
        """Write what is left of a border of the network."""
        x, y = one.inputs[0], one.outputs[0]
        if one.kind == "dequantise":
            if self.graph.constant(x) is not None:
                if y in self.wanted:
                    self.writer.keep(one)
                return
            image = self._integers(x)
            if image is None:
                self.writer.keep(one)
                self._arrives(y, one)
                return
            self.images[y] = image
            if y in self.wanted:
                self.writer.emit(one, "dequantise", (image,), output=y, place=TO_HOST)
            return
        if y in self.wanted and self.graph.type(y).element in (Element.U8, Element.U16):
            real = self._real(x, one)
            self.writer.emit(one, "quantise", (real,), output=y, place=TO_HOST)

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

    def _chip(self, one: Operation) -> None:
        inputs = list(one.inputs)
        active = set(self.facts.activations(one))
        for index, name in enumerate(inputs):
            if name and name in active:
                inputs[index] = self._operand(one, index, name)
        if one.kind in LINEAR and self.facts.weights(one):
            rounding = self.roundings.get(one.name, NEAREST_INT8)
            x = self.writer.type(inputs[0])
            inputs[1] = int8_weights(self.writer, self.facts, one, x, rounding)
        for index, name in enumerate(inputs):
            if name and name == one.inputs[index] and name not in active:
                inputs[index] = self._parameter(one, name)
        outputs = [self._result(name, one) for name in one.outputs]
        if one.kind == "conv" and one.inputs[0] in self.wide and self._is_wide(one.inputs[0]):
            self._in_halves(one, inputs, outputs[0])
        else:
            self.writer.keep(replace(one, inputs=tuple(inputs), outputs=tuple(outputs)))
        for name in one.outputs:
            if name in self.wanted and name in self.types:
                self.writer.emit(
                    one, "dequantise", (self.images[name],), part="out", output=name, place=TO_HOST
                )

    def _is_wide(self, name: str) -> bool:
        return name in self.types and self.types[name].element == Element.I16

    def _in_halves(self, one: Operation, inputs: list[str], output: str) -> None:
        """Write a convolution of int16 as two of int8: of the upper byte, and of what it leaves."""
        image = self.images[one.inputs[0]]
        whole, made = self.writer.type(image), self.writer.type(output)
        step = quantisation_of(whole).scale
        bytes_ = [
            TensorType(whole.shape, Element.I8, Quantisation((step * unit,))) for unit in (256, 1)
        ]
        place = OperationPlace(Target.NPU, "conv takes int8, twice for int16")

        def add(kind: str, part: str, given: Sequence[str], result: TensorType) -> str:
            return self.writer.emit(one, kind, given, part=part, result=result, place=place)

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
                    one,
                    name=self.writer.fresh(f"{name}.conv"),
                    inputs=(name, *given),
                    outputs=(sums[-1],),
                )
            )
        self.writer.emit(one, "add", sums, output=output, place=place)

    def _parameter(self, one: Operation, name: str) -> str:
        """Return a constant of an instruction, in real numbers if it is given as integers."""
        if self.graph.constant(name) is not None or self.facts.given_integers(name) is None:
            return name
        data = self.facts.value(name)
        assert data is not None
        return self.writer.constant(data, f"{name}.real")

    def _operand(self, one: Operation, index: int, name: str) -> str:
        """Return the integers that an operation reads, int8 where it takes nothing else."""
        if name not in self.types:
            return self._integers(name) or name
        if name not in self.images:
            self.images[name] = self._constant(name)
        image = self.images[name]
        if self.writer.type(image).element != Element.I16 or not self._takes_bytes(one, index):
            return image
        if name not in self.bytes:
            self.bytes[name] = self._narrowed(one, name, image)
        return self.bytes[name]

    def _takes_bytes(self, one: Operation, index: int) -> bool:
        if one.kind == "matmul":
            return not self.facts.weights(one)
        if one.kind == "transpose":
            return turns_rows(one)
        mask = (one.kind, index) == ("attention", 3)
        return one.kind in _BYTES_ONLY and not mask

    def _narrowed(self, one: Operation, name: str, image: str) -> str:
        wide = self.writer.type(image)
        magnitude = quantisation_of(wide).scale * 32767 / MARGIN16
        if self.ranges is not None and name in self.ranges and self.ranges[name].magnitude > 0:
            magnitude = self.ranges[name].magnitude
        kind = TensorType(wide.shape, Element.I8, Quantisation((magnitude / 127,)))
        place = OperationPlace(Target.NPU, f"{one.kind} takes int8")
        return self.writer.emit(one, "requantise", (image,), part="int8", result=kind, place=place)

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

    def _result(self, name: str, one: Operation) -> str:
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
