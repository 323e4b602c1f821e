# SPDX-License-Identifier: Apache-2.0
"""The integer network against the float32 one of transformers, on the held-out text.

    python -m dev.quality [--tier smoke] [--tokens N] [--publish] [MODEL ...]

Every checkpoint of weights/checkpoints is run on all windows of the held-out text, or on some, both
as transformers runs it (float32) and as the integer network `golden.decoder`: bits per byte of
both, and how often the most likely next byte is the same. GPT-2 is measured a second time with
outlier channels, and narrow weight formats are measured against int8 (dev.quality_formats). The
smoke tier has two of the checkpoints, and of the formats those that have a bar. The figures go to
build/reports/quality.json; a missed bar is an error, and so is a difference from the published
figures (dev.quality_pages). Needs the group `oracles`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from dev import quality_pages as pages
from dev.quality_formats import (
    TOKENS,
    by_parts,
    format_subjects,
    measure_formats,
    publish_formats,
    render_formats,
    stale_formats,
    total_bits,
)
from dev.quality_report import FormatQuality, Quality, save
from golden.decoder import forward_rows
from npu.commands.arguments import UsageError
from npu.commands.last_resort import Refusal, guarded
from npu.commands.progress import step
from npu.tables import FitTable
from spec.paths import ROOT
from weights.calibrate import calibration_tokens
from weights.checkpoint import CheckpointError
from weights.corpus import read_corpus, windows
from weights.figures import read_text
from weights.importer import load_checkpoint
from weights.model import QuantizedModel
from weights.outliers import with_outliers
from weights.quantize import quantize_checkpoint
from weights.synthetic import write_checkpoint

Rows = npt.NDArray[np.int64]
Logits = npt.NDArray[Any]

CHECKPOINTS = ROOT / "weights" / "checkpoints"
MAX_LOSS, MIN_AGREEMENT = 0.006, 0.94
"""Bars: bits per byte above float32, and share of equal top-1 tokens."""
OUTLIERS_OF, OUTLIER_MAX_LOSS, OUTLIER_AGREEMENT = "gpt2-tiny", 0.005, 0.88
"""The model that is also measured with outlier channels, and its bars."""
OUTLIER_WINDOWS = 32
"""Windows of calibration text that outlier channels are fitted on."""
CONTEXT = 128
"""Positions of the models whose narrow formats are measured."""


class QualityError(RuntimeError):
    """Something that measuring needs is missing."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to be measured: a checkpoint's folder, and the bars."""

    name: str
    folder: Path
    max_loss: float = MAX_LOSS
    min_agreement: float = MIN_AGREEMENT


def float_network(folder: Path) -> Callable[[Rows], Logits]:
    """Return the float32 network of a folder as transformers computes it: (R, T) to (R, T, V)."""
    try:
        import torch
        from transformers import AutoModelForCausalLM
        from transformers.utils import logging
    except ImportError as error:
        raise QualityError(
            f"{error.name} is missing, needed is the group oracles: make quality"
        ) from error
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    network = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    network.eval()
    torch.set_num_threads(1)  # `compare` has its own

    def logits(rows: Rows) -> Logits:
        with torch.inference_mode():
            result: Logits = network(torch.from_numpy(rows)).logits.numpy()
        return result

    return logits


def integer_network(model: QuantizedModel) -> Callable[[Rows], Logits]:
    """Return the integer network: rows (R, T) to int16 logits (R, T, V) in real units, float64."""
    unit = model.scales["logits"]
    return lambda rows: forward_rows(model, rows) * unit


def compare(
    subject: Subject,
    family: str,
    rows: Rows,
    networks: tuple[Callable[[Rows], Logits], Callable[[Rows], Logits]],
    advance: Callable[[int], object] = lambda _: None,
) -> Quality:
    """Run the float and the integer network on rows (R, T) of tokens and compare their logits.

    `advance` is called with the number of rows that were done.
    """
    started = time.monotonic()

    def compared(part: Rows) -> tuple[float, float, int]:
        floats, integers = (network(part) for network in networks)
        equal = int((floats.argmax(axis=-1) == integers.argmax(axis=-1)).sum())
        return total_bits(floats, part), total_bits(integers, part), equal

    float_bits, integer_bits, equal = np.sum(by_parts(compared, rows, advance), axis=0)
    return Quality(
        model=subject.name,
        family=family,
        windows=len(rows),
        tokens=len(rows) * (rows.shape[1] - 1),
        float_bits=float(float_bits) / len(rows),
        integer_bits=float(integer_bits) / len(rows),
        agreement=float(equal) / rows.size,
        max_loss=subject.max_loss,
        min_agreement=subject.min_agreement,
        seconds=round(time.monotonic() - started, 1),
    )


