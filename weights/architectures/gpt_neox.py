# SPDX-License-Identifier: Apache-2.0
"""GPT-NeoX and Pythia: attention and feed-forward side by side, rotated in a quarter of every head.

Black et al., "GPT-NeoX-20B: An Open-Source Autoregressive Language Model" (2022).
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from weights.architecture import Architecture, Config, Stored
from weights.architectures.llama import gguf_form, parse_common, write_common
from weights.checkpoint import CheckpointShape
from weights.stored_layers import stored_layers

MODULES = {
    "input_layernorm": ("norm1",),
    "post_attention_layernorm": ("norm2",),
    "attention.query_key_value": ("q", "k", "v"),
    "attention.dense": ("o",),
    "mlp.dense_h_to_4h": ("up",),
    "mlp.dense_4h_to_h": ("down",),
}
HEAD = "embed_out.weight"
EPSILON = "layer_norm_eps"


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' GPTNeoXConfig."""
    shape = parse_common(
        "gpt_neox",
        config,
        vocab=50432,
        hidden=6144,
        layers=44,
        heads=64,
        ffn=24576,
        context=2048,
        norm="layernorm",
        epsilon=(EPSILON, 1e-5),
        activation=("hidden_act", "gelu"),
        gated=False,
        rope={"share": 0.25, "share_field": "rotary_pct", "theta_field": "rotary_emb_base"},
    )
    attention = ("q", "k", "v", "o") if config.flag("attention_bias", True) else ()
    parallel = config.flag("use_parallel_residual", True)
    return replace(shape, biases=(*attention, "up", "down"), parallel=parallel)


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape, epsilon=EPSILON, share=True) | {
        "attention_bias": "q" in shape.biases,
        "use_parallel_residual": shape.parallel,
    }


stored_whole = partial(stored_layers, modules=MODULES, embed="embed_in", norm="final_layer_norm")
"""Makes the tensors as GGUF files have them: all of q before all of k and of v."""


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors; q, k and v lie head by head."""
    return stored_whole(shape, grouped=True)


ARCHITECTURE = Architecture(
    family="gpt_neox",
    classes=("GPTNeoXForCausalLM", "GPTNeoXModel"),
    prefix="gpt_neox.",
    buffers=re.compile(r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)"),
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    head=HEAD,
    renamed={"lm_head.weight": HEAD},
    gguf=gguf_form(
        {"use_parallel_residual": "use_parallel_residual"},
        name="gptneox",
        epsilon=("attention.layer_norm_epsilon", EPSILON),
        optional=("use_parallel_residual",),
        present=(("attention_bias", "blk.0.attn_qkv.bias"),),
        partial=True,
        stored=stored_whole,
    ),
)
