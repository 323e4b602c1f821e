# SPDX-License-Identifier: Apache-2.0
"""Collects instructions, their shares of the stream and the tensors they produce."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from npu.asm.encode import TokenError, encode, tokens
from npu.asm.program import Program
from npu.compiler.pack import pack
from npu.compiler.stream import Share, Stream
from npu.compiler.tensors import TensorRef
from npu.isa.instruction import Instruction
from npu.isa.legality import check
from npu.isa.operands import Limits, share_bytes

Operand = int | str | None


class CompileError(ValueError):
    """A model that does not fit the chip, or a request that makes no sense."""


@dataclass(frozen=True)
class CompiledBlock:
    """A program with its stream and the map of its tensors.

    Attributes:
        program: ends with END; reads its input from BASE0 and writes its output to BASE1.
        text: the program as text; it assembles to the same words.
        stream: the parameter stream, a multiple of 64 bytes.
        shares: the stream's pieces in order.
        tensors: where each tensor is written.
        sram_bytes: bytes of SRAM that the program uses, from address 0.
        input_bytes, output_bytes: what lies at BASE0 and BASE1.
        edge: tile edge of the chip that it is made for.

    """

    program: Program
    text: str
    stream: bytes
    shares: tuple[Share, ...]
    tensors: tuple[TensorRef, ...]
    sram_bytes: int
    input_bytes: int
    output_bytes: int
    edge: int = 16

    def packed(self, info: Mapping[str, Any] | None = None) -> bytes:
        """Return program and stream as one packed file; `info` joins its JSON."""
        sections = {"program": self.program.image()}
        return pack(self.stream, self.shares, edge=self.edge, sections=sections, info=info)


class ProgramBuilder:
    """Emits instructions in the syntax of the assembler, each checked against the chip."""

    def __init__(self, limits: Limits) -> None:
        """Start an empty program for a chip."""
        self.limits = limits
        self.stream = Stream()
        self.tensors: list[TensorRef] = []
        self._words: list[Instruction] = []
        self._lines: list[int] = []
        self._text: list[str] = []

    def emit(
        self,
        mnemonic: str,
        *switches: str,
        share: tuple[str, bytes] | None = None,
        **operands: Operand,
    ) -> int:
        """Add an instruction (with a prefix word if it needs one) and return its word index.

        Operands that are None are left out. `share` is (name, bytes) of its piece of the stream.
        Raises CompileError if the chip refuses the instruction or the share has the wrong length.
        """
        parts = [mnemonic]
        parts += [f"{key}={_text(key, v)}" for key, v in operands.items() if v is not None]
        line = " ".join([*parts, *switches])
        try:
            prefix, word = encode(tokens(line), {})
        except TokenError as error:
            raise CompileError(f"{line}: {error}") from None
        refusal = check(word, prefix, self.limits)
        if refusal is not None:
            raise CompileError(f"{line}: {refusal[0].name}: {refusal[1]}")
        self._share(line, word, share)
        self._text.append(line)
        for item in (prefix, word):
            if item is not None:
                self._words.append(item)
                self._lines.append(len(self._text))
        return len(self._words) - 1

    def _share(self, line: str, word: Instruction, share: tuple[str, bytes] | None) -> None:
        needed = share_bytes(word, self.limits.edge)
        given = 0 if share is None else len(share[1])
        if needed != given:
            raise CompileError(f"{line}: takes {needed} bytes of the stream, given {given}")
        if share is not None:
            self.stream.append(share[0], word.opcode, share[1])

    def comment(self, text: str) -> None:
        """Add a comment line to the text."""
        self._text.append(f"; {text}")

    def barrier(self, *engines: str, n: int = 0) -> None:
        """Add a BARRIER on the named engines."""
        self.emit("BARRIER", *engines, n=n or None)

    def tensor(self, ref: TensorRef) -> None:
        """Note where a tensor or a piece of it is written."""
        self.tensors.append(ref)

    def finish(self, *, sram_bytes: int, input_bytes: int, output_bytes: int) -> CompiledBlock:
        """Add END and return what was built."""
        self.emit("END")
        return CompiledBlock(
            program=Program(self._words, self._lines),
            text="".join(line + "\n" for line in self._text),
            stream=self.stream.image(),
            shares=tuple(self.stream.shares),
            tensors=tuple(self.tensors),
            sram_bytes=sram_bytes,
            input_bytes=input_bytes,
            output_bytes=output_bytes,
            edge=self.limits.edge,
        )


_ADDRESSES = ("dst", "src0", "src1", "cp", "ap", "bp", "d", "dp", "sums", "off", "pitch")


def _text(key: str, value: Operand) -> str:
    return hex(value) if isinstance(value, int) and key in _ADDRESSES else str(value)
