# SPDX-License-Identifier: Apache-2.0
"""The failures of a run: the first ones whole, all others in one line each.

A chip that does not work at all fails every test with a long message; the page must stay one that
a browser opens at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dev.regression.task import Outcome

WHOLE_MOST = 60
"""Failures that are shown with all they say."""
LINES_MOST, LETTERS_MOST = 60, 6000
"""Of one message, of what one test printed, and of its log."""
HEADLINE_MOST = 240


@dataclass(frozen=True, slots=True)
class ReportedFailure:
    """A failure with all it says.

    Attributes:
        result: of the run.
        headline: the first line of the message.
        message: all of it, cut where it is endless; "" if the headline is all of it.
        output: the end of what the test printed.
        log: the end of its log.
    """

    result: Outcome
    headline: str
    message: str
    output: str
    log: str


@dataclass(frozen=True, slots=True)
class Failures:
    """All failures.

    Attributes:
        whole: the first ones.
        others: the rest, each with its headline alone.
    """

    whole: tuple[ReportedFailure, ...]
    others: tuple[ReportedFailure, ...]

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.whole) + len(self.others)


def failures(results: Iterable[Outcome]) -> Failures:
    """Return the failures among results, in their order."""
    failed = [_failure(result) for result in results if result.failed]
    return Failures(tuple(failed[:WHOLE_MOST]), tuple(failed[WHOLE_MOST:]))


def _failure(result: Outcome) -> ReportedFailure:
    text = result.message.strip() or f"it ended as {result.status} without a message"
    first, _, rest = text.partition("\n")
    message = _cut(text) if rest or len(first) > HEADLINE_MOST else ""
    headline = first if len(first) <= HEADLINE_MOST else f"{first[:HEADLINE_MOST].rstrip()} ..."
    return ReportedFailure(
        result, headline, message, _end(result.output.rstrip()), _end(result.log.rstrip())
    )


def _cut(text: str) -> str:
    """Return the beginning of a text, and how much was cut."""
    kept = "\n".join(text[:LETTERS_MOST].split("\n")[:LINES_MOST])
    left = len(text) - len(kept)
    return f"{kept}\n... and {left:,} more letters" if left > 0 else text


def _end(text: str) -> str:
    """Return the end of a text, and how much was cut."""
    text = text.rstrip()
    kept = "\n".join(text[-LETTERS_MOST:].split("\n")[-LINES_MOST:])
    left = len(text) - len(kept)
    return f"{left:,} letters before this ...\n{kept}" if left > 0 else text
