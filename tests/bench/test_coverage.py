# SPDX-License-Identifier: Apache-2.0
"""The rows of the coverage table and what makes them hit."""

from __future__ import annotations

from npu.asm import assemble
from spec.isa import OPCODES
from tb.bench import isa_coverage


def _rows(text: str) -> set[str]:
    words = assemble(text).instructions
    return isa_coverage.rows_of(words[-1], words[-2] if len(words) > 1 else None)


def test_every_opcode_has_rows() -> None:
    """What the ISA file names is in the table, nothing else is."""
    opcodes = {row.split(" ")[0] for row in isa_coverage.required()}
    assert opcodes == {opcode.name for opcode in OPCODES}


def test_rows_are_distinct() -> None:
    """No row stands twice."""
    rows = isa_coverage.required()
    assert len(rows) == len(set(rows))


def test_rows_of_a_gemm_with_prefix() -> None:
    """Flags, mode values and prefix operands each make a row that the table asks for."""
    rows = _rows(
        "GEMM dst=0 src0=0x100 src1=0x200 M=4 N=16 K=16 T A=u16 q=row out=i8 ap=64 sums=0x400"
    )
    assert {
        "GEMM",
        "GEMM TRANSPOSE_B",
        "GEMM a_type=UINT16",
        "GEMM q=ROW",
        "GEMM ap=",
        "GEMM sums=",
    } <= rows
    assert "GEMM mul=" not in rows
    assert "GEMM cp=" not in rows
    assert rows <= {*isa_coverage.required()}


def test_rows_of_weight_formats() -> None:
    """Formats are crossed with their groups, and half a group code is no transposed B."""
    stream = "GEMM dst=0 src0=0 M=1 N=16 K=16 B=stream fmt="
    assert "GEMM INT4G G64" in _rows(stream + "int4g group=64")
    assert "GEMM TRANSPOSE_B" not in _rows(stream + "int4g group=64")
    assert "GEMM MXFP6E2" in _rows(stream + "mxfp6e2")
    assert "GEMM INT8" in _rows(stream + "int8")
    assert "GEMM INT8" not in _rows("GEMM dst=0 src0=0 src1=0x100 M=1 N=16 K=16 T")
    required = isa_coverage.required()
    assert sum(row.startswith("GEMM NF4G G") for row in required) == 4
    assert sum(row.startswith("GEMM MXFP4") for row in required) == 1


def test_rows_of_control_words() -> None:
    """SET and BARRIER are covered by register, mask and count."""
    assert _rows("SET BASE3 v=16 add") == {"SET", "SET ADD", "SET BASE3"}
    assert _rows("BARRIER ld vec n=2") == {
        "BARRIER",
        "BARRIER n=2",
        "BARRIER mask[0]",
        "BARRIER mask[5]",
    }
