# SPDX-License-Identifier: Apache-2.0
"""The text form of every opcode. Operand names are those of docs/reference/isa.md."""

from npu.asm.syntax import (
    Bytes,
    ChoiceOperand,
    Dim,
    Fields,
    HeadsOperand,
    LinesOperand,
    Number,
    Predicate,
    Requantisation,
    Switch,
    Syntax,
    TextOperand,
    Wide,
)
from spec.isa.fields import BitField
from spec.isa.generated import (
    OPCODES,
    PREFIX_FIELDS,
    VEC_OPS,
    Engine,
    Flag,
    GemmB,
    GemmQ,
    Opcode,
    VecOp,
    WeightFormat,
    WeightGroup,
)
from spec.isa.weight_formats import GROUPED

PREFIX_OPERANDS: dict[str, TextOperand] = {
    name: Bytes(f"pfx.{field}") for name, field in PREFIX_FIELDS.items()
} | {
    "mul": Number("pfx.imm"),
    "base": Number("pfx.k"),
    "sh": Number("pfx.flags", BitField("sh", 0, 6)),
    "lines": LinesOperand("pfx.m"),
}
BARRIER_ENGINES = ("ld", "st", "gemm", "smx", "nrm", "vec")


def _flag(flag: Flag) -> Switch:
    return Switch("flags", 1 << flag)


def _mode_set(fields: Fields) -> bool:
    return bool(fields.get("flags", 0) >> Flag.MODE & 1)


def _requant(fields: Fields) -> bool:
    return bool(fields.get("flags", 0) >> Flag.REQUANT & 1)


def _classic(fields: Fields) -> bool:
    return not _mode_set(fields)


def _row_sums(fields: Fields) -> bool:
    q = OPCODES[Opcode.GEMM].imm["q"]
    return _mode_set(fields) and _requant(fields) and q.get(fields.get("imm", 0)) == GemmQ.ROW


def _stream(fields: Fields) -> bool:
    form = OPCODES[Opcode.GEMM].imm["b_form"].get(fields.get("imm", 0))
    return _mode_set(fields) and form in (GemmB.STREAM, GemmB.STREAM_MX)


def _lined(fields: Fields) -> bool:
    depthwise = OPCODES[Opcode.GEMM].imm["depthwise"].get(fields.get("imm", 0))
    return _stream(fields) and not depthwise


def _grouped(fields: Fields) -> bool:
    return _stream(fields) and fields.get("format", 0) in GROUPED


def _gemm() -> Syntax:
    mode = OPCODES[Opcode.GEMM].imm
    classic = OPCODES[Opcode.GEMM].imm_alt
    only: dict[str, Predicate] = dict.fromkeys(
        ("A", "B", "q", "out", "op", "table", "argmax", "depthwise"), _mode_set
    )
    only |= {
        "fmt": _stream,
        "group": _grouped,
        "T": lambda fields: not _stream(fields),
        "scale": _classic,
        "shift": _classic,
        "classic": _classic,
        "d": lambda fields: not _lined(fields),
        "lines": _lined,
        "sums": _row_sums,
        "mul": lambda fields: not _row_sums(fields),
    }
    operands: dict[str, TextOperand] = {
        "dst": Bytes("dst", always=True),
        "src0": Bytes("src0", needed=True),
        "src1": Bytes("src1"),
        "M": Dim("m", dynamic=True),
        "N": Dim("n", dynamic=True),
        "K": Dim("k", dynamic=True),
        "A": ChoiceOperand("imm", mode["a_type"]),
        "B": ChoiceOperand("imm", mode["b_form"]),
        "fmt": ChoiceOperand("format", BitField("format", 0, 4, WeightFormat)),
        "group": ChoiceOperand("group", BitField("group", 0, 2, WeightGroup)),
        "q": Requantisation(mode["q"], Flag.REQUANT),
        "out": ChoiceOperand("imm", mode["out"], needed=True),
        "op": ChoiceOperand("imm", mode["op"]),
        "scale": Number("imm", classic["scale"]),
        "shift": Number("imm", classic["shift"]),
    }
    switches = {
        "classic": Switch("classic", 1),
        "requant": _flag(Flag.REQUANT),
        "T": _flag(Flag.TRANSPOSE_B),
        "bias": _flag(Flag.BIAS_EN),
        "relu": _flag(Flag.RELU),
        "acc": _flag(Flag.ACCUMULATE),
        "table": Switch("imm", mode["activation"].mask),
        "argmax": Switch("imm", mode["argmax"].mask),
        "depthwise": Switch("imm", mode["depthwise"].mask),
    }
    only["requant"] = _classic
    return Syntax(operands, switches, only)


def _vec() -> Syntax:
    imm = OPCODES[Opcode.VEC].imm

    def op_in(ops: set[VecOp]) -> Predicate:
        return lambda fields: imm["op"].get(fields.get("imm", 0)) in ops

    low = {op for op, uses in VEC_OPS.items() if uses.src1 == "bound"}
    high = {op for op, uses in VEC_OPS.items() if uses.k == "bound"}
    scale = {op for op, uses in VEC_OPS.items() if uses.k == "scale"}
    return Syntax(
        {
            "op": ChoiceOperand("imm", imm["op"], needed=True),
            "dst": Bytes("dst", needed=True),
            "src0": Bytes("src0", needed=True),
            "src1": Bytes("src1"),
            "lo": Number("src1", signed=True),
            "M": Dim("m", dynamic=True),
            "N": Dim("n"),
            "scale": Number("k", signed=True),
            "hi": Number("k", signed=True),
            "A": ChoiceOperand("imm", imm["a16"]),
            "out": ChoiceOperand("imm", imm["c16"]),
            "sh": Number("imm", imm["sh"]),
        },
        {"stream": Switch("imm", imm["stream"].mask)},
        {
            "lo": op_in(low),
            "hi": op_in(high),
            "scale": op_in(scale),
            "src1": op_in(set(VecOp) - low),
        },
    )


