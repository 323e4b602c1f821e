# SPDX-License-Identifier: Apache-2.0
"""Random quantised graphs: every operation of the chip, awkward sizes, some of the host between.

    random_graph(17)                          a graph of 2 to 30 operations, and its inputs
    random_graph(17, only="conv")             the same, of one of the names of MAKERS
    random_graph(17, operations=(1, 1))       a single one: the way to a small failing graph

Inputs and weights are full-range, factors such that results spread over their range instead of
saturating or vanishing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from npu.graph.form import Array, Element, Graph
from tb.stimulus.random_graphs.draw import MOST_ELEMENTS, Draw
from tb.stimulus.random_graphs.elements import clip, elementwise, requantise, table
from tb.stimulus.random_graphs.host import host
from tb.stimulus.random_graphs.linear import batched, conv, matmul
from tb.stimulus.random_graphs.moves import move
from tb.stimulus.random_graphs.port import port
from tb.stimulus.random_graphs.rows import attention, norm, rope, softmax
from tb.stimulus.random_graphs.windows import mean, pool

MAKERS: Mapping[str, tuple[Callable[[Draw], bool], int]] = {
    "matmul": (matmul, 4),
    "batched": (batched, 2),
    "conv": (conv, 4),
    "elementwise": (elementwise, 4),
    "clip": (clip, 1),
    "table": (table, 1),
    "requantise": (requantise, 1),
    "softmax": (softmax, 1),
    "norm": (norm, 1),
    "rope": (rope, 1),
    "attention": (attention, 1),
    "pool": (pool, 2),
    "mean": (mean, 1),
    "move": (move, 5),
    "host": (host, 1),
}
MIXED: Mapping[str, tuple[Callable[[Draw], bool], int]] = {
    **MAKERS,
    "host": (host, 3),
    "port": (port, 5),
}
"""What draws an operation, by name, and how often relative to the others."""


def _start(draw: Draw) -> None:
    channels = draw.one_of(1, 3, 8, 16, 17, 20, 32, 48)
    side = draw.one_of(1, 5, 9, 14)
    batch = draw.one_of(1, 1, 1, 2, 3)
    draw.input((batch, side, draw.one_of(side, 3, 11), channels))
    if draw.chance(0.5):
        draw.input((draw.one_of(1, 2, 3), draw.one_of(1, 7, 17), draw.one_of(3, 16, 24, 64)))
    if draw.chance(0.3):
        draw.input((draw.one_of(1, 6), draw.one_of(16, 33)), Element.I16)


def random_graph(
    seed: int, *, operations: tuple[int, int] = (2, 30), only: str = "", mixed: bool = False
) -> tuple[Graph, dict[str, Array]]:
    """Return a fused graph and full-range values of its inputs.

    Args:
        seed: the same seed gives the same graph.
        operations: least and most of them.
        only: name of a maker of which all operations are; all if empty.
        mixed: with products on the command port and more of the host in between.
    """
    makers = MIXED if mixed or only == "port" else MAKERS
    draw = Draw(np.random.default_rng(seed))
    _start(draw)
    wanted = draw.whole(*operations)
    names = [only] if only else [n for n, (_, weight) in makers.items() for _ in range(weight)]
    tries = 0
    while len(draw.operations) < wanted and tries < 20 * wanted:
        tries += 1
        makers[draw.one_of(*names)][0](draw)
        draw.live = [n for n in draw.live if np.prod(draw.shape(n)) <= MOST_ELEMENTS]
    read = {name for one in draw.operations for name in one.used}
    made = [name for one in draw.operations for name in one.outputs]
    outputs = [name for name in made if name not in read or draw.chance(0.05)]
    used = [name for name in draw.inputs if name in read]
    graph = Graph(f"random-{seed}", tuple(used), tuple(outputs), draw.tensors, ())
    graph = graph.with_operations(draw.operations)
    values = {}
    for name in used:
        dtype = draw.element(name).dtype
        bounds = np.iinfo(dtype)
        values[name] = draw.random.integers(
            bounds.min, bounds.max, draw.shape(name), endpoint=True
        ).astype(dtype)
    return graph, values
