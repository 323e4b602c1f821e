# SPDX-License-Identifier: Apache-2.0
"""Makes the float graph of a decoder from its checkpoint: logits of all positions of one text.

Everything is as `weights.decoder` names it: the product "h.0.q" has the weights "h.0.q.weight", and
its result is "h.0.q" with the bias if there is one.
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
from weights.decoder import decoder
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
    draw = _Drawing(checkpoint, size[1])
    return draw.build.finish([decoder(draw, checkpoint.shape)])


class _Drawing:
    """The operations of a decoder on tensors of a graph, by their names."""

    def __init__(self, checkpoint: Checkpoint, rows: int) -> None:
        self.checkpoint, self.shape, self.rows = checkpoint, checkpoint.shape, rows
        self.build = Builder(self.shape.family)

    def added(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        """Add an operation whose result has its name; inputs called "" are left out."""
        given = [one for one in inputs if one]
        return self.build.add(kind, given, wish=name, output=name, source=name, **attributes)

    def constant(self, name: str) -> str:
        """Add a tensor of the checkpoint, "" for one that the architecture does not have."""
        data: Array | None = self.checkpoint.tensors.get(name)
        return "" if data is None else self.build.constant(data, name)

    def embedding(self) -> str:
        tokens = self.build.input(TOKENS, TensorType((1, self.rows), Element.I32))
        x = self.added("gather", "embedding", self.constant("embed"), tokens, axis=0)
        if not self.shape.positions:
            return x
        rows = self.build.constant(self.checkpoint.tensors["positions"][: self.rows], "positions")
        return self.added("add", "positioned", x, rows)

    def norm(self, name: str, x: str) -> str:
        gain, bias = (self.constant(f"{name}.{part}") for part in ("weight", "bias"))
        return self.added(self.shape.norm, name, x, gain, bias, axes=1, epsilon=self.shape.epsilon)

    def linear(self, name: str, x: str) -> str:
        if name == "head":
            name, bias = LOGITS, ""
            weight = self.build.constant(np.ascontiguousarray(self.checkpoint.head), "head")
        else:
            weight, bias = (self.constant(f"{name}.{part}") for part in ("weight", "bias"))
        return self.added("matmul", name, x, weight, bias, transpose_a=False, transpose_b=False)

    def heads(self, name: str, x: str, count: int) -> str:
        size = (1, self.rows, count, self.shape.head_dim)
        split = self.added("reshape", f"{name}.split", x, shape=size)
        return self.added("transpose", f"{name}.heads", split, order=(0, 2, 1, 3))

    def rotate(self, name: str, x: str) -> str:
        table = rope_table(self.shape, self.rows).astype(np.float32)
        cos, sin = (self.build.constant(table[..., i], f"{name}.table") for i in range(2))
        return self.added("rope", name, x, cos, sin, interleaved=False, heads_axis=1)

    def attend(self, name: str, q: str, k: str, v: str) -> str:
        scale, window = 1.0 / math.sqrt(self.shape.head_dim), self.shape.window
        sight = {"causal": True, "offset": 0, "window": window, "softcap": 0.0}
        mixed = self.added("attention", f"{name}.heads", q, k, v, scale=scale, **sight)
        apart = self.added("transpose", f"{name}.split", mixed, order=(0, 2, 1, 3))
        return self.added("reshape", name, apart, shape=(1, self.rows, self.shape.q_columns))

    def activate(self, name: str, x: str) -> str:
        given = self.shape.activation
        function = "silu" if given in SILU else "gelu" if given in GELU else "gelu_tanh"
        return self.added("table", name, x, functions=(function,), parameters=())

    def multiply(self, name: str, a: str, b: str) -> str:
        return self.added("mul", name, a, b)

    def add(self, name: str, a: str, b: str) -> str:
        return self.added("add", name, a, b)
