# SPDX-License-Identifier: Apache-2.0
"""Slices of a placed board move to where fewer wires are wanted, by the rules of the device."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from dev.fpga import refine
from dev.yosys import SynthesisError

MOVES = 60_000
SIDE = 24
"""Tiles of the device from side to side."""


def _cell(kind: str, at: str, **wires: int) -> dict[str, Any]:
    """Return a placed cell; what is read has a lower-case name."""
    return {
        "type": kind,
        "parameters": {"MODE": "LOGIC"},
        "attributes": {refine.BEL: at},
        "port_directions": {p.upper(): "input" if p.islower() else "output" for p in wires},
        "connections": {p.upper(): [wire] for p, wire in wires.items()},
    }


def _netlist(cells: dict[str, Any]) -> dict[str, Any]:
    library: dict[str, Any] = {"cells": {}, "settings": {}}
    return {"modules": {"LUT4": library, "top": {"cells": cells, "settings": {}}}}


def _places(netlist: dict[str, Any]) -> dict[str, str]:
    cells = netlist["modules"]["top"]["cells"]
    return {name: cell["attributes"][refine.BEL] for name, cell in cells.items()}


def _scattered() -> dict[str, Any]:
    """Return a chain of LUTs that begins at a pin, each far from the next one; tiles are half full.

    Slice A of each tile holds a LUT and its flip-flop, with one of six resets.
    """
    cells = {"pin": _cell("TRELLIS_IO", "X0/Y0/PIOA", O=0)}
    for n in range(SIDE * SIDE // 2):
        x, y = n * 7 % SIDE, n * 7 // SIDE % SIDE
        at = f"X{x}/Y{y}/SLICEA"
        if f"{at}.K0" in {cell["attributes"][refine.BEL] for cell in cells.values()}:
            continue
        cells[f"lut{n}"] = _cell("TRELLIS_COMB", f"{at}.K0", a=len(cells) - 1, F=5000 + n)
        wires = {"di": 5000 + n, "lsr": 9000 + n % 6, "Q": len(cells) // 2 * 2}
        cells[f"ff{n}"] = _cell("TRELLIS_FF", f"{at}.FF0", **wires)
    return cells


def test_wires_get_shorter_and_no_rule_is_broken(tmp_path: Path) -> None:
    """No place is taken twice, LUT and flip-flop stay together, a tile has two resets at most."""
    netlist = _netlist(_scattered())
    before = copy.deepcopy(netlist)
    moved = refine.refined(netlist, tmp_path, MOVES)
    places = _places(netlist)
    assert moved > len(places) / 2
    assert moved == sum(place != _places(before)[name] for name, place in places.items())
    assert len(set(places.values())) == len(places)
    resets: dict[str, set[int]] = {}
    for name, place in places.items():
        if name.startswith("ff"):
            assert places[name.replace("ff", "lut")] == place.replace("FF0", "K0")
            lsr = netlist["modules"]["top"]["cells"][name]["connections"]["LSR"][0]
            resets.setdefault(place.split("/SLICE")[0], set()).add(lsr)
    assert max(map(len, resets.values())) == 2
    said = (tmp_path / "refined.txt").read_text(encoding="utf-8").splitlines()
    wires = [int(line.split("wires ")[1].split(",")[0]) for line in said]
    assert wires[1] < wires[0] / 2, said


def test_the_same_file_gives_the_same_places(tmp_path: Path) -> None:
    """So a bitstream can be made again."""
    first, second = _netlist(_scattered()), _netlist(_scattered())
    refine.refined(first, tmp_path, MOVES)
    refine.refined(second, tmp_path, MOVES)
    assert first == second


@pytest.mark.parametrize("mode", [*refine.CHAINED, "FXA", "driver"])
def test_what_belongs_to_its_neighbours_stays(tmp_path: Path, mode: str) -> None:
    """Carry chains, memories with all of their tile, and slices that choose from each other."""
    cells = _scattered()
    luts = [name for name in cells if name.startswith("lut")][5:40]
    for name in luts:
        if mode in refine.CHAINED:
            cells[name]["parameters"]["MODE"] = mode
        elif mode == "FXA":
            cells[name]["connections"]["FXA"] = [20_000]
            cells[name]["port_directions"]["FXA"] = "input"
    if mode == "driver":
        cells["chooser"] = _cell("TRELLIS_COMB", "X1/Y1/SLICED.K0", F=30_000)
        reads = {port: 5000 + int(name[3:]) for port, name in zip(refine.TREE, luts, strict=False)}
        for port, wire in reads.items():
            cells["chooser"]["connections"][port] = [wire]
            cells["chooser"]["port_directions"][port] = "input"
        luts = ["chooser", *luts[: len(reads)]]
    netlist = _netlist(cells)
    before = _places(netlist)
    assert refine.refined(netlist, tmp_path, MOVES) > 0
    after = _places(netlist)
    assert {name: after[name] for name in luts} == {name: before[name] for name in luts}


def test_places_that_no_design_can_have_are_refused() -> None:
    """One taken twice, and one that is fixed and moves."""
    layout = refine.Layout(_netlist(_scattered()))
    count = len(layout.places)
    with pytest.raises(SynthesisError, match="not each once"):
        layout.move([0] * count)
    layout.held[layout.places[0]].fixed = True
    with pytest.raises(SynthesisError, match="is fixed and would move"):
        layout.move([1, 0, *range(2, count)])


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """The program says which file it cannot read."""
    layout = refine.Layout(_netlist(_scattered()))
    text = layout.numbers()
    layout.numbers = lambda: text[: len(text) // 2]  # type: ignore[method-assign]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refine, "Layout", lambda netlist: layout)
        with pytest.raises(SynthesisError, match=r"refine.placed: .* is cut short"):
            refine.refined({}, tmp_path, 10)
