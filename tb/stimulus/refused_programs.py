# SPDX-License-Identifier: Apache-2.0
"""Runs programs that must be refused, between neighbours, each followed by a correct one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np

from golden.machine import ErrorReport
from npu.asm import assemble
from spec.isa import Engine, ErrorCode, Instruction, Opcode
from spec.isa.legality import check
from spec.isa.operands import Limits, Prefix, share_bytes, sram_operands
from spec.regs import MachineStart
from tb.bench.dut import Dut
from tb.bench.environment import DEFAULT_LIMIT, INPUT, OUTPUT, Bench, full
from tb.stimulus.refused_words import FORMS, Group, groups

END = Instruction(Opcode.END)
NOP = Instruction(Opcode.NOP)
CAPACITY = 1 << 20
HEAD = 0x1_0000
"""KVCAP and KVHEAD where nothing else is said."""
BASES = (INPUT, OUTPUT, 0x10, 0, 0, 0, 0, 0)

OLDER = assemble("VEC op=relu dst=0x18000 src0=0x18100 M=3 N=40\nNOP").instructions
"""Goes before what is refused, and must finish."""
YOUNGER = assemble("VEC op=relu dst=0x19000 src0=0x18100 M=3 N=40\nEND").instructions
"""Goes behind what is refused, and must not begin."""
RECOVERY = assemble("""
    DMA_LOAD dst=0x8000 M=4 N=64 b=0
    BARRIER ld
    GEMM dst=0x8800 src0=0x8000 M=4 N=16 K=64 B=stream q=ch bias
    VEC op=mul dst=0x9000 src0=0x8000 src1=0x8100 M=2 N=40 sh=3
    SOFTMAX dst=0x9800 src0=0xA000 src1=0xA800 M=2 N=20 out=u16
    LAYERNORM dst=0xB000 src0=0xB800 M=2 N=32 stream
    GELU dst=0xC000 src0=0xC800 M=1 N=16 stream
    BARRIER
    DMA_STORE dst=0x8800 M=4 N=16 b=1
    END
""").instructions
"""A correct program: every engine, the stream, input from and output to memory."""


@dataclass
class Refusals:
    """Runs programs that must be refused, each followed by the correct one."""

    bench: Bench

    @classmethod
    async def start(cls, dut: Dut) -> Refusals:
        """Reset the chip; it is the last reset of the test."""
        return cls(await Bench.start(dut))

    @property
    def limits(self) -> Limits:
        """Return the sizes of the chip for the static checker."""
        return self.bench.limits

    def outside(self, words: Group) -> int:
        """Return the byte address of the first operand, in the order of checks, that is outside.

        That of the first line, whichever line of A is outside.
        """
        prefix = Prefix.of(words[0] if len(words) == 2 else None)
        operands = sram_operands(words[-1], prefix, self.limits.edge)
        name = next(o.name for o in operands if o.end > self.limits.sram_bytes)
        return next(o.address for o in operands if o.name == name)

    async def recover(self) -> None:
        """Run the correct program on new input and compare it; in short form one time in eight."""
        bench = self.bench
        if not full() and bench.random.integers(8):
            return
        stream = bench.random.integers(0, 256, shares(RECOVERY, self.limits.edge), np.uint8)
        bench.memory.stage(INPUT, bench.random.integers(0, 256, 256, np.uint8))
        execution = await bench.execute(RECOVERY, stream.tobytes())
        assert execution.finish.error is None, execution.finish.error

    async def run(
        self,
        words: Sequence[Instruction],
        error: ErrorReport | None,
        *,
        stream: bytes = b"",
        length: int | None = None,
        **registers: Unpack[MachineStart],
    ) -> None:
        """Run a whole program that ends as told, then the correct one."""
        registers.setdefault("kv_cap", CAPACITY)
        registers.setdefault("kv_head", HEAD)
        registers.setdefault("bases", BASES)
        start = self.bench.load(words, stream, length=length, **registers)
        found = (await self.bench.run(words, start)).finish.error
        assert found == error, f"given {found}, wanted {error} of {words}"
        await self.recover()

    async def refused(
        self,
        words: Group,
        code: ErrorCode,
        address: int = 0,
        *,
        stream: bytes = b"",
        statically: bool = True,
        **registers: Unpack[MachineStart],
    ) -> None:
        """Run `words` with neighbours; the last one must be refused.

        `statically`: the assembler's checker must give the same code for it.
        """
        if statically:
            prefix = words[0] if len(words) == 2 else None
            found = check(words[-1], prefix, self.limits)
            assert found is not None and found[0] == code, f"{words}: checker says {found}"
        program = [*OLDER, *words, *YOUNGER]
        error = ErrorReport(code, Engine.SEQ, len(OLDER) + len(words) - 1, address)
        await self.run(program, error, stream=stream, **registers)

    async def accepted(self, words: Group, **registers: Unpack[MachineStart]) -> None:
        """Run `words` with a stream that holds just their shares; they must not be refused.

        An error that an engine finds while it runs is none of the sequencer.
        """
        stream = self.bench.random.integers(0, 256, shares(words, self.limits.edge), np.uint8)
        registers.setdefault("kv_cap", CAPACITY)
        registers.setdefault("kv_head", HEAD)
        program = [*words, END]
        start = self.bench.load(program, stream.tobytes(), **registers)
        if words[-1].opcode == Opcode.EMBED and words[-1].src0:
            # Its row numbers are what the SRAM happens to hold.
            error = (await self.bench.chip.run(start, DEFAULT_LIMIT)).error
        else:
            error = (await self.bench.run(program, start)).finish.error
        assert error is None or error.engine != Engine.SEQ, f"{words}: {error}"


def shares(words: Sequence[Instruction], edge: int) -> int:
    """Return the bytes that a program takes from the stream."""
    return sum(share_bytes(word, edge) for word in words)


def changed(words: Group, place: int, **fields: int) -> Group:
    """Return the words with fields of one of them replaced; place -1 is the instruction."""
    result = list(words)
    result[place] = replace(result[place], **fields)
    return result


def forms() -> list[Group]:
    """Return legal instructions of all opcodes, each with its prefix word if it has one."""
    return groups(FORMS)
