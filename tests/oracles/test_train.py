# SPDX-License-Identifier: Apache-2.0
"""A short training: the validation text chooses the weights, the held-out text is not looked at."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from weights.card import read_record
from weights.corpus import Corpus, windows
from weights.importer import load_checkpoint
from weights.recipe import RECIPES, Recipe
from weights.reference import bits_per_byte, forward
from weights.train import train

RECIPE = replace(
    RECIPES["llama"], hidden=16, layers=1, heads=2, kv_heads=1, ffn=16, context=16, batch=4,
    steps=12, last_step=24, warmup=2, evaluate_every=3, peak_rate=0.3, floor_rate=0.3,
)  # fmt: skip
"""So steep that the loss goes up and down."""


def corpus(held_out: int) -> Corpus:
    """Return text of few letters, with held-out text that is drawn from a seed of its own."""
    rng = np.random.default_rng(1)
    train, validation = (rng.integers(97, 101, size).astype(np.uint8) for size in (4000, 400))
    other = np.random.default_rng(held_out).integers(0, 256, 320).astype(np.uint8)
    whole = np.concatenate([train, validation])
    return Corpus(train, validation, other, whole, {"train": 3, "validation": 2, "held_out": 1})


def trained(folder: Path, recipe: Recipe, held_out: int) -> bytes:
    """Train and return the weights that were kept."""
    torch.use_deterministic_algorithms(True)
    train(recipe, corpus(held_out), folder)
    return (folder / "model.safetensors").read_bytes()


def test_the_validation_text_chooses(tmp_path: Path) -> None:
    """The kept weights are the best of the curve by that text."""
    trained(tmp_path, RECIPE, 5)
    record = read_record(tmp_path)
    bits = [point.judged_bits for point in record.curve]
    assert min(bits) < bits[-1]
    rows = windows(corpus(5).validation, RECIPE.context)
    measured = bits_per_byte(forward(load_checkpoint(tmp_path), rows), rows)
    assert measured == pytest.approx(min(bits), abs=1e-4)
    assert record.best_bits_per_byte == min(bits)
    assert record.judge == "validation"
    parts = (record.train_bytes, record.validation_bytes, record.held_out_bytes)
    assert parts == (4000, 400, 320)


def test_the_held_out_text_is_not_looked_at(tmp_path: Path) -> None:
    """Another held-out text gives the same weights and the same curve."""
    first, second = tmp_path / "first", tmp_path / "second"
    assert trained(first, RECIPE, 5) == trained(second, RECIPE, 6)
    assert read_record(first).curve == read_record(second).curve
