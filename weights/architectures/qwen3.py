# SPDX-License-Identifier: Apache-2.0
"""Qwen3: LLaMA with heads of a size of their own, whose queries and keys are normalised.

Qwen Team, "Qwen3 Technical Report" (2025).
"""

from __future__ import annotations

from dataclasses import replace

from weights.architecture import Architecture, Config, Stored
from weights.architectures.llama import (
    ATTENTION_BIAS,
    BUFFERS,
    GGUF,
    HEAD_NORMS,
    MODULES,
    parse_common,
    with_window,
    write_common,
)
from weights.architectures.qwen2 import windows, written
from weights.checkpoint import CheckpointShape
from weights.stored_layers import stored_layers

HEAD_DIM = 128
"""Of transformers' Qwen3Config."""


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' Qwen3Config."""
    shape = parse_common(
        "qwen3", config, vocab=151936, ffn=22016, kv_heads=32, context=32768, head_dim=HEAD_DIM
    )
    biases = ("q", "k", "v", "o") if config.flag("attention_bias", False) else ()
    shape = replace(shape, biases=biases, head_norms="head")
    return with_window(shape, *windows(config, shape.layers))


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape) | written(shape) | {"attention_bias": bool(shape.biases)}


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    return stored_layers(shape, MODULES | HEAD_NORMS)


ARCHITECTURE = Architecture(
    family="qwen3",
    classes=("Qwen3ForCausalLM", "Qwen3Model"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=replace(GGUF, present=(ATTENTION_BIAS,)),
)
