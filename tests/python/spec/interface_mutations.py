# SPDX-License-Identifier: Apache-2.0
"""Single sources with one number changed, or the names of two neighbours exchanged.

Texts alone stay: a sentence is no number. What a change makes invalid, the source refuses itself.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from systemrdl.messages import RDLCompileError

from spec.regs import source
from tests.python.spec import interface_numbers
from tests.python.spec.interface_numbers import Tables

Change = tuple[str, Any]
"""Where and what, and the changed source."""
Place = tuple[str | int, ...]
"""Keys and indices from the top of a data file."""
Entry = dict[str | int, int | str]
"""A table of a data file; a list of one is indexed likewise."""
SENTENCES = ("text", "does", "illegal")
"""Entries of data files that hold no number of an interface."""
SENTENCE_OF: dict[str | int, int] = {"fields": 1, "imm": 3, "imm_alt": 3, "values": 3}
"""The same of lists: by the entry that they stand in, the index of what is none."""


def _leaves(
    data: object, place: Place = (), within: str | int = ""
) -> Iterator[tuple[Place, int | str]]:
    """Yield all values that are no sentences."""
    if isinstance(data, int | str):
        yield place, data
        return
    assert isinstance(data, dict | list)
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        entry = key if key in SENTENCE_OF else within
        if key not in SENTENCES and (key != SENTENCE_OF.get(within) or not isinstance(value, str)):
            yield from _leaves(value, (*place, key), entry)


def _entry(data: dict[str, Any], place: Place) -> Entry:
    """Return what the value at a place stands in."""
    found: Any = data
    for key in place[:-1]:
        found = found[key]
    return cast(Entry, found)


def _numbers(entry: Entry) -> list[int | str]:
    """Return an entry without its name and its sentences, to see whether two differ at all."""
    if isinstance(entry, dict):
        return [value for key, value in entry.items() if key not in ("name", *SENTENCES)]
    return [value for value in entry if isinstance(value, int)]


def _other(value: int | str, values: list[int | str]) -> int | str:
    """Return another value than this: the next number, or a word that stands elsewhere."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    return next((word for word in values if word != value), f"{value}X")


def of_data(data: dict[str, Any]) -> Iterator[Change]:
    """Yield a data file with each number and word changed, and with names exchanged."""
    leaves = list(_leaves(data))
    for place, value in leaves:
        kin = [other for at, other in leaves if at[-1] == place[-1] and type(other) is type(value)]
        changed = copy.deepcopy(data)
        new = _other(value, kin)
        _entry(changed, place)[place[-1]] = new
        yield f"{'.'.join(map(str, place))}: {value!r} -> {new!r}", changed
    named = [place for place, _ in leaves if place[-1] in ("name", 0)]
    for one, two in pairwise(named):
        if one[:-2] == two[:-2] and one[-1] == two[-1]:
            changed = copy.deepcopy(data)
            first, second, name = _entry(changed, one), _entry(changed, two), one[-1]
            if _numbers(first) != _numbers(second):
                first[name], second[name] = second[name], first[name]
                yield f"{first[name]} and {second[name]} exchanged", changed


def unnoticed(changes: Iterable[Change], read: Callable[[Any], Tables], typed: Tables) -> list[str]:
    """Return the changes that neither the source refuses nor the published tables show."""
    missed, tried = [], 0
    for what, changed in changes:
        tried += 1
        try:
            found = read(changed)
        except (ValueError, KeyError, TypeError, RDLCompileError):
            continue
        if not interface_numbers.differences(typed, found):
            missed.append(what)
    assert tried > 0
    return missed


# --------------------------------------------------------------------------------------------------
# SystemRDL
# --------------------------------------------------------------------------------------------------
_TOKEN = re.compile(
    r'"[^"]*"|//[^\n]*|(?P<number>0x[0-9A-Fa-f]+|\b\d+\b)|(?P<access>\bsw = \w+)'
    r"|(?P<property>\b(?:woclr|woset|singlepulse|swwel);|\w+(?:\.\w+)*->swwel = [\w.]+;)"
    r"|(?P<value>\b[A-Z]\w*(?= = \d+ \{))|(?P<place>\b[A-Z]\w*(?=(?:\[\d+\])? @ ))"
)


def of_rdl(text: str) -> Iterator[Change]:
    """Yield a register map with each number, access and lock changed, and with names exchanged."""
    last: dict[str, re.Match[str]] = {}
    for match in _TOKEN.finditer(text):
        kind, token, new = match.lastgroup, match[0], ""
        if kind is None:
            continue
        where = f"line {text.count(chr(10), 0, match.start()) + 1}: {token}"
        if kind in ("value", "place"):
            if kind in last:
                before = last[kind]
                between = text[before.end() : match.start()]
                changed = text[: before.start()] + token + between + before[0] + text[match.end() :]
                yield f"{where} and {before[0]} exchanged", changed
            last[kind] = match
            continue
        if kind == "number":
            new = str(int(token, 0) + 1)
        elif kind == "access":
            new = "sw = r" if token == "sw = rw" else "sw = rw"
        yield f"{where} -> {new or 'gone'}", text[: match.start()] + new + text[match.end() :]


def reader(window: tuple[str, str, int], folder: Path) -> Callable[[str], Tables]:
    """Return what reads a text as a window's register map; it is written to `folder`."""

    def read(text: str) -> Tables:
        (folder / f"{window[1]}.rdl").write_text(text, encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "HERE", folder)
            return interface_numbers.registers([source.load(*window)])

    return read
