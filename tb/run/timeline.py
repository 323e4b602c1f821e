# SPDX-License-Identifier: Apache-2.0
"""From the logs of a traced run to a timeline: who worked on what when, and who waited for what.

Times are cycles since the start of the program. In the Chrome format, which chrome://tracing and
ui.perfetto.dev open, a cycle is shown as a microsecond.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from npu.asm import disassemble
from spec.isa import Engine, Instruction, Opcode
from tb.bench import logs

ENGINES = tuple(Engine(number).name.lower() for number in range(logs.SEQUENCER))
TRACKS = (*ENGINES, "sequencer")


@dataclass(frozen=True)
class EngineWait:
    """From `start` up to `end` the track did no work, for `reason` (one of `logs.STATES`)."""

    start: int
    end: int
    reason: str


@dataclass(frozen=True)
class Slice:
    """An instruction in its engine, from when it is the oldest there to its done.

    Attributes:
        instr: word index in the program.
        mnemonic, text: its opcode, and all of it with its prefix operands.
        start, end: cycles; the next one begins at `end` or later.
        dispatched, taken: cycles of dispatch and of leaving the queue.
        waits: within it, in order.
    """

    instr: int
    mnemonic: str
    text: str
    start: int
    end: int
    dispatched: int
    taken: int
    waits: tuple[EngineWait, ...]

    @property
    def name(self) -> str:
        """Short name for pictures."""
        return f"{self.mnemonic} #{self.instr}"

    def waited(self) -> dict[str, int]:
        """Return the cycles of each reason."""
        cycles: dict[str, int] = {}
        for wait in self.waits:
            cycles[wait.reason] = cycles.get(wait.reason, 0) + wait.end - wait.start
        return cycles


@dataclass(frozen=True)
class Timeline:
    """One program.

    Attributes:
        name: of the benchmark.
        cycles: from start to interrupt.
        slices: by engine, in order.
        held: what the sequencer waited for, each with the text of the word that waited.
        sample_cycle: (n,) int64, ends of the samples.
        samples: (n,) `logs.SAMPLE_WORD`.
    """

    name: str
    cycles: int
    slices: dict[str, list[Slice]]
    held: list[tuple[EngineWait, str]]
    sample_cycle: npt.NDArray[np.int64]
    samples: logs.Records = field(repr=False)


def _text(program: Sequence[Instruction], instr: int) -> str:
    prefixed = instr > 0 and program[instr - 1].opcode == Opcode.PFX
    return disassemble(list(program[instr - prefixed : instr + 1])).strip()


def _states(trace: logs.Records, track: int, end: int) -> list[tuple[int, int, int, int]]:
    """Return (start, end, state, instr) of a track, without gaps."""
    records = trace[(trace["kind"] == logs.STATE) & (trace["engine"] == track)]
    starts = [int(cycle) for cycle in records["cycle"]]
    return [
        (start, stop, int(record["word"][0]), int(record["instr"]))
        for start, stop, record in zip(starts, [*starts, end][1:], records, strict=True)
    ]


def _of(records: logs.Records, kind: int, engine: int | None = None) -> list[tuple[int, int]]:
    """Return (instr, cycle) of the records of a kind, in order; a LOOP repeats instructions."""
    chosen = records[records["kind"] == kind]
    if engine is not None:
        chosen = chosen[chosen["engine"] == engine]
    return [(int(record["instr"]), int(record["cycle"])) for record in chosen]


def _dispatched(events: logs.Records) -> dict[int, list[int]]:
    """Return the cycles of each instruction's dispatches."""
    cycles: dict[int, list[int]] = {}
    for instr, cycle in _of(events, logs.DISPATCH):
        cycles.setdefault(instr, []).append(cycle)
    return cycles


