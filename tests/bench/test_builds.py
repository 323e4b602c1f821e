# SPDX-License-Identifier: Apache-2.0
"""The fast and the debug build are the same chip: every event happens in the same cycle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tb import build, logs, registry, runner

NAMES = (
    "test_program_barriers",  # all engines
    "test_program_queues",  # all of them at once, full queues
    "test_stream_tickets",  # three consumers of the stream
    "test_dma_boundaries",  # bursts of every length, both directions
    "test_gemm_single_rows",  # both weight sets wait
)


@pytest.mark.parametrize("name", NAMES)
def test_builds_agree_cycle_by_cycle(name: str, tmp_path: Path) -> None:
    """Every start, dispatch, completion and interrupt of a test, with its cycle, in both builds."""
    (test,) = registry.select([name], registry.discover())
    found: list[list[logs.Records]] = []
    kinds: tuple[build.Kind, ...] = ("fast", "debug")
    for kind in kinds:
        configuration = build.Configuration(kind=kind)
        build.build(configuration)
        result = runner.run(runner.Job(test, configuration, 7, place=tmp_path / kind))
        assert result.passed, result.message
        files = ("events.bin", "trace.bin")
        found.append([np.fromfile(tmp_path / kind / file, logs.EVENT) for file in files])
    assert found[0][0].size > 20
    for fast, debug in zip(*found, strict=True):
        assert np.array_equal(fast, debug)
