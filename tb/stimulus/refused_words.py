# SPDX-License-Identifier: Apache-2.0
"""Legal words of every opcode, and words that every chip refuses for their fields.

The legal ones are the forms that have operands, prefix operands or checks of their own; tests take
them apart one field at a time. The refused ones are the combinations that docs/reference/isa.md
lists under each opcode, one word (with its prefix word) per entry. The instruction-level model and
the design are tested on the same list.
"""

from __future__ import annotations

from dataclasses import replace

from npu.asm import assemble
from spec.isa import (
    OPCODES,
    VEC_OPS,
    EmbedIndex,
    Flag,
    GemmA,
    GemmB,
    GemmOp,
    GemmOut,
    GemmQ,
    Instruction,
    Opcode,
    SetReg,
    SmxOut,
    VecOp,
    WeightFormat,
)
from spec.isa.operands import LINE_WORDS, MORE_LINES, Limits
from spec.isa.weight_formats import GROUPED

Group = list[Instruction]
"""An instruction, with its prefix word before it if it has one."""

FORMS = """
    DMA_LOAD dst=0x1000 off=0x100 M=3 N=40 b=0 cp=64
    DMA_STORE dst=0x1000 off=0x100 M=3 N=40 b=1 pitch=64
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=5 N=20 K=33 classic
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=5 N=20 K=33 T scale=9 shift=7
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=5 N=20 K=33 classic acc
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=5 N=20 K=33 q=imm mul=20000 sh=24 relu
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=4 N=9 K=16 A=u16 B=tile q=row op=add sums=0 d=0x4000
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=4 N=20 K=16 B=tile T out=i32 acc d=0x4000
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=4 N=20 K=16 A=i16 out=i32 acc d=0x4000
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=4 N=20 K=16 q=tensor op=mul mul=77 sh=9 d=0x4000
    GEMM dst=0x1000 src0=0x2000 src1=0x4000 M=4 N=20 K=16 B=stream q=ch bias op=add out=i16 dp=64
    GEMM dst=0x1000 src0=0x2000 M=4 N=20 K=16 B=stream q=ch table relu
    GEMM src0=0x2000 src1=0x3000 M=1 N=20 K=16 q=tensor out=none argmax
    GEMM dst=0x1000 src0=0x2000 M=1 N=20 K=16 B=stream q=ch out=i16 argmax
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=4 N=len<=32 K=16 B=tile T out=i32 base=16
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=4 N=16 K=len-1<=32 B=tile q=tensor
    GEMM dst=0x1000 src0=0x2000 M=len<=16 N=20 K=16 B=stream q=ch
    GEMM dst=0x1000 src0=0x2000 M=5 N=20 K=127 B=stream q=ch bias ap=16 bp=0x200 lines=2x64
    VEC op=mul dst=0x1000 src0=0x2000 src1=0x3000 M=3 N=50 sh=7 ap=80
    VEC op=add dst=0x1000 src0=0x2000 src1=0x3000 M=3 N=50 A=i16 out=i16
    VEC op=scale_shift dst=0x1000 src0=0x2000 M=3 N=50 scale=-77 sh=5 A=i16 out=i8
    VEC op=clamp dst=0x1000 src0=0x2000 M=3 N=50 lo=-5 hi=60
    VEC op=copy2d dst=0x1000 src0=0x2000 M=3 N=50 cp=96
    VEC op=table dst=0x1000 src0=0x2000 src1=0x3000 M=3 N=50
    VEC op=table dst=0x1000 src0=0x2000 M=3 N=50 stream
    SOFTMAX dst=0x1000 src0=0x2000 src1=0x3000 M=6 N=20 K=3 causal out=u16 cp=80
    SOFTMAX dst=0x1000 src0=0x2000 src1=0x3000 M=6 N=20 A=i8 out=u8
    SOFTMAX dst=0x1000 src0=0x2000 M=6 N=20 out=prob
    LAYERNORM dst=0x1000 src0=0x2000 src1=0x3000 M=2 N=40 out=i16 ap=96
    LAYERNORM dst=0x1000 src0=0x2000 M=2 N=40 stream
    GELU dst=0x1000 src0=0x2000 src1=0x3000 M=2 N=40
    GELU dst=0x1000 src0=0x2000 M=2 N=40 stream cp=64
    RMSNORM dst=0x1000 src0=0x2000 src1=0x3000 M=2 N=40 ap=96
    RMSNORM dst=0x1000 src0=0x2000 M=len<=16 N=40 out=i16 stream
    SILU dst=0x1000 src0=0x2000 src1=0x3000 M=2 N=40 cp=64
    SILU dst=0x1000 src0=0x2000 M=len-1<=16 N=40 stream
    ROPE dst=0x1000 src0=0x2000 src1=0x3000 M=3 N=18 K=2 cp=96
    ROPE dst=0x1000 src0=0x2000 src1=0x3000 M=len<=16 N=18 K=2 pairs bp=64
    SOFTMAX dst=0x1000 src0=0x2000 src1=0x3000 M=4 N=len<=64 out=u16 causal
    KV_APPEND src0=0x2000 layer=0 N=20 K=3 heads=1..2 ap=96
    KV_APPEND dst=0x1000 src0=0x2000 hp=0x800 layer=1 N=20 K=3 heads=0..1 v stage base=32
    KV_READ dst=0x1000 layer=1 N=20 K=5 heads=0..1 v cp=0x800
    KV_READ dst=0x1000 layer=1 N=20 K=len-1<=32 heads=0..1 base=32
    EMBED dst=0x1000 M=1 N=40 b=2 idx=token
    EMBED dst=0x1000 src0=0x2000 M=3 N=40 b=2 idx=list pitch=64
    EMBED dst=0x1000 M=3 N=40 b=3 idx=pos cp=64
    ARGMAX b=1
    LOOP to=0
    BARRIER gemm n=2
    SET BASE3 v=0x1000
    SET POS v=5
    SET KVHEAD v=0x100 add
    SET STREAM v=0
    NOP
    END
"""


