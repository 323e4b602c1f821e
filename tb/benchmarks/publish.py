# SPDX-License-Identifier: Apache-2.0
"""Puts figures and pictures of the last bench run into the documentation, moves the bars."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection
from typing import Any

from spec.paths import DOCS, REPORTS, ROOT
from tb.benchmarks import against_int8, bars
from tb.benchmarks.catalogue import CASES
from tb.benchmarks.format_benchmarks import CLAIMS
from tb.benchmarks.soc_benchmarks import SOC_CASES
from tb.benchmarks.suite import JSON, ROOFLINE, STREAM

PAGE, IMAGES = DOCS / "performance.md", DOCS / "images"
BEGIN, END = "<!-- figures: begin, written by make bench-docs -->", "<!-- figures: end -->"
NARROW = """\
Narrow weights against the same step in int8; where the bus binds, cycles must fall as far as the
bytes that are read:"""
PICTURES = (
    ROOFLINE,
    REPORTS / "timeline-block_s16.png",
    REPORTS / "timeline-tiny_decode_gpt2_p64.png",
)


class PublishError(RuntimeError):
    """There is nothing to publish."""


def _line(entry: dict[str, Any], limits: dict[str, bars.Bar]) -> str:
    bar = limits[entry["name"]]
    cells = (
        entry["name"],
        f"{entry['cycles']:,}",
        f"{entry['ideal_cycles']:,}",
        entry["bound"],
        f"{entry['ratio']:.4f}",
        str(bar),
        "met" if bar.met(entry["ratio"], entry["cycles"]) else "**missed**",
    )
    return f"| {' | '.join(cells)} |"


def figures(
    entries: list[dict[str, Any]], stream: dict[str, Any], limits: dict[str, bars.Bar]
) -> str:
    """Return the tables of bench.json and the sum of stream.json as Markdown."""
    lines = ["| name | cycles | ideal | bound | ratio | bar | |", "|---|---|---|---|---|---|---|"]
    lines += [_line(entry, limits) for entry in entries]
    total = (
        f"The packed stream of the block has {stream['bytes']:,} bytes, {stream['ratio']:.4f} "
        f"times the {stream['necessary_bytes']:,} necessary ones (bar: 1.03)."
    )
    narrow = against_int8.markdown(against_int8.verdicts(CLAIMS, entries))
    return "\n".join([*lines, "", total, "", NARROW, "", narrow])


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


def run(raised: Collection[str] = ()) -> None:
    """Rewrite the table of docs/performance.md and the landed figures, and copy the pictures.

    Args:
        raised: benchmarks that may take more cycles from now on.

    Raises:
        PublishError: there was no bench run of the full tier.
        bars.RaiseError: `raised` names no benchmark of the last run.
    """
    missing = [path for path in (JSON, STREAM, *PICTURES) if not path.is_file()]
    if missing:
        raise PublishError(f"{missing[0].relative_to(ROOT)} is missing: run make bench first")
    entries = json.loads(JSON.read_text(encoding="utf-8"))
    left_out = {**CASES, **SOC_CASES}.keys() - {entry["name"] for entry in entries}
    if left_out:
        raise PublishError(f"{min(left_out)} was not measured: run make bench, TIER=full")
    stream = json.loads(STREAM.read_text(encoding="utf-8"))
    landed = bars.ratchet(bars.landed(), entries, raised)
    bars.write(landed)
    page = PAGE.read_text(encoding="utf-8")
    table = figures(entries, stream, bars.bars(landed))
    PAGE.write_text(replaced(page, table), encoding="utf-8")
    IMAGES.mkdir(exist_ok=True)
    for picture in PICTURES:
        shutil.copyfile(picture, IMAGES / picture.name)
    print(f"written: {PAGE.name}, {bars.LANDED.name} and {len(PICTURES)} pictures")
