# SPDX-License-Identifier: Apache-2.0
"""Gates and nanoseconds of blocks in an open library of 180 nm: yosys maps, OpenSTA times.

The library is osu018 (typical corner), as Debian's `qflow-tech-osu018` brings it. There are no
wires, no clock tree and no macros: a memory is registers at its ports, its words are not counted.
ABC sees a register as an input, which it takes for as strong as one likes: what drives many others
gets its buffers here, behind ABC. A figure says how blocks compare, and what a level of LUTs means
in gates.
"""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from dev import constraints, synth, yosys
from dev.yosys import SynthesisError
from spec.paths import BUILD, ROOT
from tb.run import sources

FOLDER = BUILD / "gates"
LIBERTY = Path("/usr/share/qflow/tech/osu018/osu018_stdcells.lib")
STA = "sta"
"""OpenSTA."""
PACKAGES = ("opensta", "qflow-tech-osu018")
NAND_AREA = 24.0
"""um2 of NAND2X1: a gate equivalent."""
ROW = "row-a16"
"""What the others are compared with: a row of the array, of which nothing can be left out."""
MOST_ROWS = 1.3
"""The longest path of a block, in rows of the array: a tenth is what ABC's noise leaves of it."""
MOST_LOADS = 16
"""Inputs that one cell drives."""
BUFFER = "BUFX4"

MEMORY = r"""
(* techmap_celltype = "$mem_v2" *)
module npu_gates_memory(RD_CLK, RD_EN, RD_ARST, RD_SRST, RD_ADDR, RD_DATA,
                        WR_CLK, WR_EN, WR_ADDR, WR_DATA);
  parameter MEMID = "", SIZE = 0, OFFSET = 0, ABITS = 1, WIDTH = 1, INIT = 0;
  parameter RD_PORTS = 1, RD_CLK_ENABLE = 0, RD_CLK_POLARITY = 0, RD_TRANSPARENCY_MASK = 0;
  parameter RD_COLLISION_X_MASK = 0, RD_WIDE_CONTINUATION = 0, RD_CE_OVER_SRST = 0;
  parameter RD_ARST_VALUE = 0, RD_SRST_VALUE = 0, RD_INIT_VALUE = 0;
  parameter WR_PORTS = 1, WR_CLK_ENABLE = 0, WR_CLK_POLARITY = 0, WR_PRIORITY_MASK = 0;
  parameter WR_WIDE_CONTINUATION = 0;
  input [RD_PORTS-1:0] RD_CLK, RD_EN, RD_ARST, RD_SRST;
  input [RD_PORTS*ABITS-1:0] RD_ADDR;
  output [RD_PORTS*WIDTH-1:0] RD_DATA;
  input [WR_PORTS-1:0] WR_CLK;
  input [WR_PORTS*WIDTH-1:0] WR_EN, WR_DATA;
  input [WR_PORTS*ABITS-1:0] WR_ADDR;
  (* keep *) reg [RD_PORTS*(ABITS+1)+WR_PORTS*(2*WIDTH+ABITS)-1:0] taken_q;
  (* keep *) reg [RD_PORTS*WIDTH-1:0] word_q;
  always @(posedge WR_CLK[0]) begin
    taken_q <= {RD_EN, RD_ADDR, WR_EN, WR_ADDR, WR_DATA};
    word_q <= {word_q, taken_q[0]};
  end
  assign RD_DATA = word_q;
endmodule
"""
"""A memory as registers: paths end at its inputs and begin at its words."""

READING = f"""
read_slang --threads 1 {{boxes}}--top {{top}} {{parameters}} {{files}}
hierarchy -check -top {{top}}
proc
flatten
opt_expr
opt_clean
{synth.MEMORIES}memory_map t:$mem_v2 r:WR_PORTS=0 %i
"""
"""Memories are memories, those that are not written logic; `boxes` are options."""
MAPPING = f"""
opt_clean
booth
alumacc
share
opt -full
techmap
opt -fast
dfflegalize -cell $_DFF_P_ 01 -cell $_DFFSR_PNN_ 01
dfflibmap -liberty {{liberty}}
abc -liberty {{liberty}} -script +strash;&get,-n;&fraig,-x;&put;scorr;dch,-f;map,-B,0.9;\\
topo;buffer,-c,-N,{MOST_LOADS};upsize;dnsize;stime,-p
setundef -zero
opt_clean -purge
read_liberty -lib {{liberty}}
splitnets
write_json {{folder}}/mapped.json
"""
"""`dc2`, which yosys' own script has, would turn adders that look ahead into long chains."""
SCRIPT = f"{READING}techmap -autoproc -map {{folder}}/memory.v{MAPPING}"

BUFFERED = """
read_json {folder}/buffered.json
read_liberty -lib {liberty}
tee -q -o {folder}/stat.txt stat -liberty {liberty}
insbuf -buf BUFX2 A Y
write_verilog -noattr -noexpr -simple-lhs -nohex -nodec {folder}/net.v
"""
"""OpenSTA does not end where a wire is an input and outputs; a buffer between is not counted."""

TIMING = """
read_liberty {liberty}
read_verilog {folder}/net.v
link_design {top}
{constraints}report_checks -path_delay max -digits 3
exit
"""
PERIOD = 100.0
_SLACK = re.compile(r"(-?[\d.]+)\s+slack")


