# SPDX-License-Identifier: Apache-2.0
"""The first position of a text as a sink of attention, and what its massive activations ask for.

Nearly all published decoders put a row of huge values at the first position, whatever token stands
there, which later positions attend to when they look for nothing (Sun et al., "Massive Activations
in Large Language Models", 2024; Xiao et al., "Efficient Streaming Language Models with Attention
Sinks", 2023). A static scale that holds this row leaves nothing for all others. Such a model gets a
first token that is always the same; its keys and values are computed once, in floats, and are
constants of the integer model (as the prefix of Chen et al., "PrefixQuant", 2024). A text then
begins at position 1, and scales are those of the positions behind the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from weights.checkpoint import Checkpoint
from weights.reference import Floats, Tokens, watch

LOUDER = 8.0
"""A first position whose stream is so many times louder than all others is a sink."""
LOOKED_AT = 128
"""Positions that are compared with the first one."""


def is_sink(checkpoint: Checkpoint, tokens: Tokens) -> bool:
    """Whether the first position of a text (T,) is a sink."""
    loudest = np.zeros(min(tokens.size, LOOKED_AT))

    def observe(name: str, values: Floats) -> None:
        if name.endswith("residual"):
            np.maximum(loudest, np.abs(values[0]).max(axis=-1), out=loudest)

    with np.errstate(over="ignore", invalid="ignore"):  # refused by who measures
        for layer in watch(checkpoint, [tokens[None, :LOOKED_AT]], observe):
            if layer == checkpoint.shape.layers - 1:
                break  # logits say nothing
    return loudest.size > 1 and bool(loudest[0] > LOUDER * loudest[1:].max())


def with_sink(tokens: Tokens, sink: int | None) -> Tokens:
    """Return rows (R, T) of tokens behind the sink's, (R, T + 1); without a sink as they are."""
    if sink is None:
        return tokens
    return np.concatenate([np.full((len(tokens), 1), sink, tokens.dtype), tokens], axis=1)


def behind_sink(ids: Sequence[int], sink: int | None) -> list[int]:
    """Return a text without the sink's token, which the model has already, unless it is all."""
    return list(ids[1:] if len(ids) > 1 and ids[0] == sink else ids)


def sink_rows(model: Checkpoint, sink: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield key and value (K/V heads * D,) float32 of a token at position 0, layer by layer."""
    seen: dict[str, Floats] = {}
    key = "k_rope" if model.shape.rope else "k_norm" if model.shape.head_norms else "k"

    def observe(name: str, values: Floats) -> None:
        seen[name] = values.reshape(-1)  # of one position

    for layer in watch(model, [np.array([[sink]])], observe):
        yield seen[f"h.{layer}.{key}"], seen[f"h.{layer}.v"]
        seen.clear()
