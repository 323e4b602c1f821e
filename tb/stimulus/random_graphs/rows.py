# SPDX-License-Identifier: Apache-2.0
"""Random operations on whole rows."""

from __future__ import annotations

import numpy as np

from npu.graph.form import Array, Element
from tb.stimulus.random_graphs.draw import Draw
from tb.stimulus.random_graphs.elements import wide


def softmax(draw: Draw) -> bool:
    """Draw probabilities."""
    x = wide(draw)
    if x is None:
        return False
    shape = draw.shape(x)
    axis = {"axis": len(shape) - 1}
    draw.add("softmax", (x,), shape, axis, element=Element.U8, scale=1 / 256)
    return True


def norm(draw: Draw) -> bool:
    """Draw a norm of rows."""
    x = wide(draw)
    if x is None:
        return False
    shape = draw.shape(x)
    columns = shape[-1]
    if columns < 2:
        return False
    element = draw.one_of(Element.I8, Element.I16)
    integers: dict[str, Array] = {
        "eps": np.array([draw.whole(0, 1 << 30)], np.uint64),
        "gain": draw.random.integers(1 << 14, 1 << 16, columns).astype(np.uint16),
        "shift": np.full(columns, 24 if element is Element.I8 else 17, np.uint8),
        "bias": draw.bytes((columns,), -30, 30),
    }
    kind = draw.one_of("layernorm", "rmsnorm")
    attributes = {"axes": 1, "epsilon": 0.0}
    draw.add(kind, (x,), shape, attributes, integers, element)
    return True


def rope(draw: Draw) -> bool:
    """Draw rotary positions."""
    heads_inside = draw.chance(0.5)
    rows, heads = draw.one_of(1, 5, 17), draw.one_of(1, 2, 3)
    lanes = draw.one_of(4, 8, 16, 32)
    shape = (2, rows, heads, lanes) if heads_inside else (2, heads, rows, lanes)
    x = draw.operand(shape, Element.I8)
    angle = draw.random.uniform(0, 2 * np.pi, (rows, lanes // 2))
    table = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    cosine, sine = (
        draw.tensor((rows, lanes // 2), Element.F32, table[..., i].astype(np.float32), plain=True)
        for i in range(2)
    )
    integers = {"table": np.round(table * (1 << 14)).astype(np.int16)}
    attributes = {"interleaved": draw.chance(0.5), "heads_axis": 2 if heads_inside else 1}
    draw.add("rope", (x, cosine, sine), shape, attributes, integers)
    return True


def attention(draw: Draw) -> bool:
    """Draw attention over keys and values that come from outside."""
    batch, groups, each = draw.one_of(1, 2), draw.one_of(1, 2), draw.one_of(1, 2, 3)
    rows, lanes = draw.one_of(1, 7, 20), draw.one_of(8, 16, 20)
    causal = draw.chance(0.5)
    offset = draw.one_of(0, 0, 3) if causal else 0
    keys = rows + offset if causal else draw.one_of(1, 9, 33)
    heads = groups * each
    q = draw.operand((batch, heads, rows, lanes), Element.I8)
    k, v = (draw.input((batch, groups, keys, lanes)) for _ in range(2))
    integers: dict[str, Array] = {
        "mult": np.array([draw.whole(1 << 14, (1 << 15) - 1)], np.uint16),
        "shift": np.array([22], np.uint8),
    }
    mask: tuple[str, ...] = ()
    if not causal and draw.chance(0.5):
        added = draw.random.integers(-400, 400, (1, draw.one_of(1, heads), rows, keys))
        integers["mask"] = added.astype(np.int16)
        mask = (draw.tensor(added.shape, Element.F32, added.astype(np.float32), plain=True),)
    attributes = {
        "scale": 1.0,
        "causal": causal,
        "offset": offset,
        "window": draw.one_of(0, 0, 4) if causal else 0,
        "softcap": 0.0,
    }
    draw.add("attention", (q, k, v, *mask), (batch, heads, rows, lanes), attributes, integers)
    return True
