# SPDX-License-Identifier: Apache-2.0
"""Mistral: LLaMA whose attention may see a sliding window only.

Jiang et al., "Mistral 7B" (2023).
"""

from __future__ import annotations

from weights.architecture import FULL, SLIDING, Architecture, Config
from weights.architectures.llama import (
    BUFFERS,
    WINDOW,
    gguf_form,
    parse_common,
    stored,
    with_window,
    write_common,
)
from weights.checkpoint import CheckpointShape


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' MistralConfig."""
    config.fixed("attention_bias", False)
    config.fixed("mlp_bias", False)
    shape = parse_common("mistral", config, ffn=14336, kv_heads=8, context=4096 * 32)
    window = config.optional_size("sliding_window", 4096)
    wanted = FULL if window is None else SLIDING
    if set(config.layer_types(shape.layers) or ()) - {wanted}:
        raise config.refusal("layer_types", f"{wanted} throughout (sliding_window = {window})")
    return with_window(shape, window)


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    return write_common(shape) | {"sliding_window": shape.window or None}


ARCHITECTURE = Architecture(
    family="mistral",
    classes=("MistralForCausalLM", "MistralModel"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    gguf=gguf_form({WINDOW: "sliding_window"}, name="llama", marked=WINDOW, permuted=True),
)
