# SPDX-License-Identifier: Apache-2.0
"""Phi-1, 1.5 and 2: attention and feed-forward side by side behind one LayerNorm, partly rotated.

Li et al., "Textbooks Are All You Need II: phi-1.5 technical report" (2023).
"""

from __future__ import annotations

from dataclasses import replace

from weights.architecture import Architecture, Config, Stored
from weights.architectures.llama import ATTENTION, BUFFERS, gguf_form, parse_common, write_common
from weights.checkpoint import CheckpointShape
from weights.stored_layers import stored_layers

MODULES = {
    **{name: part for name, part in ATTENTION.items() if part != ("o",)},
    "self_attn.dense": ("o",),
    "mlp.fc1": ("up",),
    "mlp.fc2": ("down",),
    "input_layernorm": ("norm1",),
}
LINEARS = ("q", "k", "v", "o", "up", "down", "head")
EPSILON = "layer_norm_eps"


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' PhiConfig."""
    shape = parse_common(
        "phi",
        config,
        vocab=51200,
        hidden=2048,
        layers=24,
        ffn=8192,
        context=2048,
        norm="layernorm",
        epsilon=(EPSILON, 1e-5),
        activation=("hidden_act", "gelu_new"),
        gated=False,
        rope={"share": 0.5},
    )
    return replace(shape, biases=LINEARS, parallel=True, one_norm=True)


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape, epsilon=EPSILON, share=True)


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors."""
    return stored_layers(shape, MODULES, norm="final_layernorm")


ARCHITECTURE = Architecture(
    family="phi",
    classes=("PhiForCausalLM", "PhiModel"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=gguf_form(name="phi2", epsilon=("attention.layer_norm_epsilon", EPSILON), partial=True),
)
