# SPDX-License-Identifier: Apache-2.0
"""The command `npu ip`: the chip for other people's tools."""

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
    if (lacks := optional.missing("ip")) is not None:
        raise UsageError(lacks)
    build_folder.require()
    command = [sys.executable, "-m", "dev.ip.archive", arguments.chip.name]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def add_commands(command: AddCommand) -> None:
    """Add the command to the parser of `npu`."""
    add_config(command("ip", _ip))
