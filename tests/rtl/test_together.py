# SPDX-License-Identifier: Apache-2.0
"""Several tests in one process of the simulator end as each of them ends in its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dev.regression import execute, known
from dev.regression.task import Batch, Outcome, Task
from tb.bench import isa_coverage
from tb.run import build, registry, runner, together, units
from tests.forms import sample

QUICK = ("test_dma_boundaries", "test_dma_random", "test_registers_lock")
OF_A_BLOCK = ("unit_cop_stream", "unit_cop_clear_while_busy", "unit_cop_store_errors")
TINY = '''
import cocotb

LEFT = []


@cocotb.test()
async def test_tiny_first(dut):
    """Leaves something behind."""
    LEFT.append(1)


@cocotb.test()
async def test_tiny_lonely(dut):
    """Passes alone only."""
    assert not LEFT, f"found {len(LEFT)} things"


@cocotb.test()
async def test_tiny_wrong(dut):
    """Never passes."""
    raise ValueError("always")


@cocotb.test()
async def test_tiny_last(dut):
    """Passes."""
'''
DEADLY = '''
import os

import cocotb


@cocotb.test()
async def test_tiny_deadly(dut):
    """Ends the simulator."""
    os.abort()
'''


@pytest.fixture(scope="module")
def chip() -> build.Configuration:
    """The usual chip, built."""
    build.generate()
    found = build.Configuration()
    build.build(found)
    return found


@pytest.fixture(scope="module")
def block() -> build.Configuration:
    """The coprocessor in its bench, built."""
    build.generate()
    found = units.UnitConfiguration(block="cop")
    build.build(found)
    return found


def found_out(result: runner.TestResult) -> tuple[object, ...]:
    """Return what a test has found out, without what depends on the machine."""
    rows = isa_coverage.rows_file(result.job.folder, result.job.test.name)
    counts = json.loads(rows.read_text(encoding="utf-8")) if rows.exists() else None
    return result.job.test.name, result.passed, result.message, result.cycles, counts


@pytest.mark.parametrize(("model", "names"), sample([("chip", QUICK), ("block", OF_A_BLOCK)], 1))
def test_one_process_says_what_three_say(
    model: str, names: tuple[str, ...], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """Verdicts, cycles and rows."""
    built = request.getfixturevalue(model)
    first, *others = (known.tests()[name] for name in names)
    job = runner.Job(first, built, seed=1, companions=tuple(others), place=tmp_path / "together")
    shared = together.run(job)
    alone = [
        runner.run(runner.Job(test, built, seed=1, place=tmp_path / test.name))
        for test in (first, *others)
    ]
    expected = {result.job.test.name: found_out(result) for result in alone}
    assert {result.job.test.name: found_out(result) for result in shared} == expected
    assert all(result.passed and result.cycles > 100 for result in shared)
    assert any(found_out(result)[-1] for result in shared), "no rows at all"
    assert sum(result.seconds for result in shared) < sum(result.seconds for result in alone)


@pytest.fixture
def tiny(
    chip: build.Configuration, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Task]:
    """Tests outside of the tree, as tasks of the regression."""
    package = tmp_path / "tiny_tests"
    package.mkdir()
    (package / "test_a.py").write_text(TINY, encoding="utf-8")
    (package / "test_b.py").write_text(DEADLY, encoding="utf-8")
    tests = {test.name: test for test in registry.discover(package, "tiny_tests")}
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(known, "tests", lambda: tests)
    monkeypatch.setattr(execute, "RUNS", tmp_path / "runs")
    assert str(tmp_path) in sys.path
    return {name: Task("rtl", name, chip.folder.name) for name in tests}


def run(tiny: dict[str, Task], *names: str) -> dict[str, Outcome]:
    """Run tests in one process."""
    outcomes = execute.execute(Batch(tuple(tiny[f"test_tiny_{name}"] for name in names)))
    assert len(outcomes) == len(names)
    return {outcome.task.name.removeprefix("test_tiny_"): outcome for outcome in outcomes}


def test_failures_in_a_shared_process(tiny: dict[str, Task]) -> None:
    """One that fails alone as well, and one that others have broken."""
    names_given = ("first", "lonely", "wrong", "last")
    found = run(tiny, *names_given)
    assert {name: outcome.passed for name, outcome in found.items()} == {
        "first": True,
        "lonely": False,
        "wrong": False,
        "last": True,
    }
    assert found["wrong"].message == "ValueError: always"
    assert found["wrong"].repeat == "make SIM=verilator TESTCASE=test_tiny_wrong SEED=1"
    assert "ValueError: always" in found["wrong"].log
    lonely = found["lonely"]
    assert lonely.message.startswith("passes alone, fails behind others: AssertionError: found 1")
    names = ",".join(f"test_tiny_{name}" for name in names_given)
    assert lonely.repeat == f"make SIM=verilator TESTCASE={names} SEED=1 TOGETHER=1"


def test_a_simulator_that_dies_on_the_way(tiny: dict[str, Task]) -> None:
    """The test that killed it is to blame, the others pass by themselves."""
    found = run(tiny, "first", "deadly", "last")
    assert {name for name, outcome in found.items() if outcome.passed} == {"first", "last"}
    assert "the simulator ended (-6) before any test had run" in found["deadly"].message
