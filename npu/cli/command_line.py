# SPDX-License-Identifier: Apache-2.0
"""The command line: `npu <command>` or `python -m npu.cli <command>`; the Makefile calls it.

Where each command lives stands in `HOMES`. A home is imported when one of its commands is asked
for, so that a command without a chip needs neither simulator nor bench.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import NoReturn

from npu.cli import last_resort

DEBUG = "--debug"
HOMES = {
    "npu.cli.file_commands": ("inspect", "asm", "disasm"),
    "tessera.compile_command": ("compile",),
    "npu.cli.network_commands": ("explain",),
    "tb.models.model_commands": ("generate", "profile"),
    "tb.run.run_commands": ("waves", "test", "pytest", "build"),
    "tessera.run_command": ("run",),
    "tessera.operator_command": ("operator",),
    "tb.run.unit_commands": ("unit",),
    "tb.soc.soc_commands": ("soc", "firmware"),
    "tb.benchmarks.bench_commands": ("bench", "bench-docs"),
    "dev.regression.command": ("regress",),
    "dev.report.report_commands": ("report",),
    "dev.dev_commands": (
        "cop-sweep",
        "faults",
        "synth",
        "quality",
        "lint",
        "format",
        "gen",
    ),
}
"""The commands, by the module that adds them: its `add_commands`, and its `BAD_INPUT`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit status."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    debug = DEBUG in arguments
    others = [word for word in arguments if word != DEBUG]
    first = [DEBUG] if debug else []
    return last_resort.guarded("npu", lambda: run([*first, *others]), debug=debug)


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _homes_of(arguments: Sequence[str]) -> list[str]:
    """Return the home of the command that is asked for; all homes if there is none of its name."""
    asked = next((word for word in arguments if not word.startswith("-")), None)
    return [home for home, names in HOMES.items() if asked in names] or list(HOMES)


def run(arguments: Sequence[str]) -> int:
    """Parse and run one command line; return the exit status.

    Raises:
        Refusal: it asks for something that cannot be done.
    """
    # The imports take long enough to be interrupted, so they belong in here.
    from npu.cli import build_folder

    parser = _Parser(prog="npu", description="Tessera: build, run and check.")
    parser.add_argument("--debug", action="store_true", help="show tracebacks; at any place")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def command(
        name: str, function: Callable[[argparse.Namespace], int]
    ) -> argparse.ArgumentParser:
        text = (function.__doc__ or "").split("\n")[0]
        added = commands.add_parser(name, help=text, description=text)
        added.set_defaults(function=function)
        return added

    refused: list[type[Exception]] = [build_folder.RoomError]
    for home in map(import_module, _homes_of(arguments)):
        home.add_commands(command)
        refused += home.BAD_INPUT
    given = parser.parse_args(arguments)
    try:
        status: int = given.function(given)
    except tuple(refused) as error:
        raise last_resort.Refusal(str(error)) from error
    return status
