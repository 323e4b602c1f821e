# SPDX-License-Identifier: Apache-2.0
"""`npu run`: a network of a folder that `npu compile` has written."""

from __future__ import annotations

import argparse
import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from npu.commands import files
from npu.commands.arguments import AddCommand, UsageError, whole_from
from npu.commands.consoles import printed, watched
from npu.commands.network_folder import SUFFIXES, read_arrays
from npu.commands.progress import step
from npu.driver.generate import PromptError
from npu.graph.form import Array, Graph, GraphError
from npu.graph.inputs import check_inputs
from npu.graph.passes.quantising.samples import random_samples
from npu.graph.states import States
from npu.runtime.network_account import report_of
from npu.runtime.plan import Plan
from npu.runtime.plan_files import PlanFileError, read_plan
from npu.runtime.report import NetworkReport
from npu.runtime.report_table import WIDTH, report_table
from npu.tables import pairs
from tb.bench.knobs import LATENCY_MAX
from tb.models.simulate_generation import SimulationError
from tb.run import build
from tb.run.verilator import VerilatorError
from tessera.golden_chip import run_on_golden
from tessera.rtl_chip import ChipMismatchError, run_on_rtl

BAD_INPUT = (
    UsageError,
    VerilatorError,
    build.BuildError,
    ChipMismatchError,
    GraphError,
    PlanFileError,
    PromptError,
    SimulationError,
    files.FileError,
)
"""What a user can cause, or a tool; the text is what to print."""
RANDOM = "random"
RUN, OUTPUTS, REPORT, ROOFLINE = "run", "outputs.npz", "report.json", "roofline.png"
"""The folder that a run leaves in that of the network, and what is in it."""

NAMED = 8
"""Operations that have their names in the roofline: those that take longest."""
EDGE = 16
"""Of the array whose roof is drawn."""


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    run = command("run", _run)
    run.description = (
        "Run a network of a folder that npu compile has written, on the instruction model or on "
        "the RTL, where every tensor is compared with the model. The plan of a decoder runs on the "
        "instruction model; npu generate runs decoders on the RTL."
    )
    run.add_argument("folder", metavar="FOLDER", help="that npu compile has written")
    run.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="[NAME=]FILE",
        help="an .npy for an input, or an .npz with all of them; may be repeated; random for one "
        "that is drawn",
    )
    run.add_argument(
        "--on",
        choices=("golden", "rtl"),
        default="golden",
        help="the instruction model, or the RTL, where cycles are counted (golden)",
    )
    run.add_argument(
        "--latency",
        type=whole_from(1, LATENCY_MAX),
        default=40,
        metavar="N",
        help="of the memory on the RTL, in cycles (40)",
    )
    run.add_argument(
        "--steps",
        type=whole_from(1),
        metavar="N",
        help="run the network N times, with N inputs along a first axis and as many outputs; each "
        "run finds in the states of the network what the one before has left",
    )
    run.add_argument(
        "--output", type=Path, metavar="FILE", help="an .npz to write (FOLDER/run/outputs.npz)"
    )


def _run(arguments: argparse.Namespace) -> int:
    """Run a network that has been compiled."""
    folder = Path(arguments.folder)
    if folder.suffix in SUFFIXES:
        raise UsageError(
            f"{folder}: given a file, allowed is the folder that npu compile makes of it"
        )
    plan = read_plan(folder)
    if plan.decoder is not None and arguments.steps is not None:
        raise UsageError("--steps: given for a decoder, allowed for networks")
    steps = _steps(plan.graph, arguments.input, arguments.steps)
    if arguments.output is not None:
        files.check_output(arguments.output)
    console = watched()
    states = States(plan.graph)
    made: list[Mapping[str, Array]] = []
    for inputs in steps:
        if arguments.on == "golden":
            with step(f"running {folder} on golden", console=console):
                run = run_on_golden(plan, inputs, states=states)
            found, report = run.outputs, report_of(plan, products=run.products)
        else:
            found, report = _on_rtl(plan, folder, inputs, arguments.latency, states, console)
        made.append(found)
    outputs = made[0]
    if arguments.steps is not None:
        outputs = {name: np.stack([one[name] for one in made]) for name in outputs}
    written: list[Path] = []

    @contextmanager
    def kept(name: str) -> Iterator[Path]:
        """Give a place for a file in the folder of the run."""
        with files.fresh(folder / RUN / name) as place:
            yield place
        written.append(folder / RUN / name)

    if arguments.output is None:
        with kept(OUTPUTS) as place:
            _save_outputs(place, outputs)
    else:
        _save_outputs(arguments.output, outputs)
        written.append(arguments.output)
    if plan.decoder is None:  # what a program with loops costs depends on where they end
        record = report.to_json() | {"on": arguments.on, "latency": arguments.latency}
        with kept(REPORT) as place:
            files.write(place, json.dumps(record, indent=1) + "\n")
        points = _points(report)
        if points:
            with kept(ROOFLINE) as place:
                _picture(report, arguments.latency, points, place)
    _show(report, outputs, written, printed(WIDTH))
    return 0


