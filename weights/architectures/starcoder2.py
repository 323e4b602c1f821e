# SPDX-License-Identifier: Apache-2.0
"""StarCoder2: rotary positions and grouped queries with LayerNorm, biases and GELU.

Lozhkov et al., "StarCoder 2 and The Stack v2: The Next Generation" (2024).
"""

from __future__ import annotations

from dataclasses import replace

from weights.architecture import Architecture, Config, Stored
from weights.architectures.llama import (
    ATTENTION,
    BUFFERS,
    WINDOW,
    gguf_form,
    parse_common,
    with_window,
    write_common,
)
from weights.checkpoint import CheckpointShape
from weights.stored_layers import stored_layers

LINEARS = ("q", "k", "v", "o", "up", "down")
MODULES = {
    "input_layernorm": ("norm1",),
    "post_attention_layernorm": ("norm2",),
    **ATTENTION,
    "mlp.c_fc": ("up",),
    "mlp.c_proj": ("down",),
}
EPSILON = "norm_epsilon"


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' Starcoder2Config."""
    shape = parse_common(
        "starcoder2",
        config,
        vocab=49152,
        hidden=3072,
        layers=30,
        heads=24,
        kv_heads=2,
        ffn=12288,
        context=4096,
        tied=True,
        norm="layernorm",
        epsilon=(EPSILON, 1e-5),
        activation=("hidden_act", "gelu_pytorch_tanh"),
        gated=False,
    )
    biases = LINEARS if config.flag("use_bias", True) else ()
    window = config.optional_size("sliding_window", None)
    return with_window(replace(shape, biases=biases), window)


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape, epsilon=EPSILON) | {
        "use_bias": "q" in shape.biases,
        "sliding_window": shape.window or None,
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    return stored_layers(shape, MODULES)


ARCHITECTURE = Architecture(
    family="starcoder2",
    classes=("Starcoder2ForCausalLM", "Starcoder2Model"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=gguf_form(
        {WINDOW: "sliding_window"},
        epsilon=("attention.layer_norm_epsilon", EPSILON),
        optional=(WINDOW,),
        present=(("use_bias", "blk.0.attn_output.bias"),),
    ),
)
