# SPDX-License-Identifier: Apache-2.0
"""Granite 3: LLaMA with multipliers of embeddings, scores, what parts add, and logits.

Granite Team, "Granite 3.0 Language Models" (2024).
"""

from __future__ import annotations

from weights.architecture import Architecture, Config, Factors, attention_factor, stream_factors
from weights.architectures.llama import (
    BIASES,
    BUFFERS,
    full_attention,
    gguf_form,
    parse_common,
    stored,
    with_biases,
    write_common,
    written_biases,
)
from weights.checkpoint import CheckpointShape

MULTIPLIERS = {
    "embedding_multiplier": 12.0,
    "attention_multiplier": 0.2,
    "residual_multiplier": 0.22,
    "logits_scaling": 8.0,
}
"""What is written, near those of published models; where none is given, all are 1."""
SCALES = {
    "embedding_scale": "embedding_multiplier",
    "attention.scale": "attention_multiplier",
    "residual_scale": "residual_multiplier",
    "logit_scale": "logits_scaling",
}
"""The multipliers by their keys in GGUF files, where a missing scale of scores is another one."""


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' GraniteConfig."""
    shape = parse_common("granite", config, ffn=11008, context=2048)
    for field in MULTIPLIERS:
        config.number(field, 1.0)
    return with_biases(config, full_attention(config, shape))


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape) | written_biases(shape) | MULTIPLIERS


def factors(config: Config, shape: CheckpointShape) -> Factors:
    """Return the multipliers."""
    embedding, attention, residual, logits = (config.number(field, 1.0) for field in MULTIPLIERS)
    return {
        **stream_factors(shape, embedding=embedding, logits=1 / logits),
        **attention_factor(shape, attention),
        "o": residual,
        "down": residual,
    }


ARCHITECTURE = Architecture(
    family="granite",
    classes=("GraniteForCausalLM", "GraniteModel"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    options=tuple(MULTIPLIERS),
    factors=factors,
    gguf=gguf_form(
        SCALES,
        optional=("embedding_scale", "residual_scale", "logit_scale"),
        fixed={"rope.scaling.finetuned": (True,)},  # else positions are not rotated
        present=BIASES,
        permuted=True,
    ),
)
