# SPDX-License-Identifier: Apache-2.0
"""Makes the float graph of an encoder from its checkpoint: rows of a sentence, or one vector of it.

A sentence may be shorter than the graph: a mask says at run time which places it has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from npu.graph.form import Array, Element, Graph, GraphError, TensorType
from npu.graph.importers.checkpoint import HIDDEN, POSITIONS, TOKENS, Drawing
from weights.corpus import read_corpus
from weights.encoder import EncoderCheckpoint, EncoderShape, encoder
from weights.tokenizer import BYTES, TokenizerError, has_tokenizer, load_tokenizer

MASK, TYPES = "mask", "types"
"""Inputs beside the tokens, (1, S) int32: 1 where there is a token, 0 behind the sentence; rows of
the table of token types."""
ROWS, EMBEDDING = "rows", "embedding"
"""Outputs: of all places (1, S, H), or with a pooling of the sentence (1, H)."""
TEXTS = 32
"""Paragraphs that calibrate an encoder."""
LEAST = 40
"""Letters of such a paragraph."""


def encoder_graph(
    checkpoint: EncoderCheckpoint, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Graph:
    """Return the graph of a checkpoint.

    Args:
        checkpoint: the encoder.
        shapes: of "tokens", (1, S); with "types", as large, token types are an input, else 0.

    Raises:
        GraphError: the shape is no sentence that the model takes.
    """
    given, longest = dict(shapes or {}), checkpoint.shape.context
    size = given.pop(TOKENS, (1, min(POSITIONS, longest)))
    types = given.pop(TYPES, None)
    where = f"{checkpoint.source}: "
    if len(size) != 2 or size[0] != 1 or not 1 <= size[1] <= longest:
        allowed = f"[1, S] with S from 1 to {longest}"
        raise GraphError(f"{where}shape of {TOKENS}: given {list(size)}, allowed {allowed}")
    if given.pop(MASK, size) != size:
        raise GraphError(f"{where}shape of {MASK}: allowed that of {TOKENS}, {list(size)}")
    if types is not None and (not checkpoint.shape.types or types != size):
        allowed = f"that of {TOKENS}, {list(size)}" if checkpoint.shape.types else "none"
        raise GraphError(f"{where}shape of {TYPES}: given {list(types)}, allowed {allowed}")
    if given:
        names = ", ".join((TOKENS, MASK, TYPES))
        raise GraphError(f"{where}{next(iter(given))!r} is no input, allowed {names}")
    return _Drawing(checkpoint, size[1], typed=types is not None).graph()


def wide_operations(checkpoint: EncoderCheckpoint) -> tuple[str, ...]:
    """Return what loses most in 8 bits: activations, few of which are far out, and the last norm.

    So the largest difference of cosines of all-MiniLM-L6-v2 is a third of what it is in 8 bits.
    """
    layers = checkpoint.shape.layers
    return (*(f"h.{layer}.act" for layer in range(layers)), f"h.{layers - 1}.norm2")


class _Drawing(Drawing):
    """The operations of an encoder on tensors of a graph, by their names."""

    shape: EncoderShape

    def __init__(self, checkpoint: EncoderCheckpoint, rows: int, *, typed: bool) -> None:
        super().__init__(checkpoint, rows)
        self.pooling, self.typed = checkpoint.pooling, typed

    def graph(self) -> Graph:
        x = encoder(self, self.shape)
        if self.pooling is None:
            return self.build.finish([self.added("identity", ROWS, x)])
        y = self.first(x) if self.pooling.pool == "first" else self.mean(x)
        y = self.unit(y) if self.pooling.unit else y
        return self.build.finish([self.added("identity", EMBEDDING, y)])

    def embedding(self) -> str:
        size = (1, self.rows)
        tokens = self.build.input(TOKENS, TensorType(size, Element.I32))
        mask = self.build.input(MASK, TensorType(size, Element.I32))
        self.there = self.added("compare", "there", mask, self.scalar(0), direction="NE")
        square = np.zeros((self.rows, self.rows), np.float32)
        shown, hidden = self.build.constant(square, "shown"), self.scalar(np.float32(HIDDEN))
        self.sight = self.added("select", "sight", self.there, shown, hidden)
        x = self.added("gather", "word", self.constant("embed"), tokens, axis=0)
        first = self.shape.first
        table = self.checkpoint.tensors["positions"][first : first + self.rows]
        kinds = self.checkpoint.tensors.get("types")
        if kinds is not None and not self.typed:
            table = table + kinds[0]
        x = self.added("add", "positioned", x, self.build.constant(table, "positions"))
        if kinds is None or not self.typed:
            return x
        types = self.build.input(TYPES, TensorType(size, Element.I32))
        row = self.added("gather", "type", self.constant("types"), types, axis=0)
        return self.added("add", "typed", x, row)

    def attend(self, name: str, q: str, k: str, v: str, layer: int) -> str:
        return self.joined(name, q, k, v, self.sight, causal=False)

    def scalar(self, value: int | np.float32) -> str:
        """Add a number, int32 or float32."""
        number = np.int32(value) if isinstance(value, int) else value
        return self.build.constant(number.reshape(1), "number")

    def first(self, x: str) -> str:
        """Add the row of the first token, (1, H)."""
        hidden = self.shape.hidden
        ends: dict[str, Sequence[int]] = {"starts": (0, 0, 0), "stops": (1, 1, hidden)}
        row = self.added("slice", "first", x, **ends, steps=(1, 1, 1))
        return self.added("reshape", "pooled", row, shape=(1, hidden))

    def mean(self, x: str) -> str:
        """Add the mean of the rows of tokens that are there, (1, H)."""
        one, zero = self.scalar(np.float32(1)), self.scalar(np.float32(0))
        column = self.added("reshape", "column", self.there, shape=(1, self.rows, 1))
        kept = self.added("select", "kept", column, x, zero)
        counted = self.added("select", "counted", self.there, one, zero)
        total, count = (self.sum(name, y) for name, y in (("total", kept), ("count", counted)))
        some = self.added("max", "some", self.added("reshape", "row", count, shape=(1, 1)), one)
        return self.added("div", "pooled", total, some)

    def sum(self, name: str, x: str) -> str:
        """Add the sum over places, (1, ...)."""
        return self.added("reduce", name, x, axes=(1,), keep=False, function="sum")

    def unit(self, x: str) -> str:
        """Add what has the direction of a vector (1, H) and length 1."""
        power = self.scalar(np.float32(2))
        squares = self.sum("squares", self.added("pow", "square", x, power))
        column = self.added("reshape", "length", squares, shape=(1, 1))
        half = self.scalar(np.float32(0.5))
        least = self.added("max", "least", column, self.scalar(np.float32(1e-24)))
        return self.added("div", "unit", x, self.added("pow", "norm", least, half))


def sentence_samples(checkpoint: EncoderCheckpoint, graph: Graph) -> dict[str, Array]:
    """Return paragraphs of the documentation for calibration, (N, 1, S), padded, and their masks.

    Raises:
        GraphError: the checkpoint has no tokenizer.
    """
    place, rows = checkpoint.place, graph.type(TOKENS).shape[1]
    vocab = checkpoint.shape.vocab
    if vocab != BYTES and (place is None or not has_tokenizer(place)):
        raise GraphError(
            f"{checkpoint.source}: given no tokenizer, allowed one beside the checkpoint, or "
            "samples of your own (calibrate)"
        )
    try:
        tokenizer = load_tokenizer(place, vocab)
        ids = [cut(tokenizer.ids(checkpoint.text.of(one)), rows) for one in paragraphs(TEXTS)]
    except TokenizerError as error:
        raise GraphError(f"{checkpoint.source}: {error}") from error
    found = [padded(one, rows) for one in ids]
    samples = {TOKENS: np.stack([one for one, _ in found]), MASK: np.stack([m for _, m in found])}
    if TYPES in graph.inputs:
        samples[TYPES] = np.zeros_like(samples[TOKENS])
    return samples


def paragraphs(count: int) -> list[str]:
    """Return paragraphs of the documentation that is not held out, evenly spread."""
    text = bytes(read_corpus().development).decode("utf-8", "replace")
    found = [" ".join(one.split()) for one in text.split("\n\n")]
    long = [one for one in found if len(one) >= LEAST]
    return [long[int(i)] for i in np.linspace(0, len(long) - 1, count)]


def cut(ids: Sequence[int], rows: int) -> list[int]:
    """Return a sentence that is no longer than the rows, its last token kept."""
    return list(ids) if len(ids) <= rows else [*ids[: rows - 1], ids[-1]]


def padded(ids: Sequence[int], rows: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Return the tokens of a sentence, 0 behind it, and its mask, both (1, rows) int32."""
    tokens, mask = np.zeros((1, rows), np.int32), np.zeros((1, rows), np.int32)
    tokens[0, : len(ids)], mask[0, : len(ids)] = ids, 1
    return tokens, mask
