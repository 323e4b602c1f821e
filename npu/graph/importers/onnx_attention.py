# SPDX-License-Identifier: Apache-2.0
"""Attention of ONNX."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from npu.graph.form import Element, GraphError
from npu.graph.importers.onnx_node import Node, mapped
from npu.graph.importers.unmapped import UnmappedError


@mapped("Attention", since=23)
def _attention(node: Node) -> None:
    if any(node.wants(index) for index in (1, 2)) or any(node.input(one) for one in (4, 5, 6)):
        raise UnmappedError("attention with a cache, or keys of different number, is not mapped")
    if node.wants(3):
        raise UnmappedError("attention that also gives its scores is not mapped")
    names = [node.input(index) for index in range(3)]
    node.floats(*names)
    flat = len(node.shape(names[0])) == 3
    if flat:
        heads = [
            int(node.attributes.get(name, 0))
            for name in ("q_num_heads", "kv_num_heads", "kv_num_heads")
        ]
        q, k, v = (
            _heads(node, name, count, part)
            for name, count, part in zip(names, heads, "qkv", strict=True)
        )
    else:
        q, k, v = names
    mask = node.input(3)
    inputs = [q, k, v] if not mask else [q, k, v, _mask(node, mask, node.shape(k)[2])]
    scale = float(node.attributes.get("scale", 1.0 / math.sqrt(node.shape(q)[3])))
    y = node.add(
        "attention",
        inputs,
        scale=scale,
        softcap=float(node.attributes.get("softcap", 0.0)),
        **_sight(node),
    )
    if flat:
        batch, count, rows, depth = node.shape(y)
        y = node.reshape(node.transpose(y, (0, 2, 1, 3), "rows"), (batch, rows, count * depth))
    node.give(y)


def _heads(node: Node, name: str, count: int, part: str) -> str:
    """Split rows (B, S, heads * D) into (B, heads, S, D)."""
    batch, rows, width = node.shape(name)
    if count < 1 or width % count:
        raise GraphError(f"{count} heads of {name!r}, rows of {width}")
    split = node.reshape(name, (batch, rows, count, width // count), f"{part}.split")
    return node.transpose(split, (0, 2, 1, 3), f"{part}.heads")


def _sight(node: Node) -> dict[str, Any]:
    """Return the attributes that say which keys a query sees."""
    causal = bool(node.attributes.get("is_causal", 0))
    left = int(node.attributes.get("left_window_size", -1))
    right = int(node.attributes.get("right_window_size", -1))
    offset = 0
    if right >= 0 and not causal:
        causal, offset = True, right
    window = left + 1 + offset if left >= 0 else 0
    return {"causal": causal, "offset": offset, "window": window}


def _mask(node: Node, mask: str, keys: int) -> str:
    """Lengthen a mask that says nothing about the last keys: these are hidden."""
    kind = node.type(mask)
    missing = keys - kind.shape[-1]
    if missing <= 0:
        return mask
    hidden = False if kind.element == Element.BOOL else -np.inf
    data = np.full((*kind.shape[:-1], missing), hidden, kind.element.dtype)
    rest = node.constant(data, f"{node.name}.hidden")
    return node.add("concat", [mask, rest], "mask", axis=len(kind.shape) - 1)
