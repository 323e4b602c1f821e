# SPDX-License-Identifier: Apache-2.0
"""Gemma 3 of text: Gemma 2 with norms of heads instead of caps, and rotations by kind of attention.

Gemma Team, "Gemma 3 Technical Report" (2025).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from weights.architecture import FULL, SLIDING, Architecture, Config, Stored
from weights.architectures import gemma2
from weights.architectures.llama import ATTENTION_BIAS, BUFFERS, HEAD_NORMS, gguf_form, with_window
from weights.checkpoint import CheckpointShape
from weights.rope_config import parameters, rotated, rotation
from weights.stored_layers import stored_layers

MODULES = gemma2.MODULES | HEAD_NORMS
PATTERN = "sliding_window_pattern"
KINDS = (FULL, SLIDING)
"""Of attention, in the order of the tables of their rotations."""
GGUF = gemma2.GGUF | {"rope.freq_base_swa": "rope_local_base_freq"}
"""Fields that GGUF files may have, by keys."""


def parse(config: Config) -> CheckpointShape:
    """Return the dimensions; defaults are those of transformers' Gemma3TextConfig."""
    full, sliding = _rope(config)
    shape = gemma2.parse_next(
        "gemma3_text", config, vocab=262208, context=131072, caps=(0.0, 0.0), rope=full
    )
    pattern = config.size(PATTERN, 6)
    usual = [SLIDING if (layer + 1) % pattern else FULL for layer in range(shape.layers)]
    kinds = config.layer_types(shape.layers) or usual
    near = rotation(config, shape.head_dim, shape.context, **sliding)
    tables = tuple(map(KINDS.index, kinds))
    shape = rotated(replace(shape, head_norms="head"), [shape.rotation(0), near], tables)
    return with_window(shape, config.optional_size("sliding_window", 4096), kinds)


def _rope(config: Config) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return where the rotations of both kinds of attention are said; older scaling is of one."""
    given = config.content.get("rope_parameters")
    if given is not None and (not isinstance(given, dict) or set(given) - set(KINDS)):
        raise config.refusal("rope_parameters", f"null or a map of {list(KINDS)}")
    full, sliding = (
        {f"rope_parameters.{kind}": (given or {}).get(kind)} for kind in (FULL, SLIDING)
    )
    full["rope_scaling"] = config.content.get("rope_scaling")
    return (
        {"theta": 1e6, "maps": full},
        {"theta": 1e4, "maps": sliding, "theta_field": "rope_local_base_freq"},
    )


def write(shape: CheckpointShape) -> dict[str, object]:
    """Return the config."""
    windows = [shape.window_of(layer) for layer in range(shape.layers)]
    tables = [shape.table_of(layer) for layer in range(shape.layers)]
    pairs = zip(windows, tables, strict=True)
    kinds = [KINDS[window > 0 if any(windows) else table] for window, table in pairs]
    used = {kind: shape.rotation(table) for kind, table in zip(kinds, tables, strict=True)}
    return gemma2.write(shape) | {
        "sliding_window": max(windows) or shape.context,
        "layer_types": kinds,
        "rope_parameters": {kind: parameters(one, shape.head_dim) for kind, one in used.items()},
    }


def stored(shape: CheckpointShape) -> list[Stored]:
    """Return the tensors; gains are stored less 1."""
    return stored_layers(shape, MODULES, offset=1.0)


def completed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that GGUF files leave out; without a window no layer is of its kind."""
    window = {} if "sliding_window" in content else {"sliding_window": None, PATTERN: 1}
    return gemma2.completed(content) | window


ARCHITECTURE = Architecture(
    family="gemma3_text",
    classes=(
        *("Gemma3ForCausalLM", "Gemma3TextModel"),
        *("Gemma3ForConditionalGeneration", "Gemma3Model"),
    ),
    prefix="model.",
    buffers=re.compile(rf"{BUFFERS.pattern}|(vision_tower|multi_modal_projector)\..*"),
    layers_field="num_hidden_layers",
    parse=parse,
    write=write,
    stored=stored,
    options=gemma2.OPTIONS,
    factors=gemma2.factors,
    whole="gemma3",
    gguf=gguf_form(
        GGUF,
        name="gemma3",
        optional=tuple(GGUF),
        ignored=("mm.tokens_per_image",),  # of a part for pictures in another file
        present=(ATTENTION_BIAS,),
        completed=completed,
        stored=partial(stored_layers, modules=MODULES),
    ),
)
