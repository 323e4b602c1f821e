# SPDX-License-Identifier: Apache-2.0
"""Moves the slices of a placed board to where fewer wires are wanted, ahead of the router.

The placer of nextpnr minds how long wires are, not how many of them cross a tile, and the router
cannot move a cell. `refine.cpp` anneals a sum of both. A slice, two LUTs and two flip-flops of the
four pairs of a tile, goes as a whole, so that what its cells share stays as it is; carry chains,
memories and slices that choose with each other's outputs stay where they are.
"""

from __future__ import annotations

import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dev.yosys import SynthesisError

SOURCE = Path(__file__).with_suffix(".cpp")
COMPILE = ("g++", "-O2", "-ffp-contract=off", "-std=c++17", "-o")
"""Sums are the same on every machine: no product is added without being rounded."""
MOVES = 22_000_000
"""Moves that are tried: two minutes. With more of them less than a hundredth gets better."""
MOST_CELLS = 80
"""Of a wire that counts: a longer one is everywhere."""
SLICES = "ABCD"
CHAINED = ("CCU2", "DPRAM", "RAMW_BLOCK")
"""Modes of a LUT that belongs to its neighbours."""
RAM_MODES = CHAINED[1:]
TREE = ("FXA", "FXB")
"""Inputs that come from another slice without a wire."""
BEL = "NEXTPNR_BEL"

Json = dict[str, Any]


class Place(NamedTuple):
    """A slice of the device."""

    x: int
    y: int
    slice: str


@dataclass
class Held:
    """What a slice holds: cells by their places in it, and whether it stays."""

    cells: dict[str, str] = field(default_factory=dict)
    fixed: bool = False


class Layout:
    """A file of nextpnr that is placed, seen as slices."""

    def __init__(self, netlist: Json) -> None:
        """Take the only module of `netlist` that has cells in places."""
        (self.cells,) = (
            module["cells"]
            for module in netlist["modules"].values()
            if any(BEL in cell["attributes"] for cell in module["cells"].values())
        )
        self.tile: dict[str, tuple[int, int]] = {}
        self.home: dict[str, Place] = {}
        held: defaultdict[Place, Held] = defaultdict(Held)
        for name, cell in self.cells.items():
            if BEL not in cell["attributes"]:
                continue
            x, y, rest = cell["attributes"][BEL].split("/", 2)
            self.tile[name] = at = (int(x[1:]), int(y[1:]))
            if rest.startswith("SLICE"):
                letter, inside = rest.removeprefix("SLICE").split(".")
                self.home[name] = Place(*at, letter)
                held[self.home[name]].cells[inside] = name
        for x, y in {(place.x, place.y) for place in held}:
            four = [held[Place(x, y, letter)] for letter in SLICES]
            memory = any(
                "RAMW" in each.cells or any(self._mode(n) in RAM_MODES for n in self._luts(each))
                for each in four
            )
            for each in four:
                each.fixed = memory or any(self._mode(n) in CHAINED for n in self._luts(each))
        self._fix_trees(held)
        self.places = sorted(held)
        self.held = held

    def _luts(self, held: Held) -> list[str]:
        return [name for inside, name in held.cells.items() if inside.startswith("K")]

    def _mode(self, name: str) -> str:
        return str(self.cells[name]["parameters"].get("MODE", ""))

    def _fix_trees(self, held: Mapping[Place, Held]) -> None:
        """Fix slices that choose among outputs of others, and these."""
        driver = {
            wire: name for name, cell in self.cells.items() for wire in self._wires(cell, "output")
        }
        for name, place in self.home.items():
            for port in TREE:
                for wire in self.cells[name]["connections"].get(port, []):
                    if not isinstance(wire, str):
                        held[place].fixed = True
                        if wire in driver:
                            held[self.home[driver[wire]]].fixed = True

    @staticmethod
    def _wires(cell: Mapping[str, Any], direction: str | None = None) -> Iterator[int]:
        for port, wires in cell["connections"].items():
            if direction in (None, cell["port_directions"][port]):
                yield from (wire for wire in wires if not isinstance(wire, str))

    def _reset(self, name: str) -> tuple[int, str] | None:
        """Return the set/reset signal of a flip-flop: a tile has wires for two."""
        wires = self.cells[name]["connections"].get("LSR", [])
        polarity = str(self.cells[name]["parameters"].get("LSRMUX", ""))
        return (wires[0], polarity) if wires and not isinstance(wires[0], str) else None

    def numbers(self) -> str:
        """Return what `refine.cpp` reads.

        Size of the device in tiles and places, a line each; x, y, slice, free 0, movable 1 or fixed
        2, and set/reset signals by number. Then nets, a line each: pins, and of each its place or
        -1, x and y.
        """
        resets: dict[tuple[int, str], int] = {}
        index = {place: i for i, place in enumerate(self.places)}
        width, height = (max(at[axis] for at in self.tile.values()) + 1 for axis in (0, 1))
        lines = [f"{width} {height} {len(self.places)}"]
        for place in self.places:
            held = self.held[place]
            found = filter(None, map(self._reset, held.cells.values()))
            own = sorted({resets.setdefault(one, len(resets)) for one in found})
            state = 2 if held.fixed else int(bool(held.cells))
            words = (place.x, place.y, SLICES.index(place.slice), state, len(own), *own)
            lines.append(" ".join(map(str, words)))
        ends: defaultdict[int, list[str]] = defaultdict(list)
        for name in self.tile:
            for wire in self._wires(self.cells[name]):
                ends[wire].append(name)
        where = {name: index[place] for name, place in self.home.items()}
        nets = []
        for names in ends.values():
            pins = {(where.get(name, -1), *self.tile[name]) for name in names}
            if len(names) <= MOST_CELLS and len(pins) > 1:
                nets.append(" ".join(map(str, (len(pins), *(x for p in sorted(pins) for x in p)))))
        return "\n".join([*lines, str(len(nets)), *nets, ""])

    def move(self, to: Sequence[int]) -> int:
        """Move what lies in each place to that of the number given for it; return cells moved.

        Raises:
            SynthesisError: two would lie in one place, or one that is fixed would leave its own.
        """
        if sorted(to) != list(range(len(self.places))):
            raise SynthesisError(f"refine: {len(to)} places for {len(self.places)}, not each once")
        moved = 0
        for place, number in zip(self.places, to, strict=True):
            x, y, letter = self.places[number]
            if self.held[place].fixed and (x, y, letter) != place:
                raise SynthesisError(f"refine: {place} is fixed and would move")
            for inside, name in self.held[place].cells.items():
                moved += (x, y, letter) != place
                self.cells[name]["attributes"][BEL] = f"X{x}/Y{y}/SLICE{letter}.{inside}"
        return moved


def refined(netlist: Json, folder: Path, moves: int = MOVES) -> int:
    """Move slices of a placed netlist; return the cells moved.

    Args:
        netlist: a file of nextpnr, changed here.
        folder: for the compiled program and its files.
        moves: to be tried.

    Raises:
        SynthesisError: the program cannot be compiled, or fails.
    """
    program, given, found = (folder / f"refine{end}" for end in ("", ".placed", ".moved"))
    layout = Layout(netlist)
    given.write_text(layout.numbers(), encoding="utf-8")
    for command in (
        [*COMPILE, str(program), str(SOURCE)],
        [str(program), str(given), str(moves), str(found)],
    ):
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise SynthesisError(f"{' '.join(command)}:\n{run.stderr.strip()[-2000:]}")
    (folder / "refined.txt").write_text(run.stdout, encoding="utf-8")
    return layout.move([int(line) for line in found.read_text(encoding="utf-8").split()])
