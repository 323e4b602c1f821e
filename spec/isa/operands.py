# SPDX-License-Identifier: Apache-2.0
"""Where the operands of an instruction lie in SRAM, and how many bytes it takes from the stream."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from spec.isa.fields import BitField
from spec.isa.gemm import GemmForm
from spec.isa.generated import (
    DEPTHWISE_TAPS,
    DYNAMIC,
    LINE,
    OPCODES,
    TABLE_BYTES,
    VEC_OPS,
    WORD,
    EmbedIndex,
    Flag,
    GemmB,
    GemmOut,
    GemmQ,
    Opcode,
    SmxOut,
    VecOp,
)
from spec.isa.instruction import Instruction

__all__ = [
    "ARRAY_DIMS",
    "DYNAMIC",
    "LINE_WORDS",
    "MORE_LINES",
    "TABLE_BYTES",
    "WORD",
    "Limits",
    "Operand",
    "Prefix",
    "extent",
    "has_flag",
    "is_dynamic",
    "share_bytes",
    "sram_operands",
    "up",
]

ARRAY_DIMS = (4, 8, 16, 32)
"""Sizes of the systolic array that can be built."""
LINE_WORDS = BitField("words", 0, 14)
"""Words of a line of A, in the prefix operand lines."""
MORE_LINES = BitField("more", 14, 2)
"""Lines of a row of A behind its first, in the prefix operand lines."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes of a chip."""

    array_dim: int = 16
    sram_bytes: int = 256 * 1024
    acc_rows: int = 128
    norm_max: int = 8192
    narrow_formats: bool = True

    @property
    def edge(self) -> int:
        """Tile edge E."""
        return max(16, self.array_dim)


