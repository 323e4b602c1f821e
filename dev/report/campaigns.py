# SPDX-License-Identifier: Apache-2.0
"""The other reports: planted faults, mutants, proofs, sweeps, damaged plans, times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from dev.faults import Noticed
from dev.formal import ProofVerdict
from dev.lockstep import LockstepReport
from dev.mutation_report import summary
from dev.mutation_verdict import Verdict
from dev.plan_standing import Standing
from dev.regression import tree
from dev.report.source import ReportError, Source, read_json
from tb.cop_datapath.sweep import Sweep
from tb.run.unit_times import Time

FAULTS_COMMAND = "make faults"
MUTATION_COMMAND = "make mutation"
PROOFS_COMMAND = "make formal"
LOCKSTEP_COMMAND = "make lockstep"
PLAN_COMMAND = "make coverage"
SWEEP_COMMAND = "npu cop-sweep"
DAMAGE_COMMAND = "make regress"
TIMES_COMMAND = "npu unit --time"
REASON_MOST = 300
"""Letters of what a test said about a fault; values of a whole tensor are in the report itself."""


@dataclass(frozen=True, slots=True)
class Faults:
    """All faults that were planted."""

    all: tuple[Noticed, ...]

    @property
    def missed(self) -> tuple[Noticed, ...]:
        """Those that no test has noticed."""
        return tuple(fault for fault in self.all if not fault.noticed)


@dataclass(frozen=True, slots=True)
class Mutants:
    """A campaign of faults that nobody has thought of; see `dev.mutation_report`."""

    digest: str
    seed: str
    seeds: list[int]
    tests: int
    verdicts: list[Verdict]

    @property
    def summary(self) -> str:
        """How many were noticed, in a line."""
        return summary(self.verdicts)

    @property
    def alive(self) -> list[Verdict]:
        """Those that nothing has noticed."""
        return [one for one in self.verdicts if one.survives]


_Found = TypeVar("_Found", Mutants, LockstepReport)


@dataclass(frozen=True, slots=True)
class DamagedPrograms:
    """Changes that are another legal program, and how those of them ended that were run."""

    other_programs: int
    replayed: dict[str, int]


@dataclass(frozen=True, slots=True)
class Damage:
    """A plan whose every entry and bit was changed.

    Attributes:
        tried: changes.
        harmless_share: of those that make no difference.
        programs: those that change the program.
    """

    tried: int
    harmless_share: float
    programs: DamagedPrograms


@dataclass(frozen=True, slots=True)
class _Damages:
    """What the report holds: damages by plan."""

    plans: dict[str, Damage]


def read_faults(folder: Path) -> Source[Faults]:
    """Read faults.json of a folder of reports."""

    def make(found: tuple[Noticed, ...]) -> Faults:
        return Faults(tuple(replace(one, reason=_cut(one.reason)) for one in found))

    return read_json(folder / "faults.json", FAULTS_COMMAND, tuple[Noticed, ...], make)


def read_mutants(folder: Path) -> Source[Mutants]:
    """Read mutation.json of a folder of reports; one of another RTL or other tests is refused."""
    return read_json(folder / "mutation.json", MUTATION_COMMAND, Mutants, _of_this_tree)


def read_lockstep(folder: Path) -> Source[LockstepReport]:
    """Read lockstep.json of a folder of reports; one of another RTL or other tests is refused."""
    return read_json(folder / "lockstep.json", LOCKSTEP_COMMAND, LockstepReport, _of_this_tree)


def read_proofs(folder: Path) -> Source[tuple[ProofVerdict, ...]]:
    """Read formal.json of a folder of reports."""
    return read_json(folder / "formal.json", PROOFS_COMMAND, list[ProofVerdict], tuple)


def read_plan(folder: Path) -> Source[tuple[Standing, ...]]:
    """Read test_plan.json of a folder of reports."""
    return read_json(folder / "test_plan.json", PLAN_COMMAND, list[Standing], tuple)


def read_sweeps(folder: Path) -> Source[tuple[Sweep, ...]]:
    """Read cop_sweep.json of a folder of reports."""
    return read_json(folder / "cop_sweep.json", SWEEP_COMMAND, list[Sweep], tuple)


def read_damage(folder: Path) -> Source[dict[str, Damage]]:
    """Read plan_damage.json of a folder of reports: damages by plan."""
    path = folder / "plan_damage.json"
    return read_json(path, DAMAGE_COMMAND, _Damages, lambda found: dict(found.plans))


def read_times(folder: Path) -> Source[tuple[Time, ...]]:
    """Read unit_times.json of a folder of reports."""
    return read_json(folder / "unit_times.json", TIMES_COMMAND, list[Time], tuple)


def _of_this_tree(found: _Found) -> _Found:
    now = tree.read(tree.DESIGN).digest
    if found.digest != now:
        raise ReportError(f"it is of RTL and tests {found.digest[:16]}, now {now}")
    return found


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= REASON_MOST else f"{line[:REASON_MOST].rstrip()} ..."
