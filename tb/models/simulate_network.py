# SPDX-License-Identifier: Apache-2.0
"""Runs a plan in the simulator."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from npu.driver.command.product import Product
from npu.driver.counters import ChipCounters
from npu.graph.form import Array
from npu.runtime.plan import Action, Plan, PlannedSegment
from npu.runtime.plan_files import files_of
from npu.runtime.prepare import prepare
from npu.runtime.replay import By
from spec.paths import BUILD
from tb.bench import logs
from tb.bench.knobs import Knobs
from tb.models import network_job as inside
from tb.models.simulate_generation import SimulationError
from tb.run import build, processes, runner
from tb.run.registry import MEMORY_MIB, BenchTest

POLL_S = 0.1
START, PER_IDEAL = 1_000_000, 20
"""Cycles that a segment may take: these, and so many for each of its least ones."""


@dataclass(frozen=True)
class SimulatedNetwork:
    """What the chip did.

    Attributes:
        tensors: all that crossed between host and chip, and what segments that were started by
            registers have left for others, by name in the order of the steps.
        counters: of each segment that was started by registers, in order.
        products: what the command port has done, by the name of the operation.
        cycles: of each operation with instructions, from the end of the one before to its own;
            none of a decoder.
        seconds: processor time of the simulation.
    """

    tensors: dict[str, Array]
    counters: tuple[ChipCounters, ...]
    products: dict[str, Product]
    cycles: dict[str, int]
    seconds: float


def simulate(
    configuration: build.Configuration,
    plan: Plan,
    values: Mapping[str, Array],
    *,
    ideal: int,
    name: str,
    by: By = "registers",
    knobs: Knobs | None = None,
    on_segment: Callable[[int], None] | None = None,
) -> SimulatedNetwork:
    """Run a plan on the RTL.

    Args:
        configuration: a built model of the plan's limits.
        plan: what runs.
        values: its inputs, those of states as well, and what its host makes, by name.
        ideal: least cycles of the longest segment.
        name: of the run's folder in build/runs.
        by: how segments start.
        knobs: the memory's behaviour.
        on_segment: told how many segments have ended that were started by registers.

    Raises:
        SimulationError: the simulation failed; the message says where its log is.
    """
    end = prepare(plan).end
    size = max(MEMORY_MIB << 20, -(-end // (1 << 20)) * (1 << 20))
    test = BenchTest(inside.__name__, inside.run_plan.name, "runs a network", size)
    folder = BUILD / "runs" / configuration.folder.name / name
    job = runner.Job(test, configuration, place=folder)
    runner.prepare(job)
    (folder / inside.FOLDER).mkdir(exist_ok=True)
    for file, data in files_of(plan).items():
        (folder / inside.FOLDER / file).write_bytes(data)
    made = [name for step in plan.steps if step.action is Action.HOST for name in step.writes]
    names = [*plan.graph.inputs, *made]
    given: dict[str, Any] = {f"t{i}": values[name] for i, name in enumerate(names)}
    np.savez(folder / inside.GIVEN, **given)
    request = {
        "names": names,
        "by": by,
        "limit": START + PER_IDEAL * ideal,
        "knobs": asdict(knobs or Knobs()),
    }
    (folder / inside.REQUEST).write_text(json.dumps(request), encoding="utf-8")
    for left in (inside.FOUND, inside.RESULT, inside.PROGRESS):
        (folder / left).unlink(missing_ok=True)
    _run(job, folder, on_segment)
    result = json.loads((folder / inside.RESULT).read_text(encoding="utf-8"))
    with np.load(folder / inside.FOUND) as stored:
        tensors = {one: stored[f"t{i}"] for i, one in enumerate(result["names"])}
    products = {
        str(step.of): Product(tensors[step.writes[0]], **result["products"][str(step.of)])
        for step in plan.products.values()
    }
    counters = tuple(_counters(one) for one in result["counters"])
    cycles = {}
    if plan.decoder is None:
        launched = [plan.segments[number] for number in plan.launches]
        cycles = operation_cycles(launched, np.fromfile(folder / "events.bin", logs.EVENT))
    runner.discard_images(job)
    return SimulatedNetwork(tensors, counters, products, cycles, result["seconds"])


def _counters(record: dict[str, Any]) -> ChipCounters:
    lists = {key: tuple(record[key]) for key in ("busy", "stall")}
    return ChipCounters(**{**record, **lists})


def _run(job: runner.Job, folder: Path, on_segment: Callable[[int], None] | None) -> None:
    started = time.monotonic()
    process = runner.launch(job)
    shown = 0
    try:
        while process.poll() is None:
            ended = _ended(folder)
            if ended > shown and on_segment is not None:
                on_segment(ended)
            shown = ended
            time.sleep(POLL_S)
    finally:
        processes.kill(process)
    outcome = runner.outcome(job, process.returncode, time.monotonic() - started)
    if not outcome.passed:
        raise SimulationError(f"{outcome.message} (log: {folder / runner.LOG})")


def _ended(folder: Path) -> int:
    try:
        return int((folder / inside.PROGRESS).read_text(encoding="utf-8") or 0)
    except OSError:
        return 0


def operation_cycles(segments: Sequence[PlannedSegment], events: logs.Records) -> dict[str, int]:
    """Return the cycles of each operation, from the end of the one before to its own.

    The first of a segment begins when the segment's first word is dispatched.

    Args:
        segments: that ran, in order.
        events: all of them, (n,) `logs.EVENT`.
    """
    dispatched = events["kind"] == logs.DISPATCH
    words = events["instr"][dispatched].astype(np.int64)
    # Programs have no loops: where the index does not grow the next program begins.
    begins = np.flatnonzero(dispatched)[np.flatnonzero(np.diff(words, prepend=1 << 40) <= 0)]
    ends_of_programs = [*begins, len(events)][1:]
    cycles: dict[str, int] = {}
    for segment, first, last in zip(segments, begins, ends_of_programs, strict=True):
        own = events[first:last]
        before = int(own["cycle"][0])
        names = segment.owners
        ends: dict[str, int] = {}
        done = own[own["kind"] == logs.DONE]
        for word, cycle in zip(done["instr"].tolist(), done["cycle"].tolist(), strict=True):
            ends[names[word]] = max(ends.get(names[word], 0), cycle)
        for name in segment.first_word:
            end = ends.get(name, before)
            cycles[name] = max(0, end - before)
            before = max(before, end)
    return cycles
