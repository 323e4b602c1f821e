# SPDX-License-Identifier: Apache-2.0
"""One node of an ONNX graph as a mapping sees it, and the table of mappings by version."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx.helper import get_attribute_value

from npu.graph.build import SHARING, Builder
from npu.graph.form import Array, Element, GraphError, TensorType
from npu.graph.importers.onnx_load import node_name
from npu.graph.importers.unmapped import UnmappedError
from npu.graph.operations import Trait, with_trait
from npu.graph.operations.base import FLOATS

_BORDERS = with_trait(Trait.BORDER)


class Attributes(dict[str, Any]):
    """Attributes of a node as Python values; remembers which of them a mapping has asked for."""

    def __init__(self, proto: onnx.NodeProto) -> None:
        super().__init__({one.name: get_attribute_value(one) for one in proto.attribute})
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        """Return an attribute that is there."""
        self.asked.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:  # noqa: ANN401
        """Return an attribute, or what it is if it is not there."""
        self.asked.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        """Say whether an attribute is there."""
        self.asked.add(str(name))
        return super().__contains__(name)


# What says nothing that a mapping must know: the shape of weights once more, noise that only
# training has, and what is of types of elements that graphs do not hold.
_SAYS_NOTHING = {
    "BatchNormalization": ("is_test", "momentum", "spatial"),
    "Cast": ("round_mode", "saturate"),
    "CastLike": ("round_mode", "saturate"),
    "Conv": ("kernel_shape",),
    "ConvInteger": ("kernel_shape",),
    "Dropout": ("is_test", "ratio", "seed"),
    "QLinearConv": ("kernel_shape",),
    "QuantizeLinear": ("saturate",),
}


@dataclass
class Node:
    """A node of the model and the graph that is being made.

    Attributes:
        build: the graph so far.
        proto: the node.
        version: of the standard operator set.
        read: names that a node reads or the graph returns.
        attributes: of the node.
    """

    build: Builder
    proto: onnx.NodeProto
    version: int
    read: Set[str]
    attributes: Attributes = field(init=False)

    def __post_init__(self) -> None:
        """Remember which operations are the node's own."""
        self.attributes = Attributes(self.proto)
        self._asked: set[int] = set()
        self._first = len(self.build.operations)

    def refuse_unread(self) -> None:
        """Refuse what the node says and no mapping has asked for.

        Raises:
            UnmappedError: an attribute that is not as if it were left out, or an input.
        """
        schema = _schema(self.proto.op_type, self.version, self.proto.domain)
        ignored = _SAYS_NOTHING.get(self.proto.op_type, ())
        for name in sorted(self.attributes.keys() - self.attributes.asked - {*ignored}):
            value = self.attributes[name]
            known = schema.attributes.get(name) if schema else None
            if known is None or not known.default_value.name:
                raise UnmappedError(f"attribute {name} is not mapped")
            if value != get_attribute_value(known.default_value):
                raise UnmappedError(f"attribute {name} = {value} is not mapped")
        for index, name in enumerate(self.proto.input):
            if name and index not in self._asked:
                raise UnmappedError(f"input {index}, {name!r}, is not mapped")

    @property
    def name(self) -> str:
        """The name in the user's file."""
        return node_name(self.proto)

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs, "" for one that is not given."""
        self._asked.update(range(len(self.proto.input)))
        return list(self.proto.input)

    def input(self, index: int) -> str:
        """Return the name of an input, "" if it is not given."""
        self._asked.add(index)
        return self.proto.input[index] if index < len(self.proto.input) else ""

    def wants(self, index: int) -> bool:
        """Say whether somebody reads an output of the node."""
        return index < len(self.proto.output) and self.proto.output[index] in self.read

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        return self.build.shape(name)

    def type(self, name: str) -> TensorType:
        """Return the type of a tensor."""
        return self.build.type(name)

    def value(self, index: int, what: str) -> Array:
        """Return an input that must be constant. Raises UnmappedError otherwise."""
        name = self.input(index)
        found = self.build.value(name)
        if found is None:
            raise UnmappedError(
                f"{what} {name!r} is not constant" if name else f"{what} is not given"
            )
        return found

    def integers(self, index: int, what: str) -> tuple[int, ...]:
        """Return a constant input as a list of integers."""
        return tuple(int(one) for one in self.value(index, what).reshape(-1))

    def listed(self, attribute: str, index: int, since: int) -> tuple[int, ...] | None:
        """Return a list that was an attribute and became an input; None if it is not given."""
        if self.version < since:
            found = self.attributes.get(attribute)
            return None if found is None else tuple(found)
        return self.integers(index, attribute) if self.input(index) else None

    def floats(self, *names: str) -> None:
        """Raise UnmappedError unless tensors are floats."""
        for name in names:
            if name and self.type(name).element not in FLOATS:
                raise UnmappedError(f"{name!r} is {self.type(name).element}, mapped are floats")

    def axis(self, axis: int, rank: int) -> int:
        """Return an axis counted from 0. Raises GraphError if there is none."""
        if not -rank <= axis < rank:
            raise GraphError(f"axis {axis}, allowed {-rank}..{rank - 1}")
        return axis + rank if axis < 0 else axis

    def broadcast_from(self, a: str, b: str) -> str:
        """Return b so that it broadcasts to a: before version 7 `axis` says where it begins."""
        if self.version >= 7:
            return b
        # What it says is that shapes may differ, and their shapes say so too.
        self.attributes.get("broadcast")
        if "axis" not in self.attributes:
            return b
        axis = self.axis(self.attributes["axis"], len(self.shape(a)))
        missing = len(self.shape(a)) - axis - len(self.shape(b))
        return self.reshape(b, (*self.shape(b), *(1,) * missing), "broadcast")

    def add(
        self,
        kind: str,
        inputs: Sequence[str],
        part: str = "",
        *,
        result: TensorType | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation of the graph; `part` names one that is not the node's own.

        On integers with a scale it works on the real numbers, and gives integers again.

        Raises:
            UnmappedError: its inputs are integers of different scales.
        """
        if result is None and kind not in _BORDERS:
            counted = inputs[:1] if kind == "gather" else inputs
            types = {self.type(name) for name in counted if name}
            if any(one.quantisation for one in types):
                scales = {(one.element, one.quantisation) for one in types}
                if len(scales) > 1 or kind not in SHARING:
                    raise UnmappedError(f"{kind} of integers with a scale is not mapped")
                return self.in_reals(kind, inputs, part, **attributes)
        return self.build.add(
            kind,
            inputs,
            wish=f"{self.name}.{part}" if part else self.name,
            source=self.proto.op_type,
            result=result,
            **attributes,
        )

    def in_reals(
        self,
        kind: str,
        inputs: Sequence[str],
        part: str = "",
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation between borders of one scale."""
        given = self.type(inputs[0])
        if given.quantisation is None or given.quantisation.axis is not None:
            raise UnmappedError(f"{kind} of integers with several scales is not mapped")
        real = [
            self.add("dequantise", [name], f"{part}.real".strip("."))
            if self.type(name).quantisation
            else name
            for name in inputs
        ]
        y = self.add(kind, real, part, **attributes)
        kept = TensorType(self.shape(y), given.element, given.quantisation)
        return self.add("quantise", [y], f"{part}.integers".strip("."), result=kept)

    def table(
        self, x: str, *functions: str, parameters: Sequence[float] = (), part: str = ""
    ) -> str:
        """Add functions of one variable."""
        return self.add("table", [x], part, functions=functions, parameters=parameters)

    def transpose(self, x: str, order: Sequence[int], part: str = "layout") -> str:
        """Add a transpose, or move a constant at once."""
        if tuple(order) == tuple(range(len(order))):
            return x
        data = self.build.value(x)
        if data is not None and self.type(x).quantisation is None:
            return self.constant(data.transpose(tuple(order)), f"{x}.{part}")
        return self.add("transpose", [x], part, order=order)

    def reshape(self, x: str, shape: Sequence[int], part: str = "shape") -> str:
        """Add a reshape, or change a constant at once."""
        shape = tuple(int(size) for size in shape)
        if shape == self.shape(x):
            return x
        data = self.build.value(x)
        if data is not None and self.type(x).quantisation is None:
            return self.constant(data.reshape(shape), f"{x}.{part}")
        return self.add("reshape", [x], part, shape=shape)

    def constant(self, data: Any, wish: str) -> str:  # noqa: ANN401
        """Add a constant."""
        return self.build.constant(data, wish)

    def like(self, x: str, value: float) -> str:
        """Add a constant scalar of the element type of a tensor."""
        return self.constant(np.array(value, self.type(x).element.dtype), f"{self.name}.value")

    def give(self, name: str, index: int = 0) -> None:
        """Make a tensor the output of the node under the name that the file gives it."""
        if index >= len(self.proto.output) or not self.proto.output[index]:
            return
        wanted = self.proto.output[index]
        tensor = self.build.tensors[name]
        if tensor.constant and tensor.type.quantisation is None:
            self.build.declare(replace(tensor, name=wanted))
        elif self.build.operations[self._first :] and name in self.build.operations[-1].outputs:
            self.build.rename_last(wanted)
        else:
            self.build.add(
                "identity",
                [name],
                wish=f"{self.name}.{index}" if index else self.name,
                output=wanted,
                source=self.proto.op_type,
                result=tensor.type,
            )


def _schema(operator: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(operator, version, "" if domain == "ai.onnx" else domain)
    except onnx.defs.SchemaError:
        return None


Mapping_: TypeAlias = Callable[[Node], None]
OWN_DOMAIN = "tessera"
"""Of operators that are ours; the table has them with it in front."""
FIRST_MAPPED = 7

MAPPINGS: dict[str, list[tuple[int, int, Mapping_]]] = {}


def mapped(*operators: str, since: int = 7, until: int = 28) -> Callable[[Mapping_], Mapping_]:
    """Register a mapping for operators in a range of versions of the operator set."""

    def register(function: Mapping_) -> Mapping_:
        for operator in operators:
            ranges = MAPPINGS.setdefault(operator, [])
            if any(first <= until and since <= last for first, last, _ in ranges):
                raise ValueError(f"{operator} is mapped twice in {since}..{until}")
            ranges.append((since, until, function))
        return function

    return register


# Operators of versions before 7 whose mapping knows what was different.
_OLD = frozenset(
    {
        *("Add", "AveragePool", "BatchNormalization", "Div", "Dropout", "Gemm", "Mul", "Pow"),
        *("PRelu", "Sub", "And", "Or", "Xor", "Equal", "Greater", "Less"),
    }
)


def _unchanged(operator: str, version: int) -> bool:
    """Say whether an operator of a version before 7 is that of version 7."""
    try:
        old, new = (onnx.defs.get_schema(operator, one) for one in (version, 7))
    except onnx.defs.SchemaError:
        return False
    return bool(old.since_version == new.since_version)


def mapping_of(operator: str, version: int) -> Mapping_ | None:
    """Return the mapping of an operator in a version, None if there is none."""
    if version < 7:
        if operator not in _OLD and not _unchanged(operator, version):
            return None
        version = 7
    for first, last, function in MAPPINGS.get(operator, ()):
        if first <= version <= last:
            return function
    return None


def element_of(data_type: int) -> Element:
    """Return the element type of an ONNX type. Raises GraphError for one that no graph holds.

    bfloat16, which numpy does not have, is held in float32: that has all of its numbers.
    """
    if data_type == onnx.TensorProto.BFLOAT16:
        return Element.F32
    try:
        return Element.of(onnx.helper.tensor_dtype_to_np_dtype(data_type))
    except (ValueError, KeyError, TypeError):
        known = onnx.TensorProto.DataType
        name = known.Name(data_type) if data_type in known.values() else str(data_type)
        raise GraphError(f"element type {name}, allowed {', '.join(Element)}") from None
