# SPDX-License-Identifier: Apache-2.0
"""Energy of engines in a token and of a row of the array, from netlists and toggles of the RTL.

What OpenSTA says is taken apart: inside a cell it counts the energies of a rise and of a fall for
each toggle, where Liberty means one of them (but not for the pin D of registers), and it knows no
clock that stands still. So clocks are counted here, and what else happens inside cells counts half.
"""

from __future__ import annotations

import math
import re
import subprocess
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dev import gates
from dev.power import array, engines, library
from dev.power.engines import Engine
from dev.power.gate_netlist import CLOCK, GateNetlist, synthesise
from dev.power.toggles import Activity, Toggles
from dev.power.token import FOLDER, Token
from dev.yosys import SynthesisError
from spec.paths import ROOT
from tb.bench.dut import CLOCK_NS
from tb.run import sources

TOP = "tb_top.dut"
BYTES = Path(__file__).with_name("bytes.toml")
PERIOD_NS = 20.0
"""Of the clock in OpenSTA; it matters to nothing but leakage."""
IDLE_MOST = 0.10
"""What a row of the array may use that has nothing to do, of what it uses at work."""
RISE_AND_FALL = 2.0
REST = 4
"""Registers of `npu_block_clock`, which run always."""
_GROUP = re.compile(r"^(Sequential|Combinational) +(\S+) +(\S+) +(\S+) ", re.M)

Find = Callable[[str], Activity | None]
"""What is known of a bit of a netlist."""


@dataclass(frozen=True)
class Spent:
    """Energy of a cycle, in pJ.

    Attributes:
        clock: clock pins of registers, inside and their capacitance, and clock gates.
        registers: what else happens in registers, and what they drive.
        logic: gates and what they drive, with OpenSTA's propagation of toggles.
        ratio: of what gates drive, by counting toggles over that.
        known: share of registers and inputs whose toggles are known.
    """

    clock: float
    registers: float
    logic: float
    ratio: float
    known: float

    @property
    def total(self) -> float:
        """All of it."""
        return self.clock + self.registers + self.logic

    @property
    def counted(self) -> float:
        """All of it, the logic by counting toggles."""
        return self.clock + self.registers + self.logic * self.ratio

    def __add__(self, other: Spent) -> Spent:
        logic = self.logic + other.logic
        counted = self.logic * self.ratio + other.logic * other.ratio
        return Spent(
            self.clock + other.clock,
            self.registers + other.registers,
            logic,
            counted / logic if logic else 1.0,
            min(self.known, other.known),
        )


@dataclass(frozen=True)
class EngineFigures:
    """An engine; all figures are of all its instances together.

    Attributes:
        engine: its name.
        instances: of its netlist in the chip.
        area: in thousands of NAND gates, without memories.
        registers: so many.
        idle: pJ of a cycle in which it has nothing to do.
        tokens: what it spends in a cycle of a token, by format.
    """

    engine: str
    instances: int
    area: float
    registers: int
    idle: float
    tokens: dict[str, Spent]


@dataclass(frozen=True)
class Stated:
    """Energy that is stated by the byte, in pJ of a token.

    Attributes:
        name: of what is read and written.
        moved: bytes.
        likely, least, most: pJ.
    """

    name: str
    moved: float
    likely: float
    least: float
    most: float


@dataclass(frozen=True)
class RowFigures:
    """A row of the array, with its part of what stands around: pJ of a cycle.

    Attributes:
        active: a row of Gaussian activations enters in every cycle.
        idle: none does, and no weights.
    """

    active: Spent
    idle: Spent

    @property
    def share(self) -> float:
        """Idle, of active."""
        return self.idle.total / self.active.total

    @property
    def mac(self) -> float:
        """The energy of a multiplication and its addition, in pJ."""
        return self.active.total / engines.EDGE


def netlist(engine: Engine) -> GateNetlist:
    """Return the netlist of an engine. Raises SynthesisError."""
    return synthesise(engine.block, engine.without, sources.rtl_sources(), FOLDER)


