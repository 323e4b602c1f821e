# SPDX-License-Identifier: Apache-2.0
"""GPT-Neo: GPT-2 whose scores are not scaled, with a window in every second layer.

Black et al., "GPT-Neo: Large Scale Autoregressive Language Modeling with Mesh-Tensorflow" (2021).
"""

from __future__ import annotations

import re

from weights.architecture import (
    FULL,
    SLIDING,
    Architecture,
    Config,
    Factors,
    Stored,
    attention_factor,
)
from weights.architectures.llama import with_window
from weights.checkpoint import CheckpointShape
from weights.reference import ACTIVATIONS
from weights.stored_layers import stored_layers

MODULES = {
    "ln_1": ("norm1",),
    "attn.attention.q_proj": ("q",),
    "attn.attention.k_proj": ("k",),
    "attn.attention.v_proj": ("v",),
    "attn.attention.out_proj": ("o",),
    "ln_2": ("norm2",),
    "mlp.c_fc": ("up",),
    "mlp.c_proj": ("down",),
}
KINDS = {"global": FULL, "local": SLIDING}


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' GPTNeoConfig."""
    hidden, heads = config.size("hidden_size", 2048), config.size("num_heads", 16)
    if hidden % heads:
        raise config.refusal("hidden_size", f"a multiple of num_heads = {heads}", hidden)
    layers = config.layers("num_layers", 24)
    shape = CheckpointShape(
        family="gpt_neo",
        norm="layernorm",
        hidden=hidden,
        layers=layers,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=config.optional_size("intermediate_size", None) or 4 * hidden,
        vocab=config.size("vocab_size", 50257),
        context=config.size("max_position_embeddings", 2048),
        epsilon=config.epsilon("layer_norm_epsilon", 1e-5),
        activation=config.choice("activation_function", "gelu_new", ACTIVATIONS),
        biases=("o", "up", "down"),
        tied=config.flag("tie_word_embeddings", True),
    )
    return with_window(shape, config.size("window_size", 256), _kinds(config, layers))


def _kinds(config: Config, layers: int) -> list[str]:
    """Return the kind of attention of each layer: lists of kinds, and how often each comes."""
    given = config.content.get("attention_types") or [[list(KINDS), 12]]
    try:
        found = [KINDS[kind] for kinds, count in given for kind in kinds * min(count, layers + 1)]
    except (KeyError, TypeError, ValueError):
        found = []
    if len(found) != layers:
        allowed = f"lists of {list(KINDS)} with how often they come, {layers} layers in all"
        raise config.refusal("attention_types", allowed, given)
    return found


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    windows = [shape.window_of(layer) for layer in range(shape.layers)]
    return {
        "hidden_size": shape.hidden,
        "num_layers": shape.layers,
        "num_heads": shape.heads,
        "intermediate_size": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "layer_norm_epsilon": shape.epsilon,
        "activation_function": shape.activation,
        "window_size": max(windows) or shape.context,
        "attention_types": [[["local" if window else "global"], 1] for window in windows],
        "tie_word_embeddings": shape.tied,
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    return stored_layers(shape, MODULES, layer="h.{}", embed="wte", norm="ln_f", positions="wpe")


def factors(config: Config, shape: CheckpointShape) -> Factors:
    """Return what undoes the scale of scores."""
    return attention_factor(shape, 1.0)


ARCHITECTURE = Architecture(
    family="gpt_neo",
    classes=("GPTNeoForCausalLM", "GPTNeoModel"),
    prefix="transformer.",
    buffers=re.compile(r"h\.\d+\.attn\.attention\.(bias|masked_bias)"),  # the causal mask
    layers_field="num_layers",
    parse=parse,
    write=write,
    stored=stored,
    factors=factors,
)
