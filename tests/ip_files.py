# SPDX-License-Identifier: Apache-2.0
"""Reads the registers that an IP-XACT file describes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

SPACE = {"i": "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"}


@dataclass(frozen=True)
class XmlField:
    """A field of a register.

    Attributes:
        name, lsb, width: of it.
        read, write: whether software may.
        reset: its value behind a reset, None if that is not said.
        plain: it holds what software writes.
    """

    name: str
    lsb: int
    width: int
    read: bool
    write: bool
    reset: int | None
    plain: bool

    @property
    def mask(self) -> int:
        """The bits of its values."""
        return (1 << self.width) - 1


@dataclass(frozen=True)
class XmlRegister:
    """A register at an address."""

    address: int
    name: str
    fields: tuple[XmlField, ...]

    def bits(self, fields: Sequence[XmlField], values: Mapping[str, int]) -> tuple[int, int]:
        """Return the bits that some fields have, and what they are with some values."""
        mask = sum(field.mask << field.lsb for field in fields)
        return mask, sum(values[field.name] << field.lsb for field in fields)


def registers_of(text: str) -> list[XmlRegister]:
    """Return the registers of an IP-XACT file, those of arrays one by one, by address."""
    found = []
    for block in ElementTree.fromstring(text).iterfind(".//i:addressBlock", SPACE):
        found += [_register(*each) for each in _places(block, _number(block, "baseAddress"))]
    return sorted(found, key=lambda register: register.address)


def _places(parent: ElementTree.Element, base: int) -> Iterator[tuple[ElementTree.Element, int]]:
    for name in ("register", "registerFile"):
        for each in parent.iterfind(f"i:{name}", SPACE):
            size = _number(each, "range") if name == "registerFile" else 4
            for index in range(int(each.findtext("i:dim", "1", SPACE))):
                address = base + _number(each, "addressOffset") + index * size
                if name == "register":
                    yield each, address
                else:
                    yield from _places(each, address)


def _register(element: ElementTree.Element, address: int) -> XmlRegister:
    fields = tuple(_field(each) for each in element.iterfind("i:field", SPACE))
    return XmlRegister(address, element.findtext("i:name", "", SPACE), fields)


def _field(element: ElementTree.Element) -> XmlField:
    access = element.findtext("i:access", "", SPACE)
    reset = element.findtext("i:resets/i:reset/i:value", None, SPACE)
    special = element.find("i:modifiedWriteValue", SPACE) is not None
    return XmlField(
        element.findtext("i:name", "", SPACE),
        _number(element, "bitOffset"),
        _number(element, "bitWidth"),
        access != "write-only",
        access != "read-only",
        None if reset is None else _value(reset),
        access == "read-write" and not special,
    )


def _number(element: ElementTree.Element, name: str) -> int:
    return _value(element.findtext(f"i:{name}", "", SPACE))


def _value(text: str) -> int:
    return int(text.removeprefix("'h"), 16) if text.startswith("'h") else int(text)
