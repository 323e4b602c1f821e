# SPDX-License-Identifier: Apache-2.0
"""What a decoder computes in real numbers, written once for whoever does it.

`decoder` calls the operations of a decoder in the order of the data flow and knows none of them:
`weights.reference` computes with numpy, `npu.graph.importers.checkpoint` draws a graph. What an
architecture has that others lack stands in its shape and here, and nowhere else.
"""

from __future__ import annotations

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

    def rotate(self, name: str, x: T) -> T:
        """Return heads turned by their positions."""

    def attend(self, name: str, q: T, k: T, v: T) -> T:
        """Return the rows that attention makes: a position sees itself and those before it."""

    def activate(self, name: str, x: T) -> T:
        """Return the activation of every element."""

    def multiply(self, name: str, a: T, b: T) -> T:
        """Return products of elements."""

    def add(self, name: str, a: T, b: T) -> T:
        """Return the stream with what a part of a block adds to it."""


def decoder(do: Operations[T], shape: CheckpointShape) -> T:
    """Return the logits (B, T, V)."""
    x = do.embedding()
    for layer in range(shape.layers):
        at = f"h.{layer}"
        x = do.add(f"{at}.attended", x, _attention(do, shape, at, x))
        x = do.add(f"{at}.residual", x, _feed_forward(do, shape, at, x))
    return do.linear("head", do.norm("norm", x))


def _attention(do: Operations[T], shape: CheckpointShape, at: str, x: T) -> T:
    h = do.norm(f"{at}.norm1", x)
    counts = {"q": shape.heads, "k": shape.kv_heads, "v": shape.kv_heads}
    heads = {
        name: do.heads(f"{at}.{name}", do.linear(f"{at}.{name}", h), count)
        for name, count in counts.items()
    }
    if shape.head_norms:
        heads |= {name: do.norm(f"{at}.{name}_norm", heads[name]) for name in "qk"}
    if shape.rope:
        heads |= {name: do.rotate(f"{at}.{name}_rope", heads[name]) for name in "qk"}
    return do.linear(f"{at}.o", do.attend(f"{at}.ctx", heads["q"], heads["k"], heads["v"]))


def _feed_forward(do: Operations[T], shape: CheckpointShape, at: str, x: T) -> T:
    h = do.norm(f"{at}.norm2", x)
    up = do.linear(f"{at}.up", h)
    if shape.gated:
        silu = do.activate(f"{at}.silu", do.linear(f"{at}.gate", h))
        return do.linear(f"{at}.down", do.multiply(f"{at}.act", silu, up))
    return do.linear(f"{at}.down", do.activate(f"{at}.act", up))
