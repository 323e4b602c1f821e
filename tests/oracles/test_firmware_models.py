# SPDX-License-Identifier: Apache-2.0
"""The transformer of the firmware against PyTorch: float64 formulas, FP32 reference, training."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from golden.recipes import bytelm_fp32
from weights.corpus import read_corpus, windows
from weights.firmware import bytelm_train
from weights.firmware.bytelm import load_bytelm, program_form
from weights.firmware.bytelm_float import bits_per_byte, forward
from weights.firmware.models import ByteLmShape

HELD_OUT = windows(read_corpus().held_out, 32, 40)


def test_forward() -> None:
    """Logits of the shipped model in torch's float64; the FP32 reference is near."""
    model = load_bytelm()
    parameters = {n: torch.from_numpy(t.astype(np.float64)) for n, t in model.tensors.items()}
    logits, _ = bytelm_train.logits_of(model.shape, parameters, torch.from_numpy(HELD_OUT))
    expected = logits.numpy()
    assert np.abs(forward(model, HELD_OUT) - expected).max() < 1e-9
    fp32 = bytelm_fp32.forward(program_form(model), HELD_OUT)
    assert np.abs(fp32 - expected).max() < 1e-4
    assert (fp32.argmax(axis=-1) == expected.argmax(axis=-1)).mean() > 0.999


def test_loss() -> None:
    """Bits per byte are torch's cross entropy."""
    model = load_bytelm()
    parameters = {name: torch.from_numpy(tensor) for name, tensor in model.tensors.items()}
    bits = bytelm_train.evaluate(ByteLmShape(), parameters, HELD_OUT)
    assert abs(bits - bits_per_byte(forward(model, HELD_OUT), HELD_OUT)) < 1e-5


def test_training_is_repeatable(tmp_path: Path) -> None:
    """Equal seeds give equal files; a few steps already predict better than nothing."""
    recipe = replace(bytelm_train.RECIPE, steps=6, warmup=2, batch=8, evaluate_every=3)
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
        bytelm_train.train(recipe, folder)
    first, second = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert first == second
    model = load_bytelm(folders[0])
    assert bits_per_byte(forward(model, HELD_OUT), HELD_OUT) < 8.0
