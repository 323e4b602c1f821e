# SPDX-License-Identifier: Apache-2.0
"""What the instruction-level model refuses, with which error, and in which order."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden.formats import GROUPED
from golden.machine import ChipConfig
from spec.isa import (
    EmbedIndex,
    Engine,
    ErrorCode,
    Flag,
    Instruction,
    Opcode,
    SetReg,
    SmxOut,
    VecOp,
    WeightFormat,
    WeightGroup,
)
from spec.isa.operands import up
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_programs import (
    ACCUMULATE,
    BIAS,
    END,
    MODE,
    RELU,
    REQUANT,
    TRANSPOSE,
    ProgramBench,
    pfx,
)
from tests.python.golden.golden_support import seeded

FIELD, DIMENSION = ErrorCode.ILLEGAL_FIELD, ErrorCode.BAD_DIMENSION
ADDRESS, RANGE = ErrorCode.BAD_ADDRESS, ErrorCode.SRAM_RANGE
OPCODE = ErrorCode.ILLEGAL_OPCODE
TOP = 0x3FFF
"""Address of the last SRAM word, in words."""


def refused(*words: Instruction) -> tuple[ErrorCode, int] | None:
    """Run words and END with an ample stream; return code and address of the error, or None.

    A refused instruction must have changed neither SRAM nor memory.
    """
    bench = ProgramBench([*words, Instruction(Opcode.SET, 0, SetReg.STREAM), END], bytes(1 << 17))
    bench.registers = {"kv_base": 0x40000, "kv_cap": 0xFFFF_FFFF}
    bench.memory = np.zeros(1 << 20, np.uint8)
    bench.sram[:] = 0
    memory = bench.memory.copy()
    result = bench.run(races=False)
    if result.error is None:
        return None
    assert result.error.engine == Engine.SEQ
    assert result.error.instr == len(words) - 1
    assert not bench.sram.any()
    if result.out_count == 0:
        assert np.array_equal(bench.memory[0x30000:], memory[0x30000:])
    return result.error.code, result.error.address


def word(opcode: int, **fields: int) -> Instruction:
    """Return an instruction."""
    return Instruction(opcode, **fields)


LOAD = word(Opcode.DMA_LOAD, m=1, n=16)
ADD = word(Opcode.VEC, dst=0x10, m=2, n=16, imm=VecOp.ADD)
SOFTMAX = word(Opcode.SOFTMAX, dst=0x100, src1=0x200, m=4, n=16, imm=SmxOut.NUMER16)
NORM = word(Opcode.LAYERNORM, dst=0x100, src1=0x200, m=4, n=16)
GELU = word(Opcode.GELU, dst=0x100, src1=0x200, m=4, n=16)
PLAIN = word(Opcode.GEMM, dst=0x100, m=4, n=16, k=16)
FULL = replace(PLAIN, flags=MODE | REQUANT, imm=gp.Q_TENSOR)
RAW = replace(PLAIN, flags=MODE, imm=gp.OUT_INT32)
STREAM = replace(FULL, imm=gp.B_STREAM | gp.Q_CHANNEL)
DEPTHWISE = replace(STREAM, imm=STREAM.imm | gp.DEPTHWISE)
MUL = pfx(imm=1)
GROUP_HIGH = 1 << Flag.GROUP_HIGH


def _weights(fmt: int, group: int = 0) -> Instruction:
    """Return STREAM with another format, 8 and more on the second page, and a group code."""
    group_flags = (group >> 1) * GROUP_HIGH | (group & 1) << Flag.GROUP_LOW
    page = gp.B_STREAM_MX if fmt >= 8 else gp.B_STREAM
    return replace(
        STREAM, flags=STREAM.flags | group_flags, imm=page | (fmt & 7) << 4 | gp.Q_CHANNEL
    )


NONE = replace(FULL, dst=0, m=1, imm=FULL.imm | gp.ARGMAX | gp.OUT_NONE)
ROPE = word(Opcode.ROPE, dst=0x100, src1=0x200, m=4, n=6, k=3)
EMBED = word(Opcode.EMBED, dst=0x10, m=1, n=16)
APPEND = word(Opcode.KV_APPEND, n=16, k=2)
READ = word(Opcode.KV_READ, n=16, k=2)

LEGAL = [
    [word(Opcode.NOP)],
    [word(Opcode.BARRIER, m=0x3F, n=4)],
    [word(Opcode.SET, dst=SetReg.BASE7, src0=0xFFF0, src1=0xFFFF, flags=1)],
    [word(Opcode.SET, dst=SetReg.POS, src0=0xFFFF, src1=0xFFFF, flags=1)],
    [LOAD],
    [pfx(cp=2), replace(LOAD, dst=TOP)],
    [replace(DEPTHWISE, src0=0x3FF9)],
    [replace(DEPTHWISE, src0=0x3FF8, k=32)],
    [pfx(bp=20), replace(DEPTHWISE, src0=0x3FBD, k=64)],
    [pfx(ap=3, bp=20), replace(DEPTHWISE, src0=0x3FC5, k=48)],
    [replace(DEPTHWISE, m=0xF008)],
    [replace(DEPTHWISE, imm=DEPTHWISE.imm | gp.B_STREAM_MX | gp.A_UINT8)],
    [replace(LOAD, n=61439, dst=0)],
    [word(Opcode.DMA_STORE, m=2, n=15, k=0x7FF)],
    [ADD],
    [pfx(2, 2, 2), ADD],
    [replace(ADD, imm=VecOp.MUL | 63 << 8)],
    [replace(ADD, imm=VecOp.SCALE_SHIFT | 1 << 4 | 63 << 8, k=0xFFFF)],
    [replace(ADD, imm=VecOp.CLAMP | 3 << 4, src1=0xFFFF, k=0xFFFF)],
    [replace(ADD, imm=VecOp.TABLE | 1 << 6)],
    [SOFTMAX],
    [replace(SOFTMAX, flags=gp.CAUSAL, k=2, imm=5)],
    [replace(SOFTMAX, imm=4, src1=0)],
    [NORM],
    [replace(NORM, imm=3, src1=0, n=8192, m=1)],
    [GELU],
    [replace(GELU, imm=1, src1=0)],
    [PLAIN],
    [replace(PLAIN, flags=TRANSPOSE)],
    [replace(PLAIN, flags=ACCUMULATE)],
    [replace(PLAIN, flags=REQUANT | RELU, imm=63 << 8 | 255)],
    [replace(PLAIN, flags=REQUANT, imm=0)],
    [pfx(d=0x800, dp=9), replace(PLAIN, flags=REQUANT | ACCUMULATE, imm=1)],
    [FULL],
    [RAW],
    [replace(RAW, m=128)],
    [replace(RAW, m=64, imm=gp.OUT_INT32 | gp.A_UINT16)],
    [replace(RAW, imm=gp.OUT_INT32 | gp.B_TILES)],
    [pfx(), replace(RAW, flags=MODE | ACCUMULATE)],
    [MUL, replace(FULL, imm=gp.Q_PREFIX)],
    [pfx(imm=32767, sh=63), replace(FULL, imm=gp.Q_PREFIX)],
    [pfx(), replace(FULL, imm=gp.Q_ROW)],
    [pfx(imm=0x300), replace(FULL, imm=gp.Q_ROW)],
    [STREAM],
    *([_weights(fmt)] for fmt in WeightFormat),
    *([_weights(fmt, group)] for fmt in sorted(GROUPED) for group in (1, 2, 3)),
    [replace(_weights(WeightFormat.NF4G, 3), flags=0x7F & ~ACCUMULATE)],
    [replace(_weights(WeightFormat.MXINT8), flags=MODE | REQUANT | ACCUMULATE, src1=0x300)],
    [replace(STREAM, imm=STREAM.imm | gp.TABLE, flags=MODE | REQUANT | BIAS | RELU)],
    [replace(STREAM, imm=STREAM.imm | gp.OP_MUL, src1=0x20)],
    [pfx(dp=3), replace(STREAM, imm=STREAM.imm | gp.OP_ADD | gp.OUT_INT16, src1=0x100)],
    [replace(STREAM, flags=MODE | REQUANT | ACCUMULATE, src1=0x300)],
    [replace(STREAM, m=0xF008)],
    [pfx(bp=9, d=0x4001), replace(STREAM, k=32)],
    [pfx(bp=5, d=0x8002), replace(STREAM, k=96, src0=0x3FE2)],
    [pfx(bp=9, d=0xC001, dp=3), replace(STREAM, imm=STREAM.imm | gp.OP_ADD, k=64, src1=0x20)],
    [pfx(base=32), replace(PLAIN, m=0xF808, n=0xF001, k=0xF002)],
    [NONE],
    [pfx(), replace(NONE, imm=NONE.imm | gp.OP_ADD)],
    [pfx(d=1), replace(NONE, flags=NONE.flags | ACCUMULATE)],
    [replace(FULL, m=1, imm=FULL.imm | gp.ARGMAX | gp.OUT_INT16)],
    [NONE, word(Opcode.ARGMAX, imm=1)],
    [replace(NORM, opcode=Opcode.RMSNORM)],
    [replace(NORM, opcode=Opcode.RMSNORM, imm=3, src1=0, n=8192, m=1)],
    [replace(GELU, opcode=Opcode.SILU, imm=1, src1=0)],
    [ROPE],
    [pfx(2, 2, 2), replace(ROPE, imm=1, n=2, k=1)],
    [EMBED],
    [replace(EMBED, imm=EmbedIndex.POS << 4, m=3)],
    [replace(EMBED, imm=0x11, m=3, src0=0x200, k=1)],
    [APPEND],
    [pfx(ap=5, base=32), replace(APPEND, flags=gp.STAGE | gp.V, dst=0x100, src1=0x40, imm=0x302)],
    [READ],
    [pfx(cp=0x40, base=32), replace(READ, flags=gp.V, dst=0x100, k=0xF001, imm=0x302)],
    [word(Opcode.LOOP, src0=1)],
    *([replace(item, m=0xF801)] for item in (ADD, GELU, NORM, ROPE, FULL)),
    [replace(SOFTMAX, m=0xF801, n=0xF001, k=3)],
]

REFUSED = [
    # opcodes
    *(([Instruction(number, 0xFF, m=9)], OPCODE) for number in (19, 100, 254)),
    ([pfx(), word(99)], OPCODE),
    # control words
    *(([Instruction(Opcode.NOP, **{name: 1})], FIELD) for name in ("flags", "dst", "m", "imm")),
    *(([Instruction(Opcode.END, **{name: 1})], FIELD) for name in ("flags", "src0", "n", "k")),
    *(([word(Opcode.BARRIER, **{name: 1})], FIELD) for name in ("dst", "src1", "k", "imm")),
    ([word(Opcode.BARRIER, m=0x40)], FIELD),
    ([word(Opcode.BARRIER, n=5)], FIELD),
    *(([word(Opcode.SET, dst=register)], FIELD) for register in (7, 13, 15, 24)),
    ([word(Opcode.SET, dst=SetReg.STREAM, flags=1)], FIELD),
    ([word(Opcode.SET, flags=2)], FIELD),
    ([word(Opcode.SET, imm=1)], FIELD),
    ([word(Opcode.SET, dst=SetReg.STREAM, src0=32, flags=1)], FIELD),
    # prefixes
    ([pfx(), word(Opcode.NOP)], FIELD),
    ([pfx(), END], FIELD),
    ([pfx(), pfx()], FIELD),
    ([pfx(), word(Opcode.BARRIER)], FIELD),
    ([pfx(), word(Opcode.SET)], FIELD),
    ([replace(pfx(), flags=0x40)], FIELD),
    ([replace(pfx(), flags=0x80)], FIELD),
    ([pfx(ap=1), LOAD], FIELD),
    ([pfx(sh=1), LOAD], FIELD),
    ([pfx(bp=1), replace(ADD, imm=VecOp.RELU)], FIELD),
    ([pfx(d=1), ADD], FIELD),
    ([pfx(bp=1), SOFTMAX], FIELD),
    ([pfx(bp=1), NORM], FIELD),
    ([pfx(imm=1), GELU], FIELD),
    ([pfx(base=16), FULL], FIELD),
    ([pfx(base=8), replace(FULL, m=0xF000)], FIELD),
    ([pfx(base=24), replace(FULL, m=0xF001)], FIELD),
    ([pfx(base=16), replace(STREAM, m=0xF001, n=0xF001)], DIMENSION),
    ([pfx(d=1), FULL], FIELD),
    ([pfx(dp=1), FULL], FIELD),
    ([pfx(imm=1), FULL], FIELD),
    ([pfx(sh=1), FULL], FIELD),
    ([pfx(imm=1, sh=1), replace(FULL, imm=gp.Q_ROW)], FIELD),
    ([pfx(bp=1), STREAM], FIELD),
    ([pfx(d=0x4001), replace(STREAM, k=32)], FIELD),
    ([pfx(bp=9, d=2), replace(STREAM, k=32)], FIELD),
    ([pfx(bp=9, d=0x4001), replace(DEPTHWISE, k=32)], FIELD),
    ([pfx(bp=9, d=0x4001), replace(FULL, k=32)], FIELD),
    ([pfx(bp=9, d=0x4001), STREAM], DIMENSION),
    ([pfx(bp=9, d=0x4001), replace(STREAM, imm=STREAM.imm | gp.A_INT16, k=16)], DIMENSION),
    ([pfx(bp=1), replace(RAW, imm=gp.OUT_INT32 | gp.B_TILES)], FIELD),
    ([pfx(d=1), replace(STREAM, imm=STREAM.imm | gp.OP_ADD, src1=0x20)], FIELD),
    # DMA
    ([replace(LOAD, flags=1)], FIELD),
    ([replace(LOAD, imm=8)], FIELD),
    ([replace(LOAD, m=0)], DIMENSION),
    ([replace(LOAD, n=0)], DIMENSION),
    ([replace(LOAD, m=0xF000)], DIMENSION),
    ([replace(LOAD, n=0xFFFF)], DIMENSION),
    # EMBED, K/V, ARGMAX, LOOP
    ([replace(EMBED, flags=1)], FIELD),
    ([replace(EMBED, imm=8)], FIELD),
    ([replace(EMBED, imm=0x40)], FIELD),
    ([replace(EMBED, imm=0x30)], FIELD),
    ([replace(EMBED, src0=1)], FIELD),
    ([replace(EMBED, src0=1, imm=EmbedIndex.POS << 4)], FIELD),
    ([replace(EMBED, src1=1)], FIELD),
    ([pfx(ap=1), EMBED], FIELD),
    ([replace(EMBED, m=2)], DIMENSION),
    ([replace(EMBED, n=0)], DIMENSION),
    ([replace(EMBED, n=0xF001)], DIMENSION),
    ([replace(EMBED, m=0xF001, imm=EmbedIndex.POS << 4)], DIMENSION),
    ([replace(APPEND, flags=2)], FIELD),
    ([replace(APPEND, flags=0x80)], FIELD),
    ([replace(APPEND, dst=1)], FIELD),
    ([replace(APPEND, src1=1)], FIELD),
    ([pfx(cp=1), APPEND], FIELD),
    ([pfx(base=8), APPEND], FIELD),
    ([replace(APPEND, n=0)], DIMENSION),
    ([replace(APPEND, k=0)], DIMENSION),
    ([replace(APPEND, k=0xF001)], DIMENSION),
    ([replace(READ, flags=gp.STAGE)], FIELD),
    ([replace(READ, src0=1)], FIELD),
    ([replace(READ, src1=1)], FIELD),
    ([pfx(ap=1), READ], FIELD),
    ([pfx(base=17), READ], FIELD),
    ([replace(READ, k=0)], DIMENSION),
    ([replace(READ, n=0xF001)], DIMENSION),
    ([word(Opcode.ARGMAX)], FIELD),
    ([NONE, word(Opcode.ARGMAX), word(Opcode.ARGMAX)], FIELD),
    ([NONE, word(Opcode.ARGMAX, imm=8)], FIELD),
    ([NONE, word(Opcode.ARGMAX, m=1)], FIELD),
    ([NONE, pfx(), word(Opcode.ARGMAX)], FIELD),
    ([word(Opcode.LOOP, src0=4)], FIELD),
    ([word(Opcode.LOOP, src1=1)], FIELD),
    ([word(Opcode.LOOP, dst=1)], FIELD),
    ([pfx(), word(Opcode.LOOP)], FIELD),
    # ROPE, RMSNORM, SILU
    ([replace(ROPE, imm=2)], FIELD),
    ([replace(ROPE, flags=1)], FIELD),
    ([pfx(d=1), ROPE], FIELD),
    ([replace(ROPE, n=5)], DIMENSION),
    ([replace(ROPE, k=0)], DIMENSION),
    ([replace(ROPE, k=0xF001)], DIMENSION),
    ([replace(ROPE, n=0xF002)], DIMENSION),
    ([replace(NORM, opcode=Opcode.RMSNORM, imm=1)], FIELD),
    ([replace(NORM, opcode=Opcode.RMSNORM, n=8193)], DIMENSION),
    ([replace(GELU, opcode=Opcode.SILU, imm=2)], FIELD),
    ([replace(GELU, opcode=Opcode.SILU, n=0xF001)], DIMENSION),
    # VEC
    ([replace(ADD, imm=len(VecOp))], FIELD),
    ([replace(ADD, imm=15)], FIELD),
    ([replace(ADD, imm=1 << 7)], FIELD),
    ([replace(ADD, imm=1 << 14)], FIELD),
    ([replace(ADD, flags=1)], FIELD),
    ([replace(ADD, imm=1 << 4)], FIELD),
    ([replace(ADD, imm=1 << 5)], FIELD),
    ([replace(ADD, imm=1 << 6)], FIELD),
    ([replace(ADD, imm=1 << 8)], FIELD),
    ([replace(ADD, k=1)], FIELD),
    ([replace(ADD, imm=VecOp.RELU, src1=1)], FIELD),
    ([replace(ADD, imm=VecOp.COPY2D, k=1)], FIELD),
    ([replace(ADD, imm=VecOp.SCALE_SHIFT, src1=1)], FIELD),
    ([replace(ADD, imm=VecOp.TABLE | 3 << 4)], FIELD),
    ([replace(ADD, imm=VecOp.TABLE | 1 << 6, src1=1)], FIELD),
    ([replace(ADD, imm=VecOp.TABLE | 1 << 8)], FIELD),
    ([replace(ADD, m=0)], DIMENSION),
    ([replace(ADD, n=0xF000)], DIMENSION),
    # SOFTMAX
    ([replace(SOFTMAX, imm=3)], FIELD),
    ([replace(SOFTMAX, imm=8)], FIELD),
    ([replace(SOFTMAX, imm=SmxOut.PROB8)], FIELD),
    ([replace(SOFTMAX, flags=gp.CAUSAL | RELU)], FIELD),
    ([replace(SOFTMAX, k=3)], DIMENSION),
    ([replace(SOFTMAX, k=8)], DIMENSION),
    ([replace(SOFTMAX, k=0xF000)], DIMENSION),
    ([replace(SOFTMAX, m=0)], DIMENSION),
    ([replace(SOFTMAX, n=0)], DIMENSION),
    # LAYERNORM and GELU
    ([replace(NORM, imm=4)], FIELD),
    ([replace(NORM, imm=1)], FIELD),
    ([replace(NORM, k=1)], FIELD),
    ([replace(NORM, flags=1)], FIELD),
    ([replace(NORM, n=8193)], DIMENSION),
    ([replace(NORM, m=0)], DIMENSION),
    ([replace(GELU, imm=2)], FIELD),
    ([replace(GELU, imm=1)], FIELD),
    ([replace(GELU, n=0)], DIMENSION),
    # GEMM, MODE clear
    ([replace(PLAIN, flags=0x10)], FIELD),
    ([replace(PLAIN, flags=0x80)], FIELD),
    ([replace(PLAIN, flags=BIAS)], FIELD),
    ([replace(PLAIN, flags=BIAS | REQUANT, imm=1)], FIELD),
    ([replace(PLAIN, flags=RELU)], FIELD),
    ([replace(PLAIN, imm=1)], FIELD),
    ([replace(PLAIN, flags=REQUANT, imm=64 << 8)], FIELD),
    ([replace(PLAIN, flags=REQUANT | ACCUMULATE, imm=1)], FIELD),
    ([pfx(d=0x100), replace(PLAIN, flags=REQUANT | ACCUMULATE, imm=1)], FIELD),
    # GEMM, mode word
    ([replace(FULL, imm=FULL.imm | gp.DEPTHWISE)], FIELD),
    ([replace(FULL, imm=FULL.imm | gp.DEPTHWISE | gp.B_TILES)], FIELD),
    *(([replace(DEPTHWISE, imm=DEPTHWISE.imm | wide)], FIELD) for wide in (2, 3)),
    ([replace(DEPTHWISE, src1=1)], FIELD),
    ([pfx(bp=4), STREAM], FIELD),
    *(([replace(DEPTHWISE, k=k)], DIMENSION) for k in (1, 8, 15, 17, 24, 72, 80, 0xF001)),
    ([replace(DEPTHWISE, n=0xF001)], DIMENSION),
    ([replace(DEPTHWISE, m=129)], DIMENSION),
    ([replace(DEPTHWISE, imm=DEPTHWISE.imm | gp.ARGMAX)], DIMENSION),
    ([replace(RAW, imm=gp.OUT_INT32 | gp.ARGMAX)], FIELD),
    ([replace(NONE, dst=1)], FIELD),
    ([pfx(cp=1), NONE], FIELD),
    ([pfx(), replace(NONE, flags=NONE.flags | ACCUMULATE)], FIELD),
    ([replace(NONE, imm=NONE.imm | gp.TABLE)], FIELD),
    ([pfx(imm=1), replace(NONE, imm=NONE.imm | gp.OP_MUL)], FIELD),
    ([replace(FULL, imm=FULL.imm | 3 << 12)], FIELD),
    ([replace(FULL, imm=FULL.imm | 1 << 4)], FIELD),
    *(([_weights(unknown)], FIELD) for unknown in set(range(16)) - set(WeightFormat)),
    *(([replace(FULL, imm=FULL.imm | fmt << 4)], FIELD) for fmt in range(1, 8)),
    ([replace(FULL, flags=FULL.flags | GROUP_HIGH)], FIELD),
    ([replace(FULL, flags=FULL.flags | GROUP_HIGH, imm=FULL.imm | gp.B_TILES)], FIELD),
    *(([_weights(f, g)], FIELD) for f in sorted(set(WeightFormat) - GROUPED) for g in (1, 2, 3)),
    ([replace(_weights(WeightFormat.MXFP4), src1=1)], FIELD),
    ([replace(FULL, imm=FULL.imm | 3 << 10)], FIELD),
    ([replace(RAW, imm=gp.OUT_INT32 | gp.Q_TENSOR)], FIELD),
    ([replace(RAW, imm=0)], FIELD),
    ([replace(RAW, imm=gp.OUT_INT16)], FIELD),
    ([replace(RAW, flags=MODE | RELU)], FIELD),
    ([replace(RAW, imm=gp.OUT_INT32 | gp.TABLE)], FIELD),
    ([pfx(), replace(RAW, imm=gp.OUT_INT32 | gp.OP_ADD)], FIELD),
    ([replace(FULL, imm=FULL.imm | gp.OUT_INT32)], FIELD),
    ([replace(STREAM, flags=STREAM.flags | TRANSPOSE)], FIELD),
    ([replace(FULL, flags=FULL.flags | BIAS)], FIELD),
    ([pfx(), replace(FULL, flags=FULL.flags | ACCUMULATE, imm=FULL.imm | gp.OP_ADD)], FIELD),
    ([pfx(imm=5), replace(FULL, imm=gp.Q_PREFIX | gp.OP_MUL)], FIELD),
    ([pfx(imm=5), replace(FULL, imm=gp.Q_ROW | gp.OP_MUL)], FIELD),
    ([pfx(imm=5), replace(FULL, imm=FULL.imm | gp.OP_MUL | gp.OUT_INT16)], FIELD),
    ([replace(FULL, imm=FULL.imm | gp.TABLE | gp.OUT_INT16)], FIELD),
    ([replace(STREAM, src1=1)], FIELD),
    ([replace(FULL, imm=FULL.imm | gp.OP_ADD)], FIELD),
    ([replace(RAW, flags=MODE | ACCUMULATE)], FIELD),
    ([pfx(d=0x100), replace(FULL, flags=FULL.flags | ACCUMULATE)], FIELD),
    ([replace(STREAM, flags=STREAM.flags | ACCUMULATE, src1=0x100)], FIELD),
    ([replace(FULL, imm=gp.Q_PREFIX)], FIELD),
    ([pfx(), replace(FULL, imm=gp.Q_PREFIX)], FIELD),
    ([pfx(imm=0x8000), replace(FULL, imm=gp.Q_PREFIX)], FIELD),
    ([replace(FULL, imm=gp.Q_ROW)], FIELD),
    *(([replace(PLAIN, **{name: 0})], DIMENSION) for name in ("m", "n", "k")),
    ([replace(PLAIN, m=0xF000)], DIMENSION),
    ([replace(PLAIN, m=0xF009)], DIMENSION),
    ([replace(RAW, m=0xF005, imm=gp.OUT_INT32 | gp.A_INT16)], DIMENSION),
    ([replace(RAW, m=0xF001, imm=gp.OUT_INT32 | gp.A_INT16)], DIMENSION),
    ([replace(STREAM, n=0xF001)], DIMENSION),
    ([replace(_weights(WeightFormat.MXFP4), k=0xF001)], DIMENSION),
    ([replace(_weights(WeightFormat.INT4G, 3), n=0xF001)], DIMENSION),
    ([replace(STREAM, k=0xF001)], DIMENSION),
    ([replace(FULL, n=0xF001, imm=gp.Q_CHANNEL)], DIMENSION),
    ([replace(FULL, m=2, imm=FULL.imm | gp.ARGMAX)], DIMENSION),
    ([replace(FULL, m=0xF001, imm=FULL.imm | gp.ARGMAX)], DIMENSION),
    ([replace(RAW, m=129)], DIMENSION),
    ([replace(RAW, m=65, imm=gp.OUT_INT32 | gp.A_INT16)], DIMENSION),
]

ADDRESSED = [
    ([word(Opcode.SET, dst=SetReg.BASE0, src0=8)], ADDRESS, 8),
    ([word(Opcode.SET, dst=SetReg.BASE3, src0=4, src1=1, flags=1)], ADDRESS, 0x10004),
    ([word(Opcode.SET, dst=SetReg.STREAM, src0=0x20)], ADDRESS, 0x20),
    ([replace(LOAD, src0=8)], ADDRESS, 0x20008),
    ([replace(LOAD, src1=0xFFFF)], ADDRESS, 0x10000),
    ([replace(LOAD, src1=0xFFFD, src0=0xFFF0, m=2)], ADDRESS, 0xFFFF_FFF0),
    ([replace(LOAD, src1=0xFFFD, src0=0xFFF0, n=17)], ADDRESS, 0xFFFF_FFF0),
    ([replace(LOAD, src0=8, dst=0xFFFF)], ADDRESS, 0x20008),
    ([replace(LOAD, dst=TOP, n=17)], RANGE, TOP * 16),
    ([pfx(cp=0x1FFF), replace(LOAD, m=4)], RANGE, 0),
    ([word(Opcode.DMA_STORE, dst=TOP, m=2, n=16)], RANGE, TOP * 16),
    ([replace(ADD, dst=0x4001, src0=0x4002, src1=0x4003)], RANGE, 0x40010),
    ([replace(ADD, src0=0x4002, src1=0x4003)], RANGE, 0x40020),
    ([replace(SOFTMAX, dst=0x4001, src0=0x4002, src1=0x4003)], RANGE, 0x40010),
    ([replace(NORM, dst=0x4001, src0=0x4002, src1=0x4003)], RANGE, 0x40010),
    ([replace(NORM, src0=0x4002, src1=0x4003)], RANGE, 0x40020),
    ([replace(GELU, dst=0x4001, src0=0x4002, src1=0x4003)], RANGE, 0x40010),
    ([replace(GELU, src0=0x4002, src1=0x4003)], RANGE, 0x40020),
    ([replace(PLAIN, src0=0x4002, src1=0x4003)], RANGE, 0x40020),
    ([pfx(d=0x4004, dp=1), replace(FULL, imm=FULL.imm | gp.OP_ADD, src1=0x4003)], RANGE, 0x40030),
    (
        [pfx(d=0x4004, imm=0x4005), replace(FULL, imm=gp.Q_ROW | gp.OP_ADD)],
        RANGE,
        0x40040,
    ),
    ([replace(ADD, src0=0x4000, src1=0x5000)], RANGE, 0x40000),
    ([replace(ADD, src1=TOP)], RANGE, TOP * 16),
    ([replace(ADD, imm=VecOp.TABLE, src1=0x3FF1)], RANGE, 0x3FF10),
    ([replace(SOFTMAX, dst=0x3FF9)], RANGE, 0x3FF90),
    ([replace(SOFTMAX, n=1, dst=0x3FF9)], RANGE, 0x3FF90),
    ([replace(SOFTMAX, src0=0x3FFD, src1=0xFFFF, n=9)], RANGE, 0x3FFD0),
    ([replace(SOFTMAX, src1=0x3FFD)], RANGE, 0x3FFD0),
    ([replace(NORM, dst=0x3FFD)], RANGE, 0x3FFD0),
    ([replace(NORM, src0=0x3FF9)], RANGE, 0x3FF90),
    ([replace(NORM, src1=0x3FF9)], RANGE, 0x3FF90),
    ([replace(GELU, src1=0x3FF1)], RANGE, 0x3FF10),
    ([replace(PLAIN, dst=0x3FF1)], RANGE, 0x3FF10),
    ([replace(PLAIN, src0=0x3FFD)], RANGE, 0x3FFD0),
    ([replace(PLAIN, src1=0x3FF1)], RANGE, 0x3FF10),
    ([replace(PLAIN, dst=0x3FF0 + 15, src0=0xFFFF, src1=0xFFFF)], RANGE, 0x3FFF0),
    ([replace(RAW, imm=gp.OUT_INT32 | gp.B_TILES, n=17, k=1, src1=0x3FF0)], RANGE, 0x3FF00),
    ([replace(RAW, imm=gp.OUT_INT32 | gp.A_UINT16, dst=0x3FE1)], RANGE, 0x3FE10),
    ([pfx(d=0x3FF1), replace(RAW, flags=MODE | ACCUMULATE)], RANGE, 0x3FF10),
    ([pfx(d=0x3FFD), replace(FULL, imm=FULL.imm | gp.OP_ADD)], RANGE, 0x3FFD0),
    ([replace(STREAM, imm=STREAM.imm | gp.OP_ADD, src1=0x3FFD)], RANGE, 0x3FFD0),
    ([pfx(imm=0x3FFD), replace(FULL, imm=gp.Q_ROW)], RANGE, 0x3FFD0),
    # the cap counts, not the value
    ([replace(ADD, m=0xF001, dst=0x3FF1)], RANGE, 0x3FF10),
    ([replace(GELU, m=0xF001, src0=0x3FF1)], RANGE, 0x3FF10),
    ([replace(NORM, m=0xF801, src0=0x3FE1)], RANGE, 0x3FE10),
    ([replace(ROPE, m=0xF801, src1=0x3FF1)], RANGE, 0x3FF10),
    ([replace(PLAIN, m=1, n=0xF002, dst=0x3FF9)], RANGE, 0x3FF90),
    ([replace(PLAIN, n=0xF802, src1=0x3FE1)], RANGE, 0x3FE10),
    ([replace(PLAIN, k=0xF002, src0=0x3FF9)], RANGE, 0x3FF90),
    ([replace(PLAIN, k=0xF802, src1=0x3FE1)], RANGE, 0x3FE10),
    ([pfx(d=0x3FF1), replace(PLAIN, m=0xF001, flags=ACCUMULATE)], RANGE, 0x3FF10),
    ([pfx(imm=0x3FF1), replace(FULL, m=0xF001, imm=gp.Q_ROW)], RANGE, 0x3FF10),
    ([replace(SOFTMAX, n=0xF002, dst=0x3FF1)], RANGE, 0x3FF10),
    ([replace(SOFTMAX, n=0xF002, src0=0x3FF1)], RANGE, 0x3FF10),
    ([replace(SOFTMAX, m=0xF801, src1=0x3FF1)], RANGE, 0x3FF10),
    # operands of the other opcodes
    ([replace(ROPE, dst=0x3FF5, src0=0xFFFF)], RANGE, 0x3FF50),
    ([replace(ROPE, src0=0x3FF5, src1=0xFFFF)], RANGE, 0x3FF50),
    ([replace(ROPE, src1=0x3FFD)], RANGE, 0x3FFD0),
    ([replace(NORM, opcode=Opcode.RMSNORM, src1=0x3FF9)], RANGE, 0x3FF90),
    ([replace(GELU, opcode=Opcode.SILU, src1=0x3FF1)], RANGE, 0x3FF10),
    ([replace(EMBED, n=17, dst=TOP)], RANGE, TOP * 16),
    ([replace(EMBED, imm=0x10, src0=TOP, m=5)], RANGE, TOP * 16),
    ([replace(APPEND, src0=TOP)], RANGE, TOP * 16),
    ([replace(APPEND, src0=0x3FF9, imm=0x300, n=17)], RANGE, 0x3FF90),
    ([pfx(ap=9), replace(APPEND, src0=0x3FF7)], RANGE, 0x3FF70),
    ([replace(APPEND, flags=gp.STAGE, dst=0x3FF1)], RANGE, 0x3FF10),
    ([replace(APPEND, flags=gp.STAGE, dst=0x3FF0, src1=1, imm=0x300)], RANGE, 0x3FF30),
    ([replace(READ, dst=0x3FF1)], RANGE, 0x3FF10),
    ([replace(DEPTHWISE, src0=0x3FFA)], RANGE, 0x3FFA0),
    ([replace(DEPTHWISE, src0=0x3FF9, k=32)], RANGE, 0x3FF90),
    ([pfx(bp=20), replace(DEPTHWISE, src0=0x3FBE, k=64)], RANGE, 0x3FBE0),
    ([pfx(ap=3, bp=20), replace(DEPTHWISE, src0=0x3FC6, k=48)], RANGE, 0x3FC60),
    ([replace(DEPTHWISE, src0=0x3FFA, dst=0xFFFF)], RANGE, 0xFFFF0),
    ([pfx(bp=5, d=0x8002), replace(STREAM, k=96, src0=0x3FE3)], RANGE, 0x3FE30),
    ([pfx(bp=5, d=0x8002), replace(STREAM, k=96, src0=0x3FE3, dst=0xFFFF)], RANGE, 0xFFFF0),
    ([replace(READ, dst=0x3FE1, k=0xF802)], RANGE, 0x3FE10),
    ([replace(READ, dst=0x3FE1, imm=0x100)], RANGE, 0x3FE10),
    ([pfx(cp=1), replace(READ, dst=0x3FEE, imm=0x300)], RANGE, 0x3FEE0),
]


@pytest.mark.parametrize("words", LEGAL)
def test_legal(words: list[Instruction]) -> None:
    """The neighbours of what is refused are accepted."""
    assert refused(*words) is None


@pytest.mark.parametrize(("words", "code"), REFUSED)
def test_refused(words: list[Instruction], code: ErrorCode) -> None:
    """Opcode, field and dimension errors have no address."""
    assert refused(*words) == (code, 0)


@pytest.mark.parametrize(("words", "code", "address"), ADDRESSED)
def test_refused_at_an_address(words: list[Instruction], code: ErrorCode, address: int) -> None:
    """Memory addresses before SRAM ranges, operands in the order dst, src0, src1, D, sums."""
    assert refused(*words) == (code, address)


def _code_on(config: ChipConfig, instruction: Instruction) -> ErrorCode | None:
    """Return the code of the error that an instruction ends with on a chip."""
    error = ProgramBench([instruction], bytes(1 << 14), config).run(races=False).error
    assert error is not None
    return None if error.code == ErrorCode.NO_END else error.code


def test_a_chip_without_narrow_formats() -> None:
    """It takes int8, and refuses the rest for a field."""
    config = ChipConfig(narrow_formats=False)
    assert _code_on(config, STREAM) is None
    for fmt in range(1, 16):
        assert _code_on(config, _weights(fmt)) is FIELD
    assert _code_on(config, _weights(0, 1)) is FIELD


@pytest.mark.parametrize(
    ("array", "codes"),
    [
        (4, (FIELD, FIELD, FIELD)),
        (8, (FIELD, FIELD, FIELD)),
        (16, (None, None, DIMENSION)),
        (32, (DIMENSION, None, None)),
    ],
)
def test_depthwise_by_array(array: int, codes: tuple[ErrorCode | None, ...]) -> None:
    """Arrays below 16 do not have it; K is one to four edges."""
    config = ChipConfig(array_dim=array)
    assert tuple(_code_on(config, replace(DEPTHWISE, k=k)) for k in (16, 64, 128)) == codes


def test_groups_below_the_edge() -> None:
    """With tiles of 32 rows no group of 16."""
    config = ChipConfig(array_dim=32)
    for fmt in sorted(GROUPED):
        assert _code_on(config, _weights(fmt, WeightGroup.G16)) is FIELD
        for group in (WeightGroup.G32, WeightGroup.G64, WeightGroup.G128):
            assert _code_on(config, _weights(fmt, group)) is None


def test_the_order_of_the_checks() -> None:
    """An instruction with every fault names opcode, field, dimension, address, range in turn."""
    every = replace(LOAD, flags=1, m=0, src0=8, dst=0xFFFF)
    assert refused(replace(every, opcode=99)) == (OPCODE, 0)
    assert refused(every) == (FIELD, 0)
    assert refused(replace(every, flags=0)) == (DIMENSION, 0)
    assert refused(replace(every, flags=0, m=1)) == (ADDRESS, 0x20008)
    assert refused(replace(every, flags=0, m=1, src0=0)) == (RANGE, 0xFFFF0)


def test_the_share_is_checked_last() -> None:
    """A range error comes before the end of the stream."""
    wide = replace(STREAM, n=4096, k=4096, dst=0xFFFF)
    assert refused(wide) == (RANGE, 0xFFFF0)
    assert refused(replace(wide, dst=0x2000, m=1)) == (ErrorCode.STREAM_END, 0)


@pytest.mark.parametrize("seed", range(4))
def test_mutated_words_are_executed_or_refused(seed: int) -> None:
    """Random bit flips in legal words never break the model, and a refusal changes nothing."""
    rng = seeded(500 + seed)
    outcomes = set()
    for _ in range(250):
        words = list(LEGAL[int(rng.integers(len(LEGAL)))])
        index = int(rng.integers(len(words)))
        value = words[index].to_int()
        for _ in range(int(rng.integers(1, 4))):
            value ^= 1 << int(rng.integers(8, 128))
        words[index] = Instruction.from_int(value)
        bench = ProgramBench([*words, END], bytes(1 << 14))
        bench.memory = np.zeros(1 << 18, np.uint8)
        bench.sram[:] = rng.integers(0, 256, bench.sram.size)
        sram, size = bench.sram.copy(), up(len(words) * 16 + 16, 16)
        result = bench.run()
        outcomes.add(None if result.error is None else result.error.code)
        if result.executed == 0:
            assert np.array_equal(sram, bench.sram)
            assert not bench.memory[0x4000 + size :].any()
    assert {None, FIELD, DIMENSION, RANGE} <= outcomes
