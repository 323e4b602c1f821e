# SPDX-License-Identifier: Apache-2.0
"""What `make lint` counts as wiring, and that it refuses too much of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import wiring

MODULE = """\
// A comment says input logic a_i.
module pair #(
  parameter int unsigned Depth = 4
) (
  input logic clk_i,  // clock

  // Words
  input  logic [7:0] a_i,
  output logic [7:0] b_o
);

  logic [7:0] sum;
  assign sum = a_i + 8'd1;

  half #(
    .Depth(Depth)
  ) u_half (
    .clk_i,
    .a_i(sum +
         8'd1),
    .b_o()
  );

endmodule
"""
WIRES = 3 + 1 + 4  # ports, a parameter's value, connections of which one takes two lines


def test_ports_and_connections_are_counted_and_nothing_else() -> None:
    """Comments, parameters and logic are no wiring; a connection of two lines is two."""
    assert wiring.count(MODULE) == wiring.Wiring(lines=24, wires=WIRES)


def test_a_list_that_becomes_a_struct_is_counted_once() -> None:
    """Two ports that become one struct are one line of wiring less."""
    before = "module m (\n  input logic a_i,\n  input logic b_i\n);\nendmodule\n"
    after = "module m (\n  input pair_t pair_i\n);\nendmodule\n"
    assert wiring.count(before).wires - wiring.count(after).wires == 1


def test_too_much_wiring_is_named_with_its_worst_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finding says how much, how much is allowed, and where most of it is."""
    monkeypatch.setattr(wiring, "ROOT", tmp_path)
    rtl = tmp_path / "rtl"
    rtl.mkdir()
    (rtl / "pair.sv").write_text(MODULE, encoding="utf-8")
    (rtl / "quiet.sv").write_text("module quiet;\nendmodule\n", encoding="utf-8")
    first, worst, *_ = wiring.findings(rtl)
    assert first.startswith("30.8 % of the lines in rtl/")
    assert "33.3 %" in worst and "8 of    24" in worst and worst.endswith("rtl/pair.sv")


def test_little_wiring_is_nothing_to_report(tmp_path: Path) -> None:
    """Below the bar nothing is said."""
    (tmp_path / "quiet.sv").write_text("module quiet;\nendmodule\n", encoding="utf-8")
    assert wiring.findings(tmp_path) == []
