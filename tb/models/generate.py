# SPDX-License-Identifier: Apache-2.0
"""`npu generate`: a prompt goes in, text comes out of the simulated chip, and is checked."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from golden.session import Session
from npu.compiler.model import Place
from npu.driver.generate import Plan
from npu.driver.placement import Placement
from npu.driver.sampling import Sampler
from tb import build
from tb.benchmarks import ideal
from tb.knobs import Knobs
from tb.models.load import Loaded
from tb.models.simulate import Simulated, simulate
from weights.tokenizer import TextStream

SLACK = 4
"""A program may take this many times its ideal cycles, and START cycles, before it is given up."""
START = 100_000


@dataclass(frozen=True)
class Request:
    """What to generate.

    Attributes:
        prompt: text.
        tokens: at most so many.
        temperature: 0 for greedy generation by the chip itself.
        top_k, seed: of sampling on the host.
        latency: of the memory, in cycles.
        cache: place of the K/V cache.
    """

    prompt: str
    tokens: int
    temperature: float = 0.0
    top_k: int = 0
    seed: int = 1
    latency: int = 40
    cache: Place = "auto"


@dataclass(frozen=True)
class Report:
    """How it went.

    Attributes:
        simulated: what the chip did.
        text: of the generated tokens.
        cycles, ideal_cycles: all programs together, and what bus and array allow.
        mismatch: what differs from golden, "" if nothing does.
    """

    simulated: Simulated
    text: str
    cycles: int
    ideal_cycles: int
    mismatch: str


def _sampling(loaded: Loaded, request: Request) -> dict[str, float | int] | None:
    if request.temperature == 0:
        return None
    settings: dict[str, float | int] = {
        "unit": loaded.model.scales["logits"],
        "temperature": request.temperature,
        "top_k": request.top_k,
        "seed": request.seed,
    }
    Sampler(**settings)  # type: ignore[arg-type]  # refused before anything runs
    return settings


def check_request(loaded: Loaded, request: Request) -> None:
    """Raise what `run` would raise for a request that makes no sense, before anything is built."""
    _prepared(loaded, request)


def _prepared(
    loaded: Loaded, request: Request
) -> tuple[list[int], dict[str, float | int] | None, Placement, Plan]:
    ids = loaded.tokenizer.encode(request.prompt)
    sampling = _sampling(loaded, request)
    placement = Placement(loaded.compiled)
    plan = placement.plan(ids, logits=sampling is not None)
    plan.check_count(request.tokens)
    return ids, sampling, placement, plan


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
    least = _ideal(loaded, len(ids), request.tokens, sampled=sampling is not None)
    with _display(loaded, request, console) as display:
        simulated = simulate(
            configuration,
            plan,
            placement.pieces,
            count=request.tokens,
            end=loaded.tokenizer.end,
            limit=SLACK * least + START,
            name=f"generate-{time.strftime('%Y%m%d-%H%M%S')}",
            memory_end=placement.end,
            sampling=sampling,
            knobs=Knobs(read_latency=request.latency, write_latency=request.latency, log=0),
            on_tokens=display.push,
        )
    with console.status("checking against golden"):
        mismatch = check(loaded, ids, simulated, sampling)
    done = len(simulated.ids)
    return Report(
        simulated,
        loaded.tokenizer.decode(simulated.ids),
        sum(simulated.cycles),
        _ideal(loaded, len(ids), done, sampled=sampling is not None),
        mismatch,
    )


def _ideal(loaded: Loaded, prompt: int, count: int, *, sampled: bool) -> int:
    in_memory, shape = loaded.compiled.cache.in_memory, loaded.compiled.shape
    passes = [(prompt, 0), *((1, past) for past in range(prompt, prompt + count - 1))]
    return sum(
        ideal.forward(shape, rows, past, in_memory=in_memory, logits=sampled).ideal_cycles
        for rows, past in passes
    )


def check(
    loaded: Loaded,
    prompt: list[int],
    simulated: Simulated,
    sampling: dict[str, float | int] | None,
) -> str:
    """Return how the chip differs from the integer network, "" if it does not.

    The network is fed with its own tokens: a wrong one is found where it first appears.
    """
    session = Session(loaded.model)
    row = session.prefill(prompt)[-1]
    sampler = None if sampling is None else Sampler(**sampling)  # type: ignore[arg-type]
    for index, token in enumerate(simulated.ids):
        if simulated.logits is not None and not np.array_equal(simulated.logits[index], row):
            wrong = int(np.argmax(simulated.logits[index] != row))
            return (
                f"token {index}: logit {wrong} is {simulated.logits[index][wrong]}, "
                f"expected {row[wrong]}"
            )
        expected = int(row.argmax()) if sampler is None else sampler.choose(row)
        if token != expected:
            return f"token {index} is {token}, expected {expected}"
        if index + 1 < len(simulated.ids):
            row = session.step(token)
    return ""


class _Display:
    """The growing text and a bar of tokens; plain text where nobody watches."""

    def __init__(self, loaded: Loaded, request: Request, console: Console) -> None:
        self._stream = TextStream(loaded.tokenizer)
        self._text = Text(request.prompt, style="dim")
        self._progress = Progress(
            TextColumn("[progress.description]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=console,
        )
        self._task = self._progress.add_task("tokens", total=request.tokens)
        self._live: Live | None = None
        if console.is_terminal:
            self._live = Live(Group(self._text, self._progress), console=console, transient=True)
        self.prompt = request.prompt

    def push(self, ids: list[int]) -> None:
        """Show more tokens."""
        piece = self._stream.push(ids)
        self._text.append(piece, style="not dim")
        self._progress.advance(self._task, len(ids))
        if self._live is None:
            sys.stdout.write(piece)
            sys.stdout.flush()

    def start(self) -> None:
        if self._live is not None:
            self._live.start()
        else:
            sys.stdout.write(self.prompt)
            sys.stdout.flush()

    def stop(self) -> None:
        """End with the whole text on standard output."""
        rest = self._stream.finish()
        self._text.append(rest, style="not dim")
        if self._live is not None:
            self._live.stop()
            sys.stdout.write(self._text.plain)
        else:
            sys.stdout.write(rest)
        sys.stdout.write("\n")
        sys.stdout.flush()


@contextmanager
def _display(loaded: Loaded, request: Request, console: Console) -> Iterator[_Display]:
    display = _Display(loaded, request, console)
    display.start()
    try:
        yield display
    finally:
        display.stop()


def table(loaded: Loaded, report: Report) -> Table:
    """Return the figures of a run."""
    simulated = report.simulated
    done = len(simulated.ids)
    kilocycles = report.cycles / max(simulated.seconds, 1e-9) / 1000
    result = Table(show_header=False, box=None, pad_edge=False)
    result.add_row("model", loaded.summary())
    result.add_row("tokens", f"{done}")
    result.add_row("cycles", f"{report.cycles:,}  ({report.cycles / done:,.0f} per token)")
    result.add_row(
        "limit of bus and array",
        f"{report.ideal_cycles:,} cycles: {report.ideal_cycles / report.cycles:.1%} of it reached",
    )
    result.add_row("simulation", f"{simulated.seconds:.1f} s, {kilocycles:,.0f} kcycles/s")
    result.add_row(
        "RTL = golden",
        report.mismatch
        or "yes, every token" + (" and every logit" if simulated.logits is not None else ""),
    )
    return result


def record(loaded: Loaded, request: Request, report: Report) -> dict[str, object]:
    """Return the run as JSON has it."""
    return {
        "model": loaded.name,
        "request": asdict(request),
        "ids": report.simulated.ids,
        "text": report.text,
        "cycles": report.cycles,
        "ideal_cycles": report.ideal_cycles,
        "equal": not report.mismatch,
        "mismatch": report.mismatch,
    }
