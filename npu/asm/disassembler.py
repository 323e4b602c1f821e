# SPDX-License-Identifier: Apache-2.0
"""Program to text that assembles to the same bits."""

from collections.abc import Sequence

from npu.asm.encode import decode, encode, tokens
from spec.isa.generated import Opcode
from spec.isa.instruction import Instruction, decode_image
from spec.isa.legality import check
from spec.isa.operands import Limits


def disassemble(
    program: bytes | Sequence[Instruction], *, limits: Limits | None = None, indices: bool = False
) -> str:
    """Return the text of a program: one line per instruction, its prefix folded into it.

    Words that are illegal on a chip of these `limits` become `.word` lines with the reason as a
    comment. `indices` appends the word index as a comment. Raises ValueError for an image that is
    no whole number of words.
    """
    words = decode_image(program) if isinstance(program, bytes) else list(program)
    chip = limits or Limits()
    lines = []
    at = 0
    while at < len(words):
        first = at
        text, at = _line(words, at, chip)
        lines.append(f"{text}  ; {first}" if indices and ";" not in text else text)
    return "".join(line + "\n" for line in lines)


def _line(words: list[Instruction], at: int, limits: Limits) -> tuple[str, int]:
    """Return (text, index of the next word); an illegal pair of words gives two lines in one."""
    word = words[at]
    if word.opcode != Opcode.PFX:
        return _single(word, None, limits), at + 1
    if at + 1 == len(words):
        return _raw(word, "a prefix at the end of the program"), at + 1
    following = words[at + 1]
    if following.opcode == Opcode.PFX:
        return _raw(word, "a prefix before a prefix"), at + 1
    return _single(following, word, limits), at + 2


def _raw(word: Instruction, reason: str) -> str:
    return f".word 0x{word.to_int():032X} ; {reason}"


def _single(word: Instruction, prefix: Instruction | None, limits: Limits) -> str:
    refusal = check(word, prefix, limits)
    reason = "" if refusal is None else f"{refusal[0].name}: {refusal[1]}"
    if refusal is None:
        text = decode(word, prefix)
        if encode(tokens(text), {}) == (prefix, word):
            return text
        reason = "no text form"
    lines = [] if prefix is None else [_raw(prefix, "prefix of the next word")]
    return "\n".join([*lines, _raw(word, reason)])
