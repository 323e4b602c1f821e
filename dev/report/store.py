# SPDX-License-Identifier: Apache-2.0
"""Reads the results of regression runs from their SQLite file; never writes it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dev.report.runs import STATES, Ended, Note, Result, Run, Store
from dev.report.source import Source, one_line, shown

COMMAND = "make regress"
RUNS_MOST = 60
"""Runs whose results are read, the latest; older ones stay in the file."""


def read_store(path: Path, number: int | None = None) -> Source[Store]:
    """Read the results of a run, and of those before it.

    Args:
        path: the SQLite file.
        number: of the run that the page is about; None for the latest.
    """
    file = shown(path)
    if not path.is_file():
        return Source(file, COMMAND)
    try:
        # By its URI, so that nothing is created or changed.
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            database.row_factory = sqlite3.Row
            database.text_factory = lambda raw: raw.decode("utf-8", "replace")
            store = _store(database, number)
    except (sqlite3.Error, IndexError, TypeError, ValueError) as error:
        return Source(file, COMMAND, problem=one_line(error))
    if store is None:
        asked = "no run is in it" if number is None else f"no run in it has the number {number}"
        return Source(file, COMMAND, problem=asked)
    return Source(file, COMMAND, store)


def _store(database: sqlite3.Connection, number: int | None) -> Store | None:
    """Return what the database holds up to a run, None if there is no such run."""
    last = "SELECT max(id) FROM runs" if number is None else "SELECT id FROM runs WHERE id = ?"
    found = database.execute(last, () if number is None else (number,)).fetchone()
    if found is None or found[0] is None:
        return None
    numbers = [
        row[0]
        for row in database.execute("SELECT id FROM runs WHERE id <= ? ORDER BY id", (found[0],))
    ]
    kept = numbers[-RUNS_MOST:]
    runs = tuple(_run(database, one) for one in kept)
    problems: list[str] = []
    rows = database.execute(
        "SELECT t.key, t.kind, t.name, t.model, t.seed, t.full, t.hostile, r.status, r.message,"
        " r.seconds, r.cycles, r.rows, r.output, r.log, r.repeat, r.waves, r.worker, r.attempt"
        " FROM tasks t LEFT JOIN results r ON r.run = t.run AND r.key = t.key"
        " WHERE t.run = ? ORDER BY t.kind, t.name, t.model, t.seed, t.hostile",
        (kept[-1],),
    )
    results = tuple(_result(row, problems) for row in rows)
    notes = tuple(
        Note(_time(row["at"]), _text(row["text"]))
        for row in database.execute(
            "SELECT at, text FROM notes WHERE run = ? ORDER BY rowid", (kept[-1],)
        )
    )
    return Store(runs, len(numbers) - len(kept), runs[-1], results, notes, tuple(problems))


def _run(database: sqlite3.Connection, number: int) -> Run:
    row = database.execute("SELECT * FROM runs WHERE id = ?", (number,)).fetchone()
    planned = database.execute("SELECT count(*) FROM tasks WHERE run = ?", (number,)).fetchone()[0]
    ended = database.execute(
        "SELECT t.key, t.kind, t.name, t.model, r.status, r.seconds, r.cycles, r.attempt"
        " FROM results r JOIN tasks t ON t.run = r.run AND t.key = r.key WHERE r.run = ?",
        (number,),
    )
    results = tuple(
        Ended(
            key=_text(one["key"]),
            kind=_text(one["kind"]),
            name=_text(one["name"]),
            model=_text(one["model"]),
            status=_text(one["status"]),
            seconds=float(one["seconds"] or 0),
            cycles=int(one["cycles"] or 0),
            attempt=int(one["attempt"] or 1),
        )
        for one in ended
    )
    state = _text(row["state"])
    return Run(
        number=number,
        begun=_time(row["begun"]),
        ended=_time(row["ended"]),
        state=state if state in STATES else "interrupted",
        tier=_text(row["tier"]),
        options=_object(row["options"]) or {},
        tree=_text(row["tree"]),
        revision=_text(row["revision"]),
        dirty=bool(row["dirty"]),
        host=_text(row["host"]),
        seconds=float(row["seconds"] or 0),
        planned=planned,
        results=results,
    )


def _result(row: sqlite3.Row, problems: list[str]) -> Result:
    key = _text(row["key"])
    try:
        found = json.loads(row["rows"])
        counts = {name: (int(times), int(programs)) for name, (times, programs) in found.items()}
    except (AttributeError, TypeError, ValueError):
        problems.append(f"{key}: its rows are no counts by name")
        counts = {}
    return Result(
        key=key,
        kind=_text(row["kind"]),
        name=_text(row["name"]),
        model=_text(row["model"]),
        seed=int(row["seed"] or 0),
        full=bool(row["full"]),
        hostile=int(row["hostile"] or 0),
        status=_text(row["status"]),
        message=_text(row["message"]),
        seconds=float(row["seconds"] or 0),
        cycles=int(row["cycles"] or 0),
        rows=counts,
        output=_text(row["output"]),
        log=_text(row["log"]),
        repeat=_text(row["repeat"]),
        waves=_text(row["waves"]),
        worker=_text(row["worker"]),
        attempt=int(row["attempt"] or 1),
    )


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _object(text: object) -> dict[str, Any] | None:
    """Return the JSON object in a text, {} for none, None if it is something else."""
    if text in (None, ""):
        return {}
    try:
        found = json.loads(str(text))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _time(text: object) -> datetime | None:
    try:
        found = datetime.fromisoformat(_text(text))
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
