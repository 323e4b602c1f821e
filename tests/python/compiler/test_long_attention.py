# SPDX-License-Identifier: Apache-2.0
"""Attention in parts: one segment, equal to golden.graph, wherever Q, K and V lie."""

from __future__ import annotations

import numpy as np
import pytest

from golden.graph import run as golden_run
from npu.compiler.network import attention
from npu.graph.evaluate import evaluate
from npu.planner.build_plan import CompileOptions, build_plan
from tessera.session import Session
from tests.python.compiler.long_attention import CASES, network, samples


@pytest.mark.parametrize("name", CASES)
def test_attention_in_parts_is_attention(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each case is one that SRAM does not hold at once."""
    taken = []
    made = attention.AttentionKernel.__init__

    def noted(kernel: attention.AttentionKernel, *arguments: object) -> None:
        made(kernel, *arguments)  # type: ignore[arg-type]
        taken.append(kernel.division)

    monkeypatch.setattr(attention.AttentionKernel, "__init__", noted)
    graph = network(CASES[name])
    given = samples(graph)
    built = build_plan(graph, CompileOptions(calibrate=given))
    assert len(built.plan.segments) == 1
    last = taken[-1]
    assert (last.stages == 1) == (name == "one slot")
    assert (last.heads, last.rows) != (CASES[name].heads, CASES[name].rows)
    inputs = {name: data[1] for name, data in given.items()}
    found = Session(built.plan).run(inputs)["y"]
    np.testing.assert_array_equal(found, golden_run(built.passes["fuse"], inputs)["y"])
    step = np.abs(given["v"]).max() / 127
    assert np.abs(found - evaluate(graph, inputs)["y"]).max() < 2 * step
