# SPDX-License-Identifier: Apache-2.0
"""The checkpoint that ships: its card, its scales, and what its integer model is worth.

`pytest -s tests/python/test_weights_checkpoint.py` prints the quality figures.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from golden import decoder
from golden.contribution import check_block
from weights.calibrate import SCALES_FILE, check_owner, load_scales
from weights.card import card_text, read_record
from weights.corpus import read_corpus, windows
from weights.importer import Checkpoint, load_checkpoint
from weights.model import QuantizedModel
from weights.quantize import quantize
from weights.reference import bits_per_byte, forward
from weights.sample import SAMPLE_TEXT

FOLDER = Path(__file__).parents[2] / "weights" / "checkpoints" / "gpt2-tiny"
ROWS = 40
"""Held-out windows of 128 bytes for the quality figures."""
MAX_LOSS = 0.01
MIN_AGREEMENT = 0.93


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    """Return the float model."""
    return load_checkpoint(FOLDER)


@pytest.fixture(scope="module")
def model(checkpoint: Checkpoint) -> QuantizedModel:
    """Return the integer model, from the scales that are committed."""
    return quantize(checkpoint, load_scales(FOLDER / SCALES_FILE))


def test_dimensions(checkpoint: Checkpoint) -> None:
    """The shape that programs and benches are written for."""
    shape = checkpoint.shape
    assert (shape.hidden, shape.layers, shape.heads, shape.ffn) == (64, 4, 4, 256)
    assert (shape.vocab, shape.context) == (256, 128)


def test_files(checkpoint: Checkpoint) -> None:
    """Curve and scales lie beside the weights and belong to them."""
    assert (FOLDER / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    scales = load_scales(FOLDER / SCALES_FILE)
    check_owner(checkpoint, scales, SCALES_FILE)
    assert scales.provenance.keys() >= {"text", "tokens", "command"}


def test_card() -> None:
    """The card is what its record says, and says where the weights come from."""
    record = read_record(FOLDER)
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert card == card_text(FOLDER.name, record)
    for needed in (
        f"{record.best_bits_per_byte:.4f}",
        f"CPython {record.python}",
        str(record.train_bytes),
        "PSF licence",
        "Apache-2.0",
        "python -m weights.train",
        "learning_curve.png",
    ):
        assert needed in card


def test_learning_curve() -> None:
    """Training ended at the floor of the learning rate, after evaluations without improvement."""
    record = read_record(FOLDER)
    bits = [point.held_out_bits for point in record.curve]
    assert record.best_bits_per_byte == min(bits)
    assert record.curve[-1].learning_rate == record.recipe["floor_rate"]
    before, last = bits[: -record.patience], bits[-record.patience :]
    assert min(last) > min(before) - record.min_improvement


@pytest.mark.parametrize("length", [1, 5, 16, 128])
def test_every_tensor_contributes(model: QuantizedModel, length: int) -> None:
    """On text, no tensor of any block is constant, saturated or without effect."""
    tokens = list(SAMPLE_TEXT[:length])
    for layer, x in enumerate(decoder.residuals(model, tokens)[:-1]):
        assert [str(found) for found in check_block(model, layer, x)] == []


def test_logits_do_not_saturate(model: QuantizedModel) -> None:
    """The common logit scale leaves headroom."""
    logits = decoder.forward(model, list(SAMPLE_TEXT[:128]))
    assert np.abs(logits.astype(np.int32)).max() < 32767
    assert np.unique(logits).size > 1000


def integer_logits(model: QuantizedModel, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int16]:
    """Return (R, T, V) int16 logits."""
    return np.stack([decoder.forward(model, row.tolist()) for row in rows])


def test_quality(checkpoint: Checkpoint, model: QuantizedModel) -> None:
    """Bits per byte and top-1 agreement of the integer model against the float one."""
    rows = windows(read_corpus().held_out, checkpoint.shape.context, ROWS)
    floats, integers = forward(checkpoint, rows), integer_logits(model, rows)
    wanted = bits_per_byte(floats, rows)
    given = bits_per_byte(integers * model.scales["logits"], rows)
    agreement = float((floats.argmax(-1) == integers.argmax(-1)).mean())
    print(
        f"\nfloat {wanted:.4f}, integer {given:.4f} bits per byte ({given / wanted - 1:+.2%}), "
        f"top-1 agreement {agreement:.2%} over {rows.size} positions"
    )
    assert wanted < 3.0
    assert given < wanted * (1 + MAX_LOSS)
    assert agreement > MIN_AGREEMENT
