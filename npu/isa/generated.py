# SPDX-License-Identifier: Apache-2.0
"""Generated from npu/isa/isa.toml by `python -m npu.isa.generate`; do not edit."""

# fmt: off
# ruff: noqa: E501
from enum import IntEnum

from npu.isa.fields import BitField, FieldInfo, OpcodeInfo, SetRegInfo

ISA_VERSION = 1


class Opcode(IntEnum):
    """Opcode numbers."""

    NOP = 0
    DMA_LOAD = 1
    DMA_STORE = 2
    GEMM = 3
    VEC = 4
    SOFTMAX = 5
    LAYERNORM = 6
    GELU = 7
    KV_APPEND = 8
    KV_READ = 9
    BARRIER = 10
    RMSNORM = 11
    ROPE = 12
    SILU = 13
    PFX = 14
    SET = 15
    EMBED = 16
    ARGMAX = 17
    LOOP = 18
    END = 255


class Engine(IntEnum):
    """Engines; 0 to 5 are also barrier bits."""

    LD = 0
    ST = 1
    GEMM = 2
    SMX = 3
    NRM = 4
    VEC = 5
    SEQ = 6
    STREAM = 7


class ErrorCode(IntEnum):
    """Codes of the error status."""

    NONE = 0
    ILLEGAL_OPCODE = 1
    ILLEGAL_FIELD = 2
    BAD_DIMENSION = 3
    SRAM_RANGE = 4
    BAD_ADDRESS = 5
    NO_END = 6
    STREAM_END = 7
    STREAM_LEFT = 8
    READ_ERROR = 9
    WRITE_ERROR = 10
    TIMEOUT = 11
    REGION = 12
    CONTEXT_FULL = 13
    ABORTED = 14


class Flag(IntEnum):
    """Flag bit numbers."""

    TRANSPOSE_B = 0
    BIAS_EN = 1
    REQUANT = 2
    RELU = 3
    CAUSAL_MASK = 4
    ACCUMULATE = 5
    MODE = 6
    ADD = 0
    V = 0
    STAGE = 6


class SetReg(IntEnum):
    """Registers of SET."""

    POS = 0
    TOKEN = 1
    WINDOW = 2
    STREAM = 3
    OUTCNT = 4
    LOOPLEFT = 5
    EOS = 6
    KVBASE = 8
    KVLAYER = 9
    KVHEAD = 10
    KVVOFF = 11
    KVCAP = 12
    BASE0 = 16
    BASE1 = 17
    BASE2 = 18
    BASE3 = 19
    BASE4 = 20
    BASE5 = 21
    BASE6 = 22
    BASE7 = 23


class VecOp(IntEnum):
    """Operations of VEC."""

    ADD = 0
    SUB = 1
    MUL = 2
    SCALE_SHIFT = 3
    CLAMP = 4
    RELU = 5
    COPY2D = 6
    TABLE = 7


