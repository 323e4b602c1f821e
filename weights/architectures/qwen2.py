# SPDX-License-Identifier: Apache-2.0
"""Qwen2 and Qwen2.5: LLaMA with biases on queries, keys and values; small ones tie the head.

Yang et al., "Qwen2 Technical Report" (2024).
"""

from __future__ import annotations

from dataclasses import replace

from weights.architecture import FULL, SLIDING, Architecture, Config
from weights.architectures.llama import (
    BUFFERS,
    GGUF,
    parse_common,
    stored,
    with_window,
    write_common,
    written_window,
)
from weights.checkpoint import CheckpointShape


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' Qwen2Config."""
    config.fixed("mlp_bias", False)
    shape = parse_common("qwen2", config, vocab=151936, ffn=22016, kv_heads=32, context=32768)
    shape = replace(shape, biases=("q", "k", "v"))
    return with_window(shape, *windows(config, shape.layers))


def windows(config: Config, layers: int) -> tuple[int | None, list[str]]:
    """Return the window and which layers have it: those from max_window_layers on."""
    window = config.optional_size("sliding_window", 4096)
    kinds = config.layer_types(layers)
    if not config.flag("use_sliding_window", False) or window is None:
        if SLIDING in (kinds or ()):
            raise config.refusal("layer_types", f"{FULL} throughout (use_sliding_window off)")
        return None, [FULL]
    full = config.content.get("max_window_layers", 28)
    if type(full) is not int or full < 0:
        raise config.refusal("max_window_layers", "int >= 0", full)
    return window, kinds or [FULL if layer < full else SLIDING for layer in range(layers)]


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape) | written(shape)


def written(shape: CheckpointShape) -> dict[str, object]:
    """Return the window and which layers have it."""
    window = written_window(shape)
    return window | {"use_sliding_window": window["sliding_window"] is not None}


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
