# SPDX-License-Identifier: Apache-2.0
"""LLaMA: RMSNorm, rotary positions, grouped queries, SwiGLU.

Touvron et al., "LLaMA: Open and Efficient Foundation Language Models" (2023). Mistral, Qwen2 and
Qwen3 are variations and are described with the functions of this module.
"""

from __future__ import annotations

import re
from dataclasses import replace

from weights.architecture import Architecture, Config, GgufForm, Stored
from weights.checkpoint import CheckpointShape
from weights.reference import SILU

BUFFERS = re.compile(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq")
"""The frequencies of the rotary embedding, which old checkpoints store."""
GGUF = GgufForm(
    {
        "context_length": "max_position_embeddings",
        "embedding_length": "hidden_size",
        "block_count": "num_hidden_layers",
        "feed_forward_length": "intermediate_size",
        "attention.head_count": "num_attention_heads",
        "attention.head_count_kv": "num_key_value_heads",
        "attention.key_length": "head_dim",
        "attention.layer_norm_rms_epsilon": "rms_norm_eps",
        "rope.freq_base": "rope_theta",
        "vocab_size": "vocab_size",
    },
    optional=("attention.head_count_kv", "attention.key_length", "rope.freq_base", "vocab_size"),
    rotary=True,
)
"""Of all that are built alike."""


def parse_common(
    family: str,
    config: Config,
    *,
    vocab: int = 32000,
    ffn: int,
    kv_heads: int | None = None,
    context: int,
    head_dim: int | None = None,
) -> CheckpointShape:
    """Return the dimensions without biases and window, given transformers' defaults of a family."""
    config.fixed("hidden_act", *SILU)
    tied = config.flag("tie_word_embeddings", False)
    epsilon = config.epsilon("rms_norm_eps", 1e-6)
    theta = config.rope_theta()
    hidden, heads = config.size("hidden_size", 4096), config.size("num_attention_heads", 32)
    shared = config.optional_size("num_key_value_heads", kv_heads) or heads
    if heads % shared:
        raise config.refusal("num_attention_heads", f"a multiple of {shared} K/V heads", heads)
    head_dim = config.optional_size("head_dim", head_dim)
    if head_dim is None and hidden % heads:
        raise config.refusal("hidden_size", f"a multiple of num_attention_heads = {heads}", hidden)
    head_dim = head_dim or hidden // heads
    if head_dim % 2:
        raise config.refusal("head_dim", "an even number (rotary pairs)", head_dim)
    return CheckpointShape(
        family=family,
        norm="rmsnorm",
        hidden=hidden,
        layers=config.size("num_hidden_layers", 32),
        heads=heads,
        kv_heads=shared,
        head_dim=head_dim,
        ffn=config.size("intermediate_size", ffn),
        vocab=config.size("vocab_size", vocab),
        context=config.size("max_position_embeddings", context),
        epsilon=epsilon,
        activation="silu",
        gated=True,
        rope=True,
        rope_theta=theta,
        tied=tied,
    )


def with_window(shape: CheckpointShape, window: int | None) -> CheckpointShape:
    """Return the shape with a sliding window, unless it sees the whole context anyway."""
    return replace(shape, window=0 if window is None or window >= shape.context else window)


def write_common(shape: CheckpointShape) -> dict[str, object]:
    """Return the config without biases and window."""
    return {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "rms_norm_eps": shape.epsilon,
        "hidden_act": shape.activation,
        "rope_parameters": {"rope_theta": shape.rope_theta, "rope_type": "default"},
        "tie_word_embeddings": shape.tied,
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors; matrices are (out, in)."""
    layers = {
        "q": "self_attn.q_proj",
        "k": "self_attn.k_proj",
        "v": "self_attn.v_proj",
        "o": "self_attn.o_proj",
        "gate": "mlp.gate_proj",
        "up": "mlp.up_proj",
        "down": "mlp.down_proj",
    }
    tensors = [Stored("embed_tokens.weight", ("embed",))]
    for layer in range(shape.layers):
        ours, theirs = f"h.{layer}", f"layers.{layer}"
        tensors += [
            Stored(f"{theirs}.input_layernorm.weight", (f"{ours}.norm1.weight",)),
            Stored(f"{theirs}.post_attention_layernorm.weight", (f"{ours}.norm2.weight",)),
        ]
        for part, name in layers.items():
            weight = (f"{ours}.{part}.weight",)
            tensors.append(Stored(f"{theirs}.{name}.weight", weight, transposed=True))
            if part in shape.biases:
                tensors.append(Stored(f"{theirs}.{name}.bias", (f"{ours}.{part}.bias",)))
    return [*tensors, Stored("norm.weight", ("norm.weight",))]


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' LlamaConfig."""
    config.fixed("sliding_window", None)
    shape = parse_common("llama", config, ffn=11008, context=2048)
    if config.layer_types(shape.layers) == "sliding_attention":
        raise config.refusal("layer_types", "full_attention throughout (no sliding_window)")
    attention = ("q", "k", "v", "o") if config.flag("attention_bias", False) else ()
    feed_forward = ("gate", "up", "down") if config.flag("mlp_bias", False) else ()
    return replace(shape, biases=attention + feed_forward)


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    biases = {"attention_bias": "q" in shape.biases, "mlp_bias": "gate" in shape.biases}
    return write_common(shape) | biases


ARCHITECTURE = Architecture(
    family="llama",
    classes=("LlamaForCausalLM", "LlamaModel"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=replace(
        GGUF,
        present=(
            ("attention_bias", "blk.0.attn_q.bias"),
            ("mlp_bias", "blk.0.ffn_gate.bias"),
        ),
        permuted=True,
    ),
)
