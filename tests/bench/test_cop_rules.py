# SPDX-License-Identifier: Apache-2.0
"""The page of the coprocessor's port tells of every rule that the bench checks, and of no other."""

from __future__ import annotations

import re

from spec.paths import DOCS, ROOT
from tb.cop.rule_scenes import BREACHES, rules

PAGE = DOCS / "reference" / "coprocessor-port.md"
ROW = re.compile(r"^\| (\d+) \| .* \| (?:host|chip) \| (.*) \| (.*) \|$", re.M)


def test_each_rule_has_a_row_and_a_scene_that_breaks_it() -> None:
    """In the order of the bits."""
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    assert [int(number) for number, *_ in rows] == list(range(1, len(rows) + 1))
    checked = [name for _, check, _ in rows for name in re.findall(r"`([A-Z]\w+)`", check)]
    assert checked == rules() == list(BREACHES)


def test_each_test_in_the_rows_is_there() -> None:
    """As a cocotb test, or as one of pytest of what `make synth` proves."""
    sources = [
        *ROOT.glob("tb/unit/test_*.py"),
        *ROOT.glob("tb/tests/*/test_*.py"),
        ROOT / "tests" / "dev" / "test_proofs.py",
    ]
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    for number, _, tests in ROW.findall(PAGE.read_text(encoding="utf-8")):
        named = re.findall(r"`(\w+)`", tests)
        assert named, f"rule {number} has no test"
        assert all(f"def {name}(" in text for name in named), f"rule {number}: {named}"
