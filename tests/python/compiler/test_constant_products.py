# SPDX-License-Identifier: Apache-2.0
"""Products with constants of any rank, a matrix per head, expert or example, on either side."""

from __future__ import annotations

import numpy as np
import pytest

from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.evaluate import evaluate
from npu.graph.form import Element, Graph
from npu.graph.prepare import prepare
from tests.python.compiler.network_runs import run_compiled
from tests.python.compiler.small_networks import (
    PLAIN,
    Net,
    grown,
    integer_weights,
    integers,
    quantised,
    quantised_input,
    samples,
)

SHAPES = [
    ((4, 3, 8), (4, 8, 5)),
    ((3, 8), (4, 8, 5)),
    ((1, 3, 24), (3, 24, 17)),
    ((2, 4, 3, 16), (4, 16, 16)),
    ((2, 1, 3, 16), (3, 16, 20)),
    ((2, 3, 5, 16), (2, 1, 16, 20)),
]


def close(graph: Graph, fused: Graph, seed: int) -> None:
    """Hold the chip against golden, and golden against the network as it was, within a step."""
    assert [one.on_chip for one in fused.operations if one.kind == "matmul"] == [True]
    inputs = integers(graph, seed)
    (real,), wanted = evaluate(graph, inputs).values(), run(fused, inputs)
    found = run_compiled(compile_network(fused), inputs).outputs
    for name, expected in wanted.items():
        assert np.array_equal(found[name], expected)
        assert np.unique(expected).size > 20
        assert np.abs(expected.astype(int) - real.astype(int)).max() <= 1


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("element", [Element.I8, Element.U8])
def test_given_matrices_of_any_rank(
    left: tuple[int, ...], right: tuple[int, ...], element: Element
) -> None:
    """Each is a product from the stream, with its zero points, a bias and an addend."""

    def make(net: Net) -> str:
        x = quantised_input(net, "x", left, 0.02, 5)
        low, high = (-127, 127) if element == Element.I8 else (0, 255)
        w = integer_weights(net, right, (0.01,), element, high // 3 if low == 0 else 0, low, high)
        y = net.build.add("matmul", [x, w, net.floats(right[-1])], **PLAIN)
        y = net.build.add("dequantise", [quantised(net, y, 0.06)])
        other = quantised_input(net, "other", net.build.shape(y), 0.06)
        return quantised(net, net.build.add("add", [y, other]), 0.06)

    graph = grown(make)
    close(graph, prepare(graph), 4)


@pytest.mark.parametrize(("right", "left"), SHAPES)
def test_given_matrices_on_the_left(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """A constant times what the network computes."""
    turned, wide = ((*shape[:-2], shape[-1], shape[-2]) for shape in (left, right))

    def make(net: Net) -> str:
        w = integer_weights(net, turned, (0.01,))
        x = quantised_input(net, "x", wide, 0.02, 5)
        return quantised(net, net.build.add("matmul", [w, x], **PLAIN), 0.06)

    graph = grown(make)
    close(graph, prepare(graph), 4)


@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_real_matrices_of_any_rank(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    """They run on the chip as well, near what they are in floats."""

    def make(net: Net) -> str:
        x = net.input("x", *left)
        return net.build.add("matmul", [x, net.floats(*right), net.floats(right[-1])], **PLAIN)

    graph = grown(make)
    fused = prepare(graph, samples=samples(graph))
    assert [one.on_chip for one in fused.operations if one.kind == "matmul"] == [True]
    inputs = {name: values[0] for name, values in samples(graph, 1, 1).items()}
    (real,), (wanted,) = evaluate(graph, inputs).values(), run(fused, inputs).values()
    (found,) = run_compiled(compile_network(fused), inputs).outputs.values()
    assert np.array_equal(found, wanted)
    assert np.abs(found - real).max() <= 0.04 * np.abs(real).max()
