# SPDX-License-Identifier: Apache-2.0
"""Descriptors as plain data, with the checks of the hardware and their bytes in the ring."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

from npu.driver.command.errors import WORD, CommandError, whole
from npu.driver.command.operation import Gemm, Operation, Scalar, Vrelu, check_operation
from npu.driver.launch import Launch

ENTRY = 16
"""Bytes of a ring entry."""
MOST_STREAM = 60
SCALAR_RESULT = 8
"""Bytes of the writeback of a scalar operation: RESULT and RESULT_HI."""

EXTENDED, PROGRAM, STREAM, WRITEBACK, OWNER = 1 << 4, 1 << 5, 1 << 8, 1 << 30, 1 << 31
OFFSET_LSB, SIZE_LSB, TAG_LSB = 16, 24, 24

Words: TypeAlias = tuple[int, int, int]
"""GEMM_CFG, GEMM_BASE, GEMM_STRIDE."""


@dataclass(frozen=True, slots=True)
class Stream:
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
        """Raise CommandError unless the hardware accepts this."""
        whole("Stream.size", self.size, 4, MOST_STREAM, 4)
        whole("Stream.offset", self.offset, 0, scratch_bytes - self.size, 4)
        whole("Stream.source", self.source, 0, WORD + 1 - self.size, 4)


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
    stream: Stream | None = None
    writeback: int | None = None
    tag: int | None = None

    @property
    def writeback_bytes(self) -> int:
        """Bytes that the result takes in memory; 0 without writeback."""
        if self.writeback is None:
            return 0
        return SCALAR_RESULT if isinstance(self.operation, Scalar) else self.operation.output_bytes

    def check(self, scratch_bytes: int) -> None:
        """Raise CommandError unless the hardware carries this out."""
        check_operation(self.operation, scratch_bytes)
        if self.tag is not None:
            whole("Command.tag", self.tag, 0, 255)
        if self.stream is not None:
            if not isinstance(self.stream, Stream):
                raise CommandError("Command.stream", type(self.stream).__name__, "Stream or None")
            self.stream.check(scratch_bytes)
            if isinstance(self.operation, Scalar) and self.operation.a != self.stream.source:
                raise CommandError(
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
        head = OWNER | operation.op
        a, b, acc = 0, 0, 0
        if isinstance(operation, Scalar):
            a, b, acc = operation.a, operation.b, operation.acc
        if self.stream is not None:
            head |= STREAM | self.stream.offset << OFFSET_LSB | self.stream.size << SIZE_LSB
            a = self.stream.source
        if self.writeback is not None:
            head |= WRITEBACK
        if not self.extended(shared):
            return struct.pack("<4I", head, a, b if self.writeback is None else self.writeback, acc)
        shape, places, strides = (0, 0, 0) if isinstance(operation, Scalar) else operation.words()
        tag = (self.tag or 0) << TAG_LSB
        return struct.pack(
            "<8I", head | EXTENDED, a, b, acc, self.writeback or 0, shape, places, strides | tag
        )


@dataclass(frozen=True, slots=True)
class Program:
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
    def of(cls, launch: Launch, tag: int = 0) -> Program:
        """Return the descriptor of a launch; `CommandPort.prepare` writes the rest of it."""
        return cls(
            launch.ucode_base,
            launch.ucode_len,
            launch.pos,
            launch.token,
            launch.bases[0],
            launch.bases[1],
            tag,
        )

    @property
    def writeback_bytes(self) -> int:
        """A program has no writeback."""
        return 0

    def check(self, scratch_bytes: int) -> None:
        """Raise CommandError unless the hardware accepts this."""
        del scratch_bytes
        whole("Program.length", self.length, 1, (WORD + 1) // ENTRY)
        whole("Program.base", self.base, 0, WORD + 1 - ENTRY * self.length, ENTRY)
        for field in ("base0", "base1"):
            whole(f"Program.{field}", getattr(self, field), 0, WORD, ENTRY)
        for field in ("pos", "token"):
            whole(f"Program.{field}", getattr(self, field), 0, WORD)
        whole("Program.tag", self.tag, 0, 255)

    def extended(self, shared: Words | None) -> bool:
        """Return True: a program always takes two ring entries."""
        del shared
        return True

    def image(self, shared: Words | None) -> bytes:
        """Return the 32 bytes of the ring."""
        del shared
        head = OWNER | EXTENDED | PROGRAM
        words = (self.token, self.base0, self.base1, self.base, self.length, self.pos)
        return struct.pack("<8I", head, *words, self.tag << TAG_LSB)


Descriptor: TypeAlias = Command | Program


def tile_words(descriptor: Descriptor) -> Words | None:
    """Return what the tile registers must hold for this as a short entry; None if it is no tile."""
    if isinstance(descriptor, Command) and isinstance(descriptor.operation, Gemm | Vrelu):
        return descriptor.operation.words()
    return None
