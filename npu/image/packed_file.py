# SPDX-License-Identifier: Apache-2.0
"""The packed file: header, JSON, stream, sections that are not streamed.

Layout: docs/reference/isa.md, "Packed file". All numbers little-endian, all parts 64-aligned. Three
checksums and the lengths cover every byte, so a reader takes a file whole or not at all.
"""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from npu.image.share import PIECE, StreamShare
from spec.isa.generated import WeightGroup
from spec.isa.operands import up
from spec.isa.weight_formats import GROUPED, NARROW

MAGIC = b"TSRNPACK"
MAJOR, MINOR = 2, 1
HEADER = struct.Struct("<8sHHIQQHHIIII12x")
CHECKED = 48
"""Bytes of the header that its own checksum covers."""
EDGES = (16, 32)
"""Tile edges that a chip can have."""
OWN_KEYS = ("shares", "sections")
"""Entries of the JSON that are not the caller's."""


class PackError(ValueError):
    """A packed file is damaged or of another kind."""


@dataclass(frozen=True)
class Pack:
    """The contents of a packed file. `info` is the JSON without its shares and sections."""

    stream: bytes
    shares: tuple[StreamShare, ...]
    sections: dict[str, bytes]
    info: dict[str, Any]
    edge: int


def _pad(data: bytes) -> bytes:
    return data + bytes(up(len(data), PIECE) - len(data))


def _record(share: StreamShare) -> dict[str, str | int]:
    """Return a share as the JSON has it: without format and group where they are empty."""
    return {key: value for key, value in asdict(share).items() if value != ""}


