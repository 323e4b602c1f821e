# SPDX-License-Identifier: Apache-2.0
"""Walking through the operators of a TFLite model; integers stand between borders."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from npu.graph.build import renamed
from npu.graph.form import LARGEST, Array, Element, Graph, GraphError, State, TensorType
from npu.graph.importers.assemble import Assembler
from npu.graph.importers.tflite_flatbuffer import Options
from npu.graph.importers.tflite_model import FileModel, FileOperator, FileTensor
from npu.graph.inputs import check_shapes, shape_option
from npu.graph.text import type_text

_DEEPEST = 16
QUANTISED = frozenset({Element.I8, Element.U8, Element.I16})
# As the schema numbers them; 0 is none.
_FUSED: dict[int, tuple[str, dict[str, Any]]] = {
    1: ("table", {"functions": ("relu",), "parameters": ()}),
    2: ("clip", {"low": -1.0, "high": 1.0}),
    3: ("clip", {"low": 0.0, "high": 6.0}),
    4: ("table", {"functions": ("tanh",), "parameters": ()}),
}


_SAYS_NOTHING: dict[str, dict[int, str]] = {
    "ADD": {1: "pot_scale_int16"},
    "ARG_MAX": {0: "output_type"},
    "ARG_MIN": {0: "output_type"},
    "BATCH_MATMUL": {2: "asymmetric_quantize_inputs"},
    "CAST": {0: "in_data_type", 1: "out_data_type"},
    "CONV_2D": {6: "quantized_bias_type"},
    "DEPTHWISE_CONV_2D": {3: "depth_multiplier"},
    "FULLY_CONNECTED": {3: "asymmetric_quantize_inputs", 4: "quantized_bias_type"},
    "PACK": {0: "values_count"},
    "SHAPE": {0: "out_type"},
    "SPLIT": {0: "num_splits"},
    "SPLIT_V": {0: "num_splits"},
    "SUB": {1: "pot_scale_int16"},
    "SVDF": {2: "asymmetric_quantize_inputs"},
    "TRANSPOSE_CONV": {4: "quantized_bias_type"},
    "UNIDIRECTIONAL_SEQUENCE_LSTM": {4: "asymmetric_quantize_inputs"},
    "UNPACK": {0: "num"},
}
"""Options that shapes and types of tensors repeat, or that choose between kernels."""


@dataclass(frozen=True)
class TfliteNode:
    """One operator on its way into the graph.

    Attributes:
        reader: that walks.
        operator: of the file.
        place: its number in the file.
        asked: the inputs that its mapping has read.
    """

    reader: ModelReader
    operator: FileOperator
    place: int
    asked: set[int] = field(default_factory=set)

    @property
    def build(self) -> Assembler:
        """The graph under construction."""
        return self.reader.build

    @property
    def source(self) -> str:
        """What it is called in the file."""
        return self.operator.name

    @property
    def wish(self) -> str:
        """A name for what it computes as floats: that of the output unless this is quantised."""
        return self.wish_of(0)

    def wish_of(self, index: int) -> str:
        """Return a name for an output as floats."""
        tensor = self.output(index)
        name = self.reader.label(self.operator.outputs[index])
        return f"{name}.real" if stands(tensor) else name

    def output(self, index: int = 0) -> FileTensor:
        """Return an output as the file describes it."""
        if index >= len(self.operator.outputs):
            raise self.error(f"{len(self.operator.outputs)} outputs, allowed {index + 1} or more")
        return self.reader.model.tensors[self.operator.outputs[index]]

    def input(self, index: int) -> FileTensor:
        """Return an input as the file describes it. Raises GraphError if it is not given."""
        if not self.given(index):
            raise self.error(f"input {index} is missing")
        self.asked.add(index)
        return self.reader.model.tensors[self.operator.inputs[index]]

    def given(self, index: int) -> bool:
        """Say whether an input is given."""
        return index < len(self.operator.inputs) and self.operator.inputs[index] >= 0

    def name(self, index: int) -> str:
        """Return the tensor of the graph that an input is, integers as integers."""
        self.input(index)
        return self.reader.tensor(self.operator.inputs[index], self)

    def real(self, index: int) -> str:
        """Return an input, as floats where its integers stand for real numbers."""
        name = self.name(index)
        if stands(self.input(index)):
            return self.build.dequantise(name, self.source)
        if self.build.type(name).element == Element.F16:
            return self.build.cast(name, Element.F32, self.source)
        return name

    def shape(self, index: int) -> tuple[int, ...]:
        """Return the shape of an input."""
        return self.build.shape(self.name(index))

    def constant(self, index: int, what: str) -> Array:
        """Return the value of an input. Raises GraphError unless it is constant."""
        value = self.build.value(self.name(index))
        if value is None:
            raise self.error(f"{what} is computed, allowed a constant")
        return value

    def ints(self, index: int, what: str) -> tuple[int, ...]:
        """Return the value of an input that is a list of integers."""
        value = self.constant(index, what)
        if value.dtype.kind not in "iu":
            raise self.error(f"{what} is {value.dtype}, allowed integers")
        return tuple(int(one) for one in value.reshape(-1))

    def fits(self, *sizes: int) -> None:
        """Raise GraphError for more elements than a tensor may have, before any is made."""
        if math.prod(sizes) > LARGEST:
            raise self.error(f"shape {list(sizes)}, allowed {LARGEST:,} elements")

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from the front. Raises GraphError if there is none."""
        if not -rank <= axis < rank:
            raise self.error(f"axis {axis}, allowed {-rank}..{rank - 1}")
        return axis % rank

    def option(self, field: int, form: str = "i", default: int = 0) -> int:
        """Return an option that is an integer."""
        options = self.operator.options
        return options.number(field, form, default) if options is not None else default

    def option_real(self, field: int, default: float = 0.0) -> float:
        """Return an option that is a float."""
        options = self.operator.options
        return options.real(field, default) if options is not None else default

    @property
    def options(self) -> Options | None:
        """All options."""
        return self.operator.options

    def emit(
        self,
        kind: str,
        inputs: Sequence[str],
        wish: str = "",
        result: TensorType | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation; return its result's name."""
        name = wish or self.wish
        return self.build.add(
            *(kind, inputs), wish=name, source=self.source, result=result, **attributes
        )

    def fused(self, name: str, field: int) -> str:
        """Apply the activation that an option names."""
        code = self.option(field, "b")
        if code == 0:
            return name
        if code not in _FUSED:
            raise self.error(f"fused activation {code}, allowed 0..{max(_FUSED)}")
        kind, attributes = _FUSED[code]
        return self.emit(kind, [name], **attributes)

    def before(self, field: int) -> str:
        """Return a name for what stands in front of a fused activation, if there is one."""
        return f"{self.wish}.linear" if self.option(field, "b") else self.wish

    def refuse_unread(self) -> None:
        """Raise GraphError for an option or an input that the mapping has passed over."""
        nothing = _SAYS_NOTHING.get(self.source, {})
        for number in self.options.unread() if self.options is not None else ():
            if number not in nothing:
                raise self.error(f"field {number} of its options is not mapped")
        for index in range(len(self.operator.inputs)):
            if self.given(index) and index not in self.asked:
                raise self.error(f"input {index} is not mapped")

    def error(self, text: str) -> GraphError:
        """Return an error that names the operator and its first output."""
        names = [self.reader.model.tensors[one].name for one in self.operator.outputs[:1]]
        label = f" {names[0]!r}" if names else ""
        return GraphError(
            f"{self.build.file}: operator {self.place} ({self.source}){label}: {text}"
        )

    def passed(self, index: int) -> Value:
        """Return what an input is for a subgraph, which may be a variable."""
        self.input(index)
        place = self.operator.inputs[index]
        if place in self.reader.handles:
            return Handle(self.reader.handles[place])
        return self.name(index)

    def inside(self, number: int, given: Sequence[Value]) -> tuple[Value, ...]:
        """Map the operators of a subgraph, given its inputs; return its outputs."""
        return self.reader.inside(number, given, self)

    def chosen(self, index: int, condition: str, yes: Value, no: Value) -> str:
        """Return one of two values for an output, as floats where it is quantised."""
        if isinstance(yes, Handle) or isinstance(no, Handle):
            raise self.error("its branches give variables, allowed tensors")
        sides = [yes, no]
        if stands(self.output(index)):
            sides = [self.build.dequantise(one, self.source) for one in sides]
        return self.emit("select", [condition, *sides], self.wish_of(index))


@dataclass(frozen=True)
class Handle:
    """A value that names a variable."""

    name: str


Value: TypeAlias = str | Handle
"""What an operator gives: the name of a tensor, or a variable."""
Handler: TypeAlias = Callable[[TfliteNode], str | tuple[Value, ...] | None]
"""Maps one operator: names of its results, as floats where they are quantised.

None of one that acts on variables and has no result that is a tensor.
"""


@dataclass
class Variable:
    """A variable of the file, which keeps its value from run to run.

    Attributes:
        input: that holds what the run before has left, "" unless it is read before it is assigned.
        value: the tensor that it holds now, "" before it is read or assigned.
        initial: what it holds in the beginning, None for zeros.
    """

    input: str = ""
    value: str = ""
    initial: Array | None = None


def stands(tensor: FileTensor) -> bool:
    """Say whether integers of a tensor stand for real numbers."""
    return tensor.quantisation is not None and tensor.element in QUANTISED


class ModelReader:
    """Walks through a model."""

    def __init__(
        self,
        model: FileModel,
        file: str,
        handlers: Mapping[str, Handler],
        shapes: Mapping[str, tuple[int, ...]],
        main: ModelReader | None = None,
        number: int = 0,
    ) -> None:
        """Begin.

        Args:
            model: to walk through.
            file: named in errors.
            handlers: of operators, by name.
            shapes: of inputs with free dimensions, by name.
            main: that of the operator that runs the model if it is another subgraph.
            number: of the subgraph.
        """
        self.model = model
        self.number = number
        self.depth: int = 0 if main is None else main.depth + 1
        self.build: Assembler = Assembler(file) if main is None else main.build
        self.variables: dict[str, Variable] = {} if main is None else main.variables
        self.handles: dict[int, str] = {}
        self.begins: bool = main is not None and main.begins
        self._constants: dict[tuple[int, int], str] = {} if main is None else main._constants
        self._handlers = handlers
        self._shapes = shapes
        self._names: dict[int, str] = {}
        self._bound: bool = main is not None and main._bound

    def label(self, place: int) -> str:
        """Return what the file calls a tensor."""
        return self.model.tensors[place].name or f"tensor{place}"

    def inputs(self) -> None:
        """Add the inputs of the graph."""
        check_shapes(self._shapes, map(self.label, self.model.inputs), self.build.file)
        for place in self.model.inputs:
            tensor, name = self.model.tensors[place], self.label(place)
            if tensor.trouble or tensor.element is None:
                raise GraphError(f"{self.build.file}: input {name!r}: {tensor.trouble}")
            shape = self._shape(tensor, name)
            found = TensorType(shape, tensor.element, tensor.quantisation)
            self._names[place] = self.build.add_input(name, found)

    def _shape(self, tensor: FileTensor, name: str) -> tuple[int, ...]:
        given = self._shapes.get(name)
        batch, *rest = tensor.shape or (0,)
        if given is None and batch < 0 and tensor.usual[0] == 1 and min(rest, default=0) >= 0:
            self._bound = True
            return tensor.usual  # as every file from Keras has it
        words = ",".join("N" if size < 0 else str(size) for size in tensor.shape)
        if given is None and min(tensor.shape, default=0) < 0:
            raise GraphError(
                f"{self.build.file}: input {name!r}: free dimensions in [{words}], allowed fixed "
                f"ones: give {shape_option(name, tensor.shape)}"
            )
        if given is None:
            return tensor.shape
        self._bound = True
        fits = len(given) == len(tensor.shape) and all(
            size in (-1, one) for size, one in zip(tensor.shape, given, strict=True)
        )
        if not fits:
            raise GraphError(
                f"{self.build.file}: input {name!r}: shape {list(given)}, allowed [{words}]"
            )
        return tuple(given)

    def tensor(self, place: int, node: TfliteNode) -> str:
        """Return the tensor of the graph that one of the file is."""
        if place in self._names:
            return self._names[place]
        tensor = self.model.tensors[place]
        if tensor.trouble:
            raise node.error(f"tensor {self.label(place)!r}: {tensor.trouble}")
        value = tensor.data
        if value is None and 0 in tensor.shape and tensor.element is not None:
            value = np.zeros(tensor.shape, tensor.element.dtype)
        if value is None:
            raise node.error(
                f"tensor {self.label(place)!r} has no value, allowed inputs of the graph, "
                "constants with a buffer and results of operators before"
            )
        return self._constant(place, value)

    def _constant(self, place: int, value: Array) -> str:
        """Return the constant of the graph that a tensor of the file is."""
        key = self.number, place
        if key not in self._constants:
            unit = self.model.tensors[place].quantisation
            self._constants[key] = self.build.constant(value, self.label(place), unit)
        return self._constants[key]

    def walk(self) -> None:
        """Map all operators."""
        for place, operator in enumerate(self.model.operators):
            node = TfliteNode(self, operator, place)
            if self.depth:
                self.build.called()
            if operator.name not in self._handlers:
                raise node.error(
                    "no counterpart among the operations of a graph, allowed "
                    f"{', '.join(sorted(self._handlers))}"
                )
            try:
                made = self._handlers[operator.name](node)
                node.refuse_unread()
            except GraphError as error:
                text = str(error)
                raise (error if text.startswith(self.build.file) else node.error(text)) from None
            if made is None:
                continue
            names = (made,) if isinstance(made, str) else made
            if len(names) != len(operator.outputs):
                raise node.error(f"{len(operator.outputs)} outputs, allowed {len(names)}")
            for index, name in enumerate(names):
                self._finish(node, index, name)

    def _finish(self, node: TfliteNode, index: int, name: Value) -> None:
        """Note a result: integers of a quantised tensor from the floats that were computed."""
        place = node.operator.outputs[index]
        if isinstance(name, Handle):
            self.handles[place] = name.name
            return
        tensor = self.model.tensors[place]
        if place in self._names:
            raise node.error(f"output {self.label(place)!r} has a value already")
        if tensor.trouble or tensor.element is None:
            raise node.error(f"output {self.label(place)!r}: {tensor.trouble}")
        shape = self.build.shape(name)
        fits = len(shape) == len(tensor.shape) and all(
            size in (-1, one) for size, one in zip(tensor.shape, shape, strict=True)
        )
        # Shapes of a file are for its own free dimensions; once bound, those here count.
        if not fits and not self._bound:
            raise node.error(
                f"output {self.label(place)!r} has shape {list(tensor.shape)} in the file, "
                f"computed {list(shape)}"
            )
        if stands(tensor) and self.build.type(name).element == Element.F32:
            found = TensorType(shape, tensor.element, tensor.quantisation)
            name = self.build.quantise(name, self.label(place), found, node.source)
        elif self.build.type(name).element != tensor.element:
            name = self.build.cast(name, tensor.element, node.source, self.label(place))
        self._names[place] = name

    def begin(self, number: int) -> None:
        """Walk through the subgraph that says with what variables begin."""
        reader = self._below(number)
        reader.begins = True
        reader.walk()

    def _below(self, number: int) -> ModelReader:
        model = self.model.subgraph(number)
        if self.depth >= _DEEPEST:
            raise GraphError(f"subgraphs more than {_DEEPEST} deep")
        return ModelReader(model, self.build.file, self._handlers, {}, self, number)

    def held(self) -> dict[str, str]:
        """Return what variables hold now that were assigned."""
        return {name: one.value for name, one in self.variables.items() if one.value != one.input}

    def inside(self, number: int, given: Sequence[Value], node: TfliteNode) -> tuple[Value, ...]:
        """Walk through a subgraph.

        Args:
            number: of the subgraph.
            given: its inputs.
            node: the operator that runs it.

        Returns:
            Its outputs.
        """
        reader = self._below(number)
        if len(given) != len(reader.model.inputs):
            raise node.error(f"{len(given)} inputs, subgraph {number} has more or fewer")
        for place, value in zip(reader.model.inputs, given, strict=True):
            if isinstance(value, Handle):
                reader.handles[place] = value.name
                continue
            self._same(value, reader.model.tensors[place], node)
            reader._names[place] = value
        reader.walk()
        places = reader.model.outputs
        made = [
            Handle(reader.handles[place]) if place in reader.handles else reader.tensor(place, node)
            for place in places
        ]
        results = (self.model.tensors[one] for one in node.operator.outputs)
        if len(made) == len(node.operator.outputs):
            for value, tensor in zip(made, results, strict=True):
                if not isinstance(value, Handle):
                    self._same(value, tensor, node)
        return tuple(made)

    def _same(self, name: str, tensor: FileTensor, node: TfliteNode) -> None:
        """Check that a tensor of another subgraph has the type of one here."""
        kind = self.build.type(name)
        apart = stands(tensor) and kind.quantisation != tensor.quantisation
        if kind.element != tensor.element or apart:
            raise node.error(
                f"tensor {tensor.name!r} of {tensor.kind} is given {type_text(kind)}, "
                "allowed one type"
            )

    def finish(self) -> Graph:
        """Return the graph, with a state for each variable that is read before it is assigned."""
        kept = [one for one in self.variables.values() if one.input]
        names = self.outputs()
        graph = self.build.finish([*names, *(one.value for one in kept)])
        left = graph.outputs[len(names) :]
        states = (State(one.input, name, one.initial) for one, name in zip(kept, left, strict=True))
        return self._called(replace(graph, states=tuple(states)))

    def _called(self, graph: Graph) -> Graph:
        """Give outputs the names of the file where those went to what is converted to them."""
        swapped: dict[str, str] = {}
        ends = {*graph.inputs, *graph.outputs}
        for place, name in zip(self.model.outputs, graph.outputs, strict=False):
            label = self.label(place)
            if name == label or label in ends | swapped.keys():
                continue
            if label in graph.tensors:
                swapped |= {name: label, label: name}
            elif graph.tensors[name].data is not None:
                swapped[name] = label
        return renamed(graph, swapped) if swapped else graph

    def outputs(self) -> list[str]:
        """Return the outputs of the graph."""
        found = []
        for place in self.model.outputs:
            tensor = self.model.tensors[place]
            if place in self._names:
                found.append(self._names[place])
            elif tensor.data is not None:
                found.append(self._constant(place, tensor.data))
            else:
                raise GraphError(
                    f"{self.build.file}: output {self.label(place)!r} is the result of nothing"
                )
        return found
