# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of `make regress` that belong to the command port: operation and mode."""

from __future__ import annotations

from spec.regs import CmdOp, RingStatus
from tb.bench.coverage_group import Group
from tb.command.descriptor_words import ENTRIES, SCALARS, DescriptorWords

PROGRAM = "PROGRAM"
RING = Group(
    "ring",
    {
        "status": [status.name for status in RingStatus if status],
        "entry": [f"entry {index}" for index in range(ENTRIES)],
    },
    (("status", "entry"),),
)
"""How a descriptor ended, and its place in the ring."""


def ring_row(status: int, index: int) -> str:
    """Return the sample of a descriptor that has ended with DESC_STATUS[7:0] at a place."""
    return RING.row(RingStatus(status).name, f"entry {index % ENTRIES}")


def row(op: CmdOp | str, mode: str) -> str:
    """Return the name of a row."""
    return f"CMD.{op if isinstance(op, str) else op.name} {mode}"


def used(descriptor: DescriptorWords, *, ternary: bool) -> set[str]:
    """Return the rows that a descriptor covers once it has completed."""
    if descriptor.program:
        return {row(PROGRAM, "launch")}
    op = CmdOp(descriptor.op)
    form = "descriptor" if descriptor.extension is None else "extended"
    rows = {row(op, form)}
    if descriptor.stream is not None:
        rows.add(row(op, "stream"))
    if descriptor.writeback:
        rows.add(row(op, f"{form} writeback"))
    if ternary and op == CmdOp.DOT16_S2:
        rows.add(row(op, f"{form} ternary"))
    return rows


def required() -> list[str]:
    """Return every row that must be executed by some test."""
    rows = []
    for op in CmdOp:
        rows += [row(op, mode) for mode in ("register", "descriptor", "extended", "stream")]
        if op not in SCALARS:
            rows.append(row(op, "descriptor writeback"))
        rows.append(row(op, "extended writeback"))
        if op == CmdOp.DOT16_S2:
            rows += [row(op, f"{form} ternary") for form in ("register", "descriptor", "extended")]
    return [*rows, row(PROGRAM, "launch")]
