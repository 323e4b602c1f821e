# SPDX-License-Identifier: Apache-2.0
"""Reads a report that may be missing or broken: a value, or one line that says why there is none.

A broken file must not hide the others, so everything that reads one goes through `read_json`, and
what is in it through the accessors of `Record`, which name the entry that is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from spec.paths import ROOT

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


class ReportError(ValueError):
    """A report holds something else than it should; the text names the entry."""


@dataclass(frozen=True, slots=True)
class Source(Generic[T_co]):
    """What a file holds, or why it is not there.

    Attributes:
        file: its path, as the page shows it.
        command: the command that makes it.
        value: what it holds, None if it is missing or broken.
        problem: what is wrong with it in one line, "" if it is there or just missing.
    """

    file: str
    command: str
    value: T_co | None = None
    problem: str = ""

    @property
    def state(self) -> str:
        """In a word: `there`, `missing` or `broken`."""
        if self.value is not None:
            return "there"
        return "broken" if self.problem else "missing"

    @property
    def says(self) -> str:
        """What the page says in its place, "" if it is there."""
        if self.value is not None:
            return ""
        if self.problem:
            return f"{self.file}: {self.problem}. `{self.command}` makes it anew."
        return f"There is no {self.file}. `{self.command}` makes it."

    def map(self, function: Callable[[T_co], U]) -> Source[U]:
        """Return a source of what `function` makes of the value, if there is one."""
        value = None if self.value is None else function(self.value)
        return Source(self.file, self.command, value, self.problem)


def shown(path: Path) -> str:
    """Return a path as the page shows it: relative to the tree if it is in it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def one_line(error: BaseException) -> str:
    """Return the text of an error without its breaks and without a full stop."""
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def read_json(path: Path, command: str, parse: Callable[[Record], T]) -> Source[T]:
    """Read a JSON report.

    Args:
        path: its file.
        command: the command that makes it.
        parse: makes the value; it raises ReportError for what it does not understand.
    """
    file = shown(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Source(file, command, parse(Record(content)))
    except FileNotFoundError:
        return Source(file, command)
    except OSError as error:
        return Source(file, command, problem=error.strerror or one_line(error))
    except json.JSONDecodeError as error:
        return Source(file, command, problem=f"no JSON, {one_line(error)}")
    except (ReportError, UnicodeDecodeError, RecursionError) as error:
        return Source(file, command, problem=one_line(error))


@dataclass(frozen=True, slots=True)
class Record:
    """A value of a JSON file, with the place where it stands.

    Attributes:
        content: what json has read.
        place: keys and indices that lead to it, "" for the whole file.
    """

    content: Any
    place: str = ""

    def _wrong(self, allowed: str) -> ReportError:
        given = type(self.content).__name__
        return ReportError(f"{self.place or 'the file'}: given {given}, allowed {allowed}")

    def at(self, key: str) -> Record:
        """Return what stands under a key."""
        if not isinstance(self.content, dict):
            raise self._wrong("an object")
        place = f"{self.place}.{key}" if self.place else key
        if key not in self.content:
            raise ReportError(f"{place}: given nothing, needed is a value")
        return Record(self.content[key], place)

    def has(self, key: str) -> bool:
        """Whether something else than null stands under a key."""
        return isinstance(self.content, dict) and self.content.get(key) is not None

    def entries(self) -> Iterator[Record]:
        """Yield the entries of a list."""
        if not isinstance(self.content, list):
            raise self._wrong("a list")
        for index, entry in enumerate(self.content):
            yield Record(entry, f"{self.place}[{index}]")

    def items(self) -> Iterator[tuple[str, Record]]:
        """Yield keys and values of an object."""
        if not isinstance(self.content, dict):
            raise self._wrong("an object")
        for key in self.content:
            yield key, self.at(key)

    def text(self, key: str) -> str:
        """Return the text under a key."""
        found = self.at(key)
        if not isinstance(found.content, str):
            raise found._wrong("a text")
        return found.content

    def number(self, key: str) -> float:
        """Return the number under a key."""
        found = self.at(key)
        if isinstance(found.content, bool) or not isinstance(found.content, int | float):
            raise found._wrong("a number")
        return float(found.content)

    def whole(self, key: str) -> int:
        """Return the whole number under a key."""
        found = self.at(key)
        if isinstance(found.content, bool) or not isinstance(found.content, int):
            raise found._wrong("a whole number")
        return found.content

    def truth(self, key: str) -> bool:
        """Return the truth value under a key."""
        found = self.at(key)
        if not isinstance(found.content, bool):
            raise found._wrong("true or false")
        return found.content
