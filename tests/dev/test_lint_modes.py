# SPDX-License-Identifier: Apache-2.0
"""A mode written as a number is found, whatever it is compared with or put into."""

from __future__ import annotations

from pathlib import Path

import pytest

from dev import lint_modes

PLANTED_SV = (
    "assign stream = mode.b_form == 2'd2;",
    "bad |= 2'd3 == smx.out;",
    "assign wide = op_i.a_type inside {GemmAInt16, 2'h3};",
    "unique case (embed.index)\n  EmbedIndexToken: x = 1;\n  2'd2: x = 2;\nendcase",
    "if (word.imm[5:4] == EmbedIndexList) y = 1;",
)
RIGHT_SV = (
    "assign stream = mode.b_form == GemmBStream;  // mode.b_form == 2'd2",
    "unique case (embed.index)\n  EmbedIndexToken: x = 2'd1;\n  default: x = 2;\nendcase",
    "assign first = op_i.opcode == 8'd3;",
)
PLANTED_PYTHON = (
    "if mode.q == 2: pass",
    "x = b_form in (0, GemmB.TILE)",
    "x = imm['index'].get(word.imm) == 1",
    "make(a_type=0)",
    "imm = {'op': 1, 'sh': 4}",
    "x = imm['out'].put(2)",
)
RIGHT_PYTHON = (
    "if mode.q == GemmQ.CHANNEL and index == 0: pass",
    "make(a_type=GemmA.INT8, index=0, op=True)",
    "imm = {'op': VecOp.ADD, 'sh': 4}",
)


@pytest.mark.parametrize("line", PLANTED_SV)
def test_a_number_in_systemverilog_is_found(line: str) -> None:
    """With its line, and what to do."""
    ((place, text),) = lint_modes.in_systemverilog(f"module m;\n{line}\n")
    assert place == (4 if line.startswith("unique case") else 2)
    assert "isa.toml" in text or "struct" in text


@pytest.mark.parametrize("line", PLANTED_PYTHON)
def test_a_number_in_python_is_found(line: str) -> None:
    """With its line, and what to do."""
    ((place, text),) = lint_modes.in_python(f"\n{line}\n")
    assert place == 2
    assert "isa.toml" in text


def test_names_are_right() -> None:
    """What is named, and numbers of other things, are left alone."""
    assert [finding for line in RIGHT_SV for finding in lint_modes.in_systemverilog(line)] == []
    assert [finding for line in RIGHT_PYTHON for finding in lint_modes.in_python(line)] == []


def test_a_planted_file_is_named(tmp_path: Path) -> None:
    """A finding is `file:line: text`, and a file without one is silent."""
    (tmp_path / "rtl").mkdir()
    (tmp_path / "rtl/npu_x.sv").write_text(f"//\n{PLANTED_SV[0]}\n", encoding="utf-8")
    (tmp_path / "rtl/npu_y.sv").write_text(RIGHT_SV[0], encoding="utf-8")
    (finding,) = lint_modes.findings(tmp_path)
    assert finding.startswith("rtl/npu_x.sv:2: a value of b_form is written as a number")


def test_the_tree_names_its_modes() -> None:
    """Nothing is found, but the lines that this file plants are none of the tree's."""
    assert lint_modes.findings() == []
