# SPDX-License-Identifier: Apache-2.0
"""Every bit of plans, and every entry: refused before the first write, or harmless by name."""

from __future__ import annotations

import pytest

from tests.python.plans.damage_campaign import Steps, campaign, report
from tests.python.plans.damaged_plans import PLANS

SEED = 1


@pytest.mark.parametrize("name", PLANS)
def test_every_bit_of_a_plan_is_refused(name: str) -> None:
    """As stored, with seals that fit, and bound to addresses; `build/reports/plan_damage.json`."""
    report(name, campaign(name, PLANS[name](), Steps(), SEED))
