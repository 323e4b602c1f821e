# SPDX-License-Identifier: Apache-2.0
"""What a regression leaves for other tools: JUnit's XML, JSON, the table of rows, and its pace."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dev.regression import batches, local, reports
from dev.regression.results import Results
from dev.regression.task import ExecutedRow, Outcome, Task
from tests.dev.regression_support import execute, go, tasks_of

DMA, GEMM = Task("rtl", "test_dma_random", "fast-a16"), Task("rtl", "test_gemm_random", "fast-a8")
SOC = Task("python", "tests/soc/test_hosts.py", full=True)
ROWS = ExecutedRow("DMA_LOAD base=1", 3, 2), ExecutedRow("no such row", 1, 1)
PASSED = Outcome(DMA, "passed", "", 1.5, 1000, ROWS)
FAILED = Outcome(
    GEMM,
    "failed",
    "MismatchError: \x1b[31mbyte 7\x1b[0m < 8 & more\nin tensor \x00",
    2.0,
    rows=(ExecutedRow("DMA_LOAD base=2", 1, 1),),
    repeat='make TESTCASE=test_gemm_random SEED=1 TITLE="a<b"',
    log=".regress/logs/1/x.txt",
    waves="build/waves/x.gtkw",
)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """The reports of a run: a pass, a failure, and a file that has not run."""
    store = Results(tmp_path / "results.sqlite")
    number = store.begin("full", {}, [DMA, GEMM, SOC], "cafe", "beef", True)
    store.add(number, [PASSED, FAILED])
    store.end(number, "interrupted", 90.0)
    (run,) = store.runs()
    notes = ["worker tcp://10.0.0.1 is gone"]
    reports.write(run, store.tasks(number), store.outcomes(number), notes, tmp_path)
    store.close()
    return tmp_path


def test_junit(written: Path) -> None:
    """It parses, whatever a message holds; a failure has all that is known about it."""
    root = ElementTree.parse(written / reports.JUNIT).getroot()
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "2", "1")
    suites = {suite.get("name"): suite for suite in root}
    assert list(suites) == ["fast-a16", "fast-a8"]
    (right,), (wrong,) = suites["fast-a16"], suites["fast-a8"]
    assert right.attrib == {"name": "test_dma_random-1", "classname": "fast-a16", "time": "1.5"}
    assert len(right) == 0
    (failure,) = wrong
    assert failure.tag == "failure"
    assert failure.get("message") == "MismatchError: ?[31mbyte 7?[0m < 8 & more"
    assert (failure.text or "").splitlines() == [
        "MismatchError: ?[31mbyte 7?[0m < 8 & more",
        "in tensor ?",
        f"repeat: {FAILED.repeat}",
        f"log: {FAILED.log}",
        f"waves: {FAILED.waves}",
    ]


def test_json(written: Path) -> None:
    """All that the run was, has found out, and has not done."""
    found = json.loads((written / reports.JSON).read_text(encoding="utf-8"))
    rows = {row["row"]: row for row in found.pop("rows")}
    executed = rows.pop("DMA_LOAD base=1")
    assert [executed[key] for key in ("tests", "seeds", "programs")] == [{DMA.name: 3}, [1], 2]
    assert not any(row["tests"] for row in rows.values())
    results = found.pop("results")
    assert {key: found[key] for key in found if key != "efficiency"} == {
        "run": 1,
        "tier": "full",
        "state": "interrupted",
        "revision": "beef",
        "tree": "cafe",
        "minutes": 1.5,
        "passed": 1,
        "failed": 1,
        "not_run": [SOC.key],
        "notes": ["worker tcp://10.0.0.1 is gone"],
    }
    assert results == json.loads(json.dumps(reports.verdicts([PASSED, FAILED])))
    assert [each["status"] for each in results] == ["passed", "failed"]
    assert results[0]["cycles"] == 1000


def test_only_a_pass_executes_rows(written: Path) -> None:
    """What a test executed that failed proves nothing."""
    table = (written / reports.TABLE).read_text(encoding="utf-8")
    (line,) = [line for line in table.splitlines() if "test_dma_random" in line]
    assert [cell.strip() for cell in line.split("│")[2:8]] == [
        *("base=1", "3", "1", "1", "2"),
        DMA.name,
    ]
    assert "test_gemm_random" not in table


@pytest.mark.parametrize(
    ("tasks", "work", "status"),
    [
        ([SOC], lambda batch: [replace(PASSED, task=SOC)], 0),
        ([SOC, *tasks_of(1)], lambda _: [replace(PASSED, task=SOC)], 1),
        ([], execute, 1),
    ],
)
def test_what_has_not_run_is_no_pass(
    tmp_path: Path, tasks: list[Task], work: local.Execute, status: int
) -> None:
    """The status is 0 only if all that was asked for has passed, and something was."""
    assert go(Results(tmp_path / "r.sqlite"), tasks, tmp_path, work) == status


def test_the_log_of_a_failure_is_a_file(tmp_path: Path) -> None:
    """Beside the results, named by the run and the task."""
    store = Results(tmp_path / "results.sqlite")
    go(store, tasks_of(20), tmp_path)
    failed = [outcome for outcome in store.outcomes(1) if not outcome.passed]
    assert failed
    for outcome in failed:
        assert Path(outcome.log).parent == tmp_path / "logs" / "1"
        assert Path(outcome.log).read_text(encoding="utf-8") == "the end"


def test_two_hundred_empty_jobs_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Threads, results and display are no limit: each job is a batch, and is written down.

    The best of ten, for other processes want the processors as well.
    """
    tasks = tasks_of(500)
    assert len(batches.make(tasks, {})) == len(tasks)
    paces = []
    for number in range(10):
        store = Results(tmp_path / f"results{number}.sqlite")
        begun = time.monotonic()
        go(store, tasks, tmp_path)
        paces.append(len(tasks) / (time.monotonic() - begun))
        assert len(store.outcomes(1)) == len(tasks)
        assert capsys.readouterr().out.count("PASS") > 400
        if paces[-1] >= 200:
            break
    print(f"{', '.join(f'{pace:.0f}' for pace in paces)} empty jobs a second on this machine")
    assert max(paces) >= 200