def pack(
    stream: bytes,
    shares: Sequence[StreamShare],
    *,
    edge: int = 16,
    sections: Mapping[str, bytes] | None = None,
    info: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a packed file. Arguments and errors as of `pieces_of_pack`."""
    return b"".join(pieces_of_pack(stream, shares, edge=edge, sections=sections, info=info))


def pieces_of_pack(
    stream: bytes,
    shares: Sequence[StreamShare],
    *,
    edge: int = 16,
    sections: Mapping[str, bytes] | None = None,
    info: Mapping[str, Any] | None = None,
) -> list[bytes]:
    """Return the pieces of a packed file, the stream not copied; `info` joins its JSON.

    Raises ValueError unless the shares cover the stream in order, for a tile edge that no chip has,
    and for an `info` that is not JSON or uses a name of the format.
    """
    if edge not in EDGES:
        raise ValueError(f"pack: edge: given {edge!r}, allowed {EDGES}")
    for key in OWN_KEYS:
        if key in (info or {}):
            raise ValueError(f"pack: info: given the key {key!r}, allowed any but {OWN_KEYS}")
    at = 0
    for share in shares:
        if share.offset != at:
            raise ValueError(f"share {share.name} at {share.offset}: the one before ends at {at}")
        at += share.bytes
    if at != len(stream) or at % PIECE:
        raise ValueError(
            f"the shares hold {at} bytes, the stream {len(stream)}, both must be the "
            f"same multiple of {PIECE}"
        )
    records = []
    body = [stream]
    at = len(stream)
    for name, data in (sections or {}).items():
        records.append({"name": name, "offset": at, "bytes": len(data)})
        body.append(_pad(data))
        at += up(len(data), PIECE)
    text = json.dumps(
        dict(info or {}) | {"shares": [_record(share) for share in shares], "sections": records},
        separators=(",", ":"),
        sort_keys=True,
        allow_nan=False,
    ).encode()
    start = HEADER.size + up(len(text), PIECE)
    checksum = 0
    for piece in body:  # not of all joined: that is another copy of a large file
        checksum = zlib.crc32(piece, checksum)
    parts = (start, len(stream), start + at, edge, 0, len(text))
    checksums = (zlib.crc32(text), checksum)
    header = HEADER.pack(MAGIC, MAJOR, MINOR, *parts, *checksums, 0)[:CHECKED]
    header += zlib.crc32(header).to_bytes(4, "little")
    return [header, bytes(HEADER.size - len(header)), _pad(text), *body]


def unpack(data: bytes, *, filename: str = "<bytes>", edge: int | None = None) -> Pack:
    """Return the contents of a packed file.

    Args:
        data: the whole file.
        filename: for messages.
        edge: the tile edge of the chip; a file made for another one is refused.

    Raises:
        PackError: the file is of another kind or version, truncated, longer than it says, damaged
            anywhere, or for another tile edge. The message names file, place, what was given and
            what is allowed.
    """
    return _PackedReader(data, filename).read(edge)


@dataclass(frozen=True, slots=True)
class _Header:
    """The numbers of the header behind magic and version."""

    start: int
    stream_bytes: int
    file_bytes: int
    edge: int
    flags: int
    json_bytes: int
    json_crc: int
    payload_crc: int
    header_crc: int


@dataclass(frozen=True, slots=True)
class _PackedReader:
    """One file under inspection; every method checks what it returns."""

    data: bytes
    filename: str

    def refuse(self, place: str, given: object, allowed: object) -> NoReturn:
        raise PackError(f"{self.filename}: {place}: given {given}, allowed {allowed}")

    def read(self, edge: int | None) -> Pack:
        header = self.header()
        if edge is not None and header.edge != edge:
            self.refuse("tile edge at byte 32", header.edge, f"{edge}, that of the chip")
        info = self.json(header)
        payload = self.data[header.start :]
        shares = self.shares(info.pop("shares", None), header.stream_bytes)
        sections = self.sections(info.pop("sections", None), header.stream_bytes, payload)
        return Pack(payload[: header.stream_bytes], shares, sections, info, header.edge)

    def header(self) -> _Header:
        size = len(self.data)
        if size < HEADER.size:
            self.refuse("length", f"{size} bytes", f"{HEADER.size} of the header and more")
        magic, major, minor, *numbers = HEADER.unpack_from(self.data)
        if magic != MAGIC:
            self.refuse("magic at byte 0", magic, MAGIC)
        if major != MAJOR:
            self.refuse("version at byte 8", f"{major}.{minor}", f"{MAJOR}.x")
        header = _Header(*numbers)
        self.checksum("header", self.data[:CHECKED], header.header_crc, CHECKED)
        if any(self.data[CHECKED + 4 : HEADER.size]) or header.flags:
            self.refuse("reserved bytes of the header", "others", "zeros")
        if header.edge not in EDGES:
            self.refuse("tile edge at byte 32", header.edge, EDGES)
        if header.file_bytes != size:
            self.refuse("length", f"{size} bytes", f"{header.file_bytes}, as the header says")
        start = HEADER.size + up(header.json_bytes, PIECE)
        if header.start != start:
            self.refuse("payload start at byte 12", header.start, f"{start}, behind the JSON")
        room = size - start
        if header.stream_bytes % PIECE or header.stream_bytes > room:
            allowed = f"multiples of {PIECE} up to {room}"
            self.refuse("stream bytes at byte 16", header.stream_bytes, allowed)
        return header

    def checksum(self, part: str, data: bytes, stored: int, at: int) -> None:
        found = zlib.crc32(data)
        if found != stored:
            allowed = f"0x{stored:08X}, as the header says at byte {at}"
            self.refuse(f"CRC-32 of the {part}", f"0x{found:08X}", allowed)

    def json(self, header: _Header) -> dict[str, Any]:
        end = HEADER.size + header.json_bytes
        text = self.data[HEADER.size : end]
        self.checksum("JSON", text, header.json_crc, 40)
        self.checksum("payload", self.data[header.start :], header.payload_crc, 44)
        self.zeros(self.data[end : header.start], end)
        try:
            info = json.loads(text)
        except (ValueError, RecursionError) as error:
            self.refuse(f"JSON at byte {HEADER.size}", f"text that is none ({error})", "JSON")
        if not isinstance(info, dict):
            self.refuse(f"JSON at byte {HEADER.size}", type(info).__name__, "an object")
        return info

    def zeros(self, data: bytes, at: int) -> None:
        if any(data):
            self.refuse(f"padding at byte {at}", "others", "zeros")

    def weights(self, share: StreamShare) -> None:
        """Refuse a weight format or a group that no GEMM names."""
        formats = [fmt.asm for fmt in NARROW]
        groups = [code.asm for code in WeightGroup]
        grouped = share.format in [fmt.asm for fmt in GROUPED]
        if share.format and share.format not in formats:
            self.refuse(f"share {share.name} format", repr(share.format), ", ".join(formats))
        if share.group not in (groups if grouped else [""]):
            allowed = ", ".join(groups) if grouped else f"none with format {share.format!r}"
            self.refuse(f"share {share.name} group", repr(share.group), allowed)

    def records(
        self,
        name: str,
        value: object,
        kinds: Mapping[str, type],
        optional: Mapping[str, type] | None = None,
    ) -> list[dict[str, Any]]:
        """Return the records of the JSON entry `name`, each with the keys of `kinds`.

        Those of `optional` may be there, others may not.
        """
        every = {**kinds, **(optional or {})}
        if not isinstance(value, list):
            self.refuse(f"JSON {name}", type(value).__name__, "a list")
        for number, record in enumerate(value):
            place = f"JSON {name}[{number}]"
            if not isinstance(record, dict) or not kinds.keys() <= record.keys() <= every.keys():
                self.refuse(place, record, f"an object with {', '.join(kinds)}")
            for key, given in record.items():
                kind = every[key]
                if type(given) is not kind or (isinstance(given, int) and given < 0):
                    allowed = "text" if kind is str else "a whole number from 0"
                    self.refuse(f"{place} {key}", repr(given), allowed)
        return value

    def shares(self, value: object, stream_bytes: int) -> tuple[StreamShare, ...]:
        kinds = {"name": str, "opcode": int, "offset": int, "bytes": int}
        optional = {"format": str, "group": str}
        at = 0
        shares = []
        for record in self.records("shares", value, kinds, optional):
            share = StreamShare(**record)
            self.weights(share)
            if share.offset != at:
                self.refuse(f"share {share.name} offset", share.offset, f"{at}, without a gap")
            if share.bytes % PIECE or not 0 < share.bytes <= stream_bytes - at:
                allowed = f"multiples of {PIECE} up to {stream_bytes - at}"
                self.refuse(f"share {share.name} bytes", share.bytes, allowed)
            at += share.bytes
            shares.append(share)
        if at != stream_bytes:
            self.refuse("shares", f"{at} bytes", f"{stream_bytes}, the whole stream")
        return tuple(shares)

    def sections(self, value: object, stream_bytes: int, payload: bytes) -> dict[str, bytes]:
        at = stream_bytes
        sections: dict[str, bytes] = {}
        kinds = {"name": str, "offset": int, "bytes": int}
        for record in self.records("sections", value, kinds):
            name, offset, size = record["name"], record["offset"], record["bytes"]
            if name in sections:
                self.refuse(f"section {name}", "two of this name", "one")
            if offset != at:
                self.refuse(f"section {name} offset", offset, f"{at}, without gap or overlap")
            if up(size, PIECE) > len(payload) - at:
                self.refuse(f"section {name} bytes", size, f"at most {len(payload) - at}")
            sections[name] = payload[at : at + size]
            at += up(size, PIECE)
            self.zeros(payload[offset + size : at], len(self.data) - len(payload) + offset + size)
        if at != len(payload):
            self.refuse("payload", f"{len(payload)} bytes", f"{at}, the end of the last section")
        return sections
