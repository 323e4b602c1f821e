# SPDX-License-Identifier: Apache-2.0
"""The inputs of a run: what is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from npu.graph.form import Array, Element, Graph, GraphError

Samples: TypeAlias = Mapping[str, Array]
UNNAMED = ""
"""Where the samples of the only input may stand."""


def check_shapes(shapes: Iterable[str], inputs: Iterable[str], file: str) -> None:
    """Raise GraphError for a shape of what is no input."""
    allowed = list(inputs)
    for name in shapes:
        if name not in allowed:
            raise GraphError(
                f"{file}: shape of {name!r}: no such input, allowed {', '.join(allowed) or 'none'}"
            )


def shape_option(name: str, sizes: Sequence[int | str]) -> str:
    """Return the option that binds the free dimensions (no number, or below 0) of an input to 1."""
    bound = (str(size) if str(size).isdecimal() else "1" for size in sizes)
    return f"--shape {name}={','.join(bound)}"


def check_inputs(graph: Graph, inputs: Samples) -> dict[str, Array]:
    """Return the inputs of one run in the types of the graph; none is given for a state.

    Raises:
        GraphError: a name, shape, type or value is wrong; the message says what is allowed.
    """
    refuse_states(graph, inputs)
    unknown = [name for name in inputs if name not in graph.arguments]
    missing = [name for name in graph.arguments if name not in inputs]
    if unknown or missing:
        what = f"unknown {unknown[0]!r}" if unknown else f"missing {missing[0]!r}"
        allowed = ", ".join(
            f"{name!r}: {graph.type(name).element}{list(graph.type(name).shape)}"
            for name in graph.arguments
        )
        raise GraphError(f"inputs: {what}; allowed are {allowed}")
    found = {}
    for name in graph.arguments:
        data, kind = np.asarray(inputs[name]), graph.type(name)
        if data.shape != kind.shape:
            raise GraphError(
                f"input {name!r} has shape {list(data.shape)}, allowed {list(kind.shape)}"
            )
        found[name] = typed(f"input {name!r}", data, kind.element)
    return found


def refuse_states(graph: Graph, given: Iterable[str]) -> None:
    """Raise GraphError if a value is given for what a run leaves to the next."""
    kept = {one.input for one in graph.states}
    for name in given:
        if name in kept:
            raise GraphError(
                f"input {name!r}: given a value, allowed none: it is a state, which every run "
                "leaves to the next"
            )


def typed(where: str, data: Array, element: Element) -> Array:
    """Return values in the type of an input. Raises GraphError for those that it cannot hold."""
    if not np.can_cast(data.dtype, element.dtype, casting="same_kind"):
        raise GraphError(f"{where}: given {data.dtype}, allowed {element}")
    with np.errstate(over="ignore"):
        converted = data.astype(element.dtype, copy=False)
    if data.dtype.kind == "f" and not np.isfinite(converted).all():
        first = tuple(int(one[0]) for one in np.nonzero(~np.isfinite(converted)))
        raise GraphError(
            f"{where}: given {data[first]} at {list(first)}, allowed finite numbers of {element}"
        )
    if data.dtype.kind in "iu" and not np.array_equal(converted, data):
        raise GraphError(f"{where}: given integers that are no {element}, allowed those that are")
    return converted
