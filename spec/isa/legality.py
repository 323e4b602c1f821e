# SPDX-License-Identifier: Apache-2.0
"""What is statically illegal, in the order in which the sequencer checks it.

Opcode, fields, dimensions, memory addresses, SRAM ranges (dst, src0, src1, D or parameters or
table, sums). Checks that depend on registers (base addresses, POS, the stream) are not here, except
that base registers are taken as multiples of 16.
"""

from collections.abc import Callable

from spec.isa.fields import WORD_FIELDS, OpcodeInfo, VecOpInfo
from spec.isa.gemm import GemmForm
from spec.isa.generated import (
    BARRIER_MOST,
    DYNAMIC,
    GEMM_LINES,
    MULT_MAX,
    OPCODES,
    PREFIX_FIELDS,
    SET_REGISTERS,
    SHIFT_MAX,
    VEC_OPS,
    WORD,
    EmbedIndex,
    ErrorCode,
    Flag,
    GemmB,
    GemmOp,
    GemmOut,
    GemmQ,
    Opcode,
    SetReg,
    SmxOut,
    VecOp,
    WeightFormat,
    WeightGroup,
)
from spec.isa.instruction import Instruction
from spec.isa.operands import (
    Limits,
    Prefix,
    extent,
    has_flag,
    is_dynamic,
    sram_operands,
    up,
)
from spec.isa.weight_formats import GROUP_ROWS

MEMORY_BYTES = 1 << 32