def build(
    name: str, program: Sequence[Instruction], events: logs.Records, trace: logs.Records
) -> Timeline:
    """Return the timeline of the last program that ran, with the knob `trace`."""
    zero = int(trace["cycle"][trace["kind"] == logs.START][-1])
    end = int(trace["cycle"][trace["kind"] == logs.INTERRUPT][-1])
    events, trace = events[events["cycle"] >= zero], trace[trace["cycle"] >= zero]
    dispatched = _dispatched(events)
    slices: dict[str, list[Slice]] = {}
    for number, engine in enumerate(ENGINES):
        taken, done = _of(trace, logs.TAKE, number), _of(events, logs.DONE, number)
        states = _states(trace, number, end)
        free, found = 0, []
        for (instr, begin), (finished, ready) in zip(taken, done, strict=True):
            if instr != finished:
                raise ValueError(f"{name}: {engine} took {instr} and finished {finished}")
            first, last = max(begin + 1, free), ready + 1
            waits = [
                EngineWait(max(start, first) - zero, min(stop, last) - zero, logs.STATES[state])
                for start, stop, state, _ in states
                if state > logs.WORK and start < last and stop > first
            ]
            found.append(
                Slice(
                    instr,
                    Opcode(program[instr].opcode).name,
                    _text(program, instr),
                    first - zero,
                    last - zero,
                    max(cycle for cycle in dispatched[instr] if cycle <= begin) - zero,
                    begin - zero,
                    tuple(waits),
                )
            )
            free = last
        slices[engine] = found
    held = [
        (
            EngineWait(start - zero, stop - zero, logs.STATES[state]),
            "" if state == logs.FETCH else _text(program, instr),
        )
        for start, stop, state, instr in _states(trace, logs.SEQUENCER, end)
        if state > logs.WORK
    ]
    chosen = trace[trace["kind"] == logs.SAMPLE]
    samples = np.frombuffer(chosen["word"].tobytes(), logs.SAMPLE_WORD)
    cycle = chosen["cycle"].astype(np.int64) - zero
    inside = (cycle >= 0) & (cycle <= end - zero + logs.WINDOW)
    return Timeline(name, end - zero, slices, held, cycle[inside], samples[inside])


# The Chrome trace event format: X is a slice, C a counter, M a name.


def chrome(timeline: Timeline) -> dict[str, Any]:
    """Return the timeline as a Chrome trace: a track per engine, the sequencer, counters."""
    out: list[dict[str, Any]] = [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": timeline.name}}
    ]

    def slice_(tid: int, name: str, start: int, end: int, category: str, **args: object) -> None:
        event = {"ph": "X", "pid": 1, "tid": tid, "name": name, "cat": category}
        out.append(event | {"ts": start, "dur": end - start, "args": args})

    for tid, track in enumerate(TRACKS):
        out.append(
            {"ph": "M", "pid": 1, "tid": tid, "name": "thread_name", "args": {"name": track}}
        )
        out.append(
            {
                "ph": "M",
                "pid": 1,
                "tid": tid,
                "name": "thread_sort_index",
                "args": {"sort_index": tid},
            }
        )
    for tid, engine in enumerate(ENGINES):
        for part in timeline.slices[engine]:
            slice_(
                tid,
                part.name,
                part.start,
                part.end,
                "instruction",
                text=part.text,
                dispatched=part.dispatched,
                taken=part.taken,
                waited=part.waited(),
            )
            for wait in part.waits:
                slice_(tid, wait.reason, wait.start, wait.end, "wait")
    for wait, text in timeline.held:
        slice_(logs.SEQUENCER, wait.reason, wait.start, wait.end, "wait", text=text)
    for cycle, sample in zip(timeline.sample_cycle, timeline.samples, strict=True):
        start = int(cycle) - logs.WINDOW
        beats = {key: int(sample[key]) for key in ("read", "write")}
        for name, args in (
            ("stream FIFO (16-byte words)", {"words": int(sample["fifo"])}),
            (f"bus (beats in {logs.WINDOW} cycles)", beats),
        ):
            out.append({"ph": "C", "pid": 1, "name": name, "ts": start, "args": args})
    return {"traceEvents": out, "displayTimeUnit": "ms"}


def write_chrome(timeline: Timeline, path: Path) -> None:
    """Write the Chrome trace as JSON."""
    path.write_text(json.dumps(chrome(timeline), separators=(",", ":")), encoding="utf-8")
