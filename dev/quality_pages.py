# SPDX-License-Identifier: Apache-2.0
"""The figures of `make quality` on the pages: published on demand, and compared with every run.

weights/quality.json holds them; README and model cards are made from it. Figures of the text of
another Python cannot be compared, which is said.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from npu.commands.arguments import UsageError, check_tier
from spec.paths import ROOT
from weights.card import CARD, read_record, write_page
from weights.corpus import read_corpus
from weights.figures import FILE, QualityFigures, Text, read_figures, read_text, write_figures

README = ROOT / "README.md"
TIERS = ("smoke", "full")
"""Of narrow formats those with a bar, or all."""
SMOKE = ("gpt2-tiny", "llama-tiny")
"""Models of the smoke tier: the two architectures, of which the others are variants."""
CHECKPOINTS = ROOT / "weights" / "checkpoints"
BEGIN, END = "<!-- quality: begin, written by npu quality --publish -->", "<!-- quality: end -->"
TOLERANCE = {"float_bits": 2e-4, "integer_bits": 2e-4, "agreement": 1e-3}
"""Float32 sums differ a little between processors, and so do close decisions; the rest is equal."""


def check_request(
    names: Sequence[str], tokens: int | None, publish: bool, tier: str = "full"
) -> list[str]:
    """Return the models to measure, those of the tier if none is named.

    Raises:
        UsageError: there is no checkpoint of a name or no such tier, or figures of a part are to be
            published.
    """
    check_tier(tier, TIERS)
    shipped = sorted(path.name for path in CHECKPOINTS.iterdir() if path.is_dir())
    unknown = sorted(set(names) - set(shipped))
    if unknown:
        raise UsageError(f"given {unknown[0]!r}, allowed {', '.join(shipped)}")
    if tokens is not None and tokens < 1:
        raise UsageError(f"tokens: given {tokens}, allowed 1 and more")
    if publish and (names or tokens is not None or tier != "full"):
        raise UsageError("--publish: given a part, allowed all models on all of the text")
    return list(names) or (shipped if tier == "full" else list(SMOKE))


def text_here() -> Text:
    """Return what the held-out text of the running Python is."""
    text = read_corpus().held_out
    digest = hashlib.sha256(text.tobytes()).hexdigest()
    return Text(platform.python_version(), int(text.size), digest)


def stale(found: Sequence[QualityFigures], *, full: bool = True) -> list[str]:
    """Return how the published figures differ from measured ones, a line for each.

    Those of the smoke tier (not `full`) are compared as far as they go.
    """
    here, text = text_here(), read_text()
    if here.sha256 != text.sha256:
        print(
            f"the published figures are of the documentation of CPython {text.python}, this is "
            f"{here.python}: they cannot be compared"
        )
        return []
    published = read_figures()
    measured = {one.model: one for one in found}
    alone = measured.keys() ^ published.keys() if full else measured.keys() - published.keys()
    lines = [
        f"quality: {name}: {'published' if name in published else 'measured'} only"
        for name in sorted(alone)
    ]
    for name in published.keys() & measured.keys():
        lines += _differences(published[name], measured[name])
    return [f"{line}; npu quality --publish writes the pages" for line in sorted(lines)]


def _differences(published: QualityFigures, measured: QualityFigures) -> list[str]:
    want, have = asdict(published), asdict(measured)
    return [
        f"quality: {published.model}: {key}: published {want[key]}, measured {have[key]}"
        for key in want
        if want[key] != have[key]
        and not (key in TOLERANCE and abs(want[key] - have[key]) <= TOLERANCE[key])
    ]


def section() -> str:
    """Return the figures as README has them."""
    text, figures = read_text(), read_figures()
    rows = [
        f"| {one.model} | {one.float_bits:.4f} | {one.integer_bits:.4f} | {one.loss:+.2%} | "
        f"{one.agreement:.2%} |"
        for one in figures.values()
    ]
    windows, tokens = next((one.windows, one.tokens) for one in figures.values())
    return "\n".join(
        [
            "| model | float32, bits per byte | integer network | | same most likely byte |",
            "|---|---|---|---|---|",
            *rows,
            "",
            f"All {windows} windows of the held-out text, {tokens:,} predictions (documentation "
            f"of CPython {text.python}).",
        ]
    )


def readme(page: str) -> str:
    """Return README with the figures between its markers.

    Raises:
        ValueError: it does not have each marker once, in order.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end) or BEGIN in after or END in before + after:
        raise ValueError(f"README.md needs one line {BEGIN!r} and, below, one line {END!r}")
    return f"{before}{BEGIN}\n{section()}\n{END}{after}"


def publish(found: Sequence[QualityFigures]) -> list[Path]:
    """Write quality.json, README and model cards; return what was written."""
    write_figures(text_here(), list(found))
    README.write_text(readme(README.read_text(encoding="utf-8")), encoding="utf-8")
    folders = sorted(path for path in CHECKPOINTS.iterdir() if path.is_dir())
    for folder in folders:
        write_page(folder, read_record(folder))
    return [FILE, README, *(folder / CARD for folder in folders)]
