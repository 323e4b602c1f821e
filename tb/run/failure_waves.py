# SPDX-License-Identifier: Apache-2.0
"""Records a test that has failed again, by itself, around the first mismatch, for the viewer.

The waveform of a long test is hundreds of megabytes, of which a few thousand cycles tell what went
wrong. Those are what is recorded, and the viewer opens at the mismatch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from spec.configurations import USUAL
from spec.paths import ROOT, RTL
from tb.bench import failure
from tb.bench.failure import UNKNOWN, Failure
from tb.run import build, runner, units, waves

BEFORE, AFTER = 2_000, 200
"""Cycles that are recorded before and after the first mismatch."""
_TIMES = re.compile(r"\[\d+\]|\bcycle \d+|\b\d+ ns\b")
"""What a message says about when, which is another time after other tests of the same process."""


@dataclass(frozen=True)
class FailureWaves:
    """What became of recording a failure.

    Attributes:
        save_file: opens in GTKWave at the mismatch; None if there is none.
        text: a line that says so, or why there is none.
        failure: where the recorded run has failed.
    """

    save_file: Path | None
    text: str
    failure: Failure | None = None


def write_save_file(job: runner.Job, fst: Path) -> Path:
    """Write the save file of a recorded run, which opens at the mismatch if the run has failed.

    Raises:
        WaveError: a signal that the view names is not in the waveform.
    """
    view = None
    if isinstance(job.configuration, units.UnitConfiguration):
        view = waves.block_view(waves.signals_in(fst))
    return waves.write_save_file(fst, view, failure.load(job.folder, job.test.name))


def debug_model(model: build.Configuration) -> build.Configuration:
    """Return the model that records what this one runs."""
    if model.kind == "debug":
        return model
    label = f"{model.label}-debug" if model.label else ""
    return replace(model, kind="debug", coverage=False, label=label)


def name_of(job: runner.Job) -> str:
    """Return the name of a job's waveform: test and seed, and what else is not as usual."""
    model = debug_model(job.configuration)
    usual = replace(model, chip=USUAL, rtl=RTL, label="")
    other = [] if model.folder == usual.folder else [model.folder.name.removeprefix("debug-")]
    form = [
        *(["full"] if job.full else []),
        *([f"hostile{job.hostile}"] if job.hostile else []),
        *([job.memory] if job.memory else []),
        *job.plusargs,
    ]
    words = [job.test.name, str(job.seed), *other, *form]
    return "-".join(re.sub(r"[^\w.]+", "_", word) for word in words)


def _window(cycle: int) -> tuple[int, int] | None:
    """Return the cycles to record around one; all of them if it is not known."""
    return None if cycle == UNKNOWN else (max(0, cycle - BEFORE), cycle + AFTER)


def _same(one: str, other: str) -> bool:
    """Whether two messages say the same in their first lines, whenever it was."""
    first, second = (_TIMES.sub("", text.partition("\n")[0]) for text in (one, other))
    return first == second


def _fails(job: runner.Job) -> Failure | None:
    """Run a test; return how it has failed, None if it has not."""
    runner.run(job)
    runner.discard_images(job)
    return failure.load(job.folder, job.test.name)


def _shown(found: Failure, window: tuple[int, int] | None) -> bool:
    """Whether a waveform of these cycles has the mismatch."""
    return window is None or window[0] <= found.cycle <= window[1]


def _again(job: runner.Job, cycle: int, fst: Path) -> tuple[runner.Job, Failure | None]:
    """Run a test by itself so that its waveform has the mismatch; return run and failure.

    If it fails at another cycle than is expected, it runs once more: the window is known now.
    """
    recorded = replace(
        job,
        configuration=debug_model(job.configuration),
        place=job.folder.with_name(f"{job.folder.name}-waves"),
        companions=(),
        binary=None,
        waves=fst,
        window=_window(cycle),
    )
    found = _fails(recorded)
    if found is not None and not _shown(found, recorded.window):
        recorded = replace(recorded, window=_window(found.cycle))
        found = _fails(recorded)
    return recorded, found


def record(job: runner.Job, message: str = "") -> FailureWaves:
    """Record a test that has failed: build/waves/TEST-SEED.fst around the mismatch, and .gtkw.

    Args:
        job: what has failed. What its folder holds of the failure saves a run, for it says when.
        message: what the failed run has said; by default what its folder says, if anything.

    Raises:
        BuildError: the model that records cannot be built.
        WaveError: a signal that the view names is not in the waveform.
    """
    missing = build.fst_missing()
    if missing is not None:
        return FailureWaves(None, f"no waves: {missing}")
    told = failure.load(job.folder, job.test.name)
    if told is not None and message and not _same(told.message, message):
        told = None  # of another run in the same folder
    cycle, said = (0, "") if told is None else (told.alone, told.message)
    message = message or said
    build.build(debug_model(job.configuration))
    waves.WAVES.mkdir(parents=True, exist_ok=True)
    fst = waves.WAVES / f"{name_of(job)}.fst"
    recorded, found = _again(job, cycle, fst)
    if found is None or (message and not _same(message, found.message)):
        now = "passes" if found is None else f"fails otherwise: {found.message.splitlines()[0]}"
        return FailureWaves(None, f"no waves: the failure does not repeat, the test {now}", found)
    save_file = write_save_file(recorded, fst)
    return FailureWaves(save_file, f"waves: gtkwave {save_file.relative_to(ROOT)}", found)
