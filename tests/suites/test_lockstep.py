# SPDX-License-Identifier: Apache-2.0
"""The netlist of the smallest chip means what its RTL does: what `make lockstep` runs."""

from __future__ import annotations

import pytest

from tests.needs import needs

needs("synth")

from dev import icarus, lockstep
from tb.run import build

MOST_CYCLE = 500
"""Of the program in Icarus."""


@pytest.fixture(scope="module")
def netlist() -> lockstep.Netlist:
    """The netlist of array 4."""
    build.generate()
    return lockstep.write_netlist_of_chip()


@pytest.fixture(scope="module")
def model(netlist: lockstep.Netlist) -> lockstep.LockstepConfiguration:
    """The bench with the netlist beside the chip."""
    found = lockstep.prepared(lockstep.with_faults(netlist.named))
    build.build(found)
    return found


@pytest.mark.parametrize(("test", "least"), list(zip(lockstep.RUNS, (4_000, 300_000), strict=True)))
def test_every_output_is_the_same_in_every_cycle(
    model: lockstep.LockstepConfiguration, test: str, least: int
) -> None:
    """A block of GPT-2 on one token, and 50 random programs; all outputs, enough cycles."""
    found = lockstep.compare(model, test)
    assert found.same, str(found)
    assert (found.outputs, found.cycles >= least) == (39, True), str(found)


def test_faults_of_the_netlist_are_seen(model: lockstep.LockstepConfiguration) -> None:
    """Of LUTs from all over the chip, some by the block of GPT-2, with output and cycle."""
    seen = [fault.difference for fault in lockstep.faults_seen(model)]
    assert len(seen) >= lockstep.LEAST_SEEN, seen
    assert all(" is " in text and ", in the netlist " in text for text in seen), seen


def test_the_netlist_alone_runs_a_program_in_icarus(netlist: lockstep.Netlist) -> None:
    """It reads its program and 64 bytes, stores the right ones, and interrupts."""
    needs(icarus.PACKAGE)
    said = icarus.run(netlist.short, lockstep.FOLDER / "icarus")
    right, _, cycle = said.rpartition(", cycle ")
    assert right == "64 bytes are right" and int(cycle) < MOST_CYCLE
