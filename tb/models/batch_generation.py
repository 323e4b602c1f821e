# SPDX-License-Identifier: Apache-2.0
"""`npu generate --batch` and `--speculate`: passes of several rows on the simulated chip, checked.

The rows of a pass are a token of each of several texts, or a text's last token and guesses.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from npu.commands.load_model import Loaded
from npu.commands.progress import step
from npu.compiler import ideal
from npu.driver.batch import BatchPass
from npu.planner.batch_placement import BatchPlacement
from npu.planner.placement import Placement
from npu.tables import FitTable
from spec.paths import BUILD
from tb.bench.knobs import Knobs
from tb.models import batch_job as inside
from tb.models import generation_job
from tb.models.generate import SLACK, START, Request, check, model_pairs, prompt_text
from tb.models.simulate_generation import memory_bytes, watch
from tb.run import build, runner
from tb.run.registry import BenchTest
from weights.tokenizer import StoppingStream

GREEDY = {"unit": 1.0, "temperature": 0.0}
"""Arguments of a Sampler that takes the largest logit."""
PAIR = np.dtype([("text", "<u4"), ("token", "<u4")])
"""How the job writes what text got what token."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of a text, and the logits (tokens, vocab) that they were picked from."""

    ids: list[int]
    logits: npt.NDArray[np.int16]


@dataclass(frozen=True)
class Text:
    """A text of a batch.

    Attributes:
        request: what was asked for.
        prompt: ids of the prompt.
        ids: the tokens after the prompt, an end token included.
        text: of the tokens, up to where it stops.
        error: why it ended early, "" if it did not.
        mismatch: what differs from golden, "" if nothing does.
    """

    request: Request
    prompt: list[int]
    ids: list[int]
    text: str
    error: str
    mismatch: str


@dataclass(frozen=True)
class BatchReport:
    """How it went.

    Attributes:
        batch: texts that shared a step at most.
        guesses: that a pass verified at most, 0 without.
        texts: in the order of the requests.
        passes: the programs, in their order.
        ideal_cycles: what bus and array allow for all of them.
        seconds: processor time of the simulation.
    """

    batch: int
    guesses: int
    texts: list[Text]
    passes: list[BatchPass]
    ideal_cycles: int
    seconds: float


def check_requests(
    loaded: Loaded, requests: Sequence[Request], batch: int, guesses: int
) -> BatchPlacement:
    """Return where all is put. Raises what `run` would raise for requests that make no sense."""
    placement, positions = Placement(loaded.compiled), 0
    programs = BatchPlacement(placement, batch, rows=guesses + 1)
    for number, request in enumerate(requests, 1):
        ids = loaded.ids(request.prompt)
        try:
            programs.check(ids, request.tokens)
        except ValueError as error:
            raise type(error)(f"prompt {number} of {len(requests)}: {error}") from None
        positions = max(positions, programs.first + len(ids) + request.tokens - 1)
    return BatchPlacement(placement, batch, positions, guesses + 1)


def run(
    loaded: Loaded,
    requests: Sequence[Request],
    batch: int,
    guesses: int,
    configuration: build.Configuration,
    console: Console,
) -> BatchReport:
    """Generate on the RTL, and check every token and every logit.

    Raises:
        PromptError, SamplingError, CompileError: something does not fit, found before it runs.
        SimulationError: the simulation failed.
    """
    programs = check_requests(loaded, requests, batch, guesses)
    prompts = [loaded.ids(request.prompt) for request in requests]
    unit = loaded.model.scales["logits"]
    settings = [
        request.settings(unit, ids, loaded.logit_cap) or GREEDY
        for request, ids in zip(requests, prompts, strict=True)
    ]
    folder = BUILD / "runs" / configuration.folder.name / f"batch-{time.time_ns()}-{os.getpid()}"
    size = memory_bytes([], programs.end)
    test = BenchTest(inside.__name__, inside.generate_texts.name, "generates texts", size)
    job = runner.Job(test, configuration, place=folder)
    runner.prepare(job)
    (folder / inside.MODEL).write_bytes(loaded.compiled.packed())
    latency = requests[0].latency
    given = {
        "batch": batch,
        "guesses": guesses,
        "positions": programs.positions,
        "requests": [
            {"prompt": ids, "count": request.tokens, "ends": list(loaded.ends)}
            for request, ids in zip(requests, prompts, strict=True)
        ],
        "sampling": settings,
        "limit": _limit(loaded, batch),
        "knobs": asdict(Knobs(read_latency=latency, write_latency=latency, log=0)),
    }
    (folder / generation_job.REQUEST).write_text(json.dumps(given), encoding="utf-8")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console, transient=True) as progress:
        task = progress.add_task("tokens", total=sum(request.tokens for request in requests))
        path = folder / generation_job.TOKENS
        watch(job, lambda: progress.update(task, completed=_written(path)))
    result = json.loads((folder / generation_job.RESULT).read_text(encoding="utf-8"))
    chosen = _chosen(folder, len(requests), loaded.compiled.shape.vocab)
    with step("checking against golden", console=console):
        texts = [
            text_of(loaded, request, ids, setting, tokens, told["error"])
            for request, ids, setting, tokens, told in zip(
                requests, prompts, settings, chosen, result["texts"], strict=True
            )
        ]
    if not any(text.mismatch for text in texts):  # of use only to find out what went wrong
        shutil.rmtree(folder, ignore_errors=True)
    passes = [BatchPass(**each) for each in result["passes"]]
    least = ideal_cycles(loaded, passes, guesses)
    return BatchReport(batch, guesses, texts, passes, least, result["seconds"])


