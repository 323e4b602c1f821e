# SPDX-License-Identifier: Apache-2.0
"""Whole networks on the RTL: every tensor that a program leaves is golden's, bit for bit.

`make regress` runs SqueezeNet, `make nightly` ResNet-50 besides.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from tests.needs import needs

needs("graphs")

from golden.graph import run
from npu.compiler.network import compile_network
from npu.planner.network_plan import plan_of
from npu.runtime.network_account import report_of
from tb.models.light_networks import light_network
from tessera.rtl_chip import run_on_rtl

NETWORKS = ("squeezenet", *(("resnet50",) if os.environ.get("NIGHTLY") else ()))


@pytest.mark.parametrize("name", NETWORKS)
def test_a_whole_network_on_the_rtl_is_golden(name: str) -> None:
    """From the image to the probabilities; the multiplications are those that the graph has."""
    graph = light_network(name)
    plan = plan_of(compile_network(graph))
    (source,) = graph.inputs
    random = np.random.default_rng(5)
    image = {source: random.standard_normal(graph.type(source).shape).astype(np.float32)}
    found = run_on_rtl(plan, image)
    (scores,) = (one.used[0] for one in graph.operations if one.kind == "softmax")
    expected = run(graph, image, keep=[scores])
    for output in graph.outputs:
        np.testing.assert_array_equal(found.run.outputs[output], expected[output])
    # Of the probabilities of drawn weights all but one may be 0.
    assert np.unique(expected[scores]).size > 64
    report = report_of(plan, found.run.counters, found.cycles)
    assert report.cycles is not None
    assert report.ideal < report.cycles < 1.2 * report.ideal
