# SPDX-License-Identifier: Apache-2.0
"""Checkpoints and activation scales that are refused, and models that do not fit the chip.

Every message names the source, the file, entry or tensor, what was given and what is allowed. A
refused checkpoint leaves its folder as it was, and a good one is read after every bad one.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from safetensors.numpy import load_file, save_file

from npu.compiler import CompileError, compile_block
from spec.isa.operands import Limits
from tests.python.golden.golden_support import random_model
from weights import calibrate as calibration
from weights.architecture import NEUTRAL
from weights.architectures import ARCHITECTURES
from weights.calibrate import (
    SCALES_FILE,
    ActivationScales,
    ScalesError,
    cache_path,
    calibrate,
    load_scales,
    save_scales,
    scales_for,
)
from weights.checkpoint import CheckpointError
from weights.corpus import Corpus
from weights.importer import load_checkpoint, parse_config
from weights.quantize import quantize, quantize_checkpoint
from weights.synthetic import (
    config_of,
    random_checkpoint,
    random_tokens,
    shape_of,
    write_checkpoint,
)

SHAPE = shape_of(
    "gpt2", hidden=8, layers=1, heads=2, ffn=16, vocab=20, context=4, activation="gelu"
)
CHECKPOINT = random_checkpoint(SHAPE, 1)
SCALES = calibrate(CHECKPOINT, random_tokens(SHAPE, 4, 2), {"text": "noise"})
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
KNOWN = re.escape(str([*ARCHITECTURES, "gemma3"]))
Array = npt.NDArray[Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a small checkpoint and its scales in it."""
    write_checkpoint(CHECKPOINT, tmp_path / "model")
    save_scales(SCALES, tmp_path / "model" / SCALES_FILE)
    return tmp_path / "model"


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file below a folder."""
    return {str(p): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def refused(folder: Path, message: str) -> None:
    """Check that loading and quantising refuse a folder by name and leave it as it is."""
    before = contents(folder.parent)
    for use in (load_checkpoint, quantize_checkpoint):
        with pytest.raises(CheckpointError, match=message) as caught:
            use(str(folder))
        text = str(caught.value)
        assert str(folder) in text and "\n" not in text
    assert contents(folder.parent) == before
    write_checkpoint(CHECKPOINT, folder.parent / "good")
    assert load_checkpoint(folder.parent / "good").shape == SHAPE


def change_config(folder: Path, **changes: object) -> None:
    """Change entries of config.json."""
    config = json.loads((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(json.dumps(config | changes))


def change_tensor(folder: Path, name: str, value: Array | None) -> None:
    """Replace a stored tensor, or remove it."""
    tensors = load_file(folder / WEIGHTS)
    tensors.pop(name, None)
    if value is not None:
        tensors[name] = value
    save_file(tensors, folder / WEIGHTS)


# -----------------------------------------------------------------------------------------------
# Folders and config.json
# -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("source", ["/nowhere/at/all", "../nowhere", "a/b/c", "", "two words"])
def test_no_folder_and_no_hub_id(source: str) -> None:
    """A name that is no folder cannot be a hub id either."""
    if source == "":
        source = "/"  # Path("") is the current folder, which is no checkpoint
        with pytest.raises(CheckpointError, match=r"/: config.json is missing in /"):
            load_checkpoint(source)
        return
    with pytest.raises(CheckpointError, match=rf"given '{source}', which is no folder; allowed is"):
        load_checkpoint(source)


def test_a_file_is_no_folder(folder: Path) -> None:
    """The weights themselves, or the config, instead of the folder with both."""
    for name in (WEIGHTS, CONFIG):
        with pytest.raises(CheckpointError, match=r"which is a file; allowed is the folder with"):
            load_checkpoint(folder / name)


def test_incomplete_folders(tmp_path: Path, folder: Path) -> None:
    """A folder needs a config and weights."""
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"config.json is missing in .*empty")
    (folder / WEIGHTS).unlink()
    refused(folder, r"no weights in .*; allowed is model.safetensors, or model.safetensors.index")
    (folder / WEIGHTS).mkdir()
    refused(folder, r"no weights in .*; allowed is model.safetensors")
    (folder / CONFIG).unlink()
    refused(folder, r"config.json is missing in")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", r"config.json is not JSON: Expecting value"),
        (b"{", r"config.json is not JSON"),
        (b"\xff\xfe{}", r"config.json is not JSON"),
        (b"[" * 100_000, r"config.json is not JSON"),
        (b"[]", r"config.json: given list, allowed map"),
        (b"3", r"config.json: given int, allowed map"),
        (
            b"{}",
            rf"config.json model_type: given None, allowed {KNOWN}",
        ),
    ],
)
def test_config_that_is_none(folder: Path, text: bytes, message: str) -> None:
    """Text that is no JSON or no map."""
    (folder / CONFIG).write_bytes(text)
    refused(folder, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model_type": "mamba"},
            rf"model_type: given 'mamba', allowed {KNOWN}",
        ),
        ({"model_type": None}, r"model_type: given None"),
        (
            {"model_type": "gemma3"},
            r"text_config: given None, allowed a map, the part for text of a gemma3",
        ),
        (
            {"model_type": "gemma3", "architectures": None, "text_config": {"head_dim": 7}},
            r"text_config\.head_dim: given 7, allowed an even number",
        ),
        ({"model_type": ["gpt2"]}, r"model_type: given \['gpt2'\], allowed"),
        ({"architectures": ["GPT2ForSequenceClassification"]}, r"architectures: given \['GPT2For"),
        ({"architectures": ["GPT2Model", 5]}, r"architectures: given \['GPT2Model', 5\], allowed"),
        ({"architectures": "GPT2Model"}, r"architectures: given 'GPT2Model', allowed \['GPT2LM"),
        ({"architectures": 5}, r"architectures: given 5, allowed"),
        ({"activation_function": "mish"}, r"activation_function: given 'mish', allowed \['gelu'"),
        ({"activation_function": None}, r"activation_function: given None, allowed"),
        ({"scale_attn_weights": False}, r"scale_attn_weights: given False, allowed True"),
        ({"scale_attn_weights": "no"}, r"scale_attn_weights: given 'no', allowed True"),
        (
            {"scale_attn_by_inverse_layer_idx": True},
            r"scale_attn_by_inverse_layer_idx: given True, allowed False",
        ),
        ({"add_cross_attention": True}, r"add_cross_attention: given True, allowed False"),
        ({"tie_word_embeddings": "no"}, r"tie_word_embeddings: given 'no', allowed True or False"),
        ({"tie_word_embeddings": None}, r"tie_word_embeddings: given None, allowed True or False"),
        ({"n_head": 3}, r"n_embd: given 8, allowed a multiple of n_head = 3"),
        ({"n_head": 0}, r"n_head: given 0, allowed int >= 1"),
        ({"n_layer": 0}, r"n_layer: given 0, allowed int >= 1"),
        ({"n_layer": -1}, r"n_layer: given -1, allowed int >= 1"),
        ({"n_embd": "8"}, r"n_embd: given '8', allowed int >= 1"),
        ({"n_embd": 8.0}, r"n_embd: given 8.0, allowed int >= 1"),
        ({"n_embd": None}, r"n_embd: given None, allowed int >= 1"),
        ({"n_embd": True}, r"n_embd: given True, allowed int >= 1"),
        ({"n_embd": 10**30}, r"n_embd: given 10{30}, allowed int >= 1 and <= 16777216"),
        ({"n_inner": -4}, r"n_inner: given -4, allowed int >= 1"),
        ({"vocab_size": 0}, r"vocab_size: given 0, allowed int >= 1"),
        ({"n_positions": [4]}, r"n_positions: given \[4\], allowed int >= 1"),
        ({"layer_norm_epsilon": 0}, r"layer_norm_epsilon: given 0, allowed a number between"),
        ({"layer_norm_epsilon": math.nan}, r"layer_norm_epsilon: given nan, allowed a number"),
        ({"layer_norm_epsilon": "1e-5"}, r"layer_norm_epsilon: given '1e-5', allowed a number"),
    ],
)
def test_config_that_is_refused(folder: Path, changes: dict[str, object], message: str) -> None:
    """Unknown architectures and values that make no network."""
    change_config(folder, **changes)
    refused(folder, rf"config\.json {message}")


ROPE = {"rope_theta": 10000.0, "rope_type": "default"}
LAYER_TYPES = {"sliding": ["sliding_attention"], "full": ["full_attention"]}


@pytest.mark.parametrize("family", ["llama", "mistral", "qwen2"])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"architectures": ["LlamaForTokenClassification"]},
            r"architectures: given \['LlamaForTok",
        ),
        ({"hidden_act": "mish"}, r"hidden_act: given 'mish', allowed \['gelu', 'gelu_python'"),
        ({"hidden_act": None}, r"hidden_act: given None, allowed \['gelu', 'gelu_python'"),
        (
            {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}},
            r"rope_scaling.low_freq_factor: given None, allowed a number above 0",
        ),
        (
            {"rope_scaling": {"type": "linear", "factor": 2.0, "a\n\x1b[31m": 3}},
            r"rope_scaling.a\\n\\x1b\[31m: given 3, allowed no options but \['factor', ",
        ),
        (
            {"rope_scaling": {"type": "linear", "factor": 2.0}}
            | {"rope_parameters": ROPE | {"rope_type": "linear", "factor": 3.0}},
            r"rope_scaling: given .*, allowed the same as in rope_parameters, or one of both alone",
        ),
        (
            {"rope_parameters": ROPE | {"rope_type": "proportional"}},
            r"rope_parameters.rope_type: given 'proportional', allowed 'default' or 'linear' or",
        ),
        (
            {"rope_parameters": ROPE | {"partial_rotary_factor": 0.5}},
            r"rope_parameters.partial_rotary_factor: given 0.5, allowed 1",
        ),
        (
            {"rope_parameters": ROPE | {"factor": 4.0}},
            r"rope_parameters.factor: given 4.0, allowed 1",
        ),
        (
            {"rope_parameters": {"full_attention": ROPE}},
            r"rope_parameters.full_attention: given \{.*\}, allowed no options but",
        ),
        ({"rope_parameters": 5}, r"rope_parameters: given 5, allowed null or a map"),
        (
            {"rope_parameters": ROPE | {"rope_theta": "10000"}},
            r"rope_parameters.rope_theta: given '10000', allowed a number above 1",
        ),
        (
            {"rope_parameters": ROPE | {"rope_theta": math.nan}},
            r"rope_parameters.rope_theta: given nan, allowed a number above 1",
        ),
        (
            {"rope_parameters": ROPE, "rope_theta": 500000.0},
            r"rope_theta: given \[10000.0, 500000.0\], allowed one value throughout",
        ),
        (
            {"rope_parameters": None, "rope_theta": 0},
            r"rope_theta: given 0, allowed a number above",
        ),
        ({"partial_rotary_factor": 0.25}, r"partial_rotary_factor: given 0.25, allowed 1"),
        ({"partial_rotary_factor": "1"}, r"partial_rotary_factor: given '1', allowed a number"),
        ({"final_logit_softcapping": 30.0}, r"final_logit_softcapping: given 30.0, allowed None"),
        ({"attn_logit_softcapping": 50.0}, r"attn_logit_softcapping: given 50.0, allowed None"),
        ({"attention_multiplier": 0.5}, r"attention_multiplier: given 0.5, allowed None"),
        ({"logits_scaling": 8.0}, r"logits_scaling: given 8.0, allowed None or 1"),
        ({"logit_scale": 0.0625}, r"logit_scale: given 0.0625, allowed None or 1"),
        ({"residual_multiplier": 0.22}, r"residual_multiplier: given 0.22, allowed None or 1"),
        ({"embedding_multiplier": 12}, r"embedding_multiplier: given 12, allowed None or 1"),
        ({"query_pre_attn_scalar": 256}, r"query_pre_attn_scalar: given 256, allowed None"),
        ({"use_qk_norm": True}, r"use_qk_norm: given True, allowed False"),
        ({"num_local_experts": 8}, r"num_local_experts: given 8, allowed None"),
        (
            {"quantization_config": {"quant_method": "fp8", "bits": 8}},
            r"quantization_config.quant_method: given 'fp8', allowed 'gptq' or 'awq' or 'compresse",
        ),
        (
            {"layer_types": ["full_attention", "chunked_attention"], "num_hidden_layers": 2},
            r"layer_types: given \[.*\], allowed 2 of \['full_attention', 'sliding_attention'\]",
        ),
        ({"layer_types": ["chunked_attention"]}, r"layer_types: given \['chunked_attention'\]"),
        (
            {"layer_types": ["full_attention"] * 2},
            r"layer_types: given .*, allowed 1 of \['full",
        ),
        ({"layer_types": []}, r"layer_types: given \[\], allowed 1 of \['full"),
        (
            {"layer_types": "full_attention"},
            r"layer_types: given 'full_attention', allowed 1 of",
        ),
        ({"tie_word_embeddings": 1}, r"tie_word_embeddings: given 1, allowed True or False"),
        ({"rms_norm_eps": 0}, r"rms_norm_eps: given 0, allowed a number between 0 and 1"),
        ({"rms_norm_eps": True}, r"rms_norm_eps: given True, allowed a number between 0 and 1"),
        (
            {"num_attention_heads": 3, "num_key_value_heads": 2},
            r"num_attention_heads: given 3, allowed a multiple of 2 K/V heads",
        ),
        ({"num_key_value_heads": 0}, r"num_key_value_heads: given 0, allowed int >= 1"),
        (
            {"head_dim": None, "num_attention_heads": 3, "num_key_value_heads": 3},
            r"hidden_size: given 8, allowed a multiple of num_attention_heads = 3",
        ),
        ({"head_dim": 3}, r"head_dim: given 3, allowed an even number \(rotary pairs\)"),
        ({"head_dim": 4.0}, r"head_dim: given 4.0, allowed int >= 1"),
        ({"hidden_size": "8"}, r"hidden_size: given '8', allowed int >= 1"),
        ({"max_position_embeddings": None}, r"max_position_embeddings: given None, allowed int >="),
    ],
)
def test_options_that_change_the_computation(
    tmp_path: Path, family: str, changes: dict[str, object], message: str
) -> None:
    """What would be another network is refused by name, before any tensor is read."""
    folder = tmp_path / "model"
    write_checkpoint(random_checkpoint(SMALL[family], 3), folder)
    (folder / WEIGHTS).write_bytes(b"not read")
    change_config(folder, **changes)
    refused(folder, rf"config\.json {message}")


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("llama", {"sliding_window": 2}, r"sliding_window: given 2, allowed None"),
        ("llama", {"attention_bias": 1}, r"attention_bias: given 1, allowed True or False"),
        ("llama", {"mlp_bias": None}, r"mlp_bias: given None, allowed True or False"),
        (
            "llama",
            {"layer_types": LAYER_TYPES["sliding"]},
            r"layer_types: given \['sliding_attention'\], allowed full_attention throughout",
        ),
        ("mistral", {"attention_bias": True}, r"attention_bias: given True, allowed False"),
        ("mistral", {"mlp_bias": True}, r"mlp_bias: given True, allowed False"),
        ("mistral", {"sliding_window": 0}, r"sliding_window: given 0, allowed int >= 1"),
        ("mistral", {"sliding_window": "2"}, r"sliding_window: given '2', allowed int >= 1"),
        (
            "mistral",
            {"sliding_window": 2, "layer_types": LAYER_TYPES["full"]},
            r"layer_types: .*, allowed sliding_attention throughout \(sliding_window = 2\)",
        ),
        (
            "mistral",
            {"sliding_window": None, "layer_types": LAYER_TYPES["sliding"]},
            r"layer_types: .*, allowed full_attention throughout \(sliding_window = None\)",
        ),
        ("qwen2", {"mlp_bias": True}, r"mlp_bias: given True, allowed False"),
        ("qwen2", {"use_sliding_window": 1}, r"use_sliding_window: given 1, allowed True or False"),
        (
            "qwen2",
            {"layer_types": LAYER_TYPES["sliding"]},
            r"layer_types: .*, allowed full_attention throughout \(use_sliding_window off\)",
        ),
        (
            "qwen2",
            {
                "use_sliding_window": True,
                "sliding_window": 2,
                "layer_types": None,
                "max_window_layers": -1,
            },
            r"max_window_layers: given -1, allowed int >= 0",
        ),
        ("gpt2", {"quantization_config": {"bits": 8}}, r"quantization_config: given \{'bits': 8\}"),
        ("smollm3", {"no_rope_layers": [2]}, r"no_rope_layers: given \[2\], allowed 1 of 0 and 1"),
        ("smollm3", {"no_rope_layers": []}, r"no_rope_layers: given \[\], allowed 1 of 0 and 1"),
        (
            "smollm3",
            {"no_rope_layers": None, "no_rope_layer_interval": 0},
            r"no_rope_layer_interval: given 0, allowed int >= 1",
        ),
        ("gemma", {"hidden_activation": "relu"}, r"hidden_activation: given 'relu', allowed None"),
        (
            "gemma2",
            {"query_pre_attn_scalar": 0},
            r"query_pre_attn_scalar: given 0, allowed a number",
        ),
        (
            "gemma2",
            {"attn_logit_softcapping": -1.0},
            r"attn_logit_softcapping: given -1.0, allowed a number above 0",
        ),
        (
            "gemma2",
            {"use_bidirectional_attention": True},
            r"use_bidirectional_attention: given True",
        ),
        (
            "gemma3_text",
            {"rope_parameters": ROPE},
            r"rope_parameters: given \{.*\}, allowed null or a map of \['full_attention', 'slidi",
        ),
        (
            "gemma3_text",
            {"rope_parameters": {"sliding_attention": ROPE | {"rope_theta": 1}}},
            r"rope_parameters.sliding_attention.rope_theta: given 1, allowed a number above 1",
        ),
        ("phi3", {"attention_bias": True}, r"attention_bias: given True, allowed False"),
        (
            "phi3",
            {"original_max_position_embeddings": 3}
            | {"rope_parameters": {"rope_type": "longrope", "original_max_position_embeddings": 2}},
            r"rope_parameters.original_max_position_embeddings: given 2, allowed 3, as beside it",
        ),
        ("phi", {"qk_layernorm": True}, r"qk_layernorm: given True, allowed False"),
        (
            "phi",
            {"rope_parameters": {"partial_rotary_factor": 0.25}},
            r"rope_parameters.partial_rotary_factor: given 0.25, allowed an even number of 4 lan",
        ),
        (
            "phi",
            {"rope_parameters": {"partial_rotary_factor": 1.5}},
            r"rope_parameters.partial_rotary_factor: given 1.5, allowed a number from 0 to 1",
        ),
        ("stablelm", {"qk_layernorm": True}, r"qk_layernorm: given True, allowed False"),
        (
            "gpt_neox",
            {"attention_bias": None},
            r"attention_bias: given None, allowed True or False",
        ),
        (
            "gpt_neox",
            {"rope_parameters": None, "rotary_emb_base": 1},
            r"rotary_emb_base: given 1, allowed a number above 1",
        ),
        ("falcon", {"alibi": True}, r"alibi: given True, allowed False"),
        ("falcon", {"num_kv_heads": 3}, r"num_kv_heads: given 3, allowed a divisor of 2 heads"),
        (
            "falcon",
            {"num_ln_in_parallel_attn": 3},
            r"num_ln_in_parallel_attn: given 3, allowed null or 1 or 2",
        ),
        (
            "falcon",
            {"num_attention_heads": 8},
            r"hidden_size: given 8, allowed num_attention_heads =",
        ),
        ("olmo2", {"clip_qkv": 8.0}, r"clip_qkv: given 8.0, allowed None"),
        ("granite", {"logits_scaling": 0}, r"logits_scaling: given 0, allowed a number above 0"),
        (
            "granite",
            {"residual_multiplier": True},
            r"residual_multiplier: given True, allowed a num",
        ),
        ("starcoder2", {"use_bias": "no"}, r"use_bias: given 'no', allowed True or False"),
        (
            "opt",
            {"do_layer_norm_before": False},
            r"do_layer_norm_before: given False, allowed True",
        ),
        ("opt", {"word_embed_proj_dim": 4}, r"word_embed_proj_dim: given 4, allowed 8 or None"),
        (
            "opt",
            {"_remove_final_layer_norm": True},
            r"_remove_final_layer_norm: given True, allowed",
        ),
        (
            "gpt_neo",
            {"attention_types": 5},
            r"attention_types: given 5, allowed lists of \['global'",
        ),
        (
            "gpt_neo",
            {"attention_types": [[["far"], 1]]},
            r"attention_types: given \[\[\['far'\], 1\]\], allowed lists of .*, 1 layers in all",
        ),
        (
            "gpt_neo",
            {"attention_types": [[["local"], 10**9]], "num_layers": 2},
            r"attention_types: given .*, allowed lists of .*, 2 layers in all",
        ),
    ],
)
def test_options_of_one_architecture(
    tmp_path: Path, family: str, changes: dict[str, object], message: str
) -> None:
    """Biases and windows that an architecture does not have, or has in some layers only."""
    folder = tmp_path / "model"
    write_checkpoint(random_checkpoint(SMALL[family], 3), folder)
    change_config(folder, **changes)
    refused(folder, rf"config\.json {message}")


ODD: list[Any] = [None, "x", -1, 0, 1, 1.5, math.nan, 10**30, True, [], [[1]], ["x"], {}, {"x": 1}]
SCALED: dict[str, dict[str, Any]] = {
    "linear": {"factor": 2.0},
    "llama3": {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "yarn": {"factor": 4.0, "beta_fast": 32, "beta_slow": 1, "mscale": 1.0, "mscale_all_dim": 1.0}
    | {"attention_factor": 1.0, "truncate": True},
    "longrope": {"short_factor": [1.0, 1.0], "long_factor": [2.0, 2.0], "attention_factor": 1.0},
}


def parsed(config: dict[str, Any]) -> None:
    """Read a configuration, which is good, or refused in one line that has the place."""
    try:
        parse_config(config, "here")
    except CheckpointError as error:
        assert re.match(r"here: config\.json \w[\w.]*: given .*, allowed .", str(error)), error
        assert "\n" not in str(error)


@pytest.mark.parametrize("family", ARCHITECTURES)
def test_odd_values_of_every_field(family: str) -> None:
    """Whatever stands in a field makes a shape or a refusal, and no other error."""
    config = config_of(SMALL[family])
    for field in {*config, *NEUTRAL, "sliding_window", "rope_theta", "rope_scaling", "layer_types"}:
        for value in ODD:
            parsed(config | {field: value})


@pytest.mark.parametrize("family", ["llama", "phi3", "gpt_neox", "gemma3_text"])
@pytest.mark.parametrize("kind", SCALED)
def test_odd_values_of_rotations(family: str, kind: str) -> None:
    """Of every option of every kind, also where there is one for each kind of attention."""
    original = {"original_max_position_embeddings": 3, "partial_rotary_factor": 1.0}
    good = {"rope_type": kind, "rope_theta": 90.0, **original, **SCALED[kind]}
    for field in good:
        for value in ODD:
            given: dict[str, Any] = good | {field: value}
            if family == "gemma3_text":
                given = {"full_attention": given, "sliding_attention": given}
            config = config_of(SMALL[family]) | {"rope_parameters": given}
            parsed(config)
            parsed(config | {"original_max_position_embeddings": value})


@pytest.mark.parametrize(
    ("family", "changes", "message"),
    [
        ("llama", {"attention_bias": True}, r"'layers.0.self_attn.q_proj.bias' is missing"),
        ("llama", {"num_key_value_heads": 2}, r"k_proj.weight': given shape \(4, 8\), .* \(8, 8\)"),
        (
            "llama",
            {"num_key_value_heads": None},
            r"k_proj.weight': given shape \(4, 8\), .*\(8, 8\)",
        ),
        ("mistral", {"head_dim": 8}, r"q_proj.weight': given shape \(8, 8\), allowed \(16, 8\)"),
        (
            "mistral",
            {"intermediate_size": 13},
            r"gate_proj.weight': given shape \(12, 8\), .* \(13, ",
        ),
        (
            "qwen2",
            {"num_hidden_layers": 1000, "layer_types": None},
            r"num_hidden_layers: given 1000, allowed at most the number",
        ),
        (
            "qwen2",
            {"num_hidden_layers": 1025, "layer_types": None},
            r"num_hidden_layers: given 1025, allowed int >= 1 and <= 1024",
        ),
        (
            "qwen2",
            {"model_type": "llama"},
            r"k_proj.bias': given shape \(4,\), but a llama of this",
        ),
        (
            "qwen2",
            {"tie_word_embeddings": True},
            r"'lm_head.weight': given another one than 'embed_tokens.weight'",
        ),
    ],
)
def test_configs_of_another_network(
    tmp_path: Path, family: str, changes: dict[str, object], message: str
) -> None:
    """A good config that disagrees with the tensors."""
    folder = tmp_path / "model"
    write_checkpoint(random_checkpoint(SMALL[family], 3), folder)
    change_config(folder, architectures=None, **changes)
    refused(folder, message)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_layer": 2}, r"tensor 'h.1.ln_1.weight' is missing \(12 of 28 are\), allowed .*\(8,\)"),
        (
            {"n_layer": 1000},
            r"config.json n_layer: given 1000, allowed at most the number of tensors",
        ),
        ({"n_layer": 1 << 24}, r"n_layer: given 16777216, allowed int >= 1 and <= 1024"),
        ({"n_embd": 16}, r"'wte.weight': given shape \(20, 8\), allowed \(20, 16\)"),
        ({"vocab_size": 21}, r"'wte.weight': given shape \(20, 8\), allowed \(21, 8\)"),
        ({"n_positions": 5}, r"'wpe.weight': given shape \(4, 8\), allowed \(5, 8\)"),
        ({"n_inner": 15}, r"'h.0.mlp.c_fc.weight': given shape \(8, 16\), allowed \(8, 15\)"),
        ({"n_inner": None}, r"'h.0.mlp.c_fc.weight'.*\(8, 16\), allowed \(8, 32\)"),
        ({"tie_word_embeddings": False}, r"tensor 'lm_head.weight' is missing"),
    ],
)
def test_config_that_disagrees_with_the_tensors(
    folder: Path, changes: dict[str, object], message: str
) -> None:
    """A good config of another network."""
    change_config(folder, **changes)
    refused(folder, message)


# -----------------------------------------------------------------------------------------------
# Tensors
# -----------------------------------------------------------------------------------------------
NO_GROUPS = ("gpt2", "gpt_neo", "gpt_neox", "opt")
"""Every query head has a K/V head."""
SMALL = {
    family: shape_of(
        family,
        hidden=8,
        layers=1,
        heads=2,
        head_dim=4,
        ffn=12,
        vocab=20,
        context=4,
        tied=False,
        **({} if family in NO_GROUPS else {"kv_heads": 1}),
    )
    for family in ARCHITECTURES
}
"""A small shape of every architecture, with a head of its own."""
STORED = [(family, name) for family in SMALL for name in ARCHITECTURES[family].sizes(SMALL[family])]


def changes_of(tensor: Array) -> dict[str, tuple[Array | None, str]]:
    """Return what may be stored in place of a float32 tensor, with the message for it."""
    odd = tensor.copy()
    odd.reshape(-1)[-1] = np.nan
    last = ", ".join(str(size - 1) for size in tensor.shape)
    place = rf"at index \({last},?\), allowed finite float32 numbers"
    shape = rf"given shape .*, allowed \({', '.join(map(str, tensor.shape))},?\)"
    return {
        "missing": (None, r"is missing"),
        "longer": (np.concatenate([tensor, tensor[:1]]), shape),
        "shorter": (tensor[:-1], shape),
        "another rank": (tensor[None], shape),
        "scalar": (np.array(tensor.reshape(-1)[0]), shape),
        "empty": (tensor[:0], shape),
        "integers": (tensor.astype(np.int32), r"given dtype I32, allowed F64, F32, F16, BF16"),
        "bytes": (tensor.astype(np.uint8), r"given dtype U8, allowed F64, F32, F16, BF16"),
        "NaN": (odd, rf"given nan {place}"),
        "infinite": (np.where(np.isnan(odd), np.inf, odd), rf"given inf {place}"),
        "minus infinite": (np.where(np.isnan(odd), -np.inf, odd), rf"given -inf {place}"),
        "too large": (
            np.where(np.isnan(odd), 1e300, odd.astype(np.float64)),
            rf"given inf {place}",
        ),
        "NaN of 16 bits": (odd.astype(ml_dtypes.bfloat16), rf"given nan {place}"),
    }


@pytest.mark.parametrize(("family", "name"), STORED)
def test_each_tensor(tmp_path: Path, family: str, name: str) -> None:
    """Each tensor of each architecture: missing, misshapen, of another type, NaN or infinite."""
    folder, architecture = tmp_path / "model", ARCHITECTURES[family]
    written = random_checkpoint(SMALL[family], 3)
    write_checkpoint(written, folder)
    stored = architecture.full_name(name)
    good = (folder / WEIGHTS).read_bytes()
    for value, message in changes_of(load_file(folder / WEIGHTS)[stored]).values():
        change_tensor(folder, stored, value)
        with pytest.raises(
            CheckpointError, match=rf"tensor '({architecture.prefix})?{name}':? {message}"
        ):
            load_checkpoint(folder)
        (folder / WEIGHTS).write_bytes(good)
    assert load_checkpoint(folder).shape == SMALL[family]


def test_more_tensors(folder: Path) -> None:
    """A tensor that the model would ignore is a sign of another architecture."""
    change_tensor(folder, "transformer.h.0.attn.rotary", np.zeros(2, np.float32))
    refused(folder, r"'h.0.attn.rotary': given shape \(2,\), but a gpt2 of this config has no")
    change_tensor(folder, "transformer.h.0.attn.rotary", None)
    change_tensor(folder, "transformer.h.1.ln_1.bias", np.zeros(8, np.float32))
    refused(folder, r"'h.1.ln_1.bias': given shape \(8,\), but a gpt2 of this config has no")


def test_tensors_given_twice(folder: Path) -> None:
    """With and without the prefix."""
    change_tensor(folder, "ln_f.bias", np.zeros(8, np.float32))
    refused(folder, r"tensor '(transformer\.)?ln_f.bias': given twice, allowed once")


def test_another_head_beside_tied_embeddings(folder: Path) -> None:
    """A stored head may be the token table; a different one would be lost silently."""
    table = load_file(folder / WEIGHTS)["transformer.wte.weight"]
    change_tensor(folder, "lm_head.weight", table)
    assert load_checkpoint(folder).shape == SHAPE
    for other in (table + np.float32(1e-3), table[:-1]):
        change_tensor(folder, "lm_head.weight", other)
        refused(folder, r"'lm_head.weight': given another one than 'wte.weight', allowed an equal")


def test_small_floats_are_refused(folder: Path) -> None:
    """Types that the importer does not widen."""
    small = np.zeros(8, ml_dtypes.float8_e4m3fn)
    change_tensor(folder, "transformer.ln_f.bias", small)
    refused(folder, r"ln_f.bias': given dtype F8_E4M3, allowed F64, F32, F16, BF16")


# -----------------------------------------------------------------------------------------------
# Files of tensors
# -----------------------------------------------------------------------------------------------
def test_truncated_anywhere(folder: Path) -> None:
    """A file that ends too early is refused, never half read."""
    data = (folder / WEIGHTS).read_bytes()
    ends = {*range(64), *range(64, len(data), 13), *range(len(data) - 64, len(data))}
    for size in sorted(ends):
        (folder / WEIGHTS).write_bytes(data[:size])
        with pytest.raises(CheckpointError, match=r"model: model.safetensors cannot be read: "):
            load_checkpoint(folder)
    (folder / WEIGHTS).write_bytes(data + b"x")
    refused(folder, r"model.safetensors cannot be read: ")
    (folder / WEIGHTS).write_bytes(data)
    assert load_checkpoint(folder).shape == SHAPE


def test_damaged_header(folder: Path) -> None:
    """A damaged list of tensors gives a CheckpointError or the same tensors, nothing else."""
    rng = np.random.default_rng(5)
    data = (folder / WEIGHTS).read_bytes()
    header = 8 + int.from_bytes(data[:8], "little")
    outcomes = set()
    for _ in range(200):
        damaged = bytearray(data)
        damaged[int(rng.integers(header))] ^= 1 << int(rng.integers(8))
        (folder / WEIGHTS).write_bytes(damaged)
        try:
            load_checkpoint(folder)
            outcomes.add("read")
        except CheckpointError as error:
            assert str(folder) in str(error)
            outcomes.add("refused")
    assert "refused" in outcomes


@pytest.mark.parametrize("data", [b"", b"\0" * 8, b"\xff" * 64, b"PK\x03\x04" * 40, b"{}" * 32])
def test_other_files(folder: Path, data: bytes) -> None:
    """What is no safetensors file at all."""
    (folder / WEIGHTS).write_bytes(data)
    refused(folder, r"model.safetensors cannot be read: |tensor 'wte.weight' is missing")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ({}, r"index.json: given no weight_map, allowed name to file"),
        ({"weight_map": []}, r"index.json: given no weight_map"),
        ({"weight_map": {}}, r"index.json: given no weight_map"),
        ({"weight_map": {"a": 5}}, r"index.json: tensor 'a': given file 5, allowed the name of a"),
        (
            {"weight_map": {"a": "../b.safetensors"}},
            r"given file '../b.safetensors', allowed the n",
        ),
        ({"weight_map": {"a": "/b.safetensors"}}, r"given file '/b.safetensors', allowed the name"),
        ({"weight_map": {"a": "weights.bin"}}, r"given file 'weights.bin', allowed the name of a"),
        ({"weight_map": {"a": "b.safetensors"}}, r"shard b.safetensors is missing in"),
        ({"weight_map": {"a": "b\n.safetensors"}}, r"shard b\\n.safetensors is missing in"),
    ],
)
def test_wrong_index(folder: Path, index: dict[str, object], message: str) -> None:
    """An index of shards that names no files, files elsewhere, or files that are not there."""
    (folder / WEIGHTS).unlink()
    (folder / INDEX).write_text(json.dumps(index))
    refused(folder, message)


def test_missing_shard(folder: Path) -> None:
    """One of two shards is gone, or belongs to nobody."""
    tensors = load_file(folder / WEIGHTS)
    names = sorted(tensors)
    parts = {"a.safetensors": names[::2], "b.safetensors": names[1::2]}
    for file, some in parts.items():
        save_file({name: tensors[name] for name in some}, folder / file)
    (folder / WEIGHTS).unlink()
    index = {"weight_map": {name: file for file, some in parts.items() for name in some}}
    (folder / INDEX).write_text(json.dumps(index))
    assert load_checkpoint(folder).shape == SHAPE
    (folder / INDEX).write_text(json.dumps({"weight_map": {names[0]: "a.safetensors"}}))
    refused(folder, r"tensor '.*' is missing")
    (folder / INDEX).write_text(json.dumps(index))
    (folder / "b.safetensors").unlink()
    refused(folder, r"shard b.safetensors is missing in")


# -----------------------------------------------------------------------------------------------
# Activation scales
# -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 1}, r"format: given 1, allowed 2; run python -m weights.calibrate"),
        ({"format": 3}, r"format: given 3, allowed 2"),
        ({"format": "2"}, r"format: given '2', allowed 2"),
        ({"format": None}, r"format: given None, allowed 2"),
        ({"checkpoint_sha256": 5}, r"checkpoint_sha256: given int, allowed str"),
        (
            {"checkpoint_sha256": "0" * 64},
            r"given scales of checkpoint 000000000000, allowed those",
        ),
        ({"ranges": None}, r"ranges: given NoneType, allowed dict"),
        ({"ranges": [1.0]}, r"ranges: given list, allowed dict"),
        ({"channels": None}, r"channels: given NoneType, allowed dict"),
        ({"channels": {"norm": 1.0}}, r"channels\['norm'\]: given float, allowed list"),
        ({"provenance": "me"}, r"provenance: given str, allowed dict"),
    ],
)
def test_scale_files(folder: Path, change: dict[str, object], message: str) -> None:
    """Scale files of another version or form."""
    path = folder / SCALES_FILE
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    refused_scales(folder, message)


def refused_scales(folder: Path, message: str) -> None:
    """Check that a scale file is refused by name and stays, and that a good one serves."""
    path, before = folder / SCALES_FILE, contents(folder)
    with pytest.raises(ScalesError, match=message) as caught:
        quantize_checkpoint(str(folder))
    assert "quantize: " in str(caught.value) or str(path) in str(caught.value)
    assert contents(folder) == before
    save_scales(SCALES, path)
    assert quantize_checkpoint(str(folder)).shape.hidden == SHAPE.hidden


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_scale_files_that_are_none(folder: Path, text: bytes) -> None:
    """Text that is no JSON or no map."""
    (folder / SCALES_FILE).write_bytes(text)
    refused_scales(folder, r"cannot be read as activation scales|the file: given .*, allowed dict")


def test_truncated_scale_file(folder: Path) -> None:
    """A scale file that ends too early, at every byte but the last line feed."""
    path = folder / SCALES_FILE
    save_scales(ActivationScales("0", {"q": 1.0}, {"norm": (1.0, 2.0)}, {"text": "t"}), path)
    data = path.read_bytes()
    for size in range(len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(ScalesError, match=r"cannot be read as activation scales"):
            load_scales(path)
    path.unlink()
    with pytest.raises(ScalesError, match=r"cannot be read as activation scales: FileNotFound"):
        load_scales(path)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("NaN", r"given nan, allowed 0 or 1.4e-45 to 3.4e\+38"),
        ("Infinity", r"given inf, allowed 0 or"),
        ("-Infinity", r"given -inf, allowed 0 or"),
        ("-1", r"given -1, allowed 0 or"),
        ("-1e-9", r"given -1e-09, allowed 0 or"),
        ("1e300", r"given 1e\+300, allowed 0 or"),
        ("1e-300", r"given 1e-300, allowed 0 or"),
        ("1" + "0" * 400, r"given 10{400}, allowed 0 or"),
        ('"1.5"', r"given '1.5', allowed a number"),
        ("true", r"given True, allowed a number"),
        ("null", r"given None, allowed a number"),
        ("[1]", r"given \[1\], allowed a number"),
    ],
)
def test_numbers_of_scale_files(folder: Path, value: str, message: str) -> None:
    """Ranges and channels that no activation can have, each named."""
    path = folder / SCALES_FILE
    good = json.loads(path.read_text())
    for name in ("residual", "h.0.act"):
        text = json.dumps(good | {"ranges": good["ranges"] | {name: "@"}}).replace('"@"', value)
        path.write_text(text)
        refused_scales(folder, rf"ranges\['{name}'\]: {message}")
    channels = good["channels"]["norm"]
    text = json.dumps(good | {"channels": good["channels"] | {"norm": [*channels[:7], "@"]}})
    path.write_text(text.replace('"@"', value))
    refused_scales(folder, rf"channels\['norm'\]\[7\]: {message}")


@pytest.mark.parametrize(
    "name", ["residual", "logits", "h.0.q", "h.0.k", "h.0.v", "h.0.up", "h.0.act"]
)
def test_missing_and_zero_ranges(folder: Path, name: str) -> None:
    """A range that is missing or zero would make a tensor carry nothing."""
    ranges = {key: value for key, value in SCALES.ranges.items() if key != name}
    for given in (ranges, ranges | {name: 0.0}):
        save_scales(replace(SCALES, ranges=given), folder / SCALES_FILE)
        refused_scales(folder, rf"quantize: range of '{name}': given 0.0, allowed > 0")


@pytest.mark.parametrize("name", ["norm", "h.0.norm1", "h.0.norm2"])
def test_channels_that_do_not_belong(folder: Path, name: str) -> None:
    """Channel ranges of another number than hidden, or all zero."""
    for count in (0, 1, 7, 9, 16):
        channels = SCALES.channels | {name: (1.0,) * count}
        save_scales(replace(SCALES, channels=channels), folder / SCALES_FILE)
        refused_scales(folder, rf"quantize: channels of '{name}': given {count}, allowed 8")
    save_scales(
        replace(SCALES, channels=SCALES.channels | {name: (0.0,) * 8}), folder / SCALES_FILE
    )
    refused_scales(folder, rf"quantize: channels of '{name}': given none above 0, allowed > 0")


def test_scales_of_another_checkpoint() -> None:
    """Scales that were measured on other weights."""
    with pytest.raises(ScalesError, match=r"quantize: given scales of checkpoint .*allowed those"):
        quantize(random_checkpoint(SHAPE, 99), SCALES)
    with pytest.raises(ScalesError, match=r"ranges\['q'\]: given inf, allowed 0 or"):
        ActivationScales("0", {"q": math.inf}, {}, {})


def test_factors_that_cannot_be_expressed() -> None:
    """Scales whose ratio leaves the range of multiplier and shift, by name of the tensor."""
    for value, name in ((1e-30, "h.0.scores"), (1e38, "h.0.scores")):
        ranges = SCALES.ranges | {"h.0.q": value, "h.0.k": value}
        with pytest.raises(ValueError, match=rf"{name}.*: given requantisation factor .* allowed"):
            quantize(CHECKPOINT, replace(SCALES, ranges=ranges))


def test_weights_that_overflow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Finite weights whose activations are not: nothing is kept of the calibration."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tokens = random_tokens(SHAPE, 2, 1)
    monkeypatch.setattr(calibration, "calibration_tokens", lambda checkpoint: tokens)
    tensors = dict(CHECKPOINT.tensors)
    tensors["h.0.up.weight"] = np.full((8, 16), 3e38, np.float32)
    write_checkpoint(replace(CHECKPOINT, tensors=tensors), tmp_path / "model")
    checkpoint = load_checkpoint(tmp_path / "model")
    before = contents(tmp_path)
    with pytest.raises(ScalesError, match=r"model: h.0.up is not finite on the calibration text"):
        scales_for(checkpoint)
    assert contents(tmp_path) == before


def test_scale_file_is_written_whole_or_not_at_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails while the file is written leaves the old one and nothing else."""
    before = contents(folder)

    def fail(*arguments: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        save_scales(replace(SCALES, digest="0"), folder / SCALES_FILE)
    assert contents(folder) == before


def test_scales_that_cannot_be_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder and a cache that cannot be written are found before the measurement."""

    def fail(*arguments: object) -> None:
        raise AssertionError(f"measured {arguments}")

    monkeypatch.setattr(calibration, "calibrate_on_text", fail)
    (folder / SCALES_FILE).unlink()
    (folder / SCALES_FILE).mkdir()
    with pytest.raises(ScalesError, match=rf"{SCALES_FILE}: cannot be written, allowed is"):
        scales_for(load_checkpoint(folder))
    (folder / SCALES_FILE).rmdir()
    monkeypatch.setattr(os, "access", lambda *_: False)
    (folder.parent / "cache").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    with pytest.raises(ScalesError, match=r"cache/tessera: cannot be made: Not a directory"):
        scales_for(load_checkpoint(folder))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "other"))
    with pytest.raises(ScalesError, match=r"other/tessera/\w+\.json: cannot be written"):
        scales_for(load_checkpoint(folder))


def test_damaged_cache(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A damaged file in the cache is named too, not used and not written over."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder.parent / "cache"))
    (folder / SCALES_FILE).unlink()
    checkpoint = load_checkpoint(folder)
    cached = cache_path(checkpoint)
    cached.parent.mkdir(parents=True)
    cached.write_text("{")
    with pytest.raises(ScalesError, match=rf"{cached}: cannot be read as activation scales"):
        scales_for(checkpoint)
    assert cached.read_text() == "{"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{folder}/none"], r"given '.*/none', which is no folder"),
        (["{folder}/config.json"], r"which is a file; allowed is the folder with"),
        (["{folder}"], r"given a vocabulary of 20 and no tokenizer.json, allowed a vocabulary"),
        (["{folder}", "--output", "{folder}/a/b.json"], r"--output: given .*, allowed a file in a"),
    ],
)
def test_calibrate_command(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    """The command gives one line and status 2, and writes nothing."""
    text = np.zeros(4000, np.uint8)
    monkeypatch.setattr(calibration, "read_corpus", lambda: Corpus(text, text, text, text, {}))
    before = contents(folder)
    given = [argument.format(folder=folder) for argument in arguments]
    assert calibration.main(given) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert re.search(message, printed.err), printed.err
    assert contents(folder) == before


# -----------------------------------------------------------------------------------------------
# Models that do not fit the chip
# -----------------------------------------------------------------------------------------------
CHIP = Limits()
Change = Callable[[Limits], Limits]


@pytest.mark.parametrize(
    ("hidden", "heads", "ffn", "rows", "chip", "message"),
    [
        (24, 2, 32, 4, CHIP, r"hidden 24: allowed are multiples of 16"),
        (64, 4, 64, 4, replace(CHIP, norm_max=48), r"hidden 64: the norm takes at most 48"),
        (16, 1, 61440, 1, CHIP, r"ffn = 61440: a GEMM has at most 61439 columns"),
        (16, 16, 16, 0, CHIP, r"0 rows: allowed are 1 to 128"),
        (
            64,
            4,
            64,
            129,
            CHIP,
            r"129 rows: allowed are 1 to 128 \(accumulators 128 rows, context 1",
        ),
        (64, 4, 64, 65, replace(CHIP, acc_rows=64), r"65 rows: allowed are 1 to 64"),
        (64, 4, 64, 9, replace(CHIP, acc_rows=1), r"acc_rows: given 1, allowed 2 and more"),
        (
            64,
            4,
            256,
            64,
            replace(CHIP, sram_bytes=10240),
            r"ctx: needs 10752 bytes of SRAM beside what lies there, there are 10240",
        ),
        (64, 4, 64, 1, replace(CHIP, sram_bytes=16), r"norm1: needs 384 bytes .* there are 16"),
    ],
)
def test_models_that_do_not_fit(
    hidden: int, heads: int, ffn: int, rows: int, chip: Limits, message: str
) -> None:
    """Dimensions of model and chip that do not go together, with the amount that would."""
    model = random_model(1, hidden=hidden, heads=heads, ffn=ffn, layers=1)
    for fused in (True, False):
        with pytest.raises(CompileError, match=message):
            compile_block(model, 0, rows, fused=fused, limits=chip)


def test_the_sram_that_is_asked_for_is_enough() -> None:
    """A chip with just the bytes that a refusal names takes the block."""
    model = random_model(1, hidden=64, heads=4, ffn=100, layers=1)
    with pytest.raises(CompileError, match=r"needs \d+ bytes") as caught:
        compile_block(model, 0, 20, limits=replace(CHIP, sram_bytes=3072))
    needed = int(str(caught.value).split("needs ")[1].split()[0])
    assert compile_block(model, 0, 20, limits=replace(CHIP, sram_bytes=needed)).sram_bytes == needed
    with pytest.raises(CompileError, match=rf"needs {needed} bytes"):
        compile_block(model, 0, 20, limits=replace(CHIP, sram_bytes=needed - 16))
