# SPDX-License-Identifier: Apache-2.0
"""Which barriers an instruction needs: the ordering rules of docs/reference/isa.md, word by word.

The board keeps, per engine, what the instructions touch that no barrier has waited for yet. A set
of SRAM words is a Python integer with one bit per word.
"""

from dataclasses import dataclass, field
from functools import lru_cache

from spec.isa.generated import Engine, Flag, Opcode
from spec.isa.instruction import Instruction
from spec.isa.operands import WORD, Operand, Prefix, has_flag, is_dynamic, sram_operands, up

BARRIER_MOST = 4
"""The largest n of a BARRIER."""
ENGINES = tuple(Engine)[: Engine.SEQ]


@dataclass(frozen=True, slots=True)
class Footprint:
    """SRAM words that an instruction touches.

    Attributes:
        reads, writes: words, except those of `tiles`.
        tiles: words of staging tiles that KV_READ or KV_APPEND writes. Two instructions that write
            the same tiles write different rows of them: earlier positions and appended ones.

    """

    reads: int = 0
    writes: int = 0
    tiles: int = 0

    def __or__(self, other: "Footprint") -> "Footprint":
        """Return what both touch."""
        return Footprint(
            self.reads | other.reads, self.writes | other.writes, self.tiles | other.tiles
        )

    def before(self, younger: "Footprint", *, same_engine: bool) -> bool:
        """Whether this instruction must be complete before a younger one may be dispatched."""
        written = self.writes | self.tiles
        if same_engine:
            return bool(written & younger.reads)
        overwritten = self.writes & younger.tiles | written & younger.writes
        return bool(
            written & younger.reads | self.reads & (younger.writes | younger.tiles) | overwritten
        )


@lru_cache(maxsize=4096)
def words(address: int, rows: int, row_bytes: int, pitch: int) -> int:
    """Return the set of words of a matrix; address, row_bytes and pitch in bytes."""
    row = (1 << up(row_bytes) // WORD) - 1
    step = pitch // WORD
    result, done = row, 1
    while done < rows:
        more = min(done, rows - done)
        result |= (result & ((1 << (more - 1) * step + row.bit_length()) - 1)) << done * step
        done += more
    return result << address // WORD


def block_words(address: int, size: int) -> int:
    """Return the set of words of contiguous bytes."""
    return words(address, 1, size, up(size))


def _operand_words(operand: Operand) -> int:
    return words(operand.address, operand.rows, operand.row_bytes, operand.pitch)


def footprint(word: Instruction, prefix: Instruction | None, edge: int) -> Footprint:
    """Return what an instruction touches, but for KV_APPEND's staging tiles: they depend on POS."""
    reads = writes = 0
    for operand in sram_operands(word, Prefix.of(prefix), edge):
        touched = _operand_words(operand)
        source = word.opcode == Opcode.DMA_STORE or not operand.writes
        reads |= touched if source else 0
        writes |= 0 if source else touched
    if word.opcode == Opcode.KV_READ:
        return Footprint(reads, 0, writes)
    return Footprint(reads, writes)


def stages(word: Instruction) -> bool:
    """Whether an instruction is a KV_APPEND that also writes staging tiles."""
    return word.opcode == Opcode.KV_APPEND and has_flag(word, Flag.STAGE)


def dropped_to(word: Instruction, prefix: Instruction | None) -> int:
    """Return the largest LEN for which an instruction is dropped, as a dimension of it is zero.

    A dropped instruction does not count where a BARRIER counts unfinished ones. 0 is never.
    """
    fields = [word.m, word.n]
    if word.opcode == Opcode.KV_READ:
        fields = [word.k]
    elif word.opcode not in (Opcode.GEMM, Opcode.SOFTMAX):
        fields = []
    base = Prefix.of(prefix).base
    return max((base + (field >> 11 & 1) for field in fields if is_dynamic(field)), default=0)


@dataclass(frozen=True, slots=True)
class _Open:
    """An instruction that may be under way.

    Attributes:
        number: on its engine.
        touched: what it touches.
        dropped_to: the largest LEN for which it is dropped.
        window: the register WINDOW, which LEN depends on.
    """

    number: int
    touched: Footprint
    dropped_to: int
    window: int


def _as_wide(window: int, other: int) -> bool:
    """Whether a window is at least as wide as another one; 0 is the widest."""
    return not window or 0 < other <= window


@dataclass
class Board:
    """The instructions that may still be under way, by engine, oldest first.

    `window` is the register WINDOW of what is issued next.
    """

    window: int = 0
    open: dict[Engine, list[_Open]] = field(default_factory=lambda: {e: [] for e in ENGINES})
    issued: dict[Engine, int] = field(default_factory=lambda: dict.fromkeys(ENGINES, 0))

    def needed(self, engine: Engine, touched: Footprint) -> dict[Engine, int]:
        """Return {engine: n} of the barriers that an instruction of `engine` must wait for."""
        waits = {}
        for other, queue in self.open.items():
            conflicts = [
                self._younger(queue, at)
                for at, older in enumerate(queue)
                if older.touched.before(touched, same_engine=other == engine)
            ]
            if conflicts:
                waits[other] = min(*conflicts, BARRIER_MOST)
        return waits

    @staticmethod
    def _younger(queue: list[_Open], at: int) -> int:
        """Return how many younger ones are unfinished for sure if number `at` of a queue is.

        It was not dropped: LEN is larger than its limit, and no smaller in a wider window.
        """
        limit, window = queue[at].dropped_to, queue[at].window
        return sum(
            not one.dropped_to or (one.dropped_to <= limit and _as_wide(one.window, window))
            for one in queue[at + 1 :]
        )

    def issue(self, engine: Engine, touched: Footprint, dropped_to: int = 0) -> None:
        """Note an instruction."""
        self.open[engine].append(_Open(self.issued[engine], touched, dropped_to, self.window))
        self.issued[engine] += 1

    def wait(self, engine: Engine, n: int = 0) -> None:
        """Note that at most n instructions of an engine are still under way."""
        queue = self.open[engine]
        self.open[engine] = [one for at, one in enumerate(queue) if self._younger(queue, at) < n]

    def busy(self, engine: Engine) -> bool:
        """Whether an instruction that touches anything here may be under way on an engine."""
        return any(one.touched != Footprint() for one in self.open[engine])

    def complete(self, engine: Engine) -> int:
        """Return how many of the first instructions of an engine are known to be complete."""
        queue = self.open[engine]
        return queue[0].number if queue else self.issued[engine]
