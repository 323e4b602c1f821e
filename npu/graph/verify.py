# SPDX-License-Identifier: Apache-2.0
"""Checks that a graph is one: names, order, types and shapes, scales, places."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Element, Graph, GraphError, Operation, Tensor
from npu.graph.operations import check_attributes, infer, kind_of
from npu.graph.text import type_text
from weights.formats.recipe import WORDS

_INTEGERS = frozenset({Element.I8, Element.U8, Element.I16, Element.U16, Element.I32})
# What these take and give stands for real numbers: beside one scale all integers need one.
_REAL_GROUPS = frozenset({"linear", "rows", "windows", "composites"})


def verify(graph: Graph, *, file: str = "", placed: bool = False, planned: bool = False) -> None:
    """Check a graph.

    Args:
        graph: to check.
        file: named in errors.
        placed: whether each operation must have a place.
        planned: whether it is the graph of a plan, which has the weights of programs elsewhere.

    Raises:
        GraphError: naming file, operation and tensor, what was given and what is allowed.
    """
    try:
        _check_tensors(graph)
        _check_ends(graph)
        _check_states(graph)
        _check_order(graph, planned)
        for operation in graph.operations:
            check_operation(graph, operation)
            if placed and operation.place is None:
                raise GraphError(f"{named(operation)}: it has no place, allowed npu or host")
    except GraphError as error:
        raise GraphError(f"{file}: {error}" if file else str(error)) from None


def named(operation: Operation) -> str:
    """Return how an error calls an operation: its name, kind and source."""
    source = f", {operation.source}" if operation.source else ""
    return f"operation {operation.name!r} ({operation.kind}{source})"


def _check_tensors(graph: Graph) -> None:
    for key, tensor in graph.tensors.items():
        if key != tensor.name or not key:
            raise GraphError(f"tensor {key!r} is called {tensor.name!r}, allowed one name, not ''")
        _check_type(tensor)
        if tensor.data is not None:
            given = (tensor.data.shape, tensor.data.dtype)
            if given != (tensor.shape, tensor.type.element.dtype):
                raise GraphError(
                    f"tensor {key!r} holds {given[1]}{list(given[0])}, its type is "
                    f"{tensor.type.element}{list(tensor.shape)}"
                )


def _check_type(tensor: Tensor) -> None:
    shape = tensor.shape
    if not isinstance(shape, tuple) or any(type(size) is not int or size < 0 for size in shape):
        raise GraphError(f"tensor {tensor.name!r} has shape {shape!r}, allowed integers from 0")
    quantisation = tensor.type.quantisation
    if quantisation is None:
        return
    where = f"tensor {tensor.name!r}"
    if tensor.type.element not in _INTEGERS:
        raise GraphError(
            f"{where} is {tensor.type.element} with a scale, allowed {', '.join(sorted(_INTEGERS))}"
        )
    axis, scales = quantisation.axis, quantisation.scales
    if axis is not None and not 0 <= axis < len(shape):
        raise GraphError(
            f"{where} has a scale per index of axis {axis}, its shape is {list(shape)}"
        )
    wanted = 1 if axis is None else shape[axis]
    if len(scales) != wanted:
        raise GraphError(f"{where} has {len(scales)} scales, allowed {wanted}")
    if not all(np.isfinite(one) and one > 0 for one in scales):
        raise GraphError(f"{where} has a scale that is not a positive number")
    edge = np.iinfo(tensor.type.element.dtype)
    if not edge.min <= quantisation.zero <= edge.max:
        raise GraphError(
            f"{where} has zero point {quantisation.zero}, allowed {edge.min}..{edge.max}"
        )
    if quantisation.format and quantisation.format not in WORDS:
        raise GraphError(
            f"{where} has format {quantisation.format!r}, allowed {', '.join(sorted(WORDS))}"
        )


def _check_order(graph: Graph, planned: bool) -> None:
    """Check single assignment, and that each operation stands behind what it reads."""
    makers = graph.producers()
    assigned = set(graph.inputs) | {name for name, one in graph.tensors.items() if one.constant}
    seen: set[str] = set()
    for operation in graph.operations:
        where = named(operation)
        if operation.name in seen or not operation.name:
            raise GraphError(f"{where}: the name is used twice or empty, allowed one per operation")
        seen.add(operation.name)
        for name in (*operation.used, *operation.outputs):
            if name not in graph.tensors:
                raise GraphError(f"{where}: tensor {name!r} does not exist")
        for name in operation.used:
            if name in assigned:
                continue
            maker = makers.get(name)
            if maker is None and planned and operation.on_chip:
                continue
            if maker is None:
                raise GraphError(f"{where}: nothing assigns tensor {name!r}")
            raise GraphError(
                f"{where}: tensor {name!r} is assigned further down by {named(maker)}: "
                "wrong order or a cycle"
            )
        for name in operation.outputs:
            if name in assigned:
                raise GraphError(f"{where}: tensor {name!r} is assigned twice")
            assigned.add(name)


def _check_ends(graph: Graph) -> None:
    makers = graph.producers()
    for what, names in (("input", graph.inputs), ("output", graph.outputs)):
        for name in names:
            if name not in graph.tensors:
                raise GraphError(f"{what} {name!r} of the graph does not exist")
        if len(set(names)) != len(names):
            raise GraphError(f"{what}s {', '.join(names)}, allowed each once")
    if not graph.outputs:
        raise GraphError("no outputs, allowed one or more")
    for name in graph.inputs:
        if graph[name].constant:
            raise GraphError(f"input {name!r} of the graph is constant")
    for name in graph.outputs:
        if name not in makers and name not in graph.inputs and not graph[name].constant:
            raise GraphError(f"output {name!r} of the graph: nothing assigns it")


def _check_states(graph: Graph) -> None:
    for one in graph.states:
        for what, name, names in (
            ("input", one.input, graph.inputs),
            ("output", one.output, graph.outputs),
        ):
            if name not in names:
                allowed = f"one of {', '.join(names) or 'none'}"
                raise GraphError(f"state {one.input!r}: {what} {name!r}, allowed {allowed}")
        kinds = graph.type(one.input), graph.type(one.output)
        if kinds[0] != kinds[1]:
            given, left = map(type_text, kinds)
            raise GraphError(
                f"state {one.input!r}: {given}, and {one.output!r} that it becomes is {left}, "
                "allowed one type"
            )
        first = one.initial
        if first is not None and (first.shape, first.dtype) != (
            kinds[0].shape,
            kinds[0].element.dtype,
        ):
            raise GraphError(
                f"state {one.input!r} begins with {first.dtype}{list(first.shape)}, "
                f"its type is {type_text(kinds[0])}"
            )
    for what, used in (
        ("input", [one.input for one in graph.states]),
        ("output", [one.output for one in graph.states]),
    ):
        twice = [name for name in used if used.count(name) > 1]
        if twice:
            raise GraphError(f"{what} {twice[0]!r} of two states, allowed each once")


def check_operation(graph: Graph, operation: Operation) -> None:
    """Check an operation against the table: arity, attributes, shapes, types, scales.

    Raises:
        GraphError: naming the operation and the tensor.
    """
    try:
        entry = kind_of(operation)
        most = len(operation.inputs) if entry.variadic else len(entry.inputs)
        if not entry.required <= len(operation.inputs) <= most or not all(
            operation.inputs[: entry.required]
        ):
            raise GraphError(
                f"{len(operation.used)} inputs, allowed {', '.join(entry.inputs) or 'none'}"
            )
        check_attributes(operation)
        if entry.outputs != -1:
            _check_results(graph, operation)
        names = (*operation.used, *operation.outputs)
        quantised = any(graph.type(name).quantisation for name in names)
        if operation.on_chip or (quantised and entry.group in _REAL_GROUPS):
            _check_scales(graph, operation)
        if operation.kind in ("quantise", "requantise"):
            _need_scale(graph, operation.outputs[0])
    except GraphError as error:
        raise GraphError(f"{named(operation)}: {error}") from None


def _check_results(graph: Graph, operation: Operation) -> None:
    types = [graph.type(name) if name else None for name in operation.inputs]
    results = infer(operation.kind, operation.attributes, types)
    if len(operation.outputs) != len(results):
        raise GraphError(f"{len(operation.outputs)} outputs, allowed {len(results)}")
    for name, result in zip(operation.outputs, results, strict=True):
        found = graph.type(name)
        if result.shape is not None and found.shape != tuple(result.shape):
            raise GraphError(
                f"result {name!r} has shape {list(found.shape)}, its inputs give "
                f"{list(result.shape)}"
            )
        wide = operation.kind == "dequantise" and found.element == Element.F64
        if result.element not in (None, found.element) and not wide:
            raise GraphError(
                f"result {name!r} is {found.element}, its inputs give {result.element}"
            )


def _check_scales(graph: Graph, operation: Operation) -> None:
    indices = operation.kind in ("argmax", "gather")
    names = [*operation.used, *operation.outputs]
    if operation.kind == "argmax":
        names = list(operation.used)
    for name in names:
        if operation.kind == "gather" and name == operation.inputs[1]:
            continue
        if graph.type(name).element in _INTEGERS - ({Element.I32} if indices else set()):
            _need_scale(graph, name)


def _need_scale(graph: Graph, name: str) -> None:
    kind = graph.type(name)
    if kind.quantisation is None:
        raise GraphError(f"tensor {name!r} is {kind.element} without scale")
