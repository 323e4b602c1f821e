# SPDX-License-Identifier: Apache-2.0
"""The one table of operations: what each kind takes, gives, means and becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from npu.graph.form import GraphError, Operation, TensorType
from npu.graph.operations import (
    borders,
    composites,
    elementwise,
    host,
    linear,
    moves,
    port,
    rows,
    windows,
)
from npu.graph.operations.base import (
    ATTRIBUTE_TYPES,
    LISTS,
    ORIGINS,
    Call,
    Kind,
    ResultType,
    Trait,
)

__all__ = [
    "TABLE",
    "Call",
    "Kind",
    "ResultType",
    "Trait",
    "check_attributes",
    "direct",
    "infer",
    "kind_of",
    "register",
    "with_trait",
]

TABLE: dict[str, Kind] = {}


def register(kinds: Iterable[Kind]) -> None:
    """Add kinds to the table. Raises ValueError for a name that it has."""
    for kind in kinds:
        if kind.name in TABLE:
            raise ValueError(f"operation {kind.name!r} is in the table twice")
        TABLE[kind.name] = kind


for _group in (linear, elementwise, rows, windows, moves, borders, composites, host, port):
    register(_group.KINDS)


def with_trait(trait: Trait) -> frozenset[str]:
    """Return the kinds that have a trait."""
    return frozenset(name for name, kind in TABLE.items() if trait in kind.traits)


def direct(origin: str) -> dict[str, str]:
    """Return the kinds of the source operations that say nothing but their inputs."""
    found = {kind.direct[ORIGINS.index(origin)]: name for name, kind in TABLE.items()}
    return {operator: name for operator, name in found.items() if operator}


def kind_of(operation: Operation) -> Kind:
    """Return the entry of an operation. Raises GraphError for a kind that does not exist."""
    if operation.kind not in TABLE:
        raise GraphError(f"kind {operation.kind!r}, allowed {', '.join(TABLE)}")
    return TABLE[operation.kind]


def infer(
    kind: str, attributes: Mapping[str, Any], types: Sequence[TensorType | None]
) -> tuple[ResultType, ...]:
    """Return the types of the outputs of a kind, as far as its type rule knows them.

    Args:
        kind: a name of the table.
        attributes: all of them.
        types: of the inputs, None for an optional one that is not given.

    Returns:
        One result per output; of a kind with any number of outputs nothing.

    Raises:
        GraphError: the inputs are not allowed; the message does not name the operation.
    """
    return TABLE[kind].rule(attributes, types)


def check_attributes(operation: Operation) -> None:
    """Raise GraphError unless an operation has exactly its attributes, each of its type."""
    entry = kind_of(operation)
    allowed = {**entry.attributes, **entry.fused}
    missing = [name for name in entry.attributes if name not in operation.attributes]
    if missing:
        raise GraphError(
            f"attribute {missing[0]!r} is missing, it is of type {allowed[missing[0]]}"
        )
    for name, value in operation.attributes.items():
        if name not in allowed:
            known = ", ".join(allowed) or "none"
            raise GraphError(f"attribute {name!r}, allowed {known}")
        _check_type(name, value, allowed[name])


def _check_type(name: str, value: object, wanted: str) -> None:
    element = ATTRIBUTE_TYPES[wanted]
    values = value if wanted in LISTS else (value,)
    fits = isinstance(values, tuple) and all(_is(one, element) for one in values)
    if not fits:
        raise GraphError(
            f"attribute {name!r} is {value!r} ({type(value).__name__}), allowed {wanted}"
        )


def _is(value: object, element: type) -> bool:
    """Say whether a value has exactly a type; an enumeration of strings is a string."""
    return type(value) is element or (element is str and isinstance(value, str))
