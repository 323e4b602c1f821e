# SPDX-License-Identifier: Apache-2.0
"""Fillers make room in the crowded parts of a board and are gone before the router."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from dev.fpga import fillers

PART = "u_board.u_chip.u_core.u_engines.u_gemm."
EVERY = 9
"""LUTs of the part to a filler."""


@pytest.fixture(autouse=True)
def _one_crowded_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fillers, "rates", lambda: {fillers.module_of(PART): 1 / EVERY})
    monkeypatch.setattr(fillers, "ELSEWHERE", 0.0)


def _lut(read: list[int | str], written: int) -> dict[str, Any]:
    return {
        "type": "LUT4",
        "port_directions": {"A": "input", "B": "input", "Z": "output"},
        "connections": {"A": [read[0]], "B": [read[1]], "Z": [written]},
    }


def _carry(read: int, written: int, carry: int) -> dict[str, Any]:
    return {
        "type": "CCU2C",
        "port_directions": {"A0": "input", "S0": "output", "COUT": "output"},
        "connections": {"A0": [read], "S0": [written], "COUT": [carry]},
    }


def _netlist(cells: dict[str, Any]) -> dict[str, Any]:
    top = {"attributes": {"top": "1"}, "cells": cells, "netnames": {}, "settings": {"seed": "1"}}
    library: dict[str, Any] = {"attributes": {}, "cells": {}, "netnames": {}, "settings": {}}
    return {"modules": {"LUT4": library, "board": top}}


def _chain(name: str, count: int, first: int = 0) -> dict[str, Any]:
    """Return LUTs one behind the other."""
    return {f"{name}{n}": _lut([first + n, "0"], first + n + 1) for n in range(count)}


def _fillers(netlist: dict[str, Any]) -> list[dict[str, Any]]:
    cells = netlist["modules"]["board"]["cells"]
    return [cell for name, cell in cells.items() if name.startswith(fillers.PREFIX)]


def test_fillers_stand_beside_crowded_cells_only() -> None:
    """As many as is said, each on a wire of a cell that few read; its own nobody reads."""
    cells = {**_chain(PART, 4 * EVERY + 1), **_chain("u_other.", 40, first=1000)}
    netlist = _netlist(cells)
    before = copy.deepcopy(netlist)
    assert fillers.added(netlist) == 4
    own = _fillers(netlist)
    written = [each["connections"]["Z"][0] for each in own]
    assert len(own) == 4
    assert len(set(written)) == 4 and min(written) == 1041
    assert all(1 <= each["connections"]["D"][0] <= 4 * EVERY for each in own)
    assert fillers.removed(netlist) == 4
    assert netlist == before


def test_no_filler_on_a_long_wire_or_a_carry() -> None:
    """One that many read, or that leaves a carry chain."""
    crowd = {f"u_other.{n}": _lut([1, "0"], 100 + n) for n in range(fillers.READERS + 1)}
    chain = {f"{PART}c{n}": _carry(0, 10 + n, 50 + n) for n in range(2 * EVERY)}
    last = _lut([50, 50 + 2 * EVERY - 1], 99)
    long = {f"{PART}long": _lut([0, "0"], 1)}
    netlist = _netlist({**long, **crowd, **chain, "u_other.last": last})
    assert fillers.added(netlist) == 0
    newest = 10 + 2 * EVERY - 1
    netlist["modules"]["board"]["cells"]["u_other.sum"] = _lut([newest, 11], 98)
    assert fillers.added(netlist) == 4
    assert {each["connections"]["D"][0] for each in _fillers(netlist)} == {newest}


def test_the_hottest_modules_get_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """In proportion to the heat that was measured, and no more than there is room for."""
    monkeypatch.undo()
    rates = fillers.rates()
    assert rates["u_engines.u_nrm.u_norm.u_param"] > 3 * rates["u_engines.u_gemm.u_post"]
    assert all(0 <= rate <= fillers.MOST for rate in rates.values())
    heat = json.loads(fillers.HEAT.read_text(encoding="utf-8"))
    count = sum(rates[module] * luts for module, (luts, _) in heat.items())
    assert 0.8 * fillers.FILLERS < count < fillers.FILLERS + 1


def test_a_cell_belongs_to_the_module_that_it_was_in() -> None:
    """Four levels of it; what the mapper has added to the name is none."""
    core = "u_board.u_chip.u_core.u_engines.u_nrm.u_norm.u_pipe"
    assert fillers.module_of(f"{core}.x_q_LUT4_Z_1") == "u_engines.u_nrm.u_norm.u_pipe"
    assert fillers.module_of(f"{core}.u_deep.x") == "u_engines.u_nrm.u_norm.u_pipe"
    assert fillers.module_of("u_board.u_uart.x") == "u_board.u_uart"
    assert fillers.module_of("x") == ""