def table(loaded: Loaded, report: BatchReport) -> list[FitTable]:
    """Return the figures of a batch: of the model, of the passes, and a row for each text."""
    found = model_pairs(loaded)
    found.add_row("end token", loaded.end_text())
    cycles = sum(each.cycles for each in report.passes)
    tokens = sum(len(text.ids) for text in report.texts)
    steps = [each for each in report.passes if each.positions]
    if report.guesses:
        right = tokens - len(report.texts) - len(steps)
        tried = sum(len(each.positions) - 1 for each in steps)
        each = (tokens - len(report.texts)) / max(len(steps), 1)
        found.add_row("passes", f"{len(steps):,}, {each:.2f} tokens each")
        found.add_row("guesses", f"up to {report.guesses} in a pass; {right:,} of {tried:,} right")
    else:
        rows = sum(len(each.positions) for each in steps) / max(len(steps), 1)
        taken = sum(each.cycles for each in steps)
        found.add_row("batch", f"{report.batch} texts at a time, {len(report.texts)} in all")
        found.add_row("steps", f"{len(steps):,} of {rows:.1f} texts, {taken:,} cycles")
    found.add_row("cycles", f"{cycles:,}, {cycles / max(tokens, 1):,.0f} per generated token")
    share = report.ideal_cycles / cycles
    found.add_row(
        "limit", f"{report.ideal_cycles:,} cycles for bus and array: {share:.1%} of it reached"
    )
    speed = cycles / max(report.seconds, 1e-9) / 1000
    found.add_row("simulation", f"{report.seconds:.1f} s, {speed:,.0f} kcycles/s")
    texts = FitTable()
    texts.figure("prompt")
    texts.name()
    texts.figure("tokens")
    texts.figure("generated")
    texts.text("RTL = golden")
    for number, text in enumerate(report.texts, 1):
        asked = prompt_text(text.request)
        equal = text.mismatch or text.error or "yes, every token and every logit"
        counts = str(len(text.prompt)), str(len(text.ids))
        texts.add_row(str(number), escape(asked), *counts, equal)
    return [found, texts]


def record(loaded: Loaded, report: BatchReport) -> dict[str, object]:
    """Return the batch as JSON has it."""
    return {
        "model": loaded.name,
        "weights": str(loaded.weights),
        "batch": report.batch,
        "guesses": report.guesses,
        "ideal_cycles": report.ideal_cycles,
        "passes": [asdict(each) for each in report.passes],
        "runs": [asdict(text) for text in report.texts],
    }


def _limit(loaded: Loaded, batch: int) -> int:
    """Return the cycles that a program may take."""
    shape = loaded.compiled.shape
    work = ideal.batch(shape, [shape.context - 1] * batch, loaded.compiled.layouts)
    prompt = ideal.forward(shape, shape.context, 0, in_memory=True)
    return SLACK * (work.ideal_cycles + prompt.ideal_cycles) + START


def _written(path: Path) -> int:
    return path.stat().st_size // PAIR.itemsize if path.exists() else 0


def _chosen(folder: Path, requests: int, vocab: int) -> list[Tokens]:
    """Return the tokens of each text with the logits that they were picked from."""
    pairs_of_ids = np.fromfile(folder / generation_job.TOKENS, PAIR)
    logits = np.fromfile(folder / generation_job.LOGITS, "<i2").reshape(-1, vocab)
    found = [pairs_of_ids["text"] == number for number in range(requests)]
    return [Tokens(pairs_of_ids["token"][one].tolist(), logits[one]) for one in found]


def ideal_cycles(loaded: Loaded, passes: Sequence[BatchPass], guesses: int) -> int:
    """Return the least cycles of the programs, by bus and array of the chip."""
    compiled = loaded.compiled
    array = compiled.limits.array_dim**2
    in_memory, layouts = compiled.cache.in_memory, compiled.layouts
    forward = partial(ideal.forward, compiled.shape, in_memory=in_memory, layouts=layouts)
    works = []
    for each in passes:
        rows = each.positions
        if not rows:
            works.append(forward(each.prompt, compiled.first, logits=1))
        elif guesses:
            works.append(forward(len(rows), rows[0], logits=len(rows)))
        else:
            works.append(ideal.batch(compiled.shape, rows, layouts))
    return sum(max(-(-work.macs // array), work.bus_cycles) for work in works)


def text_of(
    loaded: Loaded,
    request: Request,
    prompt: list[int],
    settings: dict[str, Any],
    tokens: Tokens,
    error: str | None,
) -> Text:
    """Return a text as it came, and how it differs from what the integer network says alone."""
    ids = tokens.ids
    stream = StoppingStream(loaded.tokenizer, prompt, loaded.ends, request.stops)
    text = stream.push(ids) + stream.finish()
    count = request.tokens if error is None else len(ids)
    mismatch = check(loaded, prompt, tokens, count, settings)
    return Text(request, prompt, ids, text, error or "", mismatch)
