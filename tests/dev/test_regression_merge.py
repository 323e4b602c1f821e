# SPDX-License-Identifier: Apache-2.0
"""One run out of the shards of a regression, and the digest of the simulators that they share."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dev.coverage.points import Point, Points, Table
from dev.regression import merge, models, reports, rows, selection
from dev.regression.results import Results
from dev.regression.task import ExecutedRow, Outcome, Task
from spec.configurations import CHIPS
from tb.run import build

TASKS = [Task("rtl", f"test_{letter}", "fast-a16", seed) for letter in "abc" for seed in (1, 2)]

ROW = rows.merge([])[0].name
"""A row of the table of what is executed."""


def outcome_of(task: Task) -> Outcome:
    """Return how a task ends: test_b with seed 2 fails."""
    if task.name == "test_b" and task.seed == 2:
        return Outcome(task, "failed", "byte 7 differs", 2.0, log="the end", repeat="make x")
    return Outcome(task, "passed", "", 1.0, 100, (ExecutedRow(ROW, task.seed, 1),))


def shard_of(
    folder: Path,
    number: int,
    count: int = 2,
    *,
    tier: str = "smoke",
    tree: str = "aa",
    left: int = 0,
    seeds: int = 2,
) -> str:
    """Write the results of a shard, whose last `left` tasks have not ended; return the file."""
    home = folder / f"shard-{number}-of-{count}"
    store = Results(home / "results.sqlite")
    tasks = selection.shard(TASKS, f"{number}/{count}")
    options: dict[str, object] = {"shard": f"{number}/{count}", "seeds": seeds, "filter": ""}
    run = store.begin(tier, {**options, "complete": False, "hostile": 0}, tasks, tree, "c0ffee")
    ended = tasks[: len(tasks) - left]
    store.add(run, [_with_log(outcome_of(task), home, run) for task in ended])
    store.note(run, "worker 1 is gone")
    store.end(run, "interrupted" if left else "finished", 60.0 * number)
    store.close()
    return str(store.file)


def _with_log(outcome: Outcome, home: Path, run: int) -> Outcome:
    """Return an outcome whose log lies beside the results, named as on the shard's machine."""
    if not outcome.log:
        return outcome
    log = home / "logs" / str(run) / "rtl-test_b.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(outcome.log, encoding="utf-8")
    return replace(outcome, log=f".regress/logs/{run}/{log.name}")


@pytest.fixture
def store(tmp_path: Path) -> Results:
    """Results that the merged run goes to, with a run in them."""
    found = Results(tmp_path / "whole" / "results.sqlite")
    found.end(found.begin("smoke", {}, TASKS[:1]), "finished", 1.0)
    return found


def notes_of(store: Results) -> list[str]:
    """Return what is said of the merged run."""
    return [note.text for note in store.notes(2)]


def test_shards_become_one_run(tmp_path: Path, store: Results) -> None:
    """All tasks, verdicts, notes and rows are there once, and the reports are those of all."""
    files = [shard_of(tmp_path, number) for number in (2, 1)]
    assert merge.run(files, store, tmp_path / "reports") == 1  # a test has failed
    run = store.runs()[0]
    assert (run.number, run.tier, run.tree, run.state) == (2, "smoke", "aa", "finished")
    assert run.seconds == 120.0
    assert sorted(store.tasks(2)) == sorted(TASKS)
    found = {each.task: each for each in store.outcomes(2)}
    assert {task: each.status for task, each in found.items()} == {
        task: outcome_of(task).status for task in TASKS
    }
    assert {each.worker for each in found.values()} == {"shard 1/2", "shard 2/2"}
    assert [note.text for note in store.notes(2)] == [
        "shard 1/2: worker 1 is gone",
        "shard 2/2: worker 1 is gone",
    ]
    summary = json.loads((tmp_path / "reports" / reports.JSON).read_text(encoding="utf-8"))
    assert (summary["passed"], summary["failed"], summary["not_run"]) == (5, 1, [])
    executed = next(row for row in summary["rows"] if row["row"] == ROW)
    assert executed["tests"] == {"test_a": 3, "test_b": 1, "test_c": 3}


def test_the_log_of_a_failure_comes_along(tmp_path: Path, store: Results) -> None:
    """It lies beside the merged results, and the outcome names it."""
    merge.run([shard_of(tmp_path, number) for number in (1, 2)], store, tmp_path / "reports")
    (failed,) = [outcome for outcome in store.outcomes(2) if not outcome.passed]
    assert Path(failed.log).read_text(encoding="utf-8") == "the end"
    assert Path(failed.log).is_relative_to(store.file.parent)


