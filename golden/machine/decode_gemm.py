# SPDX-License-Identifier: Apache-2.0
"""Decoding and legality of GEMM (section 3 of the ISA)."""

from __future__ import annotations

from dataclasses import dataclass

from golden.formats import BEAT, GROUPED, share_beats
from golden.machine.legal import Dimension, Dispatch, natural, require, require_dimension
from golden.machine.operands import Lines, Matrix, Operand, Tiles, block, up
from golden.machine.operations import Dropped, GemmOperation, QForm, element_bytes
from golden.machine.state import ChipConfig
from spec.isa import (
    DEPTHWISE_TAPS,
    GEMM_LINES,
    LINE,
    MULT_MAX,
    SHIFT_MAX,
    TABLE_BYTES,
    WORD,
    Flag,
    GemmA,
    GemmB,
    GemmOp,
    GemmOut,
    GemmQ,
    Instruction,
    WeightFormat,
    WeightGroup,
)

FLAG_MASK = 0x7F
_FROM_STREAM = (GemmB.STREAM, GemmB.STREAM_MX)
_PAGE = 8
"""The second page of formats begins here."""
_GROUP_ROWS = {
    WeightGroup.G16: 16,
    WeightGroup.G32: 32,
    WeightGroup.G64: 64,
    WeightGroup.G128: 128,
}
C_BYTES = {GemmOut.INT8: 1, GemmOut.INT16: 2, GemmOut.INT32: 4, GemmOut.NONE: 2}
"""Bytes of an element of C; without C those of the values that argmax compares."""
TENSOR_BYTES = LINE
CHANNEL_BYTES = 8


@dataclass(frozen=True, slots=True)
class _Mode:
    """The mode word, or its equivalent with MODE clear; `group`: rows that share a side byte."""

    a_type: GemmA = GemmA.INT8
    b_form: GemmB = GemmB.ROW_MAJOR
    fmt: WeightFormat = WeightFormat.INT8
    group: int = _GROUP_ROWS[WeightGroup.G32]
    q: QForm = QForm.NONE
    table: bool = False
    out: GemmOut = GemmOut.INT32
    combine: GemmOp = GemmOp.NONE
    argmax: bool = False
    depthwise: bool = False

    @property
    def stream(self) -> bool:
        """Whether B comes from the stream."""
        return self.b_form in _FROM_STREAM


def _flag(word: Instruction, flag: Flag) -> bool:
    return bool(word.flags >> flag & 1)


def _in_lines(at: Dispatch, mode: _Mode) -> bool:
    """Whether the prefix's place of D cuts the rows of A into lines."""
    return mode.stream and not mode.depthwise and at.prefix.d != 0


def _plain_mode(word: Instruction) -> _Mode:
    """Return the mode of an instruction with MODE clear, refusing what it cannot say."""
    require(not _flag(word, Flag.BIAS_EN) and not _flag(word, Flag.GROUP_HIGH))
    if not _flag(word, Flag.REQUANT):
        require(word.imm == 0 and not _flag(word, Flag.RELU))
        return _Mode()
    require(word.imm >> 8 <= SHIFT_MAX)
    return _Mode(q=QForm.SCALE, out=GemmOut.INT8)


def _weights(word: Instruction, config: ChipConfig) -> tuple[WeightFormat, int]:
    """Return format and group of B, refusing what is reserved and what the chip does not have."""
    b_form, fmt = GemmB(word.imm >> 2 & 3), word.imm >> 4 & 7
    if b_form not in _FROM_STREAM:
        require(fmt == 0 and not _flag(word, Flag.GROUP_HIGH))
        return WeightFormat.INT8, _GROUP_ROWS[WeightGroup.G32]
    code = fmt + (_PAGE if b_form == GemmB.STREAM_MX else 0)
    require(code in set(WeightFormat))
    form = WeightFormat(code)
    require(form == WeightFormat.INT8 or config.narrow_formats)
    group = WeightGroup(_flag(word, Flag.GROUP_HIGH) << 1 | _flag(word, Flag.GROUP_LOW))
    require(form in GROUPED or group == WeightGroup.G32)
    require(_GROUP_ROWS[group] % config.tile == 0)
    return form, _GROUP_ROWS[group]


def _full_mode(word: Instruction, config: ChipConfig) -> _Mode:
    """Return the mode word, refusing forbidden values and combinations of it and the flags."""
    imm, op = word.imm, word.imm >> 12 & 3
    q, out, table = GemmQ(imm >> 7 & 3), GemmOut(imm >> 10 & 3), bool(imm >> 9 & 1)
    requant = _flag(word, Flag.REQUANT)
    argmax, depthwise = bool(imm >> 14 & 1), bool(imm >> 15 & 1)
    require(op in set(GemmOp))
    fmt, group = _weights(word, config)
    require(out != GemmOut.NONE or (argmax and word.dst == 0))
    require(not argmax or out != GemmOut.INT32)
    require(requant == (out != GemmOut.INT32))
    require(requant or (q == GemmQ.PREFIX and op == GemmOp.NONE))
    require(requant or not (table or _flag(word, Flag.RELU)))
    require(not _flag(word, Flag.BIAS_EN) or q == GemmQ.CHANNEL)
    require(not (_flag(word, Flag.ACCUMULATE) and op != GemmOp.NONE))
    require(op != GemmOp.MUL or (q in (GemmQ.TENSOR, GemmQ.CHANNEL) and out == GemmOut.INT8))
    require(not table or out == GemmOut.INT8)
    form = QForm[q.name] if requant else QForm.NONE
    a_type, b_form = GemmA(imm & 3), GemmB(imm >> 2 & 3)
    if depthwise:
        require(b_form in _FROM_STREAM and element_bytes(a_type) == 1)
        require(config.depthwise)
    return _Mode(a_type, b_form, fmt, group, form, table, out, GemmOp(op), argmax, depthwise)


