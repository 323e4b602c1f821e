# SPDX-License-Identifier: Apache-2.0
"""The race detector: accesses to a common word whose order no barrier decides.

For an older instruction A and a younger B that touch a common 16-byte word, on the same engine
read-after-write needs a barrier; on different engines read-after-write, write-after-read and
write-after-write do. Engines complete in order, so what a barrier proves is one number per engine:
how many of its instructions are complete; ARGMAX, which waits for gemm, proves the same. Per word
and engine the youngest reader and writer are kept; if they are complete, so are all older ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from golden.machine.decode import EngineOperation
from golden.machine.operands import Matrix, Operand, Scattered, WordIndex
from golden.machine.operations import Barrier
from golden.machine.state import Race
from golden.machine.transfers import StoreToken
from spec.isa import WORD, Engine

ENGINES = 6
NEVER = -1
MAX_REPORTS_PER_ACCESS = 4

_Ages = npt.NDArray[np.int32]


class _Space:
    """The youngest reader and writer of every word of one address space, per engine."""

    def __init__(self, name: str, words: int) -> None:
        """Start with no access noted."""
        self.name = name
        self.words = words
        self.readers: dict[Engine, _Ages] = {}
        self.writers: dict[Engine, _Ages] = {}

    def note(self, table: dict[Engine, _Ages], engine: Engine, words: WordIndex, age: int) -> None:
        """Record that instruction number `age` of an engine has accessed the words."""
        if engine not in table:
            table[engine] = np.full(self.words, NEVER, np.int32)
        table[engine][words] = age


class RaceDetector:
    """Collects the accesses of a program in order and reports races.

    Args:
        sram_words, memory_words: sizes of the two spaces in 16-byte words.
        program, stream: memory areas that are read while the program runs.

    """

    def __init__(
        self, sram_words: int, memory_words: int, program: Matrix, stream: Matrix | None
    ) -> None:
        """Start with nothing issued."""
        self.races: list[Race] = []
        self._sram = _Space("sram", sram_words)
        self._memory = _Space("memory", memory_words)
        self._fetched = {"PROGRAM": program}
        if stream is not None:
            self._fetched["STREAM"] = stream
        self._issued: dict[Engine, list[int]] = {Engine(e): [] for e in range(ENGINES)}
        self._complete: dict[Engine, int] = {Engine(e): 0 for e in range(ENGINES)}

    def barrier(self, barrier: Barrier) -> None:
        """Note that all but the youngest `pending` instructions of the engines are complete."""
        for engine in barrier.engines:
            proven = len(self._issued[engine]) - barrier.pending
            self._complete[engine] = max(self._complete[engine], proven)

    def add(self, instr: int, operation: EngineOperation) -> None:
        """Check one instruction against all older ones and record its accesses."""
        reads = _union([operand.words() for operand in operation.reads])
        writes = _union([operand.words() for operand in operation.writes])
        self._check_self(instr, operation)
        if isinstance(operation, StoreToken):
            self.barrier(Barrier((Engine.GEMM,), 0))
        self._access(self._sram, instr, operation.engine, reads, writes)
        stored = _union([operand.words() for operand in operation.memory_writes])
        loaded = _union([operand.words() for operand in operation.memory_reads])
        if stored.size:
            self._check_store(instr, operation, stored)
        self._access(self._memory, instr, operation.engine, loaded, stored)
        self._issued[operation.engine].append(instr)

    def _access(
        self, space: _Space, instr: int, engine: Engine, reads: WordIndex, writes: WordIndex
    ) -> None:
        """Check and record the reads and writes of one instruction in one space."""
        self._compare(space, "RAW", space.writers, instr, reads, None)
        self._compare(space, "WAW", space.writers, instr, writes, engine)
        self._compare(space, "WAR", space.readers, instr, writes, engine)
        age = len(self._issued[engine])
        if reads.size:
            space.note(space.readers, engine, reads, age)
        if writes.size:
            space.note(space.writers, engine, writes, age)

    def _compare(
        self,
        space: _Space,
        kind: str,
        table: dict[Engine, _Ages],
        instr: int,
        words: WordIndex,
        safe: Engine | None,
    ) -> None:
        """Report older accesses in `table` to `words` that are not known to be complete."""
        for engine, ages in table.items():
            issued = self._issued[engine]
            if engine == safe or not words.size or self._complete[engine] >= len(issued):
                continue
            found = ages[words]
            still_open = found[found >= self._complete[engine]]
            if not still_open.size:
                continue
            for age in np.unique(still_open)[:MAX_REPORTS_PER_ACCESS].tolist():
                first = int(words[found == age].min())
                self.races.append(Race(kind, issued[age], instr, space.name, first * WORD))

    def _check_self(self, instr: int, operation: EngineOperation) -> None:
        """Report outputs that meet inputs, or outputs, in a way that is not the in-place form."""
        written = [operand.words() for operand in operation.writes]
        common: list[WordIndex] = []
        for index, (operand, words) in enumerate(zip(operation.writes, written, strict=True)):
            if operand.overlaps_itself:
                common.append(words)
            for other in operation.reads:
                allowed = index == 0 and other in operation.in_place
                if allowed and _coincide(operand, other):
                    continue
                if operand.address < other.end and other.address < operand.end:
                    common.append(np.intersect1d(words, other.words()))
            common += [np.intersect1d(words, later) for later in written[index + 1 :]]
        hits = [words for words in common if words.size]
        if hits:
            first = min(int(words.min()) for words in hits)
            self.races.append(Race("SELF", instr, instr, "sram", first * WORD))

    def _check_store(self, instr: int, operation: EngineOperation, stored: WordIndex) -> None:
        """Report a store that overlaps itself, or meets the program or the stream."""
        for target in operation.memory_writes:
            if not isinstance(target, Scattered) and target.overlaps_itself:
                self.races.append(Race("SELF", instr, instr, "memory", target.address))
        addresses = stored * WORD
        for kind, area in self._fetched.items():
            hit = addresses[(addresses >= area.address) & (addresses < area.end)]
            if hit.size:
                self.races.append(Race(kind, instr, instr, "memory", int(hit.min())))


def _coincide(written: Operand, other: Operand) -> bool:
    """Whether two operands are one place in the sense of an in-place operation."""
    return isinstance(written, Matrix) and isinstance(other, Matrix) and written.coincides(other)


def _union(parts: list[WordIndex]) -> WordIndex:
    """Return the concatenation of word lists."""
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)
