# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of `make regress` that belong to the coprocessor: instruction and use."""

from __future__ import annotations

from dataclasses import MISSING, fields

from golden.coprocessor import CopFault, FaultCode
from spec.isa.coprocessor import COP_INSTRUCTIONS, CopInfo, CopOp, decode
from tb.bench.coverage_group import Group, outside
from tb.bench.offers import Offer
from tb.cop.named_cases import FLOAT_CASES, INTEGER_CASES

OTHER = "OTHER"
MANY = 17
"""Elements from which on an array is long: more than a bus word of bytes."""


def row(op: CopOp | str, use: str) -> str:
    """Return the name of a row."""
    return f"COP.{op if isinstance(op, str) else op.name} {use}"


def case_row(name: str) -> str:
    """Return the name of the row of a `NamedCase`."""
    return row("CASE", name)


def _count(info: CopInfo, offer: Offer) -> int:
    return offer.rs[1] if info.rs2 == "count" else offer.rs[2]


def executed(offer: Offer, fault: CopFault | None) -> set[str]:
    """Return the rows of an instruction that has ended, with a fault or without."""
    op = decode(offer.word)
    assert op is not None
    info = COP_INSTRUCTIONS[op]
    rows = set()
    if fault is not None:
        rows.add(row(op, fault.code.name))
    else:
        rows.add(row(op, "executed"))
        if info.counted:
            count = _count(info, offer)
            rows |= {row(op, "n=0")} if not count else set()
            rows |= {row(op, "long")} if count >= MANY else set()
            if _overlaps(info, offer, count):
                rows.add(row(op, "overlap"))
        if info.element and offer.rs[0] % 16:
            rows.add(row(op, "unaligned"))
    return rows


def _overlaps(info: CopInfo, offer: Offer, count: int) -> bool:
    """Whether the array that is written begins within one that is read."""
    ahead = (offer.rs[1] - offer.rs[0]) & 0xFFFF_FFFF
    return info.rs2 == "destination" and 0 < ahead < count * info.element


def killed(offer: Offer) -> str:
    """Return the row of an instruction that was killed."""
    op = decode(offer.word)
    assert op is not None
    return row(op, "killed")


def refused(*, known: bool) -> str:
    """Return the row of a word that was refused, an instruction because of a fault if `known`."""
    return row(OTHER, "refused after a fault" if known else "refused")


def required() -> list[str]:
    """Return every row that must be executed by some test."""
    rows = []
    for op, info in COP_INSTRUCTIONS.items():
        uses = ["executed", "killed"]
        if info.element:
            uses += ["unaligned", *(code.name for code in FaultCode if code in _OF_ACCESSES)]
        if info.counted:
            uses += ["n=0", "long", FaultCode.LENGTH.name]
        if info.rs2 == "destination" and info.counted:
            uses.append("overlap")
        rows += [row(op, use) for use in uses]
    rows += [row(OTHER, "refused"), row(OTHER, "refused after a fault")]
    return rows + [case_row(case.name) for case in (*INTEGER_CASES, *FLOAT_CASES)]


_OF_ACCESSES = (FaultCode.DENIED, FaultCode.BUS, FaultCode.TIMEOUT)


# --------------------------------------------------------------------------------------------------
# Cross
# --------------------------------------------------------------------------------------------------
_USUAL = {each.name: each.default for each in fields(Offer) if each.default is not MISSING}
_MANNERS = [name for name in _USUAL if name != "rs"]


def _group() -> Group:
    names = [op.name for op in COP_INSTRUCTIONS]
    infos = {op.name: info for op, info in COP_INSTRUCTIONS.items()}
    lengths = {n: ("0", "short", "long") if infos[n].counted else ("-",) for n in names}
    places = {n: ("aligned", "unaligned") if infos[n].element else ("-",) for n in names}
    points = {
        "instruction": names,
        "length": ("-", "0", "short", "long"),
        "address": ("-", "aligned", "unaligned"),
        "offer": ("plain", *_MANNERS),
    }
    illegal = [*outside(names, lengths, 1, 4), *outside(names, places, 2, 4)]
    return Group("coprocessor", points, (("instruction", "length", "address", "offer"),), illegal)


COP = _group()
"""Instruction, class of length, alignment of rs1, and what is unusual in how it is offered."""


def samples(offer: Offer) -> set[str]:
    """Return the samples of an instruction that was accepted: one for each unusual manner."""
    op = decode(offer.word)
    assert op is not None
    info = COP_INSTRUCTIONS[op]
    length, place = "-", "-"
    if info.counted:
        count = _count(info, offer)
        length = "0" if not count else "long" if count >= MANY else "short"
    if info.element:
        place = "unaligned" if offer.rs[0] % 16 else "aligned"
    manners = [name for name in _MANNERS if getattr(offer, name) != _USUAL[name]] or ["plain"]
    return {COP.row(op.name, length, place, manner) for manner in manners}
