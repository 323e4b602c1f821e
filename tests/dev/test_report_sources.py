# SPDX-License-Identifier: Apache-2.0
"""What the page says of results and reports that are missing, broken, or still being written."""

from __future__ import annotations

import argparse
import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from dev.regression.results import Results
from dev.report import render, report_commands
from dev.report.collect import Places, collect
from dev.report.contents import _campaigns
from dev.report.store import read_store
from npu.commands.arguments import UsageError
from spec.paths import ROOT
from tests.dev.report_reader import Reader, one_run, outcome_of
from tests.dev.report_support import write_reports

REPORTS = {
    "bench.json": "make bench",
    "bench-nightly.json": "make nightly",
    "stream.json": "make bench",
    "roofline.png": "make bench",
    "quality.json": "make quality",
    "synth.json": "make synth",
    "faults.json": "make faults",
    "mutation.json": "make mutation",
    "formal.json": "make formal",
    "lockstep.json": "make lockstep",
    "test_plan.json": "make coverage",
    "cop_sweep.json": "npu cop-sweep",
    "plan_damage.json": "make regress",
    "unit_times.json": "npu unit --time",
    "coverage.json": "make regress COV=1",
}
"""Every report beside the results, and the command that makes it."""
BROKEN = (b"", b"{", b"[1, 2", b"null", b"7", b"[[]]", b'{"a": 1}', b'[{"name": 5}]', b"\xff")
"""What a report may be that was cut off, or written by somebody else."""


def test_without_anything_every_section_names_its_command(tmp_path: Path) -> None:
    """No file is made but the page."""
    places = Places(tmp_path / "results.sqlite", tmp_path / "reports", tmp_path)
    path = render.write(collect(places))
    text = Reader(path.read_text(encoding="utf-8")).text
    assert "No results" in text
    assert f"There is no {places.results}. make regress makes it." in text
    for name, command in REPORTS.items():
        if name in ("roofline.png", "stream.json"):  # made together with bench.json
            continue
        assert f"There is no {places.reports / name}. {command} makes it." in text
    assert [one.name for one in tmp_path.rglob("*") if one.is_file()] == ["index.html"]


@pytest.mark.parametrize("name", [name for name in REPORTS if name.endswith(".json")])
def test_a_broken_report_is_one_line(tmp_path: Path, name: str) -> None:
    """It names file and reason, and the other sections are there."""
    write_reports(tmp_path)
    places = Places(tmp_path / "results.sqlite", tmp_path, tmp_path)
    for content in BROKEN:
        (tmp_path / name).write_bytes(content)
        page = collect(places)
        broken = [source for source in page.sources if source.state == "broken"]
        assert [source.file for source in broken] == [str(tmp_path / name)], content
        assert broken[0].problem.isprintable(), content
    text = Reader(render.render(page)).text
    assert f"{name} cannot be read: {broken[0].problem}" in text
    assert ("npu_systolic_array" if name == "faults.json" else "faults are noticed") in text


@pytest.mark.parametrize("name", ["mutation", "lockstep"])
def test_reports_of_another_tree_are_refused(name: str, tmp_path: Path) -> None:
    """By digest: what was noticed there need not be noticed here."""
    write_reports(tmp_path)
    path = tmp_path / f"{name}.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    now, content["digest"] = content["digest"], "0" * 16
    path.write_text(json.dumps(content), encoding="utf-8")
    page = collect(Places(tmp_path / "results.sqlite", tmp_path, tmp_path))
    source = {"mutation": page.mutants, "lockstep": page.lockstep}[name]
    assert source.problem == f"it is of RTL and tests 0000000000000000, now {now}"


def test_a_netlist_that_differs_is_red(tmp_path: Path) -> None:
    """The first difference is named, and the section says so."""
    write_reports(tmp_path)
    places = Places(tmp_path / "results.sqlite", tmp_path, tmp_path)
    assert "9 of 20 faults planted in the netlist are seen" in render.render(collect(places))
    path = tmp_path / "lockstep.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    content["runs"][0]["difference"] = "cycle 7: irq_o"
    path.write_text(json.dumps(content), encoding="utf-8")
    (tmp_path / "faults.json").unlink()  # one of those is not noticed, and comes first
    page = collect(places)
    assert "cycle 7: irq_o" in Reader(render.render(page)).text
    assert _campaigns(page) == ("the netlist differs", "bad")


def test_mutants_that_nothing_notices_are_named(tmp_path: Path) -> None:
    """With their change; without one there is a line."""
    write_reports(tmp_path)
    places = Places(tmp_path / "results.sqlite", tmp_path, tmp_path)
    text = Reader(render.render(collect(places))).text
    assert (
        "1 of 1 mutants noticed (100.0 %)" in text and "Benches of blocks that notice" not in text
    )
    path = tmp_path / "mutation.json"
    path.write_text(path.read_text(encoding="utf-8").replace("mismatch", "survivor"), "utf-8")
    page = collect(places)
    text = Reader(render.render(page)).text
    assert "0 of 1 mutants noticed (0.0 %)" in text and "!ready_i -> ready_i" in text


@pytest.mark.parametrize("name", list(REPORTS))
def test_a_folder_in_the_place_of_a_report_is_one_line(tmp_path: Path, name: str) -> None:
    """So is whatever cannot be opened."""
    (tmp_path / name).mkdir()
    page = collect(Places(tmp_path / "results.sqlite", tmp_path, tmp_path))
    assert [one.problem for one in page.sources if one.state == "broken"] == ["Is a directory"]


