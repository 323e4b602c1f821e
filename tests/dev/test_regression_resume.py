# SPDX-License-Identifier: Apache-2.0
"""A regression that is interrupted or killed loses nothing that was finished, and goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from dev.regression import local, reports, results, session, tree
from dev.regression.results import Results
from dev.regression.task import Batch, Outcome
from npu.cli import command_line
from spec.paths import ROOT
from tb.run import build, processes
from tests.dev.regression_interrupted import COUNT, INTERRUPTIONS
from tests.dev.regression_support import execute, found_out, go, tasks_of


@pytest.fixture(autouse=True)
def nothing_real(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Generate no sources, and write no results of the project."""
    monkeypatch.setattr(results, "FILE", tmp_path / "results.sqlite")
    monkeypatch.setattr(build, "generate", lambda: None)


def test_interruptions_change_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C and SIGKILL in turn, at random moments; the reports equal an undisturbed run's."""
    tasks, folder, whole = tasks_of(COUNT), tmp_path / "parts", tmp_path / "whole"
    undisturbed = Results(tmp_path / "undisturbed.sqlite")
    assert go(undisturbed, tasks, whole) == 1
    parts = subprocess.run(
        [sys.executable, "-m", "tests.dev.regression_interrupted", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (parts.returncode, parts.stderr) == (0, "")
    counts = [int(line) for line in parts.stdout.splitlines()]
    assert len(counts) == INTERRUPTIONS
    assert counts == sorted(counts)
    assert len(set(counts)) > INTERRUPTIONS // 4, "they all came before anything had ended"
    store = Results(folder / "results.sqlite")
    assert go(store, tasks, folder) == 1
    capsys.readouterr()
    print(f"results of {COUNT} at the interruptions: {counts}")
    assert [each.state for each in store.runs()] == ["finished"]
    assert len(store.outcomes(1)) == COUNT
    assert found_out(store, folder) == found_out(undisturbed, whole)


def test_an_interruption_while_reports_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run is not finished before its reports are there; going on writes them."""
    store = Results(tmp_path / "results.sqlite")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(reports, "write", stop)
        go(store, tasks_of(10), tmp_path)
    assert [run.state for run in store.runs()] == ["interrupted"]
    go(store, tasks_of(10), tmp_path)
    assert [run.state for run in store.runs()] == ["finished"]
    assert (tmp_path / reports.JSON).exists()


def test_failures_before_an_interruption_get_waves_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waves are recorded when all has ended, of the failures of all parts of a run."""
    asked: list[list[Outcome]] = []
    monkeypatch.setattr(session, "_record", lambda failed, *_: asked.append(list(failed)))
    store = Results(tmp_path / "results.sqlite")
    tasks = tasks_of(80)
    count = 0

    def work(batch: Batch) -> list[Outcome]:
        nonlocal count
        count += 1
        if count == 50:
            raise KeyboardInterrupt
        time.sleep(0.01)
        return execute(batch)

    assert go(store, tasks, tmp_path, work) == 130
    early = [outcome for outcome in store.outcomes(1) if not outcome.passed]
    assert early
    assert not asked
    go(store, tasks, tmp_path)
    assert {o.task for o in asked[0]} >= {o.task for o in early}


@pytest.fixture
def hears_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C interrupt this process, also where whoever began it has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_ends_a_batch_that_would_start_more() -> None:
    """Tests of a shared process run again by themselves, but not after an interruption."""
    started: list[int] = []

    def work(batch: Batch) -> list[Outcome]:
        for _ in range(20):
            started.append(1)
            with Path(os.devnull).open("wb") as nowhere:
                processes.wait(processes.start(["sleep", "30"], Path("/"), os.environ, nowhere))
        return execute(batch)

    batches = [Batch((task,)) for task in tasks_of(200)]
    here = threading.main_thread().ident
    interrupt = threading.Timer(0.3, signal.pthread_kill, [here, signal.SIGINT])
    begun = time.monotonic()
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        local.run(batches, 2, work, lambda _: None)
    assert time.monotonic() - begun < 10.0
    assert 2 <= len(started) <= 40, "a batch began after the interruption"


@pytest.mark.parametrize("count", [10, 1])
@pytest.mark.usefixtures("hears_ctrl_c")
def test_ctrl_c_waits_for_what_is_half_done(count: int) -> None:
    """Results that are being written down are written down; then nothing more begins."""
    written: list[Outcome] = []
    handler = signal.getsignal(signal.SIGINT)

    def take(outcomes: list[Outcome]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):  # time enough to be interrupted
            pass
        written.extend(outcomes)

    batches = [Batch((task,)) for task in tasks_of(count)]
    with pytest.raises(KeyboardInterrupt):
        local.run(batches, 2, execute, take)
    assert len(written) == 1
    assert signal.getsignal(signal.SIGINT) is handler, "the next Ctrl-C would not be heard"


def test_batches_run_in_any_thread() -> None:
    """Ctrl-C is for the main thread; another one does without."""
    written: list[Outcome] = []
    batches = [Batch((task,)) for task in tasks_of(10)]
    thread = threading.Thread(target=local.run, args=(batches, 2, execute, written.extend))
    thread.start()
    thread.join()
    assert len(written) == 10


# What the command goes on with


def regress(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Run the command; return its status and the line that it says on standard error."""
    status = command_line.main(["regress", *words])
    said = capsys.readouterr().err
    assert said.count("\n") == (1 if said else 0), said
    return status, said.strip()


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> list[session.RegressionPlan]:
    """What the command would run, instead of running it."""
    found: list[session.RegressionPlan] = []

    def run(plan: session.RegressionPlan, *_: object) -> int:
        found.append(plan)
        return 0

    monkeypatch.setattr(session, "run", run)
    return found


OPTIONS: dict[str, object] = {"coverage": True, "complete": True}


@pytest.mark.parametrize("state", ["running", "interrupted"])
def test_resume_goes_on(
    plans: list[session.RegressionPlan], capsys: pytest.CaptureFixture[str], state: str
) -> None:
    """A run that was interrupted, or whose process was killed, with all that was asked for."""
    store = Results(results.FILE)
    number = store.begin("full", OPTIONS, tasks_of(3), tree.read().digest)
    if state != "running":
        store.end(number, state, 1.0)
    assert regress(capsys, "--resume") == (0, "")
    assert plans == [session.RegressionPlan(number, store.tasks(number), True, (), True)]
    assert [run.state for run in store.runs()] == ["running"]


def test_a_new_run_ends_one_that_was_killed(
    plans: list[session.RegressionPlan], capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody can be running it, for whoever runs holds the lock."""
    store = Results(results.FILE)
    store.begin("full", OPTIONS, tasks_of(3))
    assert regress(capsys, "smoke", "--filter", "test_dma_random") == (0, "")
    assert [run.state for run in store.runs()] == ["running", "interrupted"]
    assert [task.name for task in plans[0].tasks] == ["test_dma_random"]


@pytest.mark.usefixtures("plans")
@pytest.mark.parametrize("states", [[], ["finished"], ["interrupted", "finished"]])
def test_nothing_to_resume(capsys: pytest.CaptureFixture[str], states: Sequence[str]) -> None:
    """One line, whether there was no run, or the last one has finished."""
    store = Results(results.FILE)
    for state in states:
        store.end(store.begin("full", OPTIONS, tasks_of(1), tree.read().digest), state, 1.0)
    line = "npu: RESUME=1: no run was interrupted; leave it out"
    assert regress(capsys, "--resume") == (2, line)


@pytest.mark.usefixtures("plans")
def test_resume_with_other_sources(capsys: pytest.CaptureFixture[str]) -> None:
    """Half a run of one tree and half of another would be a run of neither."""
    store = Results(results.FILE)
    store.end(store.begin("full", OPTIONS, tasks_of(1), "other"), "interrupted", 1.0)
    status, line = regress(capsys, "--resume")
    assert status == 2
    assert line.startswith("npu: RESUME=1: the sources have changed since run 1 was interrupted")
    assert [run.state for run in store.runs()] == ["interrupted"]


def test_any_source_changes_the_digest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An edit, a new file and a removed one do; what is ignored does not."""
    monkeypatch.setattr(tree, "ROOT", tmp_path)
    (tmp_path / "rtl").mkdir()
    (tmp_path / ".gitignore").write_text("*.bin\n", encoding="utf-8")
    source = tmp_path / "rtl" / "top.sv"
    seen = []
    for text in ("module top;", "module  top;", "module top;"):
        source.write_text(text, encoding="utf-8")
        seen.append(tree.read().digest)
    assert seen[0] == seen[2] != seen[1]
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert tree.read() == tree.Tree(seen[0], "", True)
    (tmp_path / "rtl" / "wave.bin").write_bytes(b"x")
    assert tree.read().digest == seen[0]
    (tmp_path / "rtl" / "new.sv").touch()
    assert tree.read().digest != seen[0]
    source.unlink()
    assert tree.read().digest != seen[0]
