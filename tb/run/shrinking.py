# SPDX-License-Identifier: Apache-2.0
"""Finds the few parts of a random scene with which a test still fails.

Each try is a run of its own, in a simulator of its own: a failed assertion ends the simulator, and
nothing is left of the scenes before. What a test draws and how it names the parts is in
`tb.bench.scenes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from spec.paths import BUILD
from tb.bench import scenes
from tb.bench.scenes import Keep
from tb.run import runner

PLACE = BUILD / "runs" / "shrinking"
MOST_RUNS = 200
"""A scene that takes more is told as far as it is."""


@dataclass(frozen=True)
class Shrunk:
    """What is left of a scene.

    Attributes:
        result: the run that still fails.
        of: how many parts the whole scene has.
        runs: how many runs it took.
        text: the scene that is left, for people.
    """

    result: runner.TestResult
    of: int
    runs: int
    text: str

    def __str__(self) -> str:
        parts = Keep.parse(self.result.job.keep).parts
        left = self.of if parts is None else len(parts)
        return (
            f"shrunk to {left} of {self.of} parts in {self.runs} runs: {self.result.message}\n"
            f"{self.text}\nrepeat: {self.result.job.repro}"
        )


def has_scene(failed: runner.TestResult) -> bool:
    """Whether a run that has failed drew a scene that can be shrunk."""
    last = scenes.last_of(failed.job.folder)
    return ":" not in failed.job.keep and last is not None and last.test == failed.job.test.name


def shrink(
    failed: runner.TestResult, run: Callable[[runner.Job], runner.TestResult]
) -> Shrunk | None:
    """Return the smallest scene found with which a test still fails.

    Args:
        failed: a run that has failed.
        run: runs a job, `runner.run`.

    Returns:
        None if the last scene does not fail without those before it.
    """
    job = failed.job
    whole = scenes.last_of(job.folder)
    if whole is None:
        raise ValueError(f"{job.test.name}: it has drawn no scene")
    runs = 0

    def fails(parts: Sequence[str]) -> Shrunk | None:
        nonlocal runs
        runs += 1
        keep = Keep(whole.scene, tuple(parts))
        smaller = replace(
            job, keep=str(keep), companions=(), waves=None, place=PLACE / job.folder.name
        )
        result = run(smaller)
        found = scenes.last_of(smaller.folder)
        if result.passed or found is None:
            return None
        return Shrunk(result, len(whole.parts), runs, found.text)

    left = whole.parts
    shrunk = fails(left)
    size = max(1, len(left) // 2)
    while shrunk is not None and runs < MOST_RUNS:
        at = 0
        while at < len(left) and len(left) > 1 and runs < MOST_RUNS:
            rest = [*left[:at], *left[at + size :]]
            found = fails(rest) if rest else None
            if found is None:
                at += size
            else:
                left, shrunk = rest, found
        if size == 1:
            break
        size //= 2
    return None if shrunk is None else replace(shrunk, runs=runs)
