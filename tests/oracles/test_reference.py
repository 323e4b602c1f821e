# SPDX-License-Identifier: Apache-2.0
"""The float forward pass against transformers, and the folders that either writes.

Needs torch (the optional group `oracles`): pytest tests/oracles.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoConfig, AutoModelForCausalLM, Gemma3ForConditionalGeneration

from tb.models.decoder_configs import random_config
from weights.architectures import ARCHITECTURES
from weights.importer import left_out, load_checkpoint, parse_config
from weights.reference import bits_per_byte, forward
from weights.synthetic import random_checkpoint, shape_of, write_checkpoint

TOLERANCE = 1e-5
"""Of the largest logit."""
CHECKPOINTS = Path(__file__).parents[2] / "weights" / "checkpoints"
GPT2: dict[str, Any] = {
    "n_embd": 48,
    "n_layer": 2,
    "n_head": 3,
    "vocab_size": 301,
    "n_positions": 40,
    "n_inner": 100,
}
COMMON: dict[str, Any] = {
    "hidden_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 100,
    "vocab_size": 301,
    "max_position_embeddings": 40,
    "rms_norm_eps": 1e-5,
    "bos_token_id": 0,
    "eos_token_id": 0,
}
CASES: list[tuple[str, dict[str, Any]]] = [
    *(
        ("gpt2", GPT2 | {"activation_function": activation, "tie_word_embeddings": tied})
        for activation in ("gelu", "gelu_new", "gelu_pytorch_tanh")
        for tied in (True, False)
    ),
    ("gpt2", {"n_embd": 64, "n_layer": 4, "n_head": 4, "vocab_size": 256, "n_positions": 128}),
    *(("llama", COMMON | {"num_key_value_heads": heads}) for heads in (1, 2, 4)),
    ("llama", COMMON | {"head_dim": 20, "tie_word_embeddings": True}),
    ("llama", COMMON | {"attention_bias": True, "mlp_bias": True}),
    ("llama", COMMON | {"rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}}),
    ("llama", COMMON | {"rope_theta": 700.0}),
    *(("mistral", COMMON | {"sliding_window": window}) for window in (None, 1, 7, 39, 40, 4096)),
    ("mistral", COMMON | {"head_dim": 20, "sliding_window": 9, "num_key_value_heads": 1}),
    ("qwen2", COMMON),
    ("qwen3", COMMON),
    ("qwen3", COMMON | {"head_dim": 20, "attention_bias": True, "tie_word_embeddings": True}),
    ("qwen2", COMMON | {"tie_word_embeddings": True, "num_key_value_heads": 1}),
    ("qwen2", COMMON | {"use_sliding_window": False, "sliding_window": 7}),
    (
        "qwen2",
        COMMON | {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 0},
    ),
    (
        "qwen2",
        COMMON | {"use_sliding_window": True, "sliding_window": 7, "max_window_layers": 3},
    ),
]
ORIGINAL = {"original_max_position_embeddings": 10}
SCALINGS: dict[str, dict[str, Any]] = {
    "linear": {"rope_type": "linear", "factor": 3.0},
    "dynamic": {"rope_type": "dynamic", "factor": 3.0},
    "llama3": ORIGINAL
    | {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "yarn": ORIGINAL | {"rope_type": "yarn", "factor": 4.0},
    "yarn of all options": ORIGINAL
    | {"rope_type": "yarn", "factor": 4.0, "beta_fast": 2.0, "beta_slow": 0.5, "truncate": False}
    | {"mscale": 0.7, "mscale_all_dim": 1.3},
    "yarn of a given factor": ORIGINAL
    | {"rope_type": "yarn", "factor": 4.0, "attention_factor": 1.7},
    "longrope": ORIGINAL
    | {"rope_type": "longrope", "factor": 4.0}
    | {"short_factor": [9.0] * 6, "long_factor": [1.0, 1.2, 1.7, 2.5, 3.0, 4.5]},
    "longrope of a short context": {"rope_type": "longrope", "attention_factor": 1.3}
    | {"original_max_position_embeddings": 40}
    | {"long_factor": [9.0] * 6, "short_factor": [1.0, 1.2, 1.7, 2.5, 3.0, 4.5]},
}
"""Of 40 positions and 6 pairs; all positions are compared."""
CASES += [
    ("llama", COMMON | {"rope_parameters": {"rope_theta": 90.0, **scaling}})
    for scaling in SCALINGS.values()
] + [
    ("qwen3", COMMON | {"head_dim": 12, "rope_parameters": {"rope_theta": 90.0, **scaling}})
    for scaling in (SCALINGS["yarn"], SCALINGS["longrope"])
]
NO_GROUPS = ("gpt2", "gpt_neo", "gpt_neox", "opt")
"""Every query head has a K/V head."""
WIDE = ("falcon", "stablelm")
"""Heads are as wide as all of a row together."""
LLAMA3 = {"rope_theta": 90.0, **SCALINGS["llama3"]}
LINEAR = {"rope_theta": 90.0, **SCALINGS["linear"]}
BY_LAYER = ["sliding_attention", "full_attention", "sliding_attention"]
CASES += [
    ("qwen2", COMMON | {"use_sliding_window": True, "sliding_window": 7, "layer_types": BY_LAYER}),
    (
        "qwen3",
        COMMON | {"use_sliding_window": True, "sliding_window": 9, "max_window_layers": 1},
    ),
    ("smollm3", COMMON | {"no_rope_layer_interval": 2, "pad_token_id": 0}),
    (
        "smollm3",
        COMMON
        | {"no_rope_layers": [0, 1, 1], "use_sliding_window": True, "sliding_window": 5}
        | {"pad_token_id": 0, "attention_bias": True, "mlp_bias": True, "rope_parameters": LLAMA3},
    ),
    ("smollm3", COMMON | {"no_rope_layers": [1, 1, 1, 0], "pad_token_id": 0}),
    ("gemma", COMMON | {"head_dim": 20}),
    ("gemma", COMMON | {"head_dim": 8, "attention_bias": True, "num_key_value_heads": 1}),
    ("gemma", COMMON | {"head_dim": 12, "hidden_act": "gelu", "tie_word_embeddings": False}),
    ("gemma2", COMMON | {"head_dim": 20, "sliding_window": 7}),
    (
        "gemma2",
        COMMON
        | {"head_dim": 12, "query_pre_attn_scalar": 17, "attn_logit_softcapping": 1.5}
        | {"final_logit_softcapping": 2.0, "sliding_window": 11, "layer_types": BY_LAYER},
    ),
    (
        "gemma2",
        COMMON
        | {"head_dim": 8, "attn_logit_softcapping": None, "final_logit_softcapping": None}
        | {"attention_bias": True, "tie_word_embeddings": False, "sliding_window": 100},
    ),
    ("gemma3_text", COMMON | {"head_dim": 20, "sliding_window": 7, "sliding_window_pattern": 2}),
    (
        "gemma3_text",
        COMMON
        | {"head_dim": 8, "query_pre_attn_scalar": 17, "sliding_window": 100, "pad_token_id": 0}
        | {"layer_types": BY_LAYER, "attention_bias": True}
        | {"rope_parameters": {"full_attention": LINEAR, "sliding_attention": {"rope_theta": 50}}},
    ),
    (
        "gemma3_text",
        COMMON
        | {"head_dim": 12, "tie_word_embeddings": False, "sliding_window": 9}
        | {"layer_types": BY_LAYER, "rope_theta": 900.0, "rope_local_base_freq": 70.0}
        | {"rope_scaling": SCALINGS["linear"]},
    ),
]
LONGROPE = {"type": "longrope", "short_factor": [9.0] * 4, "long_factor": [1.0, 1.2, 2.5, 4.0]}
PHI3 = COMMON | {"pad_token_id": 0}
LAYERNORM = {key: value for key, value in COMMON.items() if key != "rms_norm_eps"}
NEOX = {key: value for key, value in LAYERNORM.items() if key != "num_key_value_heads"}
NEO: dict[str, Any] = {
    "hidden_size": 48,
    "num_layers": 3,
    "num_heads": 4,
    "vocab_size": 301,
    "max_position_embeddings": 40,
    "attention_types": [[["global", "local"], 1], [["local"], 1]],
    "window_size": 7,
}
OPT = LAYERNORM | {"ffn_dim": 100, "word_embed_proj_dim": 48}
MULTIPLIED = {"embedding_multiplier": 12, "attention_multiplier": 0.13, "residual_multiplier": 0.3}
CASES += [
    ("phi3", PHI3),
    ("phi3", PHI3 | {"sliding_window": 7, "num_key_value_heads": 1, "tie_word_embeddings": True}),
    (
        "phi3",  # as Phi-4-mini: 8 of 12 lanes, long factors, a factor of q and k in those lanes
        PHI3
        | {"partial_rotary_factor": 0.67, "rope_scaling": LONGROPE}
        | {"original_max_position_embeddings": 10},
    ),
    (
        "phi3",
        PHI3
        | {"partial_rotary_factor": 0.67, "original_max_position_embeddings": 50}
        | {"rope_scaling": LONGROPE | {"short_factor": [1.0, 1.1, 1.2, 1.3]}},
    ),
    ("phi", LAYERNORM),
    ("phi", LAYERNORM | {"partial_rotary_factor": 0.34, "num_key_value_heads": 4}),
    ("phi", LAYERNORM | {"partial_rotary_factor": 1.0, "hidden_act": "gelu"}),
    ("stablelm", LAYERNORM | {"partial_rotary_factor": 0.5}),
    ("stablelm", LAYERNORM | {"hidden_size": 64, "use_qkv_bias": True, "num_key_value_heads": 4}),
    (
        "stablelm",
        LAYERNORM
        | {"hidden_size": 64, "use_parallel_residual": True, "tie_word_embeddings": True}
        | {"rope_scaling": SCALINGS["linear"]},
    ),
    ("gpt_neox", NEOX | {"hidden_size": 64}),
    ("gpt_neox", NEOX | {"rotary_pct": 0.5, "attention_bias": False, "hidden_act": "relu2"}),
    (
        "gpt_neox",
        NEOX
        | {"rotary_pct": 1.0, "rotary_emb_base": 90, "use_parallel_residual": False}
        | {"tie_word_embeddings": True, "hidden_act": "quick_gelu"},
    ),
    ("falcon", LAYERNORM | {"ffn_hidden_size": 100}),
    ("falcon", LAYERNORM | {"parallel_attn": False, "multi_query": False, "bias": True}),
    (
        "falcon",
        LAYERNORM
        | {"new_decoder_architecture": True, "num_kv_heads": 2, "tie_word_embeddings": False},
    ),
    (
        "falcon",
        LAYERNORM
        | {"new_decoder_architecture": True, "num_kv_heads": 2, "num_ln_in_parallel_attn": 1},
    ),
    ("olmo2", COMMON),
    ("olmo2", COMMON | {"attention_bias": True, "tie_word_embeddings": True}),
    ("olmo2", COMMON | {"num_key_value_heads": 4, "rope_scaling": SCALINGS["yarn"]}),
    ("granite", COMMON),
    ("granite", COMMON | MULTIPLIED | {"logits_scaling": 8.0, "tie_word_embeddings": True}),
    ("granite", COMMON | MULTIPLIED | {"logits_scaling": 3, "attention_bias": True}),
    ("granite", COMMON | MULTIPLIED | {"mlp_bias": True, "tie_word_embeddings": True}),
    ("starcoder2", LAYERNORM),
    ("starcoder2", LAYERNORM | {"use_bias": False, "tie_word_embeddings": False}),
    ("starcoder2", LAYERNORM | {"sliding_window": 7, "hidden_act": "sigmoid"}),
    ("opt", OPT),
    ("opt", OPT | {"enable_bias": False, "tie_word_embeddings": False}),
    ("opt", OPT | {"activation_function": "tanh", "num_attention_heads": 3}),
    ("gpt_neo", NEO),
    ("gpt_neo", NEO | {"attention_types": [[["global"], 3]], "tie_word_embeddings": False}),
    ("gpt_neo", NEO | {"num_heads": 3, "intermediate_size": 50, "window_size": 100}),
]
FIRST = dict(reversed(CASES))
"""The plainest case of each architecture."""


def compare(folder: Path, seed: int) -> None:
    """Compare the logits of both implementations on random tokens."""
    oracle = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    checkpoint = load_checkpoint(folder)
    shape = checkpoint.shape
    tokens = np.random.default_rng(seed).integers(0, shape.vocab, (3, shape.context))
    with torch.inference_mode():
        wanted = oracle(torch.from_numpy(tokens)).logits.numpy()
        loss = float(oracle(torch.from_numpy(tokens), labels=torch.from_numpy(tokens)).loss)
    given = forward(checkpoint, tokens)
    assert given.shape == wanted.shape
    assert np.abs(given).max() > 0.5  # the tolerance is much less than the logits
    assert np.abs(given - wanted).max() <= TOLERANCE * np.abs(wanted).max()
    assert bits_per_byte(given, tokens) == pytest.approx(loss / np.log(2.0), rel=TOLERANCE)


def save_random(
    family: str, options: dict[str, Any], folder: Path, *, max_shard_size: str = "5GB"
) -> None:
    """Write a model of transformers whose norms and biases are not their initial values."""
    torch.manual_seed(7)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(family, **options))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(folder, max_shard_size=max_shard_size)


@pytest.mark.parametrize(("family", "options"), CASES)
def test_folders_of_transformers(tmp_path: Path, family: str, options: dict[str, Any]) -> None:
    """Each architecture with each option that changes the computation."""
    save_random(family, options, tmp_path)
    compare(tmp_path, 1)


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_defaults(family: str) -> None:
    """A field that config.json leaves out has the value that transformers writes for it."""
    written = AutoConfig.for_model(family).to_dict()
    wanted = parse_config(written, "test")[1]
    assert parse_config({"model_type": family}, "test")[1] == wanted


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_shards_written_by_transformers(tmp_path: Path, family: str) -> None:
    """A checkpoint that transformers split over several files."""
    save_random(family, FIRST[family], tmp_path, max_shard_size="60KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    compare(tmp_path, 2)


@pytest.mark.parametrize("family", ARCHITECTURES)
@pytest.mark.parametrize("tied", [True, False])
def test_folders_of_ours(tmp_path: Path, family: str, tied: bool) -> None:
    """A random checkpoint that is written here opens in transformers, and is the same model."""
    grouped: dict[str, Any] = (
        {}
        if family in NO_GROUPS
        else {"kv_heads": 2} | ({} if family in WIDE else {"head_dim": 12})
    )
    window = 5 if family in ("mistral", "qwen2") else 0
    shape = shape_of(family, layers=7, window=window, tied=tied, **grouped)
    write_checkpoint(random_checkpoint(shape, 3), tmp_path)
    compare(tmp_path, 3)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("family", ARCHITECTURES)
def test_random_folders(tmp_path: Path, family: str, seed: int) -> None:
    """What the RTL generates from, with options drawn as an architecture has them."""
    config = random_config(family, np.random.default_rng(seed))
    _, shape = parse_config(config, family)
    write_checkpoint(random_checkpoint(shape, seed), tmp_path, config=config)
    compare(tmp_path, seed)


VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 8,
    "patch_size": 4,
}


def test_text_of_a_model_of_several_parts(tmp_path: Path) -> None:
    """Gemma 3 with pictures: its part for text, whose configuration lies within the other."""
    text = COMMON | {"head_dim": 20, "sliding_window": 7, "sliding_window_pattern": 2}
    config = AutoConfig.for_model(
        "gemma3", text_config=text, vision_config=VISION, mm_tokens_per_image=4
    )
    torch.manual_seed(7)
    model = Gemma3ForConditionalGeneration(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    model.save_pretrained(tmp_path)
    written = json.loads((tmp_path / "config.json").read_text())
    assert (written["model_type"], written["architectures"]) == (
        "gemma3",
        ["Gemma3ForConditionalGeneration"],
    )
    assert set(left_out(tmp_path)) == {"multi_modal_projector", "vision_tower"}
    checkpoint = load_checkpoint(tmp_path)
    tokens = np.random.default_rng(6).integers(0, checkpoint.shape.vocab, (3, 40))
    with torch.inference_mode():
        wanted = model(torch.from_numpy(tokens)).logits.numpy()
    given = forward(checkpoint, tokens)
    assert np.abs(given).max() > 0.5
    assert np.abs(given - wanted).max() <= TOLERANCE * np.abs(wanted).max()


def test_config_of_transformers_4(tmp_path: Path) -> None:
    """Earlier versions wrote rope_theta and rope_scaling instead of rope_parameters."""
    save_random("llama", COMMON | {"rope_theta": 300.0}, tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    theta = config.pop("rope_parameters")["rope_theta"]
    path.write_text(json.dumps(config | {"rope_theta": theta, "rope_scaling": None}))
    assert load_checkpoint(tmp_path).shape.rope_theta == 300.0
    compare(tmp_path, 4)


@pytest.mark.parametrize("folder", sorted(CHECKPOINTS.iterdir()), ids=lambda path: path.name)
def test_shipped_checkpoint(folder: Path) -> None:
    """Every trained checkpoint opens in transformers and gives the same logits."""
    compare(folder, 5)
