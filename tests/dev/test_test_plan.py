# SPDX-License-Identifier: Apache-2.0
"""The test plan names what is there, leaves no test out, and is annotated with a regression."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import test_plan
from dev.functional import Found
from dev.plan_standing import Standing
from dev.regression.task import Outcome, Task
from dev.test_plan import Feature, PlanError

ENTRY = """
[[feature]]
name = "a feature"
stage = "chip"
text = "as a test"
"""
TESTS = {"test_one": {"test_one", "test_module"}, "test_two": {"test_two", "unit/block"}}


def _load(tmp_path: Path, entry: str) -> list[Feature]:
    path = tmp_path / "plan.toml"
    path.write_text(ENTRY + entry, encoding="utf-8")
    return test_plan.load(path, TESTS)


def test_the_plan_has_every_test() -> None:
    """That of the tree is right, and its page is made of it."""
    plan = test_plan.load()
    assert all(f"**{one.name}**" in test_plan.page() for one in plan)


def test_a_test_may_be_named_by_its_module(tmp_path: Path) -> None:
    """Or by its block."""
    (found,) = _load(tmp_path, 'tests = ["test_module", "unit/block"]')
    assert found.points == ()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ('tests = ["test_module"]', "no entry has test_two; put each into a feature"),
        ('tests = ["test_tow"]', "a feature: no test is called 'test_tow'; near: test_two"),
        ('tests = []\npoints = ["errrors"]', "no point is called 'errrors'; near: errors"),
        ('tests = []\nproofs = ["fifo.Ordr_A"]', "no proof is called 'fifo.Ordr_A'; near: fifo.O"),
        ('test = ["test_one"]', "needed name, stage, tests, text"),
        ("tests = [", "no TOML"),
    ],
)
def test_a_wrong_plan_is_refused(tmp_path: Path, entry: str, says: str) -> None:
    """With the near names, or with what was left out."""
    with pytest.raises(PlanError, match=says):
        _load(tmp_path, entry)


def test_a_regression_is_annotated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verdicts and bins of a feature, and what did not run."""
    monkeypatch.setattr(test_plan, "registered", lambda: TESTS)
    plan = [Feature("a feature", "chip", "as a test", ["test_one", "unit/block"], ["errors"])]
    found = [Found("errors.code", 5, 3, 0, ["a", "b"]), Found("isa.use", 9, 9, 0, [])]
    passed = Outcome(Task("rtl", "test_one"), "passed")
    rows = test_plan.annotated(plan, [passed], found, 7)
    assert rows == [Standing("a feature", "chip", 7, 1, 0, ["test_two"], 5, 3)]
    assert test_plan.text(rows).endswith("3 of 5")
