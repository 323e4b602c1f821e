# SPDX-License-Identifier: Apache-2.0
"""Runs a fused graph: operations of the chip in integers, all others in their float meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from golden.graph import attention, elementwise, linear, moves, port, rows, windows
from golden.graph.call import IntegerCall
from npu.graph import evaluate as floats
from npu.graph.form import Array, Graph, GraphError, Operation

Host: TypeAlias = Callable[[Graph, Operation, Sequence[Array | None]], Sequence[Array]]
"""The float meaning of one operation: graph, operation and its inputs to its outputs."""

MEANINGS: dict[str, Callable[[IntegerCall], Array]] = {
    **linear.MEANINGS,
    **elementwise.MEANINGS,
    **rows.MEANINGS,
    **windows.MEANINGS,
    **moves.MEANINGS,
    **attention.MEANINGS,
}
"""What each kind computes on the chip, in integers."""

Meanings: TypeAlias = Mapping[str, Callable[[IntegerCall], Array]]

BORDERS = frozenset({"quantise", "dequantise"})
"""The host executes these wherever they are placed."""


def run(
    graph: Graph,
    inputs: Mapping[str, Array],
    *,
    host: Host = floats.run,
    keep: Iterable[str] = (),
) -> dict[str, Array]:
    """Evaluate a fused graph.

    Args:
        graph: placed and fused.
        inputs: an array per graph input, in its shape; the type is converted if it is of one kind
            and no integer is lost.
        host: the float meaning of an operation that is not on the chip, and of the borders.
        keep: names of tensors to return besides the outputs.

    Returns:
        Outputs and kept tensors by name, in shape and type of the graph.

    Raises:
        GraphError: an input is missing or wrong, an operation of the chip has no integer meaning,
            or leaves its accumulators.
    """
    wanted = (*graph.outputs, *keep)
    for name in wanted:
        if name not in graph.tensors:
            raise GraphError(f"tensor {name!r} does not exist")
    values = {name: one.data for name, one in graph.tensors.items() if one.data is not None}
    values.update({name: _input(graph, name, inputs) for name in graph.inputs})
    last = {name: index for index, one in enumerate(graph.operations) for name in one.used}
    for index, one in enumerate(graph.operations):
        given = [values[name] if name else None for name in one.inputs]
        if one.on_port:
            found: Sequence[Array] = _integers(graph, one, given, port.MEANINGS)
        elif one.on_chip and one.kind not in BORDERS:
            found = _integers(graph, one, given, MEANINGS)
        else:
            found = host(graph, one, given)
        values.update(zip(one.outputs, found, strict=True))
        for name in {*one.used, *one.outputs} - set(wanted):
            if last.get(name, -1) <= index:
                del values[name]
    return {name: values[name] for name in wanted}


def _input(graph: Graph, name: str, inputs: Mapping[str, Array]) -> Array:
    kind = graph.type(name)
    if name not in inputs:
        raise GraphError(f"input {name!r} is missing, it is {kind.element}{list(kind.shape)}")
    value = np.asarray(inputs[name])
    if value.shape != kind.shape or not np.can_cast(value.dtype, kind.element.dtype, "same_kind"):
        raise GraphError(
            f"input {name!r} is {value.dtype}{list(value.shape)}, "
            f"allowed {kind.element}{list(kind.shape)}"
        )
    converted = value.astype(kind.element.dtype, copy=False)
    if value.dtype.kind in "iu" and not np.array_equal(converted, value):
        raise GraphError(f"input {name!r} holds integers that are no {kind.element}")
    return converted


def _integers(
    graph: Graph, op: Operation, values: Sequence[Array | None], meanings: Meanings
) -> list[Array]:
    where = f"operation {op.name!r} ({op.kind})"
    if op.kind not in meanings:
        allowed = ", ".join(sorted(meanings))
        raise GraphError(f"{where}: no integer meaning on the chip, allowed {allowed}")
    kind = graph.type(op.outputs[0])
    try:
        found = meanings[op.kind](IntegerCall(op, values, kind))
    except KeyError as error:
        raise GraphError(f"{where}: attribute or integers {error} missing, is it fused?") from None
    except (OverflowError, ValueError, TypeError, IndexError) as error:
        raise GraphError(f"{where}: {error}") from None
    if found.shape != kind.shape:
        raise GraphError(f"{where}: makes {list(found.shape)}, the graph has {list(kind.shape)}")
    result = found.astype(kind.element.dtype)
    if not np.array_equal(result, found):
        raise GraphError(
            f"{where}: makes {found.min()}..{found.max()}, the graph has {kind.element}"
        )
    return [result]
