# SPDX-License-Identifier: Apache-2.0
"""Generated from spec/isa/isa.toml by `python -m spec.isa.generate`; do not edit."""

# fmt: off
# ruff: noqa: E501
from enum import IntEnum

from spec.isa.elements import FormatInfo, Minifloat, Side
from spec.isa.fields import BitField, FieldInfo, Mode, OpcodeInfo, SetRegInfo, VecOpInfo

ISA_VERSION = 2
WORD = 16
"""Bytes of a word: of SRAM, of memory, of the program."""
LINE = 64
"""Bytes of a line: what the parameter stream hands out at once, and the unit of its shares."""
TABLE_BYTES = 256
"""Bytes of a table: one result for each int8."""
DYNAMIC = 0xF000
"""A dimension field at or above this is dynamic."""
MULT_MAX = 0x7FFF
"""Largest multiplier of the prefix."""
SHIFT_MAX = 63
"""Largest shift."""
DEPTHWISE_TAPS = 4
"""Neighbouring rows of A that a row of a depthwise GEMM multiplies, in each of its lines."""
GEMM_LINES = 4
"""Largest number of lines of A."""
BARRIER_MOST = 4
"""Largest n of BARRIER."""


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
    GROUP_HIGH = 4
    GROUP_LOW = 0
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


class GemmA(Mode):
    """Values of a_type of GEMM."""

    INT8 = 0, "i8"
    UINT8 = 1, "u8"
    INT16 = 2, "i16"
    UINT16 = 3, "u16"


class GemmB(Mode):
    """Values of b_form of GEMM."""

    ROW_MAJOR = 0, "row"
    TILE = 1, "tile"
    STREAM = 2, "stream"
    STREAM_MX = 3, ""


class GemmQ(Mode):
    """Values of q of GEMM."""

    PREFIX = 0, "imm"
    TENSOR = 1, "tensor"
    CHANNEL = 2, "ch"
    ROW = 3, "row"


class GemmOut(Mode):
    """Values of out of GEMM."""

    INT8 = 0, "i8"
    INT16 = 1, "i16"
    INT32 = 2, "i32"
    NONE = 3, "none"


class GemmOp(Mode):
    """Values of op of GEMM."""

    NONE = 0, "none"
    ADD = 1, "add"
    MUL = 2, "mul"


class SmxOut(Mode):
    """Values of out of SOFTMAX."""

    PROB8 = 0, "prob"
    NUMER8 = 1, "u8"
    NUMER16 = 2, "u16"


class SmxScore(Mode):
    """Values of score8 of SOFTMAX."""

    INT16 = 0, "i16"
    INT8 = 1, "i8"


class ElementWidth(Mode):
    """Values of a16 of VEC, c16 of VEC, out16 of LAYERNORM, out16 of RMSNORM."""

    INT8 = 0, "i8"
    INT16 = 1, "i16"


class EmbedIndex(Mode):
    """Values of index of EMBED."""

    TOKEN = 0, "token"
    LIST = 1, "list"
    POS = 2, "pos"


class VecOp(Mode):
    """Values of op of VEC."""

    ADD = 0, "add"
    SUB = 1, "sub"
    MUL = 2, "mul"
    SCALE_SHIFT = 3, "scale_shift"
    CLAMP = 4, "clamp"
    RELU = 5, "relu"
    COPY2D = 6, "copy2d"
    TABLE = 7, "table"
    MAX = 8, "max"
    MIN = 9, "min"


class WeightFormat(Mode):
    """Values of {bit 0 of b_form, fmt} of GEMM with B from the stream."""

    INT8 = 0, "int8"
    INT4 = 1, "int4"
    INT4G = 2, "int4g"
    INT4S = 3, "int4s"
    INT2 = 4, "int2"
    INT8S = 5, "int8s"
    NF4G = 6, "nf4g"
    FP4G = 7, "fp4g"
    MXINT8 = 8, "mxint8"
    MXFP8E4 = 9, "mxfp8e4"
    MXFP8E5 = 10, "mxfp8e5"
    MXFP6E3 = 11, "mxfp6e3"
    MXFP6E2 = 12, "mxfp6e2"
    MXFP4 = 13, "mxfp4"


