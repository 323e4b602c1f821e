# SPDX-License-Identifier: Apache-2.0
"""Shows a text while it grows: live on a terminal, plain on standard output otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.segment import Segment
from rich.text import Text

from weights.tokenizer import TextStream

BELOW = 2
"""Lines of a terminal that the text leaves to the bar and the cursor."""


def visible(text: str) -> str:
    """Return text that a terminal can take: control characters but tab and newline as U+FFFD."""
    return "".join(
        char if char in "\t\n" or char.isprintable() or char.isspace() else "\ufffd"
        for char in text.replace("\r\n", "\n").replace("\r", "\n")
    )


class _Tail:
    """The last lines of a text that fit the terminal."""

    def __init__(self, text: Text) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._text, options, pad=False)
        for line in lines[-max(1, console.height - BELOW) :]:
            yield from line
            yield Segment.line()


class Display:
    """The growing text and a bar of tokens; plain text where nobody watches.

    Progress goes to the console, standard error. The text ends up on standard output, as it grows
    if there is no terminal to grow on.
    """

    def __init__(self, stream: TextStream, prompt: str, total: int, console: Console) -> None:
        self._stream = stream
        self._prompt = prompt
        self._pieces: list[str] = []
        self._text = Text(visible(prompt), style="dim")
        bar = BarColumn(bar_width=None)
        columns = (TextColumn("{task.description}"), bar, MofNCompleteColumn(), TimeElapsedColumn())
        self._progress = Progress(*columns, console=console, expand=True)
        self._task = self._progress.add_task("tokens", total=total)
        self._live: Live | None = None
        if console.is_terminal:
            shown = Group(_Tail(self._text), self._progress)
            self._live = Live(shown, console=console, transient=True)

    @property
    def text(self) -> str:
        """The text so far, without the prompt."""
        return "".join(self._pieces)

    def start(self) -> None:
        """Show the prompt."""
        if self._live is None:
            _write(self._prompt)
        else:
            self._live.start()

    def push(self, ids: list[int]) -> None:
        """Show more tokens."""
        self._take(self._stream.push(ids))
        self._progress.advance(self._task, len(ids))

    def stop(self) -> None:
        """End with the whole text on standard output."""
        self._take(self._stream.finish())
        if self._live is not None:
            self._live.stop()
            text = self._prompt + self.text
            _write(visible(text) if sys.stdout.isatty() else text)
        _write("\n")

    def _take(self, piece: str) -> None:
        self._pieces.append(piece)
        self._text.append(visible(piece), style="not dim")
        if self._live is None:
            _write(visible(piece) if sys.stdout.isatty() else piece)


def _write(text: str) -> None:
    """Write to standard output what its encoding can say."""
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
    sys.stdout.flush()


@contextmanager
def display(stream: TextStream, prompt: str, total: int, console: Console) -> Iterator[Display]:
    """Show a text that grows behind a prompt, up to `total` tokens."""
    shown = Display(stream, prompt, total, console)
    shown.start()
    try:
        yield shown
    finally:
        shown.stop()
