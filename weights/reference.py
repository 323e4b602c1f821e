# SPDX-License-Identifier: Apache-2.0
"""The float32 forward pass of a decoder in numpy: for calibration, and to measure the integer one.

tests/oracles checks this module against transformers for every architecture.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from weights.checkpoint import Checkpoint, CheckpointShape
from weights.decoder import decoder
from weights.shape import NormKind

Floats = npt.NDArray[np.floating[Any]]
Tokens = npt.NDArray[np.integer[Any]]
Observer = Callable[[str, Floats], None]
"""Called with the name and the values of an intermediate tensor, (..., channels) float32."""


GELU = ("gelu", "gelu_python")
GELU_TANH = ("gelu_new", "gelu_pytorch_tanh", "gelu_fast", "gelu_accurate")
SILU = ("silu", "swish")
OTHERS: dict[str, Callable[[npt.NDArray[Any]], npt.NDArray[Any]]] = {
    "relu": lambda x: np.maximum(x, 0.0),
    "relu2": lambda x: np.square(np.maximum(x, 0.0)),
    "quick_gelu": lambda x: 0.5 * x * (1.0 + np.tanh(0.851 * x)),  # x / (1 + exp(-1.702 x))
    "tanh": np.tanh,
    "sigmoid": lambda x: 0.5 * (1.0 + np.tanh(0.5 * x)),
}
"""Functions that have one name each."""
LOGITS = 1 << 24
"""Logits of which copies are made at once, about."""
ACTIVATIONS = (*GELU, *GELU_TANH, *SILU, *OTHERS)
"""Names that transformers has for functions."""


def activation(name: str, x: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Apply the activation called `name` in a config, elementwise, in the dtype of `x`.

    GELU is x * Phi(x) with the exact error function, GELU_TANH its tanh form (Hendrycks and Gimpel,
    "Gaussian Error Linear Units", 2016). SILU is x / (1 + exp(-x)).
    """
    result: npt.NDArray[Any]
    if name in GELU:
        flat = [math.erf(v) for v in (x.astype(np.float64) / math.sqrt(2.0)).ravel()]
        result = 0.5 * x * (1.0 + np.array(flat, np.float64).reshape(x.shape))
    elif name in SILU:
        result = 0.5 * x * (1.0 + np.tanh(0.5 * x))  # the same, and no overflow
    elif name in GELU_TANH:
        inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * (x * x * x))
        result = 0.5 * x * (1.0 + np.tanh(inner))
    elif name in OTHERS:
        result = OTHERS[name](x)
    else:
        raise ValueError(f"activation: given {name!r}, allowed {list(ACTIVATIONS)}")
    return result.astype(x.dtype)


def normalise(x: Floats, kind: NormKind, epsilon: float) -> Floats:
    """Return the rows of the last axis normalised, before gain and bias.

    LayerNorm: (x - mean) / sqrt(variance + epsilon). RMSNorm: x / sqrt(mean of x^2 + epsilon).
    """
    centred = x - x.mean(axis=-1, keepdims=True) if kind == "layernorm" else x
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    result: Floats = (centred / np.sqrt(variance + epsilon)).astype(np.float32)
    return result