class WeightGroup(Mode):
    """Values of {flag GROUP_HIGH, flag GROUP_LOW} of GEMM in formats with a factor: rows of K per factor."""

    G32 = 0, "32"
    G64 = 1, "64"
    G128 = 2, "128"
    G16 = 3, "16"


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
        flags={"TRANSPOSE_B": 0, "GROUP_LOW": 0, "BIAS_EN": 1, "REQUANT": 2, "RELU": 3, "GROUP_HIGH": 4, "ACCUMULATE": 5, "MODE": 6},
        imm={"a_type": BitField("a_type", 0, 2, GemmA), "b_form": BitField("b_form", 2, 2, GemmB), "fmt": BitField("fmt", 4, 3), "q": BitField("q", 7, 2, GemmQ), "activation": BitField("activation", 9, 1), "out": BitField("out", 10, 2, GemmOut), "op": BitField("op", 12, 2, GemmOp), "argmax": BitField("argmax", 14, 1), "depthwise": BitField("depthwise", 15, 1)},
        imm_alt={"scale": BitField("scale", 0, 8), "shift": BitField("shift", 8, 8)},
        prefix=("cp", "ap", "bp", "d", "lines", "dp", "base", "mul", "sums", "sh"),
        spare=0x00000000000000000000000000008000,
    ),
    Opcode.VEC: OpcodeInfo(
        engine=Engine.VEC,
        fields={"dst": FieldInfo("sram", "C"), "src0": FieldInfo("sram", "A"), "src1": FieldInfo("raw", "by the operation: word address of B or of the table, or a signed bound"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dim", "elements per row"), "k": FieldInfo("raw", "by the operation: scale or upper bound, signed")},
        flags={},
        imm={"op": BitField("op", 0, 4, VecOp), "a16": BitField("a16", 4, 1, ElementWidth), "c16": BitField("c16", 5, 1, ElementWidth), "stream": BitField("stream", 6, 1), "sh": BitField("sh", 8, 6)},
        imm_alt={},
        prefix=("cp", "ap", "bp"),
        spare=0xC080000000000000000000000000FF00,
    ),
    Opcode.SOFTMAX: OpcodeInfo(
        engine=Engine.SMX,
        fields={"dst": FieldInfo("sram", "numerators or probabilities; in place if u16"), "src0": FieldInfo("sram", "scores"), "src1": FieldInfo("sram", "sums, one word per row"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dyn", "columns"), "k": FieldInfo("raw", "rows per head, 0 = M")},
        flags={"CAUSAL_MASK": 4},
        imm={"out": BitField("out", 0, 2, SmxOut), "score8": BitField("score8", 2, 1, SmxScore)},
        imm_alt={},
        prefix=("cp", "ap"),
        spare=0xFFF8000000000000000000000000EF00,
    ),
    Opcode.LAYERNORM: OpcodeInfo(
        engine=Engine.NRM,
        fields={"dst": FieldInfo("sram", "C"), "src0": FieldInfo("sram", "X, int16"), "src1": FieldInfo("sram", "parameters, if not from the stream"), "m": FieldInfo("dyn", "rows"), "n": FieldInfo("dim", "row length")},
        flags={},
        imm={"stream": BitField("stream", 0, 1), "out16": BitField("out16", 1, 1, ElementWidth)},
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
        imm={"stream": BitField("stream", 0, 1), "out16": BitField("out16", 1, 1, ElementWidth)},
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
        fields={"dst": FieldInfo("sram", "SRAM destination"), "src0": FieldInfo("sram", "list of u32 ids (index LIST), else 0"), "m": FieldInfo("dim", "rows"), "n": FieldInfo("dim", "bytes per row"), "k": FieldInfo("raw", "memory pitch in words, 0 = up(N, 16) bytes")},
        flags={},
        imm={"base": BitField("base", 0, 3), "index": BitField("index", 4, 2, EmbedIndex)},
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
    "lines": "m",
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

VEC_OPS: dict[VecOp, VecOpInfo] = {
    VecOp.ADD: VecOpInfo("operand", "", False, False, True),
    VecOp.SUB: VecOpInfo("operand", "", False, False, True),
    VecOp.MUL: VecOpInfo("operand", "", True, False, True),
    VecOp.SCALE_SHIFT: VecOpInfo("", "scale", True, True, True),
    VecOp.CLAMP: VecOpInfo("bound", "bound", False, False, True),
    VecOp.RELU: VecOpInfo("", "", False, False, True),
    VecOp.COPY2D: VecOpInfo("", "", False, False, True),
    VecOp.TABLE: VecOpInfo("table", "", False, False, False),
    VecOp.MAX: VecOpInfo("operand", "", False, False, True),
    VecOp.MIN: VecOpInfo("operand", "", False, False, True),
}

WEIGHT_FORMATS: dict[WeightFormat, FormatInfo] = {
    WeightFormat.INT8: FormatInfo(8, Side.NONE),
    WeightFormat.INT4: FormatInfo(4, Side.NONE),
    WeightFormat.INT4G: FormatInfo(4, Side.FACTOR, unit=16),
    WeightFormat.INT4S: FormatInfo(4, Side.POSITIONS),
    WeightFormat.INT2: FormatInfo(2, Side.NONE),
    WeightFormat.INT8S: FormatInfo(8, Side.POSITIONS),
    WeightFormat.NF4G: FormatInfo(4, Side.FACTOR, table=(-127, -88, -67, -50, -36, -23, -12, 0, 10, 20, 31, 43, 56, 71, 92, 127)),
    WeightFormat.FP4G: FormatInfo(4, Side.FACTOR, minifloat=Minifloat(2, 1, 3, False)),
    WeightFormat.MXINT8: FormatInfo(8, Side.EXPONENT),
    WeightFormat.MXFP8E4: FormatInfo(8, Side.EXPONENT, minifloat=Minifloat(4, 3, 15, True)),
    WeightFormat.MXFP8E5: FormatInfo(8, Side.EXPONENT, minifloat=Minifloat(5, 2, 30, False)),
    WeightFormat.MXFP6E3: FormatInfo(6, Side.EXPONENT, minifloat=Minifloat(3, 2, 7, False)),
    WeightFormat.MXFP6E2: FormatInfo(6, Side.EXPONENT, minifloat=Minifloat(2, 3, 3, False)),
    WeightFormat.MXFP4: FormatInfo(4, Side.EXPONENT, minifloat=Minifloat(2, 1, 3, False)),
}
