# SPDX-License-Identifier: Apache-2.0
"""How a regression stands to a feature of the test plan, as reports hold it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """A feature of the plan beside a regression.

    Attributes:
        feature: its name.
        stage: that it is shown on.
        run: number of the regression.
        passed, failed: results of its tests.
        not_run: its tests without a result.
        bins: that its groups of functional coverage ask for.
        met: how many of these were met.
    """

    feature: str
    stage: str
    run: int
    passed: int
    failed: int
    not_run: list[str]
    bins: int
    met: int
