# SPDX-License-Identifier: Apache-2.0
"""`npu quality FOLDER`: what the integers of a checkpoint lose over its float32, without torch."""

from __future__ import annotations

import codecs
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console

from golden.decoder import forward_rows
from npu.commands import files
from npu.commands.load_model import shape_text
from npu.commands.progress import step
from npu.tables import FitTable, pairs
from weights.calibrate import LONGEST
from weights.corpus import read_corpus
from weights.formats.recipe import WeightRecipe
from weights.importer import load_checkpoint
from weights.loss import Loss, check_loss, measure_loss, rows_of
from weights.quantize import quantize_loaded
from weights.tokenizer import load_tokenizer

TOKENS = 8192
"""That are predicted, about, unless the user says otherwise."""


def show(
    name: str, text: Path | None, tokens: int, weights: WeightRecipe, console: Console
) -> None:
    """Measure a checkpoint and print the figures.

    Args:
        name: a folder, a GGUF file or a hub id.
        text: a file of UTF-8, None for the held-out text of the shipped models.
        tokens: to predict, at least, unless the text has fewer.
        weights: formats of the weights.
        console: where the figures go.

    Raises:
        FileError, CheckpointError, ScalesError, TokenizerError: as the parts raise them.
        LossError: the integers lose more than an import takes, or there is nothing to measure.
    """
    read = read_corpus().held_out if text is None else text_bytes(text)
    checkpoint = load_checkpoint(name)
    tokenizer = load_tokenizer(checkpoint.place, checkpoint.shape.vocab)
    length = min(checkpoint.shape.context, LONGEST)
    rows = rows_of(checkpoint, tokenizer, read, length, -(-tokens // max(1, length - 1)))
    with step("measuring activations and quantising"):
        model = quantize_loaded(checkpoint, weights)
    done = [0]
    with step("measuring what the integers lose", lambda: f"{sum(done)} of {len(rows)} rows"):
        loss = measure_loss(checkpoint, model, rows, forward_rows, done.append)
    console.print(_table(shape_text(model.shape), str(weights), loss))
    for warning in loss.warnings:
        console.print(f"warning: {name}: {warning}", markup=False, highlight=False, soft_wrap=True)
    check_loss(name, loss)


def text_bytes(path: Path) -> npt.NDArray[np.uint8]:
    """Return the bytes of a text. Raises FileError."""
    return np.frombuffer(files.read_bytes(path).removeprefix(codecs.BOM_UTF8), np.uint8)


def _table(shape: str, weights: str, loss: Loss) -> FitTable:
    table = pairs()
    table.add_row("model", shape)
    table.add_row("weights", weights)
    table.add_row("text", f"{loss.tokens:,} tokens, {loss.bytes:,} bytes")
    table.add_row("float32", f"{loss.float_bits:.4f} bits per byte")
    table.add_row("integers", f"{loss.integer_bits:.4f} bits per byte")
    table.add_row("loss", f"{loss.share:+.2%}")
    table.add_row("same top-1", f"{loss.agreement:.2%}")
    return table
