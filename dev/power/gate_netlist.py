# SPDX-License-Identifier: Apache-2.0
"""A block in gates, cut at its registers: what OpenSTA reads, and toggles counted without it.

A register is fed by a port of its own, which toggles as the register does; OpenSTA carries that
through it and the gates behind it. Memories, clock gates and modules that are left out are cut out:
what they say are ports. Clocks are ideal; `domains` says which registers have which.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dev import gates, synth, yosys
from dev.power import library
from dev.power.toggles import Activity
from spec.paths import ROOT
from tb.run import sources

STEPS = 512
"""Cycles in which toggles are counted."""
RARE = 1e-3
"""Least share of cycles in which a bit that is ever high, or ever low, is said to be so.

OpenSTA 2.0.17 divides products of such shares, and those of smaller ones are 0 to it.
"""
CLOCK = "clk_i"
Bit = int | str
"""Of yosys' JSON: a number, or a constant."""


def synthesise(
    block: synth.SynthBlock, without: Sequence[str], paths: Sequence[Path], folder: Path
) -> GateNetlist:
    """Map a block to gates, or read what an earlier run has mapped.

    Args:
        block: what.
        without: modules in it that are left out, beside clock gates.
        paths: sources, of which it takes what it needs.
        folder: below the root of the tree, for what is made.

    Raises:
        SynthesisError: yosys refused the block, or is not there.
    """
    own = synth.place(block, folder)
    files = sources.closure(block.top, paths)
    boxes = "".join(f"--blackboxed-module {name} " for name in (synth.CLOCK_GATE, *without))
    words = synth.words(block, files, own) | {"boxes": boxes, "liberty": str(gates.LIBERTY)}
    text = (gates.READING + gates.MAPPING).format(**words)

    def make() -> dict[str, bool]:
        yosys.run(text, own, waived=("ABC: Warning: ",))
        return {"mapped": True}

    yosys.kept(own / "result.json", yosys.digest(text, [*files, gates.LIBERTY]), make)
    design = json.loads((own / "mapped.json").read_text(encoding="utf-8"))
    return GateNetlist(design["modules"][block.top], library.read(), own)


