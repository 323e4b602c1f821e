# SPDX-License-Identifier: Apache-2.0
"""Levels of logic in a flattened netlist of `make synth`, and the paths that have most of them.

A path runs from a register, a memory or an input of the block to a register, a memory or an output.
Every LUT on it is a level; so is a carry chain of any length, a multiplier, and a read of a memory
that does not wait for the clock. `LUTS` ends paths at all of these but LUTs, as `ltp -noff` of
yosys does, which knows no other cell: it serves to compare with that.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby, takewhile
from typing import Any

CARRY, DSP, LUT, MEMORY = "CARRY4", "$__DSP", "$lut", "$mem_v2"
ALL, LUTS = "all", "luts"
"""What paths run through."""
FLIP_FLOP = re.compile(r"\$_S?DFFE?_\w+_")
Node = Hashable
"""A bit of the netlist, which is an int, or a place inside of a cell."""


@dataclass(frozen=True)
class Stage:
    """The part of a path inside of one instance.

    Attributes:
        instance: its path, empty for the block itself.
        module: of the design.
        levels: on this part.
    """

    instance: str
    module: str
    levels: int


@dataclass(frozen=True)
class Path:
    """A path of the netlist.

    Attributes:
        begin, end: register, memory or port, with its instance, without the number of the bit.
        levels: on all of it.
        stages: from begin to end.
    """

    begin: str
    end: str
    levels: int
    stages: tuple[Stage, ...]

    def words(self) -> tuple[str, list[str]]:
        """Return the path of the instance around all of it; and begin, stages with levels, end.

        Names of the second are seen from the first, which is empty for the block itself.
        """
        places = [place.rpartition(".")[0] for place in (self.begin, self.end)]
        places += [stage.instance for stage in self.stages]
        steps = zip(*(place.split(".") for place in places), strict=False)
        shared = [step[0] for step in takewhile(lambda step: len({*step}) == 1, steps)]
        around = ".".join(shared)

        def below(name: str) -> str:
            return name.removeprefix(around).lstrip(".") if around else name

        stages = (f"{below(one.instance) or one.module} {one.levels}" for one in self.stages)
        return around, [below(self.begin), *stages, below(self.end)]


@dataclass(frozen=True, slots=True)
class _Logic:
    """What decides a node: the latest of its sources, and a level of its own or none."""

    instance: str
    weight: int
    sources: tuple[Node, ...]


@dataclass
class _Graph:
    """The logic of a netlist, and where its paths begin and end.

    Attributes:
        logic: of every node that a cell of logic decides.
        begins: the name of every node at which paths begin.
        ends: nodes at which paths end, with the name of what takes them.
    """

    logic: dict[Node, _Logic] = field(default_factory=dict)
    begins: dict[Node, str] = field(default_factory=dict)
    ends: list[tuple[Node, str]] = field(default_factory=list)


@dataclass(frozen=True)
class _Solved:
    """A graph with the levels of its nodes, and the steps that are left out of it."""

    graph: _Graph
    arrival: dict[Node, int]
    circles: set[tuple[Node, Node]]


def _bits(cell: Mapping[str, Any], port: str) -> list[int]:
    return [bit for bit in cell["connections"].get(port, ()) if isinstance(bit, int)]


def instance_of(cell: str) -> str:
    """Return the path of the instance that a cell of a flattened netlist is in."""
    if cell.startswith("$flatten"):
        return re.sub(r"\.?\$.*", "", cell.removeprefix("$flatten")).replace("\\", "")
    return "" if cell.startswith("$") else cell.rpartition(".")[0]


class Netlist:
    """A flattened netlist: levels and paths.

    Args:
        design: what `write_json` wrote, of one module that is flat.
        top: its name.
    """

    def __init__(self, design: Mapping[str, Any], top: str) -> None:
        self._body = design["modules"][top]
        self._modules = {"": top}
        self._registers: dict[int, str] = {}
        self._kept: dict[str, _Solved] = {}
        cells = self._body["cells"]
        for name, cell in cells.items():
            if cell["type"] == "$scopeinfo":
                module = cell["attributes"].get("module", "")
                self._modules[name] = module.lstrip("\\").split("$")[0]
        self._name_registers()

    def levels(self, through: str = ALL) -> int:
        """Return the levels of the longest path."""
        solved = self._solved(through)
        return max((solved.arrival.get(node, 0) for node, _ in solved.graph.ends), default=0)

    def circles(self) -> int:
        """Return how many steps were left out since they close a circle."""
        return len(self._solved(ALL).circles)

    def paths(self, most: int, through: str = ALL) -> list[Path]:
        """Return the deepest paths, deepest first; one each of those through the same modules.

        Paths that differ only in bits, in numbers of instances or in the register at which they end
        are the same. A tie is decided by the names.
        """
        solved = self._solved(through)
        graph, arrival = solved.graph, solved.arrival
        found: dict[tuple[str, ...], Path] = {}
        latest: dict[str, tuple[int, Node]] = {}
        for node, name in graph.ends:
            if arrival.get(node, 0) > latest.get(name, (0, None))[0]:
                latest[name] = (arrival[node], node)
        for name, (_, node) in sorted(latest.items(), key=lambda one: (-one[1][0], one[0])):
            path = self._path(solved, node, name)
            names = (path.begin, *(stage.instance for stage in path.stages))
            found.setdefault(tuple(re.sub(r"\[\d+\]", "[]", each) for each in names), path)
            if len(found) == most:
                break
        return list(found.values())

    def _solved(self, through: str) -> _Solved:
        if through not in self._kept:
            graph = self._graph(through)
            self._kept[through] = _Solved(graph, *_arrivals(graph))
        return self._kept[through]

    def _path(self, solved: _Solved, node: Node, end: str) -> Path:
        arrival = solved.arrival
        levels = arrival[node]
        passed: list[str] = []
        while arrival.get(node, 0):
            logic = solved.graph.logic[node]
            passed += [logic.instance] * logic.weight
            node = max(
                (source for source in logic.sources if (node, source) not in solved.circles),
                key=lambda source: (arrival.get(source, 0), source in solved.graph.begins),
            )
        stages = tuple(
            Stage(instance, self._module(instance), len([*run]))
            for instance, run in groupby(reversed(passed))
        )
        return Path(solved.graph.begins.get(node, "constant"), end, levels, stages)

    def _module(self, instance: str) -> str:
        """Return the module of an instance, or of the innermost one around a block of it."""
        while instance and instance not in self._modules:
            instance = instance.rpartition(".")[0]
        return self._modules[instance]

    def _name_registers(self) -> None:
        """Name the bits that flip-flops drive: after a net of their own instance, if one is."""
        homes = {
            bit: instance_of(name)
            for name, cell in self._body["cells"].items()
            if FLIP_FLOP.fullmatch(cell["type"])
            for bit in _bits(cell, "Q")
        }
        ranks: dict[int, tuple[bool, bool, int, str]] = {}
        for name, net in self._body["netnames"].items():
            if net["hide_name"]:
                continue
            for bit in net["bits"]:
                home = homes.get(bit)
                if home is None:
                    continue
                inside = name.startswith(f"{home}.") if home else True
                rank = (not inside, not name.endswith("_q"), len(name), name)
                if bit not in ranks or rank < ranks[bit]:
                    ranks[bit] = rank
        for bit, home in homes.items():
            self._registers[bit] = ranks[bit][-1] if bit in ranks else f"{home}.(unnamed)"

    def _graph(self, through: str) -> _Graph:
        graph = _Graph()
        for name, port in self._body["ports"].items():
            bits = [bit for bit in port["bits"] if isinstance(bit, int)]
            if port["direction"] == "input":
                graph.begins.update(dict.fromkeys(bits, name))
            else:
                graph.ends += [(bit, name) for bit in bits]
        chained = {
            bit
            for cell in self._body["cells"].values()
            if cell["type"] == CARRY
            for bit in _bits(cell, "CO")
        }
        for name, cell in self._body["cells"].items():
            kind = cell["type"]
            instance = instance_of(name)
            if kind == LUT:
                sources = tuple(_bits(cell, "A"))
                for bit in _bits(cell, "Y"):
                    graph.logic[bit] = _Logic(instance, 1, sources)
            elif kind == CARRY and through == ALL:
                graph.logic.update(_carry(name, instance, cell, chained))
            elif kind == DSP and through == ALL:
                inside = ("in", name)
                graph.logic[inside] = _Logic(instance, 1, (*_bits(cell, "A"), *_bits(cell, "B")))
                for bit in _bits(cell, "Y"):
                    graph.logic[bit] = _Logic(instance, 0, (inside,))
            elif kind == MEMORY:
                self._memory(graph, name, instance, cell, through)
            elif FLIP_FLOP.fullmatch(kind):
                (bit,) = cell["connections"]["Q"]
                register = self._registers.get(bit, "") if isinstance(bit, int) else ""
                graph.begins.update(dict.fromkeys(_bits(cell, "Q"), register))
                for port in cell["connections"].keys() - {"Q", "C"}:
                    graph.ends += [(end, register) for end in _bits(cell, port)]
            elif kind != "$scopeinfo":
                _end(graph, name, instance, cell)
        return graph

    @staticmethod
    def _memory(
        graph: _Graph, name: str, instance: str, cell: Mapping[str, Any], through: str
    ) -> None:
        """Add a memory: words read with the clock begin paths, others follow their address."""
        place = name if not name.startswith("$") else f"{instance}.(memory)".lstrip(".")
        parameters, connections = cell["parameters"], cell["connections"]
        clocked = parameters["RD_CLK_ENABLE"][::-1]
        ports = int(parameters["RD_PORTS"], 2)
        address, word = int(parameters["ABITS"], 2), int(parameters["WIDTH"], 2)
        for port in range(ports):
            data = connections["RD_DATA"][port * word : (port + 1) * word]
            taken = connections["RD_ADDR"][port * address : (port + 1) * address]
            sources = tuple(bit for bit in taken if isinstance(bit, int))
            if clocked[port] == "0" and through == ALL:
                inside = ("in", name, port)
                graph.logic[inside] = _Logic(instance, 1, (*sources, ("words", name)))
                graph.begins["words", name] = place
                for bit in data:
                    graph.logic[bit] = _Logic(instance, 0, (inside,))
            else:
                graph.begins.update(dict.fromkeys(data, place))
                graph.ends += [(bit, place) for bit in sources]
        for port_name in ("RD_EN", "RD_ARST", "RD_SRST", "WR_ADDR", "WR_DATA", "WR_EN"):
            graph.ends += [(bit, place) for bit in _bits(cell, port_name)]


def _end(graph: _Graph, name: str, instance: str, cell: Mapping[str, Any]) -> None:
    """Add a cell that paths do not run through."""
    outputs = {CARRY: ("CO", "O"), DSP: ("Y",)}.get(cell["type"])
    if outputs is None:
        directions = cell["port_directions"]
        outputs = tuple(port for port, way in directions.items() if way == "output")
    place = f"{instance}.({cell['type']})".lstrip(".")
    for port in cell["connections"]:
        if port in outputs:
            graph.begins.update(dict.fromkeys(_bits(cell, port), place))
        else:
            graph.ends += [(bit, place) for bit in _bits(cell, port)]


def _carry(
    name: str, instance: str, cell: Mapping[str, Any], chained: set[int]
) -> Iterator[tuple[Node, _Logic]]:
    """Yield the logic of four bits of a carry chain.

    A bit of it depends on the inputs of its place and of those before it. What comes from the four
    bits before takes no level.
    """
    connections = cell["connections"]
    first = [bit for port in ("CI", "CYINIT") for bit in _bits(cell, port)]
    before = tuple(bit for bit in first if bit in chained)
    into: list[Node] = [bit for bit in first if bit not in chained]
    for place in range(4):
        into += [
            connections[port][place]
            for port in ("S", "DI")
            if isinstance(connections[port][place], int)
        ]
        inside = ("in", name, place)
        yield inside, _Logic(instance, 1, tuple(into))
        for port in ("O", "CO"):
            bits = connections.get(port, ())
            if place < len(bits) and isinstance(bits[place], int):
                yield bits[place], _Logic(instance, 0, (inside, *before))


def _arrivals(graph: _Graph) -> tuple[dict[Node, int], set[tuple[Node, Node]]]:
    """Return the levels of the longest path to each node of logic, and what closes circles.

    The design has no loops, `make synth` sees to that; but ABC, to which a carry chain is a border,
    may take a signal behind one for an equal signal in front of it. No value depends on what then
    runs in a circle, so the last step of it is left out: a node, and the source that it has not.
    """
    arrival: dict[Node, int] = {}
    open_: set[Node] = set()
    circles: set[tuple[Node, Node]] = set()
    for node in graph.logic:
        stack = [node]
        while stack:
            last = stack[-1]
            if last in arrival:
                stack.pop()
                continue
            logic = graph.logic[last]
            if last in open_:
                # What follows from nothing is a constant: on no path.
                known = (
                    arrival.get(source, 0) + logic.weight
                    for source in logic.sources
                    if (last, source) not in circles
                )
                arrival[last] = max(known, default=0)
                open_.discard(last)
                stack.pop()
                continue
            open_.add(last)
            left = [s for s in logic.sources if s in graph.logic and s not in arrival]
            circles.update((last, source) for source in left if source in open_)
            stack += [source for source in left if source not in open_]
    return arrival, circles
