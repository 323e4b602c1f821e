# SPDX-License-Identifier: Apache-2.0
"""All proofs of `make formal`, whose quick ones are in tests/dev/test_formal.py."""

from __future__ import annotations

from tests.needs import needs

needs("synth")

from dev import formal
from tb.run import build


def test_all_proofs_hold_and_their_faults_are_refuted() -> None:
    """What is not, or is not decided in time, is in the message."""
    build.generate()
    verdicts = formal.prove(formal.all_proofs(), 1, lambda _: None)
    assert [verdict for verdict in verdicts if not verdict.holds] == []
