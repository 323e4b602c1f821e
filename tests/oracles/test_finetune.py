# SPDX-License-Identifier: Apache-2.0
"""A short fine-tuning: the weights lie on the grid, and the quantiser finds the same codes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from weights.corpus import read_corpus
from weights.equalize import equalize
from weights.finetune import logits_of, train
from weights.formats.recipe import parse_recipe
from weights.importer import load_checkpoint
from weights.quantize import quantize_checkpoint
from weights.recipe import FINETUNES
from weights.reference import forward
from weights.shipped import CHECKPOINTS


def test_forward() -> None:
    """The student's forward pass is that of the float reference."""
    model = equalize(load_checkpoint(CHECKPOINTS / "gpt2-tiny"))
    rows = np.arange(256).reshape(2, 128)
    tensors = {name: torch.from_numpy(value.copy()) for name, value in model.tensors.items()}
    shape = (model.shape.layers, model.shape.heads, model.shape.epsilon)
    ours = logits_of(shape, tensors, torch.from_numpy(rows)).numpy()
    np.testing.assert_allclose(ours, forward(model, rows), atol=2e-4, rtol=2e-4)


@pytest.mark.parametrize("name", FINETUNES)
def test_a_few_steps(name: str, tmp_path: Path) -> None:
    """What is written is on the grid of the format: narrow weights are those of int8, nearly."""
    recipe = replace(FINETUNES[name], steps=3, batch=2, warmup=1)
    record = train(recipe, read_corpus(), tmp_path)
    assert record.curve[-1].step == 3
    narrow = quantize_checkpoint(str(tmp_path), parse_recipe(recipe.weights))
    plain = quantize_checkpoint(str(tmp_path))
    for one, other in zip(narrow.blocks, plain.blocks, strict=True):
        for kind in ("qkv", "proj", "up", "down"):
            real = [
                layer.weight * (layer.mult / np.exp2(layer.shift.astype(float)))
                for layer in (getattr(one, kind), getattr(other, kind))
            ]
            error = np.abs(real[0] - real[1]).max(axis=0) / np.abs(real[1]).max(axis=0)
            assert np.median(error) < 0.02, kind  # a group's 8-bit scale may miss a little
