# SPDX-License-Identifier: Apache-2.0
"""The light networks of the ONNX suite with random weights: placed, compiled, equal to golden."""

from __future__ import annotations

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from golden.graph import run
from npu.compiler.network import compile_network
from tb.models.light_networks import light_network
from tests.python.compiler.network_runs import run_compiled

QUICK = ("squeezenet", "resnet50", "shufflenet", "inception_v1", "inception_v2", "densenet121")


@pytest.mark.parametrize("name", QUICK)
def test_every_convolution_and_matrix_of_a_light_network_runs_on_the_chip(name: str) -> None:
    """Nothing with multiplications is left to the host."""
    graph = light_network(name)
    kinds = [one.kind for one in graph.operations if one.on_chip]
    assert "conv" in kinds
    for one in graph.operations:
        assert one.on_chip or one.kind not in ("conv", "matmul"), one.place
        assert one.kind != "host" or one["operator"] in ("LRN", "Softmax"), one.place


def test_squeezenet_on_the_instruction_model_is_what_golden_says() -> None:
    """The whole network, from the image to the probabilities, bit for bit."""
    graph = light_network("squeezenet")
    (name,) = graph.inputs
    image = np.random.default_rng(3).normal(size=graph.type(name).shape).astype(np.float32)
    network = compile_network(graph)
    assert len(network.segments) == 1
    found = run_compiled(network, {name: image}).outputs
    expected = run(graph, {name: image})
    for output in graph.outputs:
        np.testing.assert_array_equal(found[output], expected[output])
        assert np.ptp(expected[output]) > 0
