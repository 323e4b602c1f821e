# SPDX-License-Identifier: Apache-2.0
"""The short table at the end of a model test: what ran, how exact, how fast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from npu.driver.counters import ChipCounters
from npu.tables import FitTable, as_text
from tb.bench.environment import running_test
from tb.bench.scoreboard import Compared, Count

BEAT = 16
"""Bytes of a beat of the memory bus."""


@dataclass(frozen=True)
class Line:
    """One row: programs of the same kind, summed.

    Attributes:
        name: what ran.
        programs: number of programs.
        words: instruction words.
        written, untouched: bytes that the programs wrote and did not, compared with the
            instruction-level model.
        tensors: bytes compared with the plain network.
        cycles, macs, read_beats, write_beats: sums of the counters.
        read_needed, write_needed: bytes that no implementation could avoid: stream, input, output.
        seconds: processor time of the simulation.
    """

    name: str
    programs: int
    words: int
    written: Count
    untouched: Count
    tensors: Count
    cycles: int
    macs: int
    read_beats: int
    write_beats: int
    read_needed: int
    write_needed: int
    seconds: float

    @classmethod
    def of(
        cls,
        name: str,
        words: int,
        compared: Compared,
        tensors: Count,
        counters: ChipCounters,
        needed: tuple[int, int],
        seconds: float,
    ) -> Line:
        """One program; `needed` is (read, written) bytes."""
        return cls(
            name=name,
            programs=1,
            words=words,
            written=compared.written,
            untouched=compared.untouched,
            tensors=tensors,
            cycles=counters.cycles,
            macs=counters.macs,
            read_beats=counters.read_beats,
            write_beats=counters.write_beats,
            read_needed=needed[0],
            write_needed=needed[1],
            seconds=seconds,
        )


def total(name: str, lines: Sequence[Line]) -> Line:
    """Return the sum of `lines`."""
    return Line(
        name=name,
        programs=sum(line.programs for line in lines),
        words=sum(line.words for line in lines),
        written=sum((line.written for line in lines), Count()),
        untouched=sum((line.untouched for line in lines), Count()),
        tensors=sum((line.tensors for line in lines), Count()),
        cycles=sum(line.cycles for line in lines),
        macs=sum(line.macs for line in lines),
        read_beats=sum(line.read_beats for line in lines),
        write_beats=sum(line.write_beats for line in lines),
        read_needed=sum(line.read_needed for line in lines),
        write_needed=sum(line.write_needed for line in lines),
        seconds=sum(line.seconds for line in lines),
    )


def render(title: str, lines: Sequence[Line], macs_per_cycle: int) -> str:
    """Return the table as text.

    "written" and "untouched" are bytes that differ from the instruction-level model, of those that
    the programs wrote and of all others; "tensors" are those that differ from the plain network.
    MAC use is useful 8-bit multiplications per cycle against `macs_per_cycle`; the bus share is the
    cycles that the unavoidable bytes take at one beat per cycle, against the cycles that it took.
    """
    table = FitTable(title=title)
    table.name()
    compared = ("written", "untouched", "tensors")
    bus = ("bus read", "bus written", "MAC use", "bus share")
    for head in ("programs", "words", *compared, "cycles", *bus, "kcycles/s"):
        table.figure(head)
    for line in lines:
        needed = max(line.read_needed, line.write_needed) / BEAT
        table.add_row(
            line.name,
            f"{line.programs}",
            f"{line.words:,}",
            *(str(count) for count in (line.written, line.untouched, line.tensors)),
            f"{line.cycles:,}",
            f"{line.read_beats * BEAT:,} B",
            f"{line.write_beats * BEAT:,} B",
            f"{100 * line.macs / (line.cycles * macs_per_cycle):.1f} %",
            f"{100 * needed / line.cycles:.1f} %",
            f"{line.cycles / max(line.seconds, 1e-9) / 1000:.0f}",
        )
    return as_text(table, 200)


def save(run_dir: Path, text: str) -> None:
    """Leave `text` for the runner to print."""
    (run_dir / f"{running_test()}.report.txt").write_text(text, encoding="utf-8")
