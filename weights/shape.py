# SPDX-License-Identifier: Apache-2.0
"""The shape of a decoder: all that is known of it without a weight, for whoever reads a model."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

NormKind = Literal["layernorm", "rmsnorm"]
HeadNorms = Literal["", "head", "row"]


@dataclass(frozen=True, slots=True)
class Shape:
    """The dimensions of a decoder and what it is made of.

    Attributes:
        family: the architecture's name, "gpt2", "llama", "mistral", "qwen2", ...; informative, the
            other attributes say all that computing needs.
        norm: the kind of all norms.
        hidden, layers, heads, kv_heads, head_dim, ffn, vocab, context: dimensions; heads is a
            multiple of kv_heads, and query head h reads K/V head h // (heads // kv_heads).
        window: a position sees itself and the window - 1 positions before it; 0 = all of them.
        rope: q and k are rotated by their position; else positions are learned rows that are added
            to those of the tokens.
        gated: the feed-forward is down(activation(gate(x)) * up(x)), else down(activation(up(x))).
        wide: of a gated one, gate, `up` and their product are int16 where integers compute it, else
            int8.
        windows: `window` of each layer where they differ; () for the same in all.
        tables: number of each layer's table of rotations; () for the first in all.
        parallel: the feed-forward reads what attention reads, and both are added to it.
        head_norms: q and k are normalised before they are turned: "head" every head, with one gain
            for all heads of q and one for those of k; "row" all heads of a position at once; ""
            not at all.
        pre_norms: attention and feed-forward read normalised rows; else the stream itself.
        part_norms: what attention and feed-forward add is normalised first.
    """

    family: str
    norm: NormKind
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    context: int
    window: int = 0
    rope: bool = False
    gated: bool = False
    wide: bool = False
    windows: tuple[int, ...] = ()
    tables: tuple[int, ...] = ()
    parallel: bool = False
    head_norms: HeadNorms = ""
    pre_norms: bool = True
    part_norms: bool = False

    def window_of(self, layer: int) -> int:
        """Return the window of a layer."""
        return self.windows[layer] if self.windows else self.window

    def table_of(self, layer: int) -> int:
        """Return the number of a layer's table of rotations."""
        return self.tables[layer] if self.tables else 0

    @property
    def table_count(self) -> int:
        """Tables of rotations, 0 without any."""
        return int(self.rope) * (max(self.tables, default=0) + 1)

    @property
    def group(self) -> int:
        """Query heads per K/V head."""
        return self.heads // self.kv_heads

    @property
    def q_columns(self) -> int:
        """Columns of q and of the context: heads * head_dim."""
        return self.heads * self.head_dim

    @property
    def kv_columns(self) -> int:
        """Columns of k, and of v: kv_heads * head_dim."""
        return self.kv_heads * self.head_dim

    @property
    def positions(self) -> bool:
        """Whether positions are learned rows."""
        return not self.rope

    @property
    def layer_weights(self) -> int:
        """Weights of the products of a layer."""
        attention = 2 * self.hidden * (self.q_columns + self.kv_columns)
        return attention + (2 + self.gated) * self.hidden * self.ffn

    def plain(self) -> Shape:
        """Return the shape without what a subclass adds."""
        return Shape(*(getattr(self, field.name) for field in fields(Shape)))
