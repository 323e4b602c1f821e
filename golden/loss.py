# SPDX-License-Identifier: Apache-2.0
"""Measures what a decoder loses as integers, row by row of a text."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from golden.decoder import ROWS_AT_ONCE, forward_rows
from weights.loss import Loss, guessed_bits
from weights.reference import bits_per_byte, forward

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from weights.checkpoint import Checkpoint
    from weights.loss import TextRow
    from weights.model import QuantizedModel


def measure_loss(
    checkpoint: Checkpoint,
    model: QuantizedModel,
    rows: Sequence[TextRow],
    advance: Callable[[int], object] = lambda _: None,
) -> Loss:
    """Run the float32 and the integer network on the same rows.

    Args:
        checkpoint: the float model.
        model: made of it.
        rows: of text, at least one.
        advance: called with the number of rows that were done.

    """
    unit = model.scales["logits"]
    bits = np.zeros(2)
    equal = 0
    for ids in _batches(rows):
        with np.errstate(over="ignore", invalid="ignore"):  # infinite bits are no loss to accept
            networks = forward(checkpoint, ids), forward_rows(model, ids) * unit
            bits += [bits_per_byte(logits, ids) * ids[:, 1:].size for logits in networks]
        equal += int((networks[0].argmax(axis=-1) == networks[1].argmax(axis=-1)).sum())
        advance(len(ids))
    tokens, size = sum(row.ids.size - 1 for row in rows), sum(row.bytes for row in rows)
    return Loss(
        tokens,
        size,
        float(bits[0]) / size,
        float(bits[1]) / size,
        guessed_bits(model.shape.vocab, tokens, size),
        equal / sum(row.ids.size for row in rows),
    )


def _batches(rows: Sequence[TextRow]) -> Iterator[npt.NDArray[np.int64]]:
    """Yield ids (R, T) of rows that stand behind one another and are of one length."""
    for length, same in groupby(rows, lambda row: row.ids.size):
        ids = np.stack([row.ids for row in same])
        yield from np.array_split(ids, -(-ids.size // max(ROWS_AT_ONCE, length)))
