# SPDX-License-Identifier: Apache-2.0
"""The float graph of encoders of pictures and sound against transformers, from folders of its own.

Needs torch (the optional group `oracles`): pytest tests/oracles.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoConfig,
    AutoModel,
    DeiTForImageClassification,
    ViTForImageClassification,
    WhisperForConditionalGeneration,
)

from npu.graph.evaluate import evaluate
from npu.graph.importers import read
from npu.graph.importers.checkpoint import LOGITS
from npu.graph.importers.signal_checkpoint import MELS, PIXELS, POOLED, ROWS
from weights.encoder_importer import load_any_encoder

TOLERANCE = 1e-5
PICTURES: tuple[dict[str, Any], ...] = (
    {"image_size": 40, "patch_size": 8, "hidden_size": 48, "num_attention_heads": 4},
    {"image_size": 21, "patch_size": 7, "hidden_size": 30, "num_attention_heads": 1,
     "num_channels": 1, "qkv_bias": False, "num_labels": 1},
    {"image_size": 30, "patch_size": 5, "hidden_size": 72, "num_attention_heads": 6,
     "hidden_act": "gelu_new", "layer_norm_eps": 1e-5, "num_labels": 11},
)  # fmt: skip
HEADED = {"vit": ViTForImageClassification, "deit": DeiTForImageClassification}
DEPTH = {"num_hidden_layers": 3, "intermediate_size": 100}
SOUNDS: tuple[dict[str, Any], ...] = (
    {"d_model": 48, "encoder_attention_heads": 4, "num_mel_bins": 20, "max_source_positions": 30},
    {"d_model": 40, "encoder_attention_heads": 1, "num_mel_bins": 7, "max_source_positions": 11},
    {"d_model": 72, "encoder_attention_heads": 6, "num_mel_bins": 80, "max_source_positions": 25,
     "activation_function": "relu", "scale_embedding": True},
)  # fmt: skip
DECODER = {
    **{"encoder_layers": 3, "encoder_ffn_dim": 100, "decoder_layers": 1, "decoder_ffn_dim": 16},
    **{"decoder_attention_heads": 1, "vocab_size": 60, "max_target_positions": 8},
    **dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id"), 0),
    "decoder_start_token_id": 1,
}


def written(model: Any, folder: Path, seed: int) -> None:  # noqa: ANN401
    """Draw all parameters wider than transformers does, norms, biases and positions too."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, one in model.named_parameters():
            spread = 0.2 if one.ndim == 1 else one[0].numel() ** -0.5
            one.normal_(float("norm" in name and name.endswith("weight")), spread)
    model.eval().save_pretrained(folder)


def close(found: np.ndarray, wanted: torch.Tensor) -> bool:
    """Say whether all elements are those of transformers, but for the largest's share."""
    numbers = wanted.numpy()
    error = np.abs(found - numbers).max() / np.abs(numbers).max()
    assert found.shape == numbers.shape
    assert error <= TOLERANCE, f"{error:.3g}"
    return True


def picture(shape: dict[str, Any], seed: int) -> np.ndarray:
    """Return a random picture."""
    size = (1, shape.get("num_channels", 3), shape["image_size"], shape["image_size"])
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


@pytest.mark.parametrize("family", ["vit", "deit"])
@pytest.mark.parametrize("shape", PICTURES, ids=["usual", "one head", "wide"])
def test_logits_are_those_of_transformers(
    family: str, shape: dict[str, Any], tmp_path: Path
) -> None:
    """Two labels are left out of config.json."""
    seed = 21 + PICTURES.index(shape)
    config = AutoConfig.for_model(family, **shape, **DEPTH)
    model: Any = HEADED[family](config)
    written(model, tmp_path, seed)
    pixels = picture(shape, seed)
    with torch.no_grad():
        wanted = model(pixel_values=torch.tensor(pixels)).logits
    assert close(evaluate(read(tmp_path), {PIXELS: pixels})[LOGITS], wanted)


@pytest.mark.parametrize("family", ["vit", "deit"])
@pytest.mark.parametrize("shape", PICTURES, ids=["usual", "one head", "wide"])
@pytest.mark.parametrize("pooled", [True, False])
def test_rows_and_pooler_are_those_of_transformers(
    family: str, shape: dict[str, Any], pooled: bool, tmp_path: Path
) -> None:
    """A folder says by its tensors whether there is a pooler."""
    seed = 31 + PICTURES.index(shape)
    config = AutoConfig.for_model(family, **shape, **DEPTH)
    model: Any = AutoModel.from_config(config, add_pooling_layer=pooled)
    written(model, tmp_path, seed)
    pixels = picture(shape, seed)
    with torch.no_grad():
        wanted = model(pixel_values=torch.tensor(pixels))
    found = evaluate(read(tmp_path), {PIXELS: pixels})
    assert close(found[ROWS], wanted.last_hidden_state)
    assert (POOLED in found) == pooled
    assert not pooled or close(found[POOLED], wanted.pooler_output)


@pytest.mark.parametrize("whole", [True, False], ids=["with head", "without"])
@pytest.mark.parametrize("shape", SOUNDS, ids=["usual", "one head", "wide"])
def test_rows_of_sound_are_those_of_transformers(
    shape: dict[str, Any], whole: bool, tmp_path: Path
) -> None:
    """The tensors of the decoder are left out."""
    seed = 41 + SOUNDS.index(shape)
    config = AutoConfig.for_model("whisper", **shape, **DECODER)
    model: Any = (WhisperForConditionalGeneration if whole else AutoModel.from_config)(config)
    written(model, tmp_path, seed)
    size = (1, shape["num_mel_bins"], 2 * shape["max_source_positions"])
    mels = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    with torch.no_grad():
        wanted = model.get_encoder()(torch.tensor(mels)).last_hidden_state
    assert close(evaluate(read(tmp_path), {MELS: mels})[ROWS], wanted)
    assert not any("decoder" in name for name in load_any_encoder(tmp_path).tensors)
