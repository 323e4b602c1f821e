# SPDX-License-Identifier: Apache-2.0
"""Short scenes on the coprocessor's port: one that breaks each rule, some that break none."""

from __future__ import annotations

import re
from typing import NamedTuple

from spec.isa.coprocessor import CopOp, encode
from spec.paths import HDL

RD = 7
TWO = 0b011
"""Sources of the instruction that the scenes offer."""
WORD, OTHER_WORD = encode(CopOp.QMUL, RD, 8, 9), encode(CopOp.QMUL, RD, 8, 10)
Cycle = dict[str, int]
"""What differs from an idle port in a cycle, by signals of `unit_cop_rules`."""
QUIET: Cycle = {"issue_ready": 1, "register_ready": 1, "result_ready": 1}
WAIT: Cycle = {}


class Scene(NamedTuple):
    """What is said on the port, and in which register mode."""

    cycles: list[Cycle]
    split: bool = False


def rules() -> list[str]:
    """Return the names of the rules, in the order of the bits that tell of them."""
    text = (HDL / "tb_pkg.sv").read_text(encoding="utf-8")
    body = re.search(r"typedef enum int unsigned \{([^}]*?),\s*CopRules\b", text)
    assert body is not None
    return re.findall(r"\w+", body[1])


def offer(number: int, *, ready: bool = True, sources: int = TWO, split: bool = False) -> Cycle:
    """Return a cycle of an offer, which the chip accepts if `ready`; its registers beside it."""
    issue = {
        "issue_valid": 1, "issue_id": number, "issue_instr": WORD, "issue_ready": int(ready),
        "issue_accept": 1, "issue_writeback": 1, "issue_register_read": TWO,
    }  # fmt: skip
    beside = {
        "register_valid": 1, "register_id": number, "register_rs_valid": sources,
        "register_rs1": 5, "register_ready": int(ready),
    }  # fmt: skip
    return issue if split else issue | beside


def refusal(number: int) -> Cycle:
    """Return a cycle in which an instruction is refused."""
    return offer(number) | {"issue_accept": 0, "issue_writeback": 0, "issue_register_read": 0}


def registers(number: int) -> Cycle:
    """Return a register transaction behind the issue."""
    return {"register_valid": 1, "register_id": number, "register_rs_valid": TWO}


def commit(number: int) -> Cycle:
    """Return a commit."""
    return {"commit_valid": 1, "commit_id": number}


def kill(number: int) -> Cycle:
    """Return a kill."""
    return commit(number) | {"commit_kill": 1}


def result(number: int) -> Cycle:
    """Return the result of an accepted instruction."""
    return {"result_valid": 1, "result_id": number, "result_rd": RD, "result_we": 1}


HELD = {"result_ready": 0}
END = {"idle": 1}
WAITS, LACKS = offer(2, ready=False), offer(2, ready=False, sources=0b001)

LEGAL = {
    "one after the other": Scene(
        [offer(1), commit(1), result(1), offer(2) | commit(2), result(2), END]
    ),
    "refused and committed": Scene([refusal(1), commit(1), offer(2), commit(2), result(2), END]),
    "committed while it waits": Scene(
        [offer(1), WAITS | commit(1), WAITS | commit(2), WAITS | result(1), offer(2), result(2)]
    ),
    "a kill reaches the offer that waits": Scene([offer(1), WAITS | kill(1), WAITS, offer(2), END]),
    "withdrawn, and another one without a cycle between": Scene(
        [LACKS, LACKS, offer(4), commit(4), result(4), END]
    ),
    "committed by an identifier between two": Scene(
        [offer(1), offer(4), commit(3), result(1), commit(4), result(4), END]
    ),
    "killed by an identifier before all": Scene(
        [offer(1), commit(1), result(1), offer(4), kill(3), END]
    ),
    "an identifier behind all commits": Scene(
        [offer(1), commit(2), result(1), offer(3), commit(3), result(3), END]
    ),
    "decided long ago": Scene(
        [offer(1), commit(1), result(1), offer(2), WAIT, commit(1), kill(2), END]
    ),
    "committed twice": Scene([offer(1), offer(2), commit(2), commit(1), result(1), result(2), END]),
    "registers in another order": Scene(
        [
            offer(1, split=True), offer(2, split=True), registers(2), registers(1) | commit(2),
            result(1), result(2), END,
        ],
        split=True,
    ),
}  # fmt: skip
"""What the standard allows and a host may do."""

BREACHES = {
    "IdUnique": Scene([offer(1), WAIT, offer(1)]),
    "IdIncreases": Scene([offer(1), offer(5), offer(3)]),
    "OneHart": Scene([offer(1), commit(1) | {"commit_hartid": 1}]),
    "IssueStable": Scene([WAITS, WAITS | {"issue_instr": OTHER_WORD}]),
    "AcceptsOwn": Scene([offer(1) | {"issue_instr": 0x33}]),
    "RefusedWritesNothing": Scene([refusal(1) | {"issue_writeback": 1}]),
    "RefusedReadsNothing": Scene([refusal(1) | {"issue_register_read": 1}]),
    "RegisterWithIssue": Scene([offer(1) | {"register_id": 2}]),
    "ReadyTogether": Scene([offer(1) | {"register_ready": 0}]),
    "OperandsAwaited": Scene([offer(1, sources=0b001)]),
    "OthersNotAwaited": Scene([WAITS] * 8),
    "SourcesKept": Scene([LACKS, offer(2, ready=False, sources=0b010)]),
    "SourcesStable": Scene([LACKS, LACKS | {"register_rs1": 6}]),
    "RegisterBehindIssue": Scene([offer(1, split=True) | registers(1)], split=True),
    "RegisterOnce": Scene([offer(1, split=True), registers(1), registers(1)], split=True),
    "RegisterComplete": Scene(
        [offer(1, split=True), registers(1) | {"register_rs_valid": 1}], split=True
    ),
    "RegisterAlwaysReady": Scene([{"register_ready": 0}], split=True),
    "CommitNotAhead": Scene([offer(1), commit(3), WAIT, offer(3)]),
    "CommitPulse": Scene([offer(1), commit(1), commit(1)]),
    "CommitFinal": Scene([offer(1), commit(1), WAIT, kill(1)]),
    "KillFinal": Scene([WAITS | kill(2), WAITS, WAITS | commit(2)]),
    "EveryIssueDecided": Scene([offer(1), END]),
    "ResultOfEach": Scene([offer(1), commit(1), END]),
    "ResultOnce": Scene([offer(1), commit(1), result(1), result(1)]),
    "ResultOfAccepted": Scene([refusal(1), commit(1), result(1)]),
    "ResultOfKilled": Scene([offer(1), kill(1), result(1)]),
    "WaitingIsKilled": Scene([WAITS | kill(2), offer(2), result(2)]),
    "ResultAfterCommit": Scene([offer(1), result(1)]),
    "ResultAfterRegister": Scene([offer(1, split=True), commit(1), result(1)], split=True),
    "ResultComes": Scene([offer(1), commit(1), *[WAIT] * 39]),
    "ResultHeld": Scene([offer(1), commit(1), result(1) | HELD, WAIT]),
    "ResultStable": Scene([offer(1), commit(1), result(1) | HELD, result(1) | {"result_data": 1}]),
    "ResultWriteback": Scene([offer(1), commit(1), result(1) | {"result_we": 0}]),
    "ResultRegister": Scene([offer(1), commit(1), result(1) | {"result_rd": RD + 1}]),
    "ResultHart": Scene([offer(1), commit(1), result(1) | {"result_hartid": 1}]),
}
"""For each rule a scene whose last cycle breaks it, and nothing else."""
