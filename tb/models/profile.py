# SPDX-License-Identifier: Apache-2.0
"""`npu profile`: a prompt and some tokens on the RTL, every cycle of a step accounted for.

Each token is a program of its own here, so that the logs hold every step apart. Cycles of a part
of the model count from the end of the part before it to the end of its own last instruction; the
stream is read ahead, so that a part can be faster than its own bytes allow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from npu.commands.compiled_files import part_of
from npu.commands.load_model import Loaded
from npu.commands.progress import step
from npu.commands.text_display import display
from npu.compiler import CompiledProgram, Shape, ideal
from npu.compiler.ideal import LeastWork
from npu.driver.generate import MOST_ENDS, PromptPlan
from npu.planner.placement import Placement
from npu.tables import FitTable
from spec.isa.generated import Opcode
from spec.isa.operands import share_bytes
from spec.paths import REPORTS
from tb.bench import logs
from tb.bench.knobs import Knobs
from tb.models import generate
from tb.models.simulate_generation import Simulated, simulate
from tb.run import build, timeline
from tb.run.timeline import ENGINES, Timeline
from weights.tokenizer import TextStream

FOLDER = REPORTS / "profile"
EMBEDDING = (Opcode.EMBED, Opcode.VEC)
"""What a program begins with, before its first layer."""


@dataclass(frozen=True)
class ProfiledPass:
    """One program of the run.

    Attributes:
        name: "prompt" or "step".
        rows, past: tokens that go in, and positions before them.
        work: what must be done.
        line: what happened when.
        parts: cycles of each part of the model, in order, "start and end" last; all of them.
    """

    name: str
    rows: int
    past: int
    work: LeastWork
    line: Timeline
    parts: dict[str, int]

    def title(self) -> str:
        """Say which it is."""
        if self.name == "prompt":
            return f"prompt of {self.rows}"
        return f"step at position {self.past}"


@dataclass(frozen=True)
class Profile:
    """A profiled run.

    Attributes:
        passes: prompt and steps, in order.
        simulated: what the chip did.
        mismatch: how the tokens differ from golden, "" if they do not.
    """

    passes: tuple[ProfiledPass, ...]
    simulated: Simulated
    mismatch: str


def require_pictures() -> None:
    """Raise PictureError unless pictures can be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise PictureError(
            "profile draws with matplotlib, which is not installed: run it as make profile, or "
            "install the optional group bench: pip install -e .[bench]"
        ) from None


class PictureError(RuntimeError):
    """There is nothing to draw with."""


def _plan(
    loaded: Loaded, ids: Sequence[int], count: int
) -> tuple[Placement, PromptPlan, list[CompiledProgram]]:
    compiled = loaded.compiled
    placement = Placement(compiled)
    plan = placement.plan(ids, count=count)
    prompt = compiled.prefill(len(ids))
    step = compiled.decode(positions=plan.context)
    plan = replace(plan, prompt=placement.launch(prompt), step=placement.launch(step))
    return placement, plan, [prompt, step]


def check_request(loaded: Loaded, text: str, count: int) -> None:
    """Raise what `run` would raise for a request that makes no sense, before anything is built."""
    _plan(loaded, loaded.ids(text), count)


def run(
    loaded: Loaded,
    text: str,
    count: int,
    latency: int,
    configuration: build.Configuration,
    console: Console,
    *,
    place: str = "profile",
) -> Profile:
    """Profile a prompt and `count` tokens on a built model, in the run's folder `place`.

    Raises:
        PromptError: the prompt or the number of tokens makes no sense.
        SimulationError: the simulation failed.
    """
    ids = loaded.ids(text)
    placement, plan, programs = _plan(loaded, ids, count)
    with display(TextStream(loaded.tokenizer, ids), text, count, console) as shown:
        simulated = simulate(
            configuration,
            plan,
            placement.pieces,
            count=count,
            ends=loaded.ends[:MOST_ENDS],
            limit=generate.SLACK * generate.ideal_cycles(loaded, len(ids), 2) + generate.START,
            name=place,
            memory_end=placement.end,
            stepped=True,
            knobs=Knobs(read_latency=latency, write_latency=latency, trace=1),
            on_tokens=shown.push,
        )
    with step("checking against golden", console=console):
        mismatch = generate.check(loaded, ids, simulated, count)
    with step("reading the logs", console=console):
        passes = tuple(_passes(loaded, len(ids), programs, simulated.folder))
    return Profile(passes, simulated, mismatch)


