# SPDX-License-Identifier: Apache-2.0
"""Qwen2 and Qwen2.5: LLaMA with biases on queries, keys and values; small ones tie the head.

Yang et al., "Qwen2 Technical Report" (2024).
"""

from __future__ import annotations

from dataclasses import replace

from weights.architecture import Architecture, Config
from weights.architectures.llama import (
    BUFFERS,
    GGUF,
    parse_common,
    stored,
    with_window,
    write_common,
)
from weights.checkpoint import CheckpointShape


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' Qwen2Config."""
    config.fixed("mlp_bias", False)
    shape = parse_common("qwen2", config, vocab=151936, ffn=22016, kv_heads=32, context=32768)
    shape = replace(shape, biases=("q", "k", "v"))
    window = config.optional_size("sliding_window", 4096)
    if not config.flag("use_sliding_window", False):
        window = None
    kind = config.layer_types(shape.layers)
    if kind is None:
        kind = _kind(config, shape.layers) if window is not None else "full_attention"
    if kind == "sliding_attention" and window is None:
        raise config.refusal("layer_types", "full_attention throughout (use_sliding_window off)")
    return with_window(shape, window if kind == "sliding_attention" else None)


def _kind(config: Config, layers: int) -> str:
    """Return the kind of all layers: those from max_window_layers on have the window."""
    full = config.content.get("max_window_layers", 28)
    if type(full) is not int or 0 < full < layers:
        allowed = f"0 or at least num_hidden_layers = {layers} (one kind of attention)"
        raise config.refusal("max_window_layers", allowed, full)
    return "full_attention" if full >= layers else "sliding_attention"


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    window = {
        "use_sliding_window": shape.window > 0,
        "sliding_window": shape.window or None,
        "max_window_layers": 0 if shape.window else shape.layers,
    }
    return write_common(shape) | window


ARCHITECTURE = Architecture(
    family="qwen2",
    classes=("Qwen2ForCausalLM", "Qwen2Model"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=GGUF,
)