def rope_table(shape: CheckpointShape, positions: int, number: int = 0) -> npt.NDArray[np.float64]:
    """Return (positions, D / 2, 2) cosine and sine of position * frequency of the pair.

    Of several tables (`Shape.tables`) the one of a number. A pair that is not turned has 1 and 0.
    """
    assert shape.rope
    table = np.empty((positions, shape.head_dim // 2, 2))
    table[..., 0], table[..., 1] = 1.0, 0.0
    frequencies = shape.rotation(number).frequencies(shape.context)
    for pair, frequency in enumerate(frequencies):  # not at once: gigabytes of angles
        angles = np.arange(positions) * frequency
        table[:, pair, 0], table[:, pair, 1] = np.cos(angles), np.sin(angles)
    return table


def rotate(x: Floats, table: npt.NDArray[np.float64]) -> Floats:
    """Rotate lanes t and t + D/2 of (..., T, D) vectors by the angles of a (T, D/2, 2) table."""
    cosine, sine = table[..., 0].astype(np.float32), table[..., 1].astype(np.float32)
    a, b = np.split(x, 2, axis=-1)
    result: Floats = np.concatenate([a * cosine - b * sine, b * cosine + a * sine], axis=-1)
    return result


def visible(length: int, window: int) -> npt.NDArray[np.bool_]:
    """Return (T, T): whether a position (row) sees another: itself and earlier, in the window."""
    seen: npt.NDArray[np.bool_] = np.tri(length, dtype=bool)
    return seen & ~np.tri(length, k=-window, dtype=bool) if window else seen


def softmax(scores: Floats) -> Floats:
    """Return the softmax over the last axis; -inf entries get 0."""
    powers: Floats = scores - scores.max(axis=-1, keepdims=True)
    np.exp(powers, out=powers)  # in place: what attention allocates is large
    powers /= powers.sum(axis=-1, keepdims=True)
    return powers.astype(np.float32, copy=False)


def _ignore(name: str, values: Floats) -> None:
    """Observe nothing."""


def forward(checkpoint: Checkpoint, tokens: Tokens, observe: Observer = _ignore) -> Floats:
    """Return the logits of rows of tokens that start at position 0.

    Args:
        checkpoint: the model.
        tokens: (B, T) integer ids, T at most the context.
        observe: is called with "residual" (the stream after the embedding), "h.{l}.residual" (after
            each add of a layer), "h.{l}.addend" (what is added), "h.{l}.norm1", "h.{l}.norm2" and
            "norm" (normalised, before gain and bias; without norms before parts the stream that
            these read), "h.{l}.q", ".k", ".v", with norms of them ".q_norm" and ".k_norm" (behind
            gain and bias, rows or heads), with rotary positions ".q_rope" and ".k_rope" (B, heads,
            T, D), ".scores" (natural, masked entries left out, (n,)), ".ctx", with a gate ".gate"
            and ".silu" (the activation of it), ".up", ".act" (the input of the down projection),
            with norms behind parts ".o" and ".down" in front of these and ".o_norm" and
            ".down_norm" (before gain and bias), and "logits".

    Returns:
        (B, T, V) float32.

    Raises:
        ValueError: wrong type or rank, too many positions, or an id outside the vocabulary.
    """
    return next(logits_of(checkpoint, [tokens], observe))


def logits_of(
    checkpoint: Checkpoint, batches: Sequence[Tokens], observe: Observer = _ignore
) -> Iterator[Floats]:
    """Yield what `forward` returns of each batch; every layer is read once for all of them."""
    for tokens in batches:
        check_tokens("forward", checkpoint, tokens)
    shape = checkpoint.shape
    passes = [decoder(_Numpy(checkpoint, tokens, observe), shape) for tokens in batches]
    for _ in _layers(passes, shape):
        pass
    for logits in passes:
        yield from logits


def watch(
    checkpoint: Checkpoint, batches: Sequence[Tokens], observe: Observer, first: int = 0
) -> Iterator[int]:
    """Run forward passes for an observer alone, of the positions from `first` on.

    It sees what `forward` shows but for the scores, and logits of a large vocabulary in pieces.
    Every layer is read once: all batches go through it before the next one.

    Args:
        checkpoint: the model.
        batches: of tokens as of `forward`.
        observe: as of `forward`.
        first: position.

    Yields:
        the number of each layer, when all batches are through; the logits come behind the last.

    Raises:
        ValueError: as of `forward`.
    """
    for tokens in batches:
        check_tokens("watch", checkpoint, tokens)
    shape = checkpoint.shape
    passes = [decoder(_Watched(checkpoint, tokens, observe, first), shape) for tokens in batches]
    yield from _layers(passes, shape)
    for logits in passes:
        for _ in logits:
            pass


def _layers(passes: Sequence[Iterator[Floats]], shape: CheckpointShape) -> Iterator[int]:
    """Bring passes to their logits; yield the number of each layer when all are through."""
    for stage in range(-1, shape.layers + 1):  # the embedding, and the norm
        for each in passes:
            next(each)
        if 0 <= stage < shape.layers:
            yield stage


@dataclass(frozen=True)
class _Numpy:
    """The operations of a decoder on arrays of float32."""

    checkpoint: Checkpoint
    tokens: Tokens
    observe: Observer

    @property
    def shape(self) -> CheckpointShape:
        return self.checkpoint.shape

    def seen(self, name: str, values: Floats) -> Floats:
        """Show a value to the observer; return it."""
        self.observe(name, values)
        return values

    def embedding(self) -> Floats:
        tensors = self.checkpoint.tensors
        x: Floats = tensors["embed"][self.tokens]
        if self.shape.positions:
            x = x + tensors["positions"][: self.tokens.shape[1]]
        return self.seen("residual", x)

    def norm(self, name: str, x: Floats) -> Floats:
        gain, bias = self.checkpoint.norm(name)
        n = normalise(x, self.shape.norm, self.shape.epsilon)
        result: Floats = n * gain + bias
        if name.endswith((".q_norm", ".k_norm")):
            return self.seen(name, result)
        self.seen(name, n)
        added = name.endswith((".o_norm", ".down_norm"))
        return self.seen(_beside(name, "addend"), result) if added else result

    def linear(self, name: str, x: Floats) -> Floats:
        if name == "head":
            logits = x @ self.checkpoint.head
            logits += self.checkpoint.vector("head.bias", self.shape.vocab)
            return self.seen("logits", logits.astype(np.float32, copy=False))
        if not self.shape.pre_norms and name.endswith((".q", ".up")):
            at, _, part = name.rpartition(".")
            self.seen(f"{at}.norm1" if part == "q" else f"{at}.norm2", x)
        weight, bias = self.checkpoint.linear(name)
        values: Floats = x @ weight + bias
        added = name.endswith((".o", ".down")) and not self.shape.part_norms
        return self.seen(_beside(name, "addend") if added else name, values)

    def heads(self, name: str, x: Floats, count: int) -> Floats:
        return x.reshape(*x.shape[:2], count, -1).transpose(0, 2, 1, 3)

    def rotate(self, name: str, x: Floats, layer: int) -> Floats:
        table = rope_table(self.shape, x.shape[2], self.shape.table_of(layer))
        return self.seen(name, rotate(x, table))

    def attend(self, name: str, q: Floats, k: Floats, v: Floats, layer: int) -> Floats:
        shape = self.shape
        rows, _, length, _ = q.shape
        q = q.reshape(rows, shape.kv_heads, shape.group, length, shape.head_dim)
        k, v = k[:, :, None], v[:, :, None]  # one for the queries of a group
        scores: Floats = q @ k.swapaxes(-1, -2) / math.sqrt(shape.head_dim)
        if shape.score_cap:
            scores = self.cap("scores", scores, shape.score_cap)
        seen = visible(length, shape.window_of(layer))
        self.scored(f"{name.removesuffix('.ctx')}.scores", scores, seen)
        mixed = softmax(np.where(seen, scores, np.float32(-np.inf))) @ v
        by_head = mixed.reshape(rows, shape.heads, length, shape.head_dim)
        return self.seen(name, by_head.transpose(0, 2, 1, 3).reshape(rows, length, shape.q_columns))

    def scored(self, name: str, scores: Floats, seen: npt.NDArray[np.bool_]) -> None:
        """Show the scores of heads that are not masked."""
        self.observe(name, scores[..., seen].reshape(len(scores), self.shape.heads, -1))

    def activate(self, name: str, x: Floats) -> Floats:
        return self.seen(name, activation(self.shape.activation, x))

    def cap(self, name: str, x: Floats, most: float) -> Floats:
        capped: Floats = np.float32(most) * np.tanh(x / np.float32(most))
        return capped

    def multiply(self, name: str, a: Floats, b: Floats) -> Floats:
        return self.seen(name, a * b)

    def add(self, name: str, a: Floats, b: Floats) -> Floats:
        return self.seen(_beside(name, "residual"), a + b)


def _beside(name: str, part: str) -> str:
    """Return the name of something else in the same layer."""
    return f"{name.rpartition('.')[0]}.{part}"


@dataclass(frozen=True)
class _Watched(_Numpy):
    """Shows positions from `first` on, keeps no logits."""

    first: int

    def seen(self, name: str, values: Floats) -> Floats:
        self.observe(name, values if name == "logits" else values[..., self.first :, :])
        return values

    def scored(self, name: str, scores: Floats, seen: npt.NDArray[np.bool_]) -> None:
        """Leave them out: nobody asks, and the copy is large."""

    def linear(self, name: str, x: Floats) -> Floats:
        if name != "head":
            return super().linear(name, x)
        at_once = max(1, LOGITS // (len(x) * self.shape.vocab))
        for start in range(self.first, x.shape[1], at_once):
            super().linear(name, x[:, start : start + at_once])
        return x[..., :0]


def check_tokens(where: str, checkpoint: Checkpoint, tokens: object) -> None:
    """Raise ValueError, naming `where`, unless `tokens` are rows of ids that the model takes."""
    shape = checkpoint.shape
    if not isinstance(tokens, np.ndarray) or tokens.dtype.kind not in "iu":
        given = tokens.dtype if isinstance(tokens, np.ndarray) else type(tokens).__name__
        raise ValueError(f"{where}: tokens: given {given}, allowed an array of integers")
    if tokens.ndim != 2 or tokens.size == 0:
        raise ValueError(f"{where}: tokens: given shape {tokens.shape}, allowed (B, T), not empty")
    if tokens.shape[1] > shape.context:
        raise ValueError(
            f"{where}: tokens: given {tokens.shape[1]} positions, allowed 1..{shape.context}"
        )
    if int(tokens.min()) < 0 or int(tokens.max()) >= shape.vocab:
        raise ValueError(
            f"{where}: tokens: given ids {int(tokens.min())}..{int(tokens.max())}, "
            f"allowed 0..{shape.vocab - 1}"
        )


def bits_per_byte(logits: npt.NDArray[Any], tokens: npt.NDArray[np.integer[Any]]) -> float:
    """Return the mean next-token cross entropy in bits; per byte if a token is a byte.

    Args:
        logits: (B, T, V), real or already dequantised.
        tokens: (B, T) ids; position t predicts tokens[:, t + 1].
    """
    positions = logits.shape[1] - 1
    at_once = max(1, LOGITS // (4 * len(logits) * logits.shape[2]))
    nats = []
    for start in range(0, positions, at_once):  # copies of all logits would take much memory
        rows = slice(start, min(start + at_once, positions))
        ahead = logits[:, rows].astype(np.float64)
        ahead -= ahead.max(axis=-1, keepdims=True)
        following = tokens[:, 1:][:, rows, None].astype(np.int64)
        chosen = np.take_along_axis(ahead, following, axis=-1)[..., 0]
        nats.append(np.log(np.exp(ahead, out=ahead).sum(axis=-1)) - chosen)
    return float(np.concatenate(nats, axis=1).mean() / math.log(2.0))
