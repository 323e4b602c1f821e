# SPDX-License-Identifier: Apache-2.0
"""What a simulator is given by its surroundings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tb.run import build, registry, runner


def test_a_simulator_of_another_machine_finds_its_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of this environment come first, then the user's own."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/mine")
    job = runner.Job(registry.discover()[0], build.Configuration(), 1)
    ours, theirs = runner._environment(job)["LD_LIBRARY_PATH"].split(os.pathsep)
    assert (Path(ours) / "libcocotbvpi_verilator.so").is_file()
    assert theirs == "/opt/mine"
