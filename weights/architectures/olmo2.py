# SPDX-License-Identifier: Apache-2.0
"""OLMo 2: norms behind both parts and none before them, and of whole rows of queries and keys.

OLMo Team, "2 OLMo 2 Furious" (2024).
"""

from __future__ import annotations

from dataclasses import replace

from weights.architecture import Architecture, Config, Stored
from weights.architectures.llama import (
    ATTENTION,
    ATTENTION_BIAS,
    BUFFERS,
    FEED_FORWARD,
    GGUF,
    HEAD_NORMS,
    full_attention,
    parse_common,
    write_common,
)
from weights.checkpoint import CheckpointShape
from weights.stored_layers import stored_layers

MODULES = {
    **ATTENTION,
    **HEAD_NORMS,
    "post_attention_layernorm": ("o_norm",),
    **FEED_FORWARD,
    "post_feedforward_layernorm": ("down_norm",),
}


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' Olmo2Config."""
    shape = parse_common(
        "olmo2",
        config,
        vocab=50304,
        ffn=11008,
        context=2048,
        epsilon=("rms_norm_eps", 1e-5),
    )
    biases = ("q", "k", "v", "o") if config.flag("attention_bias", False) else ()
    shape = replace(shape, biases=biases, head_norms="row", pre_norms=False, part_norms=True)
    return full_attention(config, shape)


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape) | {"attention_bias": "q" in shape.biases}


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    return stored_layers(shape, MODULES)


ARCHITECTURE = Architecture(
    family="olmo2",
    classes=("Olmo2ForCausalLM", "Olmo2Model"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=replace(GGUF, present=(ATTENTION_BIAS,)),
)
