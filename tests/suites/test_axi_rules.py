# SPDX-License-Identifier: Apache-2.0
"""Every breach of a rule of AXI that the monitors know ends a simulation, with its words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tb.run import build, runner, units
from tb.unit.axi_scenes import BREACHES


@pytest.fixture(scope="module")
def bench() -> units.UnitConfiguration:
    """The bench of the monitors."""
    made = units.UnitConfiguration(block="axi_rules")
    build.build(made)
    return made


def _played(bench: units.UnitConfiguration, place: Path, *plusargs: str) -> runner.TestResult:
    (test,) = units.tests_of("axi_rules")
    return runner.run(runner.Job(test, bench, place=place, plusargs=plusargs))


def test_what_the_standard_allows_is_no_breach(
    bench: units.UnitConfiguration, tmp_path: Path
) -> None:
    """So that a breach is what a monitor speaks of, not what comes before it."""
    assert _played(bench, tmp_path).passed


@pytest.mark.parametrize("name", BREACHES)
def test_a_breach_ends_the_simulation(
    bench: units.UnitConfiguration, tmp_path: Path, name: str
) -> None:
    """By the monitor's own message."""
    found = _played(bench, tmp_path, f"scene={name}")
    assert not found.passed
    assert BREACHES[name].says in found.message
