# SPDX-License-Identifier: Apache-2.0
"""Runs a program on the netlist of the chip alone, in Icarus Verilog: four states, no C++."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from dev import lockstep
from dev.ip import smoke
from dev.yosys import SynthesisError
from npu import optional
from spec.paths import ROOT, RTL

PACKAGE = "iverilog"
CLOCK_GATE = RTL / "cells" / "npu_clock_gate.sv"
"""A cell of the technology, which the netlist has as such."""
PASSED = "bytes are right"
_MEMORY = re.compile(r"^  reg \[\d+:0\] (\S+ ?) ?\[(\d+):0\];$", re.M)


def memories(netlist: str) -> list[tuple[str, int]]:
    """Return the memories of a netlist, as a path ends with them, and their words."""
    return [(name, int(last) + 1) for name, last in _MEMORY.findall(netlist)]


def bench(netlist: str) -> str:
    """Return the bench of the chip's netlist."""
    return lockstep.filled(
        "icarus.v.j2",
        ports=lockstep.ports(netlist),
        netlist=lockstep.module_of(lockstep.BLOCK.top),
        memories=memories(netlist),
        **smoke.words(lockstep.CHIP),
    )


def run(netlist: str, folder: Path) -> str:
    """Run the smoke program on a netlist; return what its bench says in the end.

    Args:
        netlist: of the chip.
        folder: for what is made.

    Raises:
        SynthesisError: Icarus is not there, or refuses the netlist.
    """
    if (lacks := optional.missing(PACKAGE)) is not None:
        raise SynthesisError(lacks)
    folder.mkdir(parents=True, exist_ok=True)
    files = {"netlist.v": netlist, "bench.v": bench(netlist)}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    program = folder / "bench.vvp"
    sources = [*(folder / name for name in files), CLOCK_GATE]
    _called(["iverilog", "-g2012", "-s", "netlist_bench", "-o", str(program), *map(str, sources)])
    said = _called(["vvp", "-n", str(program)])
    (folder / "log.txt").write_text(said, encoding="utf-8")
    lines = [line for line in said.splitlines() if line.startswith("netlist: ")]
    if not lines:
        log = (folder / "log.txt").relative_to(ROOT)
        raise SynthesisError(f"the bench of the netlist ended without a word; log: {log}")
    return lines[-1].removeprefix("netlist: ")


def _called(command: list[str]) -> str:
    run = subprocess.run(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if run.returncode:
        lines = run.stdout.strip().splitlines() or [f"it returned {run.returncode}"]
        raise SynthesisError(f"{command[0]}: {lines[0]}")
    return run.stdout
