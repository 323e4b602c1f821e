# SPDX-License-Identifier: Apache-2.0
"""The fast and the debug build are the same chip: every event happens in the same cycle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb import build, logs, registry, runner


@pytest.mark.parametrize("name", ["test_program_barriers", "test_program_queues"])
def test_builds_agree_cycle_by_cycle(name: str, tmp_path: Path) -> None:
    """Dispatches and completions of one program, with their cycles, from both builds."""
    (test,) = registry.select([name], registry.discover())
    events = []
    kinds: tuple[build.Kind, ...] = ("fast", "debug")
    for kind in kinds:
        configuration = build.Configuration(kind=kind)
        build.build(configuration)
        result = runner.run(runner.Job(test, configuration, 7, place=tmp_path / kind))
        assert result.passed, result.message
        events.append(np.fromfile(tmp_path / kind / "events.bin", logs.EVENT))
    assert events[0].size > 20
    assert np.array_equal(events[0], events[1])
