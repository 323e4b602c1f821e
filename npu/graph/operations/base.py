# SPDX-License-Identifier: Apache-2.0
"""What an entry of the table of operations consists of, and what the entries share.

An entry is complete or it cannot be made: `Kind` refuses an empty sentence, a missing rule or a
kind of the chip without lowering when it is constructed, which is at import.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np

from npu.graph.form import LARGEST, Array, Element, GraphError, TensorType
from npu.graph.operations.constraints import Constraint

Shape: TypeAlias = tuple[int, ...]
Attributes: TypeAlias = Mapping[str, Any]
FLOATS = frozenset({Element.F32, Element.F16, Element.F64})

ATTRIBUTE_TYPES: Mapping[str, type] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "bytes": bytes,
    "ints": int,
    "floats": float,
    "strings": str,
}
LISTS = frozenset({"ints", "floats", "strings"})
ORIGINS = ("onnx", "stablehlo", "tflite")


class Trait(StrEnum):
    """What kinds of operations have in common, for passes that ask no more."""

    PRODUCT = "sums of products with weights"
    COPY = "the result's elements are those of the inputs, as integers too"
    POINTWISE = "an element of the result follows from those at its place"
    PAIR = "the chip's arithmetic of two tensors"
    SUM = "such arithmetic in one scale, whose result may leave the range of its terms"
    WITHIN = "such arithmetic in one scale, whose result stays in the range of its operands"
    COMMUTES = "the inputs may change places"
    BYTES = "the chip computes it with bytes only"
    SHARES = "the integers of the result stand for what those of the inputs do"
    NORM = "rows over their spread"
    BORDER = "between real numbers and integers, or two scales of integers"


@dataclass(frozen=True, slots=True)
class ResultType:
    """What a type rule says about an output: None is whatever the tensor of the graph says."""

    shape: Shape | None
    element: Element | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """What the float meaning of an operation is applied to.

    Attributes:
        attributes: of the operation.
        values: one array per input, None for an optional one that is not given.
        types: their types.
        results: the types that the outputs have in the graph.
    """

    attributes: Attributes
    values: Sequence[Array | None]
    types: Sequence[TensorType | None]
    results: Sequence[TensorType]

    def value(self, index: int) -> Array:
        """Return a required input."""
        value = self.values[index]
        if value is None:
            raise GraphError(f"input {index} is missing")
        return value

    def optional(self, index: int) -> Array | None:
        """Return an optional input, None where it is not given."""
        return self.values[index] if index < len(self.values) else None

    def wide(self, index: int) -> Array:
        """Return a required input for computing with: floats as float64, integers as they are."""
        return widened(self.value(index))


Types: TypeAlias = Sequence[TensorType | None]
TypeRule: TypeAlias = Callable[[Attributes, Types], tuple[ResultType, ...]]
Direct: TypeAlias = tuple[str, str, str]
Meaning: TypeAlias = Callable[[Call], tuple[Array, ...]]


@dataclass(frozen=True)
class Kind:
    """One entry of the table of operations.

    Attributes:
        name: of the kind.
        group: linear, elementwise, rows, windows, moves, borders, composites, host or opaque.
        inputs: their names; "?" behind the name of an optional one, "*" behind one that stands
            for any number.
        attributes: type of each by name: bool, int, float, str, bytes, ints, floats, strings.
        rule: shapes and element types of the outputs from attributes and types of the inputs;
            raises GraphError without naming the operation.
        meaning: the float meaning.
        summary: a sentence.
        integer: the integer meaning, as text.
        lowering: which instructions it becomes, as text.
        constraints: what must hold for the chip to execute it.
        sources: names of the source operations that become it, by origin.
        host_only: whether it is never executed by the chip.
        outputs: how many; -1 for any number.
        fused: attributes that the pass `fuse` adds, with types.
        traits: what it has in common with others.
        chip: what of the chip executes it, why it is placed there; "" for nothing.
        direct: the source operation that takes the same inputs and says no more, of each of
            ORIGINS, "" for none; importers know these from here.
    """

    name: str
    group: str
    inputs: tuple[str, ...]
    attributes: Mapping[str, str]
    rule: TypeRule
    meaning: Meaning
    summary: str
    integer: str
    lowering: str
    constraints: tuple[Constraint, ...]
    sources: Mapping[str, tuple[str, ...]]
    host_only: bool = False
    outputs: int = 1
    fused: Mapping[str, str] = field(default_factory=dict)
    traits: frozenset[Trait] = frozenset()
    chip: str = ""
    direct: Direct = ("", "", "")

    def __post_init__(self) -> None:
        """Refuse an entry that lacks something."""
        for part in ("name", "group", "summary", "integer", "lowering", "constraints"):
            if not getattr(self, part):
                raise ValueError(f"operation {self.name!r} of the table: no {part}")
        for part in ("summary", "integer", "lowering"):
            if not getattr(self, part).endswith("."):
                raise ValueError(f"operation {self.name!r}: {part} is not a sentence")
        if not callable(self.rule) or not callable(self.meaning):
            raise ValueError(f"operation {self.name!r} of the table: no type rule or float meaning")
        for name, given in {**self.attributes, **self.fused}.items():
            if given not in ATTRIBUTE_TYPES:
                raise ValueError(f"operation {self.name!r}: attribute {name} has type {given!r}")
        if not any((self.sources, *self.direct)) or not set(self.sources) <= set(ORIGINS):
            raise ValueError(f"operation {self.name!r}: sources {sorted(self.sources)}")

    def operators(self, origin: str) -> tuple[str, ...]:
        """Return all source operations of an origin that become it."""
        direct = self.direct[ORIGINS.index(origin)]
        return (direct,) * bool(direct) + self.sources.get(origin, ())

    @property
    def required(self) -> int:
        """How many inputs must be given."""
        return sum(not name.endswith(("?", "*")) for name in self.inputs)

    @property
    def variadic(self) -> bool:
        """Whether the last input stands for any number."""
        return bool(self.inputs) and self.inputs[-1].endswith("*")


def widened(value: Array) -> Array:
    """Return floats as float64 and anything else as it is."""
    return value.astype(np.float64) if value.dtype.kind == "f" else value


def known(types: Types, index: int) -> TensorType:
    """Return the type of a required input. Raises GraphError if it is not given."""
    if index >= len(types):
        raise GraphError(f"input {index} is missing")
    found = types[index]
    if found is None:
        raise GraphError(f"input {index} is missing")
    return found


def given(types: Types, index: int) -> TensorType | None:
    """Return the type of an optional input, None where it is not given."""
    return types[index] if index < len(types) else None


def plain(*types: TensorType | None) -> Element | None:
    """Return the element type common to inputs without quantisation, else None.

    None lets the graph decide: with quantised inputs the width of the result is a choice.
    Raises GraphError if unquantised inputs differ.
    """
    present = [one for one in types if one is not None]
    if any(one.quantisation is not None for one in present):
        return None
    elements = sorted({one.element for one in present})
    if len(elements) > 1:
        raise GraphError(f"element types {', '.join(elements)}, allowed one for all inputs")
    return elements[0]


def broadcast(*shapes: Shape) -> Shape:
    """Return the shape that numpy broadcasts to. Raises GraphError if there is none."""
    try:
        return tuple(int(size) for size in np.broadcast_shapes(*shapes))
    except ValueError:
        text = " and ".join(str(list(shape)) for shape in shapes)
        raise GraphError(f"shapes {text} do not broadcast") from None


def axis_of(axis: int, rank: int) -> int:
    """Return an axis. Raises GraphError unless it is in 0..rank-1."""
    if not 0 <= axis < rank:
        raise GraphError(f"axis {axis}, allowed 0..{rank - 1}")
    return axis


def exactly(what: str, found: Sequence[int], length: int) -> None:
    """Raise GraphError unless a list has a length."""
    if len(found) != length:
        raise GraphError(f"{what} {list(found)}, allowed {length} numbers")


def rank_of(what: str, found: TensorType, rank: int) -> Shape:
    """Return a shape. Raises GraphError unless it has the rank."""
    if len(found.shape) != rank:
        raise GraphError(f"{what} has shape {list(found.shape)}, allowed rank {rank}")
    return found.shape


def padded_fits(shape: Shape, pads: tuple[int, ...]) -> None:
    """Raise GraphError if an image has more elements with its pads than a tensor may have."""
    batch, height, width, channels = shape
    top, left, bottom, right = pads
    whole = (batch, top + height + bottom, left + width + right, channels)
    if math.prod(whole) > LARGEST:
        raise GraphError(f"image {list(whole)} with its pads, allowed {LARGEST:,} elements")


def windows_along(size: int, before: int, after: int, window: int, stride: int) -> int:
    """Return how many windows fit along an axis. Raises GraphError if none does."""
    if stride < 1 or window < 1 or min(before, after) < 0:
        raise GraphError(
            f"window {window}, stride {stride}, pads {before}, {after}: "
            "allowed window and stride from 1, pads from 0"
        )
    if size + before + after < window:
        raise GraphError(f"window of {window} over {size} with pads {before}, {after} fits nowhere")
    return (size + before + after - window) // stride + 1