OPCODES: dict[Opcode, OpcodeInfo] = {
    Opcode.NOP: OpcodeInfo(
        engine=Engine.SEQ,
        fields={},
        flags={},
        imm={},
        imm_alt={},
        prefix=(),
        spare=0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00,
    ),
    Opcode.DMA_LOAD: OpcodeInfo(
        engine=Engine.LD,
        fields={"dst": FieldInfo("sram", "SRAM destination"), "src0": FieldInfo("raw", "memory offset [15:0]"), "src1": FieldInfo("raw", "memory offset [31:16]"), "m": FieldInfo("dim", "rows"), "n": FieldInfo("dim", "bytes per row"), "k": FieldInfo("raw", "memory pitch in words, 0 = up(N, 16) bytes")},
        flags={},
        imm={"base": BitField("base", 0, 3)},
        imm_alt={},
        prefix=("cp",),
        spare=0xFFF8000000000000000000000000FF00,
    ),
    Opcode.DMA_STORE: OpcodeInfo(
        engine=Engine.ST,
        fields={"dst": FieldInfo("sram", "SRAM source"), "src0": FieldInfo("raw", "memory offset [15:0]"), "src1": FieldInfo("raw", "memory offset [31:16]"), "m": FieldInfo("dim", "rows"), "n": FieldInfo("dim", "bytes per row"), "k": FieldInfo("raw", "memory pitch in words, 0 = up(N, 16) bytes")},
        flags={},
        imm={"base": BitField("base", 0, 3)},
        imm_alt={},
        prefix=("cp",),
        spare=0xFFF8000000000000000000000000FF00,
    ),
    Opcode.GEMM: OpcodeInfo(
        engine=Engine.GEMM,
        fields={"dst": FieldInfo("sram", "C"), "src0": FieldInfo("sram", "A"), "src1": FieldInfo("sram", "B, or D if B is the stream"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dyn", "columns"), "k": FieldInfo("dyn", "inner length")},
        flags={"TRANSPOSE_B": 0, "BIAS_EN": 1, "REQUANT": 2, "RELU": 3, "ACCUMULATE": 5, "MODE": 6},
        imm={"a_type": BitField("a_type", 0, 2), "b_form": BitField("b_form", 2, 2), "fmt": BitField("fmt", 4, 3), "q": BitField("q", 7, 2), "activation": BitField("activation", 9, 1), "out": BitField("out", 10, 2), "op": BitField("op", 12, 2), "argmax": BitField("argmax", 14, 1), "reserved": BitField("reserved", 15, 1)},
        imm_alt={"scale": BitField("scale", 0, 8), "shift": BitField("shift", 8, 8)},
        prefix=("cp", "ap", "bp", "d", "dp", "base", "mul", "sums", "sh"),
        spare=0x00000000000000000000000000009000,
    ),
    Opcode.VEC: OpcodeInfo(
        engine=Engine.VEC,
        fields={"dst": FieldInfo("sram", "C"), "src0": FieldInfo("sram", "A"), "src1": FieldInfo("raw", "B (ADD, SUB, MUL), table (TABLE without stream): word address; lower bound (CLAMP): signed"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dim", "elements per row"), "k": FieldInfo("raw", "scale (SCALE_SHIFT) or upper bound (CLAMP), signed")},
        flags={},
        imm={"op": BitField("op", 0, 4), "a16": BitField("a16", 4, 1), "c16": BitField("c16", 5, 1), "stream": BitField("stream", 6, 1), "sh": BitField("sh", 8, 6)},
        imm_alt={},
        prefix=("cp", "ap", "bp"),
        spare=0xC080000000000000000000000000FF00,
    ),
    Opcode.SOFTMAX: OpcodeInfo(
        engine=Engine.SMX,
        fields={"dst": FieldInfo("sram", "numerators or probabilities; in place if u16"), "src0": FieldInfo("sram", "scores"), "src1": FieldInfo("sram", "sums, one word per row"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dyn", "columns"), "k": FieldInfo("raw", "rows per head, 0 = M")},
        flags={"CAUSAL_MASK": 4},
        imm={"out": BitField("out", 0, 2), "score8": BitField("score8", 2, 1)},
        imm_alt={},
        prefix=("cp", "ap"),
        spare=0xFFF8000000000000000000000000EF00,
    ),
    Opcode.LAYERNORM: OpcodeInfo(
        engine=Engine.NRM,
        fields={"dst": FieldInfo("sram", "C"), "src0": FieldInfo("sram", "X, int16"), "src1": FieldInfo("sram", "parameters, if not from the stream"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dim", "row length")},
        flags={},
        imm={"stream": BitField("stream", 0, 1), "out16": BitField("out16", 1, 1)},
        imm_alt={},
        prefix=("cp", "ap"),
        spare=0xFFFCFFFF00000000000000000000FF00,
    ),
    Opcode.GELU: OpcodeInfo(
        engine=Engine.VEC,
        fields={"dst": FieldInfo("sram", "C"), "src0": FieldInfo("sram", "A, int8"), "src1": FieldInfo("sram", "table, if not from the stream"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dim", "elements per row")},
        flags={},
        imm={"stream": BitField("stream", 0, 1)},
        imm_alt={},
        prefix=("cp", "ap"),
        spare=0xFFFEFFFF00000000000000000000FF00,
    ),
    Opcode.KV_APPEND: OpcodeInfo(
        engine=Engine.ST,
        fields={"dst": FieldInfo("sram", "staging, 0 without STAGE"), "src0": FieldInfo("sram", "rows"), "src1": FieldInfo("raw", "staging head pitch in words, 0 without STAGE"), "m": FieldInfo("raw", "layer"), "n": FieldInfo("dim", "head dimension"), "k": FieldInfo("dim", "rows")},
        flags={"V": 0, "STAGE": 6},
        imm={"first_head": BitField("first_head", 0, 8), "heads_minus_1": BitField("heads_minus_1", 8, 8)},
        imm_alt={},
        prefix=("ap", "base"),
        spare=0x0000000000000000000000000000BE00,
    ),
    Opcode.KV_READ: OpcodeInfo(
        engine=Engine.LD,
        fields={"dst": FieldInfo("sram", "staging"), "m": FieldInfo("raw", "layer"), "n": FieldInfo("dim", "head dimension"), "k": FieldInfo("dyn", "positions")},
        flags={"V": 0},
        imm={"first_head": BitField("first_head", 0, 8), "heads_minus_1": BitField("heads_minus_1", 8, 8)},
        imm_alt={},
        prefix=("cp", "base"),
        spare=0x0000000000000000FFFFFFFF0000FE00,
    ),
    Opcode.BARRIER: OpcodeInfo(
        engine=Engine.SEQ,
        fields={"m": FieldInfo("raw", "engine mask, bits 5:0; 0 = all engines"), "n": FieldInfo("raw", "n, 0..4")},
        flags={},
        imm={},
        imm_alt={},
        prefix=(),
        spare=0xFFFFFFFF00000000FFFFFFFFFFFFFF00,
    ),
    Opcode.RMSNORM: OpcodeInfo(
        engine=Engine.NRM,
        fields={"dst": FieldInfo("sram", "C"), "src0": FieldInfo("sram", "X, int16"), "src1": FieldInfo("sram", "parameters, if not from the stream"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dim", "row length")},
        flags={},
        imm={"stream": BitField("stream", 0, 1), "out16": BitField("out16", 1, 1)},
        imm_alt={},
        prefix=("cp", "ap"),
        spare=0xFFFCFFFF00000000000000000000FF00,
    ),
    Opcode.ROPE: OpcodeInfo(
        engine=Engine.NRM,
        fields={"dst": FieldInfo("sram", "C"), "src0": FieldInfo("sram", "A, int8"), "src1": FieldInfo("sram", "cos/sin rows, N/2 pairs of int16 Q1.14"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dim", "head dimension, even"), "k": FieldInfo("dim", "heads per row")},
        flags={},
        imm={"pairs": BitField("pairs", 0, 1)},
        imm_alt={},
        prefix=("cp", "ap", "bp"),
        spare=0xFFFE000000000000000000000000FF00,
    ),
    Opcode.SILU: OpcodeInfo(
        engine=Engine.VEC,
        fields={"dst": FieldInfo("sram", "C"), "src0": FieldInfo("sram", "A, int8"), "src1": FieldInfo("sram", "table, if not from the stream"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dim", "elements per row")},
        flags={},
        imm={"stream": BitField("stream", 0, 1)},
        imm_alt={},
        prefix=("cp", "ap"),
        spare=0xFFFEFFFF00000000000000000000FF00,
    ),
    Opcode.PFX: OpcodeInfo(
        engine=Engine.SEQ,
        fields={"dst": FieldInfo("raw", "cp"), "src0": FieldInfo("raw", "ap"), "src1": FieldInfo("raw", "bp"), "m": FieldInfo("raw", "d"), "n": FieldInfo("raw", "dp"), "k": FieldInfo("raw", "base"), "flags": FieldInfo("raw", "sh in bits 5:0")},
        flags={},
        imm={"mul": BitField("mul", 0, 16)},
        imm_alt={},
        prefix=(),
        spare=0x0000000000000000000000000000C000,
    ),
    Opcode.SET: OpcodeInfo(
        engine=Engine.SEQ,
        fields={"dst": FieldInfo("raw", "register"), "src0": FieldInfo("raw", "value [15:0]"), "src1": FieldInfo("raw", "value [31:16]")},
        flags={"ADD": 0},
        imm={},
        imm_alt={},
        prefix=(),
        spare=0xFFFFFFFFFFFFFFFF000000000000FE00,
    ),
    Opcode.EMBED: OpcodeInfo(
        engine=Engine.LD,
        fields={"dst": FieldInfo("sram", "SRAM destination"), "src0": FieldInfo("sram", "list of u32 ids (index 1), else 0"), "m": FieldInfo("dim", "rows"), "n": FieldInfo("dim", "bytes per row"), "k": FieldInfo("raw", "memory pitch in words, 0 = up(N, 16) bytes")},
        flags={},
        imm={"base": BitField("base", 0, 3), "index": BitField("index", 4, 2)},
        imm_alt={},
        prefix=("cp",),
        spare=0xFFC8000000000000FFFF00000000FF00,
    ),
    Opcode.ARGMAX: OpcodeInfo(
        engine=Engine.ST,
        fields={},
        flags={},
        imm={"base": BitField("base", 0, 3)},
        imm_alt={},
        prefix=(),
        spare=0xFFF8FFFFFFFFFFFFFFFFFFFFFFFFFF00,
    ),
    Opcode.LOOP: OpcodeInfo(
        engine=Engine.SEQ,
        fields={"src0": FieldInfo("raw", "target word [15:0]"), "src1": FieldInfo("raw", "target word [31:16]")},
        flags={},
        imm={},
        imm_alt={},
        prefix=(),
        spare=0xFFFFFFFFFFFFFFFF00000000FFFFFF00,
    ),
    Opcode.END: OpcodeInfo(
        engine=Engine.SEQ,
        fields={},
        flags={},
        imm={},
        imm_alt={},
        prefix=(),
        spare=0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF00,
    ),
}

# Prefix operand -> the field of the PFX word that holds it.
PREFIX_FIELDS: dict[str, str] = {
    "cp": "dst",
    "ap": "src0",
    "bp": "src1",
    "d": "m",
    "dp": "n",
    "base": "k",
    "mul": "imm",
    "sums": "imm",
    "sh": "flags",
}

SET_REGISTERS: dict[SetReg, SetRegInfo] = {
    SetReg.POS: SetRegInfo(1, True),
    SetReg.TOKEN: SetRegInfo(1, True),
    SetReg.WINDOW: SetRegInfo(1, True),
    SetReg.STREAM: SetRegInfo(64, False),
    SetReg.OUTCNT: SetRegInfo(1, True),
    SetReg.LOOPLEFT: SetRegInfo(1, True),
    SetReg.EOS: SetRegInfo(1, True),
    SetReg.KVBASE: SetRegInfo(256, True),
    SetReg.KVLAYER: SetRegInfo(256, True),
    SetReg.KVHEAD: SetRegInfo(256, True),
    SetReg.KVVOFF: SetRegInfo(256, True),
    SetReg.KVCAP: SetRegInfo(1, True),
    SetReg.BASE0: SetRegInfo(16, True),
    SetReg.BASE1: SetRegInfo(16, True),
    SetReg.BASE2: SetRegInfo(16, True),
    SetReg.BASE3: SetRegInfo(16, True),
    SetReg.BASE4: SetRegInfo(16, True),
    SetReg.BASE5: SetRegInfo(16, True),
    SetReg.BASE6: SetRegInfo(16, True),
    SetReg.BASE7: SetRegInfo(16, True),
}
