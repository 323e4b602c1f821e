# SPDX-License-Identifier: Apache-2.0
"""Descriptors, tiles and completion records as their bare words, also those that are refused.

The driver makes legal descriptors only, so tests build theirs here, from the specification.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from spec.regs import DESC_ENTRY, DESC_EXTENSION, DESC_RECORD, CmdOp

ENTRIES, ENTRY_BYTES = 8, DESC_ENTRY.size
TILES = (CmdOp.GEMM_S8, CmdOp.GEMM_S4)
SCALARS = tuple(op for op in CmdOp if op not in (*TILES, CmdOp.VRELU_S8))


@dataclass(frozen=True)
class TileWords:
    """What an operation on the scratchpad works on, as the bare fields of GEMM_*.

    Attributes:
        cfg, base, stride: GEMM_CFG, GEMM_BASE and GEMM_STRIDE.
    """

    cfg: int = 0
    base: int = 0
    stride: int = 0

    @classmethod
    def gemm(
        cls, m: int, n: int, k: int, places: tuple[int, int, int], strides: tuple[int, int, int]
    ) -> TileWords:
        """Return a GEMM of (m, k) by (k, n); places and strides of A, B and C."""
        (a, b, c), (stride_a, stride_b, stride_c) = places, strides
        return cls(
            m | n << 8 | k << 16, a | b << 8 | c << 16, stride_a | stride_b << 8 | stride_c << 16
        )

    @classmethod
    def vrelu(cls, length: int, source: int, destination: int) -> TileWords:
        """Return a VRELU of `length` bytes."""
        return cls(length, source | destination << 8, 0)


@dataclass(frozen=True)
class Extension:
    """Words 4 to 7 of an extended descriptor."""

    target: int = 0
    words: tuple[int, int, int] = (0, 0, 0)

    @classmethod
    def of_tile(cls, tile: TileWords, target: int = 0, tag: int = 0) -> Extension:
        """Return shape, places and strides of an operation, with the place of its writeback."""
        return cls(
            target, (tile.cfg, tile.base, tile.stride | DESC_EXTENSION.fields["tag"].put(tag))
        )


@dataclass(frozen=True)
class DescriptorWords:
    """One descriptor.

    Attributes:
        op: bits 3:0 of word 0.
        a, b, acc: words 1 to 3.
        stream: (offset in the scratchpad, bytes) to read from the address in word 1.
        writeback: bit 30.
        extension: words 4 to 7, None for an entry that is not extended.
        program: bit 5.
        owner: bit 31.
        flipped: bits of word 0 that are inverted at last.
    """

    op: int = 0
    a: int = 0
    b: int = 0
    acc: int = 0
    stream: tuple[int, int] | None = None
    writeback: bool = False
    extension: Extension | None = None
    program: bool = False
    owner: bool = True
    flipped: int = 0

    @property
    def words(self) -> tuple[int, ...]:
        """Its four or eight words."""
        offset, size = self.stream or (0, 0)
        first, *others = DESC_ENTRY.pack(
            opcode=self.op,
            owner=int(self.owner),
            writeback=int(self.writeback),
            extended=int(self.extension is not None),
            launch=int(self.program),
            stream=int(self.stream is not None),
            offset=offset,
            bytes=size,
            a=self.a,
            b=self.b,
            acc=self.acc,
        )
        head = (first ^ self.flipped, *others)
        if self.extension is None:
            return head
        return (*head, self.extension.target, *self.extension.words)

    @property
    def places(self) -> int:
        """How many entries of the ring it takes."""
        return 1 if self.extension is None else 2


def launch(
    address: int,
    length: int,
    *,
    token: int = 0,
    base0: int = 0,
    base1: int = 0,
    pos: int = 0,
    tag: int = 0,
) -> DescriptorWords:
    """Return the descriptor that launches the microcode program of `length` words at `address`."""
    extension = Extension(address, (length, pos, DESC_EXTENSION.fields["tag"].put(tag)))
    return DescriptorWords(0, token, base0, base1, extension=extension, program=True)


@dataclass(frozen=True)
class Record:
    """One record of the completion ring."""

    status: int
    index: int
    phase: int
    tag: int
    op: int
    program: bool
    result: int
    result_hi: int
    cycles: int

    @classmethod
    def of(cls, data: bytes) -> Record:
        """Decode 16 bytes.

        Raises:
            ValueError: a reserved bit is set.
        """
        (first,) = struct.unpack_from("<I", data)
        if first & ~DESC_RECORD.mask(0):
            raise ValueError(f"completion record: word 0 is {first:#010x}, reserved bits are set")
        found = DESC_RECORD.unpack(data)
        return cls(
            status=found["code"],
            index=found["index"],
            phase=found["phase"],
            tag=found["tag"],
            op=found["opcode"],
            program=bool(found["launch"]),
            result=found["result"],
            result_hi=found["result_hi"],
            cycles=found["cycles"],
        )
