# SPDX-License-Identifier: Apache-2.0
"""`npu evaluate`: how well a model predicts a text as integers, and what each layer adds of error.

Figures over a text are those of lm-eval's perplexity tasks (Gao et al., "A framework for few-shot
language model evaluation"), by its names: with L the sum of the logarithms of the probabilities
that all predicted tokens have, word_perplexity = exp(-L / words), byte_perplexity =
exp(-L / bytes), bits_per_byte = -L / (bytes ln 2). Words are what blanks separate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console

from golden.decoder import BlockTrace, forward_rows, forward_trace
from npu.commands.load_model import opened, warn
from npu.commands.progress import Progress, step
from npu.tables import FitTable
from weights.calibrate import model_of, scales_for
from weights.checkpoint import Checkpoint, check_generation
from weights.formats.recipe import WeightRecipe
from weights.loss import Loss, LossError, TextRow, measure_loss, rows_of
from weights.model import QuantizedModel
from weights.quantize import quantize_loaded
from weights.reference import Floats, watch
from weights.sink import with_sink
from weights.tokenizer import Tokenizer, load_tokenizer

ROW = 256
"""Tokens of a row, where nobody says it."""
LOOKED_AT = 1024
"""Tokens whose tensors are compared layer by layer, at most."""
WIDE = 1e6
"""A figure that has as many digits in front as people count."""
UNCLIPPED = ("numer", "sums", "near", "ratio")
"""Tensors of a layer in which nothing is lost at a limit: a far gate has the ratio of its end."""


@dataclass(frozen=True)
class LayerError:
    """A layer's share in what integers lose.

    Attributes:
        stream: error of the residual stream behind it, of its length.
        clipped: the tensor with most values at a limit of its type.
        share: of them.
    """

    stream: float
    clipped: str
    share: float


@dataclass(frozen=True)
class Evaluation:
    """What was found.

    Attributes:
        loss: of the integers over float32, on the whole text.
        words: that were predicted.
        rows: of tokens, each predicted by itself.
        layers: every layer.
    """

    loss: Loss
    words: int
    rows: int
    layers: tuple[LayerError, ...]

    def figures(self, bits: float) -> dict[str, float]:
        """Return lm-eval's figures, and the perplexity of a token, for bits per byte.

        One is infinite if it is too large for a number, and no number if a text has no words.
        """
        nats = bits * self.loss.bytes * math.log(2)
        return {
            "bits_per_byte": bits,
            "byte_perplexity": _power(nats / self.loss.bytes),
            "word_perplexity": _power(nats / self.words) if self.words else math.nan,
            "token_perplexity": _power(nats / self.loss.tokens),
        }

    def record(self) -> dict[str, Any]:
        """Return everything, as JSON has it."""
        loss = self.loss
        return {
            "tokens": loss.tokens,
            "bytes": loss.bytes,
            "words": self.words,
            "rows": self.rows,
            "float32": self.figures(loss.float_bits),
            "integers": self.figures(loss.integer_bits),
            "bits_per_byte_increase": loss.share,
            "top1_agreement": loss.agreement,
            "layers": [
                {"stream_error": one.stream, "clipped": one.clipped, "clipped_share": one.share}
                for one in self.layers
            ],
        }

    def tables(self) -> Iterator[FitTable]:
        """Yield what people read."""
        loss = self.loss
        table = FitTable(
            title=f"{loss.tokens:,} tokens, {self.words:,} words, {loss.bytes:,} bytes"
        )
        table.text("figure")
        for head in ("float32", "integers", "change"):
            table.figure(head)
        floats, integers = self.figures(loss.float_bits), self.figures(loss.integer_bits)
        for name, value in floats.items():
            values = (value, integers[name])
            change = integers[name] / value - 1 if value else math.nan
            table.add_row(name.replace("_", " "), *map(_figure, values), _change(change))
        table.add_row("same likeliest token", "", f"{loss.agreement:.1%}", "")
        yield table
        table = FitTable(title="Layers: error of the stream behind each, values at a limit")
        for head in ("layer", "error"):
            table.figure(head)
        table.text("most clipped")
        table.figure("share")
        for number, one in enumerate(self.layers):
            share = f"{one.share:.3%}" if one.share else ""
            table.add_row(str(number), _change(one.stream).lstrip("+"), one.clipped, share)
        yield table


def _figure(value: float) -> str:
    """Return a figure that a column has room for, "-" for none."""
    if not math.isfinite(value):
        return "-"
    return f"{value:.4f}" if value < WIDE else _short(f"{value:.3e}")


def _change(share: float) -> str:
    """Return a relative change, "-" for none."""
    if not math.isfinite(share):
        return "-"
    return f"{share:+.2%}" if share < WIDE / 100 else _short(f"{100 * share:+.1e}") + "%"


def _short(text: str) -> str:
    """Return a number with an exponent without what its sign and a leading 0 take."""
    digits, exponent = text.split("e")
    return f"{digits}e{int(exponent)}"


def _power(exponent: float) -> float:
    """Return e to the power, infinite where it is too large for a number."""
    return math.exp(exponent) if exponent < 700 else math.inf


def evaluate(
    name: str,
    weights: WeightRecipe,
    text: bytes,
    tokens: int | None,
    length: int | None,
    console: Console,
) -> Evaluation:
    """Measure a model on a text.

    Args:
        name: a folder, a hub id, a GGUF file, or an ONNX file of a decoder.
        weights: formats of the weights.
        text: UTF-8.
        tokens: about so many, in rows that are evenly spread; None for all.
        length: of a row; None for the usual one, or the context if that is shorter.
        console: where the progress is shown.

    Raises:
        CheckpointError, ScalesError, TokenizerError, LossError, ModelError: as the parts raise
            them.
    """
    with step(f"reading {name}", console=console):
        shape, read = opened(name)
        check_generation(shape)
        checkpoint = read()
        tokenizer = load_tokenizer(checkpoint.place, checkpoint.shape.vocab)
    warn(name, tokenizer.warnings, console)
    far = Progress()
    with step("measuring activations and quantising", far.text, console):
        model = quantize_loaded(checkpoint, weights, far.advance)
    rows = _rows(checkpoint, model, tokenizer, text, tokens, length)
    far = Progress()
    with step("predicting the text", far.text, console):
        loss = measure_loss(checkpoint, model, rows, forward_rows, far.counter("rows", len(rows)))
    with step("comparing layers", console=console):
        layers = layer_errors(checkpoint, model, rows)
    words = sum(len(tokenizer.decode(row.ids[1:].tolist()).split()) for row in rows)
    return Evaluation(loss, words, len(rows), layers)


def _rows(
    checkpoint: Checkpoint,
    model: QuantizedModel,
    tokenizer: Tokenizer,
    text: bytes,
    tokens: int | None,
    length: int | None,
) -> list[TextRow]:
    """Return rows of tokens of a text. Raises LossError."""
    most = model.shape.context - model.first
    if length is not None and length > most:
        raise LossError(f"--row: given {length} tokens, allowed 2 to {most}, the context")
    size = min(ROW, most) if length is None else length
    count = None if tokens is None else max(1, tokens // size)
    sink = None if model.sink is None else model.sink.token
    return rows_of(checkpoint, tokenizer, np.frombuffer(text, np.uint8), size, count, sink)


def layer_errors(
    checkpoint: Checkpoint, model: QuantizedModel, rows: Sequence[TextRow]
) -> tuple[LayerError, ...]:
    """Compare the tensors of all layers on the first LOOKED_AT tokens of some rows.

    Args:
        checkpoint: the float model, with the scales that are kept of it.
        model: made of it.
        rows: of tokens.
    """
    floats = model_of(checkpoint, scales_for(checkpoint))
    layers = model.shape.layers
    sink = None if model.sink is None else model.sink.token
    wrong, whole = np.zeros(layers), np.zeros(layers)
    clipped: list[dict[str, list[int]]] = [{} for _ in range(layers)]
    some = rows[: max(1, LOOKED_AT // rows[0].ids.size)]
    real: dict[str, list[Floats]] = {}

    def observe(name: str, values: Floats) -> None:
        if name.endswith(".residual"):
            real.setdefault(name, []).append(values[0])

    for _ in watch(floats, [with_sink(row.ids[None], sink) for row in some], observe, model.first):
        pass
    for number, row in enumerate(some):
        trace = forward_trace(model, row.ids.tolist())
        for layer, block in enumerate(trace.blocks):
            stream = real[f"h.{layer}.residual"][2 * number + 1]
            error = block.resid2 * model.stream_unit(layer) - stream
            wrong[layer] += float(np.square(error).sum())
            whole[layer] += float(np.square(stream).sum())
            for name, (count, size) in _at_limits(block, model.blocks[layer].act_limit):
                found = clipped[layer].setdefault(name, [0, 0])
                found[0] += count
                found[1] += size
    return tuple(
        LayerError(float(np.sqrt(wrong[layer] / whole[layer])), *_most(clipped[layer]))
        for layer in range(layers)
    )


def _at_limits(block: BlockTrace, act_limit: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield of every tensor its values at a limit of its type, or at `act_limit`, and all."""
    for name, values in block.tensors().items():
        if name not in UNCLIPPED:
            low, high = np.iinfo(values.dtype).min, np.iinfo(values.dtype).max
            if name == "act" and act_limit:
                low, high = -act_limit - 1, act_limit
            cut = (values <= low) | (values >= high)
            yield name, (int(cut.sum()), values.size)


def _most(clipped: dict[str, list[int]]) -> tuple[str, float]:
    """Return the tensor with the largest share of clipped values, "" for none, and that share."""
    name, (count, size) = max(clipped.items(), key=lambda one: one[1][0] / one[1][1])
    return (name, count / size) if count else ("", 0.0)