class _RefusedError(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def _field(ok: object, message: str) -> None:
    if not ok:
        raise _RefusedError(ErrorCode.ILLEGAL_FIELD, message)


def _dimension(ok: bool, message: str) -> None:
    if not ok:
        raise _RefusedError(ErrorCode.BAD_DIMENSION, message)


def check(
    word: Instruction, prefix: Instruction | None = None, limits: Limits | None = None
) -> tuple[ErrorCode, str] | None:
    """Why the instruction (with its PFX word, if any) is refused, or None if it is legal."""
    try:
        _check(word, Prefix.of(prefix), limits or Limits())
    except _RefusedError as refused:
        return refused.code, refused.message
    return None


def _check(word: Instruction, pfx: Prefix, limits: Limits) -> None:
    _field(pfx.flags >> 6 == 0, "bits 7:6 of the prefix's flags must be zero")
    info = OPCODES[Opcode(word.opcode)] if word.opcode in OPCODES else None
    if info is None:
        raise _RefusedError(ErrorCode.ILLEGAL_OPCODE, f"opcode {word.opcode} is unknown")
    _check_spare(word, info)
    _check_values(word, info)
    _field(info.prefix != () or not pfx.present, "the opcode takes no prefix")
    rule = _FIELDS.get(word.opcode)
    used = rule(word, pfx, limits) if rule else set(info.prefix)
    _check_prefix(pfx, used, limits)
    _check_dimensions(word, pfx, info, limits)
    _check_addresses(word)
    for operand in sram_operands(word, pfx, limits.edge):
        if operand.end > limits.sram_bytes:
            raise _RefusedError(
                ErrorCode.SRAM_RANGE,
                f"{operand.name} covers 0x{operand.address:X} to 0x{operand.end - 1:X}, "
                f"the SRAM ends at 0x{limits.sram_bytes - 1:X}",
            )


def _check_spare(word: Instruction, info: OpcodeInfo) -> None:
    wrong = word.to_int() & info.spare
    if not wrong:
        return
    for name, (lsb, width) in WORD_FIELDS.items():
        bits = wrong >> lsb & ((1 << width) - 1)
        _field(not bits, f"bits 0x{bits:X} of {name} must be zero")


def _check_values(word: Instruction, info: OpcodeInfo) -> None:
    """Refuse a value that its field does not name; a GEMM without a mode word has no such field."""
    if info.imm_alt and not has_flag(word, Flag.MODE):
        return
    for name, bits in info.imm.items():
        value = bits.get(word.imm)
        if not bits.takes(value):
            allowed = ", ".join(str(v) for v in range(1 << bits.width) if bits.takes(v))
            raise _RefusedError(ErrorCode.ILLEGAL_FIELD, f"{name}={value}: allowed are {allowed}")


def _check_prefix(pfx: Prefix, used: set[str], limits: Limits) -> None:
    values = {
        "cp": pfx.cp,
        "ap": pfx.ap,
        "bp": pfx.bp,
        "dp": pfx.dp,
        "base": pfx.base,
        "sh": pfx.flags & SHIFT_MAX,
    }
    for name, value in values.items():
        _field(value == 0 or name in used, f"prefix operand {name} is not used here")
    if not used & {"d", "lines"}:
        _field(pfx.d == 0, "prefix operand d or lines is not used here")
    if not used & {"mul", "sums"}:
        _field(pfx.imm == 0, "prefix operand mul or sums is not used here")
    _field(pfx.base % limits.edge == 0, f"base={pfx.base}: allowed are multiples of {limits.edge}")
    assert used <= set(PREFIX_FIELDS)


def _gemm_fields(word: Instruction, pfx: Prefix, limits: Limits) -> set[str]:
    form = GemmForm.of(word)
    _gemm_format(form, limits)
    if form.mode:
        _gemm_mode(word, form, limits)
    else:
        _field(not form.bias, "bias needs the mode word and q=ch")
        _field(form.requant or word.imm == 0, "scale and shift are used with REQUANT only")
        _field(word.imm >> 8 <= SHIFT_MAX, f"shift={word.imm >> 8}: allowed are 0 to {SHIFT_MAX}")
        _field(form.requant or not form.relu, "relu needs requantisation")
    used = _gemm_prefix(form, pfx)
    if form.has_d:
        address = word.src1 if form.stream else pfx.d if pfx.present else word.dst
        present = form.stream or pfx.present or not form.mode
        _field(present, "the second operand D needs the prefix operand d")
        _field(
            not (form.accumulate and form.out != GemmOut.INT32 and address == word.dst),
            "acc with int8 or int16 output needs D at another address than dst",
        )
    elif form.stream:
        _field(word.src1 == 0, "src1 must be zero: B is the stream and there is no D")
    if form.mode and form.requant and form.q == GemmQ.PREFIX:
        _field(1 <= pfx.imm <= MULT_MAX, f"q=imm: mul={pfx.imm}: allowed are 1 to {MULT_MAX}")
    _field(not form.uses_sums or pfx.present, "q=row needs the prefix operand sums")
    if any(is_dynamic(d) for d in (word.m, word.n, word.k)):
        used.add("base")
    return used


def _gemm_mode(word: Instruction, form: GemmForm, limits: Limits) -> None:
    if form.depthwise:
        _field(form.stream, "depthwise needs B=stream")
        _field(form.a_bytes == 1, "depthwise needs A=i8 or u8")
        _field(limits.array_dim == limits.edge, "depthwise needs an array of 16 or 32")
    _field(form.out != GemmOut.NONE or form.argmax, "out=none needs argmax")
    _field(form.out != GemmOut.NONE or word.dst == 0, "dst must be zero: the output is not written")
    _field(not (form.argmax and form.out == GemmOut.INT32), "argmax needs out=i8, i16 or none")
    _field(form.requant or form.q == GemmQ.PREFIX, "q needs REQUANT")
    _field(
        form.requant == (form.out != GemmOut.INT32),
        "requantisation needs out=i8, i16 or none; without it out is i32",
    )
    if not form.requant:
        _field(not form.relu, "relu needs requantisation")
        _field(not form.activation, "table needs requantisation")
        _field(form.op == GemmOp.NONE, "op needs requantisation")
    _field(not form.bias or (form.requant and form.q == GemmQ.CHANNEL), "bias needs q=ch")
    _field(not (form.accumulate and form.op != GemmOp.NONE), "acc and op exclude each other")
    if form.op == GemmOp.MUL:
        _field(form.q not in (GemmQ.PREFIX, GemmQ.ROW), "op=mul needs q=tensor or q=ch")
        _field(form.out == GemmOut.INT8, "op=mul needs out=i8")
    _field(not form.activation or form.out == GemmOut.INT8, "table needs out=i8")


def _gemm_format(form: GemmForm, limits: Limits) -> None:
    """Refuse a format or group that B does not have, or that the chip cannot expand."""
    if not form.stream:
        _field(form.format == WeightFormat.INT8, "fmt must be zero: B is not the stream")
        _field(form.group == WeightGroup.G32, "bit 4 of flags must be zero: B is not the stream")
        return
    names = ", ".join(f"{fmt} {fmt.asm}" for fmt in WeightFormat)
    _field(form.format in set(WeightFormat), f"fmt={form.format}: allowed are {names}")
    fmt = WeightFormat(form.format)
    _field(
        limits.narrow_formats or fmt == WeightFormat.INT8,
        f"fmt={fmt.asm}: the chip has no narrow formats, allowed is int8",
    )
    if not form.grouped:
        _field(form.group == WeightGroup.G32, f"group is not used by fmt={fmt.asm}")
        return
    rows = GROUP_ROWS[WeightGroup(form.group)]
    _field(rows >= limits.edge, f"group={rows}: allowed are at least {limits.edge}, the tile edge")


def _gemm_prefix(form: GemmForm, pfx: Prefix) -> set[str]:
    used = {"ap"}
    if form.out != GemmOut.NONE:
        used.add("cp")
    if form.b_form == GemmB.ROW_MAJOR or form.depthwise:
        used.add("bp")
    if form.takes_lines:
        used.add("lines")
        if pfx.d:
            used.add("bp")
            _field(pfx.lines > 1, f"one line of A: allowed are 2 to {GEMM_LINES}")
            _field(pfx.bp, "lines need the prefix operand bp")
    if form.has_d:
        used.add("dp")
        if not form.stream:
            used.add("d")
    if form.uses_mul:
        used |= {"mul", "sh"}
    if form.uses_sums:
        used.add("sums")
    return used


def _vec_names(chosen: Callable[[VecOpInfo], bool]) -> str:
    return " and ".join(op.asm for op, uses in VEC_OPS.items() if chosen(uses))


def _vec_fields(word: Instruction, pfx: Prefix, limits: Limits) -> set[str]:
    del pfx, limits
    imm = OPCODES[Opcode.VEC].imm
    op = VecOp(imm["op"].get(word.imm))
    a16, c16 = imm["a16"].get(word.imm), imm["c16"].get(word.imm)
    stream, shift = imm["stream"].get(word.imm), imm["sh"].get(word.imm)
    uses = VEC_OPS[op]
    converting = _vec_names(lambda other: other.converts)
    _field(a16 == c16 or uses.converts, f"A and out differ: only in {converting}")
    _field(uses.wide or not (a16 or c16), f"{op.asm} is int8")
    tables = _vec_names(lambda other: other.src1 == "table")
    _field(uses.src1 == "table" or not stream, f"stream is used by {tables} only")
    _field(uses.shift or not shift, f"sh is used by {_vec_names(lambda other: other.shift)} only")
    _field((uses.src1 and not stream) or word.src1 == 0, "src1 must be zero here")
    _field(uses.k or word.k == 0, "k must be zero here")
    return {"cp", "ap", "bp"} if uses.two else {"cp", "ap"}


def _softmax_fields(word: Instruction, pfx: Prefix, limits: Limits) -> set[str]:
    del pfx, limits
    out = OPCODES[Opcode.SOFTMAX].imm["out"].get(word.imm)
    _field(
        out != SmxOut.PROB8 or word.src1 == 0, "src1 must be zero: probabilities come without sums"
    )
    return {"cp", "ap"}


def _share_fields(word: Instruction, pfx: Prefix, limits: Limits) -> set[str]:
    del pfx, limits
    info = OPCODES[Opcode(word.opcode)]
    stream = info.imm["stream"].get(word.imm)
    _field(not stream or word.src1 == 0, "src1 must be zero with stream")
    return set(info.prefix)


def _kv_fields(word: Instruction, pfx: Prefix, limits: Limits) -> set[str]:
    del pfx, limits
    if word.opcode == Opcode.KV_APPEND and not has_flag(word, Flag.STAGE):
        _field(word.dst == 0 and word.src1 == 0, "dst and hp must be zero without stage")
    return set(OPCODES[Opcode(word.opcode)].prefix)


def _barrier_fields(word: Instruction, pfx: Prefix, limits: Limits) -> set[str]:
    del pfx, limits
    _field(word.m < 64, f"mask=0x{word.m:X}: allowed are bits 0 to 5")
    _field(word.n <= BARRIER_MOST, f"n={word.n}: allowed are 0 to {BARRIER_MOST}")
    return set()


def _set_fields(word: Instruction, pfx: Prefix, limits: Limits) -> set[str]:
    del pfx, limits
    _field(word.dst in SET_REGISTERS, f"register {word.dst} does not exist")
    reg = SetReg(word.dst)
    info = SET_REGISTERS[reg]
    _field(info.add or not has_flag(word, Flag.ADD), f"register {reg.name} cannot be added to")
    return set()


def _embed_fields(word: Instruction, pfx: Prefix, limits: Limits) -> set[str]:
    del pfx, limits
    index = OPCODES[Opcode.EMBED].imm["index"].get(word.imm)
    _field(index == EmbedIndex.LIST or word.src0 == 0, "src0 must be zero unless idx=list")
    return {"cp"}


_FIELDS: dict[int, Callable[[Instruction, Prefix, Limits], set[str]]] = {
    Opcode.GEMM: _gemm_fields,
    Opcode.VEC: _vec_fields,
    Opcode.SOFTMAX: _softmax_fields,
    Opcode.LAYERNORM: _share_fields,
    Opcode.RMSNORM: _share_fields,
    Opcode.GELU: _share_fields,
    Opcode.SILU: _share_fields,
    Opcode.KV_APPEND: _kv_fields,
    Opcode.KV_READ: _kv_fields,
    Opcode.BARRIER: _barrier_fields,
    Opcode.SET: _set_fields,
    Opcode.EMBED: _embed_fields,
}


def _check_dimensions(word: Instruction, pfx: Prefix, info: OpcodeInfo, limits: Limits) -> None:
    for name in ("m", "n", "k"):
        field = info.fields.get(name)
        if field is None or field.kind not in ("dim", "dyn"):
            continue
        value = getattr(word, name)
        _dimension(value != 0, f"{name.upper()}=0: allowed are 1 to {DYNAMIC - 1}")
        if is_dynamic(value):
            _dimension(field.kind == "dyn", f"{name.upper()} is not allowed to be dynamic")
    if word.opcode == Opcode.GEMM:
        _gemm_dimensions(word, pfx, limits)
    elif word.opcode == Opcode.SOFTMAX:
        _dimension(not is_dynamic(word.k), "K is not allowed to be dynamic")
        if word.k and not is_dynamic(word.m):
            _dimension(word.m % word.k == 0, f"M={word.m} is no multiple of K={word.k}")
    elif word.opcode in (Opcode.LAYERNORM, Opcode.RMSNORM):
        _dimension(word.n <= limits.norm_max, f"N={word.n}: at most {limits.norm_max} allowed")
    elif word.opcode == Opcode.ROPE:
        _dimension(word.n % 2 == 0, f"N={word.n}: the head dimension must be even")
    elif word.opcode == Opcode.EMBED:
        token = OPCODES[Opcode.EMBED].imm["index"].get(word.imm) == EmbedIndex.TOKEN
        _dimension(not token or word.m == 1, f"M={word.m}: idx=token gives one row")


def _gemm_dimensions(word: Instruction, pfx: Prefix, limits: Limits) -> None:
    form = GemmForm.of(word)
    rows = limits.acc_rows // form.a_bytes
    most = extent(word.m)
    _dimension(most <= rows, f"M={most}: at most {rows} rows fit the accumulators")
    _dimension(
        not (is_dynamic(word.m) and form.out == GemmOut.INT32 and form.a_bytes == 2),
        "dynamic M with int32 output of a 16-bit A",
    )
    if form.stream:
        _dimension(not is_dynamic(word.n) and not is_dynamic(word.k), "dynamic N or K with stream")
    if form.requant and form.mode and form.q == GemmQ.CHANNEL:
        _dimension(not is_dynamic(word.n), "dynamic N with q=ch")
    _dimension(not form.argmax or word.m == 1, f"M={word.m}: argmax takes one row")
    if form.depthwise:
        edge, most = limits.edge, GEMM_LINES * limits.edge
        _dimension(
            word.k % edge == 0 and word.k <= most,
            f"K={word.k}: depthwise takes multiples of {edge} up to {most}",
        )
    if form.takes_lines and pfx.d:
        line, tile = pfx.line_words * WORD, limits.edge * form.a_bytes
        row = up(word.k * form.a_bytes)
        _dimension(line % tile == 0, f"lines of {line} bytes: allowed are multiples of {tile}")
        _dimension(
            pfx.lines * line == row,
            f"lines={pfx.lines}x{line}: a row of K={word.k} has {row} bytes",
        )


def _check_addresses(word: Instruction) -> None:
    if word.opcode in (Opcode.DMA_LOAD, Opcode.DMA_STORE):
        offset = word.src0 | word.src1 << 16
        pitch = word.k * WORD or up(word.n)
        if offset % WORD or offset + (word.m - 1) * pitch + word.n > MEMORY_BYTES:
            raise _RefusedError(
                ErrorCode.BAD_ADDRESS,
                f"off=0x{offset:X}: allowed are multiples of 16 that end within 32 bits",
            )
    elif word.opcode == Opcode.SET:
        value = word.src0 | word.src1 << 16
        reg = SetReg(word.dst)
        step = SET_REGISTERS[reg].granularity
        if value % step:
            raise _RefusedError(
                ErrorCode.BAD_ADDRESS, f"{reg.name} takes multiples of {step}, given {value}"
            )
