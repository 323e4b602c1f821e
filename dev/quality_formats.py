# SPDX-License-Identifier: Apache-2.0
"""What narrow weight formats cost: bits per byte over the int8 network, recipe by recipe.

Part of `make quality`. Every recipe of RECIPES is measured on gpt2-tiny and llama-tiny, rounded
after training with error compensation, and every checkpoint of weights/finetuned in the format it
was trained for, against its start in int8. The held-out text is that of dev.quality, in windows
spread over all of it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dev import formats_page
from dev.quality_report import FormatQuality
from golden.decoder import forward_rows
from npu.commands.compiled_files import bus_cycles
from npu.compiler import compile_model
from npu.compiler.stream_account import weight_bits
from npu.tables import FitTable
from spec.paths import ROOT
from weights.figures import FORMATS_FILE, FormatFigures, read_format_figures
from weights.finetuned_card import write_finetuned_page
from weights.formats.recipe import parse_recipe
from weights.model import QuantizedModel
from weights.quantize import quantize_checkpoint
from weights.recipe import FINETUNES, Finetune
from weights.reference import bits_per_byte

CHECKPOINTS = ROOT / "weights" / "checkpoints"
FINETUNED = ROOT / "weights" / "finetuned"
MODELS = ("gpt2-tiny", "llama-tiny")
TOKENS = 65_536
"""Predictions that the figures are of, at least."""
AT_ONCE = 16
"""Rows between two moves of the progress bar, and that one thread works on."""
TOLERANCE = 2e-6
"""In bits per byte; nothing here depends on the machine but the sum of the logarithms."""
MIXED = "qkv=mxfp6e2,o=int4g32,up=mxfp6e2,down=int4g32"
INT8 = "int8"
RECIPES: dict[str, float | None] = {
    INT8: None,
    "mxint8": None,
    "mxfp8e4": None,
    "mxfp6e2,head=mxfp6e2": 0.005,
    MIXED: 0.013,
    "nf4g32": 0.035,
    "fp4g32": None,
    "int4g16": None,
    "int4g32": 0.05,
    "int4g32,head=int4g32": None,
    "int4g64": None,
    "mxfp4": None,
    "int4,head=int4": None,
    "int8s,head=int8s": None,
    "int4s,head=int4s": None,
    "int2,head=int2": None,
}
"""Recipes with their bars: bits per byte above int8, None for no bar. Int8 itself comes first."""
FINETUNED_BARS: dict[str, float] = {"gpt2-tiny-int4g32": 0.015}

Rows = npt.NDArray[np.int64]
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class FormatSubject:
    """A checkpoint and a recipe, the checkpoint whose int8 it is held against, the bar."""

    model: str
    recipe: str
    folder: Path
    reference: Path
    max_loss: float | None


def finetuned() -> dict[str, Finetune]:
    """Return the fine-tuned checkpoints that ship."""
    return {name: one for name, one in FINETUNES.items() if (FINETUNED / name).is_dir()}


def format_subjects(*, full: bool) -> Iterator[FormatSubject]:
    """Yield what is measured: all, or int8 and what has a bar, recipes of the last model only."""
    for model in MODELS:
        folder = CHECKPOINTS / model
        for recipe, bar in RECIPES.items():
            if full or recipe == INT8 or (bar is not None and model == MODELS[-1]):
                yield FormatSubject(model, recipe, folder, folder, bar)
    for name, finetune in finetuned().items():
        start = CHECKPOINTS / finetune.start
        bar = FINETUNED_BARS.get(name)
        if full or bar is not None:
            yield FormatSubject(name, finetune.weights, FINETUNED / name, start, bar)


def by_parts(
    work: Callable[[Rows], Result], rows: Rows, advance: Callable[[int], object]
) -> list[Result]:
    """Return work(part) of each AT_ONCE rows in order; the processors share the parts.

    `advance` gets the number of rows of each part that is done, from any thread.
    """

    def one(part: Rows) -> Result:
        result = work(part)
        advance(len(part))
        return result

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(one, np.split(rows, range(AT_ONCE, len(rows), AT_ONCE))))


def total_bits(logits: npt.NDArray[Any], rows: Rows) -> float:
    """Return bits per byte of rows (R, T), times R."""
    return len(rows) * bits_per_byte(logits, rows)


def bits_of(model: QuantizedModel, rows: Rows, advance: Callable[[int], object]) -> float:
    """Return the bits per byte of an integer network on rows (R, T)."""
    unit = model.scales["logits"]
    found = by_parts(lambda part: total_bits(forward_rows(model, part) * unit, part), rows, advance)
    return sum(found) / len(rows)


def measure_formats(
    subjects: list[FormatSubject],
    rows: Rows,
    advance: Callable[[int], object] = lambda _: None,
) -> list[FormatQuality]:
    """Measure on rows (R, T) of tokens; `advance` gets the number of rows that were done.

    Of every reference int8 comes first.
    """
    plain: dict[Path, float] = {}
    found = []
    for one in subjects:
        model = quantize_checkpoint(str(one.folder), parse_recipe(one.recipe))
        bits = round(bits_of(model, rows, advance), 6)
        if one.recipe == INT8:
            plain[one.folder] = bits
        compiled = compile_model(model)
        figures = FormatFigures(
            model=one.model,
            recipe=one.recipe,
            tokens=len(rows) * (rows.shape[1] - 1),
            int8_bits=plain[one.reference],
            bits=bits,
            weight_bits=round(weight_bits(compiled.decode()), 4),
            bus_cycles=bus_cycles(compiled),
        )
        found.append(FormatQuality(figures, one.max_loss))
    return found


def render_formats(found: list[FormatQuality]) -> FitTable:
    """Return the figures as a table."""
    table = FitTable(title="narrow weights against int8 on held-out text")
    for head in ("model", "weights"):
        table.name(head)
    for head in ("tokens", "int8", "narrow", "bits per byte", "bar"):
        table.figure(head)
    for one in found:
        figures = one.figures
        bar = "" if one.max_loss is None else f"{one.max_loss:+.1%}"
        table.add_row(
            figures.model,
            figures.recipe,
            str(figures.tokens),
            f"{figures.int8_bits:.4f}",
            f"{figures.bits:.4f}",
            f"{figures.loss:+.2%}",
            bar + (" MISSED" if one.misses else ""),
        )
    return table


def stale_formats(
    found: list[FormatQuality], path: Path = FORMATS_FILE, *, full: bool = True
) -> list[str]:
    """Return how the published figures differ from measured ones, a line for each.

    Those of the smoke tier (not `full`) are compared as far as they go.
    """
    published = {(one.model, one.recipe): one for one in read_format_figures(path)}
    measured = {(one.figures.model, one.figures.recipe): one.figures for one in found}
    alone = measured.keys() ^ published.keys() if full else measured.keys() - published.keys()
    lines = [
        f"quality: {model}, {recipe}: {'published' if key in published else 'measured'} only"
        for key in sorted(alone)
        for model, recipe in [key]
    ]
    for key in sorted(published.keys() & measured.keys()):
        want, have = published[key], measured[key]
        close = replace(have, bits=want.bits, int8_bits=want.int8_bits)
        if want != close or abs(want.bits - have.bits) > TOLERANCE:
            lines.append(f"quality: published {want}, measured {have}")
    return lines


def publish_formats(found: list[FormatQuality]) -> list[Path]:
    """Write the published figures, their page and the cards of the fine-tuned checkpoints.

    Returns what was written.
    """
    content = {"formats": [asdict(one.figures) for one in found]}
    FORMATS_FILE.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    formats_page.write()
    cards = [write_finetuned_page(FINETUNED / name) for name in finetuned()]
    return [FORMATS_FILE, formats_page.PAGE, *cards]
