# SPDX-License-Identifier: Apache-2.0
"""Which products of a network get weights in which format."""

from __future__ import annotations

import difflib
from collections.abc import Mapping

from npu.graph.form import Graph, GraphError
from npu.graph.passes.facts import LINEAR, Facts
from weights.formats.recipe import INT8, Encoding, NetworkRecipe

SHOWN = 5
"""Products that an error names."""


def encodings(graph: Graph, recipe: NetworkRecipe) -> Mapping[str, Encoding]:
    """Return the narrow encodings of weights by the names of their products.

    Real constant weights of products on the chip have one; integers that a file gives stay as they
    are.

    Args:
        graph: after the pass `place`.
        recipe: what was asked for.

    Raises:
        GraphError: a name stands for no such product.
    """
    facts = Facts(graph)
    products = {
        op.name: op
        for op in graph.operations
        if op.on_chip
        and op.kind in LINEAR
        and facts.weights(op)
        and facts.given_integers(op.inputs[1]) is None
    }
    found = dict.fromkeys(products, recipe.base)
    for name, encoding in recipe.named.items():
        called = [
            key
            for key, one in products.items()
            if name in ((key,) if name in products else (one.kind, *one.source.split(" + ")))
        ]
        if not called:
            near = difflib.get_close_matches(name, products, SHOWN) or list(products)[:SHOWN]
            raise GraphError(
                f"--weights {name}={encoding}: no product of the chip with real constant weights "
                f"is called so, allowed {', '.join(near) or 'none'}"
            )
        found |= dict.fromkeys(called, encoding)
    return {name: encoding for name, encoding in found.items() if encoding != INT8}
