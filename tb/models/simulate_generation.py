# SPDX-License-Identifier: Apache-2.0
"""Runs a generation plan in the simulator while the caller watches its tokens appear."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from npu.driver.generate import PromptPlan
from spec.paths import BUILD
from tb.bench.knobs import Knobs
from tb.models import generation_job as inside
from tb.run import build, processes, runner
from tb.run.registry import MEMORY_MIB, BenchTest

NOT_YET = 0xFFFF_FFFF
"""What lies where a token will be written."""
POLL_S = 0.1
PAGE = 1 << 12

Pieces = Sequence[tuple[int, bytes]]
"""What lies in memory: address and bytes of each piece."""


class SimulationError(RuntimeError):
    """The simulation did not end with a result."""


@dataclass(frozen=True)
class Simulated:
    """What the chip did.

    Attributes:
        ids: the generated tokens.
        cycles: of each program, in order.
        counters: performance counters of each program, by name.
        seconds: processor time of the simulation.
        logits: (tokens, vocab) int16 that were sampled from; None for greedy generation.
        folder: the run's folder.
    """

    ids: list[int]
    cycles: list[int]
    counters: list[dict[str, Any]]
    seconds: float
    logits: npt.NDArray[np.int16] | None
    folder: Path


def memory_bytes(pieces: Pieces, end: int) -> int:
    """Return the size of a memory that holds the pieces and everything below `end`."""
    last = max([end, *(address + len(data) for address, data in pieces)])
    return max(MEMORY_MIB << 20, -(-last // PAGE) * PAGE)


def _stage(folder: Path, pieces: Pieces, plan: PromptPlan, count: int) -> None:
    memory = np.memmap(folder / "memory.bin", dtype=np.uint8, mode="r+")
    for address, data in pieces:
        flat = np.frombuffer(data, np.uint8)
        memory[address : address + flat.size] = flat
    memory[plan.tokens : plan.tokens + 4 * count].view("<u4")[:] = NOT_YET
    memory.flush()


def _seen(folder: Path, plan: PromptPlan, count: int, single_steps: bool) -> list[int]:
    """Return the tokens that there are by now."""
    if single_steps:
        path = folder / inside.TOKENS
        data = path.read_bytes() if path.exists() else b""
        return [int(i) for i in np.frombuffer(data[: len(data) // 4 * 4], "<u4")]
    memory = np.memmap(folder / "memory.bin", dtype=np.uint8, mode="r")
    words = memory[plan.tokens : plan.tokens + 4 * count].view("<u4")
    return [int(word) for word in words[: int(np.argmax(np.append(words, NOT_YET) == NOT_YET))]]


def watch(job: runner.Job, look: Callable[[], None]) -> None:
    """Run a job whose folder is prepared; `look` is called all the while, and once at the end.

    Raises:
        SimulationError: the simulation failed; the message says where its log is.
    """
    started = time.monotonic()
    process = runner.launch(job)
    try:
        while process.poll() is None:
            look()
            time.sleep(POLL_S)
        look()
    finally:
        processes.kill(process)
    outcome = runner.outcome(job, process.returncode, time.monotonic() - started)
    if not outcome.passed:
        raise SimulationError(f"{outcome.message} (log: {job.folder / runner.LOG})")


def simulate(
    configuration: build.Configuration,
    plan: PromptPlan,
    pieces: Pieces,
    *,
    count: int,
    ends: Sequence[int],
    limit: int,
    name: str,
    memory_end: int,
    sampling: dict[str, Any] | None = None,
    stepped: bool = False,
    knobs: Knobs | None = None,
    on_tokens: Callable[[list[int]], None] | None = None,
) -> Simulated:
    """Run a plan on the RTL.

    Args:
        configuration: a built model.
        plan: what runs.
        pieces: what lies in memory, (address, bytes).
        count: tokens at most.
        ends: tokens after which it is over; greedy generation knows the first alone.
        limit: cycles that one program may take.
        name: of the run's folder in build/runs.
        memory_end: first address that nobody uses.
        sampling: arguments of `npu.driver.sampling.Sampler`; None for greedy generation.
        stepped: start the chip once per token, without logits; a plan with prompt and step.
        knobs: the memory's behaviour.
        on_tokens: told the new tokens as they appear.

    Raises:
        SimulationError: the simulation failed; the message says where its log is.
    """
    size = memory_bytes(pieces, memory_end)
    test = BenchTest(inside.__name__, inside.generate_text.name, "generates text", size)
    folder = BUILD / "runs" / configuration.folder.name / name
    job = runner.Job(test, configuration, place=folder)
    runner.prepare(job)
    _stage(folder, pieces, plan, count)
    request = {
        "plan": plan.to_json(),
        "count": count,
        "ends": list(ends),
        "limit": limit,
        "sampling": sampling,
        "stepped": stepped,
        "knobs": asdict(knobs or Knobs(log=0)),
    }
    (folder / inside.REQUEST).write_text(json.dumps(request), encoding="utf-8")
    shown = 0

    def show() -> None:
        nonlocal shown
        seen = _seen(folder, plan, count, stepped or sampling is not None)
        if len(seen) > shown and on_tokens is not None:
            on_tokens(seen[shown:])
        shown = len(seen)

    watch(job, show)
    result = json.loads((folder / inside.RESULT).read_text(encoding="utf-8"))
    logits = None
    if sampling is not None:
        logits = np.fromfile(folder / inside.LOGITS, "<i2").reshape(-1, plan.vocab)
    return Simulated(
        result["ids"], result["cycles"], result["counters"], result["seconds"], logits, folder
    )
