# SPDX-License-Identifier: Apache-2.0
"""Tables that fit the terminal: names are cut in the middle, text wraps, figures stay whole.

    table = FitTable(title="Network")
    table.name("operation")
    table.figure("cycles")
    table.add_row("model/block_1/conv2d", "1,024")

Where all columns do not fit beside one another, the first one stands in front of each group of
them that does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.markup import render
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

LEAST = 16
"""Cells of a name that is cut, unless the terminal has fewer."""
GAP = "…"


def cut(name: str, width: int, head: int | None = None, gap: str = GAP) -> str:
    """Return a name in so many cells: its beginning and its end, and a gap where it is too long.

    Args:
        name: on one line.
        width: cells, at least 1.
        head: of the beginning, half of them if None.
        gap: what stands for the middle.
    """
    if cell_len(name) <= width:
        return name
    room = width - cell_len(gap)
    if room < 1:
        return GAP[:width]
    first = room - room // 2 if head is None else head
    return _within(name, first) + gap + _within(name[::-1], room - first)[::-1]


def _within(text: str, width: int) -> str:
    """Return the longest beginning of a text that takes at most so many cells."""
    end = min(len(text), max(width, 0))
    while cell_len(text[:end]) > width:
        end -= 1
    return text[:end]


def cut_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """Return what each name is cut to, different ones for different names.

    Where the halves of some are the same, more of the beginning or of the end is shown; where that
    does not tell them apart, they are counted in the gap.
    """
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for name in dict.fromkeys(names):
        groups[cut(name, width)].append(name)
    found: dict[str, str] = {}
    for short, group in groups.items():
        found |= {group[0]: short} if len(group) == 1 else _apart(group, width, set(groups))
    return found


def _apart(names: Sequence[str], width: int, taken: set[str]) -> dict[str, str]:
    room = width - 1
    for head in sorted(range(1, room), key=lambda one: abs(2 * one - room)):
        tried = {name: cut(name, width, head) for name in names}
        if len(set(tried.values())) == len(names) and not taken & set(tried.values()):
            return tried
    return {name: cut(name, width, gap=f"{GAP}{i}{GAP}") for i, name in enumerate(names, 1)}


@dataclass(frozen=True)
class _Name:
    """A name in a column, which is cut as the other ones of it allow."""

    text: Text
    column: list[str]

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = self.text.cell_len
        return Measurement(min(1, longest), longest)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        plain = self.text.plain
        short = cut_apart(self.column, options.max_width)[plain]
        yield self.text if short == plain else Text(short, self.text.style, end="")


@dataclass
class _Columns:
    """Which columns hold names, with the names, by index; and which hold figures."""

    names: dict[int, list[str]] = field(default_factory=dict)
    figures: set[int] = field(default_factory=set)


class FitTable(Table):
    """A table of names, figures and text that no usual terminal is too narrow for."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        """Take what a table of rich takes by name; title and caption begin on the left."""
        super().__init__(**{"title_justify": "left", "caption_justify": "left"} | options)
        self._fit = _Columns()

    def name(self, head: str = "") -> None:
        """Add a column of names, which are cut in the middle where they are too long."""
        self._fit.names[len(self.columns)] = []
        self.add_column(head, overflow="ellipsis")

    def figure(self, head: str = "") -> None:
        """Add a column of figures, which are never cut."""
        self._fit.figures.add(len(self.columns))
        self.add_column(head, justify="right", no_wrap=True)

    def text(self, head: str = "") -> None:
        """Add a column of text, which wraps."""
        self.add_column(head, overflow="fold")

    def add_row(self, *cells: Any, **options: Any) -> None:  # noqa: ANN401
        """Add a row; strings may have markup."""
        row = list(cells)
        for index, column in self._fit.names.items():
            if index < len(row) and isinstance(row[index], str):
                shown = render(row[index])
                column.append(shown.plain)
                row[index] = _Name(shown, column)
        super().add_row(*row, **options)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the table, or one for each group of columns that fits."""
        parts = list(self._parts(console, options))
        for number, columns in enumerate(parts):
            part = copy(self)
            part.columns = [replace(one, _index=i) for i, one in enumerate(columns)]
            part.title = self.title if number == 0 else None
            part.caption = self.caption if number == len(parts) - 1 else None
            yield from super(FitTable, part).__rich_console__(console, options)

    def _parts(self, console: Console, options: ConsoleOptions) -> Iterator[list[Column]]:
        first, *others = self.columns or [Column()]
        least = self._least(console, options, first, 0)
        used, part = least, [first]
        for index, column in enumerate(others, 1):
            needed = self._least(console, options, column, index)
            if used + needed > options.max_width and len(part) > 1:
                yield part
                used, part = least, [first]
            used += needed
            part.append(column)
        yield part

    def _least(self, console: Console, options: ConsoleOptions, column: Column, index: int) -> int:
        """Return the cells that a column needs at least, with its border."""
        open_ended = options.update(width=1 << 16)
        cells = [
            Measurement.get(console, open_ended, one) for one in (column.header, *column.cells)
        ]
        longest = max(one.maximum for one in cells)
        if index in self._fit.names:
            longest = min(longest, LEAST)
        elif index not in self._fit.figures:
            longest = max(one.minimum for one in cells)
        _, right, _, left = self.padding
        return longest + left + right + 1


def pairs() -> FitTable:
    """Return a table without heads: what, and what there is to say of it."""
    table = FitTable(show_header=False, box=None, pad_edge=False)
    table.name()
    table.text()
    return table


def as_text(table: FitTable, width: int) -> str:
    """Return a table as plain text in so many columns."""
    console = Console(width=width, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(table)
    return "\n".join(line.rstrip() for line in capture.get().splitlines()) + "\n"
