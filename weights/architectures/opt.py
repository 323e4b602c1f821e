# SPDX-License-Identifier: Apache-2.0
"""OPT: LayerNorm before both parts, learned positions with two rows in front, ReLU.

Zhang et al., "OPT: Open Pre-trained Transformer Language Models" (2022).
"""

from __future__ import annotations

import re

from weights.architecture import Architecture, Config, Stored
from weights.checkpoint import CheckpointShape
from weights.reference import ACTIVATIONS
from weights.stored_layers import stored_layers

LINEARS = ("q", "k", "v", "o", "up", "down")
MODULES = {
    "self_attn_layer_norm": ("norm1",),
    "self_attn.q_proj": ("q",),
    "self_attn.k_proj": ("k",),
    "self_attn.v_proj": ("v",),
    "self_attn.out_proj": ("o",),
    "final_layer_norm": ("norm2",),
    "fc1": ("up",),
    "fc2": ("down",),
}
EPSILON = 1e-5
"""Of PyTorch's LayerNorm; a config has none."""


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' OPTConfig."""
    config.fixed("do_layer_norm_before", True)
    config.fixed("_remove_final_layer_norm", False)
    config.fixed("layer_norm_elementwise_affine", True)
    hidden, heads = config.size("hidden_size", 768), config.size("num_attention_heads", 12)
    config.fixed("word_embed_proj_dim", hidden, None)
    if hidden % heads:
        raise config.refusal("hidden_size", f"a multiple of num_attention_heads = {heads}", hidden)
    return CheckpointShape(
        family="opt",
        norm="layernorm",
        hidden=hidden,
        layers=config.layers("num_hidden_layers", 12),
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=config.size("ffn_dim", 3072),
        vocab=config.size("vocab_size", 50272),
        context=config.size("max_position_embeddings", 2048),
        epsilon=EPSILON,
        activation=config.choice("activation_function", "relu", ACTIVATIONS),
        biases=LINEARS if config.flag("enable_bias", True) else (),
        tied=config.flag("tie_word_embeddings", True),
    )


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return {
        "hidden_size": shape.hidden,
        "word_embed_proj_dim": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "ffn_dim": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "activation_function": shape.activation,
        "enable_bias": "q" in shape.biases,
        "tie_word_embeddings": shape.tied,
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    return stored_layers(
        shape,
        MODULES,
        layer="decoder.layers.{}",
        embed="decoder.embed_tokens",
        norm="decoder.final_layer_norm",
        positions="decoder.embed_positions",
        skipped=2,
    )


ARCHITECTURE = Architecture(
    family="opt",
    classes=("OPTForCausalLM", "OPTModel"),
    prefix="model.",
    buffers=re.compile(r"decoder\.version"),
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
)
