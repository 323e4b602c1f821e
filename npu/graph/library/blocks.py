# SPDX-License-Identifier: Apache-2.0
"""Blocks of transformers: an encoder's as BERT has it, a decoder's as Llama has it."""

from __future__ import annotations

import numpy as np

from npu.graph.library.attention import attention_of, qkv_of
from npu.graph.library.feed_forward import mlp_of, swiglu_of
from npu.graph.library.masks import visible_keys
from npu.graph.library.rows import EPSILON, norm_of, rope_of
from npu.graph.library.sketch import Sketch


def encoder_block(
    draw: Sketch, *, rows: int = 12, heads: int = 4, depth: int = 16, hidden: int = 96
) -> tuple[str, ...]:
    """Attention with every row, a bias, ReLU MLP, and a sum and a layer norm behind each."""
    width = heads * depth
    x = draw.given("x", 1, rows, width)
    query, key, value = (
        draw.heads(one, heads) for one in qkv_of(draw, x, (width, width, width), packed=0)
    )
    seen = np.ones((1, rows, rows), dtype=bool)
    joined = draw.rows(attention_of(draw, query, key, value, seen))
    out = draw.step("matmul", joined, draw.weights("w_out", width, width))
    attended = draw.stage("attended", "add", out, draw.vector("b_out", width))
    middle = _normed(draw, "middle", draw.stage("residual", "add", x, attended))
    mlp = mlp_of(draw, middle, hidden)
    return (_normed(draw, "y", draw.stage("residual_mlp", "add", middle, mlp)),)


def _normed(draw: Sketch, name: str, x: str) -> str:
    width = draw.shape(x)[-1]
    gain, beta = draw.vector(f"{name}_gain", width, 1.0, 0.2), draw.vector(f"{name}_beta", width)
    return draw.stage(name, "layernorm", x, gain, beta, axes=1, epsilon=EPSILON)


def decoder_block(
    draw: Sketch,
    *,
    rows: int = 12,
    heads: int = 4,
    groups: int = 2,
    depth: int = 16,
    hidden: int = 96,
    packed: int = 0,
    mask: str = "causal",
) -> tuple[str, ...]:
    """RMSNorm, projections, rotary embedding, masked attention, RMSNorm, SwiGLU, two sums."""
    width, narrow = heads * depth, groups * depth
    x = draw.given("x", 1, rows, width)
    normed = norm_of(draw, "normed", x)
    query, key, value = qkv_of(draw, normed, (width, narrow, narrow), packed)
    query = rope_of(draw, "turned_query", draw.heads(query, heads))
    key = rope_of(draw, "turned_key", draw.heads(key, groups))
    seen = visible_keys(draw.random, mask, rows, rows)[None]
    joined = draw.rows(attention_of(draw, query, key, draw.heads(value, groups), seen))
    out = draw.step("matmul", joined, draw.weights("w_out", width, width))
    attended = draw.stage("attended", "add", out, draw.vector("b_out", width))
    middle = draw.stage("residual", "add", x, attended)
    mlp = swiglu_of(draw, norm_of(draw, "normed_middle", middle), hidden)
    return (draw.stage("y", "add", middle, mlp),)
