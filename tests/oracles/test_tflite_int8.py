# SPDX-License-Identifier: Apache-2.0
"""Random int8 operators of TFLite, from file to integers, against the interpreter of LiteRT.

What is here named as rounded otherwise differs from LiteRT in more than one of 1,000 elements, each
for the reason given; no element of any operator is more than 1 apart.
"""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("flatbuffers")
pytest.importorskip("tflite")
pytest.importorskip("ai_edge_litert.interpreter")

from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.form import Array
from npu.graph.importers import tflite_file
from npu.graph.passes import prepare
from tests.oracles.test_graph_litert import litert
from tests.python.network_runs import run_compiled
from tests.python.tflite_int8 import OPERATORS, int8_model

CASES, COMPILED = 60, 3
"""Random models of an operator, and how many of them the instruction model executes."""
BORDERS = ("QUANTIZE",)
"""What the host computes between input and output."""
MOST = 0.001
"""Of the elements may be 1 apart."""
ROUNDED_OTHERWISE = {
    # LiteRT rounds twice: at the doubling high product and at the shift.
    "DEPTHWISE_CONV_2D": 0.003,
    "MUL": 0.01,
    "MEAN": 0.035,
    "LEAKY_RELU": 0.09,
    "QUANTIZE": 0.1,
    "HARD_SWISH": 0.003,
    # Numerators of 16 bits and a reciprocal of 128 entries.
    "SOFTMAX": 0.035,
}


def _apart(operator: str, seed: int) -> Array:
    """Return by how much the integers differ, int64 of the shape of the result."""
    data, values = int8_model(operator, seed)
    graph = prepare(tflite_file.read(data))
    inputs = dict(zip(graph.inputs, values, strict=True))
    (name,) = graph.outputs
    found = run(graph, inputs)[name]
    if seed < COMPILED:
        network = compile_network(graph)
        assert network.segments or operator in BORDERS, "nothing runs on the chip"
        np.testing.assert_array_equal(run_compiled(network, inputs).outputs[name], found)
    (want,) = litert(data, values)
    assert found.shape == want.shape and found.dtype == want.dtype
    return np.abs(found.astype(np.int64) - want.astype(np.int64))


@pytest.mark.parametrize("operator", OPERATORS)
def test_integers_are_one_apart_at_most_and_few_of_them(operator: str) -> None:
    """Of shapes, scales and zero points by seed, all values of int8."""
    apart = np.concatenate([_apart(operator, seed).ravel() for seed in range(CASES)])
    assert apart.max() <= 1
    share = float(np.mean(apart > 0))
    bar = ROUNDED_OTHERWISE.get(operator, MOST)
    assert share <= bar, f"{operator}: {share:.4%} of {apart.size} elements, allowed {bar:.1%}"
    # An exception that nothing needs any more goes.
    assert operator not in ROUNDED_OTHERWISE or share > MOST