def _check_prefix(at: Dispatch, mode: _Mode) -> None:
    """Refuse a prefix that lacks something or says something that is not used."""
    used = ["ap"]
    if mode.out != GemmOut.NONE:
        used.append("cp")
    if mode.b_form == GemmB.ROW_MAJOR or mode.depthwise:
        used.append("bp")
    if _in_lines(at, mode):
        require(at.prefix.lines > 1 and at.prefix.bp != 0)
        used += ["bp", "d"]
    if _flag(at.word, Flag.ACCUMULATE) or mode.combine is not GemmOp.NONE:
        used += ["dp"] if mode.stream else ["d", "dp"]
    if mode.q is QForm.PREFIX or mode.combine is GemmOp.MUL:
        used += ["imm", "sh"]
    if mode.q is QForm.ROW:
        require(at.prefix.present)
        used.append("imm")
    if at.is_dynamic("m", "n", "k"):
        used.append("base")
    at.require_prefix(*used)
    require(mode.q is not QForm.PREFIX or 1 <= at.prefix.imm <= MULT_MAX)


def _share(mode: _Mode, n: int, k: int, edge: int) -> int:
    """Return the bytes that the instruction takes from the stream."""
    tiles = up(n, edge) // edge
    size = TABLE_BYTES if mode.table else 0
    if mode.q is QForm.TENSOR:
        size += TENSOR_BYTES
    if mode.q is QForm.CHANNEL:
        size += tiles * edge * CHANNEL_BYTES
    if mode.stream:
        size += tiles * share_beats(mode.fmt, k, edge, mode.group) * BEAT
    return size


@dataclass(frozen=True, slots=True)
class _OperandLayout:
    """Where the operands of a GEMM begin and their pitches in bytes, 0 where there is none.

    The pitch of B is that of A's lines where A is in lines or the GEMM depthwise. `lines`: number
    and bytes of the lines of a row of A, None for whole rows.
    """

    word: Instruction
    mode: _Mode
    edge: int
    accumulate: bool
    d_word: int | None
    sums_word: int | None
    c_pitch: int
    a_pitch: int
    b_pitch: int
    d_pitch: int
    lines: tuple[int, int] | None

    def place(
        self, m: int, n: int, k: int
    ) -> tuple[Matrix | None, Matrix, Operand | None, Matrix | None, Matrix | None]:
        """Return C, A, B from SRAM, D and sums for some dimensions."""
        word, mode = self.word, self.mode
        passes = element_bytes(mode.a_type)
        planes = m * passes
        c, d, sums = None, None, None
        if mode.out != GemmOut.NONE:
            rows = planes if mode.out == GemmOut.INT32 else m
            size = C_BYTES[mode.out]
            c = Matrix(word.dst * WORD, self.c_pitch, rows, n * size, size)
        a = self._a(m, n, k)
        if self.d_word is not None:
            rows = planes if self.accumulate else m
            size = _d_bytes(mode, self.accumulate)
            d = Matrix(self.d_word * WORD, self.d_pitch, rows, n * size, size)
        if self.sums_word is not None:
            sums = block(self.sums_word * WORD, m * WORD)
        return c, a, self._b(n, k), d, sums

    def _a(self, m: int, n: int, k: int) -> Matrix:
        """Return where A lies."""
        address = self.word.src0 * WORD
        if self.mode.depthwise:
            rows, lines = m + DEPTHWISE_TAPS - 1, k // self.edge
            return Lines(address, self.a_pitch, rows, n, 1, lines, self.b_pitch)
        passes = element_bytes(self.mode.a_type)
        if self.lines:
            lines, size = self.lines
            return Lines(address, self.a_pitch, m, size, passes, lines, self.b_pitch)
        return Matrix(address, self.a_pitch, m, k * passes, passes)

    def _b(self, n: int, k: int) -> Operand | None:
        """Return where B lies in SRAM, or None if it comes from the stream."""
        rows, columns = (n, k) if _flag(self.word, Flag.TRANSPOSE_B) else (k, n)
        address = self.word.src1 * WORD
        if self.mode.stream:
            return None
        if self.mode.b_form == GemmB.TILE:
            return Tiles(address, rows, columns, self.edge)
        return Matrix(address, self.b_pitch, rows, columns)


