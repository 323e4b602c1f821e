# SPDX-License-Identifier: Apache-2.0
"""The packed file: header, JSON, stream, sections that are not streamed.

Layout: docs/reference/isa.md, "Packed file". All numbers little-endian, all parts 64-aligned.
"""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from npu.compiler.stream import PIECE, Share
from npu.isa.operands import up

MAGIC = b"TSRNPACK"
MAJOR, MINOR = 1, 0
HEADER = struct.Struct("<8sHHIQQHHIII16x")


class PackError(ValueError):
    """A packed file is damaged or of another kind."""


@dataclass(frozen=True)
class Pack:
    """The contents of a packed file. `info` is the JSON without its shares and sections."""

    stream: bytes
    shares: tuple[Share, ...]
    sections: dict[str, bytes]
    info: dict[str, Any]
    edge: int


def _pad(data: bytes) -> bytes:
    return data + bytes(up(len(data), PIECE) - len(data))


def pack(
    stream: bytes,
    shares: Sequence[Share],
    *,
    edge: int = 16,
    sections: Mapping[str, bytes] | None = None,
    info: Mapping[str, Any] | None = None,
) -> bytes:
    """Return a packed file. Raises ValueError unless the shares cover the stream in order."""
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
        dict(info or {}) | {"shares": [asdict(share) for share in shares], "sections": records},
        separators=(",", ":"),
        sort_keys=True,
    ).encode()
    start = HEADER.size + up(len(text), PIECE)
    payload = b"".join(body)
    header = HEADER.pack(
        MAGIC,
        MAJOR,
        MINOR,
        start,
        len(stream),
        start + len(payload),
        edge,
        0,
        len(text),
        zlib.crc32(text),
        zlib.crc32(payload),
    )
    return header + _pad(text) + payload


def unpack(data: bytes, *, filename: str = "<bytes>", edge: int | None = None) -> Pack:
    """Return the contents of a packed file. Raises PackError, naming what is wrong.

    `edge`: the tile edge of the chip; a file made for another one is refused.
    """

    def refuse(what: str) -> PackError:
        return PackError(f"{filename}: {what}")

    if len(data) < HEADER.size:
        raise refuse(f"{len(data)} bytes, a header alone has {HEADER.size}")
    magic, major, minor, start, stream_bytes, file_bytes, file_edge, flags, size, json_crc, crc = (
        HEADER.unpack_from(data)
    )
    if magic != MAGIC:
        raise refuse(f"magic {magic!r}, expected {MAGIC!r}")
    if major != MAJOR:
        raise refuse(f"version {major}.{minor}, this reader knows {MAJOR}.x")
    if file_bytes != len(data):
        raise refuse(f"{len(data)} bytes, the header says {file_bytes}")
    if start != HEADER.size + up(size, PIECE) or start + stream_bytes > len(data):
        raise refuse(f"payload start {start}, JSON {size} and stream {stream_bytes} bytes disagree")
    if stream_bytes % PIECE or flags or any(data[48 : HEADER.size]):
        raise refuse("the stream is no multiple of 64 bytes, or a reserved byte is not zero")
    text = data[HEADER.size : HEADER.size + size]
    for part, given, stored in (
        ("JSON", zlib.crc32(text), json_crc),
        ("payload", zlib.crc32(data[start:]), crc),
    ):
        if given != stored:
            raise refuse(f"CRC of the {part} is 0x{given:08X}, the header says 0x{stored:08X}")
    if edge is not None and file_edge != edge:
        raise refuse(f"tile edge {file_edge}, the chip has {edge}")
    try:
        info = json.loads(text)
        shares = tuple(Share(**record) for record in info.pop("shares"))
        records = [(r["name"], r["offset"], r["bytes"]) for r in info.pop("sections")]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise refuse(f"the JSON lacks something: {error!r}") from None
    sections = {}
    for name, offset, length in records:
        if offset % PIECE or offset < stream_bytes or start + offset + length > len(data):
            raise refuse(f"section {name} at {offset}, {length} bytes, is outside the payload")
        sections[name] = data[start + offset : start + offset + length]
    return Pack(data[start : start + stream_bytes], shares, sections, info, file_edge)
