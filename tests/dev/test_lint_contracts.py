# SPDX-License-Identifier: Apache-2.0
"""The check of contracts finds ports and parameters without a comment, and nameless assertions."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import lint_contracts

MODULE = """\
// What it is for.
module npu_example #(
  parameter int unsigned Depth = 4  // entries
) (
  input logic clk_i,  // clock
  // Stays until ready; a comment above, for the line is long
  input logic valid_i,
  output logic [7:0] data_o [4]  // bytes, with valid_i
);
  KeepsValid_A :
  assert property (@(posedge clk_i) valid_i |=> valid_i)
  else $error("npu_example: valid was withdrawn");
endmodule
"""


def _findings(tmp_path: Path, text: str) -> list[str]:
    path = tmp_path / "npu_example.sv"
    path.write_text(text, encoding="utf-8")
    return lint_contracts.findings(tmp_path, tmp_path)


def test_a_module_with_contracts(tmp_path: Path) -> None:
    """Comments behind and above, a named assertion with a message: nothing to say."""
    assert _findings(tmp_path, MODULE) == []


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("  // entries", "", "npu_example.sv:3: parameter Depth has no comment"),
        ("  // clock", "", "npu_example.sv:5: port clk_i has no comment"),
        (
            "  // Stays until ready; a comment above, for the line is long\n",
            "",
            "npu_example.sv:6: port valid_i has no comment",
        ),
        ("  // bytes, with valid_i", "", "npu_example.sv:8: port data_o has no comment"),
        ("  KeepsValid_A :\n", "", "npu_example.sv:10: an assertion without a name"),
        (
            '\n  else $error("npu_example: valid was withdrawn")',
            "",
            "npu_example.sv:10: an assertion without a message",
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, old: str, new: str, found: str) -> None:
    """With file, line and what to do."""
    assert old in MODULE
    findings = _findings(tmp_path, MODULE.replace(old, new, 1))
    assert any(finding.startswith(found) for finding in findings), findings


def test_the_rtl_has_them() -> None:
    """Every port and parameter of the design has its comment, every assertion its name."""
    assert lint_contracts.findings() == []
