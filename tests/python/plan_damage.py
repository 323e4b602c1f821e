# SPDX-License-Identifier: Apache-2.0
"""Damages plans on purpose: every entry of plan.json in turn, and bits of the image."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from npu.image import pack, unpack
from npu.runtime.plan_files import IMAGE, PLAN

Files = dict[str, bytes]


@dataclass(frozen=True)
class Damage:
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


def damages(record: object) -> Iterator[Damage]:
    """Yield every change of every entry, and every entry left out."""
    for path, value in entries(record):
        for other in others(value):
            if type(other) is not type(value) or other != value:
                yield Damage(path, other, _changed(record, path, other))
        yield Damage(path, "(nothing)", _changed(record, path, _NOTHING))


_NOTHING = object()


def _changed(record: object, path: str, value: object) -> Any:  # noqa: ANN401
    changed = copy.deepcopy(record)
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
