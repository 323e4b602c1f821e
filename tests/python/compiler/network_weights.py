# SPDX-License-Identifier: Apache-2.0
"""Networks in float, and formats that their weights are rounded to."""

from __future__ import annotations

from npu.graph.form import Graph
from npu.planner.build_plan import Built, CompileOptions, build_plan
from tests.python.compiler.small_networks import gated_images, grown, residual_images, transformer
from weights.formats.recipe import INT8, WORDS

NARROW = [word for word, encoding in WORDS.items() if encoding != INT8]
NETWORKS = {"convolutions": residual_images, "depthwise": gated_images, "transformer": transformer}
CASES = [
    ("convolutions", "int4g32"),
    ("transformer", "int4g32"),
    ("depthwise", "mxfp4"),
    ("transformer", "int4"),
    ("depthwise", "nf4g64"),
    ("convolutions", "int4s"),
    ("transformer", "int8s"),
    ("convolutions", "mxfp6e2"),
]
"""Those that the short forms of tests have stand first."""
RECIPES = CASES + [(net, word) for net in NETWORKS for word in NARROW if (net, word) not in CASES]


def built(graph: Graph, weights: str) -> Built:
    """Return a network whose products have weights in formats."""
    return build_plan(graph, CompileOptions(calibrate="random:8", weights=weights))


def one_product(inner: int, columns: int, rows: int = 1) -> Graph:
    """Return one product with constant weights."""
    return grown(lambda net: net.linear(net.input("x", rows, inner), columns))
