# SPDX-License-Identifier: Apache-2.0
"""Attention that is more than SRAM holds at once, alone in a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npu.graph.build import Builder
from npu.graph.form import Array, Graph, TensorType


@dataclass(frozen=True)
class AttentionCase:
    """Sizes of an attention and what its rows see; `mask` is "", "constant" or "input"."""

    heads: int
    rows: int
    keys: int = 0
    groups: int = 0
    depth: int = 16
    batches: int = 1
    causal: bool = False
    mask: str = ""


CASES = {
    "three heads": AttentionCase(3, 400),
    "pairs": AttentionCase(4, 400, batches=2),
    "pairs on one": AttentionCase(4, 400, groups=2),
    "three on one": AttentionCase(6, 401, keys=397, groups=2),
    "causal": AttentionCase(16, 100, depth=64, causal=True),
    "constant mask": AttentionCase(9, 300, keys=48, depth=64, mask="constant"),
    "mask of the run": AttentionCase(3, 400, mask="input"),
    "mask of pairs": AttentionCase(4, 401, keys=400, mask="input"),
    "one slot": AttentionCase(2, 100, keys=1500, depth=64),
}


def network(case: AttentionCase) -> Graph:
    """Return a graph from "q", "k", "v" and, where it is an input, "seen" to "y"."""
    build = Builder("attention")
    keys, groups = case.keys or case.rows, case.groups or case.heads
    heads = {"q": (case.heads, case.rows), "k": (groups, keys), "v": (groups, keys)}
    inputs = [
        build.input(name, TensorType((case.batches, *size, case.depth)))
        for name, size in heads.items()
    ]
    square = (1, 1, case.rows, keys)
    if case.mask == "constant":
        gone = np.random.default_rng(2).random(square) < 0.3
        inputs.append(build.constant(np.where(gone, -1e9, 0).astype(np.float32)))
    elif case.mask:
        seen = build.input("seen", TensorType(square))
        zero = build.constant(np.zeros(1, np.float32))
        there = build.add("compare", [seen, zero], direction="GT")
        shown = build.constant(np.zeros(square, np.float32))
        hidden = build.constant(np.full(1, -1e9, np.float32))
        inputs.append(build.add("select", [there, shown, hidden]))
    sight: dict[str, Any] = {"causal": case.causal, "offset": 0, "window": 0, "softcap": 0.0}
    scale = case.depth**-0.5
    return build.finish([build.add("attention", inputs, output="y", scale=scale, **sight)])


def samples(graph: Graph) -> dict[str, Array]:
    """Return two samples of the inputs."""
    random = np.random.default_rng(3)
    return {
        name: random.standard_normal((2, *graph.type(name).shape)).astype(np.float32)
        for name in graph.inputs
    }
