# SPDX-License-Identifier: Apache-2.0
"""The database of results: SQLite, one file, with the history of all runs.

Every result is committed when it comes, so what was finished is there whatever happens next. The
file stands outside of build/, which `make clean` removes.
"""

from __future__ import annotations

import datetime
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

from dev.coverage.points import Points, Table
from dev.regression.task import ExecutedRow, Outcome, Task
from spec.paths import ROOT

FILE = Path(os.environ.get("RESULTS") or ROOT / ".regress" / "results.sqlite")
VERSION = 2
_TABLES = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, begun TEXT NOT NULL, ended TEXT, state TEXT NOT NULL,
  tier TEXT NOT NULL, options TEXT NOT NULL, tree TEXT NOT NULL, revision TEXT NOT NULL,
  dirty INTEGER NOT NULL, host TEXT NOT NULL, seconds REAL NOT NULL DEFAULT 0);
CREATE TABLE tasks (run INTEGER NOT NULL, key TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL,
  model TEXT NOT NULL, seed INTEGER NOT NULL, full INTEGER NOT NULL, hostile INTEGER NOT NULL,
  memory TEXT NOT NULL DEFAULT '', PRIMARY KEY (run, key)) WITHOUT ROWID;
CREATE TABLE results (run INTEGER NOT NULL, key TEXT NOT NULL, status TEXT NOT NULL,
  message TEXT NOT NULL, seconds REAL NOT NULL, cycles INTEGER NOT NULL, rows TEXT NOT NULL,
  output TEXT NOT NULL, log TEXT NOT NULL, repeat TEXT NOT NULL, waves TEXT NOT NULL,
  worker TEXT NOT NULL, attempt INTEGER NOT NULL, at TEXT NOT NULL, PRIMARY KEY (run, key));
CREATE TABLE covered (run INTEGER NOT NULL, key TEXT NOT NULL, points BLOB NOT NULL,
  PRIMARY KEY (run, key));
