# SPDX-License-Identifier: Apache-2.0
"""300 mixed networks: planned here, verified and replayed in a process without compiler."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.python.plans.mixed_networks import replays_as_golden

TOGETHER = 50


@pytest.mark.parametrize("first", range(0, 300, TOGETHER))
def test_mixed_networks_replay_in_another_process(tmp_path: Path, first: int) -> None:
    """Programs, products on the command port and the host: golden's outputs, all of them."""
    replays_as_golden(tmp_path, range(first, first + TOGETHER))
