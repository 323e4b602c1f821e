# SPDX-License-Identifier: Apache-2.0
"""The header of a GGUF file: its metadata, and where which tensor lies.

Read here rather than by the package gguf, which takes seconds for a vocabulary and minutes, or for
ever, for a damaged count: every number is held against the bytes that are there.
"""

from __future__ import annotations

import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weights.checkpoint import CheckpointError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT, ALIGNMENT_KEY = 32, "general.alignment"
MOST_DIMENSIONS = 4
STRING, ARRAY = 8, 9
_SCALARS = dict(enumerate("BbHhIif?")) | {10: "Q", 11: "q", 12: "d"}
"""Types of metadata as struct has them; 8 is a string, 9 an array."""
_FLOAT32 = 6
_LEAST_PAIR, _LEAST_TENSOR = 13, 24
"""Bytes that a pair of metadata and the description of a tensor take at least."""


@dataclass(frozen=True, slots=True)
class TensorPlace:
    """A tensor of the file.

    Attributes:
        shape: slowest dimension first.
        type: number of its type.
        start: its first byte in the file.
    """

    shape: tuple[int, ...]
    type: int
    start: int


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What stands in front of the numbers.

    Attributes:
        metadata: by key; numbers of float32 as the shortest decimal that is rounded to them.
        tensors: by name.
        size: of the file, in bytes.
    """

    metadata: dict[str, Any]
    tensors: dict[str, TensorPlace]
    size: int


def is_gguf(path: Path) -> bool:
    """Whether a path is that of a GGUF file, by name or content."""
    if path.suffix == ".gguf":
        return not path.is_dir()
    try:
        with path.open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except OSError:
        return False


def gguf_within(folder: Path) -> Path | None:
    """Return the only GGUF file of a folder that has no config.json, None if there is none.

    Raises:
        CheckpointError: there are several.
    """
    files = [] if (folder / "config.json").exists() else sorted(folder.glob("*.gguf"))
    if len(files) > 1:
        raise CheckpointError(
            f"{folder}: given {len(files)} GGUF files, allowed is one, or the path of one: "
            f"{', '.join(one.name for one in files)}"
        )
    return files[0] if files else None


def read_header(path: Path, source: str) -> GgufHeader:
    """Read the header of a file.

    Args:
        path: of the file.
        source: what messages call it.

    Raises:
        CheckpointError: there is no such file, it is none of GGUF, or cut off within the header.
    """
    try:
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise CheckpointError(
                    f"{source}: given a file without {MAGIC!r} in front, allowed is a GGUF file"
                )
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _HeaderReader(data, source).header()
    except OSError as error:
        raise CheckpointError(f"{source}: cannot be read: {error.strerror}") from error


class _HeaderReader:
    """Reads a header from its beginning."""

    def __init__(self, data: mmap.mmap, source: str) -> None:
        self.data, self.source = data, source
        self.at = len(MAGIC)

    def header(self) -> GgufHeader:
        self.check_version()
        tensors = self.count("number of tensors", _LEAST_TENSOR)
        pairs = self.count("number of metadata", _LEAST_PAIR)
        metadata: dict[str, Any] = {}
        for _ in range(pairs):
            key = self.text("a key of metadata")
            if key in metadata:
                raise self.refusal(f"metadata {key!r}", "it twice", "once")
            metadata[key] = self.value(f"metadata {key!r}")
        found: dict[str, TensorPlace] = {}
        for _ in range(tensors):
            name = self.text("the name of a tensor")
            if name in found:
                raise self.refusal(f"tensor {name!r}", "it twice", "once")
            found[name] = self.place(name)
        start = self.data_start(metadata)
        places = {
            name: TensorPlace(one.shape, one.type, start + one.start) for name, one in found.items()
        }
        return GgufHeader(metadata, places, len(self.data))

    def refusal(self, what: str, given: object, allowed: str) -> CheckpointError:
        return CheckpointError(f"{self.source}: {what}: given {given}, allowed {allowed}")

    def check_version(self) -> None:
        version = self.number("I", "version")
        if version & 0xFFFF == 0:
            raise self.refusal("byte order", "big-endian numbers", "little-endian ones")
        if version not in VERSIONS:
            raise self.refusal("version", version, " or ".join(map(str, VERSIONS)))

    def data_start(self, metadata: dict[str, Any]) -> int:
        """Return where the numbers begin."""
        step = metadata.get(ALIGNMENT_KEY, ALIGNMENT)
        if type(step) is not int or step < 1 or step & (step - 1):
            raise self.refusal(f"metadata {ALIGNMENT_KEY!r}", repr(step), "a power of two")
        return -(-self.at // step) * step

    def place(self, name: str) -> TensorPlace:
        """Read the description of a tensor behind its name, with its start behind all headers."""
        what = f"tensor {name!r}"
        rank = self.number("I", what)
        if not 1 <= rank <= MOST_DIMENSIONS:
            raise self.refusal(what, f"{rank} dimensions", f"1 to {MOST_DIMENSIONS}")
        fastest_first = struct.unpack(f"<{rank}Q", self.bytes(8 * rank, what))
        if 0 in fastest_first:
            raise self.refusal(what, f"shape {fastest_first[::-1]}", "dimensions above 0")
        return TensorPlace(fastest_first[::-1], self.number("I", what), self.number("Q", what))

    def bytes(self, size: int, what: str) -> bytes:
        """Return the next bytes."""
        if size > len(self.data) - self.at:
            raise CheckpointError(
                f"{self.source}: is cut off in {what}: given {len(self.data)} bytes, allowed "
                f"{self.at + size} and more"
            )
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, kind: str, what: str) -> Any:  # noqa: ANN401
        """Return the next number."""
        return struct.unpack(f"<{kind}", self.bytes(struct.calcsize(f"<{kind}"), what))[0]

    def count(self, what: str, least: int) -> int:
        """Return the next count of things that take so many bytes at least."""
        count = int(self.number("Q", what))
        most = (len(self.data) - self.at) // least
        if count > most:
            raise self.refusal(what, count, f"0 to {most}, for which there are bytes")
        return count

    def text(self, what: str) -> str:
        """Return the next string."""
        raw = self.bytes(self.number("Q", what), what)
        try:
            return raw.decode()
        except UnicodeDecodeError as error:
            raise self.refusal(what, f"{raw[:40]!r}", "UTF-8") from error

    def value(self, what: str) -> Any:  # noqa: ANN401
        """Return the next value with its type in front; an array as a list."""
        kind = self.number("I", f"{what} type")
        if kind != ARRAY:
            return self.values(kind, 1, what)[0]
        kind = self.number("I", f"{what} type")
        size = 8 if kind == STRING else struct.calcsize(_SCALARS.get(kind, "B"))
        return self.values(kind, self.count(f"{what} length", size), what)

    def values(self, kind: int, count: int, what: str) -> list[Any]:
        """Return the next values of one type."""
        if kind == STRING:
            return [self.text(what) for _ in range(count)]
        if kind not in _SCALARS:
            raise self.refusal(f"{what} type", kind, f"{sorted(_SCALARS)}, {STRING} or an array")
        form = f"<{count}{_SCALARS[kind]}"
        values = list(struct.unpack(form, self.bytes(struct.calcsize(form), what)))
        return [float(str(np.float32(one))) for one in values] if kind == _FLOAT32 else values
