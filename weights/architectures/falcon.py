# SPDX-License-Identifier: Apache-2.0
"""Falcon: attention and feed-forward side by side, with one K/V head or a few, and rotations.

Almazrouei et al., "The Falcon Series of Open Language Models" (2023).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from weights.architecture import Architecture, Config, Stored
from weights.architectures.llama import gguf_form
from weights.checkpoint import CheckpointShape
from weights.reference import ACTIVATIONS
from weights.rope_config import parameters, rotated, rotation
from weights.stored_layers import stored_layers

LINEARS = ("q", "k", "v", "o", "up", "down")
MODULES = {
    "self_attention.query_key_value": ("q", "k", "v"),
    "self_attention.dense": ("o",),
    "mlp.dense_h_to_4h": ("up",),
    "mlp.dense_4h_to_h": ("down",),
}
NORMS = {"input_layernorm": ("norm1",), "post_attention_layernorm": ("norm2",)}
SIDE_BY_SIDE = {"ln_attn": ("norm1",), "ln_mlp": ("norm2",)}
NORM_COUNT = "num_ln_in_parallel_attn"


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' FalconConfig."""
    hidden = config.size("n_embed" if "n_embed" in config.content else "hidden_size", 4544)
    heads = config.size("num_attention_heads", 71)
    if hidden % heads or hidden // heads % 2:
        raise config.refusal(
            "hidden_size", f"num_attention_heads = {heads} times an even number", hidden
        )
    new = config.flag("new_decoder_architecture", False)
    several = config.optional_size("num_kv_heads", None) or heads
    kv_heads = several if new else 1 if config.flag("multi_query", True) else heads
    if heads % kv_heads:
        raise config.refusal("num_kv_heads", f"a divisor of {heads} heads", kv_heads)
    parallel = new or config.flag("parallel_attn", True)
    norms = config.optional_size(NORM_COUNT, None) or 1 + new
    if norms > 1 + new:
        raise config.refusal(NORM_COUNT, f"null or 1{' or 2' * new}", norms)
    context = config.size("max_position_embeddings", 2048)
    turned = rotation(config, hidden // heads, context)
    shape = CheckpointShape(
        family="falcon",
        norm="layernorm",
        hidden=hidden,
        layers=config.layers("num_hidden_layers", 32),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=hidden // heads,
        ffn=config.optional_size("ffn_hidden_size", None) or 4 * hidden,
        vocab=config.size("vocab_size", 65024),
        context=context,
        epsilon=config.epsilon("layer_norm_epsilon", 1e-5),
        activation=config.choice("activation", "gelu", ACTIVATIONS),
        biases=LINEARS if config.flag("bias", False) else (),
        parallel=parallel,
        one_norm=parallel and norms == 1,
        tied=config.flag("tie_word_embeddings", True),
    )
    return rotated(shape, [turned])


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config; what is not side by side is of the older kind."""
    return {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_kv_heads": shape.kv_heads,
        "new_decoder_architecture": shape.parallel,
        "multi_query": shape.kv_heads == 1,
        "parallel_attn": shape.parallel,
        NORM_COUNT: 2 - shape.one_norm if shape.parallel else None,
        "ffn_hidden_size": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        "layer_norm_epsilon": shape.epsilon,
        "activation": shape.activation,
        "bias": "q" in shape.biases,
        "rope_parameters": parameters(shape.rotation(0), shape.head_dim),
        "tie_word_embeddings": shape.tied,
    }


def stored(shape: CheckpointShape, *, grouped: bool = True) -> list[Stored]:
    """Return the tensors; the queries of a K/V head lie beside it if `grouped`."""
    norms = SIDE_BY_SIDE if shape.parallel and not shape.one_norm else dict(NORMS)
    if shape.one_norm:
        del norms["post_attention_layernorm"]
    return stored_layers(
        shape,
        MODULES | norms,
        layer="h.{}",
        embed="word_embeddings",
        norm="ln_f",
        grouped=grouped,
    )


def completed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that GGUF files say by tensors: all of them are side by side."""
    return {"new_decoder_architecture": True, NORM_COUNT: 1 + content[NORM_COUNT]}


ARCHITECTURE = Architecture(
    family="falcon",
    classes=("FalconForCausalLM", "FalconModel"),
    prefix="transformer.",
    buffers=re.compile(r"h\.\d+\.self_attention\.rotary_emb\.inv_freq"),
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=gguf_form(
        {"attention.head_count_kv": "num_kv_heads", "feed_forward_length": "ffn_hidden_size"},
        epsilon=("attention.layer_norm_epsilon", "layer_norm_epsilon"),
        without=("attention.key_length",),
        present=((NORM_COUNT, "blk.0.attn_norm_2.weight"), ("bias", "blk.0.attn_qkv.bias")),
        completed=completed,
        stored=partial(stored, grouped=False),
    ),
)
