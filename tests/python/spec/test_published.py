# SPDX-License-Identifier: Apache-2.0
"""Every number of an interface is what was published, and one that changes is named."""

from __future__ import annotations

import json
import struct
import tomllib
import zlib
from collections.abc import Callable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from npu.image.packed_file import pack
from npu.image.share import StreamShare
from spec.isa import cop_source
from spec.isa import source as isa_source
from spec.regs import descriptors
from spec.regs import source as register_source
from tests.python.spec import interface_mutations, interface_numbers, published
from tests.python.spec.interface_numbers import Tables, differences, parsed

DATA: dict[str, tuple[Path, Callable[[Any], Tables], Mapping[str, str]]] = {
    "instruction set": (
        isa_source.SOURCE,
        lambda data: interface_numbers.isa(isa_source.parse(data)),
        published.ISA,
    ),
    "coprocessor": (
        cop_source.SOURCE,
        lambda data: interface_numbers.coprocessor(cop_source.parse(data)),
        published.COPROCESSOR,
    ),
    "descriptors": (
        descriptors.SOURCE,
        lambda data: interface_numbers.descriptors(descriptors.parse(data)),
        published.DESCRIPTORS,
    ),
}
"""Data files: where they are, their numbers, and those that were published."""


def published_window(found: Tables) -> Tables:
    """Return what was published of the one window that was read."""
    return {title: rows for title, rows in parsed(published.REGISTERS).items() if title in found}


@pytest.mark.parametrize("name", DATA)
def test_numbers_are_those_that_were_published(name: str) -> None:
    """No name less, no name more; a new one is typed into the table as well."""
    path, read, typed = DATA[name]
    found = read(tomllib.loads(path.read_text(encoding="utf-8")))
    assert differences(parsed(typed), found) == []


def test_registers_are_those_that_were_published() -> None:
    """Offsets, bits, access, locks, resets and named values of the four windows."""
    found = interface_numbers.registers(register_source.load_all())
    assert differences(parsed(published.REGISTERS), found) == []


@pytest.mark.parametrize("name", DATA)
def test_every_change_of_a_data_file_is_noticed(name: str) -> None:
    """Each number and word changed, each two neighbours exchanged."""
    path, read, typed = DATA[name]
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    missed = interface_mutations.unnoticed(interface_mutations.of_data(data), read, parsed(typed))
    assert missed == []


@pytest.mark.parametrize("window", register_source.WINDOWS, ids=lambda window: window[0])
def test_changes_of_a_register_map_are_noticed(
    window: tuple[str, str, int], tmp_path: Path
) -> None:
    """A sample; all of them in tests/suites/test_published.py."""
    text = (register_source.HERE / f"{window[1]}.rdl").read_text(encoding="utf-8")
    sample = islice(interface_mutations.of_rdl(text), 5, None, 29)
    read = interface_mutations.reader(window, tmp_path)
    assert interface_mutations.unnoticed(sample, read, published_window(read(text))) == []


@pytest.mark.parametrize(
    ("module", "old", "new", "line"),
    [
        ("cop", "BYTES[19:0] = 256", "BYTES[19:0] = 255", "LIMIT: published '0x54; 19:0 BYTES rw"),
        ("cop", "TRAP[1:1] = 1", "TRAP[1:1] = 0", "CTRL: published '0x44; 0 CLEAR w1 0; 1 TRAP rw"),
        ("cmd", "MAX_U32 = 5", "MOST_U32 = 5", "MAX_U32: published '5', the source has 'none'"),
        ("chip", "BASE.PAGE->swwel = CTRL.LOCK;", "", "31:12 PAGE rw 0 unless CTRL.LOCK'"),
        ("seq", "value_256 KVVOFF", "value_rw KVVOFF", "'0x8C; 31:0 rw 0; starts 12 machine.kv_"),
    ],
)
def test_a_changed_register_is_named(
    module: str, old: str, new: str, line: str, tmp_path: Path
) -> None:
    """With what was published, and what the source has now."""
    window = next(each for each in register_source.WINDOWS if each[0] == module)
    text = (register_source.HERE / f"{window[1]}.rdl").read_text(encoding="utf-8")
    assert text.count(old) == 1
    found = interface_mutations.reader(window, tmp_path)(text.replace(old, new))
    assert any(line in each for each in differences(published_window(found), found))


def test_header_of_a_packed_file() -> None:
    """Each field at its published place; the rest is zero."""
    stream = bytes(range(128))
    data = pack(stream, [StreamShare("w", 3, 0, 128)], edge=32, info={"a": 1}, sections={"s": b"x"})
    text = json.dumps(
        {
            "a": 1,
            "sections": [{"bytes": 1, "name": "s", "offset": 128}],
            "shares": [{"bytes": 128, "name": "w", "offset": 0, "opcode": 3}],
        },
        separators=(",", ":"),
    ).encode()
    start = 64 + (len(text) + 63) // 64 * 64
    for at, form, value in (
        (8, "H", 2),
        (10, "H", 1),
        (12, "I", start),
        (16, "Q", 128),
        (24, "Q", start + 192),
        (32, "H", 32),
        (34, "H", 0),
        (36, "I", len(text)),
        (40, "I", zlib.crc32(text)),
        (44, "I", zlib.crc32(data[start:])),
        (48, "I", zlib.crc32(data[:48])),
    ):
        assert struct.unpack_from(f"<{form}", data, at) == (value,), f"byte {at}"
    assert data[:8] == b"TSRNPACK"
    assert not any(data[52:64])
    assert data[64 : 64 + len(text)] == text
    assert data[start:] == stream + b"x" + bytes(63)
