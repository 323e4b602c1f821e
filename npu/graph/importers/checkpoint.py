# SPDX-License-Identifier: Apache-2.0
"""Makes the float graph of a decoder from its checkpoint: logits of all positions of one text.

Everything is as `weights.checkpoint` names it: the product "h.0.q" has the weights
"h.0.q.weight", and its result is "h.0.q" with the bias if there is one. What an architecture of
weights/architectures says of itself is all that this module knows of it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from npu.graph.build import Builder
from npu.graph.form import Array, Element, Graph, GraphError, TensorType
from weights.calibrate import ScalesError, calibration_tokens
from weights.checkpoint import Checkpoint, CheckpointError
from weights.importer import load_checkpoint
from weights.reference import GELU, SILU, rope_table

TOKENS, LOGITS = "tokens", "logits"
"""Input, (1, S) int32, and output, (1, S, V)."""
POSITIONS = 64
"""S where nobody says it, or the context if that is shorter."""
TEXTS = 32
"""Texts that calibrate a network."""


def read(
    source: str | Path | Checkpoint, *, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Graph:
    """Read a checkpoint.

    Args:
        source: its folder, or the checkpoint.
        shapes: of "tokens", (1, S).

    Raises:
        GraphError: the checkpoint is damaged or of an architecture that is not known; the shape is
            no text that the model takes.
    """
    return decoder_graph(checkpoint_of(source), shapes)


def checkpoint_of(source: str | Path | Checkpoint) -> Checkpoint:
    """Return the checkpoint of a folder, of one that ships, or of the hub. Raises GraphError."""
    if isinstance(source, Checkpoint):
        return source
    try:
        return load_checkpoint(source)
    except CheckpointError as error:
        raise GraphError(str(error)) from error


def text_samples(source: str | Path | Checkpoint, graph: Graph) -> dict[str, Array]:
    """Return texts for calibration, (N, 1, S): the first ones of those that scales are made of.

    Raises:
        GraphError: the checkpoint has no tokenizer.
    """
    rows = graph.type(TOKENS).shape[1]
    try:
        tokens = calibration_tokens(checkpoint_of(source))
    except ScalesError as error:
        raise GraphError(f"{error}, or samples of your own (calibrate)") from error
    texts = tokens[:, : tokens.shape[1] // rows * rows].reshape(-1, 1, rows)
    return {TOKENS: texts[:TEXTS].astype(np.int32)}


def decoder_graph(
    checkpoint: Checkpoint, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Graph:
    """Return the graph of a checkpoint; as `read`."""
    context = checkpoint.shape.context
    given = dict(shapes or {})
    size = given.pop(TOKENS, (1, min(POSITIONS, context)))
    if given:
        raise GraphError(f"{checkpoint.source}: {next(iter(given))!r} is no input, allowed tokens")
    if len(size) != 2 or size[0] != 1 or not 1 <= size[1] <= context:
        raise GraphError(
            f"{checkpoint.source}: shape of tokens: given {list(size)}, allowed [1, S] with S from "
            f"1 to {context}"
        )
    return _Decoder(checkpoint, size[1]).graph()


class _Decoder:
    """The graph while it grows."""

    def __init__(self, checkpoint: Checkpoint, rows: int) -> None:
        self.checkpoint, self.shape, self.rows = checkpoint, checkpoint.shape, rows
        self.build = Builder(self.shape.family)

    def graph(self) -> Graph:
        tokens = self.build.input(TOKENS, TensorType((1, self.rows), Element.I32))
        table = self.constant("embed")
        x = self.add("gather", "embedding", table, tokens, axis=0)
        if self.shape.positions:
            rows = self.checkpoint.tensors["positions"][: self.rows]
            x = self.add("add", "positioned", x, self.build.constant(rows, "positions"))
        for layer in range(self.shape.layers):
            at = f"h.{layer}"
            x = self.add("add", f"{at}.attended", x, self.attention(at, x))
            x = self.add("add", f"{at}.residual", x, self.feed_forward(at, x))
        head = self.build.constant(np.ascontiguousarray(self.checkpoint.head), "head")
        logits = self.product(LOGITS, self.norm("norm", x), head)
        return self.build.finish([logits])

    def add(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        """Add an operation whose result has its name."""
        return self.build.add(kind, inputs, wish=name, output=name, source=name, **attributes)

    def constant(self, name: str) -> str:
        """Add a tensor of the checkpoint, "" for one that the architecture does not have."""
        data: Array | None = self.checkpoint.tensors.get(name)
        return "" if data is None else self.build.constant(data, name)

    def product(self, name: str, x: str, weight: str, bias: str = "") -> str:
        inputs = (x, weight, bias) if bias else (x, weight)
        return self.add("matmul", name, *inputs, transpose_a=False, transpose_b=False)

    def linear(self, name: str, x: str) -> str:
        """Add a layer."""
        weight, bias = (self.constant(f"{name}.{part}") for part in ("weight", "bias"))
        return self.product(name, x, weight, bias)

    def norm(self, name: str, x: str) -> str:
        gain, bias = (self.constant(f"{name}.{part}") for part in ("weight", "bias"))
        inputs = (x, gain, bias) if bias else (x, gain)
        return self.add(self.kind, name, *inputs, axes=1, epsilon=self.shape.epsilon)

    @property
    def kind(self) -> str:
        return str(self.shape.norm)

    def attention(self, at: str, x: str) -> str:
        """Add what attention adds to the stream."""
        shape, h = self.shape, self.norm(f"{at}.norm1", x)
        q = self.heads(f"{at}.q", h, shape.heads)
        k, v = (self.heads(f"{at}.{name}", h, shape.kv_heads) for name in "kv")
        if shape.rope:
            q, k = (self.turned(name) for name in (q, k))
        mixed = self.add(
            "attention",
            f"{at}.mixed",
            *(q, k, v),
            scale=1.0 / math.sqrt(shape.head_dim),
            causal=True,
            offset=0,
            window=shape.window,
            softcap=0.0,
        )
        apart = self.add("transpose", f"{at}.apart", mixed, order=(0, 2, 1, 3))
        size = (1, self.rows, shape.q_columns)
        return self.linear(f"{at}.o", self.add("reshape", f"{at}.ctx", apart, shape=size))

    def heads(self, name: str, x: str, count: int) -> str:
        """Add a layer whose rows are heads side by side; return (1, heads, S, D)."""
        size = (1, self.rows, count, self.shape.head_dim)
        split = self.add("reshape", f"{name}.split", self.linear(name, x), shape=size)
        return self.add("transpose", f"{name}.heads", split, order=(0, 2, 1, 3))

    def turned(self, name: str) -> str:
        """Add the rotation of heads by their positions."""
        table = rope_table(self.shape, self.rows).astype(np.float32)
        cos = self.build.constant(table[..., 0], "cos")
        sin = self.build.constant(table[..., 1], "sin")
        wish = name.removesuffix(".heads") + "_rope"
        return self.add("rope", wish, name, cos, sin, interleaved=False, heads_axis=1)

    def feed_forward(self, at: str, x: str) -> str:
        """Add what the feed-forward adds to the stream."""
        h = self.norm(f"{at}.norm2", x)
        up = self.linear(f"{at}.up", h)
        if not self.shape.gated:
            return self.linear(f"{at}.down", self.function(f"{at}.act", up))
        silu = self.function(f"{at}.silu", self.linear(f"{at}.gate", h))
        return self.linear(f"{at}.down", self.add("mul", f"{at}.act", silu, up))

    def function(self, name: str, x: str) -> str:
        given = self.shape.activation
        known = "silu" if given in SILU else "gelu" if given in GELU else "gelu_tanh"
        return self.add("table", name, x, functions=(known,), parameters=())