DEPTHWISE = "GEMM dst=0x10000 src0={src0} M={m} N=20 K={k} B=stream out=i32 depthwise"
"""A depthwise GEMM: legal on arrays of 16 and 32 where K is one to four edges."""


LINES = "GEMM dst=0x10000 src0={src0} M=4 N=20 K={k} B=stream out=i32 lines={lines}"
"""A GEMM whose rows of A are in lines; a prefix word with bp belongs to it."""


def groups(text: str, limits: Limits | None = None) -> list[Group]:
    """Return the instructions of a program text, each with its prefix word if it has one.

    `limits`: the sizes that the assembler checks the text against.
    """
    result: list[Group] = [[]]
    for word in assemble(text, limits=limits).instructions:
        result[-1].append(word)
        if word.opcode != Opcode.PFX:
            result.append([])
    return result[:-1]


def _pfx(sh: int = 0, **operands: int) -> Instruction:
    """Return a prefix word; operands under their names of the instruction set, in words."""
    names = {"cp": "dst", "ap": "src0", "bp": "src1", "d": "m", "dp": "n", "base": "k"}
    fields = {names.get(name, name): value for name, value in operands.items()}
    return Instruction(Opcode.PFX, flags=sh, **fields)


def _mode(**values: int) -> int:
    """Return a mode word of GEMM from its named fields."""
    return sum(OPCODES[Opcode.GEMM].imm[name].put(value) for name, value in values.items())


