# SPDX-License-Identifier: Apache-2.0
"""Collects instructions, puts the barriers between them, and follows the parameter stream."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from npu.asm.encode import TokenError, encode, tokens
from npu.asm.program import Program
from npu.compiler.errors import CompileError
from npu.compiler.hazards import ENGINES, Board, Footprint, dropped_to, footprint, stages
from npu.compiler.tensor_map import TensorRef
from npu.image import StreamShare
from spec.isa.generated import OPCODES, Engine, Opcode
from spec.isa.instruction import Instruction
from spec.isa.legality import check
from spec.isa.operands import Limits, share_bytes

Operand = int | str | None


@dataclass(frozen=True, slots=True)
class _Encoded:
    """What follows from the text of an instruction and the chip."""

    prefix: Instruction | None
    word: Instruction
    touched: Footprint
    dropped_to: int
    share_bytes: int


@lru_cache(maxsize=1 << 15)
def _encoded(line: str, limits: Limits) -> _Encoded:
    try:
        prefix, word = encode(tokens(line), {})
    except TokenError as error:
        raise CompileError(f"{line}: {error}") from None
    refusal = check(word, prefix, limits)
    if refusal is not None:
        raise CompileError(f"{line}: {refusal[0].name}: {refusal[1]}")
    touched = footprint(word, prefix, limits.edge)
    drop = dropped_to(word, prefix)
    return _Encoded(prefix, word, touched, drop, share_bytes(word, limits.edge))


class ProgramBuilder:
    """Emits instructions in the syntax of the assembler, each checked against the chip.

    Before an instruction that depends on older ones it emits the barriers which that needs and no
    others. Within one program every share is taken where the stream stands.
    """

    def __init__(self, limits: Limits, window: int = 0) -> None:
        """Start an empty program for a chip whose register WINDOW is given."""
        self.limits = limits
        self.board = Board(window)
        self.tensors: list[TensorRef] = []
        self.shares: list[StreamShare] = []
        self._at = 0
        self._words: list[Instruction] = []
        self._lines: list[int] = []
        self._text: list[str] = []

    @property
    def size(self) -> int:
        """Words so far: the index of the next one."""
        return len(self._words)

    def emit(
        self,
        mnemonic: str,
        *switches: str,
        share: StreamShare | None = None,
        also: Footprint | None = None,
        more: Mapping[str, Operand] | None = None,
        **operands: Operand,
    ) -> int:
        """Add an instruction (with a prefix word if it needs one) and return its word index.

        Operands, those of `more` included, that are None are left out. `share` is its piece of the
        stream. `also` is what it touches besides its static operands.
        Raises CompileError if the chip refuses the instruction, or if the share has the wrong
        length or place.
        """
        given = operands | dict(more or {})
        parts = [mnemonic]
        parts += [f"{key}={_text(key, v)}" for key, v in given.items() if v is not None]
        line = " ".join([*parts, *switches])
        encoded = _encoded(line, self.limits)
        if stages(encoded.word) and (also is None or not also.tiles):
            raise CompileError(f"{line}: the staging tiles must be given")
        self._take(line, encoded.share_bytes, share)
        engine = Engine(OPCODES[Opcode(encoded.word.opcode)].engine)
        if engine in ENGINES:
            touched = encoded.touched if also is None else encoded.touched | also
            self._order(engine, touched)
            self.board.issue(engine, touched, encoded.dropped_to)
        return self._add(line, encoded)

    def _add(self, line: str, encoded: _Encoded) -> int:
        self._text.append(line)
        for item in (encoded.prefix, encoded.word):
            if item is not None:
                self._words.append(item)
                self._lines.append(len(self._text))
        return len(self._words) - 1

    def _order(self, engine: Engine, touched: Footprint) -> None:
        """Emit the barriers that an instruction needs, engines of equal n in one."""
        waits = self.board.needed(engine, touched)
        for n in sorted(set(waits.values()), reverse=True):
            self.barrier(*(other for other, most in waits.items() if most == n), n=n)

    def barrier(self, *engines: Engine, n: int = 0) -> None:
        """Add a BARRIER: at most n instructions of each engine may still be under way."""
        names = " ".join(engine.name.lower() for engine in engines)
        line = f"BARRIER n={n} {names}" if n else f"BARRIER {names}"
        self._add(line, _encoded(line, self.limits))
        for engine in engines:
            self.board.wait(engine, n)

    def fence(self, *engines: Engine) -> None:
        """Wait for all that may be under way on the engines, on all of them if none is named.

        The store of ARGMAX is not waited for: nothing reads what it writes.
        """
        busy = [engine for engine in engines or ENGINES if self.board.busy(engine)]
        if busy:
            self.barrier(*busy)

    def set(self, register: str, value: int) -> None:
        """Add a SET."""
        self.emit(f"SET {register}", v=value)
        if register == "WINDOW":
            self.board.window = value

    def advance(self, register: str, count: int) -> None:
        """Add a SET that adds to a register; a negative count subtracts."""
        self.emit(f"SET {register}", "add", v=count % (1 << 32))

    def argmax(self, base: int) -> int:
        """Add an ARGMAX; it waits for gemm by itself."""
        self.board.wait(Engine.GEMM)
        return self.emit("ARGMAX", b=base)

    def end(self) -> int:
        """Add an END."""
        return self.emit("END")

    def loop(self, target: int | None) -> int:
        """Add a LOOP to a word at which nothing may be under way, and an END; return the target.

        None is the word behind the END.
        """
        self.fence()
        target = self.size + 2 if target is None else target
        self.emit("LOOP", to=target)
        self.end()
        self._at = 0
        return target

    def rewind(self) -> None:
        """Take the next share from the beginning of the stream."""
        self.seek(0)

    def seek(self, offset: int) -> None:
        """Take the next share at an offset of the stream, a multiple of 64."""
        self.set("STREAM", offset)
        self._at = offset

    @property
    def stream_offset(self) -> int:
        """Where the stream stands."""
        return self._at

    def _take(self, line: str, needed: int, share: StreamShare | None) -> None:
        given = 0 if share is None else share.bytes
        if needed != given:
            raise CompileError(f"{line}: takes {needed} bytes of the stream, given {given}")
        if share is not None:
            if share.offset != self._at:
                raise CompileError(
                    f"{line}: the share {share.name} is at {share.offset} of the stream, which "
                    f"stands at {self._at}"
                )
            self.shares.append(share)
            self._at += share.bytes

    def comment(self, text: str) -> None:
        """Add a comment line to the text."""
        self._text.append(f"; {text}")

    def tensor(self, ref: TensorRef) -> None:
        """Note where a tensor or a piece of it is written."""
        self.tensors.append(ref)

    def program(self) -> tuple[Program, str]:
        """Return the program and its text."""
        text = "".join(line + "\n" for line in self._text)
        return Program(self._words, self._lines), text


_ADDRESSES = ("dst", "src0", "src1", "hp", "cp", "ap", "bp", "d", "dp", "sums", "off", "pitch")


def _text(key: str, value: Operand) -> str:
    return hex(value) if isinstance(value, int) and key in _ADDRESSES else str(value)
