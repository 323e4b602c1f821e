# SPDX-License-Identifier: Apache-2.0
"""GPT-2: LayerNorm, learned positions, biases everywhere, GELU, a head tied to the token table.

Radford et al., "Language Models are Unsupervised Multitask Learners" (2019).
"""

from __future__ import annotations

import re

from weights.architecture import Architecture, Config, GgufForm, Stored
from weights.checkpoint import CheckpointShape
from weights.reference import ACTIVATIONS

LINEARS = ("q", "k", "v", "o", "up", "down")


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' GPT2Config."""
    config.fixed("scale_attn_weights", True)
    config.fixed("scale_attn_by_inverse_layer_idx", False)
    tied = config.flag("tie_word_embeddings", True)
    activation = config.choice("activation_function", "gelu_new", ACTIVATIONS)
    epsilon = config.epsilon("layer_norm_epsilon", 1e-5)
    hidden, heads = config.size("n_embd", 768), config.size("n_head", 12)
    if hidden % heads:
        raise config.refusal("n_embd", f"a multiple of n_head = {heads}", hidden)
    return CheckpointShape(
        family="gpt2",
        norm="layernorm",
        hidden=hidden,
        layers=config.layers("n_layer", 12),
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        ffn=config.optional_size("n_inner", None) or 4 * hidden,
        vocab=config.size("vocab_size", 50257),
        context=config.size("n_positions", 1024),
        epsilon=epsilon,
        activation=activation,
        biases=LINEARS,
        tied=tied,
    )


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return {
        "n_embd": shape.hidden,
        "n_layer": shape.layers,
        "n_head": shape.heads,
        "n_inner": shape.ffn,
        "vocab_size": shape.vocab,
        "n_positions": shape.context,
        "layer_norm_epsilon": shape.epsilon,
        "activation_function": shape.activation,
        "tie_word_embeddings": shape.tied,
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors; GPT-2 keeps matrices (in, out), and q, k and v as one."""
    layers = {
        "ln_1": ("norm1",),
        "attn.c_attn": ("q", "k", "v"),
        "attn.c_proj": ("o",),
        "ln_2": ("norm2",),
        "mlp.c_fc": ("up",),
        "mlp.c_proj": ("down",),
    }
    return [
        Stored("wte.weight", ("embed",)),
        Stored("wpe.weight", ("positions",)),
        *(
            Stored(f"h.{layer}.{name}.{kind}", tuple(f"h.{layer}.{part}.{kind}" for part in parts))
            for layer in range(shape.layers)
            for name, parts in layers.items()
            for kind in ("weight", "bias")
        ),
        Stored("ln_f.weight", ("norm.weight",)),
        Stored("ln_f.bias", ("norm.bias",)),
    ]


ARCHITECTURE = Architecture(
    family="gpt2",
    classes=("GPT2LMHeadModel", "GPT2Model"),
    prefix="transformer.",
    buffers=re.compile(r"h\.\d+\.attn\.(bias|masked_bias)"),  # the causal mask
    layers_field="n_layer",
    parse=parse,
    write=write,
    stored=stored,
    linear=False,
    gguf=GgufForm(
        {
            "context_length": "n_positions",
            "embedding_length": "n_embd",
            "block_count": "n_layer",
            "feed_forward_length": "n_inner",
            "attention.head_count": "n_head",
            "attention.layer_norm_epsilon": "layer_norm_epsilon",
            "vocab_size": "vocab_size",
        }
    ),
)
