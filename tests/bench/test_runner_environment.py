# SPDX-License-Identifier: Apache-2.0
"""What a simulator is given by its surroundings."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tb.run import build, processes, registry, runner


def test_a_simulator_of_another_machine_finds_its_libraries(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of this environment come first, then the user's own."""
    monkeypatch.setenv("LD_LIBRARY_PATH", "/opt/mine")
    job = runner.Job(registry.discover()[0], build.Configuration(), 1)
    ours, theirs = runner._environment(job)["LD_LIBRARY_PATH"].split(os.pathsep)
    assert (Path(ours) / "libcocotbvpi_verilator.so").is_file()
    assert theirs == "/opt/mine"


def test_a_limit_of_processor_time_ends_what_computes_and_not_what_waits(tmp_path: Path) -> None:
    """Other work on the machine makes a run longer, but takes none of its processor time."""
    with (tmp_path / "log.txt").open("wb") as log:
        busy = [sys.executable, "-c", "while True: pass"]
        status = processes.wait(processes.start(busy, tmp_path, os.environ, log), 60.0, 1.0)
        assert status == "no end within 1 s of processor time"
        asleep = processes.start(["sleep", "1.5"], tmp_path, os.environ, log)
        assert processes.wait(asleep, 60.0, 1.0) == 0
