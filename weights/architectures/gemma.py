# SPDX-License-Identifier: Apache-2.0
"""Gemma: LLaMA with GELU, gains beside 1, and embeddings times the root of their length.

Gemma Team, "Gemma: Open Models Based on Gemini Research and Technology" (2024).
"""

from __future__ import annotations

import math
from dataclasses import replace

from weights.architecture import Architecture, Config, Factors, Stored, stream_factors
from weights.architectures.llama import (
    ATTENTION_BIAS,
    BUFFERS,
    GGUF,
    MODULES,
    full_attention,
    parse_common,
    write_common,
)
from weights.architectures.llama import stored as stored_gains
from weights.checkpoint import CheckpointShape
from weights.stored_layers import stored_layers

GELU_TANH = "gelu_pytorch_tanh"


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' GemmaConfig."""
    config.fixed("hidden_activation", None, GELU_TANH)
    shape = parse_common(
        "gemma",
        config,
        vocab=256000,
        hidden=3072,
        layers=28,
        heads=16,
        kv_heads=16,
        head_dim=256,
        ffn=24576,
        context=8192,
        tied=True,
        activation=("hidden_act", GELU_TANH),
    )
    if shape.activation == "gelu":  # what the first configs said for the other form
        shape = replace(shape, activation=GELU_TANH)
    biases = ("q", "k", "v", "o") if config.flag("attention_bias", False) else ()
    return full_attention(config, replace(shape, biases=biases))


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape) | {"attention_bias": "q" in shape.biases}


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors; gains are stored less 1."""
    return stored_layers(shape, MODULES, offset=1.0)


def factors(config: Config, shape: CheckpointShape) -> Factors:
    """Return what multiplies embeddings."""
    return stream_factors(shape, embedding=math.sqrt(shape.hidden))


ARCHITECTURE = Architecture(
    family="gemma",
    classes=("GemmaForCausalLM", "GemmaModel"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    factors=factors,
    gguf=replace(GGUF, present=(ATTENTION_BIAS,), stored=stored_gains),
)
