# SPDX-License-Identifier: Apache-2.0
"""Random instructions for the coprocessor: any word, any operand, any manner of offering."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from golden.coprocessor.decode import answer
from spec.isa.coprocessor import (
    COP_INSTRUCTIONS,
    CopInfo,
    CopOp,
    decode,
    disassemble,
    encode,
    offset,
)
from tb.bench.offers import Offer
from tb.cop import operand_values as values

BORDER = 0x0060_1000
"""Border of two pages: the arrays of random lists lie around it."""
ONE = 0x3F80_0000
MOST_BYTES = 2000
"""An array of random lists is no longer, whatever LIMIT allows."""
Pieces = dict[int, bytes]
"""What is put into memory, by address, in this order."""


def limit_bytes(limit: int) -> int:
    """Return the longest operand in bytes that the register LIMIT stands for."""
    return limit or 1 << 20


def describe(offer: Offer) -> str:
    """Return an instruction with its operands."""
    operands = ", ".join(f"{value:#x}" for value in offer.rs)
    return f"{disassemble(offer.word)} ({offer.word:#010x}) of {operands}"


@dataclass(frozen=True)
class Manner:
    """How the host offers, in shares of all instructions.

    Attributes:
        gaps: with cycles before.
        split: sources that come one by one, those that nobody reads perhaps never.
        commit: most cycles from issue to commit.
        early: commits that do not wait for the issue.
        kills: killed ones.
        batches: committed with a younger one.
        repeats: committed twice.
        holds: results that wait.
        holes: identifiers that are left out, and commits that name one of them.
        alone: wait until nothing is under way.
        stays: offers that wait on when they are killed.
        withdrawn: offers that are withdrawn once.
    """

    gaps: float = 0.0
    split: float = 0.0
    commit: int = 1
    early: float = 0.0
    kills: float = 0.0
    batches: float = 0.0
    repeats: float = 0.0
    holds: float = 0.0
    holes: float = 0.0
    alone: float = 0.0
    stays: float = 0.0
    withdrawn: float = 0.0


QUICK = Manner()
MANNERS = (
    QUICK,
    Manner(commit=0),
    Manner(split=1.0, commit=4),
    Manner(split=0.6, gaps=0.3),
    Manner(commit=30, batches=0.5, kills=0.1),
    Manner(commit=3, kills=0.2, stays=0.7),
    Manner(holds=0.5, gaps=0.2),
    Manner(commit=8, early=0.7, kills=0.1, stays=0.5, split=0.5),
    Manner(commit=9, holes=0.8, kills=0.1, repeats=0.4, batches=0.3),
    Manner(split=0.7, withdrawn=0.6, commit=3, early=0.3),
    Manner(0.2, 0.3, 12, 0.2, 0.08, 0.2, 0.2, 0.2, 0.3, 0.05, 0.5, 0.1),
)
"""Each thing for itself, then all of them."""
NEVER = 255
"""Cycles until a source is there that no instruction waits for."""


@dataclass
class OfferMaker:
    """Draws instructions.

    Attributes:
        random: the generator.
        limit: the register LIMIT.
        manner: how they are offered.
        illegal: share of words that are refused.
        wild: share of counts and addresses that cannot work.
        cuts: whether memory may end within an array: what a write there leaves is open.
        pieces: what the instructions drawn so far want to find in memory.
    """

    random: np.random.Generator
    limit: int = 256
    manner: Manner = QUICK
    illegal: float = 0.04
    wild: float = 0.04
    cuts: bool = True
    pieces: Pieces = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.reach = max(512, 2 * self.most_bytes)
        start = BORDER - self.reach
        words = values.floats(self.random, self.reach // 2)
        self.pieces[start] = words.tobytes()

    @property
    def most_bytes(self) -> int:
        """Bytes of the longest array that is drawn."""
        return min(limit_bytes(self.limit), MOST_BYTES)

    def chance(self, share: float) -> bool:
        """Return True in this share of all calls."""
        return bool(self.random.random() < share)

    def below(self, limit: int) -> int:
        """Return a random number from 0 on."""
        return int(self.random.integers(limit))

    # ----------------------------------------------------------------------------------------------
    # Manner
    # ----------------------------------------------------------------------------------------------
    def offer(self, word: int, *rs: int) -> Offer:
        """Return an instruction as the manner says."""
        manner, chance, below = self.manner, self.chance, self.below
        sources = [0, 0, 0]
        if chance(manner.split):
            op = decode(word)
            read = answer(op).register_read if op is not None else 0
            sources = [NEVER if not read >> at & 1 and chance(0.5) else below(7) for at in range(3)]
        operands = [*rs, *values.integers(self.random, 3 - len(rs)).tolist()]
        return Offer(
            word,
            (operands[0], operands[1], operands[2]),
            gap=1 + below(20) if chance(manner.gaps) else 0,
            sources=(sources[0], sources[1], sources[2]),
            commit=below(manner.commit + 1) if manner.commit > 1 else manner.commit,
            early=chance(manner.early),
            kill=chance(manner.kills),
            batch=chance(manner.batches),
            alone=chance(manner.alone),
            hold=1 + below(12) if chance(manner.holds) else 0,
            step=1 + below(3) if chance(manner.holes) else 1,
            beside=below(4) if chance(manner.holes) else 0,
            stays=chance(manner.stays),
            repeat=chance(manner.repeats),
            withdraw=1 + below(4) if chance(manner.withdrawn) else 0,
            swap=chance(0.5),
        )

    # ----------------------------------------------------------------------------------------------
    # Operands
    # ----------------------------------------------------------------------------------------------
    def count(self, info: CopInfo) -> int:
        """Return a number of elements: often small, around bus words, at the limit, too large."""
        most = self.most_bytes // info.element
        kind = self.below(12)
        if self.chance(self.wild):
            over = limit_bytes(self.limit) // info.element + 1
            return values.one_of(
                self.random, (over, over + 16, 1 << 30, 1 << 31, 0xFFFF_FFFF, 0x4000_0001)
            )
        if kind < 4:
            return min(self.below(6), most)
        if kind < 6:
            return max(0, min(most, self.below(5) * 16 // info.element + self.below(3) - 1))
        if kind < 7:
            return most - self.below(2)
        return self.below(min(most, 40) + 1)

    def address(self, size: int) -> int:
        """Return where an array of `size` bytes begins: any byte, often at the border of pages."""
        if self.chance(self.wild):
            end = 0x0100_0000 - size // 2 if self.cuts else 0x0100_0010
            far = (0xFFFF_FFFF, 0xFFFF_FF00, end, 0x8000_0000)
            return (values.one_of(self.random, far) - self.below(4)) & 0xFFFF_FFFF
        if self.chance(0.3):
            return BORDER - self.below(size + 2) + self.below(2)
        at = BORDER - self.reach + self.below(2 * self.reach - size)
        return at & -16 if self.chance(0.3) else at

    def beside(self, source: int, size: int) -> int:
        """Return where the other array begins: often so that both overlap."""
        if self.chance(0.55):
            return self.address(size)
        near = source + self.below(41) - 20
        if self.chance(0.3):
            near = source + self.below(size + 1)
        return source if self.chance(0.2) else near & 0xFFFF_FFFF

    def _elements(self, op: CopOp, count: int) -> bytes:
        """Return what an array of an instruction holds."""
        if op in (CopOp.VEXP,):
            return values.exponents(self.random, count).tobytes()
        if op == CopOp.VRSQRT:
            return values.radicands(self.random, count).tobytes()
        if op in (CopOp.VMAC, CopOp.VMUL):
            return values.signed_bytes(self.random, count).tobytes()
        if COP_INSTRUCTIONS[op].opcode == COP_INSTRUCTIONS[CopOp.FMACC].opcode:
            return values.floats(self.random, count).tobytes()
        return values.integers(self.random, count).tobytes()

    def _stage(self, op: CopOp, address: int, count: int) -> None:
        """Have an array in memory, if it lies where those of random lists lie."""
        data = self._elements(op, count)
        if abs(address - BORDER) <= self.reach - len(data):
            self.pieces.pop(address, None)
            self.pieces[address] = data

    # ----------------------------------------------------------------------------------------------
    # Instructions
    # ----------------------------------------------------------------------------------------------
    def word(self, op: CopOp) -> int:
        """Return a word of an instruction with any registers, its unused bits too."""
        info = COP_INSTRUCTIONS[op]
        rd, rs1, rs2 = (self.below(32) for _ in range(3))
        imm = 0 if info.format == "R" else self.below(4096) - 2048
        word = encode(op, rd, rs1, rs2, imm)
        if info.format == "R" and info.funct7 is None:
            word |= self.below(128) << 25
        return word

    def scalar(self, op: CopOp) -> Offer:
        """Return an instruction of registers."""
        floating = COP_INSTRUCTIONS[op].rs1 == "float"
        drawn = values.floats(self.random, 2) if floating else values.integers(self.random, 2)
        return self.offer(self.word(op), *drawn.tolist())

    def single(self, op: CopOp) -> Offer:
        """Return an instruction of 4 bytes in memory."""
        word, address = self.word(op), self.address(4)
        if op in (CopOp.VRSQRT, CopOp.FVRSQRT) and self.chance(0.7):
            self._stage(op, address, 1)
        return self.offer(word, (address - offset(word)) & 0xFFFF_FFFF)

    def vector(self, op: CopOp) -> Offer:
        """Return an instruction of arrays."""
        info = COP_INSTRUCTIONS[op]
        count = self.count(info)
        elements = min(count, self.most_bytes // info.element)
        size = elements * info.element
        one = self.address(size)
        if self.chance(0.6):
            self._stage(op, one, elements)
        if info.rs2 == "count":
            return self.offer(self.word(op), one, count)
        other = self.beside(one, size)
        if info.rs2 in ("source", "both") and self.chance(0.5):
            self._stage(op, other, elements)
        return self.offer(self.word(op), one, other, count)

    def instruction(self, op: CopOp) -> Offer:
        """Return any form of an instruction."""
        info = COP_INSTRUCTIONS[op]
        if not info.element:
            return self.scalar(op)
        return self.vector(op) if info.counted else self.single(op)

    def refused(self) -> Offer:
        """Return a word that is no instruction."""
        while True:
            word = self.below(1 << 32)
            if self.chance(0.7):
                word = word & ~0x7F | values.one_of(self.random, (0x0B, 0x2B))
            if decode(word) is None:
                return self.offer(word)

    def with_scalar(self, op: CopOp) -> list[Offer]:
        """Return an instruction behind those that set the accumulator that it multiplies by."""
        if op == CopOp.VMUL:
            factor = self.below(1 << 18) - (1 << 17)
            reset, multiply = CopOp.RSTACC, CopOp.MACC
            operands = (factor & 0xFFFF_FFFF, 1)
        else:
            reset, multiply = CopOp.FRSTACC, CopOp.FMACC
            operands = (int(values.floats(self.random, 1)[0]), ONE)
        before = [
            self.offer(self.word(reset)),
            self.offer(self.word(multiply), *operands),
        ]
        return [*before, self.instruction(op)]

    def list(self, length: int) -> list[Offer]:
        """Return a list of `length` instructions."""
        made: list[Offer] = []
        scaled = (CopOp.VMUL, CopOp.FVMUL, CopOp.FVDIV, CopOp.FVSUB_SCALAR)
        ops = list(CopOp)
        while len(made) < length:
            op = ops[self.below(len(ops))]
            if self.chance(self.illegal):
                made.append(self.refused())
            elif op in scaled and self.chance(0.7):
                made += self.with_scalar(op)
            else:
                made.append(self.instruction(op))
        return made[:length]