def _dma() -> Syntax:
    imm = OPCODES[Opcode.DMA_LOAD].imm
    return Syntax(
        {
            "dst": Bytes("dst", needed=True),
            "M": Dim("m"),
            "N": Dim("n"),
            "b": Number("imm", imm["base"], needed=True),
            "off": Wide(),
            "pitch": Bytes("k"),
        },
        {},
        {},
    )


def _softmax() -> Syntax:
    imm = OPCODES[Opcode.SOFTMAX].imm
    return Syntax(
        {
            "dst": Bytes("dst", needed=True),
            "src0": Bytes("src0", needed=True),
            "src1": Bytes("src1"),
            "M": Dim("m", dynamic=True),
            "N": Dim("n", dynamic=True),
            "K": Number("k"),
            "A": ChoiceOperand("imm", imm["score8"]),
            "out": ChoiceOperand("imm", imm["out"], needed=True),
        },
        {"causal": _flag(Flag.CAUSAL_MASK)},
        {},
    )


def _norm() -> Syntax:
    imm = OPCODES[Opcode.LAYERNORM].imm
    return Syntax(
        {
            "dst": Bytes("dst", needed=True),
            "src0": Bytes("src0", needed=True),
            "src1": Bytes("src1"),
            "M": Dim("m", dynamic=True),
            "N": Dim("n"),
            "out": ChoiceOperand("imm", imm["out16"]),
        },
        {"stream": Switch("imm", imm["stream"].mask)},
        {},
    )


def _table() -> Syntax:
    return Syntax(
        {
            "dst": Bytes("dst", needed=True),
            "src0": Bytes("src0", needed=True),
            "src1": Bytes("src1"),
            "M": Dim("m", dynamic=True),
            "N": Dim("n"),
        },
        {"stream": Switch("imm", OPCODES[Opcode.GELU].imm["stream"].mask)},
        {},
    )


def _kv(append: bool) -> Syntax:
    imm = OPCODES[Opcode.KV_READ].imm
    operands: dict[str, TextOperand] = {"dst": Bytes("dst", needed=not append)}
    switches = {"v": _flag(Flag.V)}
    if append:
        operands |= {"src0": Bytes("src0", needed=True), "hp": Bytes("src1")}
        switches["stage"] = _flag(Flag.STAGE)
    operands |= {
        "layer": Number("m", needed=True),
        "N": Dim("n"),
        "K": Dim("k", dynamic=not append),
        "heads": HeadsOperand(imm["first_head"], imm["heads_minus_1"]),
    }
    return Syntax(operands, switches, {})


def _barrier() -> Syntax:
    switches = {name: Switch("m", 1 << Engine[name.upper()]) for name in BARRIER_ENGINES}
    return Syntax({"n": Number("n")}, switches, {})


def _rope() -> Syntax:
    return Syntax(
        {
            "dst": Bytes("dst", needed=True),
            "src0": Bytes("src0", needed=True),
            "src1": Bytes("src1", needed=True),
            "M": Dim("m", dynamic=True),
            "N": Dim("n"),
            "K": Dim("k"),
        },
        {"pairs": Switch("imm", OPCODES[Opcode.ROPE].imm["pairs"].mask)},
        {},
    )


def _embed() -> Syntax:
    imm = OPCODES[Opcode.EMBED].imm
    return Syntax(
        {
            "dst": Bytes("dst", needed=True),
            "src0": Bytes("src0"),
            "M": Dim("m"),
            "N": Dim("n"),
            "b": Number("imm", imm["base"], needed=True),
            "idx": ChoiceOperand("imm", imm["index"], needed=True),
            "pitch": Bytes("k"),
        },
        {},
        {},
    )


_NONE = Syntax({}, {}, {})

SYNTAX: dict[Opcode, Syntax] = {
    Opcode.NOP: _NONE,
    Opcode.DMA_LOAD: _dma(),
    Opcode.DMA_STORE: _dma(),
    Opcode.GEMM: _gemm(),
    Opcode.VEC: _vec(),
    Opcode.SOFTMAX: _softmax(),
    Opcode.LAYERNORM: _norm(),
    Opcode.RMSNORM: _norm(),
    Opcode.GELU: _table(),
    Opcode.SILU: _table(),
    Opcode.KV_APPEND: _kv(append=True),
    Opcode.KV_READ: _kv(append=False),
    Opcode.BARRIER: _barrier(),
    Opcode.ROPE: _rope(),
    Opcode.SET: Syntax({"v": Wide(needed=True)}, {"add": _flag(Flag.ADD)}, {}),
    Opcode.EMBED: _embed(),
    Opcode.ARGMAX: Syntax(
        {"b": Number("imm", OPCODES[Opcode.ARGMAX].imm["base"], needed=True)}, {}, {}
    ),
    Opcode.LOOP: Syntax({"to": Wide(needed=True)}, {}, {}),
    Opcode.END: _NONE,
}
