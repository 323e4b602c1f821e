# SPDX-License-Identifier: Apache-2.0
"""Carry chains of a board, whose ends are made of the chain itself, count as they should."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dev import yosys
from dev.fpga import flow
from tests.needs import needs

needs("synth")

DESIGN = """
module top(input [{high}:0] a, b, input [{high}-1:0] c, input ci, s, output [{high}:0] sum, minus,
           either, next, last, constant, output [{high}+1:0] wide, signs, fed,
           output less, most, before, behind, below, above);
  assign sum = a + b, minus = a - b, either = s ? a - b : a + b, next = a + 1, last = a - 1;
  assign constant = a + 11, wide = a + b, signs = $signed(a) - $signed(c), fed = a + b + ci;
  assign less = a < b, most = a <= b, before = $signed(a) < $signed(b);
  assign behind = $signed(a) >= $signed(c), below = a < 13, above = a >= 9;
endmodule
module LUT4(input A, B, C, D, output Z);
  parameter [15:0] INIT = 0;
  wire [3:0] at = {{D, C, B, A}};
  assign Z = INIT[at];
endmodule
module LUT2(input A, B, output Z);
  parameter [3:0] INIT = 0;
  wire [1:0] at = {{B, A}};
  assign Z = INIT[at];
endmodule
"""
"""Sums and comparisons; and the LUTs that yosys' model of a carry cell consists of."""
SCRIPT = """
read_verilog {folder}/top.v
hierarchy -top top
proc; opt -full
design -save source
alumacc; opt
techmap -map {folder}/carry.v
select -assert-min 20 t:CCU2C
techmap; opt
rename top mapped
read_verilog -overwrite {folder}/top.v
read_verilog -overwrite +/ecp5/ccu2c_sim.vh
hierarchy -top mapped
flatten; proc; opt
design -stash mapped
design -load source
rename top asked
design -stash asked
design -copy-from asked asked
design -copy-from mapped mapped
miter -equiv -flatten asked mapped both
hierarchy -top both
sat -verify -prove trigger 0 both
"""


def _compare(folder: Path, bits: int, carry: str) -> None:
    """Map sums, prove that they are what was asked for."""
    (folder / "top.v").write_text(DESIGN.format(high=bits - 1), encoding="utf-8")
    (folder / "carry.v").write_text(carry, encoding="utf-8")
    yosys.run(SCRIPT.format(folder=folder), folder, ("Warning: ",))


@pytest.mark.parametrize("bits", [5, 6, 13, 32])
def test_sums_are_the_same(bits: int, tmp_path: Path) -> None:
    """Of odd and even widths, with constant carries and others, of any sign."""
    _compare(tmp_path, bits, flow.CARRY)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("16'h0008", "16'h0000"), ("CO[i] = sum[i+2]", "CO[i] = sum[i+1]")],
)
def test_a_wrong_end_is_seen(right: str, wrong: str, tmp_path: Path) -> None:
    """A carry that does not go in; one that is read a bit too early."""
    broken = flow.CARRY.replace(right, wrong)
    assert broken != flow.CARRY
    with pytest.raises(yosys.SynthesisError, match="proof did fail"):
        _compare(tmp_path, 6, broken)


def test_a_carry_that_nobody_reads_has_no_net(tmp_path: Path) -> None:
    """The packer takes a net there for one that is read; others stay."""
    cells = {
        "first": {"connections": {"CIN": ["x"], "COUT": [2]}},
        "last": {"connections": {"CIN": [2], "COUT": [3]}},
    }
    file = tmp_path / "net.json"
    file.write_text(json.dumps({"modules": {"top": {"cells": cells}}}), encoding="utf-8")
    flow.open_carries(file)
    found = json.loads(file.read_text(encoding="utf-8"))["modules"]["top"]["cells"]
    assert found["first"] == cells["first"]
    assert found["last"]["connections"] == {"CIN": [2], "COUT": ["x"]}
