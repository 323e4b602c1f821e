# SPDX-License-Identifier: Apache-2.0
"""The benchmarks against their limits, as `make bench` and `make nightly` have left them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from dev.report.source import ReportError, Source, read_json
from tb.benchmarks import against_int8, bars
from tb.benchmarks.against_int8 import FormatVerdict

COMMAND, NIGHTLY_COMMAND = "make bench", "make nightly"


@dataclass(frozen=True, slots=True)
class BenchResult:
    """One benchmark.

    Attributes:
        name: of the benchmark.
        cycles, ideal_cycles: what it took, and what bus and array need at least.
        bound: what the limit is of.
        ratio: as the report has it; cycles over ideal, for most.
        bytes_read, bytes_written: on the bus.
        sim_kcycles_per_s: how fast it was simulated.
    """

    name: str
    cycles: int
    ideal_cycles: int
    bound: str
    ratio: float
    bytes_read: int
    bytes_written: int
    sim_kcycles_per_s: float


@dataclass(frozen=True, slots=True)
class Benches:
    """All benchmarks of a report.

    Attributes:
        lines: in the order of the report.
        limits: what they must reach, by name; a new one has none.
        narrow: narrow weights against int8, empty if the report lacks some of them.
    """

    lines: tuple[BenchResult, ...]
    limits: Mapping[str, bars.Bar]
    narrow: tuple[FormatVerdict, ...] = ()

    def verdict(self, line: BenchResult) -> str:
        """Return whether a bar is met, in a word."""
        bar = self.limits.get(line.name)
        if bar is None:
            return "no limit yet"
        return "met" if bar.met(line.ratio, line.cycles) else "missed"

    @property
    def missed(self) -> tuple[str, ...]:
        """Names of what misses its bar."""
        own = [line.name for line in self.lines if self.verdict(line) == "missed"]
        return (*own, *(f"{one.claim.name} against int8" for one in self.narrow if not one.met))


@dataclass(frozen=True, slots=True)
class Stream:
    """The packed parameter stream of a block: its bytes, and those that are necessary."""

    block: str
    bytes: int
    necessary_bytes: int
    ratio: float


def read_benches(folder: Path) -> Source[Benches]:
    """Read bench.json of a folder of reports."""
    return read_json(
        folder / "bench.json",
        COMMAND,
        tuple[BenchResult, ...],
        lambda lines: Benches(lines, _limits(), _narrow(lines)),
    )


def read_nightly(folder: Path) -> Source[Benches]:
    """Read bench-nightly.json of a folder of reports."""
    return read_json(
        folder / "bench-nightly.json",
        NIGHTLY_COMMAND,
        tuple[BenchResult, ...],
        lambda lines: Benches(lines, _limits()),
    )


def read_stream(folder: Path) -> Source[Stream]:
    """Read stream.json of a folder of reports."""
    return read_json(folder / "stream.json", COMMAND, Stream, lambda found: found)


def _limits() -> Mapping[str, bars.Bar]:
    try:
        return bars.bars(bars.landed())
    except (OSError, ValueError) as error:
        raise ReportError(f"{bars.LANDED.name}: {error}") from None


def _narrow(lines: Sequence[BenchResult]) -> tuple[FormatVerdict, ...]:
    # Takes a second, and most of a page comes without it.
    from tb.benchmarks.format_benchmarks import CLAIMS

    entries = [asdict(line) for line in lines]
    measured = [entry for entry in entries if entry["cycles"] and entry["bytes_read"]]
    return tuple(against_int8.verdicts(against_int8.among(CLAIMS, measured), entries))
