# SPDX-License-Identifier: Apache-2.0
"""Shows a regression while it runs: a line per result, and below them how far it is."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dev.regression.task import Outcome, Task

EVERY_S = 30.0
"""Between two lines of progress where there is no terminal."""


class Live:
    """The display; a context around the run."""

    def __init__(
        self,
        tasks: Sequence[Task],
        seconds: Mapping[Task, float],
        workers: int,
        console: Console | None = None,
    ) -> None:
        """Make the display.

        Args:
            tasks: what is to run.
            seconds: what each of them is expected to take.
            workers: how many run side by side.
            console: where to; by default standard output.
        """
        self._console = console or Console(highlight=False)
        self._left = {task: seconds[task] for task in tasks}
        self._workers = workers
        self._told = time.monotonic()
        self._ended = self._failed = 0
        self._spent = self._guessed = 0.0
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=self._console,
            disable=not self._console.is_terminal,
        )
        self._bar = self._progress.add_task("regress", total=len(tasks), left="")

    def __enter__(self) -> Live:
        """Show the bar."""
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bar."""
        self._progress.stop()

    @property
    def left_s(self) -> float:
        """Seconds until the end, as far as is known; what was wrong so far is expected again."""
        wrong = self._spent / self._guessed if self._guessed > 10.0 else 1.0
        longest = max(self._left.values(), default=0.0)
        return max(sum(self._left.values()) * wrong / self._workers, longest * wrong)

    def line(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, soft_wrap=True)

    def show(self, outcome: Outcome) -> None:
        """Show that a task has ended."""
        guess = self._left.pop(outcome.task, 0.0)
        self._spent, self._guessed = self._spent + outcome.seconds, self._guessed + guess
        self._ended += 1
        verdict = "PASS" if outcome.passed else "FAIL"
        where = f" on {outcome.worker}" if outcome.worker != "local" else ""
        self.line(f"{verdict} {outcome.task.short} ({outcome.seconds:.1f} s){where}")
        if not outcome.passed:
            self._failed += 1
            self.line(f"     {outcome.message}\n     repeat: {outcome.repeat}")
        minutes = self.left_s / 60
        failed = f", {self._failed} failed" if self._failed else ""
        left = f"{minutes:.0f} min left" if minutes >= 1 else f"{self.left_s:.0f} s left"
        self._progress.update(self._bar, advance=1, left=f"{left}{failed}")
        now = time.monotonic()
        if not self._console.is_terminal and now - self._told > EVERY_S and self._left:
            self._told = now
            total = self._ended + len(self._left)
            self.line(f"     {self._ended} of {total} ended{failed}, {left}")
