# SPDX-License-Identifier: Apache-2.0
"""What a decoder computes in real numbers, written once for whoever does it.

`decoder` calls the operations of a decoder in the order of the data flow and knows none of them:
`weights.reference` computes with numpy, `npu.graph.importers.checkpoint` draws a graph. What an
architecture has that others lack stands in its shape and here, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol, TypeVar

from weights.checkpoint import CheckpointShape

T = TypeVar("T")


class Operations(Protocol[T]):
    """The operations of a decoder on values of its own.

    Names are those of tensors of a checkpoint without ".weight", or "h.{l}." and what a value is.
    Rows are (B, T, channels), heads (B, heads, T, D).
    """

    def embedding(self) -> T:
        """Return the rows of all tokens, with those of their positions where these are learned."""

    def norm(self, name: str, x: T) -> T:
        """Return rows, or rows of heads, normalised."""

    def linear(self, name: str, x: T) -> T:
        """Return the products of rows with weights, and the bias if there is one."""

    def heads(self, name: str, x: T, count: int) -> T:
        """Return rows as so many heads."""

    def rotate(self, name: str, x: T, layer: int) -> T:
        """Return heads turned by their positions, by the table of the layer."""

    def attend(self, name: str, q: T, k: T, v: T, layer: int) -> T:
        """Return the rows that attention makes: a position sees itself and those before it.

        Those in the window of the layer, where it has one.
        """

    def activate(self, name: str, x: T) -> T:
        """Return the activation of every element."""

    def cap(self, name: str, x: T, most: float) -> T:
        """Return most tanh(x / most) of every element."""

    def multiply(self, name: str, a: T, b: T) -> T:
        """Return products of elements."""

    def add(self, name: str, a: T, b: T) -> T:
        """Return the stream with what a part of a block adds to it."""


def decoder(do: Operations[T], shape: CheckpointShape) -> Iterator[T]:
    """Yield the rows (B, T, H) in front of the first layer, behind each, and behind the last norm.

    Then the logits (B, T, V). So several texts can go through a layer while it is there.
    """
    x = do.embedding()
    yield x
    for layer in range(shape.layers):
        x = block(do, shape, layer, x)
        yield x
    x = do.norm("norm", x)
    yield x
    logits = do.linear("head", x)
    yield do.cap("capped", logits, shape.logit_cap) if shape.logit_cap else logits


def block(do: Operations[T], shape: CheckpointShape, layer: int, x: T) -> T:
    """Return the rows behind a layer."""
    at = f"h.{layer}"
    attended = do.add(f"{at}.attended", x, _attention(do, shape, layer, x))
    inner = _feed_forward(do, shape, at, x if shape.parallel else attended)
    return do.add(f"{at}.residual", attended, inner)


def _attention(do: Operations[T], shape: CheckpointShape, layer: int, x: T) -> T:
    at = f"h.{layer}"
    h = do.norm(f"{at}.norm1", x) if shape.pre_norms else x
    counts = {"q": shape.heads, "k": shape.kv_heads, "v": shape.kv_heads}
    rows = {name: do.linear(f"{at}.{name}", h) for name in counts}
    if shape.head_norms == "row":
        rows |= {name: do.norm(f"{at}.{name}_norm", rows[name]) for name in "qk"}
    heads = {name: do.heads(f"{at}.{name}", rows[name], counts[name]) for name in counts}
    if shape.head_norms == "head":
        heads |= {name: do.norm(f"{at}.{name}_norm", heads[name]) for name in "qk"}
    if shape.rope:
        heads |= {name: do.rotate(f"{at}.{name}_rope", heads[name], layer) for name in "qk"}
    mixed = do.attend(f"{at}.ctx", heads["q"], heads["k"], heads["v"], layer)
    return _added(do, shape, f"{at}.o", mixed)


def _feed_forward(do: Operations[T], shape: CheckpointShape, at: str, x: T) -> T:
    h = do.norm(f"{at}.norm2", x) if shape.pre_norms else x
    up = do.linear(f"{at}.up", h)
    if shape.gated:
        silu = do.activate(f"{at}.silu", do.linear(f"{at}.gate", h))
        act = do.multiply(f"{at}.act", silu, up)
    else:
        act = do.activate(f"{at}.act", up)
    return _added(do, shape, f"{at}.down", act)


def _added(do: Operations[T], shape: CheckpointShape, name: str, x: T) -> T:
    """Return what a part adds to the stream: the product with its last weights, normalised."""
    y = do.linear(name, x)
    return do.norm(f"{name}_norm", y) if shape.part_norms else y
