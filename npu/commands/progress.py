# SPDX-License-Identifier: Apache-2.0
"""Says what a long step does: live on a terminal, a line now and then where there is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape

PATIENCE_S = 1.0
"""What takes less is not mentioned where there is no terminal."""
EVERY_S = 20.0
"""Time between two lines."""
REFRESH_S = 0.5
"""Time between two looks at how far a step is, on a terminal."""

Detail = Callable[[], str]


class Progress:
    """How far a step is, and how long the rest of it takes if it goes on like that."""

    def __init__(self) -> None:
        """Begin."""
        self._at = ("", 0, 0)
        self._started = self._ended = time.monotonic()

    def advance(self, what: str, done: int, total: int) -> None:
        """Take in that so many parts are done, of all of them; another `what` begins anew."""
        if what != self._at[0]:
            self._started = self._ended
        self._at, self._ended = (what, done, total), time.monotonic()

    def counter(self, what: str, total: int) -> Callable[[int], None]:
        """Return what takes in that so many more parts are done."""
        done = 0

        def more(count: int) -> None:
            nonlocal done
            done += count
            self.advance(what, done, total)

        return more

    def text(self) -> str:
        """Return it in a few words, "" before the first part is done."""
        what, done, total = self._at
        if not done:
            return ""
        left = (self._ended - self._started) / done * (total - done)
        left -= time.monotonic() - self._ended
        rest = f", about {max(left, 0):.0f} s left" if done < total else ""
        return f"{done} of {total} {what}{rest}"


@contextmanager
def step(text: str, detail: Detail = str, console: Console | None = None) -> Iterator[None]:
    """Show that a step is under way while the body runs.

    Args:
        text: what it does.
        detail: how far it is, in a few words; asked for from another thread.
        console: where to; None is standard error.
    """
    shown = console or Console(stderr=True)
    over = threading.Event()
    show = _watch if shown.is_terminal else _tell
    thread = threading.Thread(target=show, args=(shown, text, detail, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _watch(console: Console, text: str, detail: Detail, over: threading.Event) -> None:
    """Keep a live line up to date."""
    started = time.monotonic()
    with console.status(escape(text)) as status:
        while not over.wait(REFRESH_S):
            status.update(escape(f"{text} {_so_far(detail, started)}"))


def _tell(console: Console, text: str, detail: Detail, over: threading.Event) -> None:
    """Print a line when the step turns out to be long, and again from time to time."""
    started = time.monotonic()
    if over.wait(PATIENCE_S):
        return
    _line(console, f"{text} ...")
    while not over.wait(EVERY_S):
        _line(console, f"{text} ... {_so_far(detail, started)}")


def _line(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def _so_far(detail: Detail, started: float) -> str:
    parts = (detail(), f"{time.monotonic() - started:.0f} s")
    return f"({', '.join(part for part in parts if part)})"
