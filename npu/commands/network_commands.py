# SPDX-License-Identifier: Apache-2.0
"""`npu explain`: what became of a network, pass by pass and operation by operation."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from npu.asm import disassemble
from npu.commands import files
from npu.commands.arguments import AddCommand, UsageError
from npu.commands.consoles import printed
from npu.commands.network_folder import PASSES
from npu.graph.prepare import PASSES as NAMES
from npu.planner.build_plan import SCHEDULE
from npu.runtime.decoder import Decoder
from npu.runtime.network_account import report_of
from npu.runtime.plan import Plan
from npu.runtime.plan_files import IMAGE, MOST, PlanFileError, bytes_in, read_plan
from npu.runtime.report import OperationLine
from npu.runtime.report_table import WIDTH, report_table
from npu.tables import FitTable, pairs

BAD_INPUT = (PlanFileError, files.FileError, UsageError)
"""What a user can cause; each says in one line what was given and what is allowed."""
_NAME = re.compile(r' name ("(?:[^"\\]|\\.)*")')
_LINE = 400
"""Letters of a line of a pass that are shown."""


def add_commands(command: AddCommand) -> None:
    """Add the commands to the parser of `npu`."""
    parser = command("explain", _explain)
    parser.description = (
        "Say what npu compile has made of a network: where each operation runs and why, and what "
        "it costs. With --pass the text of a pass; with --op an operation through all passes, its "
        "place, its cost and its instructions. Of the plan of a decoder: its programs, its tables "
        "and what lies in memory."
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="that npu compile has written")
    parser.add_argument(
        "--pass", dest="pass_name", choices=(*NAMES, SCHEDULE), help="whose text to show"
    )
    parser.add_argument("--op", metavar="NAME", help="an operation, by its name in any pass")


def _explain(arguments: argparse.Namespace) -> int:
    """Say what became of a network, pass by pass and operation by operation."""
    folder: Path = arguments.folder
    plan = read_plan(folder)
    console = printed(WIDTH)
    if plan.decoder is not None:
        if arguments.op is not None or arguments.pass_name is not None:
            raise UsageError("--pass, --op: given for a decoder, allowed for networks")
        console.print(_decoder(plan, plan.decoder))
        return 0
    if arguments.op is not None:
        _operation(plan, folder, arguments.op, arguments.pass_name, console)
    elif arguments.pass_name is not None:
        console.print(_text(folder, arguments.pass_name), markup=False, highlight=False)
    else:
        console.print(report_table(report_of(plan)))
    return 0


def _decoder(plan: Plan, decoder: Decoder) -> FitTable:
    """Return what the plan of a decoder holds."""
    table = pairs()
    table.title = f"Decoder {escape(plan.graph.name)}"
    table.add_row("prompt", f"{decoder.rows} tokens, then up to {decoder.most} more")
    table.add_row("tokens", f"{decoder.vocab:,} ids, {decoder.context:,} positions")
    for name, segment in zip(decoder.programs, plan.segments, strict=True):
        words = f"{len(segment.program):,} words"
        table.add_row(f"program {name}", f"{words}, SRAM {segment.sram_bytes:,} bytes")
    table.add_row("stream", f"{len(plan.stream):,} bytes")
    for name, size in decoder.tables:
        table.add_row(f"table {name}", f"{size:,} bytes")
    for tensor in plan.tensors:
        place = f"{tensor.bytes:,} bytes from {tensor.offset:,} on"
        table.add_row(escape(f"arena {tensor.name}"), place)
    return table


def _text(folder: Path, name: str) -> str:
    number = 1 + (*NAMES, SCHEDULE).index(name)
    place = folder / PASSES
    if place.is_symlink():
        raise files.FileError(f"{place}: given a link, allowed a folder")
    file = place / f"{number}-{name}.txt"
    text = files.text_of(bytes_in(file, MOST[IMAGE]))
    if text is None:
        raise files.FileError(f"{file}: given what is no text, allowed what npu compile wrote")
    return text


def _operation(plan: Plan, folder: Path, name: str, only: str | None, console: Console) -> None:
    """Show an operation through the passes, and what it became."""
    asked = NAMES if only is None else (only,)
    found = {each: _lines(_text(folder, each), name) for each in asked}
    lines = [one for one in report_of(plan).operations if one.name == name]
    if not lines and not any(found.values()):
        known = ", ".join(one.name for one in report_of(plan).operations)
        raise UsageError(
            f"operation {name!r}: there is none of this name, at the end there are: {known}"
        )
    for each, texts in found.items():
        for text in texts or ["(not here: not yet made, or part of another operation)"]:
            console.print(f"{each}: {text}", markup=False, highlight=False, soft_wrap=True)
    for line in lines:
        console.print(_facts(line))
    if only is None:
        console.print(_instructions(plan, name), markup=False, highlight=False, soft_wrap=True)


def _lines(text: str, name: str) -> list[str]:
    """Return the lines of an operation in the text of a pass, shortened."""
    found = []
    for line in text.split("\n"):
        match = _NAME.search(line)
        said = match is not None and match.group(1) == _quoted(name)
        if said or line.strip().startswith(f"{name}: ") or line.startswith(f"host {name}: "):
            found.append(line if len(line) <= _LINE else f"{line[:_LINE]} ...")
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _facts(line: OperationLine) -> FitTable:
    table = pairs()
    where = f"segment {line.segment} of the chip" if line.segment >= 0 else "the host"
    where = "the command port" if line.on_port else where
    table.add_row("runs on", f"{where}: {escape(line.reason)}")
    table.add_row("was", escape(line.source or line.kind))
    if line.segment < 0:
        if line.on_port:
            table.add_row("MACs", f"{line.macs:,} asked for")
        table.add_row("bytes", f"{line.host_bytes:,} of the host")
        return table
    cost = line.cost
    table.add_row("instructions", f"{cost.instructions:,}")
    padding = f", {line.padding:.0%} of them padding" if cost.macs else ""
    table.add_row("MACs", f"{line.macs:,} asked for, {cost.macs:,} done{padding}")
    table.add_row(
        "bytes",
        f"{cost.load_bytes:,} loaded, {cost.store_bytes:,} stored, "
        f"{cost.stream_bytes:,} of the stream",
    )
    table.add_row("least", f"{line.ideal:,} cycles, bound: {line.bound or 'nothing to do'}")
    return table


def _instructions(plan: Plan, name: str) -> str:
    """Return the instructions of an operation as text."""
    for segment in plan.segments:
        program = segment.program
        own = [word for word, owner in zip(program, segment.owners, strict=True) if owner == name]
        if own:
            return disassemble(own, limits=plan.limits).rstrip()
    return ""
