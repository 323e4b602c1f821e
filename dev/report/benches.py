# SPDX-License-Identifier: Apache-2.0
"""The benchmarks against their limits, as `make bench` and `make nightly` have left them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dev.report.source import Record, ReportError, Source, read_json
from tb.benchmarks import against_int8, bars
from tb.benchmarks.against_int8 import Verdict

COMMAND, NIGHTLY_COMMAND = "make bench", "make nightly"


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark.

    Attributes:
        name: of the benchmark.
        cycles, ideal: what it took, and what bus and array need at least.
        bound: what the limit is of.
        ratio: as the report has it; cycles over ideal, for most.
        bytes_read, bytes_written: on the bus.
        speed: simulated kilocycles per second.
        bar: what it must reach, None for a new one.
    """

    name: str
    cycles: int
    ideal: int
    bound: str
    ratio: float
    bytes_read: int
    bytes_written: int
    speed: float
    bar: bars.Bar | None

    @property
    def verdict(self) -> str:
        """Whether the bar is met, in a word."""
        if self.bar is None:
            return "no limit yet"
        return "met" if self.bar.met(self.ratio, self.cycles) else "missed"


@dataclass(frozen=True, slots=True)
class Benches:
    """All benchmarks of a report.

    Attributes:
        lines: in the order of the report.
        narrow: narrow weights against int8, empty if the report lacks some of them.
    """

    lines: tuple[Bench, ...]
    narrow: tuple[Verdict, ...] = ()

    @property
    def missed(self) -> tuple[str, ...]:
        """Names of what misses its bar."""
        own = [line.name for line in self.lines if line.verdict == "missed"]
        return (*own, *(f"{one.claim.name} against int8" for one in self.narrow if not one.met))


@dataclass(frozen=True, slots=True)
class Stream:
    """The packed parameter stream of a block: its bytes, and those that are necessary."""

    block: str
    bytes: int
    necessary: int
    ratio: float


def read_benches(folder: Path) -> Source[Benches]:
    """Read bench.json of a folder of reports."""
    return read_json(folder / "bench.json", COMMAND, _benches)


def read_nightly(folder: Path) -> Source[Benches]:
    """Read bench-nightly.json of a folder of reports."""
    return read_json(
        folder / "bench-nightly.json", NIGHTLY_COMMAND, lambda record: Benches(_lines(record))
    )


def read_stream(folder: Path) -> Source[Stream]:
    """Read stream.json of a folder of reports."""
    return read_json(
        folder / "stream.json",
        COMMAND,
        lambda record: Stream(
            record.text("block"),
            record.whole("bytes"),
            record.whole("necessary_bytes"),
            record.number("ratio"),
        ),
    )


def _lines(record: Record) -> tuple[Bench, ...]:
    try:
        limits = bars.bars(bars.landed())
    except (OSError, ValueError) as error:
        raise ReportError(f"{bars.LANDED.name}: {error}") from None
    return tuple(
        Bench(
            entry.text("name"),
            entry.whole("cycles"),
            entry.whole("ideal_cycles"),
            entry.text("bound"),
            entry.number("ratio"),
            entry.whole("bytes_read"),
            entry.whole("bytes_written"),
            entry.number("sim_kcycles_per_s"),
            limits.get(entry.text("name")),
        )
        for entry in record.entries()
    )


def _benches(record: Record) -> Benches:
    lines = _lines(record)
    return Benches(lines, _narrow(lines))


def _narrow(lines: Sequence[Bench]) -> tuple[Verdict, ...]:
    # Takes a second, and most of a page comes without it.
    from tb.benchmarks.format_benchmarks import CLAIMS

    entries = [
        {"name": line.name, "cycles": line.cycles, "bytes_read": line.bytes_read} for line in lines
    ]
    measured = [entry for entry in entries if entry["cycles"] and entry["bytes_read"]]
    return tuple(against_int8.verdicts(against_int8.among(CLAIMS, measured), entries))
