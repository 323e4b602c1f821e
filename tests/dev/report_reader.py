# SPDX-License-Identifier: Apache-2.0
"""Reads the page as a browser does, and makes small runs, for the tests of the page."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

from dev.regression.results import Results
from dev.regression.task import ExecutedRow, Outcome, Status, Task
from dev.report.collect import Places


class Reader(HTMLParser):
    """Collects what a browser would see: text, elements, and rows of tables."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep an element."""
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        """Keep a text that is shown."""
        if self.elements and self.elements[-1][0] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self) -> str:
        """All texts, with single blanks."""
        return " ".join(" ".join(self.words).split())

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a name."""
        return [attributes for name, attributes in self.elements if name == tag]


def one_run(
    folder: Path, outcomes: list[Outcome], *, complete: bool = False, state: str = "finished"
) -> Places:
    """Write a run of the tasks of outcomes and return its places."""
    places = Places(folder / "results.sqlite", folder / "build" / "reports", folder)
    results = Results(places.results)
    run = results.begin("smoke", {"complete": complete}, [one.task for one in outcomes], "aa" * 32)
    results.add(run, [one for one in outcomes if one.worker != "nobody"])
    if state != "running":
        results.end(run, state, 60.0)
    results.close()
    return places


def outcome_of(
    name: str = "test_dma_random", message: str = "", rows: tuple[str, ...] = ()
) -> Outcome:
    """Return how a test ended: it failed if there is a message."""
    status: Status = "failed" if message else "passed"
    counts = tuple(ExecutedRow(row, 4, 3) for row in rows)
    return Outcome(Task("rtl", name, "fast-a16"), status, message, 1.5, 1000, counts)
