# SPDX-License-Identifier: Apache-2.0
"""Room for wires in the crowded parts of a board.

The placer fills the device evenly. It knows the area of a part and not how many wires go through
it, and the router finds no way through the middle of the datapath while the edges of the device
have wires left. So LUTs that do nothing are put beside the cells of these parts, each on a wire
that is there, which keeps it near. They are in the way of the placer, and gone before the router.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

CROWDED = {
    **{f"u_core.u_engines.u_{name}.": 7 for name in ("gemm", "nrm", "vec", "sram", "load")},
    "u_core.u_seq.u_dispatch.": 4,
    "u_core.u_seq.u_ahead.": 8,
    "u_core.u_seq.u_check.": 8,
    "u_chip.u_host.": 6,
}
"""Where the router would find no way, by a part of the names of cells: LUTs to a filler."""
LUTS = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6}
"""LUTs whose places a cell takes."""
READERS = 3
"""At most so many of a wire that a filler is put on: one with more is long."""
PREFIX = "filler_"

Json = dict[str, Any]


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
    due = Fraction(0)
    fillers: Json = {}
    for name, cell in cells.items():
        every = next((luts for part, luts in CROWDED.items() if part in name), None)
        if cell["type"] not in LUTS or every is None:
            continue
        due += Fraction(LUTS[cell["type"]], every)
        # A carry that is read elsewhere than in its chain takes places of its own.
        carries = cell["connections"].get("COUT", [])
        near = [
            wire
            for wire in _wires(cell, "output")
            if 1 <= readers[wire] <= READERS and wire not in carries
        ]
        while due >= 1 and near:
            last += 1
            due -= 1
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


def write_without(placed: Path, result: Path, settings: Mapping[str, str]) -> None:
    """Write a file of the placer without its fillers and with settings, for the router."""
    netlist = json.loads(placed.read_text(encoding="utf-8"))
    removed(netlist)
    for module in netlist["modules"].values():
        module["settings"].update(settings)
    result.write_text(json.dumps(netlist), encoding="utf-8")
