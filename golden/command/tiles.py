# SPDX-License-Identifier: Apache-2.0
"""The operations of the command port on its scratchpad: GEMM tiles and the vector ReLU."""

from __future__ import annotations

from dataclasses import dataclass

from golden.command.scalar import WORD_MASK, signed
from spec.regs import CMD_FIELDS, CmdOp, CmdReg

NARROW_BYTES = 64
"""The scratchpad of a chip without the fields *_WIDE."""
SCRATCH_SIZES = (64, 128, 256)
GEMMS = (CmdOp.GEMM_S8, CmdOp.GEMM_S4)
ON_SCRATCHPAD = (*GEMMS, CmdOp.VRELU_S8)


class TilesRefusedError(Exception):
    """An operation that is not begun."""


def field_mask(register: CmdReg, scratch_bytes: int) -> int:
    """Return the bits of a register that a chip with such a scratchpad has."""
    return sum(
        field.mask
        for name, field in CMD_FIELDS.items()
        if field.register == register
        and (scratch_bytes > NARROW_BYTES or not name.endswith("_WIDE"))
    )


@dataclass(frozen=True, slots=True)
class ScratchTile:
    """Shape and places of an operation on the scratchpad.

    Attributes:
        m, n, k: rows of A, columns of B, columns of A.
        length: bytes of a VRELU.
        a, b: places of A and B in elements; source and destination of a VRELU in bytes.
        c: place of C in bytes.
        stride_a, stride_b: from row to row in elements.
        stride_c: from row to row in bytes.

    """

    m: int
    n: int
    k: int
    length: int
    a: int
    b: int
    c: int
    stride_a: int
    stride_b: int
    stride_c: int

    @classmethod
    def decode(cls, shape: int, places: int, strides: int, scratch_bytes: int) -> ScratchTile:
        """Return what GEMM_CFG, GEMM_BASE and GEMM_STRIDE say in the fields that the chip has."""
        wide = scratch_bytes > NARROW_BYTES
        shape &= field_mask(CmdReg.GEMM_CFG, scratch_bytes)
        places &= field_mask(CmdReg.GEMM_BASE, scratch_bytes)
        strides &= field_mask(CmdReg.GEMM_STRIDE, scratch_bytes)
        return cls(
            m=shape & (0xFF if wide else 0x3),
            n=shape >> 8 & 0xFF,
            k=shape >> 16 & 0xFF,
            length=shape & (0x1FF if wide else 0x7F),
            a=places & 0xFF,
            b=places >> 8 & 0xFF,
            c=places >> 16 & 0xFF,
            stride_a=strides & 0xFF,
            stride_b=strides >> 8 & 0xFF,
            stride_c=strides >> 16 & 0xFF,
        )


def _touched(first: int, last: int, lanes: int) -> range:
    """Return the bytes from the first to the last element, `lanes` elements in a byte."""
    return range(first // lanes, last // lanes + 1)


def _overlap(x: range, y: range) -> bool:
    return x.start < y.stop and y.start < x.stop


def _check_gemm(tile: ScratchTile, lanes: int, size: int) -> None:
    """Refuse an illegal GEMM with `lanes` elements of A and B in a byte."""
    if not (tile.m and tile.n and tile.k):
        raise TilesRefusedError(f"dimension 0: M {tile.m}, N {tile.n}, K {tile.k}")
    if tile.c % 4 or (tile.m > 1 and tile.stride_c % 4):
        raise TilesRefusedError(f"C at {tile.c}, stride {tile.stride_c}: not multiples of 4")
    last_a = tile.a + (tile.m - 1) * tile.stride_a + tile.k - 1
    last_b = tile.b + (tile.k - 1) * tile.stride_b + tile.n - 1
    last_c = tile.c + (tile.m - 1) * tile.stride_c + 4 * tile.n - 1
    a, b = _touched(tile.a, last_a, lanes), _touched(tile.b, last_b, lanes)
    c = _touched(tile.c, last_c, 1)
    for name, used in (("A", a), ("B", b), ("C", c)):
        if used.stop > size:
            raise TilesRefusedError(f"{name} ends behind the scratchpad, at byte {used.stop - 1}")
    if _overlap(c, a) or _overlap(c, b):
        raise TilesRefusedError("C overlaps A or B")


def check(op: CmdOp, tile: ScratchTile, size: int) -> None:
    """Refuse an operation that the port would not begin on a scratchpad of `size` bytes.

    Raises:
        RefusedError: says why.

    """
    if op in GEMMS:
        _check_gemm(tile, 1 if op == CmdOp.GEMM_S8 else 2, size)
        return
    if not tile.length:
        raise TilesRefusedError("LEN 0")
    for name, first in (("source", tile.a), ("destination", tile.b)):
        if first + tile.length > size:
            raise TilesRefusedError(f"{name} ends behind the scratchpad")


def _element(scratch: bytearray, op: CmdOp, index: int) -> int:
    """Return a signed element of A or B."""
    if op == CmdOp.GEMM_S8:
        return signed(scratch[index], 8)
    return signed(scratch[index // 2] >> 4 * (index % 2), 4)


def run(op: CmdOp, tile: ScratchTile, scratch: bytearray) -> None:
    """Carry out a legal operation on the scratchpad, in place."""
    if op == CmdOp.VRELU_S8:
        for i in range(tile.length):
            byte = scratch[tile.a + i]
            scratch[tile.b + i] = 0 if byte & 0x80 else byte
        return
    for i in range(tile.m):
        for j in range(tile.n):
            total = sum(
                _element(scratch, op, tile.a + i * tile.stride_a + inner)
                * _element(scratch, op, tile.b + inner * tile.stride_b + j)
                for inner in range(tile.k)
            )
            at = tile.c + i * tile.stride_c + 4 * j
            scratch[at : at + 4] = (total & WORD_MASK).to_bytes(4, "little")


def macs(op: CmdOp, tile: ScratchTile) -> int:
    """Return what the operation adds to PERF_MACS."""
    return tile.m * tile.n * tile.k if op in GEMMS else 0


def moved_bytes(op: CmdOp, tile: ScratchTile) -> int:
    """Return what the operation adds to PERF_SCRATCH_BYTES."""
    if op == CmdOp.VRELU_S8:
        return 2 * tile.length
    operand_bytes = 2 if op == CmdOp.GEMM_S8 else 1
    return operand_bytes * macs(op, tile) + 4 * tile.m * tile.n


def result(op: CmdOp, tile: ScratchTile, scratch: bytearray) -> bytes:
    """Return what a writeback sends to memory: the rows of C without gaps, or the bytes."""
    if op == CmdOp.VRELU_S8:
        return bytes(scratch[tile.b : tile.b + tile.length])
    rows = (tile.c + i * tile.stride_c for i in range(tile.m))
    return b"".join(bytes(scratch[row : row + 4 * tile.n]) for row in rows)
