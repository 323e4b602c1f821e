# SPDX-License-Identifier: Apache-2.0
"""An instruction on memory, bound to its arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from golden.command.memory import ADDRESS_LIMIT
from golden.coprocessor import decode, operations
from golden.coprocessor.access import Arrays
from golden.coprocessor.faults import Uncertain
from golden.coprocessor.memory import CoprocessorMemory
from golden.coprocessor.operations import (
    COUNT_IN_RS2,
    MAPS,
    REDUCTIONS,
    SINGLES,
    Elements,
    Map,
    Reduction,
)
from golden.coprocessor.state import CopState
from spec.isa.cop_generated import CopOp

_NOTHING = np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True)
class CopInstruction:
    """A word with the contents of its registers.

    Attributes:
        word: the instruction.
        rs1: a register, as bit pattern.
        rs2: a register, as bit pattern.
        rs3: x[rd].

    """

    word: int
    rs1: int = 0
    rs2: int = 0
    rs3: int = 0


@dataclass(frozen=True)
class Work:
    """What an instruction on memory does.

    Attributes:
        arrays: its operands in memory.
        kind: what it makes of them.
        state: accumulators and vector registers.

    """

    arrays: Arrays
    kind: Reduction | Map
    state: CopState

    @classmethod
    def of(
        cls, op: CopOp, given: CopInstruction, memory: CoprocessorMemory, state: CopState
    ) -> Work:
        """Return the work of an instruction that is not a scalar one."""
        if op in (CopOp.LDVEC, CopOp.STVEC):
            return cls._vector_register(op, given, memory, state)
        if op in SINGLES:
            return cls(Arrays(memory, 1, SINGLES[op].size, (given.rs1,)), SINGLES[op], state)
        kind: Reduction | Map = MAPS[op] if op in MAPS else REDUCTIONS[op]
        count = given.rs2 if op in COUNT_IN_RS2 else given.rs3
        bases = (given.rs1, given.rs2)[: kind.sources]
        destination = given.rs2 if op in MAPS else None
        return cls(Arrays(memory, count, kind.size, bases, destination), kind, state)

    @classmethod
    def _vector_register(
        cls, op: CopOp, given: CopInstruction, memory: CoprocessorMemory, state: CopState
    ) -> Work:
        """Return the load or store of a vector register."""
        parts = decode.fields(op, given.word)
        address = (given.rs1 + parts.offset) % ADDRESS_LIMIT
        if op == CopOp.LDVEC:
            load = partial(operations.load_vector, parts.rd)
            return cls(Arrays(memory, 1, 4, (address,)), Reduction(4, load), state)
        store = partial(operations.stored_vector, parts.rs2)
        return cls(Arrays(memory, 1, 4, (), address), Map(4, store, 0), state)

    @property
    def bytes(self) -> int:
        """Size of one operand."""
        return self.arrays.count * self.arrays.size

    def finish(self) -> int | None:
        """Do all of it and return the result, None if there is none."""
        if isinstance(self.kind, Map):
            self.arrays.write(self._elements, 0, self.arrays.count)
            return None
        given = [*self.arrays.read(), _NOTHING, _NOTHING]
        return self.kind.apply(self.state, given[0], given[1])

    def stop(self, index: int, end: int) -> Uncertain | None:
        """Do what is done when the access to element `index` fails.

        Args:
            index: elements before it are written.
            end: those from `index` to before it may be written; None is if it is `index`.

        """
        if not isinstance(self.kind, Map):
            return None
        self.arrays.write(self._elements, 0, index)
        return self.arrays.write_uncertain(self._elements, index, end) if end > index else None

    def _elements(self, *given: Elements) -> Elements:
        """Return elements of the destination from those of the sources."""
        assert isinstance(self.kind, Map)
        padded = [*given, _NOTHING, _NOTHING]
        return self.kind.apply(self.state, padded[0], padded[1])
