# SPDX-License-Identifier: Apache-2.0
"""The float meaning of a graph: what calibration and the comparison with sources run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from npu.graph import host_process
from npu.graph.form import Array, Graph, GraphError, Operation, TensorType
from npu.graph.operations import Call, Trait, kind_of, with_trait
from npu.graph.operations.borders import dequantised, quantised
from npu.graph.verify import named

_AS_THEY_ARE = with_trait(Trait.BORDER) | {"host", "portmatmul"}


def evaluate(
    graph: Graph, inputs: Mapping[str, Array], *, keep: Iterable[str] = ()
) -> dict[str, Array]:
    """Evaluate a graph in floats.

    Sums are accumulated in float64 and every tensor is rounded to its type. Integer tensors with
    a scale carry integers: what reads them reads the real numbers they stand for.

    Args:
        graph: before the pass `fuse`.
        inputs: an array per graph input, of its shape; the type is converted if that loses
            nothing of its kind.
        keep: names of tensors to return besides the outputs.

    Returns:
        Outputs and kept tensors by name, in shape and type of the graph.

    Raises:
        GraphError: an input is missing or has another shape, or an operation cannot be evaluated.
    """
    wanted = [*graph.outputs, *keep]
    for name in wanted:
        if name not in graph.tensors:
            raise GraphError(f"tensor {name!r} does not exist")
    values = {name: one.data for name, one in graph.tensors.items() if one.data is not None}
    values.update({name: _input(graph, name, inputs) for name in graph.inputs})
    last = {name: index for index, one in enumerate(graph.operations) for name in one.used}
    kept = set(wanted)
    for index, operation in enumerate(graph.operations):
        given = [values[name] if name else None for name in operation.inputs]
        for name, value in zip(operation.outputs, run(graph, operation, given), strict=True):
            values[name] = value
        for name in (*operation.used, *operation.outputs):
            if last.get(name, -1) <= index and name not in kept:
                values.pop(name, None)
    return {name: values[name] for name in wanted}


def _input(graph: Graph, name: str, inputs: Mapping[str, Array]) -> Array:
    kind = graph.type(name)
    if name not in inputs:
        raise GraphError(f"input {name!r} is missing, it is {kind.element}{list(kind.shape)}")
    value = np.asarray(inputs[name])
    if value.shape != kind.shape:
        raise GraphError(
            f"input {name!r} has shape {list(value.shape)}, allowed {list(kind.shape)}"
        )
    if not np.can_cast(value.dtype, kind.element.dtype, casting="same_kind"):
        raise GraphError(f"input {name!r} is {value.dtype}, allowed {kind.element}")
    converted = value.astype(kind.element.dtype, copy=False)
    if value.dtype.kind in "iu" and not np.array_equal(converted, value):
        raise GraphError(f"input {name!r} holds integers that are no {kind.element}")
    return converted


def run(graph: Graph, operation: Operation, values: Sequence[Array | None]) -> list[Array]:
    """Evaluate one operation.

    Args:
        graph: that has the types of its tensors.
        operation: of the graph.
        values: one per input, None for one that is not given.

    Returns:
        One array per output, in shape and type of the graph.

    Raises:
        GraphError: naming the operation.
    """
    results = [graph.type(name) for name in operation.outputs]
    types = [graph.type(name) if name else None for name in operation.inputs]
    try:
        if operation.integers:
            raise GraphError("it is fused, only what comes before that has a float meaning")
        if operation.kind == "host":
            found = host_process.evaluate(graph, operation, values)
        else:
            entry = kind_of(operation)
            if operation.kind not in _AS_THEY_ARE:
                values, types = _real(operation, values, types, results)
            found = list(entry.meaning(Call(operation.attributes, values, types, results)))
        return [_typed(value, kind) for value, kind in zip(found, results, strict=True)]
    except (GraphError, ValueError, IndexError, OverflowError) as error:
        raise GraphError(f"{named(operation)}: {error}") from None


def _real(
    operation: Operation,
    values: Sequence[Array | None],
    types: Sequence[TensorType | None],
    results: Sequence[TensorType],
) -> tuple[list[Array | None], list[TensorType | None]]:
    """Replace integers that stand for real numbers by these, but where only places change."""
    moved = kind_of(operation).group == "moves" and operation.kind != "pad"
    scales = {one.quantisation for one in (*types, *results) if one is not None} - {None}
    if (moved and len(scales) <= 1) or not scales:
        return list(values), list(types)
    real: list[Array | None] = []
    for value, kind in zip(values, types, strict=True):
        if value is not None and kind is not None and kind.quantisation is not None:
            value = dequantised(value, kind)
        real.append(value)
    return real, list(types)


def _typed(value: Array, kind: TensorType) -> Array:
    """Return a value in shape and type of the graph."""
    if value.shape != kind.shape:
        raise GraphError(f"a result has shape {list(value.shape)}, the graph {list(kind.shape)}")
    if kind.quantisation is not None and value.dtype.kind == "f":
        return quantised(value, kind)
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(value.astype(kind.element.dtype, copy=False)).reshape(
            kind.shape
        )
