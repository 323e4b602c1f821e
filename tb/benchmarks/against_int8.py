# SPDX-License-Identifier: Apache-2.0
"""Narrow weights against the same work in int8: cycles must fall as far as bytes do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npu.tables import FitTable

HEAD = ("name", "cycles", "of int8", "bytes read", "of int8", "cycles / bytes", "bar", "")


@dataclass(frozen=True, slots=True)
class Claim:
    """What a benchmark of narrow weights is held against, and its bars.

    Attributes:
        name, reference: the benchmark, and the one of the same work in int8.
        most: its share of the reference's cycles over its share of the bytes, at most; None where
            something else than the bus binds.
        cycles: cycles that it may take.
        share: its share of the reference's cycles, at most.
    """

    name: str
    reference: str
    most: float | None = None
    cycles: int | None = None
    share: float | None = None


@dataclass(frozen=True, slots=True)
class FormatVerdict:
    """The figures of a claim; shares are of the reference."""

    claim: Claim
    cycles: int
    bytes_read: int
    cycle_share: float
    byte_share: float

    @property
    def quotient(self) -> float:
        """How much less the cycles fall than the bytes: 1 if equally far."""
        return self.cycle_share / self.byte_share

    @property
    def met(self) -> bool:
        """Whether every bar is met."""
        claim = self.claim
        pairs = (
            (self.quotient, claim.most),
            (self.cycles, claim.cycles),
            (self.cycle_share, claim.share),
        )
        return all(limit is None or value <= limit for value, limit in pairs)

    @property
    def bar(self) -> str:
        """The bars as text."""
        claim = self.claim
        parts = [
            None if claim.most is None else f"<= {claim.most}",
            None if claim.cycles is None else f"<= {claim.cycles:,} cycles",
            None if claim.share is None else f"<= {claim.share} of int8",
        ]
        return ", ".join(part for part in parts if part)

    def cells(self) -> list[str]:
        """Return the line of a table, with HEAD over it, without the last column."""
        return [
            self.claim.name,
            f"{self.cycles:,}",
            f"{self.cycle_share:.4f}",
            f"{self.bytes_read:,}",
            f"{self.byte_share:.4f}",
            f"{self.quotient:.4f}",
            self.bar,
        ]


def among(claims: Iterable[Claim], entries: Iterable[Mapping[str, Any]]) -> list[Claim]:
    """Return the claims of which both benchmarks are in the records of bench.json."""
    there = {entry["name"] for entry in entries}
    return [claim for claim in claims if {claim.name, claim.reference} <= there]


def verdicts(claims: Iterable[Claim], entries: Sequence[Mapping[str, Any]]) -> list[FormatVerdict]:
    """Return the figures of claims, from the records of bench.json.

    Raises:
        KeyError: a benchmark is not in the records.
    """
    by_name = {entry["name"]: entry for entry in entries}
    found = []
    for claim in claims:
        own, int8 = by_name[claim.name], by_name[claim.reference]
        shares = (own[key] / int8[key] for key in ("cycles", "bytes_read"))
        found.append(FormatVerdict(claim, own["cycles"], own["bytes_read"], *shares))
    return found


def render(found: Iterable[FormatVerdict]) -> FitTable:
    """Return the table of a terminal."""
    table = FitTable(title="Narrow weights against int8: cycles fall as bytes do")
    table.name(HEAD[0])
    for head in HEAD[1:]:
        table.figure(head)
    for one in found:
        table.add_row(*one.cells(), "met" if one.met else "[bold red]MISSED[/]")
    return table


def markdown(found: Iterable[FormatVerdict]) -> str:
    """Return the table of the documentation."""
    lines = [f"| {' | '.join(HEAD)} |", "|---" * len(HEAD) + "|"]
    for one in found:
        lines.append(f"| {' | '.join([*one.cells(), 'met' if one.met else '**missed**'])} |")
    return "\n".join(lines)
