# SPDX-License-Identifier: Apache-2.0
"""Small memories of a board, whose addresses are tied to themselves, are what was asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dev import yosys
from dev.fpga import flow
from tests.needs import needs

needs("synth")

DESIGN = """
module top(input clk, input we, input [{high}:0] wa, ra, input [5:0] d, output [5:0] q);
  reg [5:0] m[0:{last}];
  always @(posedge clk) if (we) m[wa] <= d;
  assign q = m[ra];
endmodule
"""
SCRIPT = """
read_verilog {folder}/top.v
hierarchy -top top
design -save source
synth_ecp5 -top top -run :map_ffram
techmap -map {folder}/ram.v
select -assert-count 2 t:TRELLIS_DPR16X4
write_rtlil {folder}/mapped.il
read_verilog -overwrite -icells +/ecp5/cells_sim.v
flatten
proc; opt; memory -nordff; opt
rename top mapped
design -stash mapped
design -load source
proc; opt; memory -nordff; opt
rename top asked
design -stash asked
design -copy-from asked asked
design -copy-from mapped mapped
miter -equiv -flatten asked mapped both
hierarchy -top both
sat -verify -prove trigger 0 -set-init-zero -seq 8 both
"""


def _compared(folder: Path, bits: int, ram: str) -> str:
    """Map a memory, compare it with what was asked for over eight cycles; return the cells."""
    text = DESIGN.format(high=bits - 1, last=(1 << bits) - 1)
    (folder / "top.v").write_text(text, encoding="utf-8")
    (folder / "ram.v").write_text(ram, encoding="utf-8")
    yosys.run(SCRIPT.format(folder=folder), folder, ("Warning: ",))
    return (folder / "mapped.il").read_text(encoding="utf-8")


@pytest.mark.parametrize("bits", [1, 2, 3, 4])
def test_a_memory_is_the_same_behind_it(bits: int, tmp_path: Path) -> None:
    """Of 2 to 16 rows, for any writes and reads; no bit of an address is tied to 0."""
    cells = _compared(tmp_path, bits, flow.RAM)
    addresses = [line for line in cells.splitlines() if re.search(r"connect .[RW]AD ", line)]
    assert len(addresses) == 4 and not any("'0" in line for line in addresses)


def test_a_wrong_tie_is_seen(tmp_path: Path) -> None:
    """One that is not the same on both sides."""
    broken = flow.RAM.replace("{4{RAD[0]}}", "{4{~RAD[0]}}")
    assert broken != flow.RAM
    with pytest.raises(yosys.SynthesisError, match="proof did fail"):
        _compared(tmp_path, 3, broken)
