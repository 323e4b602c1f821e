# SPDX-License-Identifier: Apache-2.0
"""Products whose sums take several instructions, and what is added or multiplied behind them.

Weights that leave int8, zero points of activations and filters that are cut all leave partial sums,
behind which GEMM takes no operand. The chip's programs give what `golden.graph` gives, to the bit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.form import Element, Graph
from npu.graph.prepare import prepare
from spec.isa.operands import Limits
from tests.python.compiler.network_runs import run_compiled
from tests.python.compiler.small_networks import (
    PLAIN,
    SAME,
    Net,
    grown,
    integer_weights,
    integers,
    quantised,
    quantised_input,
)


def wide_rows(net: Net) -> str:
    """Return a product with weights up to 255 above their zero point."""
    x = quantised_input(net, "x", (5, 24), 0.02, 3)
    w = integer_weights(net, (24, 40), (0.01,), Element.U8, 0, 0, 255)
    return net.build.add("matmul", [x, w], **PLAIN)


def wide_filters(net: Net) -> str:
    """Return a convolution with weights up to 255 above their zero point."""
    x = quantised_input(net, "x", (1, 7, 6, 16), 0.02, -5)
    w = integer_weights(net, (3, 3, 16, 24), (0.004,), Element.U8, 1, 0, 255)
    return net.build.add("conv", [x, w], **SAME)


def deep_filters(net: Net) -> str:
    """Return a convolution whose windows do not fit a small SRAM at once."""
    x = quantised_input(net, "x", (1, 6, 6, 64), 0.02)
    w = integer_weights(net, (3, 3, 64, 16), (0.004,))
    return net.build.add("conv", [x, w], **SAME)


def activations(net: Net) -> str:
    """Return a product of two activations with zero points."""
    a = quantised_input(net, "a", (2, 9, 20), 0.02, 11)
    b = quantised_input(net, "b", (2, 20, 18), 0.02, -7)
    return net.build.add("matmul", [a, b], **PLAIN)


PRODUCTS = (wide_rows, wide_filters, deep_filters, activations)


def combined(product: Callable[[Net], str], kind: str) -> Graph:
    """Return a product, requantised, with an operand added to it or multiplied with it."""

    def make(net: Net) -> str:
        y = product(net)
        shape = net.build.shape(y)
        y = net.build.add("dequantise", [quantised(net, y, 0.05)])
        other = quantised_input(net, "other", shape, 0.05)
        return quantised(net, net.build.add(kind, [y, other]), 0.05 if kind == "add" else 0.08)

    return prepare(grown(make))


@pytest.mark.parametrize("kind", ["add", "mul"])
@pytest.mark.parametrize("product", PRODUCTS)
def test_an_operand_behind_partial_sums(product: Callable[[Net], str], kind: str) -> None:
    """It is part of the product; the chip writes what golden says."""
    graph = combined(product, kind)
    assert kind in [one.attributes.get("combine") for one in graph.operations]
    limits = Limits(sram_bytes=8192) if product is deep_filters else Limits()
    network = compile_network(graph, limits)
    inputs = integers(graph, 3)
    wanted, found = run(graph, inputs), run_compiled(network, inputs, limits=limits).outputs
    for name, expected in wanted.items():
        assert np.unique(expected).size > 40
        assert np.array_equal(found[name], expected)
