# SPDX-License-Identifier: Apache-2.0
"""LLaMA: RMSNorm, rotary positions, grouped queries, SwiGLU.

Touvron et al., "LLaMA: Open and Efficient Foundation Language Models" (2023). Most architectures
that came later are variations and are described with the functions of this module.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from weights.architecture import FULL, SLIDING, Architecture, Config, GgufForm, Stored
from weights.checkpoint import CheckpointShape
from weights.reference import ACTIVATIONS
from weights.rope_config import parameters, rotated, rotation
from weights.shape import NormKind
from weights.stored_layers import stored_layers

BUFFERS = re.compile(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq")
"""The frequencies of the rotary embedding, which old checkpoints store."""
GGUF = GgufForm(
    {
        "context_length": "max_position_embeddings",
        "embedding_length": "hidden_size",
        "block_count": "num_hidden_layers",
        "feed_forward_length": "intermediate_size",
        "attention.head_count": "num_attention_heads",
        "attention.head_count_kv": "num_key_value_heads",
        "attention.key_length": "head_dim",
        "attention.layer_norm_rms_epsilon": "rms_norm_eps",
        "rope.freq_base": "rope_theta",
        "vocab_size": "vocab_size",
    },
    optional=("attention.head_count_kv", "attention.key_length", "rope.freq_base", "vocab_size"),
    rotary=True,
)
"""Of all that are built alike."""
ATTENTION_BIAS = ("attention_bias", "blk.0.attn_q.bias")
BIASES = (ATTENTION_BIAS, ("mlp_bias", "blk.0.ffn_gate.bias"))
"""Options that GGUF files say by tensors."""
WINDOW = "attention.sliding_window"
ATTENTION = {
    "self_attn.q_proj": ("q",),
    "self_attn.k_proj": ("k",),
    "self_attn.v_proj": ("v",),
    "self_attn.o_proj": ("o",),
}
FEED_FORWARD = {"mlp.gate_proj": ("gate",), "mlp.up_proj": ("up",), "mlp.down_proj": ("down",)}
MODULES = {
    "input_layernorm": ("norm1",),
    "post_attention_layernorm": ("norm2",),
    **ATTENTION,
    **FEED_FORWARD,
}
"""Of a layer."""
HEAD_NORMS = {"self_attn.q_norm": ("q_norm",), "self_attn.k_norm": ("k_norm",)}


def gguf_form(
    fields: Mapping[str, str] | None = None,
    *,
    epsilon: tuple[str, str] = ("attention.layer_norm_rms_epsilon", "rms_norm_eps"),
    optional: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
    **others: Any,  # noqa: ANN401
) -> GgufForm:
    """Return how GGUF files hold a relative of LLaMA.

    Args:
        fields: that it has beside those of `GGUF`, by keys.
        epsilon: key and field of the norms.
        optional: those of `fields` that may be missing.
        without: keys of `GGUF` that it has no fields for.
        others: attributes of the form.
    """
    gone = {"attention.layer_norm_rms_epsilon", *without}
    common = {key: one for key, one in GGUF.fields.items() if key not in gone}
    return replace(
        GGUF,
        fields={**common, epsilon[0]: epsilon[1], **(fields or {})},
        optional=GGUF.optional + optional,
        **others,
    )


def parse_common(
    family: str,
    config: Config,
    *,
    vocab: int = 32000,
    hidden: int = 4096,
    layers: int = 32,
    heads: int = 32,
    kv_heads: int | None = None,
    head_dim: int | None = None,
    ffn: int,
    context: int,
    tied: bool = False,
    norm: NormKind = "rmsnorm",
    epsilon: tuple[str, float] = ("rms_norm_eps", 1e-6),
    activation: tuple[str, str] = ("hidden_act", "silu"),
    gated: bool = True,
    rope: Mapping[str, Any] | None = None,
) -> CheckpointShape:
    """Return the dimensions without biases and window, given transformers' defaults of a family.

    `epsilon` and `activation` are a field and its default; `rope` has arguments of `rotation`.
    """
    function = config.choice(*activation, ACTIVATIONS)
    tied = config.flag("tie_word_embeddings", tied)
    least = config.epsilon(*epsilon)
    hidden, heads = config.size("hidden_size", hidden), config.size("num_attention_heads", heads)
    shared = config.optional_size("num_key_value_heads", kv_heads) or heads
    if heads % shared:
        raise config.refusal("num_attention_heads", f"a multiple of {shared} K/V heads", heads)
    head_dim = config.optional_size("head_dim", head_dim)
    if head_dim is None and hidden % heads:
        raise config.refusal("hidden_size", f"a multiple of num_attention_heads = {heads}", hidden)
    head_dim = head_dim or hidden // heads
    if head_dim % 2:
        raise config.refusal("head_dim", "an even number (rotary pairs)", head_dim)
    context = config.size("max_position_embeddings", context)
    turned = rotation(config, head_dim, context, **(rope or {}))
    shape = CheckpointShape(
        family=family,
        norm=norm,
        hidden=hidden,
        layers=config.layers("num_hidden_layers", layers),
        heads=heads,
        kv_heads=shared,
        head_dim=head_dim,
        ffn=config.size("intermediate_size", ffn),
        vocab=config.size("vocab_size", vocab),
        context=context,
        epsilon=least,
        activation=function,
        gated=gated,
        tied=tied,
    )
    return rotated(shape, [turned])


def with_window(
    shape: CheckpointShape, window: int | None, kinds: Sequence[str] = (SLIDING,)
) -> CheckpointShape:
    """Return the shape with a sliding window, of all layers or of those of this kind.

    A window that sees the whole context is none.
    """
    size = 0 if window is None or window >= shape.context else window
    windows = tuple(size * (kind == SLIDING) for kind in kinds)
    alike = len(set(windows)) == 1
    return replace(shape, window=windows[0] * alike, windows=() if alike else windows)


def written_window(shape: CheckpointShape) -> dict[str, object]:
    """Return the window and which layers have it."""
    windows = [shape.window_of(layer) for layer in range(shape.layers)]
    return {
        "sliding_window": max(windows) or None,
        "layer_types": [SLIDING if window else FULL for window in windows],
    }


def write_common(
    shape: CheckpointShape,
    *,
    epsilon: str = "rms_norm_eps",
    activation: str = "hidden_act",
    share: bool = False,
) -> dict[str, object]:
    """Return the config without biases and window; names of two fields, and if heads have a share.

    That is how much of each is turned.
    """
    return {
        "hidden_size": shape.hidden,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.ffn,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.context,
        epsilon: shape.epsilon,
        activation: shape.activation,
        "rope_parameters": parameters(shape.rotation(0), shape.head_dim, share=share),
        "tie_word_embeddings": shape.tied,
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors; matrices are (out, in)."""
    return stored_layers(shape, MODULES)


def full_attention(config: Config, shape: CheckpointShape) -> CheckpointShape:
    """Return the shape of a family without windows."""
    config.fixed("sliding_window", None)
    if SLIDING in (config.layer_types(shape.layers) or ()):
        raise config.refusal("layer_types", "full_attention throughout (no sliding_window)")
    return shape


def with_biases(config: Config, shape: CheckpointShape) -> CheckpointShape:
    """Return the shape with the biases of layers that two options say."""
    attention = ("q", "k", "v", "o") if config.flag("attention_bias", False) else ()
    feed_forward = ("gate", "up", "down") if config.flag("mlp_bias", False) else ()
    return replace(shape, biases=attention + feed_forward)


def written_biases(shape: CheckpointShape) -> dict[str, object]:
    """Return the two options."""
    return {"attention_bias": "q" in shape.biases, "mlp_bias": "gate" in shape.biases}


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' LlamaConfig."""
    shape = parse_common("llama", config, ffn=11008, context=2048)
    return with_biases(config, full_attention(config, shape))


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape) | written_biases(shape)


ARCHITECTURE = Architecture(
    family="llama",
    classes=("LlamaForCausalLM", "LlamaModel"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=replace(GGUF, present=BIASES, permuted=True),
)
