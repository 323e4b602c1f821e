# SPDX-License-Identifier: Apache-2.0
"""Packed files that are refused: another kind or version, truncated, damaged, contradicting itself.

Every refusal is a PackError that names the file and the place; a reader gets a file whole or not at
all, and a good file is read after every bad one.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from npu.compiler import Pack, PackError, StreamShare, compile_block, pack, unpack
from spec.isa.generated import Opcode
from tests.python.golden.golden_support import random_model

STREAM = bytes(range(256))
SHARES = (
    StreamShare("norm", int(Opcode.LAYERNORM), 0, 64),
    StreamShare("linear", int(Opcode.GEMM), 64, 128),
    StreamShare("table", int(Opcode.GELU), 192, 64),
)
SECTIONS = {"program": b"p" * 48, "tokens": b"t" * 65, "empty": b""}
DATA = pack(STREAM, SHARES, edge=16, sections=SECTIONS, info={"model": "m"})
GOOD = Pack(STREAM, SHARES, SECTIONS, {"model": "m"}, 16)
HEADER = 64
(START,) = struct.unpack_from("<I", DATA, 12)
(JSON_BYTES,) = struct.unpack_from("<I", DATA, 36)
FIELDS = {"start": (12, "I"), "stream": (16, "Q"), "file": (24, "Q"), "edge": (32, "H")}
FIELDS |= {"flags": (34, "H"), "json": (36, "I"), "json_crc": (40, "I"), "crc": (44, "I")}
"""Place and form of the numbers of the header, as docs/reference/isa.md has them."""


def refused(data: bytes, message: str, edge: int | None = None) -> None:
    """Check that a file is refused with its name and a message, and that a good one is read."""
    with pytest.raises(PackError, match=rf"\Aw\.npu: {message}"):
        unpack(data, filename="w.npu", edge=edge)
    assert unpack(DATA, filename="w.npu", edge=16) == GOOD


def signed(data: bytes) -> bytes:
    """Return a file with the checksums of what it holds, for contradictions behind them."""
    (size,) = struct.unpack_from("<I", data, 36)
    (start,) = struct.unpack_from("<I", data, 12)
    result = bytearray(data)
    struct.pack_into("<I", result, 40, zlib.crc32(data[HEADER : HEADER + size]))
    struct.pack_into("<I", result, 44, zlib.crc32(data[start:]))
    struct.pack_into("<I", result, 48, zlib.crc32(result[:48]))
    return bytes(result)


def with_number(name: str, value: int) -> bytes:
    """Return the file with a number of the header changed, its checksum right."""
    at, form = FIELDS[name]
    result = bytearray(DATA)
    struct.pack_into(f"<{form}", result, at, value)
    struct.pack_into("<I", result, 48, zlib.crc32(result[:48]))
    return bytes(result)


def with_text(text: bytes, payload: bytes | None = None) -> bytes:
    """Return the file with another JSON text (and payload), all lengths and checksums right."""
    payload = DATA[START:] if payload is None else payload
    padded = text + bytes(-len(text) % 64)
    result = bytearray(DATA[:HEADER] + padded + payload)
    struct.pack_into("<I", result, 12, HEADER + len(padded))
    struct.pack_into("<Q", result, 24, len(result))
    struct.pack_into("<I", result, 36, len(text))
    return signed(bytes(result))


def with_json(change: Callable[[dict[str, Any]], Any]) -> bytes:
    """Return the file with a changed JSON; `change` returns another object or changes its own."""
    info = json.loads(DATA[HEADER : HEADER + JSON_BYTES])
    changed = change(info)
    return with_text(json.dumps(info if changed is None else changed).encode())


def test_the_tools_of_this_module_make_good_files() -> None:
    """A file that is only signed or only rewritten again is accepted: refusals have one reason."""
    assert signed(DATA) == DATA
    assert unpack(with_json(lambda info: None)) == GOOD
    assert with_number("edge", 16) == DATA


def test_truncated_anywhere() -> None:
    """A file that ends too early, at every byte, is refused by its length."""
    for size in range(len(DATA)):
        with pytest.raises(PackError, match=rf"length: given {size} bytes, allowed \d+"):
            unpack(DATA[:size])
    assert unpack(DATA) == GOOD


def test_truncated_compiled_block() -> None:
    """The same for the file of a compiled block."""
    block = compile_block(random_model(3, hidden=16, heads=1, ffn=16, layers=1), 0, 1)
    data = block.packed()
    for size in range(len(data)):
        with pytest.raises(PackError, match=rf"length: given {size} bytes, allowed \d+"):
            unpack(data[:size])
    assert unpack(data).stream == block.stream


def test_truncated_and_signed() -> None:
    """Cut at every byte with lengths and checksums of the header made to fit: still refused."""
    for size in range(START, len(DATA)):
        short = bytearray(DATA[:size])
        struct.pack_into("<Q", short, 24, size)
        with pytest.raises(PackError):
            unpack(signed(bytes(short)))


@pytest.mark.parametrize(
    "extra",
    [b"\0", b"x", bytes(63), bytes(64), b"x" * 64, DATA],
    ids=["zero", "byte", "63 zeros", "64 zeros", "64 bytes", "the file again"],
)
def test_trailing_bytes(extra: bytes) -> None:
    """What stands behind the end is named, be it zeros or another file."""
    refused(DATA + extra, rf"length: given {len(DATA + extra)} bytes, allowed {len(DATA)}, as the")
    longer = bytearray(DATA + extra)
    struct.pack_into("<Q", longer, 24, len(longer))
    refused(
        signed(bytes(longer)), rf"payload: given \d+ bytes, allowed {len(DATA) - START}, the end"
    )


def test_damaged_anywhere() -> None:
    """Every single bit of a file matters: no changed file is read, none raises another error."""
    for at in range(len(DATA)):
        for bit in range(8):
            damaged = bytearray(DATA)
            damaged[at] ^= 1 << bit
            with pytest.raises(PackError, match=r"^w\.npu: .+: given .+, allowed .+"):
                unpack(bytes(damaged), filename="w.npu")
    assert unpack(DATA) == GOOD


@pytest.mark.parametrize("version", [(0, 0), (1, 0), (1, 9), (3, 0), (0x200, 0)])
def test_other_versions(version: tuple[int, int]) -> None:
    """Another major version is refused before anything else of it is believed."""
    data = DATA[:8] + struct.pack("<HH", *version) + DATA[12:48] + bytes(16) + DATA[64:]
    refused(data, rf"version at byte 8: given {version[0]}\.{version[1]}, allowed 2\.x")


def test_newer_minor_version_is_read() -> None:
    """A minor version may only add entries to the JSON."""
    data = signed(DATA[:10] + struct.pack("<H", 7) + DATA[12:])
    assert unpack(data) == GOOD


@pytest.mark.parametrize("magic", [b"TSRNPACX", b"\x7fELF\x02\x01\x01\0", bytes(8)])
def test_other_kinds_of_file(magic: bytes) -> None:
    """A file of another kind is named as such."""
    refused(magic + DATA[8:], r"magic at byte 0: given b'.*', allowed b'TSRNPACK'")


def test_other_tile_edges() -> None:
    """A file for another chip, and an edge that no chip has."""
    refused(DATA, r"tile edge at byte 32: given 16, allowed 32, that of the chip", edge=32)
    for edge in (0, 8, 15, 17, 64, 0xFFFF):
        refused(with_number("edge", edge), rf"tile edge at byte 32: given {edge}, allowed \(16, 32")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("flags", 1, "reserved bytes of the header"),
        ("start", 0, rf"payload start at byte 12: given 0, allowed {START}"),
        ("start", 512, rf"payload start at byte 12: given 512, allowed {START}"),
        ("start", 0xFFFF_FFC0, rf"payload start at byte 12: given 4294967232, allowed {START}"),
        ("json", 0xFFFF_FFFF, r"payload start at byte 12"),
        ("json", 0, r"payload start at byte 12"),
        ("stream", 1 << 63, r"stream bytes at byte 16: given 9223372036854775808, allowed mult"),
        (
            "stream",
            512 + 64,
            r"stream bytes at byte 16: given 576, allowed multiples of 64 up to 4",
        ),
        ("stream", 255, r"stream bytes at byte 16: given 255, allowed multiples of 64"),
        ("stream", 192, r"share table bytes: given 64, allowed multiples of 64 up to 0"),
        ("stream", 320, r"shares: given 256 bytes, allowed 320, the whole stream"),
        ("stream", 0, r"share norm bytes: given 64, allowed multiples of 64 up to 0"),
        ("file", 0, r"length: given \d+ bytes, allowed 0, as the header says"),
        ("file", 1 << 63, r"length: given \d+ bytes, allowed 9223372036854775808"),
        ("json_crc", 1, r"CRC-32 of the JSON: given 0x[0-9A-F]{8}, allowed 0x00000001, .* byte 40"),
        ("crc", 1, r"CRC-32 of the payload: given 0x[0-9A-F]{8}, allowed 0x00000001, .* byte 44"),
    ],
)
def test_wrong_numbers_in_the_header(name: str, value: int, message: str) -> None:
    """Lengths that contradict each other, under a right checksum of the header."""
    refused(with_number(name, value), message)


def test_reserved_bytes() -> None:
    """The rest of the header is zero."""
    for at in range(52, 64):
        refused(DATA[:at] + b"\1" + DATA[at + 1 :], "reserved bytes of the header: given others")
    refused(DATA[:48] + bytes(4) + DATA[52:], r"CRC-32 of the header: .* allowed 0x0{8}, .*byte 48")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", r"JSON at byte 64: given text that is none"),
        (b"{", r"JSON at byte 64: given text that is none"),
        (b"\xff\xfe", r"JSON at byte 64: given text that is none"),
        (b"[" * 100_000, r"JSON at byte 64: given text that is none"),
        (b"[]", r"JSON at byte 64: given list, allowed an object"),
        (b"null", r"JSON at byte 64: given NoneType, allowed an object"),
        (b"{}", r"JSON shares: given NoneType, allowed a list"),
        (b'{"shares":{}}', r"JSON shares: given dict, allowed a list"),
        (b'{"shares":[1]}', r"JSON shares\[0\]: given 1, allowed an object with name, opcode, off"),
        (b'{"shares":[{}]}', r"JSON shares\[0\]: given {}, allowed an object with name, opcode"),
    ],
)
def test_json_that_is_none(text: bytes, message: str) -> None:
    """Text that is no JSON, or not the object that the format has."""
    refused(with_text(text), message)


def entry(kind: str, number: int, **changes: object) -> bytes:
    """Return the file with entries of one record of the JSON changed."""

    def change(info: dict[str, Any]) -> None:
        info[kind][number] |= changes

    return with_json(change)


def without(kind: str, number: int, key: str | None = None) -> bytes:
    """Return the file without a record of the JSON, or without an entry of it."""

    def change(info: dict[str, Any]) -> None:
        if key is None:
            del info[kind][number]
        else:
            del info[kind][number][key]

    return with_json(change)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (entry("shares", 0, offset=64), r"share norm offset: given 64, allowed 0, without a gap"),
        (entry("shares", 1, offset=0), r"share linear offset: given 0, allowed 64"),
        (entry("shares", 1, offset=128), r"share linear offset: given 128, allowed 64"),
        (
            entry("shares", 1, bytes=0),
            r"share linear bytes: given 0, allowed multiples of 64 up to",
        ),
        (entry("shares", 1, bytes=100), r"share linear bytes: given 100, allowed multiples of 64"),
        (entry("shares", 1, bytes=256), r"share linear bytes: given 256, .* up to 192"),
        (
            entry("shares", 2, bytes=-64),
            r"JSON shares\[2\] bytes: given -64, allowed a whole numbe",
        ),
        (
            entry("shares", 0, offset=0.0),
            r"JSON shares\[0\] offset: given 0\.0, allowed a whole nu",
        ),
        (
            entry("shares", 0, offset=False),
            r"JSON shares\[0\] offset: given False, allowed a whole",
        ),
        (entry("shares", 0, opcode="3"), r"JSON shares\[0\] opcode: given '3', allowed a whole"),
        (entry("shares", 0, name=None), r"JSON shares\[0\] name: given None, allowed text"),
        (entry("shares", 0, other=1), r"JSON shares\[0\]: given {.*'other'.*}, allowed an object"),
        (
            without("shares", 0, "name"),
            r"JSON shares\[0\]: given {.*}, allowed an object with name",
        ),
        (without("shares", 0), r"share linear offset: given 64, allowed 0"),
        (without("shares", 2), r"shares: given 192 bytes, allowed 256, the whole stream"),
        (entry("sections", 0, offset=0), r"section program offset: given 0, allowed 256, without"),
        (entry("sections", 1, offset=256), r"section tokens offset: given 256, allowed 320"),
        (entry("sections", 1, offset=384), r"section tokens offset: given 384, allowed 320"),
        (entry("sections", 1, offset=1 << 40), r"section tokens offset: given 1099511627776, allo"),
        (
            entry("sections", 1, bytes=1 << 40),
            r"section tokens bytes: given 1099511627776, allowed",
        ),
        (entry("sections", 1, bytes=129), r"section tokens bytes: given 129, allowed at most 128"),
        (
            entry("sections", 1, bytes=-1),
            r"JSON sections\[1\] bytes: given -1, allowed a whole num",
        ),
        (entry("sections", 1, bytes=64), r"section empty offset: given 448, allowed 384"),
        (entry("sections", 0, bytes=47), r"padding at byte \d+: given others, allowed zeros"),
        (entry("sections", 1, name="program"), r"section program: given two of this name, allowed"),
        (without("sections", 2), None),
        (without("sections", 0), r"section tokens offset: given 320, allowed 256"),
        (without("sections", 1), r"section empty offset: given 448, allowed 320"),
        (
            without("sections", 0, "bytes"),
            r"JSON sections\[0\]: given {.*}, allowed an object with",
        ),
        (with_json(lambda info: info | {"sections": []}), r"payload: given \d+ bytes, allowed 256"),
        (
            with_json(lambda info: info | {"sections": None}),
            r"JSON sections: given NoneType, allowe",
        ),
    ],
)
def test_records_that_contradict_the_payload(data: bytes, message: str | None) -> None:
    """Shares and sections out of the file, with gaps, overlapping, doubled, of the wrong type."""
    if message is None:  # an empty section leaves nothing behind that misses it
        assert unpack(data).sections.keys() == {"program", "tokens"}
    else:
        refused(data, message)


def test_padding_is_zero() -> None:
    """Padding behind the JSON and behind each section carries nothing."""
    for at in (HEADER + JSON_BYTES, START - 1, START + 304, START + 319, START + 385):
        data = signed(DATA[:at] + b"\1" + DATA[at + 1 :])
        refused(data, r"padding at byte \d+: given others, allowed zeros")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"edge": 8}, r"pack: edge: given 8, allowed \(16, 32\)"),
        ({"edge": 17}, r"pack: edge: given 17, allowed \(16, 32\)"),
        ({"info": {"shares": []}}, r"pack: info: given the key 'shares', allowed any but"),
        ({"info": {"sections": 1}}, r"pack: info: given the key 'sections', allowed any but"),
        ({"info": {"scale": float("nan")}}, r"not JSON compliant"),
        ({"shares": SHARES[:2]}, r"the shares hold 192 bytes, the stream 256"),
        ({"shares": SHARES[1:]}, r"share linear at 64: the one before ends at 0"),
        ({"shares": (*SHARES, SHARES[0])}, r"share norm at 0: the one before ends at 256"),
        ({"stream": STREAM[:-1]}, r"the shares hold 256 bytes, the stream 255"),
    ],
)
def test_pack_refuses(arguments: dict[str, Any], message: str) -> None:
    """What cannot become a file that the reader takes is refused when it is made."""
    parts = {"stream": STREAM, "shares": SHARES} | arguments
    with pytest.raises(ValueError, match=message):
        pack(**parts)