@dataclass(frozen=True)
class Gates:
    """A block in gates.

    Attributes:
        block: its name.
        area: in thousands of NAND gates of two inputs.
        nanoseconds: of the longest path, with the setup of the register behind it.
        seconds: time that it took.
    """

    block: str
    area: float
    nanoseconds: float
    seconds: float


def missing() -> str | None:
    """Return how what is missing on this machine is installed, None if all is there."""
    try:
        subprocess.run([STA, "-version"], capture_output=True, check=False)
        found = LIBERTY.exists()
    except OSError:
        found = False
    return None if found else f"apt-get install {' '.join(PACKAGES)}"


def measure(
    block: synth.SynthBlock, paths: Sequence[Path], folder: Path = FOLDER
) -> tuple[Gates, bool]:
    """Map and time a block; return figures, and whether they are of an earlier run.

    Raises:
        SynthesisError: a tool refused the block; or one is missing.
    """
    if (lacks := missing()) is not None:
        raise SynthesisError(f"gates: {lacks}")
    own = synth.place(block, folder)
    files = sources.closure(block.top, paths)
    text = SCRIPT.format(**synth.words(block, files, own), liberty=LIBERTY, boxes="")
    timing = TIMING.format(
        liberty=LIBERTY,
        folder=own.relative_to(ROOT),
        top=block.top,
        constraints=constraints.sdc(str(PERIOD)),
    )

    def make() -> dict[str, Any]:
        return asdict(_measure(block, text, timing, own))

    code = Path(__file__).read_text(encoding="utf-8")
    key = yosys.digest(text + timing + code, [*files, LIBERTY])
    figures, kept = yosys.kept(own / "result.json", key, make)
    return Gates(**figures), kept


def rows(gates: Sequence[Gates]) -> dict[str, float]:
    """Return the longest path of each block in rows of the array, which is one of `gates`."""
    known = {one.block: one.nanoseconds for one in gates}
    return {block: nanoseconds / known[ROW] for block, nanoseconds in known.items()}


def slow(gates: Sequence[Gates]) -> list[str]:
    """Return a line for each block with a longer path than all are allowed to have."""
    return [
        f"{block}: {length:.1f} rows of the array in gates, at most {MOST_ROWS}"
        for block, length in rows(gates).items()
        if round(length, 1) > MOST_ROWS
    ]


def add_buffers(module: dict[str, Any], most: int = MOST_LOADS) -> None:
    """Add trees of buffers to a module of a JSON netlist, so that nothing drives more than `most`.

    Clocks are ideal: they drive what they drive.
    """
    cells = module["cells"]
    loads: dict[int, list[tuple[str, str]]] = {}
    wires = [bit for name in module["netnames"].values() for bit in name["bits"]]
    free = max(bit for bit in wires if isinstance(bit, int)) + 1
    for name, cell in cells.items():
        for port, (bit,) in cell["connections"].items():
            if cell["port_directions"][port] == "input" and port != "CLK" and isinstance(bit, int):
                loads.setdefault(bit, []).append((name, port))
    for wire, driven in loads.items():
        while len(driven) > most:
            trees = -(-len(driven) // most)
            parts = [driven[tree::trees] for tree in range(trees)]
            driven = [(f"buffer{free + tree}", "A") for tree in range(trees)]
            for (name, _), part in zip(driven, parts, strict=True):
                cells[name] = {
                    "type": BUFFER,
                    "parameters": {},
                    "attributes": {},
                    "port_directions": {"A": "input", "Y": "output"},
                    "connections": {"A": [wire], "Y": [free]},
                }
                for cell_name, port in part:
                    cells[cell_name]["connections"][port] = [free]
                free += 1


def _measure(block: synth.SynthBlock, text: str, timing: str, own: Path) -> Gates:
    begin = time.monotonic()
    own.mkdir(parents=True, exist_ok=True)
    (own / "memory.v").write_text(MEMORY, encoding="utf-8")
    (own / "timing.tcl").write_text(timing, encoding="utf-8")
    yosys.run(text, own, waived=("ABC: Warning: ",))
    netlist = json.loads((own / "mapped.json").read_text(encoding="utf-8"))
    add_buffers(netlist["modules"][block.top])
    netlist["modules"] = {block.top: netlist["modules"][block.top]}
    (own / "buffered.json").write_text(json.dumps(netlist), encoding="utf-8")
    words = {"folder": own.relative_to(ROOT), "liberty": LIBERTY}
    yosys.run(BUFFERED.format(**words), own)
    area = re.search(r"Chip area for .*: ([\d.]+)", (own / "stat.txt").read_text("utf-8"))
    run = subprocess.run(
        [STA, "-no_splash", "-exit", str(own / "timing.tcl")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    (own / "timing.txt").write_text(run.stdout + run.stderr, encoding="utf-8")
    # One path of each group: registers, and resets that are released.
    found = _SLACK.findall(run.stdout)
    if area is None or not found:
        log = (own / "timing.txt").relative_to(ROOT)
        raise SynthesisError(f"{block.name}: no figure in gates; log: {log}")
    return Gates(
        block=block.name,
        area=round(float(area[1]) / NAND_AREA / 1000, 2),
        nanoseconds=round(PERIOD - min(map(float, found)), 2),
        seconds=round(time.monotonic() - begin, 1),
    )
