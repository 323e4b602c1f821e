# SPDX-License-Identifier: Apache-2.0
"""A failed test is recorded again by itself, around the first mismatch, if it fails the same way.

Here the simulator is a function; `tests/suites/test_failure_waves.py` has a real one, of a wrong
chip.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spec.configurations import CHIPS
from spec.paths import BUILD
from tb.bench import failure
from tb.bench.failure import UNKNOWN, Failure
from tb.run import build, failure_waves, registry, runner, units, waves

TOLD = Failure("test_x", 0, 9000, 3, "VEC", "instruction 3 (VEC): wrong at cycle 9000, 90000 ns")
MODEL = build.Configuration()

Simulate = Callable[[runner.Job], Failure | None]
Runs = Callable[[Simulate], list[runner.Job]]


@pytest.fixture
def job(tmp_path: Path) -> runner.Job:
    """Return a test that has failed, which has left where."""
    test = registry.BenchTest("tb.tests.test_x", "test_x", "")
    job = runner.Job(test, MODEL, 7, place=tmp_path / "run")
    job.folder.mkdir()
    failure.save(job.folder, TOLD)
    return job


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Return a function that replaces the simulator; the list that it returns says what has run."""

    def of(simulate: Simulate) -> list[runner.Job]:
        seen: list[runner.Job] = []

        def run(job: runner.Job) -> runner.TestResult:
            seen.append(job)
            job.folder.mkdir(exist_ok=True)
            failure.file_of(job.folder, job.test.name).unlink(missing_ok=True)
            found = simulate(job)
            if found is not None:
                failure.save(job.folder, found)
            return runner.TestResult(job, found is None, "", "", 1.0)

        monkeypatch.setattr(runner, "run", run)
        monkeypatch.setattr(build, "build", lambda model: model.binary)
        monkeypatch.setattr(build, "fst_missing", lambda: None)
        monkeypatch.setattr(waves, "WAVES", BUILD / "waves")
        monkeypatch.setattr(
            failure_waves, "write_save_file", lambda _, fst: fst.with_suffix(".gtkw")
        )
        return seen

    return of


def test_it_is_recorded_around_the_mismatch(job: runner.Job, runs: Runs) -> None:
    """With the same seed, on the model that records, in a folder beside that of the failure."""
    seen = runs(lambda _: TOLD)
    recorded = failure_waves.record(replace(job, full=True, plusargs=("fault=3",)))
    (run,) = seen
    assert (run.test, run.seed, run.full, run.plusargs) == (job.test, 7, True, ("fault=3",))
    assert run.configuration == build.Configuration(kind="debug")
    assert run.window == (7000, 9200)
    assert run.folder != job.folder
    assert recorded.save_file == BUILD / "waves" / "test_x-7-full-fault_3.gtkw"
    assert recorded.text == "waves: gtkwave build/waves/test_x-7-full-fault_3.gtkw"
    assert recorded.failure == TOLD


def test_a_test_alone_begins_at_the_first_cycle(job: runner.Job, runs: Runs) -> None:
    """After other tests of the same process it began later."""
    failure.save(job.folder, replace(TOLD, start=5000))
    alone = replace(TOLD, cycle=4001, message=TOLD.message.replace("9000", "4001"))
    seen = runs(lambda _: alone)
    assert failure_waves.record(job).save_file is not None
    assert [run.window for run in seen] == [(2000, 4200)]


def test_a_mismatch_elsewhere_is_recorded_there(job: runner.Job, runs: Runs) -> None:
    """The window moves to where the test fails by itself."""
    seen = runs(lambda _: replace(TOLD, cycle=20_000))
    assert failure_waves.record(job).save_file is not None
    assert [run.window for run in seen] == [(7000, 9200), (18_000, 20_200)]


def test_without_a_cycle_all_is_recorded(job: runner.Job, runs: Runs) -> None:
    """A simulator that died has not said when."""
    dead = replace(TOLD, cycle=UNKNOWN)
    failure.save(job.folder, dead)
    seen = runs(lambda _: dead)
    assert failure_waves.record(job).save_file is not None
    assert [run.window for run in seen] == [None]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, "no waves: the failure does not repeat, the test passes"),
        (
            replace(TOLD, instr=4, message="instruction 4"),
            "no waves: the failure does not repeat, the test fails otherwise: instruction 4",
        ),
        (
            replace(TOLD, message="instruction 3 (VEC): late"),
            "no waves: the failure does not repeat, the test fails otherwise: "
            "instruction 3 (VEC): late",
        ),
    ],
)
def test_a_failure_that_does_not_repeat_is_said(
    job: runner.Job,
    runs: Runs,
    found: Failure | None,
    text: str,
) -> None:
    """It passes alone, or fails in another way: its waves would show something else."""
    runs(lambda _: found)
    assert failure_waves.record(job) == failure_waves.FailureWaves(None, text, found)


def test_a_failure_of_elsewhere_is_found_by_running_it(job: runner.Job, runs: Runs) -> None:
    """Its folder is on another machine, or has what another run has left."""
    elsewhere = "instruction 5 (GEMM): wrong at cycle 30000, 300000 ns"
    seen = runs(lambda _: replace(TOLD, cycle=30_000, instr=5, message=elsewhere))
    assert failure_waves.record(job, elsewhere).save_file is not None
    assert [run.window for run in seen] == [(0, 200), (28_000, 30_200)]
    failure.file_of(job.folder, job.test.name).unlink()
    assert failure_waves.record(job).save_file is not None
    assert "fails otherwise" in failure_waves.record(job, "instruction 5 (GEMM): late").text


def test_it_runs_without_other_tests(job: runner.Job, runs: Runs) -> None:
    """Whatever ran beside it, and whichever simulator has run it."""
    seen = runs(lambda _: TOLD)
    failure_waves.record(replace(job, companions=(job.test,), binary=Path("/fast"), hostile=4))
    assert [(run.companions, run.binary, run.hostile) for run in seen] == [((), None, 4)]
    assert seen[0].waves == BUILD / "waves" / "test_x-7-hostile4.fst"


def test_what_is_missing_is_said(job: runner.Job, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header of the system."""
    monkeypatch.setattr(build, "fst_missing", lambda: "install the Debian package zlib1g-dev")
    assert failure_waves.record(job).text == "no waves: install the Debian package zlib1g-dev"


def test_the_model_that_records() -> None:
    """It is built beside the one that has failed, from the same sources."""
    assert failure_waves.debug_model(MODEL).folder == BUILD / "sim" / "debug-a16"
    assert failure_waves.debug_model(replace(MODEL, coverage=True)).folder.name == "debug-a16"
    copy = build.Configuration(rtl=Path("/copy"), label="wrong")
    assert failure_waves.debug_model(copy) == replace(copy, kind="debug", label="wrong-debug")
    block = units.UnitConfiguration(block="vec")
    assert failure_waves.debug_model(block).folder == BUILD / "unit" / "debug-vec"


def test_waves_of_one_test_on_several_models_have_names_of_their_own(job: runner.Job) -> None:
    """Runs side by side write to different files."""
    models = {
        "test_x-7": MODEL,
        "test_x-7-a8": build.Configuration(chip=CHIPS["a8"]),
        "test_x-7-a16_int8": build.Configuration(chip=CHIPS["a16-int8"]),
        "test_x-7-wrong_debug": build.Configuration(label="wrong"),
    }
    for name, model in models.items():
        assert failure_waves.name_of(replace(job, configuration=model)) == name
