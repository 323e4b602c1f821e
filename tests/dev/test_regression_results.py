# SPDX-License-Identifier: Apache-2.0
"""The database of results: history, results that come twice, broken files, and no room."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from dev.regression import results, session
from dev.regression.reports import verdicts
from dev.regression.results import Results, ResultsError
from dev.regression.task import Outcome, Task
from spec.paths import ROOT
from tests.dev.regression_support import go, outcome_of, tasks_of

NOBODY = 65534


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Results]:
    """An empty database."""
    found = Results(tmp_path / "results.sqlite")
    yield found
    found.close()


def passed(number: int, seconds: float) -> Outcome:
    """Return a pass of a task."""
    return Outcome(tasks_of(number + 1)[number], "passed", "", seconds)


def test_history_stays(store: Results, tmp_path: Path) -> None:
    """Two runs of the same tests stand side by side, also for who opens the file later."""
    tasks = tasks_of(20)
    for _ in range(2):
        go(store, tasks, tmp_path)
    store.close()
    again = Results(tmp_path / "results.sqlite")
    assert [(run.number, run.state) for run in again.runs()] == [(2, "finished"), (1, "finished")]
    assert verdicts(again.outcomes(1)) == verdicts(again.outcomes(2)) != []
    assert again.tasks(1) == sorted(tasks, key=lambda task: task.key)


def test_an_outcome_comes_back_as_it_was(store: Results) -> None:
    """Every field, whatever is in its texts."""
    (task,) = tasks_of(1)
    outcome = replace(
        outcome_of(task),
        message='two\nlines "\u00fc" \x1b[1m',
        output="it's",
        waves="a b",
        attempt=3,
    )
    run = store.begin("full", {}, [task])
    store.add(run, [outcome])
    assert store.outcomes(run) == [outcome]


def test_seconds_are_those_of_the_last_pass(store: Results) -> None:
    """A failure says nothing about how long a test takes."""
    tasks = tasks_of(2)
    first, second, third = (store.begin("full", {}, tasks) for _ in range(3))
    store.add(first, [passed(0, 1.0), passed(1, 5.0)])
    store.add(second, [passed(0, 2.0)])
    store.add(third, [replace(passed(0, 0.1), status="failed")])
    assert store.seconds() == {tasks[0].key: 2.0, tasks[1].key: 5.0}


def test_a_result_that_comes_twice_counts_once(store: Results) -> None:
    """The first one stays."""
    tasks = tasks_of(2)
    run = store.begin("full", {}, tasks)
    store.add(run, [passed(0, 1.0)])
    store.add(run, [replace(passed(0, 2.0), status="failed", message="late"), passed(1, 3.0)])
    assert store.outcomes(run) == [passed(0, 1.0), passed(1, 3.0)]


def test_results_of_an_older_version(tmp_path: Path) -> None:
    """Who writes brings them to this one and loses nothing; who only reads says so."""
    file = tmp_path / "results.sqlite"
    tables = results._TABLES.replace("  memory TEXT NOT NULL DEFAULT '', PRIMARY", "  PRIMARY")
    with sqlite3.connect(file) as old:
        for statement in tables.split(";\n"):
            old.execute(statement)
        old.execute("INSERT INTO tasks VALUES (1, 'k', 'rtl', 'test_a', 'fast-a16', 3, 1, 5)")
        old.execute("PRAGMA user_version = 1")
    old.close()
    with pytest.raises(ResultsError, match="of an older version, which the next make regress"):
        Results(file, reading=True)
    for reading in (False, True):
        store = Results(file, reading=reading)
        assert store.tasks(1) == [Task("rtl", "test_a", "fast-a16", 3, True, 5, "")]
        store.close()


# Files that are no results


def text(file: Path) -> None:
    """A file that somebody else wrote."""
    file.write_text("results of my own\n" * 100, encoding="utf-8")


def version(file: Path) -> None:
    """Results of a later version of this project."""
    store = Results(file)
    store._db.execute("PRAGMA user_version = 7")
    store.close()


def foreign(file: Path) -> None:
    """The database of another program."""
    with sqlite3.connect(file) as other:
        other.execute("CREATE TABLE bookmarks (address TEXT)")
    other.close()


def damaged(file: Path) -> None:
    """Results whose first page is lost."""
    version(file)
    file.write_bytes(b"\0" * 4096 + file.read_bytes()[4096:])


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (text, "file is not a database; move it away, or name another file by RESULTS="),
        (version, "given results of version 7, allowed 2; move it away"),
        (foreign, "given the database of another program; name another file by RESULTS="),
        (damaged, "file is not a database; move it away, or name another file by RESULTS="),
        (Path.mkdir, "unable to open database file; move it away, or name another file by"),
    ],
)
def test_a_file_that_is_no_results(tmp_path: Path, make: Callable[[Path], None], said: str) -> None:
    """One line; whose file it is stays as it was."""
    file = tmp_path / "results.sqlite"
    make(file)
    before = file.read_bytes() if file.is_file() else b""
    with pytest.raises(ResultsError) as raised:
        Results(file)
    assert str(raised.value).startswith(f"{file}: {said}")
    assert "\n" not in str(raised.value)
    assert (file.read_bytes() if file.is_file() else b"") == before


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("/proc/results.sqlite", "/proc/results.sqlite: unable to open database file; move it"),
        ("/proc/nowhere/results.sqlite", "/proc/nowhere: No such file or directory"),
        ("/dev/null/results.sqlite", "/dev/null"),
    ],
)
def test_a_folder_that_cannot_be_written(file: str, said: str) -> None:
    """One line that says which."""
    with pytest.raises(ResultsError) as raised:
        Results(Path(file))
    assert str(raised.value).startswith(said)


def test_results_that_are_read_only() -> None:
    """What is there can not go on; the line says so."""
    with tempfile.TemporaryDirectory() as home:
        file = Path(home) / "results.sqlite"
        Results(file).close()
        file.chmod(0o444)
        Path(home).chmod(0o555)
        user = os.geteuid()
        os.seteuid(NOBODY if user == 0 else user)  # nothing is read-only for root
        try:
            with pytest.raises(ResultsError, match=r"readonly database; move it away, or name"):
                Results(file)
        finally:
            os.seteuid(user)
            Path(home).chmod(0o755)


# No room


def test_a_full_disk_keeps_what_was_finished(store: Results, tmp_path: Path) -> None:
    """One line; the results that are there can be read, and the run goes on when there is room."""
    (pages,) = store._db.execute("PRAGMA page_count").fetchone()
    store._db.execute(f"PRAGMA max_page_count = {pages + 40}")
    tasks = tasks_of(900)
    with pytest.raises(ResultsError, match=r"^.*full; free some space$"):
        go(store, tasks, tmp_path)
    finished = Results(store.file).outcomes(1)
    assert 0 < len(finished) < len(tasks)
    assert verdicts(finished) == verdicts([outcome_of(each.task) for each in finished])
    store._db.execute("PRAGMA max_page_count = 100000")
    assert go(store, tasks, tmp_path) == 1
    assert len(store.outcomes(1)) == len(tasks)


# Two at once


def test_two_regressions_at_once(tmp_path: Path) -> None:
    """The second one says who writes the results; afterwards anybody may."""
    file = tmp_path / "results.sqlite"
    code = f"""
from pathlib import Path
from dev.regression import results, session
with session.lock(Path({str(file)!r})):
    print("held", flush=True)
    input()
"""
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=pipe, stdout=pipe, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(session.BusyError) as raised, session.lock(file):
            pass
        assert str(raised.value) == (
            f"{file}: the regression of process {other.pid} writes it; wait for its end, or name "
            "another file by RESULTS="
        )
        with session.lock(tmp_path / "results.db"):
            pass
        other.kill()
    with session.lock(file):
        pass


def test_a_lock_never_writes_into_results(tmp_path: Path) -> None:
    """Not even when they are called as a lock might be."""
    file = tmp_path / "results.lock"
    Results(file).close()
    with session.lock(file):
        Results(file).close()
