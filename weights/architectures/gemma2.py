# SPDX-License-Identifier: Apache-2.0
"""Gemma 2: Gemma with norms behind both parts, caps of scores and logits, and some windows.

Gemma Team, "Gemma 2: Improving Open Language Models at a Practical Size" (2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from weights.architecture import (
    FULL,
    MAX_LAYERS,
    MAX_SIZE,
    SLIDING,
    Architecture,
    Config,
    Factors,
    Stored,
    attention_factor,
)
from weights.architectures import gemma
from weights.architectures.llama import (
    ATTENTION,
    ATTENTION_BIAS,
    BUFFERS,
    FEED_FORWARD,
    WINDOW,
    gguf_form,
    parse_common,
    with_window,
    write_common,
    written_window,
)
from weights.checkpoint import CheckpointShape
from weights.stored_layers import stored_layers

SCALE = "query_pre_attn_scalar"
OPTIONS = (SCALE, "attn_logit_softcapping", "final_logit_softcapping")
MODULES = {
    "input_layernorm": ("norm1",),
    "post_attention_layernorm": ("o_norm",),
    "pre_feedforward_layernorm": ("norm2",),
    "post_feedforward_layernorm": ("down_norm",),
    **ATTENTION,
    **FEED_FORWARD,
}


GGUF = {
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    WINDOW: "sliding_window",
    f"{WINDOW}_pattern": "layer_types",
}
"""Fields that GGUF files may have, by keys."""
LARGE = (46, 62)
"""Layers of the 27B models, whose scale of scores GGUF files leave to their number."""


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' Gemma2Config."""
    shape = parse_next("gemma2", config, vocab=256000, context=8192, caps=(50.0, 30.0))
    every_second = [FULL if layer % 2 else SLIDING for layer in range(shape.layers)]
    kinds = config.layer_types(shape.layers) or every_second
    return with_window(shape, config.optional_size("sliding_window", 4096), kinds)


def parse_next(
    family: str,
    config: Config,
    *,
    vocab: int,
    context: int,
    caps: tuple[float, float],
    rope: dict[str, Any] | None = None,
) -> CheckpointShape:
    """Return the dimensions of one of Gemma's successors without windows."""
    config.number(SCALE, 256)
    shape = parse_common(
        family,
        config,
        vocab=vocab,
        hidden=2304,
        layers=26,
        heads=8,
        kv_heads=4,
        head_dim=256,
        ffn=9216,
        context=context,
        tied=True,
        activation=("hidden_activation", gemma.GELU_TANH),
        rope=rope,
    )
    return replace(
        shape,
        part_norms=True,
        biases=("q", "k", "v", "o") if config.flag("attention_bias", False) else (),
        score_cap=config.cap("attn_logit_softcapping", caps[0]),
        logit_cap=config.cap("final_logit_softcapping", caps[1]),
    )


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return (
        write_common(shape, activation="hidden_activation")
        | written_window(shape)
        | {
            "attention_bias": "q" in shape.biases,
            "attn_logit_softcapping": shape.score_cap or None,
            "final_logit_softcapping": shape.logit_cap or None,
            SCALE: shape.head_dim,
        }
    )


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors; gains are stored less 1."""
    return stored_layers(shape, MODULES, offset=1.0)


def factors(config: Config, shape: CheckpointShape) -> Factors:
    """Return what multiplies embeddings, and queries for the scale of scores."""
    scale = config.number(SCALE, 256) ** -0.5
    return {**gemma.factors(config, shape), **attention_factor(shape, scale)}


def completed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the scale of scores and the kinds of attention as llama.cpp knows them."""
    names = ("num_hidden_layers", "num_attention_heads", "hidden_size")
    sizes = [content.get(name) for name in names]
    limits = (MAX_LAYERS, MAX_SIZE, MAX_SIZE)
    if any(type(x) is not int or not 1 <= x <= most for x, most in zip(sizes, limits, strict=True)):
        return {}  # refused as such
    layers, heads, hidden = (int(content[name]) for name in names)
    width = hidden // heads
    found: dict[str, Any] = {SCALE: width if layers in LARGE else content["head_dim"] or width}
    kinds = content.get("layer_types")
    if type(kinds) is int and kinds > 0:  # the last of so many is full
        kinds = [(layer + 1) % kinds for layer in range(layers)]
    if isinstance(kinds, list):
        found["layer_types"] = [SLIDING if one else FULL for one in kinds]
    return found


ARCHITECTURE = Architecture(
    family="gemma2",
    classes=("Gemma2ForCausalLM", "Gemma2Model"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    options=OPTIONS,
    factors=factors,
    gguf=gguf_form(
        GGUF,
        optional=tuple(GGUF),
        present=(ATTENTION_BIAS,),
        completed=completed,
        stored=partial(stored_layers, modules=MODULES),
    ),
)
