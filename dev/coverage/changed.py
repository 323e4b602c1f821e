# SPDX-License-Identifier: Apache-2.0
"""Which tests a change concerns: by the lines that they executed, and by what they import.

Coverage was recorded at some commit, so lines are counted as they were there; git says which of
them have changed since.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path

import grimp
import numpy as np

from dev.coverage.points import CoverageError, Points, Table
from spec.paths import BUILD, PACKAGES, ROOT

ROOMS = ("tb.tests.", "tb.unit.")
"""Packages that hold the tests on the RTL."""
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def changed_lines(base: str, recorded: str, root: Path = ROOT) -> dict[Path, set[int]]:
    """Return what differs from where the work began: files, with the lines that changed.

    The worktree is included. Lines are those of the file as it was when coverage was recorded, from
    1; what was put between two lines changes both. A file without lines is new.

    Args:
        base: a branch or commit, such as "main"; the work began where HEAD left it.
        recorded: the commit of the sources at which coverage was recorded.
        root: the folder of the repository.

    Raises:
        CoverageError: git does not know `base` or `recorded`.
    """
    begun, found = _begun(base, root)
    _check(recorded, root)
    _add(found, _git(root, *_DIFF, recorded) or "", old=True)
    if _git(root, "merge-base", "--is-ancestor", recorded, begun) is None:
        # Recorded during the work: what it had changed by then counts as well.
        _add(found, _git(root, *_DIFF, begun, recorded) or "", old=False)
    return found


def lines_since(base: str, root: Path = ROOT) -> dict[Path, set[int]]:
    """Return what differs from where the work began, with lines as they are in the worktree.

    Args:
        base: a branch or commit, such as "main"; the work began where HEAD left it.
        root: the folder of the repository.

    Returns:
        files, with the lines that are new or changed, from 1; a file that git does not know yet has
        none.

    Raises:
        CoverageError: git does not know `base`.
    """
    begun, found = _begun(base, root)
    _add(found, _git(root, *_DIFF, begun) or "", old=False)
    return found


def _check(name: str, root: Path) -> None:
    """Raise CoverageError unless git knows a branch or commit."""
    if _git(root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") is None:
        raise CoverageError(f"given {name!r}, git knows no such branch or commit in {root}")


def _begun(base: str, root: Path) -> tuple[str, dict[Path, set[int]]]:
    """Return the commit where the work began, and the files that differ from it, without lines."""
    _check(base, root)
    begun = (_git(root, "merge-base", base, "HEAD") or "").strip()
    if not begun:
        raise CoverageError(f"given {base!r}, which has no commit in common with HEAD")
    names = _git(root, "diff", "--name-only", "--no-renames", "-z", begun) or ""
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z") or ""
    return begun, {Path(name): set[int]() for name in (names + new).split("\0") if name}


_DIFF = ("diff", "-U0", "--no-renames", "--no-color", "--no-ext-diff", "--no-prefix")


def _git(root: Path, *words: str) -> str | None:
    """Return what git prints, None if it fails."""
    run = subprocess.run(
        ["git", "-C", str(root), "-c", "core.quotePath=false", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout if run.returncode == 0 else None


def _add(found: dict[Path, set[int]], difference: str, old: bool) -> None:
    """Add the lines of a difference, of its old or of its new side, to the files that are known."""
    side = "--- " if old else "+++ "
    lines: set[int] | None = None
    in_head = False
    for text in difference.splitlines():
        hunk = _HUNK.match(text)
        if text.startswith("diff --git "):
            in_head = True
        elif in_head and text.startswith(side):
            lines = found.get(Path(text.removeprefix(side).rstrip("\t")))
        elif hunk:
            in_head = False
            begin, count = int(hunk[1 if old else 3]), int((hunk[2] if old else hunk[4]) or 1)
            # Nothing on this side: something was put behind its line `begin`.
            if lines is not None:
                lines.update(range(begin, begin + count) if count else {begin or 1, begin + 1})


def by_change(
    changed: Mapping[Path, set[int]],
    runs: Mapping[str, Points],
    seconds: Mapping[str, float],
) -> list[str]:
    """Return the keys of all runs: first those that executed what has changed.

    A point that few runs reach weighs more than one that every run reaches. Of runs that are equal
    in this, such as all those that clock a changed register, first the one that does more of the
    changed files, then the shorter one. In a file whose changed lines no point counts (an
    assignment outside of processes, a port) all points count.

    Args:
        changed: lines by file, from the project's folder, as they were when coverage was recorded.
        runs: what each run executed, by its key.
        seconds: how long each run takes; one that is not known goes last among equals.
    """
    tables = {run.table.digest: run.table for run in runs.values()}
    concerned = {digest: _concerned(table, changed) for digest, table in tables.items()}
    by_line = _weighed(runs, {digest: lines for digest, (lines, _) in concerned.items()})
    by_file = _weighed(runs, {digest: files for digest, (_, files) in concerned.items()})
    endless = float("inf")
    return sorted(
        runs, key=lambda key: (-by_line[key], -by_file[key], seconds.get(key, endless), key)
    )


def _concerned(table: Table, changed: Mapping[Path, set[int]]) -> tuple[list[int], list[int]]:
    """Return the places in the table of what has changed, and of all points of those files."""
    files = {path.as_posix(): lines for path, lines in changed.items()}
    on_line: dict[str, list[int]] = {}
    in_file: dict[str, list[int]] = {}
    for place, (point, span) in enumerate(zip(table.points, table.spans, strict=True)):
        lines = files.get(point.file)
        if lines:
            in_file.setdefault(point.file, []).append(place)
            if point.line in lines or not lines.isdisjoint(span):
                on_line.setdefault(point.file, []).append(place)
    nearest = [place for file, found in in_file.items() for place in on_line.get(file, found)]
    return nearest, [place for found in in_file.values() for place in found]


def _weighed(runs: Mapping[str, Points], places: Mapping[str, list[int]]) -> dict[str, float]:
    """Return for each run the sum of the weights of those points that it executed.

    Args:
        runs: what each run executed.
        places: the points that are asked for, in each table, by its digest.
    """
    tables = {run.table.digest: run.table for run in runs.values()}
    points = sorted({tables[digest].points[place] for digest in tables for place in places[digest]})
    column = {point: number for number, point in enumerate(points)}
    columns = {
        digest: [column[table.points[place]] for place in places[digest]]
        for digest, table in tables.items()
    }
    reached = np.zeros((len(runs), len(points)), bool)
    for row, run in enumerate(runs.values()):
        reached[row, columns[run.table.digest]] = run.hit[places[run.table.digest]]
    weights = np.log((1.0 + len(runs)) / (1.0 + reached.sum(axis=0))) + 1.0
    return dict(zip(runs, np.round(reached @ weights, 9).tolist(), strict=True))


def modules_touched(paths: Iterable[Path]) -> set[str]:
    """Return the modules of tests on the RTL that import changed files, directly or not.

    Args:
        paths: files from the project's folder; those that are no Python of a package are left out.
    """
    graph = grimp.build_graph(*PACKAGES, cache_dir=str(BUILD / "grimp"))
    touched: set[str] = set()
    for path in paths:
        if path.suffix != ".py" or path.parts[0] not in PACKAGES:
            continue
        parts = path.with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        if name in graph.modules:
            touched |= {name, *graph.find_downstream_modules(name)}
    return {
        name
        for name in touched
        if name.startswith(ROOMS) and name.rpartition(".")[2].startswith("test_")
    }
