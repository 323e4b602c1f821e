# SPDX-License-Identifier: Apache-2.0
"""What a decoder loses as integers: the texts that it is measured on, the figures, the bars.

An import measures on the last tenth of the text that calibration reads, of which calibration sees
one window in ninety: what is kept beside a checkpoint was measured on the text of another Python.
Who measures brings the integer network, which golden has.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from weights.calibrate import PIECE
from weights.checkpoint import Checkpoint
from weights.corpus import read_end, windows
from weights.model import QuantizedModel
from weights.reference import LOGITS, Floats, bits_per_byte, logits_of
from weights.sink import behind_sink, with_sink
from weights.tokenizer import BYTES, Tokenizer, TokenizerError

Integers: TypeAlias = Callable[[QuantizedModel, npt.NDArray[np.int64]], npt.NDArray[Any]]
"""Logits (R, T, V) of the integer network for ids (R, T): `golden.decoder.forward_rows`."""
WARNED, REFUSED = 0.02, 0.15
"""Relative increases of the bits per byte that an import warns of, and that it refuses."""
MOST, LEAST = 2048, 512
"""Tokens that an import measures on; the fewer, the larger the model."""
MULTIPLICATIONS = 1 << 37
"""Of both networks for MOST tokens; a larger model gets fewer of them."""
AT_ONCE = 512
"""Tokens that both networks work on at once."""
TOGETHER = 64
"""Batches that go through a layer of the float network together; the stream of all is held."""
ROW = 256
"""Tokens of a row, at most."""
BYTES_PER_TOKEN = 8
"""Of text that a row of tokens is made from; what is left over of them is not used."""


class LossError(ValueError):
    """Integers lose too much of a model, or nothing can be measured."""


@dataclass(frozen=True, slots=True, eq=False)
class TextRow:
    """Tokens of a text.

    Attributes:
        ids: (T,) from position 0 on, T at least 2.
        bytes: of the text that all but the first stand for.
    """

    ids: npt.NDArray[np.int64]
    bytes: int


@dataclass(frozen=True, slots=True)
class Loss:
    """The float32 and the integer network on the same text.

    Attributes:
        tokens, bytes: that were predicted.
        float_bits, integer_bits: bits per byte.
        guessed_bits: of who takes all tokens for equally likely.
        agreement: share of positions with the same most likely token.
    """

    tokens: int
    bytes: int
    float_bits: float
    integer_bits: float
    guessed_bits: float
    agreement: float

    @property
    def share(self) -> float:
        """The relative increase of the bits per byte; no number over none of them."""
        return self.integer_bits / self.float_bits - 1.0 if self.float_bits else math.nan

    def __str__(self) -> str:
        """Return loss and bits in one short line."""
        bits = f"{self.float_bits:.4f} to {self.integer_bits:.4f}"
        return f"{self.share:+.2%} bits per byte over float32, {bits}"

    @property
    def warnings(self) -> list[str]:
        """What a user of the model should know, in sentences."""
        found = []
        if not self.share <= WARNED:
            found.append(f"as integers it loses much: {self}, usual is up to {WARNED:+.0%}")
        if not self.float_bits < self.guessed_bits:
            found.append(
                f"float32 itself is no better than guessing: {self.float_bits:.4f} bits per byte, "
                f"guessing takes {self.guessed_bits:.4f}: not trained, or with the tokenizer of "
                "another model?"
            )
        return found


def measure_loss(
    checkpoint: Checkpoint,
    model: QuantizedModel,
    rows: Sequence[TextRow],
    integers: Integers,
    advance: Callable[[int], object] = lambda _: None,
) -> Loss:
    """Run the float32 and the integer network on the same rows.

    Args:
        checkpoint: the float model.
        model: made of it.
        rows: of text, at least one.
        integers: the integer network.
        advance: called with the number of rows that were done.
    """
    unit = model.scales["logits"]
    sink = None if model.sink is None else model.sink.token
    bits = np.zeros(2)
    equal = 0
    for ids, floats in _floats(checkpoint, _batches(rows, model.shape.vocab), sink):
        with np.errstate(over="ignore", invalid="ignore"):  # infinite bits are no loss to accept
            logits = integers(model, ids) * unit
            cap = checkpoint.shape.logit_cap
            networks = floats, np.tanh(logits / cap) * cap if cap else logits
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


def _floats(
    checkpoint: Checkpoint, batches: Iterable[npt.NDArray[np.int64]], sink: int | None
) -> Iterator[tuple[npt.NDArray[np.int64], Floats]]:
    """Yield batches, each with its logits of the float network behind a sink.

    The network is read once for TOGETHER of them.
    """
    ahead = iter(batches)
    while some := list(islice(ahead, TOGETHER)):
        found = logits_of(checkpoint, [with_sink(ids, sink) for ids in some])
        for ids in some:
            with np.errstate(over="ignore", invalid="ignore"):
                floats = next(found)[:, int(sink is not None) :]
            yield ids, floats


def _batches(rows: Sequence[TextRow], vocab: int) -> Iterator[npt.NDArray[np.int64]]:
    """Yield ids (R, T) of rows that stand behind one another and are of one length."""
    at_once = min(AT_ONCE, LOGITS // vocab)
    for length, same in groupby(rows, lambda row: row.ids.size):
        ids = np.stack([row.ids for row in same])
        yield from np.array_split(ids, -(-ids.size // max(at_once, length)))


def check_loss(name: str, loss: Loss) -> None:
    """Raise LossError if a model loses too much."""
    if not loss.share <= REFUSED:
        raise LossError(
            f"{name}: given a model that loses too much as integers: {loss}, allowed up to "
            f"{REFUSED:+.0%}, on {loss.tokens:,} tokens; wider --weights lose less, an "
            "import takes it as it is with --accept-loss (of make: ACCEPT_LOSS=1)"
        )


def import_rows(
    checkpoint: Checkpoint, tokenizer: Tokenizer, sink: int | None = None
) -> list[TextRow]:
    """Return text for the measurement of an import, evenly spread; it stands behind a sink.

    Raises:
        LossError, TokenizerError: as `rows_of`.
    """
    tokens = max(LEAST, min(MOST, MULTIPLICATIONS // checkpoint.parameters))
    length = min(checkpoint.shape.context - int(sink is not None), ROW)
    count = max(1, tokens // length)
    return rows_of(checkpoint, tokenizer, read_end(), length, count, sink)


def rows_of(
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    text: npt.NDArray[np.uint8],
    length: int,
    count: int | None = None,
    sink: int | None = None,
) -> list[TextRow]:
    """Return rows of up to `length` tokens of a text (n,) of bytes.

    Args:
        checkpoint: whose vocabulary it is.
        tokenizer: of it.
        text: UTF-8.
        length: most tokens of a row.
        count: rows, evenly spread, None for as many as there are.
        sink: token that stands before a text anyway, None for none.

    Raises:
        LossError: there is no row of two tokens.
        TokenizerError: the tokenizer has tokens that the checkpoint has not.
    """
    piece = length if checkpoint.shape.vocab == BYTES else max(PIECE, BYTES_PER_TOKEN * length)
    pieces = windows(text, min(piece, text.size), count) if text.size else ()
    texts = (bytes(one.astype(np.uint8)).decode("utf-8", "ignore") for one in pieces)
    rows = list(_rows(checkpoint, tokenizer, texts, length, sink))
    if not rows:
        raise LossError(
            f"{checkpoint.source}: given no text of 2 tokens to measure on, with a context of "
            f"{checkpoint.shape.context}, allowed 2 and more"
        )
    return rows


def _rows(
    checkpoint: Checkpoint,
    tokenizer: Tokenizer,
    texts: Iterable[str],
    length: int,
    sink: int | None,
) -> Iterator[TextRow]:
    vocab = checkpoint.shape.vocab
    for text in texts:
        ids = behind_sink(tokenizer.encode(text), sink)[:length] if text.strip() else []
        size = tokenizer.size(ids) - tokenizer.size(ids[:1])
        if size < 1:
            continue
        if max(ids) >= vocab:
            raise TokenizerError(
                f"{checkpoint.source}: the tokenizer gives token id {max(ids)}, allowed 0 to "
                f"{vocab - 1}, the vocabulary of the checkpoint"
            )
        yield TextRow(np.array(ids, np.int64), size)


def guessed_bits(vocab: int, tokens: int, size: int) -> float:
    """Return the bits per byte of who takes all tokens for equally likely."""
    return math.log2(vocab) * tokens / size
