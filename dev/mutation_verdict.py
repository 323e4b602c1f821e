# SPDX-License-Identifier: Apache-2.0
"""What becomes of a mutant, and the mutants that were shown to be none."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.mutation_draw import MutationError
from dev.mutation_sites import Mutant
from spec.paths import ROOT

EQUIVALENTS = ROOT / "dev" / "mutation_equivalents.toml"
MISMATCH, ASSERTION, CHECK = "mismatch", "assertion", "check"
TIME_OUT, BROKEN = "time-out", "broken"
SURVIVOR, UNSEEN, EQUIVALENT = "survivor", "unseen", "equivalent"
KILLED = (MISMATCH, ASSERTION, CHECK)
FATES = (*KILLED, TIME_OUT, BROKEN, SURVIVOR, UNSEEN, EQUIVALENT)
"""mismatch: chip and model differ; assertion: one of the RTL or a monitor of the bench has failed;
check: a check of the test itself; time-out: something never came; broken: the simulator ended
without any of these; survivor: no test has noticed; unseen: it gave another value in none;
equivalent: shown to be no fault."""
_LATE = ("no end within", "no interrupt within", "no answer within", "no exit within")
_BROKEN = ("the simulator ended", "did not converge")
_COMPARED = re.compile(r"differs? in \d+|which it never writes|expected .*, actual", re.S)
"""What tests say that compare chip and model by themselves."""
_MISMATCHES = ("MismatchError", "RunMismatchError", "MemoryMismatchError")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a mutant.

    Attributes:
        mutant: its name.
        file: path of its file from `rtl/`.
        line: of what changes, from 1.
        operator: the kind of change.
        change: the change, in one line.
        fate: one of `FATES`.
        test: the test that has failed, "" if none did.
        reason: what it said, or why the mutant is equivalent.
        shows: tests in which the mutant gives another value somewhere.
        ran: tests that ran with it.
        seconds: wall-clock time of these.
        second: the tests of blocks alone that notice a survivor, with a comma between them.
    """

    mutant: str
    file: str
    line: int
    operator: str
    change: str
    fate: str
    test: str = ""
    reason: str = ""
    shows: int = 0
    ran: int = 0
    seconds: float = 0.0
    second: str = ""

    @property
    def survives(self) -> bool:
        """Whether nothing has noticed it, nor shown it to be no fault."""
        return self.fate in (SURVIVOR, UNSEEN)

    def __str__(self) -> str:
        by = f" by {self.test}" if self.test else f", shows in {self.shows} tests"
        by += f", unit benches notice: {self.second}" if self.second else ""
        return f"{self.fate:10} {self.mutant}{by} ({self.seconds:.1f} s): {self.change[:100]}"


def fate_of(message: str) -> str:
    """Return the fate of a mutant from what a failed test says."""
    if any(text in message for text in _LATE):
        return TIME_OUT
    if any(text in message for text in _BROKEN):
        return BROKEN
    if message.startswith("the simulator stopped:"):
        return ASSERTION
    compared = message.split(":")[0] in _MISMATCHES or _COMPARED.search(message)
    return MISMATCH if compared else CHECK


@dataclass(frozen=True)
class Equivalent:
    """A mutant that is shown to be no fault.

    Attributes:
        file: path of its file from `rtl/`; of a common source from the project's folder.
        line: text of the line, so that it is found when lines move.
        change: the change, as `Mutant.change` has it.
        by: "sat" for a proof by machine, "reason" for one in words.
        reason: the proof, or its name.
    """

    file: str
    line: str
    change: str
    by: str
    reason: str

    def is_of(self, mutant: Mutant, line: str) -> bool:
        """Say whether it is of a mutant that begins in a line."""
        return (self.file, self.line, self.change) == (mutant.file, line.strip(), mutant.change)


def equivalents(path: Path = EQUIVALENTS) -> Sequence[Equivalent]:
    """Return the mutants that are shown to be no faults.

    Raises:
        MutationError: an entry lacks something.
    """
    entries = tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", [])
    found = []
    for number, entry in enumerate(entries, 1):
        try:
            one = Equivalent(**entry)
        except TypeError:
            given = ", ".join(entry)
            raise MutationError(
                f"{path.name}: entry {number}: given {given}, allowed file, line, change, "
                "by, reason"
            ) from None
        if one.by not in ("sat", "reason"):
            raise MutationError(
                f"{path.name}: entry {number}: by: given {one.by!r}, allowed 'sat', 'reason'"
            )
        found.append(one)
    return found
