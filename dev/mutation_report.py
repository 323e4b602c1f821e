# SPDX-License-Identifier: Apache-2.0
"""The report of a campaign: a file, and a short table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from dev.mutation_sites import DROP_RESET
from dev.mutation_verdict import EQUIVALENT, FATES, KILLED, SURVIVOR, UNSEEN, Verdict
from spec.paths import BUILD

REPORT = BUILD / "reports" / "mutation.json"
COMMON = BUILD / "reports" / "mutation_common.json"
RESETS = "dropped resets"
"""Row of the mutants that leave out what a reset does, wherever they are."""


@dataclass(frozen=True)
class MutationReport:
    """What a campaign has found out.

    Attributes:
        digest: of RTL and tests.
        revision: the commit.
        seed: that the mutants were drawn by.
        seeds: of the tests.
        chip: name of the chip.
        asked: what was asked for, as words of make.
        minutes: that it took.
        tests: of the chip that were used.
        unfit: tests that were not, because they fail without a mutant, with their messages.
        verdicts: of all mutants.
    """

    digest: str
    revision: str
    seed: str
    seeds: Sequence[int]
    chip: str
    asked: str
    minutes: float
    tests: int
    unfit: dict[str, str]
    verdicts: Sequence[Verdict] = field(repr=False)

    def write(self, path: Path = REPORT) -> None:
        """Write it as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")


def write_common(found: Mapping[str, str], path: Path = COMMON) -> None:
    """Write who has noticed each change of a common source, "" for nobody."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def row_of(verdict: Verdict) -> str:
    """Return the row of the table that a mutant is counted in."""
    if verdict.operator == DROP_RESET:
        return RESETS
    folder, _, name = verdict.file.rpartition("/")
    return folder or "(top)" if name else folder


def table(verdicts: Iterable[Verdict]) -> str:
    """Return the verdicts counted by folder, dropped resets apart."""
    rows: dict[str, dict[str, int]] = {}
    for verdict in verdicts:
        for name in (row_of(verdict), "all"):
            row = rows.setdefault(name, {"drawn": 0, **dict.fromkeys(FATES, 0)})
            row["drawn"] += 1
            row[verdict.fate] += 1
    order = sorted(rows, key=lambda name: (name == "all", name == RESETS, name))
    head = f"{'folder':15}" + "".join(f"{name:>11}" for name in ("drawn", *FATES))
    lines = [f"{name:15}" + "".join(f"{n:>11}" for n in rows[name].values()) for name in order]
    return "\n".join([head, *lines])


def summary(verdicts: Sequence[Verdict]) -> str:
    """Return in a line how many of those that are faults were killed."""
    faults = [verdict for verdict in verdicts if verdict.fate != EQUIVALENT]
    alive = [verdict for verdict in faults if verdict.fate in (SURVIVOR, UNSEEN)]
    dead = len(faults) - len(alive)
    compared = sum(verdict.fate in KILLED[:2] for verdict in faults)
    percent = 100 * dead / len(faults) if faults else 100.0
    share = 100 * compared / dead if dead else 100.0
    return (
        f"{dead} of {len(faults)} mutants noticed ({percent:.1f} %), {share:.1f} % of them by a "
        f"mismatch or an assertion; {len(verdicts) - len(faults)} more are shown equivalent"
    )
