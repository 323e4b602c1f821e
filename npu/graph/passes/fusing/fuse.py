# SPDX-License-Identifier: Apache-2.0
"""Makes integer operations of quantised ones: what the chip computes, to the bit."""

from __future__ import annotations

from npu.graph.form import Graph, GraphError, UnfusedError
from npu.graph.passes.fusing import (
    fuse_elementwise,
    fuse_linear,
    fuse_moves,
    fuse_rows,
    fuse_windows,
)
from npu.graph.passes.integer_writer import IntegerWriter, Lowering
from npu.graph.verify import named

LOWERINGS: dict[str, Lowering] = {
    **fuse_linear.LOWERINGS,
    **fuse_elementwise.LOWERINGS,
    **fuse_rows.LOWERINGS,
    **fuse_windows.LOWERINGS,
    **fuse_moves.LOWERINGS,
}


def fuse(graph: Graph) -> Graph:
    """Return the graph with the integer form of every operation of the chip.

    Args:
        graph: of the pass `quantise`.

    Returns:
        The graph whose operations on the chip have `integers` and the attributes that the table
        calls fused; bias, factors, tables, addends and factors are part of the product before
        them where its instruction has room.

    Raises:
        UnfusedError: a factor, bias or sum leaves what the chip holds.
    """
    writer = IntegerWriter(graph)
    for op in graph.operations:
        if op.name in writer.done:
            continue
        if not op.on_chip:
            writer.keep(op)
            continue
        if op.kind not in LOWERINGS:
            raise GraphError(f"{named(op)}: the chip has no {op.kind}")
        try:
            LOWERINGS[op.kind](writer, op)
        except GraphError as error:
            raise UnfusedError(named(op), op.name, str(error)) from None
    return writer.rewritten()
