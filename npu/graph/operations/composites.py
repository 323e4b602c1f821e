# SPDX-License-Identifier: Apache-2.0
"""Operations made of several that the chip executes as one."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, GraphError
from npu.graph.operations.base import (
    Attributes,
    Call,
    Kind,
    ResultType,
    Trait,
    Types,
    broadcast,
    given,
    known,
    plain,
    rank_of,
)
from npu.graph.operations.constraints import (
    Constraint,
    mask_of_scores,
    no_softcap,
    row,
    scale_above_zero,
)
from npu.graph.operations.rows import softmax


def _attention_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    q, k, v, mask = known(types, 0), known(types, 1), known(types, 2), given(types, 3)
    batch, heads, rows, depth = rank_of("q", q, 4)
    rank_of("k", k, 4)
    rank_of("v", v, 4)
    groups, keys = k.shape[1:3]
    if k.shape[0] != batch or k.shape[3] != depth or v.shape[:3] != k.shape[:3] or heads % groups:
        raise GraphError(
            f"q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}: allowed (B, H, S, D), "
            "(B, G, T, D), (B, G, T, Dv) with H a multiple of G"
        )
    scores = (batch, heads, rows, keys)
    if mask is not None and broadcast(mask.shape, scores) != scores:
        raise GraphError(f"mask has shape {list(mask.shape)}, allowed what becomes {list(scores)}")
    if attributes["window"] < 0:
        raise GraphError(f"window {attributes['window']}, allowed from 0")
    return (ResultType((batch, heads, rows, v.shape[3]), plain(q, k, v)),)


def visible(attributes: Attributes, rows: int, keys: int) -> Array:
    """Return which key each query sees by `causal`, `offset` and `window`, (S, T) bool."""
    place = np.arange(rows)[:, None] + attributes["offset"]
    key = np.arange(keys)[None, :]
    seen = np.ones((rows, keys), dtype=bool)
    if attributes["causal"]:
        seen &= key <= place
    if attributes["window"]:
        seen &= key > place - attributes["window"]
    return seen


def _attention(call: Call) -> tuple[Array, ...]:
    q, k, v, mask = call.wide(0), call.wide(1), call.wide(2), call.optional(3)
    times = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, times, axis=1), np.repeat(v, times, axis=1)
    with np.errstate(all="ignore"):
        scores = np.matmul(q, k.swapaxes(-1, -2)) * call.attributes["scale"]
        cap = call.attributes["softcap"]
        if cap:
            scores = cap * np.tanh(scores / cap)
        seen = visible(call.attributes, q.shape[2], k.shape[2])
        if mask is not None and mask.dtype == np.bool_:
            seen = seen & mask
        elif mask is not None:
            scores = scores + mask
        scores = np.where(seen, scores, -np.inf)
        weights = np.nan_to_num(softmax(scores, -1), nan=0.0)
        return (np.matmul(weights, v),)


KINDS = (
    Kind(
        name="attention",
        group="composites",
        inputs=("q", "k", "v", "mask?"),
        attributes={
            "scale": "float",
            "causal": "bool",
            "offset": "int",
            "window": "int",
            "softcap": "float",
        },
        rule=_attention_rule,
        meaning=_attention,
        summary="Softmax of the scaled products of queries and keys, times the values; groups of "
        "heads share keys and values; a row that sees no key is 0.",
        integer="s = sat16(rs(q.k * mult, shift)), plus the mask; numerators e as in softmax over "
        "the visible keys, S their sum; y = sat8(rs(sum(e * v) * R(S), 16 + msb(S))).",
        lowering="GEMM with T for the scores, SOFTMAX with the causal flag, GEMM for the values.",
        constraints=(
            Constraint("q, k and v are int8 with zero points of 0"),
            no_softcap,
            mask_of_scores,
            scale_above_zero,
            row("scores", lambda known, one: known.graph.type(one.inputs[1]).shape[2]),
        ),
        sources={
            "onnx": ("Attention", "pattern of MatMul, Softmax and MatMul"),
            "stablehlo": (
                "composite tessera.attention",
                "pattern of dot_general, softmax and dot_general",
            ),
            "tflite": ("pattern of BATCH_MATMUL, SOFTMAX and BATCH_MATMUL",),
        },
        traits=frozenset({Trait.BYTES}),
        chip="GEMM, SOFTMAX and GEMM",
    ),
)
