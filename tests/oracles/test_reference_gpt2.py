# SPDX-License-Identifier: Apache-2.0
"""The float forward pass against transformers' GPT2LMHeadModel, and the checkpoint layout.

Needs torch (the optional group `oracles`): pytest tests/oracles.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from weights.importer import load_checkpoint
from weights.reference import bits_per_byte, forward

TOLERANCE = 1e-4
SHIPPED = Path(__file__).parents[2] / "weights" / "checkpoints" / "gpt2-tiny"
SHAPES: list[dict[str, Any]] = [
    {"n_embd": 64, "n_layer": 4, "n_head": 4, "vocab_size": 256, "n_positions": 128},
    {"n_embd": 48, "n_layer": 2, "n_head": 3, "vocab_size": 301, "n_positions": 40, "n_inner": 100},
]


def compare(folder: Path, seed: int) -> None:
    """Compare the logits of both implementations on random tokens."""
    oracle = GPT2LMHeadModel.from_pretrained(folder)  # in evaluation mode
    checkpoint = load_checkpoint(folder)
    shape = checkpoint.shape
    tokens = np.random.default_rng(seed).integers(0, shape.vocab, (3, shape.context))
    with torch.inference_mode():
        wanted = oracle(torch.from_numpy(tokens)).logits.numpy()
        loss = float(oracle(torch.from_numpy(tokens), labels=torch.from_numpy(tokens)).loss)
    given = forward(checkpoint, tokens)
    assert given.shape == wanted.shape
    np.testing.assert_allclose(given, wanted, atol=TOLERANCE, rtol=TOLERANCE)
    assert bits_per_byte(given, tokens) == pytest.approx(loss / np.log(2.0), rel=TOLERANCE)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("activation", ["gelu", "gelu_new", "gelu_pytorch_tanh"])
@pytest.mark.parametrize("tied", [True, False])
def test_random_models(tmp_path: Path, shape: dict[str, Any], activation: str, tied: bool) -> None:
    """Every activation, tied or not, with norms and biases that are not their initial values."""
    torch.manual_seed(7)
    config = GPT2Config(**shape, activation_function=activation, tie_word_embeddings=tied)
    model = GPT2LMHeadModel(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path)
    compare(tmp_path, 1)


def test_shards_written_by_transformers(tmp_path: Path) -> None:
    """A checkpoint that transformers split over several files."""
    torch.manual_seed(8)
    GPT2LMHeadModel(GPT2Config(**SHAPES[0])).save_pretrained(tmp_path, max_shard_size="300KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    compare(tmp_path, 2)


def test_shipped_checkpoint() -> None:
    """The trained checkpoint opens in transformers and gives the same logits."""
    compare(SHIPPED, 3)
