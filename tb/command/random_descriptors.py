# SPDX-License-Identifier: Apache-2.0
"""Random work for the command port: tiles, streams, writebacks, whole descriptors."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from spec.regs import CmdOp
from tb.command.descriptor_words import SCALARS, TILES, DescriptorWords, Extension, TileWords

SOURCE, TARGET = 0x0031_0000, 0x0032_0000
"""Where streams come from and writebacks go."""
AREA = 0x4000
"""Bytes from there on that random descriptors use."""


def operand(random: np.random.Generator) -> int:
    """Return random bits, or bytes at the ends of their ranges."""
    if random.random() < 0.5:
        return int(random.integers(1 << 32))
    corners = np.array([0x00, 0x01, 0x7F, 0x80, 0xFF, 0x88, 0x77, 0x55, 0xAA, 0x0F], np.uint8)
    return int.from_bytes(random.choice(corners, 4).tobytes(), "little")


def is_reserved(op: int, value: int, *, ternary: bool) -> bool:
    """Whether an operand A or B has a lane that the operation refuses."""
    if op == CmdOp.DOT4_FP8_E4M3:
        return any(lane & 0x7F == 0x7F for lane in value.to_bytes(4, "little"))
    return ternary and op == CmdOp.DOT16_S2 and bool(value >> 1 & value & 0x5555_5555)


def allowed(op: int, value: int, *, ternary: bool) -> int:
    """Return an operand with its reserved lanes, if any, changed."""
    if not is_reserved(op, value, ternary=ternary):
        return value
    if op == CmdOp.DOT4_FP8_E4M3:
        lanes = value.to_bytes(4, "little")
        return int.from_bytes([lane ^ (lane & 0x7F == 0x7F) for lane in lanes], "little")
    return value & ~(value >> 1 & value & 0x5555_5555)


# --------------------------------------------------------------------------------------------------
# Tiles
# --------------------------------------------------------------------------------------------------
def legal_gemm(random: np.random.Generator, op: CmdOp, scratch_bytes: int) -> TileWords:
    """Return a GEMM that the chip accepts: places apart, any strides, rows of C may meet."""
    wide = scratch_bytes > 64
    per_byte = 2 if op == CmdOp.GEMM_S4 else 1
    most = (scratch_bytes - 1) if wide else 63
    while True:
        if wide:
            m, n, k = (1 + int(value) for value in random.integers(0, 14, 3))
            strides = [int(value) for value in random.integers(0, 40, 2)]
        else:
            m, n, k = (1 + int(value) for value in random.integers(0, (3, 3, 7)))
            strides = [int(value) for value in random.integers(0, 16, 2)]
        if random.random() < 0.5:  # rows side by side, as a host would place them
            strides = [min(k, 15 if not wide else 255), min(n, 15 if not wide else 255)]
        stride_c = 4 * int(random.integers(0, 64 if wide else 4))
        if m == 1 and random.random() < 0.3:
            stride_c |= int(random.integers(0, 4))
        a, b = (int(value) for value in random.integers(0, most + 1, 2))
        c = 4 * int(random.integers(0, scratch_bytes // 4))
        if c > most:
            continue
        spans = (
            _bytes(a, (m - 1) * strides[0] + k, per_byte),
            _bytes(b, (k - 1) * strides[1] + n, per_byte),
            range(c, c + (m - 1) * stride_c + 4 * n),
        )
        apart = all(_apart(spans[2], span) for span in spans[:2])
        if apart and max(span.stop for span in spans) <= scratch_bytes:
            return TileWords.gemm(m, n, k, (a, b, c), (strides[0], strides[1], stride_c))


def _bytes(first: int, count: int, per_byte: int) -> range:
    """Return the bytes of `count` elements from element `first` on."""
    return range(first // per_byte, (first + count - 1) // per_byte + 1)


def _apart(one: range, other: range) -> bool:
    return one.stop <= other.start or other.stop <= one.start


def legal_vrelu(random: np.random.Generator, scratch_bytes: int, step: int = 1) -> TileWords:
    """Return a VRELU that the chip accepts, often onto itself; all of it multiples of `step`."""
    length = step * int(random.integers(1, scratch_bytes // step + 1))
    room = (scratch_bytes - length) // step + 1
    source, destination = (step * int(value) for value in random.integers(0, room, 2))
    if random.random() < 0.4:
        near = source + step * int(random.integers(-9, 10))
        destination = min(max(near, 0), scratch_bytes - length)
    last = min(scratch_bytes, 256) - 1
    return TileWords.vrelu(length, min(source, last), min(destination, last))


def any_tile(random: np.random.Generator, op: CmdOp, scratch_bytes: int) -> TileWords:
    """Return bits for GEMM_*: mostly a legal tile with one field changed."""
    tile = legal_tile(random, op, scratch_bytes)
    kind = int(random.integers(8))
    if kind == 0:
        return TileWords(*(int(value) for value in random.integers(0, 1 << 24, 3)))
    if kind <= 5:
        name = ("cfg", "base", "stride", "base", "cfg")[kind - 1]
        flipped = getattr(tile, name) ^ 1 << int(random.integers(0, 24))
        return replace(tile, **{name: flipped})
    return tile


def legal_tile(random: np.random.Generator, op: CmdOp, scratch_bytes: int) -> TileWords:
    """Return a tile that the chip accepts."""
    if op in TILES:
        return legal_gemm(random, op, scratch_bytes)
    return legal_vrelu(random, scratch_bytes)


# --------------------------------------------------------------------------------------------------
# Descriptors
# --------------------------------------------------------------------------------------------------
@dataclass
class Maker:
    """Makes random descriptors that succeed.

    Attributes:
        random: the generator.
        scratch_bytes: size of the scratchpad.
        ternary: CMD_PARAM.TERNARY.
        streams: share of descriptors with a stream.
    """

    random: np.random.Generator
    scratch_bytes: int
    ternary: bool = False
    streams: float = 0.4

    def chance(self, share: float) -> bool:
        """Return True in this share of all calls."""
        return bool(self.random.random() < share)

    def address(self, area: int, size: int) -> int:
        """Return a multiple of 4 in an area where `size` bytes fit."""
        return area + 4 * int(self.random.integers(0, (AREA - size) // 4 + 1))

    def stream(self) -> tuple[int, int]:
        """Return offset and size of a stream that fits."""
        size = 4 * int(self.random.integers(1, 16))
        return 4 * int(self.random.integers(0, (self.scratch_bytes - size) // 4 + 1)), size

    def extended(self, op: CmdOp) -> DescriptorWords:
        """Return an extended descriptor, with stream and writeback by chance."""
        writeback = self.chance(0.5)
        tile = TileWords()
        if op in TILES:
            tile = legal_gemm(self.random, op, self.scratch_bytes)
        elif op == CmdOp.VRELU_S8:
            tile = legal_vrelu(self.random, self.scratch_bytes, 4 if writeback else 1)
        target = self.address(TARGET, 4096) if writeback else int(self.random.integers(1 << 32))
        extension = Extension.of_tile(tile, target, int(self.random.integers(256)))
        return self._with_operands(DescriptorWords(op, writeback=writeback, extension=extension))

    def plain(self, op: CmdOp, tile: TileWords) -> DescriptorWords:
        """Return a descriptor without extension; `tile`, in the registers, must be right for it."""
        writeback = op not in SCALARS and self.chance(0.5)
        if op == CmdOp.VRELU_S8 and (tile.cfg | tile.base >> 8) & 3:
            writeback = False
        return self._with_operands(DescriptorWords(op, writeback=writeback))

    def _operand(self, op: int) -> int:
        return allowed(op, operand(self.random), ternary=self.ternary)

    def _with_operands(self, made: DescriptorWords) -> DescriptorWords:
        """Return it with operands, which may have a second use, and by chance with a stream."""
        op = made.op
        found = replace(made, a=self._operand(op), b=self._operand(op), acc=operand(self.random))
        source = self.address(SOURCE, 64)
        if self.chance(self.streams) and not is_reserved(op, source, ternary=self.ternary):
            found = replace(found, a=source, stream=self.stream())
        if made.writeback and made.extension is None:
            found = replace(found, b=self.address(TARGET, 4096))
        return found