def test_a_number_that_is_none_is_named(tmp_path: Path) -> None:
    """With the place where it stands."""
    write_reports(tmp_path)
    path = tmp_path / "bench.json"
    entries = json.loads(path.read_text(encoding="utf-8"))
    entries[3]["cycles"] = "many"
    path.write_text(json.dumps(entries), encoding="utf-8")
    page = collect(Places(tmp_path / "results.sqlite", tmp_path, tmp_path))
    assert page.benches.problem == "[3].cycles: given str, allowed a whole number"


def test_figures_that_cannot_be_are_one_line(tmp_path: Path) -> None:
    """Nothing takes no bits: a loss over it would be infinite."""
    write_reports(tmp_path)
    path = tmp_path / "quality.json"
    path.write_text(path.read_text(encoding="utf-8").replace("2.0129,", "0,"), encoding="utf-8")
    page = collect(Places(tmp_path / "results.sqlite", tmp_path, tmp_path))
    assert page.quality.problem == "float division by zero"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data[: len(data) // 2], "no whole PNG picture"),
        (lambda data: b"GIF89a" + data, "no whole PNG picture"),
        (lambda data: data[:-12] + bytes(600_000) + data[-12:], "allowed 600,000 in the page"),
    ],
)
def test_a_picture_that_cannot_be_shown_is_one_line(
    tmp_path: Path, change: Callable[[bytes], bytes], problem: str
) -> None:
    """It is cut off, another format, or too large."""
    write_reports(tmp_path)
    path = tmp_path / "roofline.png"
    path.write_bytes(change(path.read_bytes()))
    page = collect(Places(tmp_path / "results.sqlite", tmp_path, tmp_path))
    assert problem in page.roofline.problem
    assert page.roofline.problem in Reader(render.render(page)).text


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DROP TABLE results", "no such table: results"),
        ("DELETE FROM runs", "no run is in it"),
        ("ALTER TABLE results DROP COLUMN rows", "no such column: rows"),
        ("UPDATE results SET seconds = 'soon'", "could not convert string to float: 'soon'"),
    ],
)
def test_a_broken_database_is_one_line(tmp_path: Path, statement: str, problem: str) -> None:
    """What the reports say is there nevertheless."""
    places = one_run(tmp_path, [outcome_of()])
    with closing(sqlite3.connect(places.results)) as database, database:
        database.execute(statement)
    write_reports(places.reports)
    text = Reader(render.render(collect(places))).text
    assert f"{places.results} cannot be read: {problem}" in text
    assert "faults are noticed" in text


def test_a_file_that_is_no_database_is_one_line(tmp_path: Path) -> None:
    """For example one that was cut off."""
    path = tmp_path / "results.sqlite"
    path.write_bytes(b"no database at all" * 100)
    assert read_store(path).problem.startswith("file is not a database; move it away")


def test_rows_that_cannot_be_read_are_named_and_the_rest_is_shown(tmp_path: Path) -> None:
    """One result is broken, not the page."""
    outcomes = [
        outcome_of("test_dma_random", rows=("GEMM",)),
        outcome_of("test_vec_random", rows=("GEMM",)),
    ]
    places = one_run(tmp_path, outcomes)
    with closing(sqlite3.connect(places.results)) as database, database:
        database.execute("UPDATE results SET rows = '[' WHERE key LIKE '%test_vec%'")
    page = collect(places)
    key = outcomes[1].task.key
    assert f"{key}: its rows are no counts by name" in page.complaints
    text = Reader(render.render(page)).text
    assert "Results that could not be read whole: " + key in text


def test_reading_changes_nothing(tmp_path: Path) -> None:
    """Neither the database nor the folder."""
    places = one_run(tmp_path, [outcome_of()])
    before = places.results.read_bytes()
    assert read_store(places.results).value is not None
    assert places.results.read_bytes() == before
    assert read_store(tmp_path / "other.sqlite").state == "missing"
    assert not (tmp_path / "other.sqlite").exists()


def test_a_regression_that_goes_on_is_shown(tmp_path: Path) -> None:
    """While it writes, with what is there and what is open."""
    waiting = replace(outcome_of("test_vec_random"), worker="nobody")
    places = one_run(tmp_path, [outcome_of(), waiting], state="running")
    writer = Results(places.results)
    writer.note(1, "still at work")
    text = Reader(render.render(collect(places))).text
    writer.close()
    assert "regression Running Run 1 of tier smoke" in text
    assert "Passed 1 of 2 planned Failed 0 nothing Not run 1" in text
    assert "still at work" in text


def test_the_command_writes_the_page_and_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line for each, and the command that makes it."""
    places = one_run(tmp_path, [outcome_of()])
    write_reports(places.reports)
    shutil.copy(ROOT / "pyproject.toml", places.reports / "synth.json")
    monkeypatch.setattr(report_commands, "Places", lambda: places)
    assert report_commands._report(argparse.Namespace(run=None)) == 0
    lines = capsys.readouterr().out.splitlines()
    nightly = places.reports / "bench-nightly.json"
    assert f"missing: There is no {nightly}. `make nightly` makes it." in lines
    assert any(line.startswith(f"{places.reports / 'synth.json'}: no JSON") for line in lines)
    assert lines[-1].startswith(f"written: {places.reports / 'index.html'}, ")
    assert (places.reports / "index.html").exists()
    with pytest.raises(UsageError, match=r"--run 9: .*no run in it has the number 9"):
        report_commands._report(argparse.Namespace(run=9))