# -------------------------------------------------------------------------------------------------
# Netlists
# -------------------------------------------------------------------------------------------------
def spent(net: GateNetlist, finds: Sequence[Find]) -> Spent:
    """Return what the instances of a netlist spend together in a cycle.

    Args:
        net: the netlist.
        finds: what is known of the bits of each instance.

    Raises:
        SynthesisError: OpenSTA has no figures, or not those that it is known for.
    """
    mean = mean_of(finds)
    activities, known = net.activities(mean)
    # What toggles does so while the clock runs, and more often than in the mean.
    awake = running(mean, CLOCK)
    activities = {
        bit: Activity(min(each.toggles / awake, 1.0) if awake else 0.0, each.high)
        for bit, each in activities.items()
    }
    path = net.write(activities, PERIOD_NS)
    command = [gates.STA, "-no_splash", "-exit", str(path)]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    log = path.with_suffix(".txt")
    log.write_text(run.stdout + run.stderr, encoding="utf-8")
    groups = {
        name: [float(each) * PERIOD_NS * 1e3 for each in figures]
        for name, *figures in _GROUP.findall(run.stdout)
    }
    if {"Sequential", "Combinational"} - groups.keys():
        raise SynthesisError(f"OpenSTA has no figures; log: {log.relative_to(ROOT)}")
    inside = net.inside(activities)
    try:
        registers, logic = apart(groups["Sequential"], groups["Combinational"], *inside)
    except ValueError as error:
        raise SynthesisError(f"{error}; log: {log.relative_to(ROOT)}") from None
    propagated = groups["Combinational"][1]
    times = len(finds)
    return Spent(
        clock=times * clocks(net, mean),
        registers=times * awake * registers,
        logic=times * awake * logic,
        ratio=net.counted(activities) / propagated if propagated else 1.0,
        known=known,
    )


def mean_of(finds: Sequence[Find]) -> Find:
    """Return what is known of a bit in the mean of several instances."""

    def mean(name: str) -> Activity | None:
        known = [found for find in finds if (found := find(name)) is not None]
        if not known:
            return None
        toggles = sum(each.toggles for each in known) / len(known)
        return Activity(toggles, sum(each.high for each in known) / len(known))

    return mean


def apart(
    sequential: Sequence[float], combinational: Sequence[float], edges: float, data: float
) -> tuple[float, float]:
    """Return the energy of registers without their clocks, and that of logic.

    Args:
        sequential: what OpenSTA says of registers: inside, driven, leakage.
        combinational: likewise of gates.
        edges: inside the registers for both edges of a clock.
        data: likewise for toggles of their pins D.

    Raises:
        ValueError: OpenSTA does not count clocks as its version 2.0.17 does.
    """
    inside, driven, leakage = sequential
    taken = inside - RISE_AND_FALL * edges - data
    if taken < -0.01 * inside:
        raise ValueError("OpenSTA counts the energy inside of cells in another way than 2.0.17")
    registers = max(taken, 0.0) / RISE_AND_FALL + data + driven + leakage
    inside, driven, leakage = combinational
    return registers, inside / RISE_AND_FALL + driven + leakage


def running(find: Find, clock: str) -> float:
    """Return the share of cycles in which a clock runs; of one that is not known, all."""
    found = find(clock)
    return 1.0 if found is None else found.toggles / 2


def clocks(net: GateNetlist, find: Find) -> float:
    """Return what the clocks of a netlist cost in a cycle, with their own edges, in pJ."""
    pins = sum(cost * running(find, clock) for clock, cost in net.domains().items())
    return pins + gate_pj(net.library) * len(net.clock_gates) * running(find, CLOCK)


def gate_pj(cells: Mapping[str, library.Cell]) -> float:
    """Return what a clock gate costs in a cycle: its latch, which the clock opens always."""
    return cells["LATCH"].clock_pj + cells["LATCH"].charge_pj


def block_clock_pj(cells: Mapping[str, library.Cell]) -> float:
    """Return what `npu_block_clock` costs in a cycle."""
    register = cells["DFFPOSX1"]
    return REST * (register.clock_pj + register.charge_pj) + gate_pj(cells)


