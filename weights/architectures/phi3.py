# SPDX-License-Identifier: Apache-2.0
"""Phi-3, Phi-3.5 mini, Phi-4 and Phi-4-mini: LLaMA with fused matrices and long rotations.

Abdin et al., "Phi-3 Technical Report" (2024).
"""

from __future__ import annotations

from weights.architecture import Architecture, Config, Stored
from weights.architectures.llama import (
    BUFFERS,
    WINDOW,
    gguf_form,
    parse_common,
    with_window,
    write_common,
)
from weights.checkpoint import CheckpointShape
from weights.stored_layers import stored_layers

MODULES = {
    "input_layernorm": ("norm1",),
    "post_attention_layernorm": ("norm2",),
    "self_attn.qkv_proj": ("q", "k", "v"),
    "self_attn.o_proj": ("o",),
    "mlp.gate_up_proj": ("gate", "up"),
    "mlp.down_proj": ("down",),
}
ROPE = {"share": 1.0, "original": 4096, "names": {"su": "longrope", "yarn": "longrope"}}
"""Of transformers' Phi3Config, which has called longrope otherwise."""


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' Phi3Config."""
    config.fixed("attention_bias", False)
    config.fixed("mlp_bias", False)
    shape = parse_common(
        "phi3",
        config,
        vocab=32064,
        hidden=3072,
        ffn=8192,
        context=4096,
        epsilon=("rms_norm_eps", 1e-5),
        rope=ROPE,
    )
    return with_window(shape, config.optional_size("sliding_window", None))


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config; the original context stands beside the other options of rotations."""
    config = write_common(shape, share=True) | {
        "sliding_window": shape.window or None,
        "pad_token_id": None,
    }
    original = shape.rotation(0).said.get("original_max_position_embeddings")
    return config if original is None else config | {"original_max_position_embeddings": original}


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    return stored_layers(shape, MODULES)


ARCHITECTURE = Architecture(
    family="phi3",
    classes=("Phi3ForCausalLM", "Phi3Model"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=gguf_form({WINDOW: "sliding_window"}, optional=(WINDOW,), partial=True),
)
