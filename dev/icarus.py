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
_OPEN = re.compile(r"'hx+")
"""What a memory may say while a word is read and written; a LUT would spread it, valid or not."""
_UNSET = re.compile(r"^  reg (?:\[\d+:0\] )?(\S+) *(?:\[(\d+):0\])?;$", re.M)


def unset(netlist: str) -> list[tuple[str, int]]:
    """Return what a netlist gives no first value: memories with their words, registers with 0."""
    return [(name, int(last) + 1 if last else 0) for name, last in _UNSET.findall(netlist)]


def bench(netlist: str) -> str:
    """Return the bench of the chip's netlist."""
    return lockstep.filled(
        "icarus.v.j2",
        ports=lockstep.ports(netlist),
        netlist=lockstep.module_of(lockstep.BLOCK.top),
        unset=unset(netlist),
        **smoke.words(lockstep.CHIP),
    )


def run(netlist: str, folder: Path) -> str:
    """Run the smoke program on a netlist; return what is right, with the cycle of the end.

    Args:
        netlist: of the chip, with short names.
        folder: for what is made, below the root of the tree.

    Raises:
        SynthesisError: Icarus is not there, or refuses the netlist; or something is wrong.
    """
    if (lacks := optional.missing(PACKAGE)) is not None:
        raise SynthesisError(lacks)
    folder.mkdir(parents=True, exist_ok=True)
    files = {"netlist.v": _OPEN.sub("'h0", netlist), "bench.v": bench(netlist)}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    program = folder / "bench.vvp"
    sources = [*(folder / name for name in files), CLOCK_GATE]
    _called(["iverilog", "-g2012", "-s", "netlist_bench", "-o", str(program), *map(str, sources)])
    said = _called(["vvp", "-n", str(program)])
    (folder / "log.txt").write_text(said, encoding="utf-8")
    found = re.search(r"^netlist: (.*)$", said, re.M)
    if found is None or "right" not in found[1]:
        reason = found[1] if found else "its bench ended without a word"
        log = (folder / "log.txt").relative_to(ROOT)
        raise SynthesisError(f"the netlist in Icarus: {reason}; log: {log}")
    return found[1]


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
