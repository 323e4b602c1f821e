# SPDX-License-Identifier: Apache-2.0
"""Reads descriptors.toml for the generators, and checks it."""

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("descriptors.toml")
WORD_BITS = 32


@dataclass(frozen=True)
class StatusCode:
    """A way in which a descriptor ends."""

    name: str
    value: int
    text: str


@dataclass(frozen=True)
class LayoutField:
    """Some bits of a word."""

    name: str
    word: int
    lsb: int
    width: int
    text: str

    @property
    def bits(self) -> str:
        """Its bits as documentation has them: 31:24, or 4."""
        return f"{self.lsb + self.width - 1}:{self.lsb}" if self.width > 1 else f"{self.lsb}"

    @property
    def mask(self) -> int:
        """Its bits in the word."""
        return ((1 << self.width) - 1) << self.lsb


@dataclass(frozen=True)
class LayoutSource:
    """Fields in consecutive words."""

    name: str
    first: int
    words: int
    text: str
    fields: tuple[LayoutField, ...]


@dataclass(frozen=True)
class Descriptors:
    """All of the file."""

    status: tuple[StatusCode, ...]
    layouts: tuple[LayoutSource, ...]


def _field(layout: str, entry: dict[str, Any]) -> LayoutField:
    high, _, low = entry["bits"].partition(":")
    lsb, msb = int(low or high), int(high)
    if not 0 <= lsb <= msb < WORD_BITS:
        raise ValueError(f"{layout}.{entry['name']}: given bits {entry['bits']}, allowed 31:0")
    return LayoutField(entry["name"], entry["word"], lsb, msb - lsb + 1, entry["text"])


def _layout(entry: dict[str, Any]) -> LayoutSource:
    name, first, words = entry["name"], entry["first"], entry["words"]
    fields = tuple(_field(name, field) for field in entry["fields"])
    used = dict.fromkeys(range(first, first + words), 0)
    for field in fields:
        if field.word not in used:
            raise ValueError(f"{name}.{field.name}: given word {field.word}, allowed {list(used)}")
        if used[field.word] & field.mask:
            raise ValueError(f"{name}.{field.name}: given bits {field.bits}, which another has")
        used[field.word] |= field.mask
    return LayoutSource(name, first, words, entry["text"], fields)


def parse(content: dict[str, Any]) -> Descriptors:
    """Return the file's content.

    Raises:
        ValueError: fields overlap or lie outside, or a status code is given twice.
    """
    status = tuple(StatusCode(**entry) for entry in content["status"])
    values = [code.value for code in status]
    for code in status:
        if not 0 < code.value < 1 << 8 or values.count(code.value) > 1:
            raise ValueError(f"status.{code.name}: given {code.value:#x}, allowed 1 to 0xff once")
    return Descriptors(status, tuple(_layout(entry) for entry in content["layout"]))


@cache
def load() -> Descriptors:
    """Return what descriptors.toml says."""
    return parse(tomllib.loads(SOURCE.read_text(encoding="utf-8")))
