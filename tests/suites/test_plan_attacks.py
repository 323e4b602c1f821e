# SPDX-License-Identifier: Apache-2.0
"""Five thousand plans that mean harm; a sample is in tests/python/plans/test_plan_attacks.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.needs import needs

needs("graphs")

from tests.python.plans.plan_attacks import campaign, report

PART = 1250


@pytest.mark.parametrize("part", range(4))
def test_plans_of_strangers_do_no_harm(tmp_path: Path, part: int) -> None:
    """What came of them stands in `build/reports/plan_attacks.json`."""
    seeds = range(part * PART, (part + 1) * PART)
    found = campaign(tmp_path, seeds)
    assert found["tried"] == PART
    report(f"{seeds.start} to {seeds.stop - 1}", found)
