# SPDX-License-Identifier: Apache-2.0
"""Writes a folder of Hugging Face as a GGUF file, by the rules of llama.cpp's converter.

What the converter does to metadata and tensors of each architecture is written down here from its
source, for comparison with how weights/ reads them: `transformers` reads config.json, `gguf` has
the names of tensors and keys. What the converter does not write, a file does not say: `sayable`
takes it out of a drawn configuration.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import gguf
import numpy as np
import numpy.typing as npt
from safetensors.numpy import load_file
from transformers import AutoConfig

from tests.python.weights.gguf_files import add_entry, permuted

Array = npt.NDArray[np.float32]
Json = dict[str, Any]
NAMES = {
    "gemma3_text": "gemma3",
    "gpt_neox": "gptneox",
    "mistral": "llama",
    "phi": "phi2",
}
"""What general.architecture is where it is not the model_type."""
PERMUTED = ("granite", "llama", "mistral", "smollm3")
"""Architectures whose converters are LlamaModel's: rotary pairs lie side by side."""
GEMMAS = ("gemma", "gemma2", "gemma3_text")
BASE = ("granite", "llama", "mistral", "olmo2", "qwen2", "qwen3", "smollm3", "starcoder2")
"""Architectures whose metadata is that of the converter's base class, with all of rotations."""
NO_HEAD_DIM = ("granite", "phi")
"""Architectures with heads of their own size that the converter does not write down."""
LLAMA3: Json = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
ACTIVATIONS = ("hidden_act", "hidden_activation", "activation", "activation_function")
ROTATIONS = (
    *("rope_theta", "rope_scaling", "rope_local_base_freq", "partial_rotary_factor"),
    *("rotary_pct", "rotary_emb_base"),
)
"""Fields of transformers 4, of which rope_parameters take the place."""
Writer: TypeAlias = Any
Hf: TypeAlias = Any
"""gguf.GGUFWriter, and a configuration of transformers."""


