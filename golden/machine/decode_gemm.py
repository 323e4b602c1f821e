# SPDX-License-Identifier: Apache-2.0
"""Decoding and legality of GEMM (section 3 of the ISA)."""

from __future__ import annotations

from dataclasses import dataclass

from golden.gemm import Combine
from golden.machine.legal import (
    DYNAMIC,
    Prefix,
    matrix,
    require,
    require_dimension,
    require_sram,
)
from golden.machine.operands import Matrix, Operand, Tiles, block, up
from golden.machine.operations import AType, Gemm, QForm
from golden.machine.state import WORD, ChipConfig
from npu.isa import Flag, Instruction

FLAG_MASK = 0x6F
B_ROWS, B_TILES, B_STREAM = 0, 1, 2
OUT_INT8, OUT_INT16, OUT_INT32 = 0, 1, 2
TABLE_BYTES = 256
TENSOR_BYTES = 64
CHANNEL_BYTES = 8
MULT_MAX = 32767


@dataclass(frozen=True, slots=True)
class _Mode:
    """The mode word, or its equivalent with MODE clear."""

    a_type: AType = AType.INT8
    b_form: int = B_ROWS
    q: QForm = QForm.NONE
    table: bool = False
    out: int = OUT_INT32
    combine: Combine = Combine.NONE


def _flag(word: Instruction, flag: Flag) -> bool:
    return bool(word.flags >> flag & 1)


def _plain_mode(word: Instruction) -> _Mode:
    """Return the mode of an instruction with MODE clear, refusing what it cannot say."""
    require(not _flag(word, Flag.BIAS_EN))
    if not _flag(word, Flag.REQUANT):
        require(word.imm == 0 and not _flag(word, Flag.RELU))
        return _Mode()
    require(word.imm >> 8 <= 63)
    return _Mode(q=QForm.SCALE, out=OUT_INT8)


def _full_mode(word: Instruction) -> _Mode:
    """Return the mode word, refusing forbidden values and combinations of it and the flags."""
    imm = word.imm
    b_form, fmt, q, table = imm >> 2 & 3, imm >> 4 & 7, imm >> 7 & 3, bool(imm >> 9 & 1)
    out, op = imm >> 10 & 3, imm >> 12 & 3
    requant = _flag(word, Flag.REQUANT)
    require(imm >> 14 == 0 and b_form != 3 and fmt == 0 and out != 3 and op != 3)
    require(requant == (out != OUT_INT32))
    require(requant or not (q or table or op or _flag(word, Flag.RELU)))
    require(not (_flag(word, Flag.TRANSPOSE_B) and b_form == B_STREAM))
    require(not _flag(word, Flag.BIAS_EN) or q == QForm.CHANNEL)
    require(not (_flag(word, Flag.ACCUMULATE) and op))
    require(op != Combine.MUL or (q in (QForm.TENSOR, QForm.CHANNEL) and out == OUT_INT8))
    require(not table or out == OUT_INT8)
    return _Mode(
        AType(imm & 3), b_form, QForm(q) if requant else QForm.NONE, table, out, Combine(op)
    )


def _check_prefix(mode: _Mode, prefix: Prefix, has_d: bool) -> None:
    """Refuse a prefix that lacks something or says something that is not used."""
    uses_mul = mode.q is QForm.PREFIX or mode.combine is Combine.MUL
    used = ["cp", "ap"]
    if mode.b_form == B_ROWS:
        used.append("bp")
    if has_d:
        used.append("dp")
        if mode.b_form != B_STREAM:
            used.append("d")
    if uses_mul:
        used += ["imm", "sh"]
    if mode.q is QForm.ROW:
        require(prefix.present)
        used.append("imm")
    prefix.require_only(*used, "base")
    require(mode.q is not QForm.PREFIX or 1 <= prefix.imm <= MULT_MAX)


