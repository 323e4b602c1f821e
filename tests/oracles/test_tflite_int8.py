# SPDX-License-Identifier: Apache-2.0
"""Random int8 operators of TFLite, from file to integers, against the interpreter of LiteRT.

The interpreter is as it comes, with the kernels of XNNPACK. What is named below differs from it in
more than one of 1,000 elements; no element of any operator is more than 1 apart.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.needs import needs

needs("oracles")

from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.evaluate import evaluate
from npu.graph.form import Array
from npu.graph.importers import tflite_file
from npu.graph.prepare import prepare
from tests.oracles.test_graph_litert import litert
from tests.python.compiler.network_runs import run_compiled
from tests.python.importers.tflite_integers import OPERATORS, integer_model

CASES, COMPILED = 60, 3
"""Random models of an operator, and how many of them the instruction model executes."""
HOSTED = ("QUANTIZE", "PRELU", "SQUARED_DIFFERENCE", "L2_NORMALIZATION", "RESIZE_BILINEAR")
"""What the host computes between input and output."""
MOVES = (
    "RESIZE_NEAREST_NEIGHBOR",
    "MIRROR_PAD",
    "PAD",
    "STRIDED_SLICE",
    "SPACE_TO_BATCH_ND",
    "BATCH_TO_SPACE_ND",
)
"""What the host does between input and output, but not between operations of the chip."""
MOST = 0.001
"""Of the elements may be 1 apart."""
COARSE = {
    "LEAKY_RELU": 0.08,
    "QUANTIZE": 0.08,
    "RESIZE_BILINEAR": 0.05,
    "SQUARED_DIFFERENCE": 0.005,
    "HARD_SWISH": 0.003,
    "PRELU": 0.002,
}
"""LiteRT has few bits or rounds twice; the result here is the real one, rounded once."""
OTHERWISE = {
    # Numerators of 16 bits and a reciprocal of 128 entries.
    "SOFTMAX": 0.035,
    **COARSE,
}


def _apart(operator: str, seed: int) -> Array:
    """Return by how much the integers differ, int64 of the shape of the result."""
    data, values = integer_model(operator, seed)
    graph = prepare(tflite_file.read(data))
    inputs = dict(zip(graph.inputs, values, strict=True))
    (name,) = graph.outputs
    found = run(graph, inputs)[name]
    if seed < COMPILED:
        network = compile_network(graph)
        assert network.segments or operator in HOSTED + MOVES, "nothing runs on the chip"
        np.testing.assert_array_equal(run_compiled(network, inputs).outputs[name], found)
    if operator in COARSE:
        np.testing.assert_array_equal(found, _rounded_once(data, values))
    (want,) = litert(data, values, delegates=True)
    assert found.shape == want.shape and found.dtype == want.dtype
    return np.abs(found.astype(np.int64) - want.astype(np.int64))


def _rounded_once(data: bytes, values: list[Array]) -> Array:
    """Return the integers nearest to the float result of a file."""
    graph = tflite_file.read(data)
    (found,) = evaluate(graph, dict(zip(graph.inputs, values, strict=True))).values()
    return found


@pytest.mark.parametrize("operator", OPERATORS)
def test_integers_are_one_apart_at_most_and_few_of_them(operator: str) -> None:
    """Of shapes, scales and zero points by seed, all values of int8."""
    apart = np.concatenate([_apart(operator, seed).ravel() for seed in range(CASES)])
    assert apart.max() <= 1
    share = float(np.mean(apart > 0))
    bar = OTHERWISE.get(operator, MOST)
    assert share <= bar, f"{operator}: {share:.4%} of {apart.size} elements, allowed {bar:.1%}"
    # An exception that nothing needs any more goes.
    assert operator not in OTHERWISE or share > MOST
