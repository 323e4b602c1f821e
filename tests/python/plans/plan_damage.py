# SPDX-License-Identifier: Apache-2.0
"""Damages plans on purpose: entries of plan.json, the image, and plans bound to addresses."""

from __future__ import annotations

import copy
import hashlib
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

from npu.driver.bus import RegisterAccess
from npu.image import pack, unpack
from npu.image.packed_file import CHECKED, HEADER
from npu.image.share import PIECE
from npu.runtime.plan_files import IMAGE, PLAN
from npu.runtime.prepare import Prepared, PreparedBatch
from spec.isa.operands import up

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Files = dict[str, bytes]
Record = TypeVar("Record", bound="DataclassInstance")
WORD_BITS = 32


@dataclass(frozen=True)
class PlanDamage:
    """A change of one entry.

    Attributes:
        path: of the entry.
        value: what stands there then.
        record: the whole of plan.json.
    """

    path: str
    value: object
    record: Any


def entries(record: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yield path and value of every entry, lists and objects included."""
    if path:
        yield path, record
    if isinstance(record, dict):
        for name, one in record.items():
            yield from entries(one, f"{path}.{name}" if path else name)
    elif isinstance(record, list):
        for number, one in enumerate(record):
            yield from entries(one, f"{path}[{number}]")


def others(value: object) -> list[object]:
    """Return what could stand in the place of a value, of its type and of another."""
    if isinstance(value, bool):
        return [not value, None]
    if isinstance(value, int):
        return [value + 1, value - 1, value + 16, value + 64, 2 * value + 64, -1, "1", None]
    if isinstance(value, float):
        return [value * 2, -value, 0.0, "1"]
    if isinstance(value, str):
        return [value + "x", value[:-1] if value else "y", "", 7]
    if value is None:
        return [0, 1.5, "x"]
    if isinstance(value, list):
        return [[], [*value, value[-1]] if value else [1], value[:-1], None]
    assert isinstance(value, dict)
    return [{}, {**value, "more": 1}, [], None]


def damages(record: object) -> Iterator[PlanDamage]:
    """Yield every change of every entry, and every entry left out."""
    for path, value in entries(record):
        for other in others(value):
            if type(other) is not type(value) or other != value:
                yield PlanDamage(path, other, _changed(record, path, other))
        yield PlanDamage(path, "(nothing)", _changed(record, path, _NOTHING))


_NOTHING = object()


def _changed(record: object, path: str, value: object) -> Any:  # noqa: ANN401
    changed = json.loads(json.dumps(record))  # many times as fast as a deep copy
    keys: list[str | int] = []
    for part in path.replace("]", "").replace("[", ".#").split("."):
        keys.append(int(part[1:]) if part.startswith("#") else part)
    place: Any = changed
    for key in keys[:-1]:
        place = place[key]
    if value is _NOTHING:
        del place[keys[-1]]
    else:
        place[keys[-1]] = value
    return changed


def with_record(files: Files, record: object) -> Files:
    """Return the files with another plan.json."""
    return {**files, PLAN: json.dumps(record).encode()}


def sections_of(files: Files) -> dict[str, tuple[int, int]]:
    """Return where in the image the stream and each section lie, (first, end) in bytes."""
    image = files[IMAGE]
    content = unpack(image)
    found = {}
    for name, data in {"stream": content.stream, **content.sections}.items():
        at = image.find(data)
        found[name] = (at, at + len(data))
    return found


def flipped(data: bytes, bit: int) -> bytes:
    """Return bytes with one bit the other way around."""
    changed = bytearray(data)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def resealed(files: Files, section: str, data: bytes) -> Files:
    """Return the files with another section, and checksums, hashes and sizes that fit it."""
    content = unpack(files[IMAGE])
    image = pack(
        content.stream,
        content.shares,
        edge=content.edge,
        sections={**content.sections, section: data},
        info=content.info,
    )
    record = json.loads(files[PLAN])
    record["image"] = {"bytes": len(image), "sha256": hashlib.sha256(image).hexdigest()}
    return {**with_record(files, record), IMAGE: image}


def stored_bits(files: Files) -> Iterator[tuple[str, range]]:
    """Yield parts of the image and their bits: header, table, programs, graph.

    Stream and constants are left out: they have the size of the network, and no other seal.
    """
    image = files[IMAGE]
    table = int.from_bytes(image[36:40], "little")
    yield "header", range(8 * HEADER.size)
    yield "table", range(8 * HEADER.size, 8 * (HEADER.size + table))
    for name, (first, end) in sections_of(files).items():
        if name.startswith("segment") or name == "graph":
            yield name, range(8 * first, 8 * end)


def with_image(files: Files, image: bytes, record: object = None) -> Files:
    """Return the files with another image, whose size and hash plan.json knows."""
    whole: Any = json.loads(files[PLAN]) if record is None else copy.deepcopy(record)
    whole["image"] = {"bytes": len(image), "sha256": hashlib.sha256(image).hexdigest()}
    return {**with_record(files, whole), IMAGE: image}


def header_damages(files: Files) -> Iterator[tuple[str, Files]]:
    """Yield field and files for every bit of the image's header, its checksum and hash right."""
    names = ("magic", "major", "minor", "start", "stream", "file", "edge", "flags", "json")
    fields = (*zip(names, (8, 2, 2, 4, 8, 8, 2, 2, 4), strict=True), ("checksums", 8))
    at = 0
    for name, size in fields:
        for bit in range(8 * at, 8 * (at + size)):
            changed = bytearray(flipped(files[IMAGE], bit))
            changed[CHECKED : CHECKED + 4] = zlib.crc32(changed[:CHECKED]).to_bytes(4, "little")
            yield name, with_image(files, bytes(changed))
        at += size
    for bit in range(8 * CHECKED, 8 * HEADER.size):
        yield "reserved", with_image(files, flipped(files[IMAGE], bit))


def table_damages(files: Files) -> Iterator[tuple[PlanDamage, Files]]:
    """Yield every change of every entry of the image's table, all that covers it made to fit.

    What stands in plan.json as well is changed there, too.
    """
    image = files[IMAGE]
    size = int.from_bytes(image[36:40], "little")
    payload = image[HEADER.size + up(size, PIECE) :]
    plan = json.loads(files[PLAN])
    for damage in damages(json.loads(image[HEADER.size : HEADER.size + size])):
        record = damage.record
        text = json.dumps(record, separators=(",", ":"), sort_keys=True).encode()
        shared = {name: record[name] for name in plan.keys() & record.keys()}
        yield damage, with_image(files, _sealed(image, text, payload), plan | shared)


def _sealed(image: bytes, text: bytes, payload: bytes) -> bytes:
    """Return an image with another table."""
    magic, major, minor, _, stream, _, edge, flags, *_ = HEADER.unpack_from(image)
    start = HEADER.size + up(len(text), PIECE)
    sums = zlib.crc32(text), zlib.crc32(payload)
    numbers = (start, stream, start + len(payload), edge, flags, len(text), *sums, 0)
    header = HEADER.pack(magic, major, minor, *numbers)[:CHECKED]
    header += zlib.crc32(header).to_bytes(4, "little") + bytes(HEADER.size - CHECKED - 4)
    return header + text + bytes(-len(text) % PIECE) + payload


def prepared_damages(prepared: Prepared) -> Iterator[tuple[str, Prepared]]:
    """Yield the path that an error names, and a prepared plan with one bit changed.

    All numbers: addresses, regions, protection, starts, and of batches launches, tags, preamble,
    words, submission and completion. `prepared_memory` changes the contents of memory.
    """
    for bit in range(WORD_BITS):
        for i, batch in enumerate(prepared.batches):
            for path, other in _batch_damages(batch, bit):
                batches = (*prepared.batches[:i], other, *prepared.batches[i + 1 :])
                yield f"batches[{i}].{path}", replace(prepared, batches=batches)
        for i, key, accesses in _access_damages(prepared.protection, bit):
            yield f"protection[{i}].{key}", replace(prepared, protection=accesses)
        for i, (address, data) in enumerate(prepared.memory):
            pieces = (*prepared.memory[:i], (address ^ 1 << bit, data), *prepared.memory[i + 1 :])
            yield f"memory[{i}].address", replace(prepared, memory=pieces)
        for i, region in enumerate(prepared.regions):
            for key in ("first", "size", "read", "write"):
                value = getattr(region, key)
                if isinstance(value, bool) and bit:
                    continue
                other_value = not value if isinstance(value, bool) else value ^ 1 << bit
                changed = _with(region, key, other_value)
                regions = (*prepared.regions[:i], changed, *prepared.regions[i + 1 :])
                yield f"regions[{i}].{key}", replace(prepared, regions=regions)
        yield from _start_damages(prepared, bit)


def _with(one: Record, name: str, value: object) -> Record:
    """Return a record with another value of one of its names."""
    change: dict[str, Any] = {name: value}
    return replace(one, **change)


def _batch_damages(batch: PreparedBatch, bit: int) -> Iterator[tuple[str, PreparedBatch]]:
    for name in ("launches", "tags", "words"):
        numbers = getattr(batch, name)
        for j, number in enumerate(numbers):
            changed = (*numbers[:j], number ^ 1 << bit, *numbers[j + 1 :])
            yield f"{name}[{j}]", _with(batch, name, changed)
    for name in ("preamble", "submission"):
        for j, key, accesses in _access_damages(getattr(batch, name), bit):
            yield f"{name}[{j}].{key}", _with(batch, name, accesses)
    for field in fields(batch.completion):
        value = getattr(batch.completion, field.name) ^ 1 << bit
        completion = _with(batch.completion, field.name, value)
        yield f"completion.{field.name}", replace(batch, completion=completion)
    yield "address", replace(batch, address=batch.address ^ 1 << bit)


def _access_damages(
    accesses: tuple[RegisterAccess, ...], bit: int
) -> Iterator[tuple[int, str, tuple[RegisterAccess, ...]]]:
    """Yield a list of accesses with a bit changed in each address and each value."""
    for i, one in enumerate(accesses):
        value = 0 if one.value is None else one.value
        for key, changed in (
            ("address", replace(one, address=one.address ^ 1 << bit)),
            ("value", replace(one, value=value ^ 1 << bit)),
        ):
            yield i, key, (*accesses[:i], changed, *accesses[i + 1 :])


def _start_damages(prepared: Prepared, bit: int) -> Iterator[tuple[str, Prepared]]:
    """Yield starts with a bit of a register changed, as far as there is such a register."""
    for i, start in enumerate(prepared.starts):
        changes: list[tuple[str, object]] = [
            (field.name, getattr(start, field.name) ^ 1 << bit)
            for field in fields(start)
            if isinstance(getattr(start, field.name), int)
        ]
        for number, base in enumerate(start.bases):
            bases = (*start.bases[:number], base ^ 1 << bit, *start.bases[number + 1 :])
            changes.append(("bases", bases))
        for name, value in changes:
            try:
                changed = _with(start, name, value)
            except ValueError as error:
                # A register has no such bit: there is no such start.
                assert name.split("_")[0] in str(error)
                continue
            starts = (*prepared.starts[:i], changed, *prepared.starts[i + 1 :])
            yield f"starts[{i}]", replace(prepared, starts=starts)


def prepared_memory(prepared: Prepared, piece: int, step: int) -> Iterator[tuple[str, Prepared]]:
    """Yield the same for each bit, or each `step`th, of a piece of memory."""
    address, data = prepared.memory[piece]
    for bit in range(0, 8 * len(data), step):
        pieces = [*prepared.memory]
        pieces[piece] = address, flipped(data, bit)
        yield f"memory[{piece}].data[{bit // 8}]", replace(prepared, memory=tuple(pieces))
