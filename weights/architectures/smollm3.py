# SPDX-License-Identifier: Apache-2.0
"""SmolLM3: LLaMA with layers that know no positions, every fourth one.

Bakouch et al., "SmolLM3: smol, multilingual, long-context reasoner" (2025).
"""

from __future__ import annotations

from dataclasses import replace

from weights.architecture import FULL, SLIDING, Architecture, Config
from weights.architectures.llama import (
    BIASES,
    BUFFERS,
    GGUF,
    parse_common,
    stored,
    with_biases,
    with_window,
    write_common,
    written_biases,
    written_window,
)
from weights.checkpoint import CheckpointShape
from weights.rope_config import parameters, rotated
from weights.rotation import Rotation


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' SmolLM3Config."""
    shape = parse_common(
        "smollm3",
        config,
        vocab=128256,
        hidden=2048,
        layers=36,
        heads=16,
        kv_heads=4,
        ffn=11008,
        context=32768,
        tied=True,
        rope={"theta": 2e6},
    )
    turned = _turned(config, shape.layers)
    plain = shape.rotation(0)
    shape = rotated(shape, [plain, Rotation(plain.theta, 0)], tuple(1 - one for one in turned))
    window = config.optional_size("sliding_window", None)
    if not config.flag("use_sliding_window", False):
        window = None
    kinds = config.layer_types(shape.layers) or [FULL if one else SLIDING for one in turned]
    return with_biases(config, with_window(shape, window, kinds))


def _turned(config: Config, layers: int) -> list[int]:
    """Return 1 for every layer that has rotations, else 0."""
    given = config.content.get("no_rope_layers")
    if given is None:
        interval = config.size("no_rope_layer_interval", 4)
        return [int((layer + 1) % interval != 0) for layer in range(layers)]
    good = isinstance(given, list) and len(given) >= layers
    if not good or any(type(one) is not int or one not in (0, 1) for one in given):
        raise config.refusal("no_rope_layers", f"{layers} of 0 and 1")
    return list(given[:layers])


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    by_layer = [shape.rotation(shape.table_of(layer)) for layer in range(shape.layers)]
    turned = next((one for one in by_layer if one.lanes), Rotation(2e6, shape.head_dim))
    window = written_window(shape)
    return (
        write_common(shape)
        | written_biases(shape)
        | window
        | {
            "rope_parameters": parameters(turned, shape.head_dim),
            "no_rope_layers": [int(one.lanes > 0) for one in by_layer],
            "use_sliding_window": window["sliding_window"] is not None,
            "pad_token_id": None,
        }
    )


ARCHITECTURE = Architecture(
    family="smollm3",
    classes=("SmolLM3ForCausalLM", "SmolLM3Model"),
    prefix="model.",
    buffers=BUFFERS,
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    options=("no_rope_layers",),
    gguf=replace(GGUF, present=BIASES, permuted=True),  # every fourth layer is not rotated
)
