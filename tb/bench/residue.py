# SPDX-License-Identifier: Apache-2.0
"""What programs have left in the memories of the chip, SRAM and all others alike."""

from __future__ import annotations

import re
from pathlib import Path

from cocotb.triggers import Timer

from tb.bench.dut import Dut

FILE = "residue.txt"
KINDS = {
    "SRAM": "u_sram",
    "accumulators": "u_accumulator",
    "stream FIFO": "u_streamer",
    "table of the vector engine": "u_vec",
    "table of GEMM": "u_post",
    "parameters of norms": "u_nrm",
}
"""Kinds of memory, and the instance in whose name each is found."""


async def residue(dut: Dut, run_dir: Path) -> dict[str, list[str]]:
    """Return the rows that are not zero, by kind of memory: name of the memory, row and contents.

    Raises:
        ValueError: a memory is of no kind.
    """
    file = run_dir / FILE
    file.unlink(missing_ok=True)
    dut.residue.value = 1
    await Timer(1, "ns")
    dut.residue.value = 0
    await Timer(1, "ns")
    found: dict[str, list[str]] = {kind: [] for kind in KINDS}
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    for line in sorted(lines):
        found[_kind(line)].append(line)
    return found


def _kind(line: str) -> str:
    for kind, instance in KINDS.items():
        if re.search(rf"\.{instance}\b", line):
            return kind
    raise ValueError(f"{line}: a memory of no kind")
