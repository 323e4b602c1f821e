# SPDX-License-Identifier: Apache-2.0
"""Decoded instructions: what each reads, writes and computes, with every address resolved.

An operation is the result of `golden.machine.decode`; it is legal, and its SRAM operands lie inside
the SRAM. Dynamic dimensions are numbers here. `share` is the size in bytes of its part of the
stream, 0 if it takes none. What moves data is in `golden.machine.transfers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from golden.machine.operands import Lines, Matrix, MemoryOperand, Operand
from golden.softmax import Visibility
from spec.isa import DEPTHWISE_TAPS, Engine, GemmA, GemmOp, SetReg, SmxOut, VecOp, WeightFormat


class QForm(Enum):
    """Where a GEMM's requantisation factors come from; SCALE is the MODE-clear instruction."""

    PREFIX = "prefix"
    TENSOR = "tensor"
    CHANNEL = "channel"
    ROW = "row"
    SCALE = "scale"
    NONE = "none"


def element_bytes(a_type: GemmA) -> int:
    """Return the bytes of an element of A, which is also the number of passes."""
    return 2 if a_type in (GemmA.INT16, GemmA.UINT16) else 1


@dataclass(frozen=True, slots=True)
class Nop:
    """NOP."""

    share: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """END."""

    share: int = 0


@dataclass(frozen=True, slots=True)
class Dropped:
    """An instruction of which a dynamic dimension is zero: only its share is taken."""

    share: int


@dataclass(frozen=True, slots=True)
class Barrier:
    """BARRIER: every engine of `engines` has at most `pending` unfinished older instructions."""

    engines: tuple[Engine, ...]
    pending: int
    share: int = 0


@dataclass(frozen=True, slots=True)
class SetRegister:
    """SET: a register, a 32-bit value, and whether the value is added."""

    register: SetReg
    value: int
    add: bool
    share: int = 0


@dataclass(frozen=True, slots=True)
class Loop:
    """LOOP: the word that follows a taken jump, None if it is not taken."""

    target: int | None
    share: int = 0


class Accesses:
    """What an engine's instruction touches; by default nothing."""

    __slots__ = ()

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return ()

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return ()

    @property
    def in_place(self) -> tuple[Operand, ...]:
        """Operands that the first written one may coincide with."""
        return ()

    @property
    def memory_reads(self) -> tuple[MemoryOperand, ...]:
        """Memory operands read."""
        return ()

    @property
    def memory_writes(self) -> tuple[MemoryOperand, ...]:
        """Memory operands written."""
        return ()


def present(*operands: Operand | None) -> tuple[Operand, ...]:
    """Return the operands that are not None."""
    return tuple(operand for operand in operands if operand is not None)


@dataclass(frozen=True, slots=True)
class GemmOperation(Accesses):
    """GEMM. `b` None: from the stream, in the format `fmt`; `c` None: not written.

    `a`: of a depthwise GEMM `Lines` of M + 3 rows of N elements, else M rows of K elements, which
    `Lines` hold in pieces of whole words.
    `group`: rows of K that share a side byte, where the format has groups. `scale` and `shift` are
    those of PREFIX and SCALE, and of MUL.
    """

    m: int
    n: int
    k: int
    a_type: GemmA
    a: Matrix
    depthwise: bool
    b: Operand | None
    transpose: bool
    fmt: WeightFormat
    group: int
    c: Matrix | None
    d: Matrix | None
    sums: Matrix | None
    q: QForm
    bias: bool
    relu: bool
    table: bool
    accumulate: bool
    combine: GemmOp
    out_bits: int
    argmax: bool
    scale: int
    shift: int
    share: int
    engine: Engine = Engine.GEMM

    @property
    def macs(self) -> int:
        """Multiplications of 8 by 8 bits: a 16-bit A takes part in two passes."""
        if self.depthwise:
            assert isinstance(self.a, Lines)
            return self.m * self.n * self.a.lines * DEPTHWISE_TAPS
        return self.m * self.n * self.k * element_bytes(self.a_type)

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return present(self.a, self.b, self.d, self.sums)

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return present(self.c)

    @property
    def in_place(self) -> tuple[Operand, ...]:
        """Operands that the first written one may coincide with."""
        return present(self.d)


@dataclass(frozen=True, slots=True)
class Vec(Accesses):
    """VEC, GELU and SILU. `table` None with op TABLE: from the stream."""

    op: VecOp
    a: Matrix
    b: Matrix | None
    c: Matrix
    table: Matrix | None
    low: int
    k: int
    shift: int
    share: int
    engine: Engine = Engine.VEC

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return present(self.a, self.b, self.table)

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return (self.c,)

    @property
    def in_place(self) -> tuple[Operand, ...]:
        """Operands that the first written one may coincide with."""
        return present(self.a, self.b)


@dataclass(frozen=True, slots=True)
class Softmax(Accesses):
    """SOFTMAX of `n` columns."""

    n: int
    scores: Matrix
    numerators: Matrix
    sums: Matrix | None
    out: SmxOut
    rule: Visibility
    share: int = 0
    engine: Engine = Engine.SMX

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return (self.scores,)

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return present(self.numerators, self.sums)

    @property
    def in_place(self) -> tuple[Operand, ...]:
        """Operands that the first written one may coincide with."""
        return (self.scores,) if self.out is SmxOut.NUMER16 else ()


@dataclass(frozen=True, slots=True)
class NormOperation(Accesses):
    """LAYERNORM and RMSNORM. `params` None: from the stream."""

    rms: bool
    x: Matrix
    c: Matrix
    params: Matrix | None
    n: int
    share: int
    engine: Engine = Engine.NRM

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return present(self.x, self.params)

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return (self.c,)


@dataclass(frozen=True, slots=True)
class Rope(Accesses):
    """ROPE: `heads` heads of `n` lanes per row; a row of `angles` per row of `a`."""

    n: int
    heads: int
    pairs: bool
    a: Matrix
    angles: Matrix
    c: Matrix
    share: int = 0
    engine: Engine = Engine.NRM

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return (self.a, self.angles)

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return (self.c,)

    @property
    def in_place(self) -> tuple[Operand, ...]:
        """Operands that the first written one may coincide with."""
        return (self.a,)


ControlOperation = Nop | End | Dropped | Barrier | SetRegister | Loop
