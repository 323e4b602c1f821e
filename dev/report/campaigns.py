# SPDX-License-Identifier: Apache-2.0
"""The other reports: planted faults, functions on all inputs, damaged plans, times of benches."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dev.report.source import Record, Source, read_json

FAULTS_COMMAND = "make faults"
SWEEP_COMMAND = "npu cop-sweep"
DAMAGE_COMMAND = "make regress"
TIMES_COMMAND = "npu unit --time"
REASON_MOST = 300
"""Letters of what a test said about a fault; values of a whole tensor are in the report itself."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that was planted, and whether its test has noticed it."""

    name: str
    test: str
    noticed: bool
    reason: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Faults:
    """All faults that were planted."""

    all: tuple[Fault, ...]

    @property
    def missed(self) -> tuple[Fault, ...]:
        """Those that no test has noticed."""
        return tuple(fault for fault in self.all if not fault.noticed)


@dataclass(frozen=True, slots=True)
class Sweep:
    """A function of the coprocessor on all of its inputs, or on some.

    Attributes:
        function: its name.
        inputs, reached: compared, and through the datapath.
        undecided: decided by golden instead of a double.
        near: inputs whose result is nearly between two numbers.
        wrong: wrong results.
        seconds: on the clock.
    """

    function: str
    inputs: int
    reached: int
    undecided: int
    near: int
    wrong: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Damage:
    """A plan whose every entry and bit was changed.

    Attributes:
        plan: its name.
        tried: changes.
        harmless: share of those that make no difference.
        programs: changes that are another legal program.
        replayed: how those ended that were run, in words.
    """

    plan: str
    tried: int
    harmless: float
    programs: int
    replayed: str


@dataclass(frozen=True, slots=True)
class BenchTime:
    """From an edited line of a block to the verdict of its bench, in seconds."""

    block: str
    module: str
    wall: float
    processor: float


def read_faults(folder: Path) -> Source[Faults]:
    """Read faults.json of a folder of reports."""
    return read_json(folder / "faults.json", FAULTS_COMMAND, _faults)


def read_sweeps(folder: Path) -> Source[tuple[Sweep, ...]]:
    """Read cop_sweep.json of a folder of reports."""
    return read_json(folder / "cop_sweep.json", SWEEP_COMMAND, _sweeps)


def read_damage(folder: Path) -> Source[tuple[Damage, ...]]:
    """Read plan_damage.json of a folder of reports."""
    return read_json(folder / "plan_damage.json", DAMAGE_COMMAND, _damage)


def read_times(folder: Path) -> Source[tuple[BenchTime, ...]]:
    """Read unit_times.json of a folder of reports."""
    return read_json(folder / "unit_times.json", TIMES_COMMAND, _times)


def _faults(record: Record) -> Faults:
    return Faults(
        tuple(
            Fault(
                one.text("fault"),
                one.text("test"),
                one.truth("noticed"),
                _cut(one.text("reason")),
                one.number("seconds"),
            )
            for one in record.entries()
        )
    )


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= REASON_MOST else f"{line[:REASON_MOST].rstrip()} ..."


def _sweeps(record: Record) -> tuple[Sweep, ...]:
    return tuple(
        Sweep(
            function=one.text("function"),
            inputs=one.whole("inputs"),
            reached=one.whole("reached"),
            undecided=one.whole("undecided"),
            near=len(list(one.at("near").entries())),
            wrong=len(list(one.at("wrong").entries())),
            seconds=one.number("seconds"),
        )
        for one in record.entries()
    )


def _damage(record: Record) -> tuple[Damage, ...]:
    found = []
    for plan, one in record.at("plans").items():
        programs = one.at("programs")
        ends = programs.at("replayed")
        found.append(
            Damage(
                plan=plan,
                tried=one.whole("tried"),
                harmless=one.number("harmless_share"),
                programs=programs.whole("other_programs"),
                replayed=", ".join(f"{ends.whole(end)} {end}" for end, _ in ends.items()),
            )
        )
    return tuple(found)


def _times(record: Record) -> tuple[BenchTime, ...]:
    return tuple(
        BenchTime(
            one.text("block"),
            one.text("module"),
            one.number("wall_s"),
            one.number("processor_s"),
        )
        for one in record.entries()
    )
