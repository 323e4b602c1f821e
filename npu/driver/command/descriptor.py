# SPDX-License-Identifier: Apache-2.0
"""Descriptors as plain data, with the checks of the hardware and their bytes in the ring."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from npu.driver.command.operation import Gemm, Operation, Scalar, Vrelu, check_operation
from npu.driver.errors import WORD, RequestError, whole
from spec.regs import DESC_ENTRY, DESC_EXTENSION, DESC_PROGRAM, StartState
from spec.regs.layout import WORD_BYTES

ENTRY = DESC_ENTRY.size
"""Bytes of a ring entry."""
MOST_STREAM = 60
SCALAR_RESULT = 8
"""Bytes of the writeback of a scalar operation: RESULT and RESULT_HI."""

Words: TypeAlias = tuple[int, int, int]
"""GEMM_CFG, GEMM_BASE, GEMM_STRIDE."""


@dataclass(frozen=True, slots=True)
class StagedStream:
    """Bytes that go from memory into the scratchpad before the operation.

    Attributes:
        source: address in memory, a multiple of 4.
        offset: place in the scratchpad, a multiple of 4.
        size: bytes, a multiple of 4 from 4 to 60.
    """

    source: int
    offset: int
    size: int

    def check(self, scratch_bytes: int) -> None:
        """Raise RequestError unless the hardware accepts this."""
        whole("StagedStream.size", self.size, 4, MOST_STREAM, 4)
        whole("StagedStream.offset", self.offset, 0, scratch_bytes - self.size, 4)
        whole("StagedStream.source", self.source, 0, WORD + 1 - self.size, 4)


@dataclass(frozen=True, slots=True)
class Command:
    """A descriptor that runs an operation.

    Attributes:
        operation: what to run. With a stream, operand A of a scalar operation is the stream's
            address: the two share a word.
        stream: what to bring into the scratchpad first.
        writeback: address that the result goes to, a multiple of 4. A GEMM writes its words row
            after row, a VRELU its bytes, a scalar operation RESULT and RESULT_HI.
        tag: 0 to 255 for the completion record; it makes the entry an extended one.
    """

    operation: Operation
    stream: StagedStream | None = None
    writeback: int | None = None
    tag: int | None = None

    @property
    def writeback_bytes(self) -> int:
        """Bytes that the result takes in memory; 0 without writeback."""
        if self.writeback is None:
            return 0
        return SCALAR_RESULT if isinstance(self.operation, Scalar) else self.operation.output_bytes

    def check(self, scratch_bytes: int) -> None:
        """Raise RequestError unless the hardware carries this out."""
        check_operation(self.operation, scratch_bytes)
        if self.tag is not None:
            whole("Command.tag", self.tag, 0, 255)
        if self.stream is not None:
            if not isinstance(self.stream, StagedStream):
                raise RequestError(
                    "Command.stream", type(self.stream).__name__, "StagedStream or None"
                )
            self.stream.check(scratch_bytes)
            if isinstance(self.operation, Scalar) and self.operation.a != self.stream.source:
                raise RequestError(
                    f"{self.operation.op.name}.a",
                    f"{self.operation.a:#x} with a stream",
                    f"its source, {self.stream.source:#x}",
                )
        if self.writeback is not None:
            if isinstance(self.operation, Vrelu):
                whole("VRELU_S8.length with writeback", self.operation.length, 4, scratch_bytes, 4)
                whole(
                    "VRELU_S8.destination with writeback",
                    self.operation.destination, 0, scratch_bytes - 4, 4,
                )  # fmt: skip
            whole("Command.writeback", self.writeback, 0, WORD + 1 - self.writeback_bytes, 4)

    def extended(self, shared: Words | None) -> bool:
        """Return whether this takes two ring entries, with `shared` in the tile registers."""
        if self.tag is not None:
            return True
        if isinstance(self.operation, Scalar):
            return self.writeback is not None
        return self.operation.words() != shared

    def image(self, shared: Words | None) -> bytes:
        """Return the 16 or 32 bytes of the ring, with `shared` in the tile registers."""
        operation = self.operation
        extended = self.extended(shared)
        fields = {"owner": 1, "opcode": int(operation.op), "extended": int(extended)}
        if isinstance(operation, Scalar):
            fields |= {"a": operation.a, "b": operation.b, "acc": operation.acc}
        if self.stream is not None:
            stream = self.stream
            fields |= {"stream": 1, "offset": stream.offset, "bytes": stream.size}
            fields["a"] = stream.source
        if self.writeback is not None:
            fields["writeback"] = 1
        if not extended:
            if self.writeback is not None:
                fields["b"] = self.writeback
            return DESC_ENTRY.image(**fields)
        shape, places, strides = (0, 0, 0) if isinstance(operation, Scalar) else operation.words()
        second = DESC_EXTENSION.image(
            target=self.writeback or 0, cfg=shape, base=places, stride=strides, tag=self.tag or 0
        )
        return DESC_ENTRY.image(**fields) + second


@dataclass(frozen=True, slots=True)
class ProgramDescriptor:
    """A descriptor that launches a microcode program and waits for its end.

    Attributes:
        base: address of the program, a multiple of 16.
        length: words of 16 bytes.
        pos, token: initial registers of these names.
        base0, base1: initial BASE0 and BASE1, multiples of 16.
        tag: 0 to 255 for the completion record.
    """

    base: int
    length: int
    pos: int = 0
    token: int = 0
    base0: int = 0
    base1: int = 0
    tag: int = 0

    @classmethod
    def of(cls, start: StartState, tag: int = 0) -> ProgramDescriptor:
        """Return the descriptor of a start; `CommandPort.prepare` writes the rest of it."""
        return cls(
            start.ucode_base,
            start.ucode_len,
            start.pos,
            start.token,
            start.bases[0],
            start.bases[1],
            tag,
        )

    @property
    def writeback_bytes(self) -> int:
        """A program has no writeback."""
        return 0

    def check(self, scratch_bytes: int) -> None:
        """Raise RequestError unless the hardware accepts this."""
        del scratch_bytes
        whole("ProgramDescriptor.length", self.length, 1, (WORD + 1) // ENTRY)
        whole("ProgramDescriptor.base", self.base, 0, WORD + 1 - ENTRY * self.length, ENTRY)
        for field in ("base0", "base1"):
            whole(f"ProgramDescriptor.{field}", getattr(self, field), 0, WORD, ENTRY)
        for field in ("pos", "token"):
            whole(f"ProgramDescriptor.{field}", getattr(self, field), 0, WORD)
        whole("ProgramDescriptor.tag", self.tag, 0, 255)

    def extended(self, shared: Words | None) -> bool:
        """Return True: a program always takes two ring entries."""
        del shared
        return True

    def image(self, shared: Words | None) -> bytes:
        """Return the 32 bytes of the ring."""
        del shared
        head = DESC_ENTRY.image(owner=1, extended=1, launch=1)[:WORD_BYTES]
        program = DESC_PROGRAM.image(
            token=self.token,
            base0=self.base0,
            base1=self.base1,
            ucode_base=self.base,
            ucode_len=self.length,
            pos=self.pos,
        )
        return head + program + DESC_EXTENSION.image(tag=self.tag)[-WORD_BYTES:]


Descriptor: TypeAlias = Command | ProgramDescriptor


def tile_words(descriptor: Descriptor) -> Words | None:
    """Return what the tile registers must hold for this as a short entry; None if it is no tile."""
    if isinstance(descriptor, Command) and isinstance(descriptor.operation, Gemm | Vrelu):
        return descriptor.operation.words()
    return None