class GateNetlist:
    """A flat netlist of the library's cells.

    Args:
        module: of yosys' JSON.
        cells: of the library.
        folder: for what OpenSTA reads.
    """

    def __init__(
        self, module: dict[str, Any], cells: Mapping[str, library.Cell], folder: Path
    ) -> None:
        self.folder = folder
        self.library = cells
        self.cells: dict[str, dict[str, Any]] = {}
        boxes: dict[str, dict[str, Any]] = {}
        for name, cell in module["cells"].items():
            (self.cells if cell["type"] in cells else boxes)[name] = cell
        gates.add_buffers({"cells": self.cells, "netnames": module["netnames"]})
        self.names = _names(module)
        self.registers = {
            name: cell for name, cell in self.cells.items() if self._type(cell).clock_pj
        }
        self.driven = {_bit(cell, self._type(cell).output) for cell in self.cells.values()}
        used = (_bit(cell, pin) for cell in self.cells.values() for pin in self._type(cell).inputs)
        clocks = {_bit(cell, "CLK") for cell in self.registers.values()}
        self.inputs = sorted({bit for bit in used if isinstance(bit, int)} - self.driven - clocks)
        self._gates = {
            cell["connections"]["clk_o"][0]: name
            for name, cell in boxes.items()
            if cell["type"] == synth.CLOCK_GATE
        }

    def _type(self, cell: Mapping[str, Any]) -> library.Cell:
        return self.library[cell["type"]]

    def area(self) -> float:
        """Return the area in um2."""
        return sum(self._type(cell).area for cell in self.cells.values())

    @property
    def clock_gates(self) -> list[str]:
        """The nets of clocks behind gates."""
        return [f"{name}.clk_o" for name in self._gates.values()]

    def domains(self) -> dict[str, float]:
        """Return what a cycle of each clock costs, in pJ: the registers' clock pins."""
        found: dict[str, float] = defaultdict(float)
        for cell in self.registers.values():
            gate = self._gates.get(_bit(cell, "CLK"))
            kind = self._type(cell)
            found[CLOCK if gate is None else f"{gate}.clk_o"] += kind.clock_pj + kind.charge_pj
        return dict(found)

    def inside(self, activities: Mapping[Bit, Activity]) -> tuple[float, float]:
        """Return pJ of a cycle inside the registers: for the clock's edges, and for those of D."""
        kinds = [(self._type(cell), _bit(cell, "Q")) for cell in self.registers.values()]
        data = sum(kind.data_pj * activities[bit].toggles for kind, bit in kinds)
        return sum(kind.clock_pj for kind, _ in kinds), data

    def activities(
        self, find: Callable[[str], Activity | None]
    ) -> tuple[dict[Bit, Activity], float]:
        """Return the activity of all registers and inputs by bit, and the share that is known.

        What is not known, since synthesis has made another register of it, is like the others.
        """
        sources = [_bit(cell, "Q") for cell in self.registers.values()] + self.inputs
        found = {bit: find(self.names.get(bit, "")) for bit in sources}
        known = {bit: each for bit, each in found.items() if each is not None}
        count = max(len(known), 1)
        mean = Activity(
            sum(each.toggles for each in known.values()) / count,
            sum(each.high for each in known.values()) / count,
        )
        return {bit: known.get(bit, mean) for bit in sources}, len(known) / max(len(sources), 1)

    def write(self, activities: Mapping[Bit, Activity], period: float) -> Path:
        """Write netlist and script for OpenSTA; return the script.

        Args:
            activities: of registers and inputs, by bit.
            period: of the clock, in ns.
        """
        loads: dict[Bit, float] = defaultdict(float)
        for cell in self.registers.values():
            if (bit := _bit(cell, "D")) in self.driven:
                loads[bit] += self._type(cell).inputs["D"]
        feeds = {name: f"d{index}" for index, name in enumerate(self.registers)}
        ports = ["clk", *feeds.values(), *(f"n{bit}" for bit in (*self.inputs, *loads))]
        lines = [f"module cut({', '.join(ports)});", "input clk;"]
        lines += [f"input {feed};" for feed in feeds.values()]
        lines += [f"input n{bit};" for bit in self.inputs] + [f"output n{bit};" for bit in loads]
        for index, (name, cell) in enumerate(self.cells.items()):
            pins = {pin: _wire(_bit(cell, pin)) for pin in cell["connections"]}
            if name in feeds:
                pins |= {"CLK": "clk", "D": feeds[name]}
            wired = ", ".join(f".{pin}({wire})" for pin, wire in pins.items())
            lines.append(f"{cell['type']} c{index} ({wired});")
        (self.folder / "cut.v").write_text("\n".join([*lines, "endmodule\n"]), encoding="utf-8")

        said = {feeds[name]: activities[_bit(cell, "Q")] for name, cell in self.registers.items()}
        said |= {f"n{bit}": activities[bit] for bit in self.inputs}
        script = [
            f"read_liberty {gates.LIBERTY}",
            f"read_verilog {(self.folder / 'cut.v').relative_to(ROOT)}",
            "link_design cut",
            f"create_clock -name clk -period {period} [get_ports clk]",
            f"set_input_transition {library.SLEW} [all_inputs]",
            "set data [list]",
            'foreach port [all_inputs] { if {[get_name $port] != "clk"} { lappend data $port } }',
            "set_input_delay 0 -clock clk $data",
            *(
                f"set_load -pin_load {picofarads:.6g} [get_ports n{bit}]"
                for bit, picofarads in loads.items()
            ),
            "set_power_activity -input -activity 0 -duty 0.5",
            *(
                f"set_power_activity -input_ports {port} "
                f"-activity {each.toggles:.6g} -duty {_share(each.high):.6g}"
                for port, each in said.items()
            ),
            "report_power -digits 6",
            "exit",
        ]
        path = self.folder / "power.tcl"
        path.write_text("\n".join(script) + "\n", encoding="utf-8")
        return path

    def counted(self, activities: Mapping[Bit, Activity], seed: int = 1) -> float:
        """Return pJ of a cycle that charge what gates drive, by counting toggles of every net.

        Registers and inputs are drawn for some cycles with their activities, each for itself, and
        all gates are worked out in all of these cycles at once.
        """
        random = np.random.default_rng(seed)
        mask = (1 << STEPS) - 1
        values: dict[Bit, int] = {"0": 0, "1": mask, "x": 0}
        values |= zip(activities, _drawn([*activities.values()], random), strict=True)
        loads: dict[Bit, float] = defaultdict(float)
        for cell in self.cells.values():
            for pin, picofarads in self._type(cell).inputs.items():
                loads[_bit(cell, pin)] += picofarads
        code = {
            name: eval(f"lambda {', '.join(one.inputs)}: {one.function}")
            for name, one in self.library.items()
            if one.function
        }
        energy = 0.0
        for cell in self._ordered(values):
            kind = self._type(cell)
            bit = _bit(cell, kind.output)
            value = code[cell["type"]](*(values[_bit(cell, pin)] for pin in kind.inputs)) & mask
            values[bit] = value
            toggles = ((value ^ (value >> 1)) & (mask >> 1)).bit_count()
            energy += toggles / (STEPS - 1) * loads[bit] * library.SUPPLY**2 / 2
        return energy

    def _ordered(self, known: Mapping[Bit, int]) -> list[dict[str, Any]]:
        """Return the cells of logic, each behind those that drive it."""
        waiting: dict[Bit, list[str]] = defaultdict(list)
        missing: dict[str, int] = {}
        ready: list[str] = []
        for name, cell in self.cells.items():
            if name in self.registers:
                continue
            pins = (_bit(cell, pin) for pin in self._type(cell).inputs)
            needs = {bit for bit in pins if bit not in known}
            missing[name] = len(needs)
            for bit in needs:
                waiting[bit].append(name)
            if not needs:
                ready.append(name)
        for name in ready:
            for after in waiting[_bit(self.cells[name], self._type(self.cells[name]).output)]:
                missing[after] -= 1
                if not missing[after]:
                    ready.append(after)
        return [self.cells[name] for name in ready]


