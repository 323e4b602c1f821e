# SPDX-License-Identifier: Apache-2.0
"""What `npu compile` compares before it writes: programs against the integers of their graph."""

from __future__ import annotations

import re

import numpy as np
import pytest

from npu.compiler.network import linear
from npu.graph.form import Element, Graph
from npu.planner.build_plan import build_plan
from tessera import witness
from tests.python.compiler.small_networks import (
    PLAIN,
    Net,
    grown,
    integer_weights,
    quantised,
    quantised_input,
)


def wide() -> Graph:
    """Return a product with weights of uint8 and a zero point of 0."""

    def make(net: Net) -> str:
        x = quantised_input(net, "x", (3, 24), 0.02, 3)
        w = integer_weights(net, (24, 20), (0.01,), Element.U8, 0, 0, 255)
        return quantised(net, net.build.add("matmul", [x, w], **PLAIN), 0.5)

    return grown(make)


def test_right_programs_are_told_so() -> None:
    """A sentence says what was compared."""
    said = witness.checked(build_plan(wide()))
    assert said == "1 of 1 outputs equal golden.graph on a drawn input"


def test_programs_with_wrong_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A weight that wraps, in model and RTL alike, differs from the graph: the place is named."""

    def wrapped(weight: linear.Wide) -> list[np.ndarray]:
        low = weight.astype(np.int8)
        return [low, np.clip(weight - 255, 0, 1).astype(np.int8)]

    monkeypatch.setattr(linear, "summands", wrapped)
    wanted = re.compile(
        r"quantise\[\d, \d+\]: the programs give -?\d+, the graph's integers -?\d+: "
    )
    with pytest.raises(witness.WitnessError, match=wanted):
        witness.checked(build_plan(wide()))


def test_large_networks_are_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are compiled without the comparison, which says so."""
    monkeypatch.setattr(witness, "MOST", 1000)
    said = witness.checked(build_plan(wide()))
    assert said == "not: 1,440 multiplications, at most 1,000 are run here"
