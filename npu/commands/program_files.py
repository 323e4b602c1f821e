# SPDX-License-Identifier: Apache-2.0
"""Programs as files: `npu asm` and `npu disasm`, and what a program consists of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.markup import escape

from npu.asm import assemble, disassemble
from npu.commands import files
from npu.commands.files import FileError
from npu.tables import FitTable, pairs
from spec.isa.generated import WORD, Opcode
from spec.isa.instruction import Instruction, decode_image
from spec.isa.legality import check
from spec.isa.operands import Limits, Prefix, share_bytes, sram_operands

WORDS_SUFFIX = ".bin"


def assemble_file(path: Path, symbols: Mapping[str, int], limits: Limits) -> list[Instruction]:
    """Return the words of a program text. Raises AsmError or FileError, `file:line:column: ...`."""
    text = files.read_text(path)
    return assemble(text, filename=str(path), symbols=symbols, limits=limits).instructions


def output_of(path: Path, given: Path | None) -> Path:
    """Return where the words of a text go. Raises FileError if that is the text itself."""
    output = given or path.with_suffix(WORDS_SUFFIX)
    if output.resolve() == path.resolve():
        raise FileError(f"{path}: its words would overwrite it: name another file with -o")
    return output


def disassemble_file(path: Path, limits: Limits) -> str:
    """Return the text of a file of words. Raises FileError."""
    data = files.read_bytes(path)
    if not data or len(data) % WORD:
        raise FileError(f"{path}: given {len(data)} bytes, allowed are whole words of {WORD} bytes")
    return disassemble(data, limits=limits)


def words_of(data: bytes) -> list[Instruction] | None:
    """Return the words of an image, None unless it is whole words with known opcodes."""
    if not data or len(data) % WORD:
        return None
    words = decode_image(data)
    known = {int(opcode) for opcode in Opcode}
    return words if all(word.opcode in known for word in words) else None


@dataclass(frozen=True)
class Contents:
    """What a program consists of.

    Attributes:
        words: all of them.
        counts: instructions by opcode, the most frequent first; prefixes are no instructions.
        prefixes: words that extend the instruction behind them.
        sram_bytes: from address 0 to the end of the last operand whose place is fixed.
        share_bytes: taken from the parameter stream by each instruction once.
        illegal: what a chip of these sizes refuses first, "" for nothing.
    """

    words: int
    counts: dict[str, int]
    prefixes: int
    sram_bytes: int
    share_bytes: int
    illegal: str


def contents(words: Sequence[Instruction], limits: Limits) -> Contents:
    """Return what a program consists of."""
    counts: Counter[str] = Counter()
    prefixes = top = shares = 0
    illegal = ""
    prefix: Instruction | None = None
    for index, word in enumerate(words):
        if word.opcode == Opcode.PFX:
            prefix, prefixes = word, prefixes + 1
            continue
        counts[Opcode(word.opcode).name] += 1
        refusal = check(word, prefix, limits)
        if refusal is None:
            operands = sram_operands(word, Prefix.of(prefix), limits.edge)
            top = max([top, *(operand.end for operand in operands)])
            shares += share_bytes(word, limits.edge)
        elif not illegal:
            illegal = f"word {index}, {Opcode(word.opcode).name}: {refusal[0].name}: {refusal[1]}"
        prefix = None
    return Contents(len(words), dict(counts.most_common()), prefixes, top, shares, illegal)


def table(found: Contents) -> FitTable:
    """Return the contents of a program as a table."""
    result = pairs()
    instructions = sum(found.counts.values())
    prefixes = f"{instructions:,} instructions and {found.prefixes:,} prefixes"
    result.add_row("words", f"{found.words:,}: {prefixes}")
    result.add_row("barriers", f"{found.counts.get('BARRIER', 0):,}")
    result.add_row("SRAM", f"{found.sram_bytes:,} bytes from address 0 on")
    result.add_row("stream", f"{found.share_bytes:,} bytes")
    result.add_row("illegal", escape(found.illegal) or "nothing")
    result.add_section()
    for name, count in found.counts.items():
        result.add_row(name, f"{count:,}")
    return result
