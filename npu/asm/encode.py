# SPDX-License-Identifier: Apache-2.0
"""One line of text to one instruction with its prefix, and back. No legality checks here."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from npu.asm.errors import OperandError
from npu.asm.opcodes import PREFIX_OPERANDS, SYNTAX
from npu.asm.syntax import Fields, Symbols, Syntax, TextOperand
from spec.isa.fields import WORD_FIELDS
from spec.isa.gemm import GemmForm
from spec.isa.generated import OPCODES, Flag, GemmB, GemmOut, Opcode, SetReg
from spec.isa.instruction import Instruction

_GEMM_IMM = OPCODES[Opcode.GEMM].imm
_MNEMONICS = {op.name: op for op in SYNTAX}


@dataclass(frozen=True)
class Token:
    """A piece of a line and its column, counted from 1."""

    text: str
    column: int


class TokenError(ValueError):
    """A mistake at a column of the line, counted from 1."""

    def __init__(self, column: int, message: str) -> None:
        """Keep the place and the message."""
        super().__init__(message)
        self.column = column


def tokens(line: str) -> list[Token]:
    """Split a line at blanks outside of parentheses. Raises TokenError for unbalanced ones."""
    result: list[Token] = []
    start, depth = -1, 0
    for at, char in enumerate(line + " "):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            raise TokenError(at + 1, "unbalanced parenthesis")
        if char.isspace() and (depth == 0 or at == len(line)):
            if start >= 0:
                result.append(Token(line[start:at], start + 1))
            start = -1
        elif start < 0:
            start = at
    if depth:
        raise TokenError(len(line), "unbalanced parenthesis")
    return result


def encode(line: list[Token], symbols: Symbols) -> tuple[Instruction | None, Instruction]:
    """Return (prefix word or None, instruction) of the tokens of a line. Raises TokenError."""
    name = line[0].text
    if name not in _MNEMONICS:
        raise TokenError(
            line[0].column, f"unknown instruction {name}: allowed are {', '.join(_MNEMONICS)}"
        )
    opcode = _MNEMONICS[name]
    syntax = SYNTAX[opcode]
    fields: Fields = {}
    rest = line[1:]
    if opcode == Opcode.SET:
        rest = _set_register(line, fields)
    given: dict[str, Token] = {}
    for token in rest:
        key, equals, value = token.text.partition("=")
        if key in given:
            raise TokenError(token.column, f"{key} is given twice")
        given[key] = token
        _operand(opcode, syntax, token, key, equals, value, fields, symbols)
    if opcode == Opcode.GEMM:
        _gemm_mode(given, fields)
    for key, operand in syntax.operands.items():
        if operand.needed and key not in given and not (opcode == Opcode.GEMM and key == "out"):
            raise TokenError(line[0].column, f"{name} needs the operand {key}")
    for key, token in given.items():
        if not _applies(syntax, key, fields):
            raise TokenError(token.column, f"{key} is not used by this form of {name}")
    if opcode == Opcode.GEMM:
        _put_format(fields)
    return _words(opcode, fields, any(key in OPCODES[opcode].prefix for key in given))


def _set_register(line: list[Token], fields: Fields) -> list[Token]:
    names = ", ".join(reg.name for reg in SetReg)
    if len(line) < 2 or line[1].text not in SetReg.__members__:
        raise TokenError(line[:2][-1].column, f"SET needs a register: allowed are {names}")
    fields["dst"] = int(SetReg[line[1].text])
    return line[2:]


def _operand(
    opcode: Opcode,
    syntax: Syntax,
    token: Token,
    key: str,
    equals: str,
    value: str,
    fields: Fields,
    symbols: Symbols,
) -> None:
    operands = operands_of(opcode)
    if not equals and key in syntax.switches:
        syntax.switches[key].set(fields)
        return
    if not equals or key not in operands:
        allowed = [f"{name}=" for name in operands] + list(syntax.switches)
        raise TokenError(
            token.column,
            f"unknown operand {token.text}: {opcode.name} allows {', '.join(allowed) or 'none'}",
        )
    try:
        operands[key].parse(value, fields, symbols)
    except OperandError as error:
        column = token.column + len(key) + 1 + error.column
        raise TokenError(column, f"{key}: {error}") from None


def operands_of(opcode: Opcode) -> dict[str, TextOperand]:
    """Return all key=value operands of an opcode, those of its prefix included."""
    prefix = {name: PREFIX_OPERANDS[name] for name in OPCODES[opcode].prefix}
    return SYNTAX[opcode].operands | prefix


def _gemm_mode(given: dict[str, Token], fields: Fields) -> None:
    """Choose MODE, and the default of out: i8 with q, else i32."""
    flags = fields.get("flags", 0)
    if fields.pop("classic", 0) or "scale" in given or "shift" in given:
        if "scale" in given or "shift" in given:
            flags |= 1 << Flag.REQUANT
    else:
        flags |= 1 << Flag.MODE
        if "out" not in given and "q" not in given:
            fields["imm"] = fields.get("imm", 0) | _GEMM_IMM["out"].put(GemmOut.INT32)
    fields["flags"] = flags


def _put_format(fields: Fields) -> None:
    """Move format and group of a GEMM to the bits that hold them."""
    fmt, group = fields.pop("format", 0), fields.pop("group", 0)
    imm = fields.get("imm", 0)
    if fmt >> 3:
        imm |= _GEMM_IMM["b_form"].put(GemmB.STREAM_MX)
    fields["imm"] = imm | _GEMM_IMM["fmt"].put(fmt & 7)
    fields["flags"] |= (group >> 1) << Flag.GROUP_HIGH | (group & 1) << Flag.GROUP_LOW


def _get_format(word: Instruction, fields: Fields) -> None:
    """Set format and group of a legal GEMM apart, B being the stream whatever the format."""
    form = GemmForm.of(word)
    fields["format"], fields["group"] = form.format, form.group
    if form.stream:
        fields["imm"] &= ~_GEMM_IMM["b_form"].mask
        fields["imm"] |= _GEMM_IMM["b_form"].put(GemmB.STREAM)


def _words(
    opcode: Opcode, fields: Fields, prefixed: bool
) -> tuple[Instruction | None, Instruction]:
    prefix = None
    if prefixed:
        parts = {name: fields.get(f"pfx.{name}", 0) for name in WORD_FIELDS if name != "opcode"}
        prefix = Instruction(Opcode.PFX, **parts)
    parts = {name: fields.get(name, 0) for name in WORD_FIELDS if name != "opcode"}
    return prefix, Instruction(opcode, **parts)


def decode(word: Instruction, prefix: Instruction | None) -> str:
    """Return the text of an instruction whose opcode is known."""
    opcode = Opcode(word.opcode)
    fields: Fields = {name: getattr(word, name) for name in WORD_FIELDS}
    if prefix is not None:
        fields |= {f"pfx.{name}": getattr(prefix, name) for name in WORD_FIELDS}
    if opcode == Opcode.GEMM:
        fields["classic"] = not word.flags >> Flag.MODE & 1
        _get_format(word, fields)
    parts = [opcode.name]
    if opcode == Opcode.SET:
        parts.append(SetReg(word.dst).name)
    syntax = SYNTAX[opcode]
    parts += _texts(syntax.operands, syntax, fields)
    for name, switch in syntax.switches.items():
        if _applies(syntax, name, fields) and switch.is_set(fields):
            parts.append(name)
    if prefix is not None:
        names = OPCODES[opcode].prefix
        texts = list(_texts({n: PREFIX_OPERANDS[n] for n in names}, syntax, fields))
        parts += texts or [f"{names[0]}=0"]
    return " ".join(parts)


def _applies(syntax: Syntax, name: str, fields: Fields) -> bool:
    predicate = syntax.only.get(name)
    return predicate is None or predicate(fields)


def _texts(operands: dict[str, TextOperand], syntax: Syntax, fields: Fields) -> Iterator[str]:
    for name, operand in operands.items():
        if _applies(syntax, name, fields):
            text = operand.text(fields)
            if text is not None:
                yield f"{name}={text}"


LABEL = re.compile(r"[A-Za-z_]\w*:")
