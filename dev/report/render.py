# SPDX-License-Identifier: Apache-2.0
"""Writes the page: one file with its style, its script and its pictures in it.

All texts come from reports and are escaped; a policy in the page lets no other script or style run
than its own, and nothing be loaded.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from urllib.parse import quote

import jinja2
from markupsafe import Markup

from dev.report.collect import Page
from dev.report.contents import contents
from dev.report.suite import KINDS, by_kind

TEMPLATES = Path(__file__).parent / "templates"
FILE = "index.html"
TESTS_MOST = 60
"""Tests that are named at one use of an instruction; regress.json has all of them."""
SPARK_WIDTH, SPARK_HEIGHT = 128, 24
"""Of the little line of a trend, in units of its own."""


def render(page: Page) -> str:
    """Return the page as HTML."""
    style, script = (
        (TEMPLATES / name).read_text(encoding="utf-8") for name in ("page.css", "page.js")
    )
    return (
        _environment()
        .get_template("page.html")
        .render(
            page=page,
            store=page.store.value,
            contents=contents(page),
            kinds=KINDS,
            tests_most=TESTS_MOST,
            link=lambda path: link(page, path),
            beside=lambda path: path if (page.places.reports / path).exists() else "",
            style=Markup(style),
            script=Markup(script),
            policy=_policy(style, script),
        )
    )


@cache
def _environment() -> jinja2.Environment:
    """Return what renders the templates; they are read once."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "share": share,
        "change": change,
        "span": span,
        "moment": moment,
        "by_kind": by_kind,
        "spark": spark,
    }
    return environment


def write(page: Page) -> Path:
    """Write the page into its folder and return its file."""
    page.places.reports.mkdir(parents=True, exist_ok=True)
    path = page.places.reports / FILE
    # Whoever reads the page meanwhile sees the old one whole.
    part = path.with_suffix(".part")
    part.write_text(render(page), encoding="utf-8", errors="replace")
    part.replace(path)
    return path


def _policy(style: str, script: str) -> str:
    """Return what the browser may use: what is in the page itself, known by its digest."""
    own = (
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    )
    style_digest, script_digest = own
    return (
        f"default-src 'none'; img-src data:; style-src 'sha256-{style_digest}'; "
        f"script-src 'sha256-{script_digest}'"
    )


def link(page: Page, path: str) -> str:
    """Return the link from the page to a file of the tree, "" if there is no such file."""
    if not path:
        return ""
    target = page.places.root / path
    try:
        if not target.is_file():
            return ""
    except (OSError, ValueError):
        return ""
    return quote(Path(os.path.relpath(target, page.places.reports)).as_posix())


def number(value: float, digits: int = 0) -> str:
    """Return a number with commas between thousands."""
    return f"{value:,.{digits}f}"


def share(value: float, digits: int = 1) -> str:
    """Return a share, 0 to 1, in percent; what is not all of it does not read 100 %."""
    percent = 100 * value
    if value < 1.0 and round(percent, digits) >= 100.0:
        percent = 100.0 - 10.0**-digits
    return f"{percent:.{digits}f} %"


def change(value: float, digits: int = 1) -> str:
    """Return a relative change in percent, with its sign."""
    return f"{100 * value:+.{digits}f} %".replace("-", "\u2212")


def span(seconds: float) -> str:
    """Return a time: `0.42 s`, `84.2 s`, `12 min 3 s`, `2 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def moment(at: str) -> str:
    """Return a point in time that stands in ISO 8601."""
    time = datetime.fromisoformat(at)
    return f"{time:%Y-%m-%d %H:%M} {time.tzname() or ''}".strip()


def spark(values: Sequence[float | None], what: str) -> Markup:
    """Return a little line through values, with a dot at the last one; None leaves a gap."""
    there = [value for value in values if value is not None]
    if len(there) < 2:
        return Markup("")
    low, high = min(there), max(there)
    step = SPARK_WIDTH / (len(values) - 1)

    def height(value: float) -> float:
        middle = SPARK_HEIGHT / 2
        return (
            middle
            if high == low
            else SPARK_HEIGHT - 2 - (SPARK_HEIGHT - 4) * (value - low) / (high - low)
        )

    words, pen = [], "M"
    for index, value in enumerate(values):
        if value is None:
            pen = "M"
            continue
        words.append(f"{pen}{index * step:.0f} {height(value):.0f}")
        pen = "L"
    last = max(index for index, value in enumerate(values) if value is not None)
    return Markup(
        '<svg class="spark" viewBox="0 0 {w} {h}" role="img" aria-label="{label}">'
        '<path d="{path}"/><circle cx="{x:.0f}" cy="{y:.0f}" r="2.5"/></svg>'
    ).format(
        w=SPARK_WIDTH,
        h=SPARK_HEIGHT,
        label=f"{what} in {len(there)} runs, from {there[0]:,.4g} to {there[-1]:,.4g}",
        path="".join(words),
        x=last * step,
        y=height(there[-1]),
    )
