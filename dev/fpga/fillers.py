# SPDX-License-Identifier: Apache-2.0
"""Room for wires in the crowded parts of a board.

The placer fills the device evenly. It knows the area of a part and not how many wires go through
it, and the router finds no way through the middle of the datapath while the edges of the device
have wires left. So LUTs that do nothing are put beside the cells of these parts, each on a wire
that is there, which keeps it near. They are in the way of the placer, and gone before the router.

`heat.json` says which parts these are: LUTs of each module of the board with array 4, and the wires
that two nets wanted in the tiles of these LUTs and the eight around each, in the fifth turn of
router 2 over a placing without fillers.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

HEAT = Path(__file__).with_name("heat.json")
FILLERS = 9000
"""Fillers in all, if no module had more than it may have."""
HOTTEST = 12.0
"""Wires for a LUT and its tile beyond which a module is no hotter."""
MOST = 0.6
"""Fillers for a LUT, at most."""
ELSEWHERE = 0.05
"""For a LUT of a module that has no heat."""
CORE = "u_board.u_chip.u_core."
DEPTH = 4
"""Levels of the name of a module."""
LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4}
"""LUTs that a cell counts as."""
READERS = 3
"""At most so many of a wire that a filler is put on: one with more is long."""
PREFIX = "filler_"

Json = dict[str, Any]


def module_of(cell: str) -> str:
    """Return the module that a cell of a flattened board is counted for."""
    names: list[str] = []
    for name in cell.replace(CORE, "").split(".")[:DEPTH]:
        if not re.match(r"u_|gen_", name):
            break
        names.append(name)
    return ".".join(names)


@cache
def rates() -> Mapping[str, float]:
    """Return fillers for a LUT by module, in proportion to its heat."""
    found: dict[str, list[int]] = json.loads(HEAT.read_text(encoding="utf-8"))
    heat = {module: min(HOTTEST, wires / 9 / luts) for module, (luts, wires) in found.items()}
    whole = sum(heat[module] * luts for module, (luts, _) in found.items())
    return {module: min(MOST, each * FILLERS / whole) for module, each in heat.items()}


def _wires(cell: Mapping[str, Any], direction: str) -> Iterator[int]:
    """Go through the wires at a cell's ports of a direction; constants are strings."""
    for port, wires in cell["connections"].items():
        if cell["port_directions"][port] == direction:
            yield from (wire for wire in wires if not isinstance(wire, str))


def _filler(wire: int, output: int) -> Json:
    """Return a LUT that reads a wire; nobody reads its own."""
    inputs = {"A": ["0"], "B": ["0"], "C": ["0"], "D": [wire]}
    return {
        "hide_name": 0,
        "type": "LUT4",
        "parameters": {"INIT": "0000000011111111"},
        "attributes": {},
        "port_directions": {**dict.fromkeys(inputs, "input"), "Z": "output"},
        "connections": {**inputs, "Z": [output]},
    }


def added(netlist: Json) -> int:
    """Add fillers to a netlist of yosys; return how many."""
    (top,) = (each for each in netlist["modules"].values() if each["attributes"].get("top"))
    cells: Json = top["cells"]
    readers = Counter(wire for cell in cells.values() for wire in _wires(cell, "input"))
    last = max(max(readers), *(wire for each in cells.values() for wire in _wires(each, "output")))
    due: defaultdict[str, float] = defaultdict(float)
    fillers: Json = {}
    for name, cell in cells.items():
        if cell["type"] not in LUTS:
            continue
        module = module_of(name)
        due[module] += LUTS[cell["type"]] * rates().get(module, ELSEWHERE)
        # A carry that is read elsewhere than in its chain takes places of its own.
        carries = cell["connections"].get("COUT", [])
        near = [
            wire
            for wire in _wires(cell, "output")
            if 1 <= readers[wire] <= READERS and wire not in carries
        ]
        while due[module] >= 1 and near:
            last += 1
            due[module] -= 1
            filler = _filler(near[len(fillers) % len(near)], last)
            fillers[f"{PREFIX}{len(fillers)}"] = filler
            name_of = {"hide_name": 1, "bits": [last], "attributes": {}}
            top["netnames"][f"{PREFIX}z_{len(fillers)}"] = name_of
    cells.update(fillers)
    return len(fillers)


def removed(netlist: Json) -> int:
    """Take the fillers out of a netlist of yosys or nextpnr; return how many there were."""
    count = 0
    for module in netlist["modules"].values():
        for part in ("cells", "netnames"):
            kept = {k: v for k, v in module[part].items() if not k.startswith(PREFIX)}
            count += (len(module[part]) - len(kept)) * (part == "cells")
            module[part] = kept
    return count


def write_with(mapped: Path, result: Path) -> int:
    """Write a netlist of yosys with fillers, for the placer; return how many."""
    netlist = json.loads(mapped.read_text(encoding="utf-8"))
    count = added(netlist)
    result.write_text(json.dumps(netlist), encoding="utf-8")
    return count
