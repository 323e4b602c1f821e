# SPDX-License-Identifier: Apache-2.0
"""A descriptor: its words, and the checks of its configuration."""

from __future__ import annotations

from dataclasses import dataclass

from golden.command import tiles
from golden.command.scalar import WORD_MASK
from golden.command.tiles import GEMMS, NARROW_BYTES, field_mask
from spec.regs import DESC_ENTRY, DESC_EXTENSION, DESC_PROGRAM, CmdOp, CmdReg, RingStatus

ENTRY_BYTES = DESC_ENTRY.size
MOST_STREAM_BYTES = 60
NARROW_OFFSET = 0x3F
"""Scratchpad offsets of a stream in a chip with 64 bytes of scratchpad."""
_FIRST = {
    name: DESC_ENTRY.mask(0, name)
    for name, field in DESC_ENTRY.fields.items()
    if not field.register
}
"""The fields of word 0 in place."""
_TAG = DESC_EXTENSION.mask(7, "tag")


class DescriptorError(Exception):
    """A descriptor that ends the run."""

    def __init__(self, code: RingStatus, reason: str) -> None:
        """Keep the code that the status will show."""
        super().__init__(f"{code.name}: {reason}")
        self.code = code


@dataclass(frozen=True, slots=True)
class LaunchWords:
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

    def _first(self, name: str) -> int:
        """Return a field of word 0."""
        return DESC_ENTRY.fields[name].get(self.words[0])

    @property
    def op(self) -> CmdOp:
        """The operation; meaningless for a program."""
        return CmdOp(self._first("opcode"))

    @property
    def is_owned(self) -> bool:
        """Whether the entry is the port's."""
        return bool(self._first("owner"))

    @property
    def is_extended(self) -> bool:
        """Whether the next ring entry belongs to this one."""
        return bool(self._first("extended"))

    @property
    def is_program(self) -> bool:
        """Whether a program is launched."""
        return self.is_extended and bool(self._first("launch"))

    @property
    def has_stream(self) -> bool:
        """Whether bytes are copied into the scratchpad first."""
        return bool(self._first("stream"))

    @property
    def has_writeback(self) -> bool:
        """Whether the result goes to memory."""
        return bool(self._first("writeback"))

    @property
    def tag(self) -> int:
        """The tag; 0 without a second entry."""
        return DESC_EXTENSION.fields["tag"].get(self.words[7]) if len(self.words) == 8 else 0

    @property
    def offset_field(self) -> int:
        """The bits of word 0 that hold the scratchpad offset."""
        wide = self.scratch_bytes > NARROW_BYTES
        return _FIRST["offset"] if wide else DESC_ENTRY.fields["offset"].put(NARROW_OFFSET)

    @property
    def stream(self) -> tuple[int, int, int]:
        """Return (source address, scratchpad offset, bytes) of the stream."""
        offset = DESC_ENTRY.fields["offset"].get(self.words[0] & self.offset_field)
        return self.words[1], offset, self._first("bytes")

    @property
    def destination(self) -> int:
        """The memory address of the writeback."""
        return self.words[4] if self.is_extended else self.words[2]

    @property
    def program(self) -> LaunchWords:
        """The program of a descriptor that launches one."""
        found = {name: self.words[it.register] for name, it in DESC_PROGRAM.fields.items()}
        return LaunchWords(**found)

    def check_extension(self) -> None:
        """Check reserved bits and program fields of an extended descriptor.

        Raises:
            DescriptorError: FAILED.

        """
        if self.is_program:
            first = _FIRST["owner"] | _FIRST["launch"] | _FIRST["extended"]
            allowed = (first, ~0xF, WORD_MASK, WORD_MASK, _TAG)
        else:
            names = ("owner", "writeback", "bytes", "stream", "extended", "opcode")
            known = self.offset_field | sum(_FIRST[name] for name in names)
            shape = field_mask(CmdReg.GEMM_CFG, self.scratch_bytes)
            places = field_mask(CmdReg.GEMM_BASE, self.scratch_bytes)
            strides = field_mask(CmdReg.GEMM_STRIDE, self.scratch_bytes) | _TAG
            allowed = (known, WORD_MASK, shape, places, strides)
        for index, mask in zip((0, 4, 5, 6, 7), allowed, strict=True):
            if self.words[index] & ~mask:
                word = self.words[index]
                raise DescriptorError(RingStatus.OPERATION, f"word {index} is {word:#010x}")

    def check_stream(self) -> None:
        """Check places and size of the stream.

        Raises:
            DescriptorError: STREAM_CONFIG.

        """
        source, offset, size = self.stream
        fits = 4 <= size <= MOST_STREAM_BYTES and offset + size <= self.scratch_bytes
        if (source | offset | size) % 4 or not fits:
            reason = f"{size} bytes from {source:#x} to {offset}"
            raise DescriptorError(RingStatus.STREAM_CONFIG, reason)

    def check_writeback(self, tile: tiles.ScratchTile) -> None:
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
            raise DescriptorError(RingStatus.WRITEBACK_CONFIG, reason)
