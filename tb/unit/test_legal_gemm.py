# SPDX-License-Identifier: Apache-2.0
"""What a GEMM is refused for, on chips with and without narrow formats, as the checker says."""

from __future__ import annotations

import itertools
from dataclasses import replace

import cocotb
import numpy as np

from spec.isa import ErrorCode, Flag, GemmB, GemmOut, GemmQ, Instruction, Opcode
from spec.isa.legality import check
from spec.isa.operands import Limits
from tb.bench.dut import Dut
from tb.unit import elements
from tb.unit.world import UnitBench

LIMITS = Limits(array_dim=int(str(cocotb.plusargs["array_dim"])))


def expected(word: Instruction) -> int:
    """Return a bit for each chip that refuses a field, the one without narrow formats in bit 0."""
    found = (check(word, None, replace(LIMITS, narrow_formats=narrow)) for narrow in (False, True))
    return sum(
        1 << chip
        for chip, error in enumerate(found)
        if error is not None and error[0] == ErrorCode.ILLEGAL_FIELD
    )


@cocotb.test
async def unit_legal_gemm_formats(dut: Dut) -> None:
    """Every source of B with every code of a format and a group, raw sums and int8."""
    words = []
    for b_form, fmt, group, int8 in itertools.product(GemmB, range(8), range(4), (False, True)):
        imm = b_form << 2 | fmt << 4 | (GemmQ.CHANNEL << 7 if int8 else GemmOut.INT32 << 10)
        flags = 1 << Flag.MODE | int8 << Flag.REQUANT
        flags |= (group & 1) << Flag.GROUP_LOW | (group >> 1) << Flag.GROUP_HIGH
        words.append(Instruction(Opcode.GEMM, flags=flags, m=16, n=16, k=16, imm=imm))
    imms, flags_of = (np.array([getattr(it, name) for it in words]) for name in ("imm", "flags"))
    items = elements.elements(imms, flags_of)
    played = await elements.play(UnitBench.of(dut.u_elements), items)
    wanted = [expected(word) for word in words]
    assert len(set(wanted)) == 3, "some words are legal on both chips, on one, and on none"
    elements.check("refused", items, wanted, played.values)
