# SPDX-License-Identifier: Apache-2.0
"""How much of the RTL is wiring: lines that declare a port or connect one.

What is said in a port list is said again in every instance of the module, so a list that is passed
on through three modules is six lists. Structs keep them short.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pyslang.syntax import (
    ImplicitAnsiPortSyntax,
    NamedParamAssignmentSyntax,
    NamedPortConnectionSyntax,
    SyntaxNode,
    SyntaxTree,
)

from spec.paths import ROOT, RTL

MOST_PERCENT = 19.0
"""Wiring in all lines of the RTL; more of it fails `make lint`."""

_WIRING = (ImplicitAnsiPortSyntax, NamedPortConnectionSyntax, NamedParamAssignmentSyntax)
_WORST = 12


@dataclass(frozen=True)
class Wiring:
    """The wiring of a file, or of many.

    Attributes:
        lines: all lines, comments and empty ones included.
        wires: those that declare a port, or connect a port or parameter of an instance.
    """

    lines: int
    wires: int

    @property
    def percent(self) -> float:
        """Wiring in percent of all lines."""
        return 100.0 * self.wires / self.lines if self.lines else 0.0

    def __add__(self, other: Wiring) -> Wiring:
        return Wiring(self.lines + other.lines, self.wires + other.wires)


def count(text: str) -> Wiring:
    """Return the wiring of a SystemVerilog source."""
    tree = SyntaxTree.fromText(text)
    manager = tree.sourceManager
    found: set[int] = set()

    def mark(node: object) -> bool:
        if isinstance(node, SyntaxNode) and isinstance(node, _WIRING):
            span = node.sourceRange
            first, last = map(manager.getLineNumber, (span.start, span.end))
            found.update(range(first, last + 1))
        return True

    tree.root.visit(mark)
    return Wiring(len(text.splitlines()), len(found))


def count_files(files: Iterable[Path]) -> dict[Path, Wiring]:
    """Return the wiring of each file."""
    return {file: count(file.read_text(encoding="utf-8")) for file in files}


def total(parts: Iterable[Wiring]) -> Wiring:
    """Return the sum of all parts."""
    return sum(parts, Wiring(0, 0))


def report(counted: dict[Path, Wiring], most: int = _WORST) -> list[str]:
    """Return a line for all files together and one for each of the `most` worst, by percent."""
    everything = total(counted.values())
    worst = sorted(counted.items(), key=lambda item: -item[1].percent)[:most]
    named = [("all of it", everything)]
    named += [(str(file.relative_to(ROOT)), wiring) for file, wiring in worst]
    return [f"{w.percent:5.1f} %  {w.wires:5} of {w.lines:5}  {name}" for name, w in named]


def findings(rtl: Path = RTL) -> list[str]:
    """Return what is wrong: nothing, or that there is too much wiring and where."""
    counted = count_files(sorted(rtl.rglob("*.sv")))
    percent = total(counted.values()).percent
    if percent <= MOST_PERCENT:
        return []
    return [
        f"{percent:.1f} % of the lines in {rtl.name}/ are ports and connections, "
        f"{MOST_PERCENT:g} % are allowed: pass on structs, or join modules. The worst:",
        *report(counted)[1:],
    ]


if __name__ == "__main__":
    print("\n".join(report(count_files(sorted(RTL.rglob("*.sv"))))))
    sys.exit(bool(findings()))
