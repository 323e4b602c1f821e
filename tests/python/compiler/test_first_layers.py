# SPDX-License-Identifier: Apache-2.0
"""Convolutions of images that the host hands over: it packs the pixels of whole windows."""

from __future__ import annotations

import numpy as np
import pytest

from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.form import Element
from spec.isa.operands import Limits
from tb.benchmarks.network_benchmarks import three_operations
from tests.python.compiler.given_convolutions import GivenConvolution as Conv
from tests.python.compiler.given_convolutions import integers
from tests.python.compiler.network_runs import run_compiled

CASES = {
    "one channel": (Conv((1, 49, 10, 1), (10, 4), (2, 2), (4, 1, 5, 1), filters=64), 40),
    "three channels": (Conv((1, 20, 21, 3), filters=16), 27),
    "stride 2": (Conv((2, 20, 21, 3), strides=(2, 2), pads=(0, 0, 1, 1), filters=8), 27),
    "stride down, dilation": (
        Conv((1, 23, 17, 2), (3, 5), (3, 1), (2, 4, 3, 4), (2, 2), filters=24),
        30,
    ),
    "no border": (Conv((1, 9, 9, 3), (3, 3), pads=(0, 0, 0, 0), filters=20), 27),
    "zero point, relu": (Conv((1, 12, 12, 3), zeros=(-128, 0), relu=True, filters=16), 27),
    "unsigned": (Conv((1, 12, 12, 3), zeros=(200, 0), element=Element.U8, filters=16), 27),
    "weights of nine bits": (Conv((1, 12, 12, 3), zeros=(5, 30), filters=16), 27),
    "sum": (Conv((1, 12, 12, 3), combine="add", filters=16), 27),
    "array 4": (Conv((1, 9, 9, 3), filters=16, limits=Limits(array_dim=4)), 27),
    "rows of whole words": (Conv((1, 12, 20, 4), (3, 4), pads=(1, 2, 1, 1), filters=16), 48),
    "sixteen bits": (
        Conv((1, 12, 12, 3), element=Element.I16, largest=30, filters=16),
        3 * 16,
    ),
}
"""Convolutions by name, and the columns of operand A."""


@pytest.mark.parametrize("name", CASES)
def test_a_first_layer_is_what_golden_says(name: str) -> None:
    """Bit for bit, and no wider than what the host can pack into whole words."""
    case, columns = CASES[name]
    graph = case.graph()
    inputs, network = integers(graph), compile_network(graph, case.limits)
    products = [
        line
        for line in "".join(one.text for one in network.segments).splitlines()
        if line.startswith("GEMM")
    ]
    assert {f"K={columns}" in line.split() for line in products} == {True}
    expected = run(graph, inputs)["y"]
    assert np.unique(expected).size > 16
    found = run_compiled(network, inputs, limits=case.limits).outputs["y"]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("channels", "copies"), [(48, 6), (32, 1)])
def test_weights_stand_in_the_stream_in_the_order_of_their_use(channels: int, copies: int) -> None:
    """Of eight chunks six find their own 2.6 KB behind a layer of 21 KB; small programs seek."""
    graph = three_operations(64, channels, np.random.default_rng(1))
    network = compile_network(graph)
    text = "".join(one.text for one in network.segments)
    first, last = text[: text.index("; pool")], text[text.index("; last") :]
    assert first.count("SET STREAM") == first.count("GEMM") - 1 > 5, "nothing has room twice"
    shares = [one.name for one in network.shares]
    assert len(set(shares)) == len(shares) == 1 + copies
    assert last.count("GEMM") == 8
    assert last.count("SET STREAM") == (2 if copies > 1 else 7), "back to the first copy, and END's"
    inputs = {"x": np.random.default_rng(2).integers(-128, 128, (1, 64, 64, channels), np.int8)}
    found = run_compiled(network, inputs).outputs["y"]
    np.testing.assert_array_equal(found, run(graph, inputs)["y"])