def _d_bytes(mode: _Mode, accumulate: bool) -> int:
    """Return the bytes of an element of D."""
    return 4 if accumulate else C_BYTES[mode.out]


def _layout(
    at: Dispatch, mode: _Mode, d_word: int | None, dims: tuple[Dimension, Dimension, Dimension]
) -> _OperandLayout:
    """Return where the operands lie; natural pitches follow the caps."""
    word, prefix = at.word, at.prefix
    accumulate = _flag(word, Flag.ACCUMULATE)
    _, n, k = dims
    a_row = n.cap if mode.depthwise else k.cap * element_bytes(mode.a_type)
    b_row = k if _flag(word, Flag.TRANSPOSE_B) and not mode.stream else n
    return _OperandLayout(
        word=word,
        mode=mode,
        edge=at.config.tile,
        accumulate=accumulate,
        d_word=d_word,
        sums_word=prefix.imm if mode.q is QForm.ROW else None,
        c_pitch=natural(prefix.cp, n.cap * C_BYTES[mode.out]),
        a_pitch=natural(prefix.ap, a_row),
        b_pitch=natural(prefix.bp, b_row.cap),
        d_pitch=natural(prefix.dp, n.cap * _d_bytes(mode, accumulate)),
        lines=(prefix.lines, prefix.line_words * WORD) if _in_lines(at, mode) else None,
    )


def _check_d(at: Dispatch, mode: _Mode) -> int | None:
    """Return the word address of D, None if there is none, refusing a missing or forbidden one."""
    word, prefix = at.word, at.prefix
    accumulate = _flag(word, Flag.ACCUMULATE)
    has_d = accumulate or mode.combine is not GemmOp.NONE
    if not has_d:
        require(not mode.stream or word.src1 == 0)
        return None
    address = prefix.d
    if mode.stream:
        address = word.src1
    elif not prefix.present:
        require(not _flag(word, Flag.MODE))
        address = word.dst
    require(not (accumulate and mode.out != GemmOut.INT32 and address == word.dst))
    return address


def _dimensions(at: Dispatch, mode: _Mode) -> tuple[Dimension, Dimension, Dimension]:
    """Return M, N and K, refusing what the mode does not allow."""
    word = at.word
    m = at.dimension("m", at.config.acc_rows // element_bytes(mode.a_type))
    n, k = at.dimension("n"), at.dimension("k")
    require_dimension(not (mode.stream and at.is_dynamic("n", "k")))
    require_dimension(not (mode.q is QForm.CHANNEL and at.is_dynamic("n")))
    planes = mode.out == GemmOut.INT32 and element_bytes(mode.a_type) == 2
    require_dimension(not (planes and at.is_dynamic("m")))
    require_dimension(not mode.argmax or word.m == 1)
    if mode.depthwise:
        edge = at.config.tile
        require_dimension(word.k % edge == 0 and word.k <= GEMM_LINES * edge)
    if _in_lines(at, mode):
        line, size = at.prefix.line_words * WORD, element_bytes(mode.a_type)
        require_dimension(line % (at.config.tile * size) == 0)
        require_dimension(at.prefix.lines * line == up(k.cap * size, WORD))
    return m, n, k


def decode_gemm(at: Dispatch) -> GemmOperation | Dropped:
    """Return the operation of a GEMM word; ProgramError with the first check that fails."""
    word, prefix = at.word, at.prefix
    require(word.flags & ~FLAG_MASK == 0)
    mode = _full_mode(word, at.config) if _flag(word, Flag.MODE) else _plain_mode(word)
    _check_prefix(at, mode)
    d_word = _check_d(at, mode)
    dims = _dimensions(at, mode)
    layout = _layout(at, mode, d_word, dims)
    c, a, b, d, sums = layout.place(*(dimension.cap for dimension in dims))
    at.require_sram(c, a, b, d, sums)
    m, n, k = (dimension.value for dimension in dims)
    share = _share(mode, n, k, at.config.tile)
    back = layout.accumulate and mode.out == GemmOut.INT32 and d_word == word.dst
    if m == 0 or n == 0 or (k == 0 and back and prefix.cp == prefix.dp):
        return Dropped(share)
    c, a, b, d, sums = layout.place(m, n, k)
    scaled = mode.q is QForm.SCALE
    return GemmOperation(
        m=m,
        n=n,
        k=k,
        a_type=mode.a_type,
        a=a,
        depthwise=mode.depthwise,
        b=b,
        transpose=b is not None and _flag(word, Flag.TRANSPOSE_B),
        fmt=mode.fmt,
        group=mode.group,
        c=c,
        d=d,
        sums=sums,
        q=mode.q,
        bias=_flag(word, Flag.BIAS_EN),
        relu=_flag(word, Flag.RELU),
        table=mode.table,
        accumulate=layout.accumulate,
        combine=mode.combine,
        out_bits=8 * C_BYTES[mode.out],
        argmax=mode.argmax,
        scale=word.imm & 0xFF if scaled else prefix.imm,
        shift=word.imm >> 8 if scaled else prefix.sh,
        share=share,
    )
