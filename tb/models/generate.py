# SPDX-License-Identifier: Apache-2.0
"""`npu generate` and `npu chat`: a prompt goes in, text comes out of the simulated chip, checked.

Golden alone says the same text sooner.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.markup import escape

from golden.session import GoldenSession
from npu.commands.load_model import Loaded, cache_text, shape_text, text_room
from npu.commands.progress import step
from npu.commands.text_display import Display, display
from npu.compiler import ideal
from npu.compiler.model import Place
from npu.driver.generate import MOST_ENDS, PromptPlan, check_count
from npu.driver.sampling import Sampler, SamplingError
from npu.planner.placement import Placement
from npu.tables import FitTable, pairs
from tb.bench.knobs import Knobs
from tb.models.simulate_generation import Simulated, simulate
from tb.run import build
from weights.chat import Prompt, Question
from weights.tokenizer import StoppingStream

Where = Literal["golden", "rtl"]
Settings = dict[str, Any]
"""Arguments of a Sampler, as JSON has them."""
SLACK = 4
"""A program may take this many times its ideal cycles, and START cycles, before it is given up."""
START = 100_000


@dataclass(frozen=True)
class Request:
    """What to generate.

    Attributes:
        prompt: text or question.
        tokens: at most so many.
        temperature: 0 for the largest logit, picked by the chip itself without a penalty.
        top_k, seed, top_p, min_p, repetition_penalty: of sampling on the host.
        stops: texts that end the text, and are no part of it.
        latency: of the memory, in cycles.
        cache: place of the K/V cache.
        on: what generates.
    """

    prompt: Prompt
    tokens: int
    temperature: float = 0.0
    top_k: int = 0
    seed: int = 1
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    stops: tuple[str, ...] = ()
    latency: int = 40
    cache: Place = "auto"
    on: Where = "rtl"

    def settings(
        self, unit: float = 1.0, ids: Sequence[int] = (), cap: float = 0.0
    ) -> Settings | None:
        """Return what the host draws with, behind a prompt; None if the chip picks by itself.

        Raises:
            SamplingError: a setting makes no sense.
        """
        names = ("temperature", "top_k", "seed", "top_p", "min_p", "repetition_penalty")
        settings = {name: getattr(self, name) for name in names}
        settings |= {"unit": unit, "seen": list(ids), "cap": cap}
        Sampler(**settings)
        return settings if self.temperature or self.repetition_penalty != 1 else None


class CheckedText(Protocol):
    """Tokens that are checked, and the logits (tokens, vocab) behind them, if there are any."""

    @property
    def ids(self) -> list[int]:
        """The tokens."""

    @property
    def logits(self) -> npt.NDArray[np.int16] | None:
        """Their logits."""


@dataclass(frozen=True)
class Report:
    """How it went.

    Attributes:
        prompt: tokens of the prompt.
        ids: the generated tokens up to where the text stops, an end token included.
        text: of the generated tokens.
        simulated: what the chip did, None if golden alone generated.
        cycles, ideal_cycles: all programs together, and what bus and array allow.
        mismatch: what differs from golden, "" if nothing does.
    """

    prompt: int
    ids: list[int]
    text: str
    simulated: Simulated | None = None
    cycles: int = 0
    ideal_cycles: int = 0
    mismatch: str = ""


def check_request(loaded: Loaded, request: Request) -> None:
    """Raise what `run` would raise for a request that makes no sense, before anything is built."""
    vocab = loaded.compiled.shape.vocab
    for token in loaded.ends:
        if not 0 <= token < vocab:
            raise SamplingError(f"--stop-token: given {token}, allowed 0 to {vocab - 1}")
    _prepared(loaded, request)


def _prepared(
    loaded: Loaded, request: Request
) -> tuple[list[int], Settings | None, Placement, PromptPlan]:
    ids = loaded.ids(request.prompt)
    sampling = request.settings(loaded.model.scales["logits"], ids, loaded.logit_cap)
    placement = Placement(loaded.compiled)
    plan = placement.plan(ids, logits=sampling is not None, count=request.tokens)
    return ids, sampling, placement, plan


def _shown(
    loaded: Loaded, request: Request, ids: list[int], console: Console
) -> tuple[StoppingStream, AbstractContextManager[Display]]:
    """Return the text of a request and what shows it; a question is not repeated."""
    stream = StoppingStream(loaded.tokenizer, ids, loaded.ends, request.stops)
    before = "" if isinstance(request.prompt, Question) else request.prompt
    return stream, display(stream, before, request.tokens, console)


def run(
    loaded: Loaded, request: Request, configuration: build.Configuration, console: Console
) -> Report:
    """Generate on the RTL, show the text as it appears, and check it.

    Raises:
        PromptError, SamplingError: the prompt, the number of tokens or a setting makes no sense;
            found before anything runs.
        SimulationError: the simulation failed.
    """
    ids, sampling, placement, plan = _prepared(loaded, request)
    least = ideal_cycles(loaded, len(ids), request.tokens, sampled=sampling is not None)
    stream, showing = _shown(loaded, request, ids, console)
    with showing as shown:
        simulated = simulate(
            configuration,
            plan,
            placement.pieces,
            count=request.tokens,
            ends=loaded.ends,
            limit=SLACK * least + START,
            name=f"generate-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}",
            memory_end=placement.end,
            sampling=sampling,
            knobs=Knobs(read_latency=request.latency, write_latency=request.latency, log=0),
            on_tokens=shown.push,
        )
    with step("checking against golden", console=console):
        mismatch = check(loaded, ids, simulated, request.tokens, sampling)
    if not mismatch:  # memory and logs are of use only to find out what went wrong
        shutil.rmtree(simulated.folder, ignore_errors=True)
    done = len(simulated.ids)
    return Report(
        len(ids),
        stream.taken,
        shown.text,
        simulated,
        sum(simulated.cycles),
        ideal_cycles(loaded, len(ids), done, sampled=sampling is not None),
        mismatch,
    )


def run_on_golden(loaded: Loaded, request: Request, console: Console) -> Report:
    """Generate with the integer network alone, in this process; the tokens are the chip's.

    Raises:
        PromptError, SamplingError: the prompt, the number of tokens or a setting makes no sense.
    """
    ids = loaded.ids(request.prompt)
    check_count(request.tokens, loaded.compiled.first + len(ids), loaded.compiled.shape.context)
    sampling = request.settings(loaded.model.scales["logits"], ids, loaded.logit_cap)
    stream, showing = _shown(loaded, request, ids, console)
    with showing as shown:
        for token, _ in islice(golden_tokens(loaded, ids, sampling), request.tokens):
            shown.push([token])
            if stream.over:
                break
    return Report(len(ids), stream.taken, shown.text)


def golden_tokens(
    loaded: Loaded, prompt: list[int], sampling: Settings | None
) -> Iterator[tuple[int, npt.NDArray[np.int16]]]:
    """Yield the tokens of the integer network behind a prompt, each with its logits (V,)."""
    session = GoldenSession(loaded.model)
    sampler = Sampler(**(sampling or {"unit": 1.0, "temperature": 0.0}))
    row = session.prefill(prompt)[-1]
    while True:
        token = sampler.choose(row)
        yield token, row
        row = session.step(token)


def ideal_cycles(loaded: Loaded, prompt: int, count: int, *, sampled: bool = False) -> int:
    """Return the least cycles of a prompt and `count` tokens, by bus and array of the chip."""
    compiled = loaded.compiled
    in_memory, array = compiled.cache.in_memory, compiled.limits.array_dim**2
    first = compiled.first
    behind = first + prompt
    passes = [(prompt, first), *((1, past) for past in range(behind, behind + count - 1))]
    demands = {"in_memory": in_memory, "logits": sampled}
    works = [
        ideal.forward(compiled.shape, rows, past, layouts=compiled.layouts, **demands)
        for rows, past in passes
    ]
    return sum(max(-(-work.macs // array), work.bus_cycles) for work in works)


def check(
    loaded: Loaded,
    prompt: list[int],
    simulated: CheckedText,
    count: int,
    sampling: Settings | None = None,
) -> str:
    """Return how the chip differs from the integer network, "" if it does not.

    The network is fed with its own tokens: a wrong one is found where it first appears. Up to
    `count` tokens are right, fewer only up to an end token: the first one that the model names if
    the chip picks by itself.
    """
    ends = loaded.ends[:MOST_ENDS] if sampling is None else loaded.ends
    done = len(simulated.ids)
    stop = next((at for at, one in enumerate(simulated.ids, 1) if one in ends), count)
    if done != stop:
        return f"the chip stopped after {done} tokens, expected {stop}"
    expected = golden_tokens(loaded, prompt, sampling)
    for index, (token, (right, row)) in enumerate(zip(simulated.ids, expected, strict=False)):
        if simulated.logits is not None and not np.array_equal(simulated.logits[index], row):
            wrong = int(np.argmax(simulated.logits[index] != row))
            return (
                f"token {index}: logit {wrong} is {simulated.logits[index][wrong]}, "
                f"expected {row[wrong]}"
            )
        if token != right:
            return f"token {index} is {token}, expected {right}"
    return ""


def model_pairs(loaded: Loaded) -> FitTable:
    """Return what is the same whatever runs."""
    result = pairs()
    shape = loaded.compiled.shape
    result.add_row("model", shape_text(shape))
    result.add_row("", text_room(shape))
    result.add_row("weights", str(loaded.weights))
    result.add_row("integers", str(loaded.loss))
    result.add_row("stream", f"{len(loaded.compiled.stream):,} bytes")
    result.add_row("K/V cache", cache_text(loaded.compiled.cache))
    return result


def table(loaded: Loaded, report: Report) -> FitTable:
    """Return the figures of a run."""
    result = model_pairs(loaded)
    result.add_row("tokens", f"{report.prompt} of the prompt, {len(report.ids)} generated")
    result.add_row("end token", loaded.end_text())
    simulated = report.simulated
    if simulated is None:
        result.add_row("generated by", "golden, without the chip")
        return result
    done = len(simulated.ids)
    kilocycles = report.cycles / max(simulated.seconds, 1e-9) / 1000
    per_token = report.cycles / done
    result.add_row("cycles", f"{report.cycles:,}, {per_token:,.0f} per generated token")
    if done > len(report.ids):
        result.add_row("", f"tokens behind the end of the text: {done - len(report.ids)}")
    result.add_row(
        "limit",
        f"{report.ideal_cycles:,} cycles for bus and array: "
        f"{report.ideal_cycles / report.cycles:.1%} of it reached",
    )
    result.add_row("simulation", f"{simulated.seconds:.1f} s, {kilocycles:,.0f} kcycles/s")
    result.add_row(
        "RTL = golden",
        report.mismatch
        or "yes, every token" + (" and every logit" if simulated.logits is not None else ""),
    )
    return result


def prompt_text(request: Request) -> str:
    """Return what was asked."""
    return request.prompt if isinstance(request.prompt, str) else request.prompt.text


def tables(
    loaded: Loaded, requests: Sequence[Request], reports: Sequence[Report]
) -> list[FitTable]:
    """Return the figures of several prompts: of the model, and a row for each prompt."""
    result = FitTable()
    result.figure("prompt")
    result.name()
    on_chip = any(report.simulated is not None for report in reports)
    for head in ("tokens", "generated", *(("cycles", "of the limit") if on_chip else ())):
        result.figure(head)
    if on_chip:
        result.text("RTL = golden")
    for number, (request, report) in enumerate(zip(requests, reports, strict=True), 1):
        asked = prompt_text(request)
        cells = [str(number), escape(asked), str(report.prompt), str(len(report.ids))]
        if on_chip:
            reached = f"{report.ideal_cycles / report.cycles:.1%}"
            cells += [f"{report.cycles:,}", reached, report.mismatch or "yes"]
        result.add_row(*cells)
    model = model_pairs(loaded)
    model.add_row("end token", loaded.end_text())
    return [model, result]


def record(loaded: Loaded, request: Request, report: Report) -> dict[str, object]:
    """Return the run as JSON has it."""
    found: dict[str, object] = {
        "model": loaded.name,
        "weights": str(loaded.weights),
        "loss": {**asdict(loaded.loss), "share": loaded.loss.share},
        "request": asdict(request),
        "ends": loaded.ends,
        "ids": report.ids,
        "text": report.text,
    }
    if report.simulated is not None:
        found |= {
            "chip_ids": report.simulated.ids,
            "cycles": report.cycles,
            "ideal_cycles": report.ideal_cycles,
            "equal": not report.mismatch,
            "mismatch": report.mismatch,
        }
    return found
