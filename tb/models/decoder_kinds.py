# SPDX-License-Identifier: Apache-2.0
"""Small random decoders of every kind that there are programs for, beyond what ships."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from weights.formats.recipe import parse_recipe
from weights.model import QuantizedModel
from weights.synthetic import random_model, shape_of

Changes = dict[str, Any]
OTHER_HEADS: Changes = {"heads": 3, "kv_heads": 1, "head_dim": 24, "hidden": 50, "ffn": 72}
"""Widths that fill no tile, on one head of K and V."""
KINDS: dict[str, tuple[str, Changes]] = {
    "windows": ("llama", {"kv_heads": 2, "windows": (0, 20, 5)}),
    "windows of learned positions": ("gpt2", {"windows": (16, 0, 16)}),
    "tables": ("llama", {"kv_heads": 2, "tables": (0, 2, 1)}),
    "parallel": ("gpt2", {"parallel": True}),
    "parallel, rotated": ("llama", {"parallel": True} | OTHER_HEADS),
    "heads": ("llama", {"kv_heads": 2, "head_norms": "head", "head_dim": 32}),
    "heads, parallel": ("gpt2", {"parallel": True, "head_norms": "head"}),
    "heads of other sizes": ("llama", {"head_norms": "head"} | OTHER_HEADS),
    "rows": ("qwen2", {"kv_heads": 2, "head_norms": "row"}),
    "parts": ("llama", {"kv_heads": 2, "part_norms": True}),
    "parts of other sizes": ("qwen2", {"part_norms": True, "hidden": 60, "heads": 6}),
    "only parts and rows": (
        "llama",
        {"kv_heads": 2, "pre_norms": False, "part_norms": True, "head_norms": "row"},
    ),
    "no norms, parallel": ("llama", {"pre_norms": False, "parallel": True} | OTHER_HEADS),
    "windows, tables, heads, parts": (
        "llama",
        {
            "kv_heads": 1,
            "windows": (20, 20, 0),
            "tables": (0, 0, 1),
            "head_norms": "head",
            "part_norms": True,
        },
    ),
    "everything of other sizes": (
        "llama",
        {"windows": (5, 0, 40), "tables": (1, 0, 1), "head_norms": "head", "parallel": True}
        | {"part_norms": True}
        | OTHER_HEADS,
    ),
}
"""By what they have: the family that they are else like, and what is other."""


def model_of_kind(
    kind: str, seed: int, sink: int | None = None, weights: str = "int8", **others: object
) -> QuantizedModel:
    """Return a random decoder of a kind; `others` are further fields of its shape."""
    family, changes = KINDS[kind]
    given: Changes = {"layers": 3, "context": 64, "vocab": 83} | changes | others
    model = random_model(shape_of(family, **given), seed, sink, parse_recipe(weights))
    if model.rope is None:
        return model
    tables = [np.roll(table, 3 * number, axis=0) for number, table in enumerate(model.rope)]
    return replace(model, rope=np.stack(tables))  # no two are the same


def limited(
    model: QuantizedModel, act_limit: int, stream_shift: int = 0, louder: int = 0
) -> QuantizedModel:
    """Return a model with int16 gates that limits the inputs of `down` to so much.

    The unit of the stream grows by `stream_shift` bits in front of its last layer, and these inputs
    are `louder` by so many bits.
    """
    blocks = [
        replace(block, act_limit=act_limit, product_shift=block.product_shift - louder)
        for block in model.blocks
    ]
    blocks[-1] = replace(blocks[-1], stream_shift=stream_shift)
    return replace(model, blocks=tuple(blocks))
