# SPDX-License-Identifier: Apache-2.0
"""The command line: `npu <command>` or `python -m npu.cli <command>`; the Makefile calls it.

A command's home is imported when it is asked for, so that one without a chip needs neither
simulator nor bench.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, Protocol

from npu import optional
from npu.commands import last_resort
from npu.commands.arguments import AddCommand

DEBUG = "--debug"
COMMANDS = (
    *("inspect", "estimate", "asm", "disasm", "compile", "explain", "generate", "chat"),
    *("evaluate", "profile", "embed"),
    *("waves", "test", "pytest", "build", "run", "operator", "unit", "soc", "firmware"),
    *("bench", "bench-docs", "regress", "coverage", "report"),
    *("cop-sweep", "faults", "mutation", "synth", "formal", "lockstep"),
    *("timing", "power", "fpga", "ip", "release", "quality"),
    *("lint", "format", "gen"),
)
"""In the order of the help."""


class Home(Protocol):
    """A module that commands live in."""

    @property
    def BAD_INPUT(self) -> tuple[type[Exception], ...]:  # noqa: N802
        """What a user can cause, or a tool; the text is what to print."""

    @property
    def add_commands(self) -> Callable[[AddCommand], None]:
        """Adds the commands to the parser."""


def home_of(command: str) -> Home:
    """Import the home of one of the commands."""
    match command:
        case "inspect" | "estimate" | "asm" | "disasm":
            from npu.commands import file_commands

            return file_commands
        case "explain":
            from npu.commands import network_commands

            return network_commands
        case "compile":
            from tessera import compile_command

            return compile_command
        case "embed":
            from tessera import embed_command

            return embed_command
        case "run":
            from tessera import run_command

            return run_command
        case "operator":
            from tessera import operator_command

            return operator_command
        case "generate" | "chat" | "evaluate" | "profile":
            from tb.models import model_commands

            return model_commands
        case "waves" | "test" | "pytest" | "build":
            from tb.run import run_commands

            return run_commands
        case "unit":
            from tb.run import unit_commands

            return unit_commands
        case "soc" | "firmware":
            from tb.soc import soc_commands

            return soc_commands
        case "bench" | "bench-docs":
            from tb.benchmarks import bench_commands

            return bench_commands
        case "regress":
            from dev.regression import command as regress_command

            return regress_command
        case "coverage":
            from dev import functional_commands

            return functional_commands
        case "mutation":
            from dev import mutation_commands

            return mutation_commands
        case "lockstep":
            from dev import lockstep_commands

            return lockstep_commands
        case "timing":
            from dev import timing_commands

            return timing_commands
        case "power":
            from dev.power import power_commands

            return power_commands

        case "fpga":
            from dev.fpga import fpga_commands

            return fpga_commands
        case "ip" | "release":
            from dev.ip import ip_commands

            return ip_commands
        case "report":
            from dev.report import report_commands

            return report_commands
        case _:
            from dev import dev_commands

            return dev_commands


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
        self.exit(2, last_resort.harmless(f"{self.prog}: {message}") + "\n")


def _homes_of(arguments: Sequence[str]) -> list[Home]:
    """Return the home of the command that is asked for; all homes if there is none of its name."""
    asked = next((word for word in arguments if not word.startswith("-")), None)
    return [home_of(asked)] if asked in COMMANDS else list(dict.fromkeys(map(home_of, COMMANDS)))


def run(arguments: Sequence[str]) -> int:
    """Parse and run one command line; return the exit status.

    Raises:
        Refusal: it asks for something that cannot be done.
    """
    # The imports take long enough to be interrupted, so they belong in here.
    from npu.commands import build_folder

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
    try:
        homes = _homes_of(arguments)
    except ModuleNotFoundError as error:
        lacks = optional.missing(optional.group_of(str(error.name)))
        if lacks is None:
            raise
        raise last_resort.Refusal(f"{error.name}: {lacks}") from error
    for home in homes:
        home.add_commands(command)
        refused += home.BAD_INPUT
    given = parser.parse_args(arguments)
    try:
        status: int = given.function(given)
    except tuple(refused) as error:
        raise last_resort.Refusal(str(error)) from error
    return status
