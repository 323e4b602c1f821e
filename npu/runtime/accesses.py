# SPDX-License-Identifier: Apache-2.0
"""What programs touch: memory behind base registers, the stream, SRAM. Read off their words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npu.image import StreamShare
from spec.isa.gemm import GemmForm
from spec.isa.generated import DYNAMIC, OPCODES, Opcode, SetReg, WeightFormat, WeightGroup
from spec.isa.instruction import Instruction
from spec.isa.operands import WORD, Limits, Prefix, share_bytes, sram_operands, up

LINE = 64


@dataclass(frozen=True, slots=True)
class PlanTransfer:
    """A copy between memory and SRAM.

    Attributes:
        word: its index in the program.
        register: base register.
        first, end: bytes behind it that are touched, from the first row to the last.
        writes: whether memory is written.
    """

    word: int
    register: int
    first: int
    end: int
    writes: bool


def transfers(program: Sequence[Instruction]) -> Iterator[PlanTransfer]:
    """Yield the copies of a program, in order."""
    for index, word in enumerate(program):
        if word.opcode not in (Opcode.DMA_LOAD, Opcode.DMA_STORE):
            continue
        first = word.src0 | word.src1 << 16
        pitch = word.k * WORD or up(word.n)
        end = first + (word.m - 1) * pitch + word.n
        base = OPCODES[Opcode(word.opcode)].imm["base"].get(word.imm)
        yield PlanTransfer(index, base, first, end, word.opcode == Opcode.DMA_STORE)


@dataclass(frozen=True, slots=True)
class Taken:
    """A piece of the stream that an instruction takes.

    Attributes:
        word: index of the instruction in the program.
        opcode: of it.
        offset, bytes: of the piece.
        format, group: of the weights in it, as a share names them.
    """

    word: int
    opcode: int
    offset: int
    bytes: int
    format: str = ""
    group: str = ""

    def is_of(self, share: StreamShare | None) -> bool:
        """Whether a share is what the instruction takes, wherever it lies."""
        return share is not None and (
            (share.opcode, share.bytes, share.format, share.group)
            == (self.opcode, self.bytes, self.format, self.group)
        )

    def follows(self, other: Taken) -> bool:
        """Whether it is more of what another instruction takes, which has only some columns."""
        return (self.opcode, self.format, self.group, self.offset) == (
            *(other.opcode, other.format, other.group),
            other.offset + other.bytes,
        )

    def __str__(self) -> str:
        kind = " ".join(filter(None, (Opcode(self.opcode).name, self.format, self.group)))
        return f"{self.bytes} bytes of the stream from {self.offset} for {kind}"


def taken(program: Sequence[Instruction], limits: Limits) -> Iterator[Taken]:
    """Yield what a program without loops takes from the stream, then where it stands at the end.

    The last one has the opcode END and no bytes.
    """
    at = 0
    for index, word in enumerate(program):
        if word.opcode == Opcode.SET and word.dst == SetReg.STREAM:
            at = word.src0 | word.src1 << 16
            continue
        size = share_bytes(word, limits.edge)
        if size:
            yield Taken(index, word.opcode, at, size, *_weights(word))
            at += size
    yield Taken(len(program) - 1, Opcode.END, at, 0)


def _weights(word: Instruction) -> tuple[str, str]:
    """Return format and group of the weights that a GEMM takes, as a share names them."""
    if word.opcode != Opcode.GEMM:
        return "", ""
    form = GemmForm.of(word)
    if not form.stream or form.format == WeightFormat.INT8:
        return "", ""
    return WeightFormat(form.format).asm, WeightGroup(form.group).asm if form.grouped else ""


def sram_bytes(program: Sequence[Instruction], limits: Limits) -> int:
    """Return the bytes of SRAM that a program uses, from address 0."""
    end = 0
    for _, word, prefix in prefixed(program):
        for one in sram_operands(word, Prefix.of(prefix), limits.edge):
            end = max(end, one.end)
    return end


def prefixed(
    program: Sequence[Instruction],
) -> Iterator[tuple[int, Instruction, Instruction | None]]:
    """Yield index, word and prefix of each instruction."""
    prefix: Instruction | None = None
    for index, word in enumerate(program):
        if word.opcode == Opcode.PFX:
            prefix = word
            continue
        yield index, word, prefix
        prefix = None


def is_static(word: Instruction) -> bool:
    """Whether no dimension of an instruction comes from a register."""
    kinds = {
        name: info.kind
        for name, info in OPCODES[Opcode(word.opcode)].fields.items()
        if name in ("m", "n", "k")
    }
    return not any(kind == "dyn" and getattr(word, name) >= DYNAMIC for name, kind in kinds.items())