def _share(mode: _Mode, n: int, k: int, edge: int) -> int:
    """Return the bytes that the instruction takes from the stream."""
    tiles = up(n, edge) // edge
    size = TABLE_BYTES if mode.table else 0
    if mode.q is QForm.TENSOR:
        size += TENSOR_BYTES
    if mode.q is QForm.CHANNEL:
        size += tiles * edge * CHANNEL_BYTES
    if mode.b_form == B_STREAM:
        size += tiles * up(k, edge) * edge
    return size


def _b_operand(word: Instruction, mode: _Mode, prefix: Prefix, edge: int) -> Operand | None:
    """Return where B lies in SRAM, or None if it comes from the stream."""
    if mode.b_form == B_STREAM:
        return None
    transpose = _flag(word, Flag.TRANSPOSE_B)
    if mode.b_form == B_TILES:
        positions, lanes = (word.n, word.k) if transpose else (word.k, word.n)
        return Tiles(word.src1 * WORD, positions, lanes, edge)
    rows, columns = (word.n, word.k) if transpose else (word.k, word.n)
    return matrix(word.src1, prefix.bp, rows, columns, 1)


def decode_gemm(word: Instruction, prefix: Prefix, config: ChipConfig) -> Gemm:
    """Return the operation of a GEMM word; ProgramError with the first check that fails."""
    require(word.flags & ~FLAG_MASK == 0)
    full = _flag(word, Flag.MODE)
    mode = _full_mode(word) if full else _plain_mode(word)
    accumulate = _flag(word, Flag.ACCUMULATE)
    has_d = accumulate or mode.combine is not Combine.NONE
    _check_prefix(mode, prefix, has_d)
    d_word = prefix.d
    if mode.b_form == B_STREAM:
        require(has_d or word.src1 == 0)
        d_word = word.src1
    elif has_d and not prefix.present:
        require(not full)
        d_word = word.dst
    require(not (accumulate and mode.out != OUT_INT32 and d_word == word.dst))
    dynamic = max(word.m, word.n, word.k) >= DYNAMIC
    require(prefix.base == 0 or (dynamic and prefix.base % 16 == 0))

    passes = mode.a_type.bytes
    for value in (word.m, word.n, word.k):
        require_dimension(value)
    require_dimension(word.m, config.acc_rows // passes)

    c_bytes = {OUT_INT8: 1, OUT_INT16: 2, OUT_INT32: 4}[mode.out]
    d_bytes = 4 if accumulate else c_bytes
    c_rows = word.m * passes if mode.out == OUT_INT32 else word.m
    d_rows = word.m * passes if accumulate else word.m
    c = matrix(word.dst, prefix.cp, c_rows, word.n * c_bytes, c_bytes)
    a = matrix(word.src0, prefix.ap, word.m, word.k * passes, passes)
    b = _b_operand(word, mode, prefix, config.tile)
    d = matrix(d_word, prefix.dp, d_rows, word.n * d_bytes, d_bytes) if has_d else None
    sums: Matrix | None = None
    if mode.q is QForm.ROW:
        sums = block(prefix.imm * WORD, word.m * WORD)
    require_sram(config, c, a, b, d, sums)

    scaled = mode.q is QForm.SCALE
    return Gemm(
        m=word.m,
        n=word.n,
        k=word.k,
        a_type=mode.a_type,
        a=a,
        b=b,
        transpose=_flag(word, Flag.TRANSPOSE_B),
        c=c,
        d=d,
        sums=sums,
        q=mode.q,
        bias=_flag(word, Flag.BIAS_EN),
        relu=_flag(word, Flag.RELU),
        table=mode.table,
        accumulate=accumulate,
        combine=mode.combine,
        out_bits=8 * c_bytes,
        scale=word.imm & 0xFF if scaled else prefix.imm,
        shift=word.imm >> 8 if scaled else prefix.sh,
        share=_share(mode, word.n, word.k, config.tile),
    )