def held_out_rows(context: int, tokens: int | None = None) -> Rows:
    """Return windows (R, context) of held-out text, all or evenly spread.

    Args:
        context: of the model.
        tokens: windows for so many predictions are enough; None for all windows.

    Raises:
        QualityError: the text is too short.
    """
    table = windows(read_corpus().held_out, context)
    if tokens is None:
        return table
    count = -(-tokens // (context - 1))
    if count > len(table):
        raise QualityError(
            f"given {tokens} tokens, allowed at most {len(table) * (context - 1)}, what the "
            f"held-out text has in windows of {context}"
        )
    return table[np.linspace(0, len(table) - 1, count).astype(np.int64)]


def subjects(names: Sequence[str], scratch: Path) -> Iterator[Subject]:
    """Yield the models of the given names; `scratch` holds made ones."""
    for name in names:
        yield Subject(name, CHECKPOINTS / name)
    if OUTLIERS_OF in names:
        checkpoint = load_checkpoint(CHECKPOINTS / OUTLIERS_OF)
        text = calibration_tokens(checkpoint)[:OUTLIER_WINDOWS]
        name = f"{OUTLIERS_OF}, outlier channels"
        folder = scratch / name
        write_checkpoint(with_outliers(checkpoint, text), folder)
        yield Subject(name, folder, OUTLIER_MAX_LOSS, OUTLIER_AGREEMENT)


@contextmanager
def _counted(name: str, total: int) -> Iterator[Callable[[int], object]]:
    """Show how many of `total` windows are done; yield what is to be told of each piece."""
    console = Console(stderr=True)
    if console.is_terminal:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
            task = progress.add_task(name, total=total)
            yield partial(progress.advance, task)
        return
    counts: list[int] = []
    with step(f"measuring {name}", lambda: f"{sum(counts)} of {total} windows", console):
        yield counts.append


def measure(names: Sequence[str], tokens: int | None, scratch: Path) -> list[Quality]:
    """Measure the models of the given names, and show the progress."""
    found = []
    for subject in subjects(names, scratch):
        model = quantize_checkpoint(str(subject.folder))
        rows = held_out_rows(model.shape.context, tokens)
        if int(rows.max()) >= model.shape.vocab:
            raise QualityError(
                f"{subject.name}: given a vocabulary of {model.shape.vocab}, allowed 256 and more: "
                "a token is a byte"
            )
        networks = float_network(subject.folder), integer_network(model)
        with _counted(subject.name, len(rows)) as advance:
            found.append(compare(subject, model.shape.family, rows, networks, advance))
    return found


def render(found: Sequence[Quality]) -> FitTable:
    """Return the figures as a table."""
    table = FitTable(title="integer network against float32 on held-out text")
    table.name("model")
    for head in ("tokens", "float32", "integer", "bits per byte", "top-1", "bars"):
        table.figure(head)
    for one in found:
        bars = f"{one.max_loss:+.1%}" + (f", {one.min_agreement:.0%}" if one.min_agreement else "")
        table.add_row(
            one.model,
            str(one.tokens),
            f"{one.float_bits:.4f}",
            f"{one.integer_bits:.4f}",
            f"{one.loss:+.2%}",
            f"{one.agreement:.2%}",
            bars + (" MISSED" if one.misses else ""),
        )
    return table


def conclude(found: Sequence[Quality], formats: Sequence[FormatQuality] = ()) -> int:
    """Print tables and missed bars; return the exit status."""
    Console(width=110).print(render(found))
    if formats:
        Console(width=130).print(render_formats(list(formats)))
    for one in found:
        for miss in one.misses:
            print(f"quality: {one.model}: {miss}")
    for narrow in formats:
        for miss in narrow.misses:
            print(f"quality: {narrow.figures.model}: {miss}")
    return 1 if any(one.misses for one in found) or any(o.misses for o in formats) else 0


def formats_measured(*, full: bool) -> list[FormatQuality]:
    """Measure the narrow formats, and show the progress."""
    subjects_of_formats = list(format_subjects(full=full))
    rows = held_out_rows(CONTEXT, TOKENS)
    with _counted("narrow formats", len(rows) * len(subjects_of_formats)) as advance:
        return measure_formats(subjects_of_formats, rows, advance)


def _run(given: argparse.Namespace) -> int:
    """Measure, save, print, publish; return the exit status."""
    whole = given.tokens is None and not given.models
    full = given.tier == "full"
    try:
        names = pages.check_request(given.models, given.tokens, given.publish, given.tier)
        with tempfile.TemporaryDirectory() as scratch:
            found = measure(names, given.tokens, Path(scratch))
        formats = formats_measured(full=full) if whole else []
    except (UsageError, QualityError, CheckpointError) as error:
        raise Refusal(str(error)) from error
    save(tuple(found), tuple(formats))
    status = conclude(found, formats)
    figures = [one.figures for one in found]
    if given.publish and not status:
        for path in [*publish_formats(formats), *pages.publish(figures)]:
            print(f"written: {path.relative_to(ROOT)}")
    elif whole:
        stale = pages.stale(figures, full=full)
        if pages.text_here().sha256 == read_text().sha256:
            stale += stale_formats(formats, full=full)
        print("\n".join(stale) or "README and model cards publish these figures")
        status |= bool(stale)
    return status


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(prog="dev.quality", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--tokens", type=int, help="predicted tokens, at least; default all")
    parser.add_argument("--tier", default="full", help=", ".join(pages.TIERS))
    parser.add_argument("--publish", action="store_true", help="write README, cards, quality.json")
    parser.add_argument("--debug", action="store_true", help="show tracebacks")
    parser.add_argument("models", nargs="*", help="names in weights/checkpoints; default all")
    given = parser.parse_args(argv)
    return guarded("quality", lambda: _run(given), debug=given.debug)


if __name__ == "__main__":
    sys.exit(main())
