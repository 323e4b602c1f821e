# SPDX-License-Identifier: Apache-2.0
"""The checkpoints that ship: their cards, their scales, and what an integer model is worth.

`pytest -s tests/python/weights/test_weights_checkpoint.py` prints the quality figures.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from golden import decoder
from golden.contribution import check_block
from weights.calibrate import SCALES_FILE, check_owner, load_scales
from weights.card import card_text, read_record
from weights.checkpoint import Checkpoint
from weights.corpus import read_corpus, windows
from weights.figures import read_figures, read_text
from weights.importer import load_checkpoint, load_shape
from weights.model import QuantizedModel
from weights.quantize import quantize
from weights.recipe import RECIPES
from weights.reference import bits_per_byte, forward
from weights.sample import SAMPLE_TEXT

FOLDERS = {
    path.name: path
    for path in sorted((Path(__file__).parents[3] / "weights" / "checkpoints").iterdir())
}
FOLDER = FOLDERS["gpt2-tiny"]
EVERY = pytest.mark.parametrize("name", FOLDERS)
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


@pytest.fixture(scope="module")
def held_out() -> npt.NDArray[np.int64]:
    """Return (ROWS, 128) tokens that no training step saw."""
    return windows(read_corpus().held_out, 128, ROWS)


def test_architectures_that_ship() -> None:
    """Each is trained once."""
    families = [load_shape(folder).family for folder in FOLDERS.values()]
    assert sorted(families) == ["gpt2", "llama", "mistral", "qwen2"]


@EVERY
def test_dimensions(name: str) -> None:
    """The shapes that programs and benches are written for."""
    shape = load_checkpoint(FOLDERS[name]).shape
    assert name == f"{shape.family}-tiny"
    assert (shape.hidden, shape.layers, shape.heads, shape.head_dim) == (64, 4, 4, 16)
    assert (shape.vocab, shape.context) == (256, 128)
    assert (shape.kv_heads, shape.ffn) == ((4, 256) if shape.family == "gpt2" else (2, 128))
    assert shape.window == (32 if shape.family == "mistral" else 0)
    assert shape.tied == (shape.family in ("gpt2", "qwen2"))


@EVERY
def test_files(name: str) -> None:
    """Curve and scales lie beside the weights and belong to them; a model can be made of them."""
    folder = FOLDERS[name]
    assert (folder / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    checkpoint, scales = load_checkpoint(folder), load_scales(folder / SCALES_FILE)
    check_owner(checkpoint, scales, SCALES_FILE)
    assert scales.provenance.keys() >= {"text", "tokens", "command"}
    model = quantize(checkpoint, scales)
    assert (model.shape.family, model.shape.kv_heads) == (
        checkpoint.shape.family,
        checkpoint.shape.kv_heads,
    )


@EVERY
def test_card(name: str) -> None:
    """The card is what its record says, and says where the weights come from."""
    record = read_record(FOLDERS[name])
    card = (FOLDERS[name] / "README.md").read_text(encoding="utf-8")
    figures = read_figures()[name]
    assert card == card_text(name, record, figures)
    assert asdict(RECIPES[name.removesuffix("-tiny")]) == record.recipe
    for needed in (
        f"{figures.float_bits:.4f}",
        f"{figures.integer_bits:.4f}",
        f"{figures.agreement:.2%}",
        "The held-out text was not looked at" if record.validation_bytes else "slightly optimistic",
        f"CPython {record.python}",
        str(record.train_bytes),
        "PSF licence",
        "Apache-2.0",
        f"python -m weights.train --model {name.removesuffix('-tiny')}\n",
        "learning_curve.png",
    ):
        assert needed in card.replace("\n", " ") or needed in card


@EVERY
def test_published_figures(name: str) -> None:
    """They are of all windows of one text; a training judged by that text says the same."""
    record, figures, text = read_record(FOLDERS[name]), read_figures()[name], read_text()
    context = record.recipe["context"]
    assert figures.windows == text.bytes // context
    assert figures.tokens == figures.windows * (context - 1)
    assert 0 < figures.loss < MAX_LOSS
    assert MIN_AGREEMENT < figures.agreement < 1
    if record.judge == "held-out" and record.python == text.python:
        assert text.bytes == record.held_out_bytes
        assert figures.float_bits == pytest.approx(record.best_bits_per_byte, abs=1e-4)


def test_card_of_a_new_training() -> None:
    """One that was judged by validation text says so; its held-out figures come afterwards."""
    old = read_record(FOLDER)
    record = replace(old, validation_bytes=1234, validation_files=5)
    card = card_text("new", record, None).replace("\n", " ")
    assert "those were kept that predict the validation text best" in card
    assert "The held-out text was not looked at during the training." in card
    assert "| validation, by hash of the file's path | 5 | 1234 |" in card
    assert "not measured yet: `npu quality --publish`" in card
    assert "until the validation loss" in card


@EVERY
def test_learning_curve(name: str) -> None:
    """Training ended at the floor of the learning rate, not improving or at its last step."""
    record = read_record(FOLDERS[name])
    bits = [point.judged_bits for point in record.curve]
    assert record.best_bits_per_byte == min(bits)
    assert record.curve[-1].learning_rate == record.recipe["floor_rate"]
    before, last = bits[: -record.patience], bits[-record.patience :]
    cut = record.curve[-1].step == record.recipe["last_step"]
    assert cut or min(last) > min(before) - record.min_improvement


@EVERY
def test_float_model_predicts_text(name: str, held_out: npt.NDArray[np.int64]) -> None:
    """The weights are those of the card: its bits per byte, on some of the held-out text."""
    checkpoint, record = load_checkpoint(FOLDERS[name]), read_record(FOLDERS[name])
    bits = bits_per_byte(forward(checkpoint, held_out), held_out)
    assert bits == pytest.approx(record.best_bits_per_byte, rel=0.15)


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


def test_quality(
    checkpoint: Checkpoint, model: QuantizedModel, held_out: npt.NDArray[np.int64]
) -> None:
    """Bits per byte and top-1 agreement of the integer model against the float one."""
    floats, integers = forward(checkpoint, held_out), integer_logits(model, held_out)
    wanted = bits_per_byte(floats, held_out)
    given = bits_per_byte(integers * model.scales["logits"], held_out)
    agreement = float((floats.argmax(-1) == integers.argmax(-1)).mean())
    print(
        f"\nfloat {wanted:.4f}, integer {given:.4f} bits per byte ({given / wanted - 1:+.2%}), "
        f"top-1 agreement {agreement:.2%} over {held_out.size} positions"
    )
    assert wanted < 3.0
    assert given < wanted * (1 + MAX_LOSS)
    assert agreement > MIN_AGREEMENT
