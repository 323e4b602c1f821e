# SPDX-License-Identifier: Apache-2.0
"""Decoding and legality of SOFTMAX, the norms and ROPE."""

from __future__ import annotations

from golden.machine.legal import (
    Dispatch,
    cut,
    matrix,
    require,
    require_dimension,
    require_room,
)
from golden.machine.operands import block, up
from golden.machine.operations import Dropped, NormOperation, Rope, Softmax
from golden.softmax import Visibility
from spec.isa import DYNAMIC, LINE, WORD, Flag, Opcode, SetReg, SmxOut

CAUSAL_FLAG = 1 << Flag.CAUSAL_MASK
NORM_HEADER_BYTES = LINE
NORM_CHANNEL_BYTES = 4
ANGLE_BYTES = 4


def decode_softmax(at: Dispatch) -> Softmax | Dropped:
    """Return the operation of a SOFTMAX word; ProgramError with the first check that fails."""
    word, prefix, registers = at.word, at.prefix, at.registers
    at.require_zero(flags=CAUSAL_FLAG, imm=0x7)
    out, int8 = word.imm & 3, bool(word.imm >> 2 & 1)
    require(out in set(SmxOut) and (out != SmxOut.PROB8 or word.src1 == 0))
    at.require_prefix("cp", "ap")
    m, n = at.dimension("m"), at.dimension("n")
    require_dimension(word.k < DYNAMIC)
    require_dimension(not word.k or at.is_dynamic("m") or m.value % word.k == 0)
    require_room(not n.overflow)
    size, score_size = (2 if out == SmxOut.NUMER16 else 1), (1 if int8 else 2)
    numerators = matrix(word.dst, prefix.cp, m.cap, up(n.cap, 16) * size, size)
    scores = matrix(word.src0, prefix.ap, m.cap, n.cap * score_size, score_size)
    sums = out != SmxOut.PROB8
    at.require_sram(numerators, scores, block(word.src1 * WORD, m.cap * WORD) if sums else None)
    if m.value == 0 or n.value == 0:
        return Dropped(0)
    return Softmax(
        n=n.value,
        scores=cut(scores, m.value, n.value * score_size),
        numerators=cut(numerators, m.value, up(n.value, 16) * size),
        sums=block(word.src1 * WORD, m.value * WORD) if sums else None,
        out=SmxOut(out),
        rule=Visibility(
            causal=bool(word.flags),
            rows_per_head=word.k,
            pos=registers[SetReg.POS],
            start=registers.window_start,
            window=registers[SetReg.WINDOW],
        ),
    )


def decode_norm(at: Dispatch) -> NormOperation | Dropped:
    """Return the operation of a LAYERNORM or RMSNORM word; ProgramError with the first failure."""
    word, prefix = at.word, at.prefix
    at.require_zero("k", imm=0x3)
    stream, size = bool(word.imm & 1), 2 if word.imm & 2 else 1
    require(not stream or word.src1 == 0)
    at.require_prefix("cp", "ap")
    m, n = at.dimension("m"), at.static("n", min(at.config.norm_max, DYNAMIC - 1))
    bytes_ = NORM_HEADER_BYTES + NORM_CHANNEL_BYTES * up(n, 16)
    c = matrix(word.dst, prefix.cp, m.cap, n * size, size)
    x = matrix(word.src0, prefix.ap, m.cap, n * 2, 2)
    params = None if stream else block(word.src1 * WORD, bytes_)
    at.require_sram(c, x, params)
    share = bytes_ if stream else 0
    if m.value == 0:
        return Dropped(share)
    x, c = cut(x, m.value, x.row_bytes), cut(c, m.value, c.row_bytes)
    return NormOperation(word.opcode == Opcode.RMSNORM, x, c, params, n, share)


def decode_rope(at: Dispatch) -> Rope | Dropped:
    """Return the operation of a ROPE word; ProgramError with the first check that fails."""
    word, prefix = at.word, at.prefix
    at.require_zero(imm=0x1)
    at.require_prefix("cp", "ap", "bp")
    m, n, heads = at.dimension("m"), at.static("n"), at.static("k")
    require_dimension(n % 2 == 0)
    row = heads * up(n, 16)
    c = matrix(word.dst, prefix.cp, m.cap, row, 1)
    a = matrix(word.src0, prefix.ap, m.cap, row, 1)
    angles = matrix(word.src1, prefix.bp, m.cap, n // 2 * ANGLE_BYTES, 2)
    at.require_sram(c, a, angles)
    if m.value == 0:
        return Dropped(0)
    return Rope(
        n=n,
        heads=heads,
        pairs=bool(word.imm),
        a=cut(a, m.value, row),
        angles=cut(angles, m.value, angles.row_bytes),
        c=cut(c, m.value, row),
    )
