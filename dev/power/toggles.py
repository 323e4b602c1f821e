# SPDX-License-Identifier: Apache-2.0
"""How often each bit of a run toggled, from a SAIF file of Verilator."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

Place = tuple[int, ...]
"""Indices of a bit: of the elements of arrays, then of the bit."""
_LINE = re.compile(r" *\((?:INSTANCE (\S+)|(\S+) \(T0 \d+\) \(T1 (\d+)\).*\(TC (\d+)\)\))\n")
_INDEX = re.compile(r"\\?\[(\d+)\\?\]")


@dataclass(frozen=True)
class Activity:
    """Toggles of a bit in a cycle, and the share of the time in which it is one."""

    toggles: float
    high: float


class Toggles:
    """The bits below a scope.

    Args:
        path: the file.
        scope: instances, with dots; names begin below it.
        cycles: of the clock that the file covers.
        period: of the clock, in the file's unit of time.

    Raises:
        ValueError: the file has nothing there.
    """

    def __init__(self, path: Path, scope: str, cycles: int, period: int) -> None:
        self._nets: dict[str, dict[Place, Activity]] = {}
        prefix = scope + "."
        scopes: list[str] = []
        with path.open(encoding="utf-8") as file:
            for line in file:
                match = _LINE.match(line)
                if match is None:
                    continue
                if match[1] is not None:
                    # A scope is indented by one more blank than the one around it.
                    del scopes[len(line) - len(line.lstrip()) - 1 :]
                    scopes.append(match[1].replace("\\", ""))
                    around = ".".join(scopes) + "."
                elif around.startswith(prefix):
                    name = around[len(prefix) :] + match[2].partition("\\")[0].partition("[")[0]
                    place = tuple(map(int, _INDEX.findall(match[2])))
                    high = int(match[3]) / (cycles * period)
                    self._nets.setdefault(name, {})[place] = Activity(
                        int(match[4]) / cycles, min(high, 1.0)
                    )
        if not self._nets:
            raise ValueError(f"{path.name}: nothing below {scope}")
        self._flat: dict[tuple[str, Place], list[Activity]] = {}

    def find(self, name: str) -> Activity | None:
        """Return what is known of a bit of a flattened netlist, such as `u_sums.row_q[3]`."""
        base, *_ = re.split(r"(?:\[\d+\])+$", name)
        place = tuple(map(int, _INDEX.findall(name[len(base) :])))
        bits = self._nets.get(base, {})
        if place in bits or not bits:
            return bits.get(place)
        outer, at = place[:-1], place[-1] if place else 0
        if (base, outer) not in self._flat:
            # The inner elements of an array are one row of bits there, the first of them highest.
            deep = len(outer)
            row = [each for each in bits if each[:deep] == outer]
            row.sort(key=lambda each: (*(-one for one in each[deep:-1]), *each[-1:]))
            self._flat[base, outer] = [bits[each] for each in row]
        row_of = self._flat[base, outer]
        return row_of[at] if at < len(row_of) else None

    def bits(self, name: str) -> int:
        """Return the width of a net, all elements of an array together; 0 if there is none."""
        return len(self._nets.get(name, ()))

    def ending(self, name: str) -> Iterator[str]:
        """Yield the scopes that have a net of this name, with a dot at their end."""
        for net in self._nets:
            if net == name or net.endswith("." + name):
                yield net[: -len(name)]
