# SPDX-License-Identifier: Apache-2.0
"""Tests are put in order by what has changed: lines of the RTL that they executed, imports."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from dev.coverage.changed import by_change, changed_lines, modules_touched
from dev.coverage.points import CoverageError, Point, Points, Table

A, B = Path("rtl/a.sv"), Path("rtl/b.sv")
TABLE = Table(
    tuple(
        Point(file, line, 1, "line", Path(file).stem, "block")
        for file, line in (("rtl/a.sv", 10), ("rtl/a.sv", 20), ("rtl/a.sv", 30), ("rtl/b.sv", 5))
    ),
    ((10, 11, 12), (20,), (30,), (5,)),
)
RUNS = {
    "everything": (1, 1, 1, 1),
    "common": (1, 0, 0, 1),
    "rare": (0, 1, 0, 1),
    "short": (1, 0, 0, 0),
    "nothing": (0, 0, 0, 0),
}
SECONDS = {"everything": 9.0, "common": 2.0, "rare": 3.0, "short": 1.0, "nothing": 0.5}


def _order(changed: Mapping[Path, set[int]], **more: Points) -> list[str]:
    runs = {key: Points(TABLE, np.array(counts, np.int64)) for key, counts in RUNS.items()}
    return by_change(changed, runs | more, SECONDS)


def test_runs_that_executed_the_change_come_first() -> None:
    """Of equal ones the one that does more of the file, then the shorter one; so do the others."""
    assert _order({A: {11}}) == ["everything", "short", "common", "rare", "nothing"]


def test_a_point_that_few_reach_weighs_more() -> None:
    """Two runs reach one changed point each: first the one whose point is the rarer."""
    assert _order({A: {12, 20}})[:3] == ["everything", "rare", "short"]


def test_a_change_beside_all_points_is_one_of_the_file() -> None:
    """An assignment or a port has no point: whoever executes most of its file is asked."""
    assert _order({A: {1}})[:2] == ["everything", "rare"]
    assert _order({B: {99}})[:3] == ["common", "rare", "everything"]
    both = ["everything", "common", "rare", "short", "nothing"]
    assert _order({A: {10}, B: {99}}) == both


def test_no_change_leaves_the_short_ones_first() -> None:
    """A change of files without points, and a new file."""
    by_time = ["nothing", "short", "common", "rare", "everything"]
    assert _order({}) == by_time
    assert _order({A: set(), Path("rtl/new.sv"): {3}}) == by_time


def test_runs_of_other_models_are_compared_by_point() -> None:
    """Their tables differ; a run whose time nobody knows is last among its equals."""
    table = Table(TABLE.points[1:], TABLE.spans[1:])
    other = Points(table, np.array([1, 0, 0], np.int64))
    assert _order({A: {20}}, other=other)[:3] == ["everything", "rare", "other"]


def _git(root: Path, *words: str) -> str:
    identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(root), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _write(root: Path, name: str, lines: list[str]) -> None:
    path = root / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two files of twenty lines on main, and a branch where the work is done."""
    _git(tmp_path, "init", "-b", "main")
    for name in ("rtl/a.sv", "rtl/b.sv"):
        lines = [f"line {number}" for number in range(1, 21)]
        lines[6] = "-- rtl/b.sv"  # removed, it looks like the head of a file's difference
        _write(tmp_path, name, lines)
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-m", "first")
    _git(tmp_path, "checkout", "-b", "work")
    return tmp_path


def _edit(root: Path, change: Mapping[int, list[str]]) -> None:
    """Replace lines of a.sv, counted as they are now."""
    lines = (root / A).read_text(encoding="utf-8").splitlines()
    new = [new for number, line in enumerate(lines, 1) for new in change.get(number, [line])]
    _write(root, str(A), new)


def test_changed_lines_are_those_of_the_recorded_file(repository: Path) -> None:
    """Replaced, removed, inserted (both neighbours), also in the worktree; new files have none."""
    _edit(repository, {3: ["line 3", "inserted", "inserted"]})
    _git(repository, "commit", "-am", "second")
    _edit(repository, {9: ["changed"], 14: []})
    _write(repository, "rtl/new.sv", ["new"])
    assert changed_lines("main", "main", repository) == {
        A: {3, 4, 7, 12},
        Path("rtl/new.sv"): set(),
    }


def test_what_main_has_changed_meanwhile_is_no_change(repository: Path) -> None:
    """Only files that the work has touched count."""
    recorded = _git(repository, "rev-parse", "HEAD")
    _git(repository, "checkout", "main")
    _write(repository, "rtl/b.sv", ["other"])
    _git(repository, "commit", "-am", "on main")
    _git(repository, "checkout", "work")
    _edit(repository, {20: ["last"]})
    assert changed_lines("main", recorded, repository) == {A: {20}}


def test_recorded_during_the_work(repository: Path) -> None:
    """What was changed before counts as well, by the lines of the recorded file."""
    _edit(repository, {3: ["a", "b", "c"]})
    _git(repository, "commit", "-am", "second")
    recorded = _git(repository, "rev-parse", "HEAD")
    _edit(repository, {1: [], 10: ["ten"]})
    assert changed_lines("main", recorded, repository) == {A: {1, 3, 4, 5, 10}}


@pytest.mark.parametrize(("base", "recorded"), [("mian", "main"), ("main", "0123456"), ("-x", "x")])
def test_an_unknown_commit_is_named(base: str, recorded: str, repository: Path) -> None:
    """One line."""
    wrong = recorded if base == "main" else base
    with pytest.raises(CoverageError, match=f"given '{wrong}', git knows no such") as caught:
        changed_lines(base, recorded, repository)
    assert "\n" not in str(caught.value)


def test_a_changed_module_touches_the_tests_that_import_it() -> None:
    """Directly or not; a test touches itself, and other files nothing."""
    vec = modules_touched(
        [Path("tb/tests/engines/test_vec.py"), Path("rtl/npu_top.sv"), Path("README.md")]
    )
    assert vec == {"tb.tests.engines.test_vec"}
    coprocessor = modules_touched([Path("tb/cop/cop_session.py")])
    assert {"tb.tests.coprocessor.test_cop_random", "tb.unit.test_cop"} <= coprocessor
    assert "tb.tests.engines.test_vec" not in coprocessor
    assert len(modules_touched([Path("tb/bench/environment.py")])) > 50
    assert modules_touched([Path("npu/gone.py"), Path("setup.py")]) == set()
