# SPDX-License-Identifier: Apache-2.0
"""Scenes of random tests run again with fewer parts until only what a failure needs is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tb.bench import scenes
from tb.bench.scenes import Keep, SceneRecord
from tb.run import build, registry, runner, shrinking

PARTS = [*(f"p{number}" for number in range(9)), *(f"c{number}" for number in range(4))]


@pytest.fixture
def failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> runner.TestResult:
    """A run whose scene 7 has failed."""
    monkeypatch.setattr(shrinking, "PLACE", tmp_path / "shrinking")
    (test,) = registry.select(["test_mixed"], registry.discover())
    job = runner.Job(test, build.Configuration(), 3, place=tmp_path / "run", full=True)
    job.folder.mkdir()
    scenes.record(job.folder, SceneRecord(test.name, 7, PARTS, "everything"))
    return runner.TestResult(job, False, "wrong byte", "", 1.0)


def _chip(needs: Callable[[Sequence[str]], bool]) -> Callable[[runner.Job], runner.TestResult]:
    """Return what runs a job whose test fails if the parts that are kept are such."""

    def run(job: runner.Job) -> runner.TestResult:
        keep = Keep.parse(job.keep)
        parts = list(keep.parts or PARTS)
        job.folder.mkdir(parents=True, exist_ok=True)
        found = SceneRecord(job.test.name, keep.scene, parts, " and ".join(parts))
        scenes.record(job.folder, found)
        wrong = needs(parts)
        return runner.TestResult(job, not wrong, "wrong byte" if wrong else "", "", 1.0)

    return run


@pytest.mark.parametrize("needed", [("p0",), ("c3",), ("p2", "p8", "c1"), tuple(PARTS)])
def test_what_is_left_is_what_the_failure_needs(
    failed: runner.TestResult, needed: tuple[str, ...]
) -> None:
    """No more and no less, told with one line that repeats it."""
    found = shrinking.shrink(failed, _chip(lambda parts: set(needed) <= set(parts)))
    assert found is not None
    assert str(found) == (
        f"shrunk to {len(needed)} of {len(PARTS)} parts in {found.runs} runs: wrong byte\n"
        f"{' and '.join(needed)}\n"
        f"repeat: make SIM=verilator TESTCASE=test_mixed SEED=3 FULL=1 KEEP=7:{'+'.join(needed)}"
    )
    assert found.runs <= 60


def test_a_scene_that_needs_those_before_it(failed: runner.TestResult) -> None:
    """Alone it passes, and nothing is told of it."""
    assert shrinking.shrink(failed, _chip(lambda parts: False)) is None


def test_only_a_scene_of_the_failed_test_is_shrunk(failed: runner.TestResult) -> None:
    """One of a test before it in the same process is not, nor is what was shrunk already."""
    assert shrinking.has_scene(failed)
    other = replace(failed.job, keep="7:p1")
    assert not shrinking.has_scene(replace(failed, job=other))
    scenes.record(failed.job.folder, SceneRecord("test_gemm_random", 0, PARTS, ""))
    assert not shrinking.has_scene(failed)


@pytest.mark.parametrize("text", ["17", "0", "17:p3", "17:p3+c0+p12"])
def test_what_is_kept_is_read_as_it_is_told(text: str) -> None:
    """A number, or a number and parts."""
    assert str(Keep.parse(text)) == text


@pytest.mark.parametrize("text", ["", "p3", "17:", "17:p", "17:p3,c0", "-1", "17:p3+"])
def test_anything_else_is_refused(text: str) -> None:
    """With what is allowed."""
    with pytest.raises(ValueError, match=r"^KEEP: given .*, allowed what a failing test prints"):
        Keep.parse(text)