def test_coverage_of_the_design_comes_along(tmp_path: Path, store: Results) -> None:
    """What a shard's tests executed of the RTL is in the merged run."""
    file = shard_of(tmp_path, 1, 1)
    point = Point("rtl/npu_top.sv", 10, 3, "line", "npu_top", "block")
    executed = Points(Table((point,), ((10, 11),)), np.array([7], np.int64))
    shard = Results(Path(file))
    covered = replace(
        outcome_of(TASKS[0]), covered=executed.encode(), table=executed.table.encode()
    )
    run = shard.begin("smoke", {"coverage": False}, TASKS[:1], "aa")
    shard.add(run, [covered])
    shard.end(run, "finished", 1.0)
    shard.close()
    assert merge.run([file], store, tmp_path / "reports") == 0
    assert {key: each.counts.tolist() for key, each in store.covered(2).items()} == {
        TASKS[0].key: [7]
    }


def test_a_missing_shard_is_told(
    tmp_path: Path, store: Results, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run is not finished, whatever the others say."""
    assert merge.run([shard_of(tmp_path, 1, 3)], store, tmp_path / "reports") == 1
    assert store.runs()[0].state == "interrupted"
    assert {"shard 2/3 is missing", "shard 3/3 is missing"} <= {
        note.text for note in store.notes(2)
    }
    assert "shard 2/3 is missing" in capsys.readouterr().out


def test_an_interrupted_shard_is_told(tmp_path: Path, store: Results) -> None:
    """What it has not run is named."""
    files = [shard_of(tmp_path, 1, left=1), shard_of(tmp_path, 2)]
    assert merge.run(files, store, tmp_path / "reports") == 1
    assert "shard 1/2 was interrupted" in notes_of(store)
    summary = json.loads((tmp_path / "reports" / reports.JSON).read_text(encoding="utf-8"))
    assert summary["not_run"] == [TASKS[4].key]


@pytest.mark.parametrize(
    ("other", "text"),
    [
        ({"tier": "full"}, 'given tier "full", in .* it is "smoke"'),
        ({"tree": "bb"}, 'given sources "bb", in .* it is "aa"'),
        ({"seeds": 3}, "given seeds 3, in .* it is 2"),
        ({"count": 3}, "given shards 3, in .* it is 2"),
    ],
)
def test_shards_of_two_regressions_are_refused(
    tmp_path: Path, store: Results, other: dict[str, str | int], text: str
) -> None:
    """In one line that names both files, and nothing is written down."""
    files = [shard_of(tmp_path, 1), shard_of(tmp_path, 2, **other)]  # type: ignore[arg-type]
    with pytest.raises(merge.MergeError, match=f"^--merge .*{text}; merge the shards of one") as it:
        merge.run(files, store, tmp_path / "reports")
    assert "\n" not in str(it.value)
    assert len(store.runs()) == 1


def test_a_shard_given_twice_is_refused(tmp_path: Path, store: Results) -> None:
    """Which file is said, and which other one has the same."""
    file = shard_of(tmp_path, 1)
    with pytest.raises(merge.MergeError, match=r"given shard 1/2, which .* is as well"):
        merge.run([file, file], store, tmp_path / "reports")


def test_a_file_without_a_run_is_refused(tmp_path: Path, store: Results) -> None:
    """One that is not there, which is not made, and one that nothing was written to."""
    gone = tmp_path / "gone" / "results.sqlite"
    with pytest.raises(merge.MergeError, match="no such file"):
        merge.run([str(gone)], store, tmp_path / "reports")
    assert not gone.parent.exists()
    empty = Results(tmp_path / "empty.sqlite")
    empty.close()
    with pytest.raises(merge.MergeError, match="holds no run"):
        merge.run([str(empty.file)], store, tmp_path / "reports")


def test_the_digest_is_of_all_simulators_in_any_order() -> None:
    """Another set of simulators has another digest."""
    build.generate()
    small, large = build.Configuration(chip=CHIPS["a4"]), build.Configuration()
    both = models.digest_of_all([small, large])
    assert re.fullmatch("[0-9a-f]{32}", both)
    assert both == models.digest_of_all([large, small])
    assert len({both, models.digest_of_all([small]), models.digest_of_all([large])}) == 3
    counted = replace(large, coverage=True)
    assert models.digest_of_all([counted]) != models.digest_of_all([large])
