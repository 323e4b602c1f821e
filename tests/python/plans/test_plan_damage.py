# SPDX-License-Identifier: Apache-2.0
"""A sample of what `make regress` damages in full, in tests/suites/test_plan_damage.py."""

from __future__ import annotations

import pytest

from tests.needs import needs

needs("graphs")

from tests.python.plans.damage_campaign import Steps, campaign
from tests.python.plans.damaged_plans import PLANS

SAMPLE = Steps(
    entries=41, stored=397, bound=97, loaded=997, header=17, table=13, programs=61, compared=4,
    replayed=4,
)  # fmt: skip
SEED = 2


@pytest.mark.parametrize("name", PLANS)
def test_damaged_plans_are_refused_before_the_first_write(name: str) -> None:
    """With path, value and range; what is taken all the same has a name in `HARMLESS`."""
    found = campaign(name, PLANS[name](), SAMPLE, SEED)
    assert found["tried"] > 200
    assert found["programs"]["refused"]
