# SPDX-License-Identifier: Apache-2.0
"""Text to program.

A line is an instruction, a label `name:`, or a directive; `;` starts a comment.
`.equ name=value ...` defines symbols. `.for name first last` to `.endr` repeats for first..last,
both included. `.if value` to `.else` or `.endif` is taken if the value is not zero;
`.endr` also ends an `.if`.
`.word number` is a raw 128-bit word, unchecked. Expressions contain no blanks outside parentheses.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from npu.asm.encode import LABEL, Token, TokenError, encode, tokens
from npu.asm.errors import AsmError, OperandError
from npu.asm.expressions import evaluate
from npu.asm.program import Program
from spec.isa.instruction import Instruction
from spec.isa.legality import check
from spec.isa.operands import Limits

_NAME = re.compile(r"[A-Za-z_]\w*")
_DIRECTIVES = (".equ", ".for", ".endr", ".if", ".else", ".endif", ".word")
# .endr closes an .if as well.
_CLOSERS = {".for": (".endr",), ".if": (".endif", ".endr")}
_ENDS = (".endr", ".else", ".endif")
_MOST_WORDS = 1 << 20
_MOST_TURNS = 1 << 20
_DEEPEST = 64


@dataclass(frozen=True)
class _Line:
    number: int
    tokens: list[Token]


def assemble(
    text: str,
    *,
    filename: str = "<text>",
    symbols: Mapping[str, int] | None = None,
    limits: Limits | None = None,
) -> Program:
    """Assemble a program text; `symbols` come from outside and cannot be redefined in the text.

    Raises AsmError with the place of the first mistake, also for an instruction that a chip of
    these `limits` refuses statically; and
    ValueError for a symbol that is no name of an integer.
    """
    for name, value in (symbols or {}).items():
        if not _NAME.fullmatch(name) or isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"symbols: given {name!r}: {value!r}, allowed a name of an integer")
    return _Assembler(text, filename, dict(symbols or {}), limits or Limits()).run()


class _Assembler:
    def __init__(self, text: str, filename: str, symbols: dict[str, int], limits: Limits) -> None:
        self._filename = filename
        self._outside = frozenset(symbols)
        self._symbols = symbols
        self._limits = limits
        self._words: list[Instruction] = []
        self._from: list[int] = []
        self._labels: dict[str, int] = {}
        self._turns = 0
        self._lines = list(self._split(text))

    def _split(self, text: str) -> list[_Line]:
        lines = []
        # Only "\n" ends a line, and with it a comment: a text may hold what `splitlines` cuts at.
        for number, raw in enumerate(text.split("\n"), 1):
            try:
                parts = tokens(raw.partition(";")[0])
            except TokenError as error:
                raise AsmError(self._filename, number, error.column, str(error)) from None
            if parts:
                lines.append(_Line(number, parts))
        return lines

    def run(self) -> Program:
        self._block(0, len(self._lines))
        return Program(self._words, self._from, self._labels)

    def _error(self, line: _Line, at: Token | int, message: str) -> AsmError:
        column = at if isinstance(at, int) else at.column
        return AsmError(self._filename, line.number, column, message)

    def _block(self, at: int, stop: int) -> None:
        """Execute the lines from index `at` to before `stop`."""
        while at < stop:
            line = self._lines[at]
            name = line.tokens[0].text
            if name in _CLOSERS:
                at = self._for(at) if name == ".for" else self._if(at)
                continue
            if name in _ENDS:
                raise self._error(line, line.tokens[0], f"{name} closes nothing")
            self._line(line)
            at += 1

    def _closers(self, at: int) -> tuple[int | None, int]:
        """Return the indices of the .else, if any, and the end of the directive at index `at`.

        What is nested too deeply, or not closed inside, is refused here as well.
        """
        other: int | None = None
        opened = [self._lines[at].tokens[0].text]
        for index in range(at + 1, len(self._lines)):
            line = self._lines[index]
            name = line.tokens[0].text
            if name in _CLOSERS:
                opened.append(name)
                if len(opened) > _DEEPEST:
                    raise self._error(line, line.tokens[0], f"{name} nested deeper than {_DEEPEST}")
            elif name in _CLOSERS[opened[-1]]:
                opened.pop()
                if not opened:
                    return other, index
            elif name == ".else" and opened[-1] == ".if":
                if len(opened) == 1:
                    if other is not None:
                        raise self._error(line, line.tokens[0], "a second .else")
                    other = index
            elif name in _ENDS:
                raise self._error(
                    line, line.tokens[0], f"{name} closes nothing inside {opened[-1]}"
                )
        allowed = " or ".join(_CLOSERS[opened[0]])
        raise self._error(
            self._lines[at], self._lines[at].tokens[0], f"{opened[0]} without {allowed}"
        )

    def _for(self, at: int) -> int:
        line = self._lines[at]
        if len(line.tokens) != 4 or not _NAME.fullmatch(line.tokens[1].text):
            raise self._error(line, line.tokens[0], "write .for name first last")
        name = line.tokens[1]
        self._check_name(line, name, name.text)
        first, last = (self._evaluate(line, token) for token in line.tokens[2:])
        _, end = self._closers(at)
        outer = self._symbols.get(name.text)
        for value in range(first, last + 1):
            self._turns += 1
            if self._turns > _MOST_TURNS:
                raise self._error(line, line.tokens[0], f"more than {_MOST_TURNS} turns of .for")
            self._symbols[name.text] = value
            self._block(at + 1, end)
        if outer is None:
            self._symbols.pop(name.text, None)
        else:
            self._symbols[name.text] = outer
        return end + 1

    def _if(self, at: int) -> int:
        line = self._lines[at]
        if len(line.tokens) != 2:
            raise self._error(line, line.tokens[0], "write .if value")
        taken = self._evaluate(line, line.tokens[1]) != 0
        other, end = self._closers(at)
        if taken:
            self._block(at + 1, end if other is None else other)
        elif other is not None:
            self._block(other + 1, end)
        return end + 1

    def _check_name(self, line: _Line, at: Token, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise self._error(line, at, f"{name!r} is no name")
        if name in self._outside:
            raise self._error(line, at, f"symbol {name} is given from outside")

    def _evaluate(self, line: _Line, token: Token, skip: int = 0) -> int:
        try:
            return evaluate(token.text[skip:], self._symbols)
        except OperandError as error:
            raise self._error(line, token.column + skip + error.column, str(error)) from None

    def _line(self, line: _Line) -> None:
        first = line.tokens[0]
        if LABEL.fullmatch(first.text):
            self._label(line, first)
            line = _Line(line.number, line.tokens[1:])
            if not line.tokens:
                return
            first = line.tokens[0]
        if first.text == ".equ":
            for token in line.tokens[1:]:
                name, equals, _ = token.text.partition("=")
                if not equals:
                    raise self._error(line, token, "write .equ name=value")
                self._check_name(line, token, name)
                self._symbols[name] = self._evaluate(line, token, len(name) + 1)
        elif first.text == ".word":
            self._raw(line)
        elif first.text.startswith("."):
            allowed = ", ".join(_DIRECTIVES)
            raise self._error(line, first, f"unknown directive {first.text}: allowed are {allowed}")
        else:
            self._instruction(line)

    def _label(self, line: _Line, token: Token) -> None:
        name = token.text[:-1]
        self._check_name(line, token, name)
        if name in self._labels:
            raise self._error(line, token, f"label {name} is defined twice")
        self._labels[name] = self._symbols[name] = len(self._words)

    def _raw(self, line: _Line) -> None:
        if len(line.tokens) != 2:
            raise self._error(line, line.tokens[0], "write .word number")
        text = line.tokens[1].text
        try:
            value = int(text, 0)
        except ValueError:
            value = -1
        if not 0 <= value < 1 << 128:
            raise self._error(line, line.tokens[1], f"{text}: allowed are numbers of 128 bits")
        self._emit(line, Instruction.from_int(value))

    def _instruction(self, line: _Line) -> None:
        first = line.tokens[0]
        try:
            prefix, word = encode(line.tokens, self._symbols)
        except TokenError as error:
            raise self._error(line, error.column, str(error)) from None
        refusal = check(word, prefix, self._limits)
        if refusal is not None:
            code, message = refusal
            raise self._error(line, first, f"{first.text} is illegal ({code.name}): {message}")
        if prefix is not None:
            self._emit(line, prefix)
        self._emit(line, word)

    def _emit(self, line: _Line, word: Instruction) -> None:
        if len(self._words) >= _MOST_WORDS:
            raise self._error(line, 1, f"the program is longer than {_MOST_WORDS} words")
        self._words.append(word)
        self._from.append(line.number)
