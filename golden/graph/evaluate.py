# SPDX-License-Identifier: Apache-2.0
"""Runs a fused graph: operations of the chip in integers, all others in their float meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from golden.graph import attention, elementwise, linear, moves, rows, windows
from golden.graph.call import Call
from npu.graph import evaluate as floats
from npu.graph.form import Array, Graph, GraphError, Operation

MEANINGS: dict[str, Callable[[Call], Array]] = {
    **linear.MEANINGS,
    **elementwise.MEANINGS,
    **rows.MEANINGS,
    **windows.MEANINGS,
    **moves.MEANINGS,
    **attention.MEANINGS,
}
"""What each kind computes on the chip, in integers."""


def run(graph: Graph, inputs: Mapping[str, Array], *, keep: Iterable[str] = ()) -> dict[str, Array]:
    """Evaluate a fused graph.

    Args:
        graph: placed and fused.
        inputs: an array per graph input, in its shape and type.
        keep: names of tensors to return besides the outputs.

    Returns:
        Outputs and kept tensors by name, in shape and type of the graph.

    Raises:
        GraphError: an operation of the chip has no integer meaning, or leaves its accumulators.
    """
    values = {name: one.data for name, one in graph.tensors.items() if one.data is not None}
    for name in graph.inputs:
        kind = graph.type(name)
        values[name] = np.asarray(inputs[name]).astype(kind.element.dtype).reshape(kind.shape)
    for one in graph.operations:
        given = [values[name] if name else None for name in one.inputs]
        found = _chip(graph, one, given) if one.on_chip else floats.run(graph, one, given)
        values.update(zip(one.outputs, found, strict=True))
    return {name: values[name] for name in (*graph.outputs, *keep)}


def _chip(graph: Graph, one: Operation, values: Sequence[Array | None]) -> list[Array]:
    if one.kind not in MEANINGS:
        raise GraphError(f"operation {one.name!r} ({one.kind}): no integer meaning on the chip")
    kind = graph.type(one.outputs[0])
    try:
        found = MEANINGS[one.kind](Call(one, values, kind))
    except (OverflowError, ValueError) as error:
        raise GraphError(f"operation {one.name!r} ({one.kind}): {error}") from None
    if found.shape != kind.shape:
        raise GraphError(
            f"operation {one.name!r} ({one.kind}): makes {found.shape}, the graph has {kind.shape}"
        )
    return [found.astype(kind.element.dtype)]
