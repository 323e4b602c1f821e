# SPDX-License-Identifier: Apache-2.0
"""Random int16 operators of TFLite, from file to integers: the real result, rounded once.

LiteRT's kernels are the second witness. What it has no int16 kernel for is not here.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.forms import FULL
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

CASES, COMPILED = 30 if FULL else 10, 2
"""Random models of an operator, and how many of them the instruction model executes."""
WITHOUT = ("HARD_SWISH", "ELU", "SQUARED_DIFFERENCE", "L2_NORMALIZATION")
"""LiteRT has int8 kernels of them only."""
COARSE = {"SOFTMAX": 64, "RESIZE_BILINEAR": 512, "TANH": 4}
"""Steps of 2^16 by which LiteRT's tables, and its positions of 10 bits, are off."""
MOST, ON_CHIP = 0.01, {"FULLY_CONNECTED": 0.06}
"""Share that may be a step off the real result: sums of float32 have 24 bits, multipliers 16."""


def _made(operator: str, seed: int) -> tuple[Array, Array, Array]:
    """Return the integers, those nearest to the float result, and LiteRT's."""
    data, values = integer_model(operator, seed, "int16")
    source = tflite_file.read(data)
    graph, inputs = prepare(source), dict(zip(source.inputs, values, strict=True))
    (name,) = graph.outputs
    found = run(graph, inputs)[name]
    if seed < COMPILED:
        outputs = run_compiled(compile_network(graph), inputs).outputs
        np.testing.assert_array_equal(outputs[name], found)
    (real,) = evaluate(source, inputs).values()
    (want,) = litert(data, values)
    assert found.dtype == want.dtype == real.dtype == np.int16
    return found, real, want


@pytest.mark.parametrize("operator", [one for one in OPERATORS if one not in WITHOUT])
def test_integers_are_the_real_result_rounded_once(operator: str) -> None:
    """Of shapes and scales by seed, all values of int16."""
    rows = [_made(operator, seed) for seed in range(CASES)]
    found, real, want = (np.concatenate([row[i].ravel() for row in rows]) for i in range(3))
    apart = np.abs(found.astype(np.int64) - real)
    assert apart.max() <= 1
    share = float(np.mean(apart > 0))
    assert share <= ON_CHIP.get(operator, MOST), f"{share:.4%} of {apart.size} elements"
    assert np.abs(found.astype(np.int64) - want).max() <= COARSE.get(operator, 1)
