# SPDX-License-Identifier: Apache-2.0
"""TFLite models whose operators run other subgraphs, and such of constants and sparse weights."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from npu.graph.form import Array
from tests.python.importers.tflite_cases import floats, ints
from tests.python.importers.tflite_writer import Writer


def _tensor(writer: Writer, name: str, dtype: str) -> int:
    """Add a tensor of the models with branches; integers have a scale."""
    if dtype == "int8":
        return writer.tensor(name, (2, 3), dtype, scale=0.05, zero=3)
    return writer.tensor(name, (2, 3), dtype)


def _doubled(operator: str, dtype: str) -> Writer:
    """Return a subgraph of an operator whose inputs are the one that is given, twice."""
    writer = Writer()
    x, y = (_tensor(writer, name, dtype) for name in "xy")
    writer.operator(operator, (x, x), (y,), fused=0)
    return writer


def called() -> tuple[bytes, list[Array]]:
    """Return a model that calls another subgraph, and its input."""
    writer = Writer()
    x, y = writer.tensor("x", (2, 3)), writer.tensor("y", (2, 3))
    writer.operator("CALL", (x,), (y,), subgraph=1)
    below = [(_doubled("ADD", "float32"), (0,), (1,))]
    return writer.write((x,), (y,), below=below), [floats(1, 2, 3)]


def branched(known: bool | None, dtype: str = "float32") -> tuple[bytes, list[Array]]:
    """Return a model of an IF, and its inputs; its condition is a constant if that is given."""
    writer = Writer()
    x, y = (_tensor(writer, name, dtype) for name in "xy")
    if known is None:
        condition = writer.tensor("condition", (1,), "bool")
    else:
        condition = writer.constant("condition", np.array([known]))
    writer.operator("IF", (condition, x), (y,), yes=1, no=2)
    below = [(_doubled(name, dtype), (0,), (1,)) for name in ("ADD", "MUL")]
    value = floats(2, 2, 3)
    given = [value if dtype == "float32" else np.round(20 * value).astype(np.int8)]
    inputs = (x,) if known is not None else (x, condition)
    return writer.write(inputs, (y,), below=below), given


def looped(turns: int | None = 4) -> tuple[bytes, list[Array]]:
    """Return a model of a WHILE that counts, and its inputs; the limit is one if none is given."""
    writer, go, body = Writer(), Writer(), Writer()
    x, y = writer.tensor("x", (2, 3)), writer.tensor("y", (2, 3))
    start = writer.constant("start", ints(0).reshape(()))
    count = writer.tensor("count", (), "int32")
    limit = (
        writer.tensor("limit", (), "int32")
        if turns is None
        else writer.constant("limit", ints(turns).reshape(()))
    )
    left = writer.tensor("left", (), "int32")
    writer.operator("WHILE", (start, limit, x), (count, left, y), go=1, body=2)
    at = [go.tensor("i", (), "int32"), go.tensor("n", (), "int32"), go.tensor("x", (2, 3))]
    on = go.tensor("on", (), "bool")
    go.operator("LESS", at[:2], (on,))
    held = [body.tensor("i", (), "int32"), body.tensor("n", (), "int32"), body.tensor("x", (2, 3))]
    one, w = body.constant("one", ints(1).reshape(())), body.constant("w", floats(3, 3, 3))
    after, product = body.tensor("after", (), "int32"), body.tensor("product", (2, 3))
    body.operator("ADD", (held[0], one), (after,), fused=0)
    body.operator("FULLY_CONNECTED", (held[2], w), (product,), fused=0)
    below = [(go, at, (on,)), (body, held, (after, held[1], product))]
    inputs = (x,) if turns is not None else (x, limit)
    given = [floats(4, 2, 3)] + [ints(3).reshape(())] * (turns is None)
    return writer.write(inputs, (y,), below=below), given


def sparse(order: tuple[int, ...], blocks: bool) -> tuple[bytes, list[Array], Array]:
    """Return a model of sparse weights, its input, and the weights with their zeros."""
    random = np.random.default_rng(5)
    rows, columns, height, width = (4, 3, 2, 4) if blocks else (8, 12, 1, 1)
    filled = random.random((rows, columns)) < 0.4
    parts = random.standard_normal((rows, columns, height, width)).astype(np.float32)
    parts *= filled[:, :, None, None]
    value = parts.transpose(0, 2, 1, 3).reshape(8, 12)
    turned = order[0] == 1
    chosen = np.argwhere(filled.T)[:, ::-1] if turned else np.argwhere(filled)
    lines, counted = (1, columns) if turned else (0, rows)
    ends = np.cumsum([0, *np.bincount(chosen[:, lines], minlength=counted)])
    levels = [counted, (ends.tolist(), chosen[:, 1 - lines].tolist()), *[height, width] * blocks]
    data = parts[chosen[:, 0], chosen[:, 1]]
    writer = Writer()
    x, y = writer.tensor("x", (2, 12)), writer.tensor("y", (2, 8))
    held = writer.tensor(
        "sparse", (8, 12), data=data, sparse=(order, (0, 1) if blocks else (), levels)
    )
    w = writer.tensor("w", (8, 12))
    writer.operator("DENSIFY", (held,), (w,))
    writer.operator("FULLY_CONNECTED", (x, w), (y,), fused=0)
    return writer.write((x,), (y,)), [floats(6, 2, 12)], value


def of_constants(operator: str) -> tuple[bytes, list[Array]]:
    """Return a model of an operator whose result only constants decide, and its input."""
    writer, x = Writer(), floats(7, 3, 1)
    given = writer.tensor("x", (3, 1))
    if operator == "RANGE":
        held = [
            writer.constant(f"c{at}", ints(one).reshape(())) for at, one in enumerate((7, 1, -2))
        ]
        made, y = writer.tensor("made", (3,), "int32"), writer.tensor("y", (3, 3))
        real = writer.tensor("real", (3,))
        writer.operator("RANGE", held, (made,))
        writer.operator("CAST", (made,), (real,), **{"from": 2, "to": 0})
        writer.operator("ADD", (given, real), (y,), fused=0)
    elif operator == "BROADCAST_ARGS":
        held = [writer.constant("a", ints(3, 1)), writer.constant("b", ints(2, 1, 4))]
        made, y = writer.tensor("made", (3,), "int32"), writer.tensor("y", (2, 3, 4))
        writer.operator("BROADCAST_ARGS", held, (made,))
        writer.operator("BROADCAST_TO", (given, made), (y,))
    else:
        held = [writer.constant("a", np.array([True, False, True]))]
        made, y = writer.tensor("made", (2, 1), "int64"), writer.tensor("y", (2, 1))
        writer.operator("WHERE", held, (made,))
        writer.operator("GATHER_ND", (given, made), (y,))
    return writer.write((given,), (y,)), [x]


MODELS: dict[str, Callable[[], tuple[bytes, list[Array]]]] = {
    "if, both branches": lambda: _with_condition(True),
    "if, both branches, not": lambda: _with_condition(False),
    "if, int8": lambda: _with_condition(True, "int8"),
    "if, known": lambda: branched(True),
    "if, known, not": lambda: branched(False, "int8"),
    "while": looped,
    "while, no turn": lambda: looped(0),
    "range": lambda: of_constants("RANGE"),
    "broadcast args": lambda: of_constants("BROADCAST_ARGS"),
    "where": lambda: of_constants("WHERE"),
    "densify": lambda: sparse((0, 1), blocks=False)[:2],
    "densify, blocks": lambda: sparse((0, 1, 2, 3), blocks=True)[:2],
}


def _with_condition(value: bool, dtype: str = "float32") -> tuple[bytes, list[Array]]:
    data, given = branched(None, dtype)
    return data, [*given, np.array([value])]
