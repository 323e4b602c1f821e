# SPDX-License-Identifier: Apache-2.0
"""Reads a report that may be missing or broken: a value, or one line that says why there is none.

A broken file must not hide the others, so everything that reads one goes through `read_json`, which
makes values of the types that the file was written from and names the entry that is wrong.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import UnionType
from typing import Any, Generic, TypeVar, cast, get_args, get_origin, get_type_hints

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


def read_json(path: Path, command: str, kind: type[U], make: Callable[[U], T]) -> Source[T]:
    """Read a JSON report.

    Args:
        path: its file.
        command: the command that makes it.
        kind: the type of what it holds, see `typed`.
        make: makes the value of it; it raises ReportError for what it does not understand.
    """
    file = shown(path)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Source(file, command, make(typed(content, kind)))
    except FileNotFoundError:
        return Source(file, command)
    except OSError as error:
        return Source(file, command, problem=error.strerror or one_line(error))
    except json.JSONDecodeError as error:
        return Source(file, command, problem=f"no JSON, {one_line(error)}")
    except (ReportError, ArithmeticError, UnicodeDecodeError, RecursionError) as error:
        return Source(file, command, problem=one_line(error))


_NAMES: dict[type, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def typed(content: object, kind: type[T], place: str = "") -> T:
    """Return what json has read as a value of a type.

    Args:
        content: what json has read.
        kind: a dataclass, whose fields are the keys of an object that may have more of them; `str`,
            `int`, `float`, `bool`; a list, tuple or dict of one of these; any of it or None.
        place: keys and indices that lead to it, "" for the whole file.

    Raises:
        ReportError: it is something else.
    """

    def wrong(allowed: str) -> ReportError:
        given = type(content).__name__
        return ReportError(f"{place or 'the file'}: given {given}, allowed {allowed}")

    found: Any
    inner: Any = get_args(kind)
    origin: Any = get_origin(kind)
    if origin is UnionType:
        found = None if content is None else typed(content, inner[0], place)
    elif origin in (list, tuple):
        if not isinstance(content, list):
            raise wrong("a list")
        found = origin(typed(each, inner[0], f"{place}[{i}]") for i, each in enumerate(content))
    elif kind in _NAMES:
        allowed = (int, float) if kind is float else (kind,)
        if type(content) not in allowed:
            raise wrong(_NAMES[kind])
        found = kind(content)  # type: ignore[call-arg]
    elif not isinstance(content, dict):
        raise wrong("an object")
    else:
        dot = f"{place}." if place else ""
        kinds = dict.fromkeys(content, inner[1]) if origin is dict else get_type_hints(kind)
        missing = [name for name in kinds if name not in content]
        if missing:
            raise ReportError(f"{dot}{missing[0]}: given nothing, needed is a value")
        values = {key: typed(content[key], each, f"{dot}{key}") for key, each in kinds.items()}
        found = kind(**values)
    return cast(T, found)
