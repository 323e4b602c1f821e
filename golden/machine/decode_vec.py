# SPDX-License-Identifier: Apache-2.0
"""Decoding and legality of VEC, GELU and SILU."""

from __future__ import annotations

from golden.machine.legal import Dispatch, cut, matrix, require, signed16
from golden.machine.operands import block
from golden.machine.operations import Dropped, Vec
from golden.vec import OPERATIONS
from spec.isa import TABLE_BYTES, WORD, VecOp


def decode_vec(at: Dispatch) -> Vec | Dropped:
    """Return the operation of a VEC word; ProgramError with the first check that fails."""
    word, prefix = at.word, at.prefix
    at.require_zero(imm=0x3F7F)
    require(word.imm & 0xF in OPERATIONS)
    op = VecOp(word.imm & 0xF)
    takes = OPERATIONS[op]
    a16, c16, stream = word.imm >> 4 & 1, word.imm >> 5 & 1, bool(word.imm >> 6 & 1)
    shift = word.imm >> 8 & 0x3F
    require(a16 == c16 or takes.converts)
    require(takes.wide or not (a16 or c16))
    require(takes.table or not stream)
    require(shift == 0 or takes.shift)
    from_sram = takes.table and not stream
    require(word.src1 == 0 or takes.two or takes.low or from_sram)
    require(word.k == 0 or takes.k)
    at.require_prefix(*(("cp", "ap", "bp") if takes.two else ("cp", "ap")))
    m, n = at.dimension("m"), at.static("n")
    c = matrix(word.dst, prefix.cp, m.cap, n << c16, 1 + c16)
    a = matrix(word.src0, prefix.ap, m.cap, n << a16, 1 + a16)
    b = matrix(word.src1, prefix.bp, m.cap, n << a16, 1 + a16) if takes.two else None
    table = block(word.src1 * WORD, TABLE_BYTES) if from_sram else None
    at.require_sram(c, a, b, table)
    share = TABLE_BYTES if stream else 0
    if m.value == 0:
        return Dropped(share)
    return Vec(
        op=op,
        a=cut(a, m.value, a.row_bytes),
        b=None if b is None else cut(b, m.value, b.row_bytes),
        c=cut(c, m.value, c.row_bytes),
        table=table,
        low=signed16(word.src1) if takes.low else 0,
        k=signed16(word.k),
        shift=shift,
        share=share,
    )


def decode_lookup(at: Dispatch) -> Vec | Dropped:
    """Return the operation of a GELU or SILU word; ProgramError with the first failing check."""
    word, prefix = at.word, at.prefix
    at.require_zero("k", imm=0x1)
    stream = bool(word.imm)
    require(not stream or word.src1 == 0)
    at.require_prefix("cp", "ap")
    m, n = at.dimension("m"), at.static("n")
    c = matrix(word.dst, prefix.cp, m.cap, n, 1)
    a = matrix(word.src0, prefix.ap, m.cap, n, 1)
    table = None if stream else block(word.src1 * WORD, TABLE_BYTES)
    at.require_sram(c, a, table)
    share = TABLE_BYTES if stream else 0
    if m.value == 0:
        return Dropped(share)
    a, c = cut(a, m.value, n), cut(c, m.value, n)
    return Vec(VecOp.TABLE, a, None, c, table, 0, 0, 0, share)
