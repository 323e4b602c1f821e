# SPDX-License-Identifier: Apache-2.0
"""Descriptors and completion records: one source, the bits that the reference has."""

from __future__ import annotations

import copy
import tomllib
from typing import Any

import pytest

from spec.regs import DESC_ENTRY, DESC_EXTENSION, DESC_PROGRAM, DESC_RECORD, RingStatus, descriptors
from spec.regs.emit_descriptors import filled, systemverilog
from spec.regs.source import load_all


def test_bits_of_an_entry() -> None:
    """Word 0 by hand; operands are whole words."""
    fields = {"opcode": 9, "extended": 1, "launch": 1, "stream": 1, "offset": 20, "bytes": 36}
    first = 9 | 1 << 4 | 1 << 5 | 1 << 8 | 20 << 16 | 36 << 24 | 1 << 30 | 1 << 31
    assert DESC_ENTRY.pack(**fields, writeback=1, owner=1, a=1, b=2, acc=3) == (first, 1, 2, 3)


def test_bits_of_the_second_entry() -> None:
    """The tag shares a word with the strides; a program has words of its own."""
    words = DESC_EXTENSION.pack(target=4, cfg=0xABCDEF, base=6, stride=0x7, tag=0x41)
    assert words == (4, 0xABCDEF, 6, 0x4100_0007)
    program = DESC_PROGRAM.pack(token=1, base0=2, base1=3, ucode_base=4, ucode_len=5, pos=6)
    assert program == (1, 2, 3, 4, 5, 6)
    assert (DESC_PROGRAM.first, DESC_EXTENSION.first) == (1, 4)


def test_bits_of_a_record() -> None:
    """Both ways."""
    first = 0x94 | 5 << 8 | 1 << 15 | 0x77 << 16 | 11 << 24 | 1 << 28
    data = b"".join(word.to_bytes(4, "little") for word in (first, 2, 3, 4))
    found = DESC_RECORD.unpack(data)
    names = ("code", "index", "phase", "tag", "opcode", "launch", "result", "result_hi", "cycles")
    assert found == dict(zip(names, (0x94, 5, 1, 0x77, 11, 1, 2, 3, 4), strict=True))
    assert DESC_RECORD.image(**found) == data
    assert DESC_RECORD.mask(0) == 0x1FFF_87FF


def test_status_codes() -> None:
    """The values of the reference."""
    values = [0, 0x01, 0x02, 0x04, 0x06, 0x0C, 0x14, 0x24, 0x34, 0x44, 0x84, 0x94]
    assert [int(code) for code in RingStatus] == values


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"opcode": 16}, "entry.opcode: given 0x10, allowed 0 to 0xf"),
        ({"owner": -1}, "entry.owner: given -0x1, allowed 0 to 0x1"),
        ({"tag": 1}, "entry: given field tag, allowed opcode, extended,"),
    ],
)
def test_what_does_not_fit_is_refused(fields: dict[str, int], message: str) -> None:
    """Layout, field, value and range."""
    with pytest.raises(ValueError, match=message):
        DESC_ENTRY.pack(**fields)


def test_the_structs_fill_their_words() -> None:
    """Bits without a field are members too, so that a struct is as long as its words."""
    text = systemverilog(descriptors.load(), load_all()[0])
    assert "    logic [6:0] reserved0_9;" in text
    assert "  localparam logic [7:0] CodeWritebackWrite = 8'h94;" in text
    assert "  localparam logic [31:0] GemmStrideNarrow = 32'h000f0f0f;" in text
    assert "  localparam logic [7:0] ScratchPageAddr = 8'hD8;" in text


def _content() -> dict[str, Any]:
    return tomllib.loads(descriptors.SOURCE.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"bits": "32:4"}, "entry.opcode: given bits 32:4, allowed 31:0"),
        ({"word": 4}, r"entry.opcode: given word 4, allowed \[0, 1, 2, 3\]"),
        ({"bits": "4:0"}, "entry.extended: given bits 4, which another has"),
    ],
)
def test_a_wrong_field_is_refused(field: dict[str, Any], message: str) -> None:
    """Fields lie in their words and do not overlap."""
    content = copy.deepcopy(_content())
    content["layout"][0]["fields"][0] |= field
    with pytest.raises(ValueError, match=message):
        descriptors.parse(content)


def test_a_status_code_is_given_once() -> None:
    """Two names for one code are refused."""
    content = _content()
    content["status"][1]["value"] = 1
    with pytest.raises(ValueError, match=r"status.EMPTY: given 0x1, allowed 1 to 0xff once"):
        descriptors.parse(content)


def test_a_page_without_a_table_is_refused() -> None:
    """Every table has its place."""
    with pytest.raises(ValueError, match=r"command-port.md: given tables \[\], allowed each of"):
        filled("# The command port\n", descriptors.load())