def idle(engine: Engine, net: GateNetlist) -> float:
    """Return pJ of a cycle in which an engine has nothing to do, of all its instances."""
    if engine.asleep:
        return block_clock_pj(net.library) if engine.own_clock else 0.0
    return net.domains().get(CLOCK, 0.0) + gate_pj(net.library) * len(net.clock_gates)


def engine_figures(engine: Engine, tokens: dict[str, Toggles]) -> EngineFigures:
    """Return the figures of an engine in tokens of some formats. Raises SynthesisError."""
    net = netlist(engine)
    clock = block_clock_pj(net.library) if engine.own_clock else 0.0
    times = len(engine.scopes)
    return EngineFigures(
        engine=engine.name,
        instances=times,
        area=times * net.area() / gates.NAND_AREA / 1000,
        registers=times * len(net.registers),
        idle=idle(engine, net),
        tokens={
            word: spent(net, [below(toggles, scope) for scope in engine.scopes])
            + Spent(clock, 0.0, 0.0, 1.0, 1.0)
            for word, toggles in tokens.items()
        },
    )


def below(toggles: Toggles, scope: str) -> Find:
    """Return what is known of bits below a scope."""
    return lambda name: toggles.find(scope + name)


def row() -> RowFigures:
    """Return the figures of a row of the array, alone. Raises SynthesisError, VerilatorError."""
    inner, outer = netlist(engines.ROWS), netlist(engines.AROUND)
    found = []
    for resting in (False, True):
        saif = array.run(idle=resting)
        toggles = Toggles(saif, array.SCOPE, array.CYCLES, array.PERIOD_NS)
        scopes = [scope.removeprefix(engines.ARRAY) for scope in engines.ROWS.scopes]
        rows = spent(inner, [below(toggles, scope) for scope in scopes])
        both = rows + spent(outer, [toggles.find])
        clock, registers, logic = (
            each / engines.EDGE for each in (both.clock, both.registers, both.logic)
        )
        found.append(Spent(clock, registers, logic, both.ratio, both.known))
    return RowFigures(*found)


# -------------------------------------------------------------------------------------------------
# Memories
# -------------------------------------------------------------------------------------------------
def sram_pj(kibibytes: float) -> tuple[float, float, float]:
    """Return pJ of a byte of a memory of a size: likely, least and most."""
    said = _bytes()["sram"]
    one = said["picojoules"] * math.sqrt(kibibytes / said["kibibytes"])
    return one * said["scale"], one * said["scale_least"], one * said["scale_most"]


def _bytes() -> dict[str, dict[str, Any]]:
    return tomllib.loads(BYTES.read_text(encoding="utf-8"))


def stated(token: Token, toggles: Toggles) -> list[Stated]:
    """Return the energy of what a token reads and writes in SRAM, in small memories, in memory."""
    sram = {"SRAM": [0.0] * 4, "memories of engines": [0.0] * 4}
    for scope in toggles.ending("wr_en_i"):
        width, rows = (toggles.bits(scope + net) for net in ("rd_data_o", "rd_row_i"))
        if not width:
            continue
        clock = toggles.find(scope + CLOCK)
        runs = clock.toggles / 2 if clock else 1.0
        uses = (toggles.find(scope + net) for net in ("rd_en_i", "wr_en_i"))
        moved = sum(min(use.high, runs) for use in uses if use) * token.cycles * width / 8
        name = "SRAM" if ".u_sram." in scope else "memories of engines"
        figures = (moved, *(moved * pj for pj in sram_pj(width * 2**rows / 8192)))
        sram[name] = [a + b for a, b in zip(sram[name], figures, strict=True)]
    said = _bytes()["memory"]
    bus = token.figures.bytes_read + token.figures.bytes_written
    memory = Stated("memory", bus, *(bus * said[name] for name in ("picojoules", "least", "most")))
    return [*(Stated(name, *figures) for name, figures in sram.items()), memory]


def toggles_of(token: Token) -> Toggles:
    """Return the toggles of a token."""
    return Toggles(token.saif, TOP, token.cycles, CLOCK_NS)