def sayable(family: str, config: Json, random: np.random.Generator) -> Json:
    """Return a drawn configuration without what a GGUF file of its architecture does not say."""
    found = {key: value for key, value in config.items() if key not in (*ACTIVATIONS, *ROTATIONS)}
    head_dim = found.get("head_dim") or found.get("hidden_size", 0) // found.get(
        "num_attention_heads", 1
    )
    if family in NO_HEAD_DIM:
        heads = found["num_attention_heads"]
        head_dim = -(-found["hidden_size"] // (2 * heads)) * 2
        found |= {"hidden_size": heads * head_dim, "head_dim": head_dim}
    if family == "phi":
        heads = found["num_attention_heads"]
        found |= {"num_key_value_heads": heads, "intermediate_size": 4 * found["hidden_size"]}
    if family == "falcon":
        found |= {"parallel_attn": True, "ffn_hidden_size": 4 * found["hidden_size"]}
        if not found["new_decoder_architecture"]:
            found |= {"num_kv_heads": 1, "multi_query": True}
    if family in ("mistral", "starcoder2"):
        found["sliding_window"] = None
    if family in ("qwen2", "qwen3"):
        found |= {"use_sliding_window": False, "layer_types": None}
    if family == "smollm3":
        found |= {"use_sliding_window": False, "sliding_window": None, "layer_types": None}
        found |= {"num_hidden_layers": 5, "no_rope_layers": None, "no_rope_layer_interval": 4}
    if family == "gemma2":
        found |= {"attn_logit_softcapping": 7.5, "final_logit_softcapping": 20.0}
        found["layer_types"] = None
    if family == "gemma3_text":
        found |= {"num_hidden_layers": 7, "layer_types": None, "sliding_window_pattern": 6}
    if family in ("gemma2", "gemma3_text"):
        found["query_pre_attn_scalar"] = head_dim
    if family == "gpt2":
        found["n_inner"] = 4 * found["n_embd"]
        return found
    return found | _sayable_rotation(family, found, head_dim, random)


def _sayable_rotation(
    family: str, config: Json, head_dim: int, random: np.random.Generator
) -> Json:
    """Return the fields of a rotation that can be said."""
    theta = float(random.choice([50.0, 10000.0, 1e6]))
    if family == "gemma3_text":
        linear = {"rope_type": "linear", "factor": 8.0}
        full = {"rope_theta": theta, **(linear if random.integers(2) else {"rope_type": "default"})}
        near = {"rope_theta": 70.0, "rope_type": "default"}
        return {"rope_parameters": {"full_attention": full, "sliding_attention": near}}
    if family == "phi3":  # the converter writes all that there is
        return {}
    if family not in BASE:
        plain: Json = {"rope_theta": 10000.0, "rope_type": "default"}
        if family in ("gpt_neox", "phi", "stablelm"):
            lanes = 2 * int(random.integers(1, head_dim // 2 + 1))
            plain["partial_rotary_factor"] = min((lanes + 0.5) / head_dim, 1.0)
        return {"rope_parameters": plain}
    kinds: list[Json] = [
        {"rope_type": "default"},
        {"rope_type": "linear", "factor": 3.0},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10},
        {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 10}
        | {"beta_fast": 2.0, "beta_slow": 0.5, "attention_factor": 1.25},
    ]
    if family in PERMUTED:
        kinds.append({"rope_type": "llama3", "factor": 32.0, **LLAMA3})
    return {"rope_parameters": {"rope_theta": theta, **kinds[int(random.integers(len(kinds)))]}}


def convert(folder: Path, path: Path, metadata: Json | None = None) -> Path:
    """Write a folder with config.json and model.safetensors as a GGUF file, all of it float32.

    Args:
        folder: of Hugging Face.
        path: of the file.
        metadata: entries besides, such as a tokenizer, or instead; None takes one away.
    """
    config = AutoConfig.from_pretrained(folder)
    family = config.model_type
    name = NAMES.get(family, family)
    writer = gguf.GGUFWriter(path, name)
    (_SAID.get(family, _base))(writer, config)
    numbers = {one: number for number, one in gguf.MODEL_ARCH_NAMES.items()}
    names = gguf.get_tensor_name_map(numbers[name], config.num_hidden_layers)
    for stored, tensor in load_file(folder / "model.safetensors").items():
        known = names.get_name(stored, try_suffixes=(".weight", ".bias"))
        if known is None:
            assert stored == "lm_head.weight", stored
            known = "output.weight"
        writer.add_tensor(known, np.ascontiguousarray(_turned(config, stored, tensor)))
    for more, tensor in _more(config).items():
        writer.add_tensor(f"{more}.weight", tensor)
    for key, value in (metadata or {}).items():
        if value is None:
            del writer.kv_data[0][key]
        add_entry(writer, key, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _turned(config: Hf, name: str, tensor: Array) -> Array:
    """Return a tensor as modify_tensors of the architecture's converter leaves it."""
    family, heads = config.model_type, config.num_attention_heads
    if family in PERMUTED and ".q_proj." in name:
        return permuted(tensor, heads)
    if family in PERMUTED and ".k_proj." in name:
        return permuted(tensor, config.num_key_value_heads)
    if family in GEMMAS and name.endswith("norm.weight"):
        return tensor + 1
    if family == "gpt2" and name.endswith((".c_attn.weight", ".c_proj.weight", ".c_fc.weight")):
        return tensor.T
    if "query_key_value" in name:
        kv_heads = heads if family == "gpt_neox" else _kv_heads_of_falcon(config)
        groups = tensor.reshape(kv_heads, heads // kv_heads + 2, -1, *tensor.shape[1:])
        parts = (groups[:, :-2], groups[:, -2:-1], groups[:, -1:])
        return np.concatenate([one.reshape(-1, *tensor.shape[1:]) for one in parts])
    return tensor


def _more(config: Hf) -> dict[str, Array]:
    """Return what generate_extra_tensors makes: factors of frequencies."""
    given = getattr(config, "rope_parameters", None) or {}
    if given.get("long_factor"):
        return {
            f"rope_factors_{kind}": np.array(given[f"{kind}_factor"], np.float32)
            for kind in ("long", "short")
        }
    if given.get("rope_type") != "llama3":
        return {}
    lanes = _head_dim(config)
    waves = 2 * np.pi * given["rope_theta"] ** (np.arange(0, lanes, 2) / lanes)
    factor, context = given["factor"], LLAMA3["original_max_position_embeddings"]
    smooth = (context / waves - 1) / 3
    middle = 1 / ((1 - smooth) / factor + smooth)
    found = np.where(waves < context / 4, 1, np.where(waves > context, factor, middle))
    return {"rope_freqs": found.astype(np.float32)}


def _head_dim(config: Hf) -> int:
    own = getattr(config, "head_dim", None)
    return int(own or config.hidden_size // config.num_attention_heads)


def _kv_heads_of_falcon(config: Hf) -> int:
    return config.num_kv_heads if config.new_decoder_architecture else 1


def _sizes(writer: Writer, config: Hf, ffn: int, kv_heads: int | None = None) -> None:
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(ffn)
    writer.add_head_count(config.num_attention_heads)
    if kv_heads is not None:
        writer.add_head_count_kv(kv_heads)


def _base(writer: Writer, config: Hf) -> None:
    """TextModel, LlamaModel, GraniteModel and Gemma3Model."""
    family = config.model_type
    _sizes(writer, config, config.intermediate_size, config.num_key_value_heads)
    if family == "starcoder2":
        writer.add_layer_norm_eps(config.norm_epsilon)
    else:
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    own = getattr(config, "head_dim", None)
    if own is not None and family != "granite":
        writer.add_key_length(own)
        writer.add_value_length(own)
    rope = config.rope_parameters
    if "sliding_attention" in rope:
        writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    rope = rope.get("full_attention", rope)
    writer.add_rope_freq_base(rope["rope_theta"])
    _scaling(writer, rope)
    if family in PERMUTED:
        writer.add_vocab_size(config.vocab_size)
        writer.add_rope_dimension_count(_head_dim(config))
    if family == "granite":
        writer.add_attention_scale(config.attention_multiplier)
        writer.add_embedding_scale(config.embedding_multiplier)
        writer.add_residual_scale(config.residual_multiplier)
        writer.add_logit_scale(config.logits_scaling)
    if family == "gemma3_text":
        if config.final_logit_softcapping:
            writer.add_final_logit_softcapping(config.final_logit_softcapping)
        writer.add_sliding_window(config.sliding_window)


def _scaling(writer: Writer, rope: Json) -> None:
    kind = rope.get("rope_type")
    if kind == "linear":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LINEAR)
        writer.add_rope_scaling_factor(rope["factor"])
    if kind == "yarn":
        writer.add_rope_scaling_type(gguf.RopeScalingType.YARN)
        writer.add_rope_scaling_factor(rope["factor"])
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        if rope.get("attention_factor") is not None:
            writer.add_rope_scaling_yarn_attn_factor(rope["attention_factor"])
        if rope.get("beta_fast") is not None:
            writer.add_rope_scaling_yarn_beta_fast(rope["beta_fast"])
        if rope.get("beta_slow") is not None:
            writer.add_rope_scaling_yarn_beta_slow(rope["beta_slow"])


def _gemma(writer: Writer, config: Hf) -> None:
    _sizes(writer, config, config.intermediate_size, config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_key_length(config.head_dim)
    writer.add_value_length(config.head_dim)
    if config.model_type == "gemma2":
        writer.add_attn_logit_softcapping(config.attn_logit_softcapping)
        writer.add_final_logit_softcapping(config.final_logit_softcapping)
        writer.add_sliding_window(config.sliding_window)


def _phi(writer: Writer, config: Hf) -> None:
    _sizes(writer, config, 4 * config.hidden_size, config.num_attention_heads)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_rope_dimension_count(_lanes(config))
    writer.add_add_bos_token(False)


def _phi3(writer: Writer, config: Hf) -> None:
    _sizes(writer, config, config.intermediate_size, config.num_key_value_heads)
    rope, original = config.rope_parameters, config.original_max_position_embeddings
    writer.add_rope_scaling_orig_ctx_len(original)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_dimension_count(_lanes(config))
    writer.add_rope_freq_base(rope["rope_theta"])
    writer.add_sliding_window(config.sliding_window or 0)
    if rope.get("long_factor"):
        scale = config.max_position_embeddings / original
        grown = math.sqrt(1 + math.log(scale) / math.log(original)) if scale > 1 else 1.0
        writer.add_rope_scaling_attn_factors(grown)


def _stablelm(writer: Writer, config: Hf) -> None:
    _sizes(writer, config, config.intermediate_size, config.num_key_value_heads)
    writer.add_rope_dimension_count(_lanes(config))
    writer.add_parallel_residual(True)  # of every model whose config.json does not have the field
    writer.add_layer_norm_eps(config.layer_norm_eps)


def _gpt_neox(writer: Writer, config: Hf) -> None:
    _sizes(writer, config, config.intermediate_size)
    writer.add_rope_dimension_count(_lanes(config))
    writer.add_parallel_residual(config.use_parallel_residual)
    writer.add_layer_norm_eps(config.layer_norm_eps)


def _falcon(writer: Writer, config: Hf) -> None:
    _sizes(writer, config, 4 * config.hidden_size, _kv_heads_of_falcon(config))
    writer.add_tensor_data_layout("jploski")
    writer.add_layer_norm_eps(config.layer_norm_epsilon)


def _gpt2(writer: Writer, config: Hf) -> None:
    _sizes(writer, config, 4 * config.hidden_size)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)


def _lanes(config: Hf) -> int:
    return int(config.rope_parameters.get("partial_rotary_factor", 1.0) * _head_dim(config))


_SAID: dict[str, Callable[[Writer, Hf], None]] = {
    "falcon": _falcon,
    "gemma": _gemma,
    "gemma2": _gemma,
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
    "phi": _phi,
    "phi3": _phi3,
    "stablelm": _stablelm,
}
"""What set_gguf_parameters writes, where it is not the base class's."""
