# SPDX-License-Identifier: Apache-2.0
"""Graphs as text that people read and that parses back to the same graph.

    graph "lenet"
    input %x : float32[1,28,28,1]
    output %y
    state %h next %h.out first [1, 2]
    const %w : int8[3,3,1,8] scale [0.5] zero 0 = base64"AAEC..."
    %y : float32[1,26,26,8] = conv(%x, %w, _) {groups = 1, ...} name "conv1" source "Conv"

One statement a line. A name that is no plain word stands in quotes as in JSON; `_` is an optional
input that is not given. A state without `first` begins with zeros. Constants of few
elements stand as numbers, others as their bytes, little endian, in base64. `npu.graph.text_parser`
reads it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Array, Graph, Operation, Quantisation, State, Tensor, TensorType
from npu.graph.text_parser import parse

__all__ = ["equal", "outline", "parse", "write"]

_PLAIN = re.compile(r"[A-Za-z0-9_.:/$-]+\Z")
_INLINE = 16


def write(graph: Graph) -> str:
    """Return a graph as text."""
    return _written(graph, _array)


def outline(graph: Graph) -> str:
    """Return a graph as text for people: of large constants only how many bytes they have."""
    return _written(graph, _size)


def _written(graph: Graph, array: Callable[[Array], str]) -> str:
    lines = [f"graph {json.dumps(graph.name)}"]
    lines += [f"input {_declared(graph[name])}" for name in graph.inputs]
    lines += [f"output {_name(name)}" for name in graph.outputs]
    lines += [_state(one, array) for one in graph.states]
    made = {*graph.inputs, *graph.producers()}
    for name, tensor in graph.tensors.items():
        if tensor.data is not None:
            lines.append(f"const {_declared(tensor)} = {array(tensor.data)}")
        elif name not in made:
            lines.append(f"tensor {_declared(tensor)}")
    lines += [_operation(graph, op, array) for op in graph.operations]
    return "\n".join(lines) + "\n"


def equal(one: Graph, other: Graph) -> bool:
    """Say whether two graphs are the same, names and every bit of the constants included."""
    return write(_sorted(one)) == write(_sorted(other))


def _sorted(graph: Graph) -> Graph:
    return replace(graph, tensors=dict(sorted(graph.tensors.items())))


def _name(name: str) -> str:
    if not name:
        return "_"
    return f"%{name}" if _PLAIN.match(name) else f"%{json.dumps(name)}"


def _state(one: State, array: Callable[[Array], str]) -> str:
    text = f"state {_name(one.input)} next {_name(one.output)}"
    return text if one.initial is None else f"{text} first {array(one.initial)}"


def _declared(tensor: Tensor) -> str:
    return f"{_name(tensor.name)} : {type_text(tensor.type)}"


def type_text(kind: TensorType) -> str:
    """Return a type as text, as in `int8[3,3] scale [0.5, 0.25] zero 0 axis 1`."""
    text = f"{kind.element.value}[{','.join(map(str, kind.shape))}]"
    return text if kind.quantisation is None else f"{text} {_quantisation(kind.quantisation)}"


def _quantisation(quantisation: Quantisation) -> str:
    text = f"scale {_value(tuple(map(float, quantisation.scales)))} zero {quantisation.zero}"
    text += "" if quantisation.axis is None else f" axis {quantisation.axis}"
    return f"{text} format {quantisation.format}" if quantisation.format else text


def _array(data: Array) -> str:
    inline = data.size <= _INLINE and not (data.dtype.kind == "f" and np.isnan(data).any())
    if inline:
        return _value(tuple(data.reshape(-1).tolist()))
    little = data.astype(data.dtype.newbyteorder("<"), copy=False)
    return f'base64"{base64.b64encode(little.tobytes()).decode()}"'


def _size(data: Array) -> str:
    return _array(data) if data.size <= _INLINE else f"({data.nbytes:,} bytes)"


def _value(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, bytes):
        return f'base64"{base64.b64encode(value).decode()}"'
    return f"[{', '.join(_value(one) for one in value)}]"


def _braces(entries: Iterable[str]) -> str:
    return "{" + ", ".join(entries) + "}"


def _operation(graph: Graph, op: Operation, array: Callable[[Array], str]) -> str:
    results = ", ".join(_declared(graph[name]) for name in op.outputs)
    text = f"{results} = {op.kind}({', '.join(map(_name, op.inputs))})"
    if op.attributes:
        text += " " + _braces(f"{key} = {_value(value)}" for key, value in op.attributes.items())
    text += f" name {json.dumps(op.name)}"
    if op.source:
        text += f" source {json.dumps(op.source)}"
    if op.place:
        text += f" place {op.place.target.value} {json.dumps(op.place.reason)}"
    return text + (f" integers {_integers(op.integers, array)}" if op.integers else "")


def _integers(integers: Mapping[str, Array], array: Callable[[Array], str]) -> str:
    return _braces(
        f"{key} = {data.dtype.name}[{','.join(map(str, data.shape))}] {array(data)}"
        for key, data in integers.items()
    )