def _on_rtl(
    plan: Plan,
    folder: Path,
    inputs: Mapping[str, Array],
    latency: int,
    states: States,
    console: Console,
) -> tuple[Mapping[str, Array], NetworkReport]:
    ended = [0]

    def detail() -> str:
        return f"{ended[0]} of {len(plan.segments)} segments"

    with step(f"running {folder} on the RTL", detail, console):
        done = run_on_rtl(
            plan,
            inputs,
            latency=latency,
            states=states,
            on_segment=lambda count: ended.__setitem__(0, count),
        )
    report = report_of(plan, done.run.counters, done.cycles, done.run.products)
    if plan.segments or plan.products:
        cycles = sum(one.cycles for one in done.run.counters)
        speed = cycles / max(done.seconds, 1e-9) / 1000
        timed = f"; {done.seconds:.1f} s, {speed:,.0f} kcycles/s" if cycles else ""
        console.print(f"RTL = golden, every tensor; counters = report{timed}", highlight=False)
    return done.run.outputs, report


def _steps(graph: Graph, given: Sequence[str], count: int | None) -> list[dict[str, Array]]:
    """Return the inputs of each run."""
    found = _inputs(graph, given, count)
    if count is None:
        return [check_inputs(graph, found)]
    for name, data in found.items():
        if data.shape[:1] != (count,):
            raise UsageError(
                f"--steps {count}: given input {name!r} of shape {list(data.shape)}, allowed a "
                f"first axis of {count}"
            )
    runs = ({name: data[step] for name, data in found.items()} for step in range(count))
    return [check_inputs(graph, one) for one in runs]


def _inputs(graph: Graph, given: Sequence[str], count: int | None) -> dict[str, Array]:
    """Return the arrays of --input by the names of the graph's inputs; of drawn ones so many."""
    found: dict[str, Array] = {}
    for text in given:
        if text == RANDOM:
            drawn = random_samples(graph, count or 1)
            found |= {name: data[0] for name, data in drawn.items()} if count is None else drawn
            continue
        name, equals, file = text.rpartition("=")
        arrays = read_arrays(Path(file))
        if "" in arrays:
            if not equals and len(graph.arguments) != 1:
                raise UsageError(
                    f"--input {text}: given no name, allowed NAME=FILE with one of "
                    f"{', '.join(graph.arguments)}"
                )
            found[name if equals else graph.arguments[0]] = arrays[""]
        elif equals:
            raise UsageError(f"--input {text}: given a name for an .npz, allowed for an .npy")
        else:
            found |= arrays
    return found


def _save_outputs(path: Path, outputs: Mapping[str, Array]) -> None:
    """Write an .npz. That of numpy takes names as arguments, and has some of its own."""
    try:
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in outputs.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, data, allow_pickle=False)
    except OSError as error:
        raise files.FileError(f"{path}: cannot be written: {error.strerror}") from None


def _points(report: NetworkReport) -> list[Any]:
    """Return the points of a roofline, none if there is nothing to draw, or to draw with."""
    if report.limits.array_dim != EDGE:
        return []
    try:
        from tb.run import pictures
    except ImportError:
        return []
    longest = sorted((op.cycles or 0 for op in report.operations), reverse=True)[:NAMED]
    return [
        pictures.RooflinePoint(
            op.name if op.cycles in longest else "", op.cost.macs, op.cost.bus_bytes, op.cycles
        )
        for op in report.operations
        if op.cycles and op.cost.macs
    ]


def _picture(report: NetworkReport, latency: int, points: Sequence[Any], path: Path) -> None:
    from tb.run import pictures

    conditions = f"{report.network}, memory latency {latency}, array {EDGE}x{EDGE}"
    pictures.roofline(points, conditions, path, title="Roofline")


def _show(
    report: NetworkReport, outputs: Mapping[str, Array], written: Sequence[Path], console: Console
) -> None:
    if report.operations:
        console.print(report_table(report))
    table = pairs()
    for name, data in outputs.items():
        edges = f", {data.min():.6g} to {data.max():.6g}" if data.size else ""
        table.add_row(escape(f"output {name}"), escape(f"{data.dtype}{list(data.shape)}{edges}"))
    for path in written:
        table.add_row("written", escape(str(path)))
    console.print(table)
