# SPDX-License-Identifier: Apache-2.0
"""Puts the figures and pictures of the last bench run into the documentation."""

from __future__ import annotations

import json
import shutil
from typing import Any

from tb.benchmarks.suite import JSON, ROOFLINE, STREAM, bar_text, verdict
from tb.paths import DOCS, REPORTS

PAGE, IMAGES = DOCS / "performance.md", DOCS / "images"
BEGIN, END = "<!-- figures: begin, written by make bench-docs -->", "<!-- figures: end -->"
PICTURES = (
    ROOFLINE,
    REPORTS / "timeline-block_s16.png",
    REPORTS / "timeline-tiny_decode_gpt2_p64.png",
)


def _line(entry: dict[str, Any], entries: list[dict[str, Any]]) -> str:
    cells = (
        entry["name"],
        f"{entry['cycles']:,}",
        f"{entry['ideal_cycles']:,}",
        entry["bound"],
        f"{entry['ratio']:.4f}",
        bar_text(entry),
        {None: "", True: "met", False: "**missed**"}[verdict(entry, entries)],
    )
    return f"| {' | '.join(cells)} |"


def figures(entries: list[dict[str, Any]], stream: dict[str, Any]) -> str:
    """Return the table of bench.json and the sum of stream.json as Markdown."""
    lines = ["| name | cycles | ideal | bound | ratio | bar | |", "|---|---|---|---|---|---|---|"]
    lines += [_line(entry, entries) for entry in entries]
    total = (
        f"The packed stream of the block has {stream['bytes']:,} bytes, {stream['ratio']:.4f} "
        f"times the {stream['necessary_bytes']:,} necessary ones (bar: 1.03)."
    )
    return "\n".join([*lines, "", total])


def replaced(page: str, text: str) -> str:
    """Return `page` with `text` between its markers.

    Raises:
        ValueError: the page does not have each marker once, in order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in after or END in before + after:
        raise ValueError(f"needs one line {BEGIN!r} and, below, one line {END!r}")
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def run() -> None:
    """Rewrite the table of docs/performance.md and copy the pictures."""
    entries = json.loads(JSON.read_text(encoding="utf-8"))
    stream = json.loads(STREAM.read_text(encoding="utf-8"))
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(replaced(page, figures(entries, stream)), encoding="utf-8")
    IMAGES.mkdir(exist_ok=True)
    for picture in PICTURES:
        shutil.copyfile(picture, IMAGES / picture.name)
    print(f"written: {PAGE.name} and {len(PICTURES)} pictures")
