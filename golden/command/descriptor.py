# SPDX-License-Identifier: Apache-2.0
"""A descriptor: its words, and the checks of its configuration."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from golden.command import tiles
from golden.command.scalar import WORD_MASK
from golden.command.tiles import GEMMS, NARROW_BYTES, field_mask
from npu.regs import CmdOp, CmdReg

ENTRY_BYTES = 16
OWNER, WRITEBACK, STREAM, LAUNCH, EXTENDED = (1 << bit for bit in (31, 30, 8, 5, 4))
STREAM_BYTES = 0x3F << 24
TAG = 0xFF << 24
MOST_STREAM_BYTES = 60


class DescCode(IntEnum):
    """How a descriptor, and with it the ring, ends: DESC_STATUS[7:0]."""

    EMPTY = 0x01
    DONE = 0x02
    MISALIGNED = 0x04
    FAILED = 0x06
    TIMEOUT = 0x0C
    FETCH = 0x14
    STREAM_CONFIG = 0x24
    STREAM_READ = 0x34
    OWNER = 0x44
    WRITEBACK_CONFIG = 0x84
    WRITE = 0x94


class DescriptorError(Exception):
    """A descriptor that ends the run."""

    def __init__(self, code: DescCode, reason: str) -> None:
        """Keep the code that the status will show."""
        super().__init__(f"{code.name}: {reason}")
        self.code = code


@dataclass(frozen=True, slots=True)
class Program:
    """A program that a descriptor launches.

    Attributes:
        ucode_base, ucode_len: byte address and length in words of 16 bytes.
        pos, token, base0, base1: initial machine registers.

    """

    ucode_base: int
    ucode_len: int
    pos: int
    token: int
    base0: int
    base1: int


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A descriptor of one or two ring entries.

    Attributes:
        words: four words; with the second entry of an extended one, eight.
        scratch_bytes: size of the chip's scratchpad.

    """

    words: tuple[int, ...]
    scratch_bytes: int

    @classmethod
    def parse(cls, data: bytes, scratch_bytes: int) -> Descriptor:
        """Return the descriptor in one or two fetched entries."""
        words = (int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data), 4))
        return cls(tuple(words), scratch_bytes)

    @property
    def op(self) -> CmdOp:
        """The operation; meaningless for a program."""
        return CmdOp(self.words[0] & 0xF)

    @property
    def is_owned(self) -> bool:
        """Whether the entry is the port's."""
        return bool(self.words[0] & OWNER)

    @property
    def is_extended(self) -> bool:
        """Whether the next ring entry belongs to this one."""
        return bool(self.words[0] & EXTENDED)

    @property
    def is_program(self) -> bool:
        """Whether a program is launched."""
        return self.is_extended and bool(self.words[0] & LAUNCH)

    @property
    def has_stream(self) -> bool:
        """Whether bytes are copied into the scratchpad first."""
        return bool(self.words[0] & STREAM)

    @property
    def has_writeback(self) -> bool:
        """Whether the result goes to memory."""
        return bool(self.words[0] & WRITEBACK)

    @property
    def tag(self) -> int:
        """The tag; 0 without a second entry."""
        return self.words[7] >> 24 if len(self.words) == 8 else 0

    @property
    def offset_field(self) -> int:
        """The bits of word 0 that hold the scratchpad offset."""
        return (0xFF if self.scratch_bytes > NARROW_BYTES else 0x3F) << 16

    @property
    def stream(self) -> tuple[int, int, int]:
        """Return (source address, scratchpad offset, bytes) of the stream."""
        first = self.words[0]
        return self.words[1], (first & self.offset_field) >> 16, (first & STREAM_BYTES) >> 24

    @property
    def destination(self) -> int:
        """The memory address of the writeback."""
        return self.words[4] if self.is_extended else self.words[2]

    @property
    def program(self) -> Program:
        """The program of a descriptor that launches one."""
        _, token, base0, base1, address, length, pos, _ = self.words
        return Program(address, length, pos, token, base0, base1)

    def check_extension(self) -> None:
        """Check reserved bits and program fields of an extended descriptor.

        Raises:
            DescriptorError: FAILED.

        """
        if self.is_program:
            allowed = (OWNER | LAUNCH | EXTENDED, ~0xF, WORD_MASK, WORD_MASK, TAG)
        else:
            known = OWNER | WRITEBACK | STREAM_BYTES | self.offset_field | STREAM | EXTENDED | 0xF
            shape = field_mask(CmdReg.GEMM_CFG, self.scratch_bytes)
            places = field_mask(CmdReg.GEMM_BASE, self.scratch_bytes)
            strides = field_mask(CmdReg.GEMM_STRIDE, self.scratch_bytes) | TAG
            allowed = (known, WORD_MASK, shape, places, strides)
        for index, mask in zip((0, 4, 5, 6, 7), allowed, strict=True):
            if self.words[index] & ~mask:
                word = self.words[index]
                raise DescriptorError(DescCode.FAILED, f"word {index} is {word:#010x}")

    def check_stream(self) -> None:
        """Check places and size of the stream.

        Raises:
            DescriptorError: STREAM_CONFIG.

        """
        source, offset, size = self.stream
        fits = 4 <= size <= MOST_STREAM_BYTES and offset + size <= self.scratch_bytes
        if (source | offset | size) % 4 or not fits:
            reason = f"{size} bytes from {source:#x} to {offset}"
            raise DescriptorError(DescCode.STREAM_CONFIG, reason)

    def check_writeback(self, tile: tiles.Tile) -> None:
        """Check destination and kind of the writeback.

        Args:
            tile: what the operation would do on the scratchpad.

        Raises:
            DescriptorError: WRITEBACK_CONFIG.

        """
        if self.op in GEMMS:
            fine = tile.m > 0 and tile.n > 0
        elif self.op == CmdOp.VRELU_S8:
            aligned = not (tile.length | tile.b) % 4
            fine = 4 <= tile.length <= self.scratch_bytes and aligned
        else:
            fine = self.is_extended
        if self.destination % 4 or not fine:
            reason = f"{self.op.name} to {self.destination:#x}"
            raise DescriptorError(DescCode.WRITEBACK_CONFIG, reason)