CREATE TABLE points (digest TEXT PRIMARY KEY, points BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE notes (run INTEGER NOT NULL, at TEXT NOT NULL, text TEXT NOT NULL);
"""
_RENEWED = {1: "ALTER TABLE tasks ADD COLUMN memory TEXT NOT NULL DEFAULT ''"}
"""What brings the tables of an older version to the next one."""
_TASK = ("kind", "name", "model", "seed", "full", "hostile", "memory")
_FIGURES = ("status", "seconds", "cycles", "attempt")
_TEXTS = ("message", "output", "log", "repeat", "waves", "worker")
"""Columns of a task, and of an outcome after its task, called as the fields."""


class ResultsError(RuntimeError):
    """The database cannot be used; the text says why and what to do."""


@dataclass(frozen=True)
class Run:
    """One regression.

    Attributes:
        number: its identity, in the order of the runs.
        begun, ended: UTC, ISO 8601; "" while it has not ended.
        state: "running", "finished" or "interrupted".
        tier: its tier.
        options: how it was asked for.
        tree: digest of the sources (`dev.regression.tree`).
        revision: commit that was checked out.
        dirty: whether there were other changes.
        host: the machine.
        seconds: wall-clock time, of all its parts.
    """

    number: int
    begun: str
    ended: str
    state: str
    tier: str
    options: dict[str, object]
    tree: str
    revision: str
    dirty: bool
    host: str
    seconds: float


class Note(NamedTuple):
    """Something that happened to a run, such as a worker that died, and when (UTC, ISO 8601)."""

    at: str
    text: str


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def _task(row: tuple[Any, ...]) -> Task:
    kind, name, model, seed, full, hostile, memory = row
    return Task(kind, name, model, seed, bool(full), hostile, memory)


class Results:
    """The open database; one process writes at a time, any number may read.

    Attributes:
        file: the SQLite file.
        problems: what could not be read of it so far, one line each.
    """

    def __init__(self, file: Path = FILE, *, reading: bool = False) -> None:
        """Open the database, or make it unless it is only for reading, which changes nothing.

        Raises:
            ResultsError: it is no database, one of another version, or of another program.
        """
        self.file = file
        self.problems: list[str] = []
        with self._explained():
            if reading:
                self._db = sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)
                self._db.text_factory = lambda raw: raw.decode("utf-8", "replace")
                if self._version() in _RENEWED:
                    raise ResultsError(
                        f"{file}: given results of an older version, which the next make regress "
                        "renews"
                    )
                return
            file.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(file, timeout=30.0, isolation_level=None)
            version = self._version()
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            if version == 0:
                with self._changing():
                    if self._version() == 0:
                        for statement in _TABLES.split(";\n"):
                            self._db.execute(statement)
                        self._db.execute(f"PRAGMA user_version = {VERSION}")
            while version in _RENEWED:
                with self._changing():
                    if self._version() == version:
                        self._db.execute(_RENEWED[version])
                        self._db.execute(f"PRAGMA user_version = {version + 1}")
                version += 1

    def _version(self) -> int:
        """Return the version of the tables, 0 if there are none. Nothing is written."""
        version, tables = self._db.execute(
            "SELECT user_version, (SELECT count(*) FROM sqlite_master) FROM pragma_user_version"
        ).fetchone()
        if version not in (0, *_RENEWED, VERSION):
            raise ResultsError(
                f"{self.file}: given results of version {version}, allowed {VERSION}; move it away"
            )
        if version == 0 and tables:
            raise ResultsError(
                f"{self.file}: given the database of another program; name another file by RESULTS="
            )
        return int(version)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            advice = {"SQLITE_FULL": "free some space", "SQLITE_IOERR_WRITE": "free some space"}
            name = getattr(error, "sqlite_errorname", "")
            todo = advice.get(name, "move it away, or name another file by RESULTS=")
            raise ResultsError(f"{self.file}: {error}; {todo}") from None
        except OSError as error:
            raise ResultsError(f"{error.filename or self.file}: {error.strerror}") from None

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            self._db.execute("BEGIN IMMEDIATE")
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close it."""
        self._db.close()

    def begin(
        self,
        tier: str,
        options: dict[str, object],
        tasks: Iterable[Task],
        tree: str = "",
        revision: str = "",
        dirty: bool = False,
    ) -> int:
        """Write down a new run and what it is to do; return its number."""
        with self._explained(), self._changing():
            run = self._db.execute(
                "INSERT INTO runs (begun, state, tier, options, tree, revision, dirty, host) "
                "VALUES (?, 'running', ?, ?, ?, ?, ?, ?)",
                (_now(), tier, json.dumps(options), tree, revision, dirty, os.uname().nodename),
            ).lastrowid
            self._db.executemany(
                f"INSERT INTO tasks (run, key, {', '.join(_TASK)}) "
                f"VALUES (?, ?{', ?' * len(_TASK)})",
                [(run, task.key, *(getattr(task, name) for name in _TASK)) for task in tasks],
            )
        return int(run or 0)

    def add(self, run: int, outcomes: Sequence[Outcome]) -> None:
        """Write down how tasks ended. A task that has a result keeps it."""
        rows = [
            (run, o.task.key, o.status, o.message, o.seconds, o.cycles,
             json.dumps({row.name: row[1:] for row in o.rows}),
             o.output, o.log, o.repeat, o.waves, o.worker, o.attempt, _now())
            for o in outcomes
        ]  # fmt: skip
        covered = [(run, o.task.key, o.covered) for o in outcomes if o.covered]
        tables = {Points.digest_of(o.covered): o.table for o in outcomes if o.covered}
        with self._explained(), self._changing():
            marks = ", ".join("?" * 14)
            self._db.executemany(f"INSERT OR IGNORE INTO results VALUES ({marks})", rows)
            self._db.executemany("INSERT OR IGNORE INTO covered VALUES (?, ?, ?)", covered)
            self._db.executemany("INSERT OR IGNORE INTO points VALUES (?, ?)", tables.items())

    def set_waves(self, run: int, key: str, waves: str) -> None:
        """Write down where the waveform of a failure is."""
        with self._explained(), self._changing():
            self._db.execute(
                "UPDATE results SET waves = ? WHERE run = ? AND key = ?", (waves, run, key)
            )

    def note(self, run: int, text: str) -> None:
        """Write down what happened to a run, such as a worker that died."""
        with self._explained(), self._changing():
            self._db.execute("INSERT INTO notes VALUES (?, ?, ?)", (run, _now(), text))

    def end(self, run: int, state: str, seconds: float) -> None:
        """Write down that a run has ended, or was interrupted, after some more seconds."""
        with self._explained(), self._changing():
            self._db.execute(
                "UPDATE runs SET state = ?, ended = ?, seconds = seconds + ? WHERE id = ?",
                (state, _now(), seconds, run),
            )

    def again(self, run: int) -> None:
        """Write down that a run goes on."""
        with self._explained(), self._changing():
            self._db.execute("UPDATE runs SET state = 'running', ended = NULL WHERE id = ?", (run,))

    def runs(self) -> list[Run]:
        """Return all runs, the last one first."""
        with self._explained():
            found = self._db.execute(
                "SELECT id, begun, coalesce(ended, ''), state, tier, options, tree, revision, "
                "dirty, host, seconds FROM runs ORDER BY id DESC"
            ).fetchall()
        names = [field.name for field in fields(Run)]
        return [
            Run(**dict(zip(names, row, strict=True)) | {"options": json.loads(row[5])})
            for row in found
        ]

    def tasks(self, run: int) -> list[Task]:
        """Return what a run was to do."""
        with self._explained():
            found = self._db.execute(
                f"SELECT {', '.join(_TASK)} FROM tasks WHERE run = ? ORDER BY key", (run,)
            )
            return [_task(row) for row in found]

    def outcomes(self, run: int, *, whole: bool = True) -> list[Outcome]:
        """Return how tasks of a run have ended, in the order of their keys.

        Args:
            run: its number.
            whole: all of them; otherwise without texts and rows of the coverage table.
        """
        texts = (*_TEXTS, "rows") if whole else ()
        with self._explained():
            found = self._db.execute(
                f"SELECT {', '.join((*_TASK, *_FIGURES, *texts))} FROM results JOIN tasks"
                " USING (run, key) WHERE run = ? ORDER BY key",
                (run,),
            ).fetchall()
        return [self._outcome(row, whole) for row in found]

    def _outcome(self, row: tuple[Any, ...], whole: bool) -> Outcome:
        task, found = _task(row[: len(_TASK)]), row[len(_TASK) :]
        values = dict(zip((*_FIGURES, *(_TEXTS if whole else ())), found, strict=False))
        rows = self._rows(task, found[-1]) if whole else ()
        return Outcome(task, **values | {"seconds": float(values["seconds"]), "rows": rows})

    def _rows(self, task: Task, text: str) -> tuple[ExecutedRow, ...]:
        try:
            found = json.loads(text).items()
            return tuple(ExecutedRow(name, int(times), int(most)) for name, (times, most) in found)
        except (AttributeError, TypeError, ValueError):
            self.problems.append(f"{task.key}: its rows are no counts by name")
            return ()

    def covered(self, run: int) -> dict[str, Points]:
        """Return the points of the design that the process of each task of a run has executed."""
        with self._explained():
            kept = self._db.execute(
                "SELECT key, points FROM covered WHERE run = ?", (run,)
            ).fetchall()
            tables = dict(self._db.execute("SELECT digest, points FROM points").fetchall())
        decoded: dict[str, Table] = {}
        found: dict[str, Points] = {}
        for key, points in kept:
            digest = Points.digest_of(points)
            if digest not in decoded:
                decoded[digest] = Table.decode(tables[digest])
            found[key] = Points.decode(points, decoded[digest])
        return found

    def notes(self, run: int) -> list[Note]:
        """Return what happened to a run."""
        with self._explained():
            found = self._db.execute(
                "SELECT at, text FROM notes WHERE run = ? ORDER BY rowid", (run,)
            )
            return [Note(*row) for row in found]

    def seconds(self) -> dict[str, float]:
        """Return what each task took when it last passed, by its key."""
        with self._explained(), closing(self._db.cursor()) as cursor:
            cursor.execute("SELECT key, seconds FROM results WHERE status = 'passed' ORDER BY run")
            return dict(cursor.fetchall())