def _share(high: float) -> float:
    """Return the share of cycles in which a bit is high, as it is said to OpenSTA."""
    return min(max(high, RARE), 1 - RARE) if 0 < high < 1 else high


def _bit(cell: Mapping[str, Any], pin: str) -> Bit:
    """Return what a pin is connected to: the number of a bit, or a constant."""
    bits: list[Bit] = cell["connections"][pin] or ["x"]
    return bits[0]


def _wire(bit: Bit) -> str:
    return f"n{bit}" if isinstance(bit, int) else "1'b1" if bit == "1" else "1'b0"


def _names(module: Mapping[str, Any]) -> dict[Bit, str]:
    """Return a name of the source for each bit that has one."""
    found: dict[Bit, str] = {}
    for name, net in module["netnames"].items():
        if not net["hide_name"]:
            for index, bit in enumerate(net["bits"]):
                label = name if len(net["bits"]) == 1 else f"{name}[{index}]"
                found.setdefault(bit, label)
    return found


def _drawn(activities: Sequence[Activity], random: np.random.Generator) -> list[int]:
    """Return bits over some cycles, the first one lowest, with given activities."""
    toggles = np.array([each.toggles for each in activities])
    high = np.array([each.high for each in activities])
    rises = np.minimum(1.0, toggles / 2 / np.maximum(1.0 - high, 1e-9))
    falls = np.minimum(1.0, toggles / 2 / np.maximum(high, 1e-9))
    state = random.random(len(activities)) < high
    rows = np.empty((STEPS, len(activities)), dtype=bool)
    for step in range(STEPS):
        rows[step] = state
        state = state ^ (random.random(len(activities)) < np.where(state, falls, rises))
    packed = np.packbits(rows, axis=0, bitorder="little").T
    return [int.from_bytes(row.tobytes(), "little") for row in packed]
