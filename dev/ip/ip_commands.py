# SPDX-License-Identifier: Apache-2.0
"""The commands `npu ip` and `npu release`: the chip for other people's tools."""

from __future__ import annotations

import argparse
import subprocess
import sys

from npu import optional
from npu.commands import build_folder
from npu.commands.arguments import AddCommand, UsageError, add_config
from spec.paths import ROOT

BAD_INPUT = (UsageError,)
"""What a user can cause, or a tool; the text is what to print."""


def _ip(arguments: argparse.Namespace) -> int:
    """Pack a chip for other tools: sources, lists, registers, constraints, a bench; build/ip."""
    return _run("dev.ip.archive", arguments.chip.name)


def _release(arguments: argparse.Namespace) -> int:
    """Pack a release: archives, wheel, changes, page of results; build/release."""
    return _run("dev.release", *(["--draft"] if arguments.draft else []))


def _run(module: str, *words: str) -> int:
    """Run a module of the group in a process of its own, so that no other command imports it."""
    if (lacks := optional.missing("ip")) is not None:
        raise UsageError(lacks)
    build_folder.require()
    return subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, check=False).returncode


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    add_config(command("ip", _ip))
    command("release", _release).add_argument(
        "--draft",
        action="store_true",
        help="without a day in CHANGELOG.md, or with reports missing",
    )
