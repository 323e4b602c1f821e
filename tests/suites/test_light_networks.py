# SPDX-License-Identifier: Apache-2.0
"""All light networks of the ONNX suite, those of hundreds of megabytes too, become programs."""

from __future__ import annotations

import pytest

from tests.needs import needs

needs("graphs")

from npu.compiler.network import compile_network
from tb.models.light_networks import LIGHT, light_network


@pytest.mark.parametrize("name", LIGHT)
def test_a_light_network_becomes_programs(name: str) -> None:
    """No multiplication of a convolution or a matrix is left to the host, and all of it fits."""
    graph = light_network(name)
    products = [one for one in graph.operations if one.kind in ("conv", "matmul")]
    assert products
    assert all(one.on_chip for one in products)
    assert {one["operator"] for one in graph.operations if one.kind == "host"} <= {"LRN"}
    network = compile_network(graph)
    made = [one.name for one in network.graph.operations if one.on_chip and one.kind == "conv"]
    assert len(made) == sum(one.kind == "conv" for one in products)
    light_network.cache_clear()
