# SPDX-License-Identifier: Apache-2.0
"""The model of more workers."""

from __future__ import annotations

import pytest

from dev.regression import schedule
from dev.regression.task import Outcome, Task


def test_parts_go_to_the_first_worker_that_is_free() -> None:
    """One worker takes the sum; three the longest chain."""
    parts = [5.0, 4.0, 3.0, 3.0, 3.0]
    assert schedule.makespan(parts, 1) == 18.0
    assert schedule.makespan(parts, 3) == 7.0
    assert schedule.makespan(parts, 5) == 5.0


def test_one_long_test_spoils_the_efficiency() -> None:
    """Equal tests divide well; one that takes as long as all others does not."""
    equal = [Outcome(Task("sweep", f"f{n}", "", 1, True), "passed", "", 10.0) for n in range(30)]
    assert schedule.efficiency(equal, 3) == pytest.approx(1.0)
    long = Outcome(Task("sweep", "long", "", 1, True), "passed", "", 300.0)
    assert schedule.efficiency([*equal, long], 3) == pytest.approx(0.7, abs=0.05)
