# SPDX-License-Identifier: Apache-2.0
"""Dialects of ONNX: operators of other domains, in operators of the standard.

One table has them all. An entry is a function that takes a node and says with operators of the
standard what it computes; these are then read as if they stood in the file. Users add theirs with
`tessera.operator`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper, numpy_helper

from npu.graph.form import Array, GraphError, Operation, TensorType
from npu.graph.importers.onnx_load import node_name, standard
from npu.graph.importers.onnx_node import OWN_DOMAIN, Attributes
from npu.graph.importers.unmapped import UnmappedError

VERSION = 23
"""Of the standard operators that take the place of others."""

Adding: TypeAlias = Callable[[onnx.NodeProto], None]


class ForeignNode:
    """A node of a dialect, as its entry sees it.

    Attributes:
        name: in the user's file.
        operator: its kind.
        attributes: of the node; what is not asked for refuses it.
        inputs: names of its inputs, "" for one that is not given.
    """

    def __init__(self, proto: onnx.NodeProto, build: Any, add: Adding) -> None:  # noqa: ANN401
        """Take a node and what adds others to the graph."""
        self.name = node_name(proto)
        self.operator = proto.op_type
        self.attributes = Attributes(proto)
        self.inputs = list(proto.input)
        self._outputs = list(proto.output)
        self._build = build
        self._add = add
        self._asked: set[int] = set()

    def input(self, index: int) -> str:
        """Return the name of an input, "" if it is not given."""
        self._asked.add(index)
        return self.inputs[index] if index < len(self.inputs) else ""

    def rest(self, first: int) -> list[str]:
        """Return the names of all inputs from one on."""
        return [self.input(index) for index in range(first, len(self.inputs))]

    def known(self, name: str) -> Array | None:
        """Return the value of a tensor, None if it is not constant."""
        found: Array | None = self._build.value(name)
        return found

    def value(self, name: str, what: str) -> Array:
        """Return the value of a tensor. Raises GraphError if it is not constant."""
        found = self.known(name)
        if found is None:
            raise GraphError(f"{what} {name!r} is not constant" if name else f"{what} is missing")
        return found

    @staticmethod
    def array(attribute: Any) -> Array:  # noqa: ANN401
        """Return an attribute that is a number, a list or a tensor as an array."""
        if isinstance(attribute, onnx.TensorProto):
            attribute = numpy_helper.to_array(attribute)
        found: Array = np.asarray(attribute)
        return found

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        shape: tuple[int, ...] = self._build.shape(name)
        return shape

    def kind(self, name: str) -> TensorType:
        """Return the type of a tensor."""
        kind: TensorType = self._build.type(name)
        return kind

    def maker(self, name: str) -> Operation | None:
        """Return the operation of the graph that makes a tensor, None for inputs and constants."""
        made: Operation | None = self._build.producer(name)
        return made

    def dtype(self, name: str) -> np.dtype[Any]:
        """Return the type of a tensor's elements."""
        return self.kind(name).element.dtype

    def constant(self, data: Any) -> str:  # noqa: ANN401
        """Add a constant; return its name."""
        name: str = self._build.constant(np.asarray(data), f"{self.name}.constant")
        return name

    def add(self, operator: str, inputs: Sequence[str], **attributes: Any) -> str:  # noqa: ANN401
        """Add an operator of the standard; return the name of its result."""
        result = self._build.fresh(f"{self.name}.{operator.lower()}")
        self._make(operator, inputs, [result], attributes)
        return str(result)

    def add_many(
        self,
        operator: str,
        inputs: Sequence[str],
        **attributes: Any,  # noqa: ANN401
    ) -> list[str]:
        """Add an operator with as many results as the node; return their names."""
        results = [self._build.fresh(f"{self.name}.{operator.lower()}") for _ in self._outputs]
        results = [
            str(name) if wanted else "" for name, wanted in zip(results, self._outputs, strict=True)
        ]
        self._make(operator, inputs, results, attributes)
        return results

    def give(
        self,
        operator: str,
        inputs: Sequence[str],
        index: int = 0,
        **attributes: Any,  # noqa: ANN401
    ) -> None:
        """Add the operator of the standard that makes a result of the node."""
        if index < len(self._outputs) and self._outputs[index]:
            self._make(operator, inputs, [self._outputs[index]], attributes)

    def become(self, operator: str, inputs: Sequence[str], **attributes: Any) -> None:  # noqa: ANN401
        """Add the operator of the standard that makes all results of the node."""
        self._make(operator, inputs, self._outputs, attributes)

    def _make(
        self, operator: str, inputs: Sequence[str], results: list[str], attributes: dict[str, Any]
    ) -> None:
        said = {key: value for key, value in attributes.items() if value is not None}
        given = list(inputs)
        while given and not given[-1]:
            given.pop()
        self._add(helper.make_node(operator, given, results, self.name, **said))

    def refuse_unread(self) -> None:
        """Refuse what the node says and its entry has not asked for."""
        for name in sorted(self.attributes.keys() - self.attributes.asked):
            raise GraphError(f"attribute {name} = {self.attributes[name]} is not known")
        for index, name in enumerate(self.inputs):
            if name and index not in self._asked:
                raise GraphError(f"input {index}, {name!r}, is not known")


Entry: TypeAlias = Callable[[ForeignNode], None]
DIALECTS: dict[tuple[str, str], Entry] = {}
"""By domain and operator; the domain is "" for what names none and is not of the standard."""


def operator(*names: str, domain: str | Iterable[str]) -> Callable[[Entry], Entry]:
    """Say what operators of a domain, or of several, compute.

    Args:
        names: of operators.
        domain: "" for such as name none, and are not of the standard.
    """

    def register(entry: Entry) -> Entry:
        for one in [domain] if isinstance(domain, str) else domain:
            if one == OWN_DOMAIN:
                raise ValueError(f"domain {one!r} is ours, allowed any other")
            DIALECTS.update(dict.fromkeys(((one, name) for name in names), entry))
        return entry

    return register


def refusal(node: onnx.NodeProto, version: int) -> str:
    """Return why nobody here knows an operator."""
    domain = standard(node.domain)
    known = sorted(name for at, name in DIALECTS if at == domain)
    if domain == "":
        return (
            f"no operator of version {version} of the standard, or of a dialect without a domain, "
            f"allowed of those {', '.join(known)}"
        )
    if known:
        return f"no operator of domain {domain!r} that is known, allowed {', '.join(known)}"
    domains = sorted({at for at, _ in DIALECTS} - {""})
    return f"domain {domain!r}, allowed that of the standard, {', '.join(domains)}"


def expand(node: onnx.NodeProto, entry: Entry, build: Any, add: Adding) -> None:  # noqa: ANN401
    """Add what a node of a dialect computes.

    Raises:
        GraphError: its entry does not know this form of it.
    """
    one = ForeignNode(node, build, add)
    try:
        entry(one)
        one.refuse_unread()
    except UnmappedError as reason:
        raise GraphError(str(reason)) from None
