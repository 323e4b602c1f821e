# SPDX-License-Identifier: Apache-2.0
"""`npu generate`: a prompt goes in, text comes out of the simulated chip, and is checked."""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console

from golden.session import GoldenSession
from npu.commands.load_model import Loaded, cache_text, shape_text, text_room
from npu.commands.progress import step
from npu.commands.text_display import display
from npu.compiler import ideal
from npu.compiler.model import Place
from npu.driver.generate import PromptPlan
from npu.driver.sampling import Sampler
from npu.planner.placement import Placement
from npu.tables import FitTable, pairs
from tb.bench.knobs import Knobs
from tb.models.simulate_generation import Simulated, simulate
from tb.run import build
from weights.tokenizer import TextStream, text_after

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
        prompt: tokens of the prompt.
        text: of the generated tokens.
        cycles, ideal_cycles: all programs together, and what bus and array allow.
        mismatch: what differs from golden, "" if nothing does.
    """

    simulated: Simulated
    prompt: int
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


def check_sampling(request: Request) -> None:
    """Raise SamplingError for settings that make no sense with any model."""
    Sampler(1.0, request.temperature, request.top_k, request.seed)


def check_request(loaded: Loaded, request: Request) -> None:
    """Raise what `run` would raise for a request that makes no sense, before anything is built."""
    _prepared(loaded, request)


def _prepared(
    loaded: Loaded, request: Request
) -> tuple[list[int], dict[str, float | int] | None, Placement, PromptPlan]:
    ids = loaded.ids(request.prompt)
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
    least = ideal_cycles(loaded, len(ids), request.tokens, sampled=sampling is not None)
    stream = TextStream(loaded.tokenizer, ids)
    with display(stream, request.prompt, request.tokens, console) as shown:
        simulated = simulate(
            configuration,
            plan,
            placement.pieces,
            count=request.tokens,
            end=loaded.end,
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
        simulated,
        len(ids),
        text_after(loaded.tokenizer, ids, simulated.ids),
        sum(simulated.cycles),
        ideal_cycles(loaded, len(ids), done, sampled=sampling is not None),
        mismatch,
    )


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
    simulated: Simulated,
    count: int,
    sampling: dict[str, float | int] | None = None,
) -> str:
    """Return how the chip differs from the integer network, "" if it does not.

    The network is fed with its own tokens: a wrong one is found where it first appears. Up to
    `count` tokens are right, fewer only up to the end token.
    """
    done = len(simulated.ids)
    stop = simulated.ids.index(loaded.end) + 1 if loaded.end in simulated.ids else count
    if done != stop:
        return f"the chip stopped after {done} tokens, expected {stop}"
    session = GoldenSession(loaded.model)
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


def table(loaded: Loaded, report: Report) -> FitTable:
    """Return the figures of a run."""
    simulated = report.simulated
    done = len(simulated.ids)
    kilocycles = report.cycles / max(simulated.seconds, 1e-9) / 1000
    per_token = report.cycles / done
    result = pairs()
    shape = loaded.compiled.shape
    result.add_row("model", shape_text(shape))
    result.add_row("", text_room(shape))
    result.add_row("weights", str(loaded.weights))
    result.add_row("integers", str(loaded.loss))
    result.add_row("stream", f"{len(loaded.compiled.stream):,} bytes")
    result.add_row("K/V cache", cache_text(loaded.compiled.cache))
    result.add_row("tokens", f"{report.prompt} of the prompt, {done} generated")
    result.add_row("end token", loaded.end_text())
    result.add_row("cycles", f"{report.cycles:,}, {per_token:,.0f} per generated token")
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


def record(loaded: Loaded, request: Request, report: Report) -> dict[str, object]:
    """Return the run as JSON has it."""
    return {
        "model": loaded.name,
        "weights": str(loaded.weights),
        "loss": {**asdict(loaded.loss), "share": loaded.loss.share},
        "request": asdict(request),
        "ids": report.simulated.ids,
        "text": report.text,
        "cycles": report.cycles,
        "ideal_cycles": report.ideal_cycles,
        "equal": not report.mismatch,
        "mismatch": report.mismatch,
    }
