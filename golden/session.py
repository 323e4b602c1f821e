# SPDX-License-Identifier: Apache-2.0
"""A growing sequence on the integer network with its own K/V cache, and greedy generation.

Positions are computed once: their keys and values stay, and later ones attend to them. The logits
are those of a full recomputation, bit for bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from golden.decoder import ContextFullError, Int16Array, ModelTrace, beginning, embed, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weights.model import QuantizedModel


class GoldenSession:
    """One sequence of tokens and what attention needs of it.

    Attributes:
        model: the network.
        cache: keys and values of the positions so far, of every layer.

    """

    def __init__(self, model: QuantizedModel) -> None:
        self.model = model
        self.cache = beginning(model)

    @property
    def length(self) -> int:
        """Positions so far, the next token's position."""
        return int(self.cache[0].k.shape[0])

    def extend(self, ids: Sequence[int]) -> ModelTrace:
        """Append ids to the sequence and return every tensor of their S rows.

        Raises:
            ContextFullError: the sequence would outgrow the context; it stays as it was.
            ValueError: no ids, no integers, or ids outside the vocabulary.

        """
        if self.length == self.model.shape.context:
            raise ContextFullError(
                f"session: context full: all {self.model.shape.context} positions are taken"
            )
        trace = run(self.model, embed(self.model, ids, self.length), self.cache)
        self.cache = [
            past.followed_by(block.keys, block.v)
            for past, block in zip(self.cache, trace.blocks, strict=True)
        ]
        return trace

    def prefill(self, ids: Sequence[int]) -> Int16Array:
        """Append a prompt, or the next piece of one; return its logits (S, V) int16."""
        return self.extend(ids).logits

    def step(self, token: int) -> Int16Array:
        """Append one token; return the logits (V,) int16 of what follows it."""
        row: Int16Array = self.extend([token]).logits[0]
        return row


def greedy(logits: Int16Array) -> int:
    """Return the token of the largest of the logits (V,), the lowest one of equals."""
    return int(logits.argmax())


def generate(
    model: QuantizedModel, ids: Sequence[int], count: int, eos: int | None = None
) -> list[int]:
    """Return the `count` greedy tokens that follow a prompt, or fewer if EOS comes.

    Args:
        model: the network.
        ids: the prompt, 1 to context ids.
        count: 1 and more.
        eos: a token behind which generation ends; it is returned too. None: there is none.

    Raises:
        ContextFullError: a token would have to be fed at a position that the context has not;
            `produced` holds the tokens until then.
        ValueError: count is below 1, or the prompt is refused.

    """
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ValueError(f"generate: count: given {count!r}, allowed 1 and more")
    session = GoldenSession(model)
    produced = [greedy(session.prefill(ids)[-1])]
    while len(produced) < count and produced[-1] != eos:
        if session.length == model.shape.context:
            most = model.shape.context - model.first - len(ids) + 1
            raise ContextFullError(
                f"generate: context full: given a prompt of {len(ids)} and {count} tokens to "
                f"produce, allowed at most {most} with a context of {model.shape.context}",
                produced,
            )
        produced.append(greedy(session.step(produced[-1])))
    return produced