@dataclass(frozen=True, slots=True)
class Prefix:
    """The operands of a PFX word, all zero if absent; pitches and addresses in words."""

    present: bool = False
    cp: int = 0
    ap: int = 0
    bp: int = 0
    d: int = 0
    dp: int = 0
    base: int = 0
    imm: int = 0
    flags: int = 0

    @classmethod
    def of(cls, word: Instruction | None) -> "Prefix":
        """Return the contents of a PFX word, or of its absence. ValueError for any other opcode."""
        if word is None:
            return cls()
        if word.opcode != Opcode.PFX:
            raise ValueError(f"a prefix has opcode {int(Opcode.PFX)}, given {word.opcode}")
        return cls(
            True,
            word.dst,
            word.src0,
            word.src1,
            word.m,
            word.n,
            word.k,
            word.imm,
            word.flags,
        )

    @property
    def lines(self) -> int:
        """Lines of a row of A, where the GEMM takes lines; 1 also for whole rows (d = 0)."""
        return MORE_LINES.get(self.d) + 1

    @property
    def line_words(self) -> int:
        """Words of a line of A, where the GEMM takes lines; 0 for whole rows."""
        return LINE_WORDS.get(self.d)


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand in SRAM, in bytes. `name` is the field or prefix operand that places it."""

    name: str
    address: int
    rows: int
    row_bytes: int
    pitch: int
    writes: bool = False

    @property
    def end(self) -> int:
        """First byte past the operand."""
        return self.address + (self.rows - 1) * self.pitch + up(self.row_bytes)


def up(x: int, n: int = WORD) -> int:
    """X rounded up to a multiple of n."""
    return -(-x // n) * n


def is_dynamic(field: int) -> bool:
    """Whether a dimension field is dynamic."""
    return field >= DYNAMIC


def extent(field: int) -> int:
    """Return the largest value of a dimension field: its number, or the cap if dynamic."""
    if not is_dynamic(field):
        return field
    return 16 * ((field & 0x7FF) or 2048)


def _matrix(
    name: str, address: int, pitch: int, rows: int, row_bytes: int, writes: bool = False
) -> Operand:
    return Operand(name, address * WORD, rows, row_bytes, pitch * WORD or up(row_bytes), writes)


def _block(name: str, address: int, size: int, writes: bool = False) -> Operand:
    return Operand(name, address * WORD, 1, size, up(size), writes)


def _lines(first: Operand, step: int, count: int) -> list[Operand]:
    """Return an operand in lines `step` bytes apart, each line an operand of its own."""
    return [replace(first, address=first.address + line * step) for line in range(count)]


def _gemm_a(word: Instruction, pfx: Prefix, form: GemmForm, edge: int) -> list[Operand]:
    """Return A of a GEMM: one operand, or one of the same name for each of its lines."""
    m, n, k = extent(word.m), extent(word.n), extent(word.k)
    if form.depthwise:
        line = _matrix("src0", word.src0, pfx.ap, m + DEPTHWISE_TAPS - 1, n)
        return _lines(line, pfx.bp * WORD or up(n), max(k // edge, 1))
    rows = _matrix("src0", word.src0, pfx.ap, m, k * form.a_bytes)
    if not form.takes_lines or not pfx.d:
        return [rows]
    return _lines(replace(rows, row_bytes=pfx.line_words * WORD), pfx.bp * WORD, pfx.lines)


def _gemm(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    form = GemmForm.of(word)
    m, n, k = extent(word.m), extent(word.n), extent(word.k)
    result = []
    if form.out != GemmOut.NONE:
        rows = m * form.a_bytes if form.out == GemmOut.INT32 else m
        result.append(_matrix("dst", word.dst, pfx.cp, rows, n * form.c_bytes, True))
    result += _gemm_a(word, pfx, form, edge)
    if form.b_form == GemmB.TILE:
        positions, lanes = (n, k) if form.transpose else (k, n)
        result.append(_block("src1", word.src1, up(positions, edge) * up(lanes, edge)))
    elif form.b_form == GemmB.ROW_MAJOR:
        rows, row = (n, k) if form.transpose else (k, n)
        result.append(_matrix("src1", word.src1, pfx.bp, rows, row))
    if form.has_d:
        rows = m * form.a_bytes if form.accumulate else m
        name, address = "d", pfx.d
        if form.stream:
            name, address = "src1", word.src1
        elif not pfx.present:
            name, address = "dst", word.dst
        result.append(_matrix(name, address, pfx.dp, rows, n * form.d_bytes))
    if form.uses_sums:
        result.append(_block("sums", pfx.imm, m * WORD))
    return result


def _vec(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    del edge
    imm = OPCODES[Opcode.VEC].imm
    op = imm["op"].get(word.imm)
    a_bytes, c_bytes = 1 + imm["a16"].get(word.imm), 1 + imm["c16"].get(word.imm)
    m = extent(word.m)
    result = [
        _matrix("dst", word.dst, pfx.cp, m, word.n * c_bytes, True),
        _matrix("src0", word.src0, pfx.ap, m, word.n * a_bytes),
    ]
    uses = VEC_OPS[VecOp(op)]
    if uses.two:
        result.append(_matrix("src1", word.src1, pfx.bp, m, word.n * a_bytes))
    elif uses.src1 == "table" and not imm["stream"].get(word.imm):
        result.append(_block("src1", word.src1, TABLE_BYTES))
    return result


def _softmax(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    del edge
    imm = OPCODES[Opcode.SOFTMAX].imm
    out, score_bytes = imm["out"].get(word.imm), 2 - imm["score8"].get(word.imm)
    m, n = extent(word.m), extent(word.n)
    result = [
        _matrix("dst", word.dst, pfx.cp, m, up(n) * (2 if out == SmxOut.NUMER16 else 1), True),
        _matrix("src0", word.src0, pfx.ap, m, n * score_bytes),
    ]
    if out != SmxOut.PROB8:
        result.append(_block("src1", word.src1, m * WORD, True))
    return result


def _norm(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    del edge
    imm = OPCODES[Opcode.LAYERNORM].imm
    m = extent(word.m)
    out_bytes = 1 + imm["out16"].get(word.imm)
    result = [
        _matrix("dst", word.dst, pfx.cp, m, word.n * out_bytes, True),
        _matrix("src0", word.src0, pfx.ap, m, word.n * 2),
    ]
    if not imm["stream"].get(word.imm):
        result.append(_block("src1", word.src1, LINE + 4 * up(word.n)))
    return result


def _table(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    del edge
    m = extent(word.m)
    result = [
        _matrix("dst", word.dst, pfx.cp, m, word.n, True),
        _matrix("src0", word.src0, pfx.ap, m, word.n),
    ]
    if not OPCODES[Opcode.GELU].imm["stream"].get(word.imm):
        result.append(_block("src1", word.src1, TABLE_BYTES))
    return result


def _dma_load(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    del edge
    return [_matrix("dst", word.dst, pfx.cp, word.m, word.n, True)]


def _dma_store(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    del edge
    return [_matrix("dst", word.dst, pfx.cp, word.m, word.n)]


def _embed(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    result = _dma_load(word, pfx, edge)
    if OPCODES[Opcode.EMBED].imm["index"].get(word.imm) == EmbedIndex.LIST:
        result.append(_block("src0", word.src0, 4 * word.m))
    return result


def _heads(word: Instruction) -> int:
    return OPCODES[Opcode.KV_READ].imm["heads_minus_1"].get(word.imm) + 1


def _kv_append(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    """Return the rows only: the place in the staging tiles depends on POS."""
    del edge
    return [_matrix("src0", word.src0, pfx.ap, word.k, up(word.n) * _heads(word))]


def _kv_read(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    size = up(extent(word.k), edge) * up(word.n, edge)
    return [_matrix("dst", word.dst, pfx.cp, _heads(word), size, True)]


def _rope(word: Instruction, pfx: Prefix, edge: int) -> list[Operand]:
    del edge
    m, row = extent(word.m), word.k * up(word.n)
    return [
        _matrix("dst", word.dst, pfx.cp, m, row, True),
        _matrix("src0", word.src0, pfx.ap, m, row),
        _matrix("src1", word.src1, pfx.bp, m, 2 * word.n),
    ]


_OPERANDS: dict[int, Callable[[Instruction, Prefix, int], list[Operand]]] = {
    Opcode.DMA_LOAD: _dma_load,
    Opcode.DMA_STORE: _dma_store,
    Opcode.GEMM: _gemm,
    Opcode.VEC: _vec,
    Opcode.SOFTMAX: _softmax,
    Opcode.LAYERNORM: _norm,
    Opcode.RMSNORM: _norm,
    Opcode.GELU: _table,
    Opcode.SILU: _table,
    Opcode.KV_APPEND: _kv_append,
    Opcode.KV_READ: _kv_read,
    Opcode.ROPE: _rope,
    Opcode.EMBED: _embed,
}


def sram_operands(word: Instruction, prefix: Prefix, edge: int = 16) -> list[Operand]:
    """Return the operands in the order in which their ranges are checked.

    An operand in several lines, as A of a GEMM may be, is one of the same name for each line.
    """
    place = _OPERANDS.get(word.opcode)
    return place(word, prefix, edge) if place else []


def share_bytes(word: Instruction, edge: int = 16) -> int:
    """Bytes that a legal instruction takes from the stream; 0 if it names no stream."""
    if word.opcode == Opcode.GEMM:
        form = GemmForm.of(word)
        tiles = up(word.n, edge) // edge
        size = TABLE_BYTES if form.activation else 0
        if form.mode and form.requant and form.q == GemmQ.TENSOR:
            size += LINE
        if form.mode and form.requant and form.q == GemmQ.CHANNEL:
            size += tiles * 8 * edge
        if form.stream:
            size += tiles * form.layout(edge).lines(word.k) * LINE
        return size
    info = OPCODES[Opcode(word.opcode)] if word.opcode in OPCODES else None
    if info is None or "stream" not in info.imm or not info.imm["stream"].get(word.imm):
        return 0
    if word.opcode in (Opcode.LAYERNORM, Opcode.RMSNORM):
        return LINE + up(4 * up(word.n), LINE)
    return TABLE_BYTES


def has_flag(word: Instruction, flag: Flag) -> bool:
    """Whether a flag bit is set."""
    return bool(word.flags >> flag & 1)