_T, _BIAS, _REQUANT, _RELU, _ACC, _MODE = (
    1 << flag
    for flag in (
        Flag.TRANSPOSE_B,
        Flag.BIAS_EN,
        Flag.REQUANT,
        Flag.RELU,
        Flag.ACCUMULATE,
        Flag.MODE,
    )
)
_GROUP_LOW, _GROUP_HIGH = 1 << Flag.GROUP_LOW, 1 << Flag.GROUP_HIGH
_VEC = Instruction(Opcode.VEC, dst=0x10, m=2, n=16, imm=VecOp.ADD)
_RMS = Instruction(Opcode.RMSNORM, dst=0x100, src1=0x200, m=4, n=16)
_SILU = Instruction(Opcode.SILU, dst=0x100, src1=0x200, m=4, n=16)
_APPEND = Instruction(Opcode.KV_APPEND, src0=0x100, n=16, k=1)
_READ = Instruction(Opcode.KV_READ, dst=0x100, n=16, k=1)
_EMBED = Instruction(Opcode.EMBED, dst=0x100, m=1, n=16)
_SOFTMAX = Instruction(Opcode.SOFTMAX, dst=0x100, src1=0x200, m=4, n=16, imm=SmxOut.NUMER16)
_NORM = Instruction(Opcode.LAYERNORM, dst=0x100, src1=0x200, m=4, n=16)
_GELU = Instruction(Opcode.GELU, dst=0x100, src1=0x200, m=4, n=16)
_CLASSIC = Instruction(Opcode.GEMM, dst=0x100, m=4, n=16, k=16)
_THREE_LINES = MORE_LINES.put(2) | LINE_WORDS.put(2)
"""Lines of int8 that are a row of K = 96 on every array."""


def _gemm(flags: int, src1: int = 0, **mode: int) -> Instruction:
    """Return a GEMM with the mode word `mode`."""
    return replace(_CLASSIC, flags=_MODE | flags, src1=src1, imm=_mode(**mode))


_STREAMED = [
    (8 * page + fmt, form, fmt)
    for page, form in enumerate((GemmB.STREAM, GemmB.STREAM_MX))
    for fmt in range(8)
]
"""Numbers that weight formats can have, and the fields that say so."""


def _unnamed(field: str) -> list[int]:
    """Return the numbers that a field of the mode word does not take."""
    bits = OPCODES[Opcode.GEMM].imm[field]
    return [value for value in range(1 << bits.width) if not bits.takes(value)]


def _set(register: int, value: int = 0, flags: int = 0) -> Instruction:
    return Instruction(Opcode.SET, flags, register, value & 0xFFFF, value >> 16)


