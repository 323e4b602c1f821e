# SPDX-License-Identifier: Apache-2.0
"""What works along rows: norm, rotary embedding, softmax behind a mask."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, GraphError
from npu.graph.library.masks import MASKED, visible_keys
from npu.graph.library.sketch import Sketch

EPSILON = 1e-5
BASE = 10_000.0
"""Of the wavelengths of rotary embeddings."""


def rmsnorm(draw: Sketch, *, rows: int = 24, width: int = 64) -> tuple[str, ...]:
    """Rows of x (rows, width) over the root of their mean square, times a gain per column."""
    x = draw.given("x", rows, width)
    return (norm_of(draw, "normed", x),)


def norm_of(draw: Sketch, name: str, x: str) -> str:
    """Add a norm over the last axis; return its result."""
    gain = draw.vector(f"{name}_gain", draw.shape(x)[-1], 1.0, 0.2)
    return draw.stage(name, "rmsnorm", x, gain, axes=1, epsilon=EPSILON)


def rope(
    draw: Sketch, *, heads: int = 4, rows: int = 16, depth: int = 16, position: int = 3
) -> tuple[str, ...]:
    """Heads x (1, heads, rows, depth) turned by the angles of their rows, from a position on."""
    return (rope_of(draw, "turned", draw.given("x", 1, heads, rows, depth), position),)


def rope_of(draw: Sketch, name: str, x: str, position: int = 0) -> str:
    """Add a rotary embedding of heads (B, H, S, D); return its result."""
    rows, depth = draw.shape(x)[-2:]
    if depth % 2:
        raise GraphError(f"depth {depth}, allowed even ones: pairs of elements are turned")
    angles = angles_of(rows, depth, position)
    cos, sin = (
        draw.parameter(f"{name}_cos", np.cos(angles)),
        draw.parameter(f"{name}_sin", np.sin(angles)),
    )
    return draw.stage(name, "rope", x, cos, sin, interleaved=False, heads_axis=1)


def angles_of(rows: int, depth: int, position: int) -> Array:
    """Return the angles of rotary embeddings, (rows, depth / 2), as RoFormer defines them."""
    waves = BASE ** (-np.arange(0, depth, 2) / depth)
    return (position + np.arange(rows))[:, None] * waves[None, :]


def masked_softmax(
    draw: Sketch, *, heads: int = 4, rows: int = 12, keys: int = 20, mask: str = "random"
) -> tuple[str, ...]:
    """Rows of logits (1, heads, rows, keys) as probabilities of the keys that a mask shows."""
    logits = draw.given("logits", 1, heads, rows, keys)
    if mask == "none":
        return (draw.stage("weights", "softmax", logits, axis=3),)
    seen = visible_keys(draw.random, mask, rows, keys)
    hidden = draw.parameter("mask", np.where(seen, 0.0, MASKED)[None, None])
    masked = draw.step("add", logits, hidden)
    return (draw.stage("weights", "softmax", masked, axis=3),)
