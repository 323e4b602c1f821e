# SPDX-License-Identifier: Apache-2.0
"""Random quantised and fused graphs: every operation of the chip, some of the host between them.

    random_graph(17)                          a graph of 2 to 30 operations, and its inputs
    random_graph(17, only="conv")             the same, but all that the chip does are convolutions
    random_graph(17, operations=(1, 1))       a single one: the way to a small failing graph

The first operations of a seed do not depend on how many are drawn, so that a failing graph becomes
smaller by lowering the second number.
"""

from __future__ import annotations

from npu.graph.form import Array, Graph
from tests.python import graph_random_kinds, graph_random_linear, graph_random_moves
from tests.python.graph_random_pool import Pool

DRAWERS = {
    **graph_random_linear.DRAWERS,
    **graph_random_kinds.DRAWERS,
    **graph_random_moves.DRAWERS,
}
"""What draws an operation of the chip, by its kind."""
KINDS = tuple(DRAWERS)
_WEIGHTS = {"matmul": 3, "conv": 3, "add": 2}
_DRAWN = tuple(kind for kind in KINDS for _ in range(_WEIGHTS.get(kind, 1)))
_HOST = 0.06
_ATTEMPTS = 50


def random_graph(
    seed: int, *, operations: tuple[int, int] = (2, 30), only: str | None = None
) -> tuple[Graph, dict[str, Array]]:
    """Draw a fused graph.

    Args:
        seed: of everything.
        operations: fewest and most operations drawn; borders that they need come on top.
        only: a kind of `KINDS`; None for all kinds, and those of the host now and then.

    Returns:
        The graph, verified by nobody yet, and an array per input of it.

    Raises:
        ValueError: there is no such kind.
    """
    if only is not None and only not in DRAWERS:
        raise ValueError(f"only: given {only!r}, allowed {', '.join(KINDS)}")
    low, high = operations
    pool = Pool(seed)
    count = low + int(pool.rng.random() * (high - low + 1))
    drawn = 0
    for _ in range(_ATTEMPTS * count):
        if drawn == count:
            break
        before = len(pool.operations)
        if only is None and pool.chance(_HOST):
            pool.choice(tuple(graph_random_moves.HOST_DRAWERS.values()))(pool)
        else:
            DRAWERS[only or pool.choice(_DRAWN)](pool)
        drawn += len(pool.operations) > before
    return pool.finish()
