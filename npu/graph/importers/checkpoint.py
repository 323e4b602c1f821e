# SPDX-License-Identifier: Apache-2.0
"""Makes the float graph of a decoder from its checkpoint: logits of all positions of a text.

The text is whole, or goes on where the run before has ended: then K, V and the position are states.

Everything is as `weights.decoder` names it: the product "h.0.q" has the weights "h.0.q.weight", and
its result is "h.0.q" with the bias if there is one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from npu.graph.build import Builder
from npu.graph.form import Array, Element, Graph, GraphError, State, TensorType
from weights.calibrate import ScalesError, calibration_tokens
from weights.checkpoint import Checkpoint
from weights.decoder import decoder
from weights.reference import GELU, GELU_TANH, SILU, rope_table

TOKENS, LOGITS = "tokens", "logits"
"""Input, (1, S) int32, and output, (1, S, V)."""
PAST, POSITION = "past", "position"
"""What says for how many positions states have room, and the state with how many are gone."""
POSITIONS = 64
"""S where nobody says it, or the context if that is shorter."""
FUNCTIONS: dict[str, tuple[tuple[str, ...], tuple[float, ...]]] = {
    **dict.fromkeys(GELU, (("gelu",), ())),
    **dict.fromkeys(GELU_TANH, (("gelu_tanh",), ())),
    **dict.fromkeys(SILU, (("silu",), ())),
    **{name: ((name,), ()) for name in ("relu", "tanh", "sigmoid")},
    "relu2": (("relu", "square"), ()),
    "quick_gelu": (("swish",), (1.702,)),
}
"""Functions of a table and their parameters, by the name of the activation."""
HIDDEN = -1e9
"""What is added to a score that is not to count."""
TEXTS = 32
"""Texts that calibrate a network."""


def text_samples(checkpoint: Checkpoint, graph: Graph) -> dict[str, Array]:
    """Return texts for calibration, (N, 1, S): the first ones of those that scales are made of.

    Raises:
        GraphError: the checkpoint has no tokenizer.
    """
    rows = graph.type(TOKENS).shape[1]
    most = graph.type(graph.states[0].input).shape[2] // rows if graph.states else TEXTS
    try:
        tokens = calibration_tokens(checkpoint)
    except ScalesError as error:
        raise GraphError(f"{error}, or samples of your own (calibrate)") from error
    texts = tokens[:, : tokens.shape[1] // rows * rows].reshape(-1, 1, rows)
    return {TOKENS: texts[:most].astype(np.int32)}


def decoder_graph(
    checkpoint: Checkpoint, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Graph:
    """Return the graph of a checkpoint.

    Args:
        checkpoint: the decoder.
        shapes: of "tokens", (1, S); with "past", (C,), the network goes on from run to run, up to
            C positions.

    Raises:
        GraphError: the shape is no text that the model takes.
    """
    context = checkpoint.shape.context
    given = dict(shapes or {})
    past = given.pop(PAST, None)
    size = given.pop(TOKENS, (1, min(POSITIONS, context) if past is None else 1))
    where = f"{checkpoint.source}: "
    if given:
        name = next(iter(given))
        raise GraphError(f"{where}{name!r} is no input, allowed {TOKENS}, and {PAST} for a state")
    if len(size) != 2 or size[0] != 1 or not 1 <= size[1] <= context:
        raise GraphError(
            f"{where}shape of {TOKENS}: given {list(size)}, allowed [1, S] with S from 1 to "
            f"{context}"
        )
    if past is None:
        return Drawing(checkpoint, size[1]).graph()
    if len(past) != 1 or not size[1] <= past[0] <= context:
        raise GraphError(
            f"{where}shape of {PAST}: given {list(past)}, allowed [C] with C from {size[1]} to "
            f"{context}"
        )
    return _Continued(checkpoint, size[1], past[0]).graph()


class Drawing:
    """The operations of a decoder on tensors of a graph, by their names."""

    def __init__(self, checkpoint: Checkpoint, rows: int) -> None:
        self.checkpoint, self.shape, self.rows = checkpoint, checkpoint.shape, rows
        self.places = rows
        self.build = Builder(self.shape.family)

    def graph(self) -> Graph:
        """Return the whole graph."""
        *_, logits = decoder(self, self.shape)
        return self.build.finish([logits])

    def added(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        """Add an operation whose result has its name; inputs called "" are left out."""
        given = [one for one in inputs if one]
        return self.build.add(kind, given, wish=name, output=name, source=name, **attributes)

    def constant(self, name: str) -> str:
        """Add a tensor of the checkpoint, "" for one that the architecture does not have."""
        data: Array | None = self.checkpoint.tensors.get(name)
        return "" if data is None else self.build.constant(data, name)

    def embedding(self) -> str:
        """Add the rows of all tokens, with those of their positions where these are learned."""
        tokens = self.build.input(TOKENS, TensorType((1, self.rows), Element.I32))
        x = self.added("gather", "embedding", self.constant("embed"), tokens, axis=0)
        if not self.shape.positions:
            return x
        table = self.checkpoint.tensors["positions"]
        return self.added("add", "positioned", x, self.by_position("positions", table))

    def by_position(self, name: str, table: Array) -> str:
        """Add the rows of a table, (C, ...), that the positions of the text have."""
        return self.build.constant(table[: self.rows], name)

    def norm(self, name: str, x: str) -> str:
        """Add rows normalised."""
        gain, bias = (self.constant(f"{name}.{part}") for part in ("weight", "bias"))
        return self.added(self.shape.norm, name, x, gain, bias, axes=1, epsilon=self.shape.epsilon)

    def linear(self, name: str, x: str) -> str:
        """Add products of rows with weights."""
        if name == "head":
            name = "uncapped" if self.shape.logit_cap else LOGITS
            bias = self.constant("head.bias")
            weight = self.build.constant(np.ascontiguousarray(self.checkpoint.head), "head")
        else:
            weight, bias = (self.constant(f"{name}.{part}") for part in ("weight", "bias"))
        return self.added("matmul", name, x, weight, bias, transpose_a=False, transpose_b=False)

    def heads(self, name: str, x: str, count: int) -> str:
        """Add rows as so many heads."""
        size = (1, self.rows, count, self.shape.head_dim)
        split = self.added("reshape", f"{name}.split", x, shape=size)
        return self.added("transpose", f"{name}.heads", split, order=(0, 2, 1, 3))

    def rotate(self, name: str, x: str, layer: int) -> str:
        """Add heads turned by their positions."""
        number = self.shape.table_of(layer)
        table = rope_table(self.shape, self.places, number).astype(np.float32)
        cos, sin = (
            self.by_position(f"{name}.{part}", table[..., i])
            for i, part in enumerate(("cos", "sin"))
        )
        return self.added("rope", name, x, cos, sin, interleaved=False, heads_axis=1)

    def attend(self, name: str, q: str, k: str, v: str, layer: int) -> str:
        """Add the rows that attention makes."""
        return self.joined(name, q, k, v, causal=True, window=self.shape.window_of(layer))

    def joined(self, name: str, *inputs: str, causal: bool, window: int = 0) -> str:
        """Add attention, and put its heads side by side."""
        cap = self.shape.score_cap
        sight = {"causal": causal, "offset": 0, "window": window, "softcap": cap}
        scale = 1.0 / math.sqrt(self.shape.head_dim)
        mixed = self.added("attention", f"{name}.heads", *inputs, scale=scale, **sight)
        apart = self.added("transpose", f"{name}.split", mixed, order=(0, 2, 1, 3))
        return self.added("reshape", name, apart, shape=(1, self.rows, self.shape.q_columns))

    def activate(self, name: str, x: str) -> str:
        """Add the activation of every element."""
        functions, parameters = FUNCTIONS[self.shape.activation]
        return self.added("table", name, x, functions=functions, parameters=parameters)

    def cap(self, name: str, x: str, most: float) -> str:
        """Add what keeps logits below a cap."""
        assert name == "capped"  # of logits; attention caps its scores itself
        functions = ("scale", "tanh", "scale")
        return self.added("table", LOGITS, x, functions=functions, parameters=(1 / most, most))

    def multiply(self, name: str, a: str, b: str) -> str:
        """Add products of elements."""
        return self.added("mul", name, a, b)

    def add(self, name: str, a: str, b: str) -> str:
        """Add the sum of a stream and what a part adds to it."""
        return self.added("add", name, a, b)


class _Continued(Drawing):
    """As a text that goes on: K and V of all positions so far, and their number, are states."""

    def __init__(self, checkpoint: Checkpoint, rows: int, places: int) -> None:
        super().__init__(checkpoint, rows)
        self.places = places
        self.states: list[State] = []
        self.position = self.build.input(POSITION, TensorType((1,), Element.I32))
        number = self.build.constant(np.arange(rows, dtype=np.int32), "row")
        self.here = self.added("add", "here", self.position, number)
        self.number = self.build.constant(np.arange(places, dtype=np.int32), "place")

    def graph(self) -> Graph:
        *_, logits = decoder(self, self.shape)
        count = self.build.constant(np.array([self.rows], np.int32), "rows")
        self.states.append(State(POSITION, self.added("add", "gone", self.position, count)))
        graph = self.build.finish([logits, *(one.output for one in self.states)])
        return replace(graph, states=tuple(self.states))

    def by_position(self, name: str, table: Array) -> str:
        rows = self.build.constant(table[: self.places], f"{name}.table")
        return self.added("gather", name, rows, self.here, axis=0)

    def attend(self, name: str, q: str, k: str, v: str, layer: int) -> str:
        at = name.removesuffix(".ctx")
        kept = [self.appended(f"{at}.past_{part}", x) for part, x in (("k", k), ("v", v))]
        return self.joined(name, q, *kept, self.mask(name, layer), causal=False)

    def appended(self, name: str, x: str) -> str:
        """Add a state and what it becomes: rows (1, G, S, D) from the position on, others stay."""
        groups, depth = self.build.shape(x)[1::2]
        before = self.build.input(name, TensorType((1, groups, self.places, depth)))
        row = self.added("sub", f"{name}.row", self.number, self.position)
        low, high = (
            self.build.constant(np.array([one], np.int32), "end") for one in (0, self.rows - 1)
        )
        near = self.added("min", f"{name}.near", self.added("max", f"{name}.from", row, low), high)
        fresh = self.added("gather", f"{name}.fresh", x, near, axis=2)
        own = self.added("compare", f"{name}.own", row, near, direction="EQ")
        column = self.added("reshape", f"{name}.column", own, shape=(self.places, 1))
        after = self.added("select", f"{name}.kept", column, fresh, before)
        self.states.append(State(name, after))
        return after

    def mask(self, name: str, layer: int) -> str:
        """Add what is added to scores (S, C): 0 where a row sees a place, else what hides it."""
        shown, hidden = (self.build.constant(np.float32(x).reshape(1), "end") for x in (0, HIDDEN))
        return self.added("select", f"{name}.mask", self.seen(name, layer), shown, hidden)

    def seen(self, name: str, layer: int) -> str:
        """Add which places (S, C) each row sees: itself, those before it, and in the window."""
        here = self.added("reshape", f"{name}.here", self.here, shape=(self.rows, 1))
        seen = self.added("compare", f"{name}.seen", self.number, here, direction="LE")
        window = self.shape.window_of(layer)
        if not window:
            return seen
        width = self.build.constant(np.array([window], np.int32), "window")
        first = self.added("sub", f"{name}.first", here, width)
        near = self.added("compare", f"{name}.near", self.number, first, direction="GT")
        return self.added("and", f"{name}.window", seen, near)
