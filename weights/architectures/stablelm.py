# SPDX-License-Identifier: Apache-2.0
"""StableLM 2 and StableLM 3B: LLaMA with LayerNorm, rotated in a quarter of every head.

Bellagente et al., "Stable LM 2 1.6B Technical Report" (2024).
"""

from __future__ import annotations

from dataclasses import replace

from weights.architecture import Architecture, Config, Stored
from weights.architectures.llama import BUFFERS, MODULES, gguf_form, parse_common, write_common
from weights.checkpoint import CheckpointShape
from weights.stored_layers import stored_layers

EPSILON = "layer_norm_eps"


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' StableLmConfig."""
    shape = parse_common(
        "stablelm",
        config,
        vocab=50304,
        hidden=2560,
        kv_heads=32,
        ffn=6912,
        context=4096,
        norm="layernorm",
        epsilon=(EPSILON, 1e-5),
        rope={"share": 0.25},
    )
    parallel = config.flag("use_parallel_residual", False)
    biases = ("q", "k", "v") if config.flag("use_qkv_bias", False) else ()
    return replace(shape, biases=biases, parallel=parallel, one_norm=parallel)


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape, epsilon=EPSILON, share=True) | {
        "use_qkv_bias": "q" in shape.biases,
        "use_parallel_residual": shape.parallel,
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors; in parallel both parts have one norm."""
    gone = ("norm2",) if shape.one_norm else ()
    return stored_layers(shape, {name: one for name, one in MODULES.items() if one != gone})


ARCHITECTURE = Architecture(
    family="stablelm",
    classes=("StableLmForCausalLM", "StableLmModel"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=gguf_form(
        epsilon=("attention.layer_norm_epsilon", EPSILON),
        ignored=("use_parallel_residual",),  # true of models that are not parallel
        present=(("use_qkv_bias", "blk.0.attn_q.bias"),),
        absent=(("use_parallel_residual", "blk.0.ffn_norm.weight"),),
        partial=True,
    ),
)
