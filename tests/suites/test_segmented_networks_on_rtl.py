# SPDX-License-Identifier: Apache-2.0
"""Random networks in several segments on the RTL: what feeds what, golden's bits come out."""

from __future__ import annotations

import pytest

from tests.python.plans.segmented_networks import equals_golden


@pytest.mark.parametrize("seed", range(100, 140))
def test_segmented_networks_on_the_rtl(seed: int) -> None:
    """Every second seed goes by the descriptor ring."""
    equals_golden(seed, "ring" if seed % 2 else "registers")
