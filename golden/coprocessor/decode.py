# SPDX-License-Identifier: Apache-2.0
"""Which words are instructions, and which registers each one uses.

Only the code of an instruction is taken from the instruction set's table.
"""

from __future__ import annotations

from typing import NamedTuple

from golden.coprocessor.operations import COUNT_IN_RD, COUNT_IN_RS2
from spec.isa.cop_generated import COP_INSTRUCTIONS, CopOp

RS1, RS2, RD = 1, 2, 4
"""Bits of a set of register fields."""
_CODES = {(info.opcode, info.funct3, info.funct7): op for op, info in COP_INSTRUCTIONS.items()}
_PAIRS = frozenset({CopOp.MACC, CopOp.QMUL, CopOp.FMACC}) | COUNT_IN_RS2
_NO_OPERANDS = frozenset({CopOp.RSTACC, CopOp.FRSTACC})
_INTEGER_RESULTS = frozenset(
    {
        *(CopOp.RELU, CopOp.QMUL, CopOp.CLAMP, CopOp.GELU, CopOp.RSTACC),
        *(CopOp.VRSQRT, CopOp.VREDUCE, CopOp.VMAX),
    }
)
FLOAT_RESULTS = frozenset(
    {
        *(CopOp.FRSQRT, CopOp.FRELU, CopOp.FGELU, CopOp.FRSTACC),
        *(CopOp.FVRSQRT, CopOp.FVREDUCE, CopOp.FVMAX),
    }
)
_FLOAT_OPERANDS = {CopOp.FMACC: RS1 | RS2, CopOp.FRSQRT: RS1, CopOp.FRELU: RS1, CopOp.FGELU: RS1}


class OfferAnswer(NamedTuple):
    """The answer to an offered word.

    Attributes:
        accept: whether the coprocessor takes it; nothing else holds if not.
        writeback: whether it has a result for rd.
        register_read: the registers that it reads: RS1, RS2, and RD for x[rd] as a count.
        floats: those of RS1, RS2, RD that are f registers on a host that has them.

    """

    accept: bool
    writeback: bool = False
    register_read: int = 0
    floats: int = 0


REFUSED = OfferAnswer(accept=False)


class Fields(NamedTuple):
    """The register fields of a word, and the offset of the instruction if it has one."""

    rd: int
    rs1: int
    rs2: int
    offset: int


def decode(word: int) -> CopOp | None:
    """Return the instruction of a word, None if it is none of the coprocessor's.

    The upper seven bits count only where funct3 is 0.
    """
    opcode, funct3, funct7 = word & 0x7F, word >> 12 & 7, word >> 25
    return _CODES.get((opcode, funct3, None if funct3 else funct7))


def fields(op: CopOp, word: int) -> Fields:
    """Return the fields of an instruction; the offsets of LDVEC and STVEC are signed."""
    rd, rs1, rs2 = (word >> at & 31 for at in (7, 15, 20))
    raw = {CopOp.LDVEC: word >> 20, CopOp.STVEC: word >> 25 << 5 | rd}.get(op, 0)
    return Fields(rd, rs1, rs2, (raw ^ 0x800) - 0x800)


def answer(op: CopOp) -> OfferAnswer:
    """Return what an accepted instruction is answered with."""
    if op in COUNT_IN_RD:
        reads = RS1 | RS2 | RD
    elif op in _PAIRS:
        reads = RS1 | RS2
    else:
        reads = 0 if op in _NO_OPERANDS else RS1
    floats = _FLOAT_OPERANDS.get(op, 0) | (RD if op in FLOAT_RESULTS else 0)
    return OfferAnswer(True, op in _INTEGER_RESULTS | FLOAT_RESULTS, reads, floats)
