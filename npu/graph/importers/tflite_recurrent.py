# SPDX-License-Identifier: Apache-2.0
"""Operators of TFLite with a state: UNIDIRECTIONAL_SEQUENCE_LSTM step by step, and SVDF.

Every run begins with a state of zero. That is what an interpreter computes whose variables were
reset, and what a layer of Keras means.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.form import Element, Quantisation, TensorType
from npu.graph.importers.tflite_linear import bias, weights
from npu.graph.importers.tflite_moves import reshaped
from npu.graph.importers.tflite_reader import QUANTISED, Handler, TfliteNode, stands

_GATES = ("input", "forget", "cell", "output")
_STATES = (18, 19)
_ABSENT = {
    **dict.fromkeys((9, 10, 11), "peepholes"),
    **dict.fromkeys((16, 17), "a projection"),
    **dict.fromkeys((20, 21, 22, 23), "normalised gates"),
}
RELU, TANH = 1, 4
_SUMS, _GATE = (TensorType((), Element.I16, Quantisation((2.0**-bits,))) for bits in (12, 15))
"""How kernels of integers hold what goes into gates and what comes out."""


def lstm(node: TfliteNode) -> str:
    """Map UNIDIRECTIONAL_SEQUENCE_LSTM, also without an input gate, which is 1 less the other."""
    for index, what in _ABSENT.items():
        if node.given(index):
            raise node.error(f"{what}, allowed none")
    if node.option(0, "b") != TANH:
        raise node.error(f"activation {node.option(0, 'b')}, allowed {TANH}, tanh")
    node.option_real(2)  # bounds a projection
    for index in _STATES:
        _begins_at_zero(node, index)
    x, shape, clip = node.real(0), node.shape(0), node.option_real(1)
    along = 0 if node.option(3, "b") else 1
    if len(shape) != 3 or not shape[along]:
        raise node.error(f"a sequence {list(shape)}, allowed rank 3 and a step or more")
    gates = [gate for gate in range(4) if gate or node.given(1)]
    parts = {
        gate: node.emit(
            "matmul",
            [x, weights(node, 1 + gate, (1, 0)), *bias(node, 12 + gate, 1 + gate)],
            f"{node.wish}.{_GATES[gate]}",
            transpose_a=False,
            transpose_b=False,
        )
        for gate in gates
    }
    again = {gate: weights(node, 5 + gate, (1, 0)) for gate in gates}
    parts = {gate: _held(node, part, _SUMS) for gate, part in parts.items()}
    hidden = cell = ""
    found = []
    for step in range(shape[along]):
        hidden, cell = _step(node, step, along, parts, again, hidden, cell, clip)
        size = node.build.shape(hidden)
        whole = (1, *size) if along == 0 else (size[0], 1, size[1])
        found.append(reshaped(node, whole, hidden, f"{node.wish}.{step}.out"))
    return node.emit("concat", found, axis=along)


def _begins_at_zero(node: TfliteNode, index: int) -> None:
    """Refuse a state that the file gives a value."""
    if node.given(index) and node.input(index).data is not None:
        raise node.error("a state with a value, allowed variables")


def _step(
    node: TfliteNode,
    step: int,
    along: int,
    parts: dict[int, str],
    again: dict[int, str],
    hidden: str,
    cell: str,
    clip: float,
) -> tuple[str, str]:
    """Return output and cell of a step, (B, H), from those of the step before; "" is zero."""
    wish = f"{node.wish}.{step}"

    def two(kind: str, a: str, b: str, name: str) -> str:
        return node.emit(kind, [a, b], f"{wish}.{name}")

    def table(function: str, x: str, name: str) -> str:
        return node.emit("table", [x], f"{wish}.{name}", functions=(function,), parameters=())

    values = {}
    for gate, part in parts.items():
        name = _GATES[gate]
        total = _at(node, part, step, along, f"{wish}.{name}")
        if hidden:
            before = node.emit(
                "matmul",
                [hidden, again[gate]],
                f"{wish}.{name}.before",
                transpose_a=False,
                transpose_b=False,
            )
            before = _held(node, before, _SUMS)
            total = _held(node, two("add", total, before, f"{name}.sum"), _SUMS)
        made = table("tanh" if gate == 2 else "sigmoid", total, f"{name}.gate")
        values[gate] = _held(node, made, _GATE)
    if 0 not in values:
        one = node.build.constant(np.array(1, np.float32), f"{wish}.one")
        values[0] = two("sub", one, values[1], "input.gate")
    new = two("mul", values[0], values[2], "new")
    if cell:
        new = two("add", two("mul", values[1], cell, "kept"), new, "cell")
    if clip > 0:
        new = node.emit("clip", [new], f"{wish}.clipped", low=-clip, high=clip)
    new = _held(node, new, _state(node, 19))
    squashed = _held(node, table("tanh", new, "squashed"), _GATE)
    return _held(node, two("mul", values[3], squashed, "hidden"), _state(node, 18)), new


def _state(node: TfliteNode, index: int) -> TensorType | None:
    tensor = node.input(index) if node.given(index) else None
    if tensor is None or tensor.quantisation is None or tensor.element is None:
        return None
    return TensorType((), tensor.element, tensor.quantisation)


def _held(node: TfliteNode, real: str, kind: TensorType | None) -> str:
    """Return real numbers as kernels of integers hold them, in a network of integers."""
    if not stands(node.output()) or not stands(node.input(0)):
        return real
    if kind is None:
        raise node.error("a state without scale, allowed integers with one")
    found = replace(kind, shape=node.build.shape(real))
    made = node.build.quantise(real, f"{real}.{kind.element}", found, node.source)
    return node.build.dequantise(made, node.source)


def _at(node: TfliteNode, name: str, step: int, along: int, wish: str) -> str:
    """Return what a tensor (B, T, H) or (T, B, H) has at a step, (B, H)."""
    shape = node.build.shape(name)
    cut = node.emit(
        "slice",
        [name],
        f"{wish}.cut",
        starts=tuple(step if axis == along else 0 for axis in range(3)),
        stops=tuple(step + 1 if axis == along else size for axis, size in enumerate(shape)),
        steps=(1, 1, 1),
    )
    rest = (*shape[:along], *shape[along + 1 :])
    return reshaped(node, rest, cut, f"{wish}.now")


def svdf(node: TfliteNode) -> str:
    """Map SVDF: of a memory of zeros only what this run puts at its end counts.

    So each filter is a feature of the input times its last weight in time, and a unit is the sum
    of its filters. Integers are rounded where the memory holds them.
    """
    _begins_at_zero(node, 4)
    x, features, times = node.shape(0), node.shape(1), node.shape(2)
    rank = node.option(0)
    if len(x) != 2 or len(features) != 2 or len(times) != 2 or not times[1]:
        raise node.error(f"{list(x)}, {list(features)}, {list(times)}, allowed rank 2")
    if rank < 1 or features[0] % rank or times[0] != features[0]:
        raise node.error(
            f"rank {rank} of {features[0]} features and {times[0]} rows of weights in time, "
            "allowed a rank that divides as many of each"
        )
    flags: dict[str, Any] = {"transpose_a": False, "transpose_b": False}
    given = [node.real(0), weights(node, 1, (1, 0))]
    held = node.emit("matmul", given, f"{node.wish}.features", **flags)
    integers = stands(node.output())
    if integers:
        held = _remembered(node, held)
    time = _last_of_time(node, rank)
    made = node.emit("matmul", [held, time, *bias(node, 3, 2, 4)], node.before(1), **flags)
    # Kernels of integers clamp to the type alone, whose zero point is where RELU begins.
    relu = node.option(1, "b") == RELU
    return made if integers and relu else node.fused(made, 1)


def _remembered(node: TfliteNode, held: str) -> str:
    """Return features in the integers of the memory, a variable that nothing else is read of."""
    state = node.input(4)
    if state.quantisation is None or state.element not in QUANTISED:
        raise node.error("a memory without scale, allowed integers with one")
    kind = TensorType(node.build.shape(held), state.element, state.quantisation)
    rounded = node.build.quantise(held, f"{node.wish}.memory", kind, node.source)
    return node.build.dequantise(rounded, node.source)


def _last_of_time(node: TfliteNode, rank: int) -> str:
    """Return the matrix (features, units) of the last weight in time of each feature."""
    name, given = node.name(2), node.input(2).quantisation
    value = node.build.value(name)
    if value is None or (given is not None and given.axis is not None):
        raise node.error("weights in time are computed or have several scales, allowed constants")
    count = value.shape[0]
    matrix = np.zeros((count, count // rank), value.dtype)
    matrix[np.arange(count), np.arange(count) // rank] = value[:, -1]
    made = node.build.constant(matrix, f"{name}.last", given)
    return node.build.dequantise(made, node.source) if stands(node.input(2)) else made


HANDLERS: dict[str, Handler] = {"UNIDIRECTIONAL_SEQUENCE_LSTM": lstm, "SVDF": svdf}
