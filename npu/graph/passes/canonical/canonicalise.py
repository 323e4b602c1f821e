# SPDX-License-Identifier: Apache-2.0
"""Brings a graph of any source into one form: the same network gives the same graph.

Constants are computed, transposes around images cancel, batch norm and bias are part of the
product before them, arithmetic with one number and functions of one variable become one table,
patterns of primitive operations one operation.
"""

from __future__ import annotations

from npu.graph.form import Graph
from npu.graph.passes.canonical import fold, layout, linear, scalars, weights
from npu.graph.passes.canonical.order import ordered
from npu.graph.passes.canonical.patterns import replace_patterns
from npu.graph.passes.canonical.reals import as_float32
from npu.graph.passes.canonical.rewrite import Rule, settled
from npu.graph.passes.canonical.signed_bytes import signed
from npu.graph.verify import verify

STRUCTURE: tuple[Rule, ...] = (
    fold.constants,
    fold.nothing,
    fold.round_trips,
    fold.reshapes,
    fold.into_dequantise,
    fold.expands,
    fold.small_constants,
    fold.means,
    *layout.RULES,
    fold.bias_dequantised,
    *linear.RULES,
)
# Factors and addends go into products first: what is left becomes part of tables.
PRODUCTS: tuple[Rule, ...] = (*STRUCTURE, scalars.vectors, *weights.FOLDS)
TABLES: tuple[Rule, ...] = (*STRUCTURE, *scalars.RULES, *weights.FOLDS)


def canonicalise(graph: Graph) -> Graph:
    """Return the graph in canonical form.

    Args:
        graph: as an importer made it.

    Returns:
        The graph that computes the same to the accuracy of float32, with the names of inputs and
        outputs.

    Raises:
        GraphError: the graph is wrong, or an operation on constants cannot be computed.
    """
    graph = settled(as_float32(graph), STRUCTURE)
    graph = settled(ordered(graph), STRUCTURE)
    graph = replace_patterns(graph)
    graph = settled(settled(graph, PRODUCTS), TABLES)
    graph = settled(graph, (*TABLES, weights.alone))
    graph = signed(settled(graph, (*TABLES, fold.small_dequantised)))
    graph = ordered(graph)
    verify(graph)
    return graph