def _passes(
    loaded: Loaded, prompt: int, programs: list[CompiledProgram], folder: Path
) -> Iterator[ProfiledPass]:
    shape, in_memory = loaded.compiled.shape, loaded.compiled.cache.in_memory
    for number, (events, trace) in enumerate(_runs(folder)):
        program = programs[min(number, 1)]
        first = loaded.compiled.first
        rows, past = (1, first + prompt + number - 1) if number else (prompt, first)
        name = "step" if number else "prompt"
        words = program.program.instructions
        line = timeline.build(f"{name} at position {past}", words, events, trace)
        layouts = loaded.compiled.layouts
        work = ideal.forward(shape, rows, past, in_memory=in_memory, layouts=layouts)
        yield ProfiledPass(name, rows, past, work, line, part_cycles(program, line))


def _runs(folder: Path) -> Iterator[tuple[logs.Records, logs.Records]]:
    """Return (events, trace) of each program that ran, from its start to its interrupt."""
    events = np.fromfile(folder / "events.bin", logs.EVENT)
    trace = np.fromfile(folder / "trace.bin", logs.EVENT)
    starts, ends = (trace["cycle"][trace["kind"] == k] for k in (logs.START, logs.INTERRUPT))
    for start, end in zip(starts, ends, strict=True):

        def own(records: logs.Records, first: int = start, last: int = end) -> logs.Records:
            return records[(records["cycle"] >= first) & (records["cycle"] <= last)]

        yield own(events), own(trace)


def parts_of(program: CompiledProgram) -> list[str]:
    """Return the part of the model that each word of a program belongs to.

    A part ends with the last instruction that takes its parameters or makes a tensor of it; what
    follows already works for the next one, or is the end.
    """
    words = program.program.instructions
    takers = [index for index, word in enumerate(words) if share_bytes(word, program.edge)]
    ends: dict[str, int] = {}
    for index, share in zip(takers, program.shares, strict=True):
        ends["head" if share.name == "norm" else part_of(share.name)] = index
    for ref in program.tensors:
        name = f"layer {ref.layer}"
        if name in ends:
            ends[name] = max(ends[name], ref.instr)
    first = next(i for i, word in enumerate(words) if _begins_layer(word.opcode))
    ends = {"embedding": first - 1, **ends}
    names: list[str] = []
    for name, end in ends.items():
        names += [name] * (end + 1 - len(names))
    return names + ["end"] * (len(words) - len(names))


def _begins_layer(opcode: int) -> bool:
    return opcode not in (*EMBEDDING, Opcode.PFX, Opcode.BARRIER, Opcode.SET)


def part_cycles(program: CompiledProgram, line: Timeline) -> dict[str, int]:
    """Return the cycles of each part; they add up to those of the program."""
    names = parts_of(program)
    ends: dict[str, int] = dict.fromkeys(names, 0)
    for engine in ENGINES:
        for piece in line.slices[engine]:
            name = names[piece.instr]
            ends[name] = max(ends[name], piece.end)
    cycles, before = {}, 0
    ends["end"] = line.cycles
    for name, end in ends.items():
        cycles[name] = max(0, end - before)
        before = max(before, end)
    return cycles


def part_works(
    shape: Shape, rows: int, past: int, *, in_memory: bool, layouts: ideal.Layouts
) -> dict[str, LeastWork]:
    """Return what must be done for each part of the model: what all of it reads is split up."""
    whole = ideal.forward(shape, rows, past, in_memory=in_memory, layouts=layouts)
    layers = {
        f"layer {number}": ideal.layer(
            shape, rows, past, number, in_memory=in_memory, layouts=layouts
        )
        for number in range(shape.layers)
    }
    head = ideal.norm(shape.hidden)
    head += ideal.linear(1, shape.vocab, shape.hidden, layout=layouts.get("head"))
    embedding = whole.read_bytes - sum(one.read_bytes for one in layers.values()) - head.read_bytes
    return {"embedding": LeastWork(read_bytes=embedding), **layers, "head": head}


def passes_table(passes: Sequence[ProfiledPass]) -> FitTable:
    """Return the cycles of every program against its limit."""
    table = FitTable(title="Programs")
    table.name("program")
    for head in ("cycles", "limit", "reached"):
        table.figure(head)
    table.text("limited by")
    for one in passes:
        least = one.work.ideal_cycles
        bound = "array" if one.work.bound == "mac" else "bus"
        share = f"{least / one.line.cycles:.1%}"
        table.add_row(one.title(), f"{one.line.cycles:,}", f"{least:,}", share, bound)
    return table


