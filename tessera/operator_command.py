# SPDX-License-Identifier: Apache-2.0
"""`npu operator`: an operator of the library on the chip, stage by stage."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.console import Console

from npu.commands import files
from npu.commands.arguments import AddCommand, UsageError, whole_from
from npu.commands.consoles import printed, watched
from npu.commands.progress import step
from npu.compiler.errors import CompileError
from npu.graph.form import GraphError
from npu.graph.library import OPERATORS, Size
from npu.runtime.report_table import WIDTH, report_table
from npu.tables import FitTable
from tb.models.simulate_generation import SimulationError
from tb.run import run_commands
from tessera.operators import OperatorRun, run_operator
from tessera.rtl_chip import ChipMismatchError

BAD_INPUT = (
    *run_commands.BAD_INPUT,
    ChipMismatchError,
    CompileError,
    GraphError,
    SimulationError,
    UsageError,
    files.FileError,
)
"""What a user can cause, or a tool; the text is what to print."""
_NUMBER = re.compile(r"-?[0-9]{1,9}")


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    parser = command("operator", _operator)
    parser.description = (
        "Run an operator of transformers by name, on the instruction model or on the RTL: every "
        "stage is compared with golden and with real numbers. Without a name: list them."
    )
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="of the operator")
    parser.add_argument(
        "--set",
        dest="sizes",
        action="append",
        default=[],
        metavar="SIZE=N",
        help="a size, or the mask, that is not the default; may be repeated",
    )
    parser.add_argument(
        "--fused", action="store_true", help="compare results only, stages fused into one another"
    )
    parser.add_argument(
        "--on",
        choices=("golden", "rtl"),
        default="golden",
        help="the instruction model, or the RTL, where cycles are counted (golden)",
    )
    parser.add_argument(
        "--seed", type=whole_from(0), default=1, metavar="N", help="of all that is drawn (1)"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write stages, errors and report there"
    )


def _operator(arguments: argparse.Namespace) -> int:
    """Run an operator, or list them."""
    console = printed(WIDTH)
    if not arguments.name:
        if arguments.sizes or arguments.json is not None:
            raise UsageError("--set, --json: given without a name, allowed with one")
        console.print(_list())
        return 0
    if arguments.json is not None:
        files.check_output(arguments.json)
    with step(f"running {arguments.name} on {arguments.on}", console=watched()):
        found = run_operator(
            arguments.name,
            _sizes(arguments.sizes),
            stages=not arguments.fused,
            seed=arguments.seed,
            on=arguments.on,
        )
    _show(found, console)
    if arguments.json is not None:
        files.write(arguments.json, json.dumps(found.to_json(), indent=1) + "\n")
    return 0 if found.exact and found.error <= found.operator.bound else 1


def _sizes(given: Sequence[str]) -> dict[str, Size]:
    found: dict[str, Size] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name or not value:
            raise UsageError(f"--set {text}: allowed SIZE=N, for example --set rows=20")
        found[name] = int(value) if _NUMBER.fullmatch(value) else value
    return found


def _list() -> FitTable:
    table = FitTable(box=box.SIMPLE_HEAD)
    table.name("operator")
    for head in ("what it computes", "sizes"):
        table.text(head)
    for one in OPERATORS.values():
        sizes = ", ".join(f"{name}={value}" for name, value in one.sizes.items())
        table.add_row(one.name, one.summary, sizes)
    return table


def _show(run: OperatorRun, console: Console) -> None:
    console.print(report_table(run.report))
    sizes = ", ".join(f"{name}={value}" for name, value in run.sizes.items())
    table = FitTable(title=f"Stages of {run.operator.name} ({sizes})", box=box.SIMPLE_HEAD)
    table.caption = (
        "golden: whether the chip has made the same bits; error: largest distance from real "
        f"numbers over the largest that calibration has seen, allowed {run.operator.bound:.1%}."
    )
    table.name("stage")
    table.text("shape")
    for head in ("least", "largest", "golden", "error"):
        table.figure(head)
    for one in run.stages:
        table.add_row(
            one.name,
            str(list(one.found.shape)),
            f"{one.found.min():.4g}",
            f"{one.found.max():.4g}",
            "equal" if one.exact else "DIFFERS",
            f"{one.error:.2%}",
        )
    console.print(table)