FORBIDDEN: dict[str, list[Group]] = {
    "GEMM, MODE clear: BIAS_EN": [
        [replace(_CLASSIC, flags=_BIAS)],
        [replace(_CLASSIC, flags=_BIAS | _REQUANT, imm=1)],
    ],
    "GEMM, MODE clear: shift above 63": [
        [replace(_CLASSIC, flags=_REQUANT, imm=64 << 8)],
        [replace(_CLASSIC, flags=_REQUANT, imm=128 << 8)],
    ],
    "GEMM, MODE clear: imm without REQUANT": [
        [replace(_CLASSIC, imm=1)],
        [replace(_CLASSIC, imm=0x100)],
    ],
    "GEMM, MODE clear: RELU without REQUANT": [[replace(_CLASSIC, flags=_RELU)]],
    "GEMM, MODE clear: ACCUMULATE with REQUANT and D = dst": [
        [replace(_CLASSIC, flags=_REQUANT | _ACC, imm=1)],
        [_pfx(d=0x100), replace(_CLASSIC, flags=_REQUANT | _ACC, imm=1)],
    ],
    "GEMM: depthwise with B from SRAM": [
        [_gemm(_REQUANT, q=GemmQ.TENSOR, b_form=form, depthwise=1)]
        for form in (GemmB.ROW_MAJOR, GemmB.TILE)
    ],
    "GEMM: depthwise with a 16-bit A": [
        [_gemm(0, out=GemmOut.INT32, b_form=GemmB.STREAM, depthwise=1, a_type=a_type)]
        for a_type in (GemmA.INT16, GemmA.UINT16)
    ],
    "GEMM: bp with the stream but neither depthwise nor lines": [
        [_pfx(bp=4), _gemm(0, out=GemmOut.INT32, b_form=form)]
        for form in (GemmB.STREAM, GemmB.STREAM_MX)
    ],
    "GEMM: lines without bp": [
        [_pfx(d=_THREE_LINES), replace(_gemm(0, out=GemmOut.INT32, b_form=form), k=96)]
        for form in (GemmB.STREAM, GemmB.STREAM_MX)
    ],
    "GEMM: one line": [
        [_pfx(bp=bp, d=words), replace(_gemm(0, out=GemmOut.INT32, b_form=form), k=96)]
        for form in (GemmB.STREAM, GemmB.STREAM_MX)
        for bp in (0, 4)
        for words in (1, 6, 0x3FFF)
    ],
    "GEMM: lines with depthwise": [
        [
            _pfx(bp=bp, d=_THREE_LINES),
            replace(_gemm(0, out=GemmOut.INT32, b_form=form, depthwise=1), k=96),
        ]
        for form in (GemmB.STREAM, GemmB.STREAM_MX)
        for bp in (0, 4)
    ],
    "GEMM: lines with B from SRAM, where they are the place of a D that is not there": [
        [_pfx(d=_THREE_LINES), replace(_CLASSIC, k=96)],
        *(
            [_pfx(bp=bp, d=_THREE_LINES), replace(_gemm(0, out=GemmOut.INT32, b_form=form), k=96)]
            for form in (GemmB.ROW_MAJOR, GemmB.TILE)
            for bp in (0, 6)
        ),
    ],
    "GEMM: op 3": [[_pfx(), _gemm(_REQUANT, q=GemmQ.TENSOR, op=op)] for op in _unnamed("op")],
    "GEMM: fmt": [
        *(
            [_gemm(_REQUANT, q=GemmQ.CHANNEL, b_form=form, fmt=fmt)]
            for number, form, fmt in _STREAMED
            if number not in set(WeightFormat)
        ),
        *(
            [_gemm(_REQUANT, q=GemmQ.TENSOR, b_form=form, fmt=fmt)]
            for form in (GemmB.ROW_MAJOR, GemmB.TILE)
            for fmt in range(1, 8)
        ),
    ],
    "GEMM: a group in a format without": [
        [_gemm(_REQUANT | group, q=GemmQ.CHANNEL, b_form=form, fmt=fmt)]
        for number, form, fmt in _STREAMED
        if number not in GROUPED
        for group in (_GROUP_LOW, _GROUP_HIGH, _GROUP_LOW | _GROUP_HIGH)
    ],
    "GEMM: GROUP_HIGH without the stream": [
        [replace(_CLASSIC, flags=_GROUP_HIGH)],
        [replace(_CLASSIC, flags=_REQUANT | _GROUP_HIGH, imm=1)],
        *(
            [_gemm(_REQUANT | _GROUP_HIGH | transpose, q=GemmQ.TENSOR, b_form=form)]
            for form in (GemmB.ROW_MAJOR, GemmB.TILE)
            for transpose in (0, _T)
        ),
    ],
    "GEMM: argmax and out 3": [
        [_gemm(_REQUANT, q=GemmQ.TENSOR, out=GemmOut.NONE)],
        [replace(_gemm(_REQUANT, q=GemmQ.TENSOR, out=GemmOut.NONE), dst=0)],
        [
            _pfx(cp=1),
            replace(_gemm(_REQUANT, q=GemmQ.TENSOR, out=GemmOut.NONE, argmax=1), dst=0, m=1),
        ],
        [_gemm(_REQUANT, q=GemmQ.TENSOR, out=GemmOut.NONE, argmax=1)],
        [_gemm(0, out=GemmOut.INT32, argmax=1)],
    ],
    "GEMM: q without REQUANT": [
        [_gemm(0, out=GemmOut.INT32, q=q)] for q in (GemmQ.TENSOR, GemmQ.CHANNEL)
    ],
    "GEMM: REQUANT with int32 output": [[_gemm(_REQUANT, q=GemmQ.TENSOR, out=GemmOut.INT32)]],
    "GEMM: no REQUANT with other output": [[_gemm(0)], [_gemm(0, out=GemmOut.INT16)]],
    "GEMM: post-processing without REQUANT": [
        [_gemm(_RELU, out=GemmOut.INT32)],
        [_gemm(0, out=GemmOut.INT32, activation=1)],
        [_pfx(), _gemm(0, out=GemmOut.INT32, op=GemmOp.ADD)],
        [_pfx(), _gemm(0, out=GemmOut.INT32, op=GemmOp.MUL)],
    ],
    "GEMM: TRANSPOSE_B with the stream": [
        [_gemm(_T | _REQUANT, b_form=GemmB.STREAM, q=GemmQ.CHANNEL)]
    ],
    "GEMM: BIAS_EN without q CHANNEL": [
        [_gemm(_BIAS | _REQUANT, q=GemmQ.TENSOR)],
        [_gemm(_BIAS, out=GemmOut.INT32)],
        [_pfx(imm=1), _gemm(_BIAS | _REQUANT)],
    ],
    "GEMM: ACCUMULATE with op": [
        [_pfx(d=9), _gemm(_ACC | _REQUANT, q=GemmQ.TENSOR, op=GemmOp.ADD)]
    ],
    "GEMM: MUL with q PREFIX or ROW or wide output": [
        [_pfx(imm=5), _gemm(_REQUANT, op=GemmOp.MUL)],
        [_pfx(imm=5), _gemm(_REQUANT, q=GemmQ.ROW, op=GemmOp.MUL)],
        [_pfx(imm=5), _gemm(_REQUANT, q=GemmQ.TENSOR, op=GemmOp.MUL, out=GemmOut.INT16)],
    ],
    "GEMM: activation with int16 output": [
        [_gemm(_REQUANT, q=GemmQ.TENSOR, activation=1, out=GemmOut.INT16)]
    ],
    "GEMM: src1 with the stream and no D": [
        [_gemm(_REQUANT, 1, q=GemmQ.CHANNEL, b_form=GemmB.STREAM)],
        [_gemm(0, 1, out=GemmOut.INT32, b_form=GemmB.STREAM)],
    ],
    "GEMM: D is missing": [
        [_gemm(_REQUANT, q=GemmQ.TENSOR, op=GemmOp.ADD)],
        [_gemm(_REQUANT, q=GemmQ.TENSOR, op=GemmOp.MUL)],
        [_gemm(_ACC, out=GemmOut.INT32)],
        [_gemm(_ACC, out=GemmOut.INT32, b_form=GemmB.TILE)],
    ],
    "GEMM: ACCUMULATE with narrow output and D = dst": [
        [_pfx(d=0x100), _gemm(_ACC | _REQUANT, q=GemmQ.TENSOR)],
        [_pfx(d=0x100), _gemm(_ACC | _REQUANT, q=GemmQ.TENSOR, out=GemmOut.INT16)],
        [_gemm(_ACC | _REQUANT, 0x100, q=GemmQ.CHANNEL, b_form=GemmB.STREAM)],
        [
            _pfx(ap=1),
            replace(_gemm(_ACC | _REQUANT, q=GemmQ.TENSOR, out=GemmOut.NONE, argmax=1), dst=0, m=1),
        ],
    ],
    "GEMM: q PREFIX with mul outside 1..32767": [
        [_gemm(_REQUANT)],
        [_pfx(), _gemm(_REQUANT)],
        [_pfx(imm=0x8000), _gemm(_REQUANT)],
        [_pfx(imm=0xFFFF), _gemm(_REQUANT)],
    ],
    "GEMM: q ROW without a prefix": [[_gemm(_REQUANT, q=GemmQ.ROW)]],
    "GEMM: base of no dynamic dimension, or no multiple of 16": [
        [_pfx(base=16), _gemm(_REQUANT, q=GemmQ.TENSOR)],
        [_pfx(base=8), replace(_gemm(_REQUANT, q=GemmQ.TENSOR), n=0xF001)],
    ],
    "VEC: an unlisted op": [[replace(_VEC, imm=op)] for op in range(16) if op not in set(VecOp)],
    "VEC: a16 and c16 differ": [
        [replace(_VEC, imm=VecOp.ADD | 1 << 4)],
        [replace(_VEC, imm=VecOp.RELU | 1 << 5)],
        [replace(_VEC, imm=VecOp.COPY2D | 1 << 4)],
    ],
    "VEC: a16 or c16 in TABLE": [
        [replace(_VEC, imm=VecOp.TABLE | 3 << 4)],
        [replace(_VEC, imm=VecOp.TABLE | 1 << 4)],
    ],
    "VEC: stream in another op": [
        [replace(_VEC, imm=op | 1 << 6)] for op in VecOp if VEC_OPS[op].src1 != "table"
    ],
    "VEC: sh in another op": [
        [replace(_VEC, imm=op | 1 << 8)] for op in VecOp if not VEC_OPS[op].shift
    ],
    "VEC: src1 where nothing is there": [
        *([replace(_VEC, imm=op, src1=1)] for op in VecOp if not VEC_OPS[op].src1),
        [replace(_VEC, imm=VecOp.TABLE | 1 << 6, src1=1)],
    ],
    "VEC: K where nothing is there": [
        [replace(_VEC, imm=op, k=1)] for op in VecOp if not VEC_OPS[op].k
    ],
    "SOFTMAX: out 3": [[replace(_SOFTMAX, imm=3)]],
    "SOFTMAX: src1 with probabilities": [[replace(_SOFTMAX, imm=SmxOut.PROB8)]],
    "LAYERNORM: src1 with stream": [[replace(_NORM, imm=1)], [replace(_NORM, imm=3)]],
    "GELU: src1 with stream": [[replace(_GELU, imm=1)]],
    "RMSNORM: src1 with stream": [[replace(_RMS, imm=1)], [replace(_RMS, imm=3)]],
    "SILU: src1 with stream": [[replace(_SILU, imm=1)]],
    "KV_APPEND: staging without STAGE": [[replace(_APPEND, dst=1)], [replace(_APPEND, src1=1)]],
    "K/V: base no multiple of 16": [
        *([_pfx(base=base), _APPEND] for base in (1, 8, 0x8008)),
        *([_pfx(base=base), _READ] for base in (1, 8, 0x8008)),
    ],
    "EMBED: index 3": [[replace(_EMBED, imm=3 << 4)]],
    "EMBED: src0 without a list": [
        [replace(_EMBED, src0=1, imm=at << 4)] for at in (EmbedIndex.TOKEN, EmbedIndex.POS)
    ],
    "BARRIER: mask bits from 6": [[Instruction(Opcode.BARRIER, m=1 << bit)] for bit in (6, 7, 15)],
    "BARRIER: n above 4": [[Instruction(Opcode.BARRIER, n=n)] for n in (5, 8, 0x8000)],
    "SET: an unlisted register": [
        [_set(number)]
        for number in (*range(64), 0x100, 0x8000, 0x8010, 0xFFFF)
        if number not in set(SetReg)
    ],
    "SET: ADD with STREAM": [[_set(SetReg.STREAM, 64, flags=1)]],
    "PFX: before an opcode without prefix": [
        [_pfx(), word]
        for word in (
            Instruction(Opcode.NOP),
            Instruction(Opcode.BARRIER),
            _set(SetReg.POS),
            Instruction(Opcode.ARGMAX),
            Instruction(Opcode.LOOP),
            _pfx(),
            Instruction(Opcode.END),
        )
    ],
    "PFX: bits 7:6 of the flags": [[_pfx(sh=1 << 6)], [_pfx(sh=1 << 7)]],
}
"""What docs/reference/isa.md refuses with ILLEGAL_FIELD, by rule; the last word is refused."""