def parts_table(loaded: Loaded, one: ProfiledPass) -> FitTable:
    """Return the cycles of every part of the model in one program."""
    compiled = loaded.compiled
    shape, in_memory, layouts = compiled.shape, compiled.cache.in_memory, compiled.layouts
    works = part_works(shape, one.rows, one.past, in_memory=in_memory, layouts=layouts)
    table = FitTable(title=f"Parts, {one.title()}")
    table.caption = "from the end of the part before; the stream is read ahead"
    table.name("part")
    for head in ("cycles", "share", "limit of the bus", "reached"):
        table.figure(head)
    for name, cycles in one.parts.items():
        row = [name, f"{cycles:,}", f"{cycles / one.line.cycles:.1%}"]
        least = works[name].bus_cycles if name in works else 0
        if least and cycles:
            row += [f"{least:,}", f"{least / cycles:.1%}"]
        table.add_row(*row)
    return table


def engine_rows(line: Timeline) -> Iterator[tuple[str, int, dict[str, int]]]:
    """Return track, cycles of work, and cycles of waiting by reason."""
    for engine in ENGINES:
        waits: dict[str, int] = {}
        total = 0
        for piece in line.slices[engine]:
            total += piece.end - piece.start
            for reason, cycles in piece.waited().items():
                waits[reason] = waits.get(reason, 0) + cycles
        yield engine, total - sum(waits.values()), waits
    held: dict[str, int] = {}
    for wait, _ in line.held:
        held[wait.reason] = held.get(wait.reason, 0) + wait.end - wait.start
    yield "sequencer", 0, held


def engines_table(one: ProfiledPass) -> FitTable:
    """Return what every engine did and what it waited for in one program."""
    table = FitTable(title=f"Engines, {one.title()}")
    table.name("engine")
    for head in ("works", "waits", "without work"):
        table.figure(head)
    table.text("waits for")
    whole = one.line.cycles
    for engine, works, waits in engine_rows(one.line):
        waited = sum(waits.values())
        ordered = sorted(waits.items(), key=lambda item: -item[1])
        reasons = ", ".join(f"{reason} {cycles:,}" for reason, cycles in ordered)
        shares = [f"{cycles / whole:.1%}" for cycles in (works, waited, whole - works - waited)]
        if engine == "sequencer":
            shares = ["", shares[1], ""]
        table.add_row(engine, *shares, reasons)
    return table


def write(loaded: Loaded, profile: Profile, latency: int) -> list[Path]:
    """Write timelines, roofline and figures to `FOLDER`; return the files."""
    from tb.run import pictures

    FOLDER.mkdir(parents=True, exist_ok=True)
    prompt, last = profile.passes[0], profile.passes[-1]
    conditions = f"{Path(loaded.name).name}, memory latency {latency}, array 16x16"
    written = []
    for one in (prompt, last):
        written.append(FOLDER / f"{one.name}.json")
        timeline.write_chrome(one.line, written[-1])
    written.append(FOLDER / "step.png")
    pictures.timeline_picture(last.line, conditions, written[-1])
    points = [
        pictures.RooflinePoint(
            one.title(),
            one.work.macs,
            max(one.work.read_bytes, one.work.write_bytes),
            one.line.cycles,
        )
        for one in (prompt, last)
    ]
    written.append(FOLDER / "roofline.png")
    pictures.roofline(points, conditions, written[-1], title="Roofline")
    return written


def record(loaded: Loaded, profile: Profile) -> dict[str, Any]:
    """Return the figures as JSON has them."""
    return {
        "model": loaded.name,
        "weights": str(loaded.weights),
        "ids": profile.simulated.ids,
        "mismatch": profile.mismatch,
        "passes": [
            {
                "program": one.name,
                "rows": one.rows,
                "past": one.past,
                "cycles": one.line.cycles,
                "ideal_cycles": one.work.ideal_cycles,
                "work": asdict(one.work),
                "parts": one.parts,
                "engines": {
                    name: {"works": works, "waits": waits}
                    for name, works, waits in engine_rows(one.line)
                },
            }
            for one in profile.passes
        ],
    }
