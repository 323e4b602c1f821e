# SPDX-License-Identifier: Apache-2.0
"""Decoded instructions: what each reads, writes and computes, with every address resolved.

An operation is the result of `golden.machine.decode`; it is legal, and its SRAM operands lie inside
the SRAM. `share` is the size in bytes of its part of the stream, 0 if it takes none.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from golden.gemm import Combine
from golden.machine.operands import Matrix, Operand, Tiles
from npu.isa import Engine, VecOp


class AType(IntEnum):
    """Element type of a GEMM's A."""

    INT8 = 0
    UINT8 = 1
    INT16 = 2
    UINT16 = 3

    @property
    def bytes(self) -> int:
        """Bytes of an element, which is also the number of passes."""
        return 2 if self >= AType.INT16 else 1


class QForm(IntEnum):
    """Where a GEMM's requantisation factors come from; SCALE is the MODE-clear instruction."""

    PREFIX = 0
    TENSOR = 1
    CHANNEL = 2
    ROW = 3
    SCALE = 4
    NONE = 5


@dataclass(frozen=True, slots=True)
class Nop:
    """NOP."""

    share: int = 0


@dataclass(frozen=True, slots=True)
class End:
    """END."""

    share: int = 0


@dataclass(frozen=True, slots=True)
class Barrier:
    """BARRIER: every engine of `engines` has at most `pending` unfinished older instructions."""

    engines: tuple[Engine, ...]
    pending: int
    share: int = 0


@dataclass(frozen=True, slots=True)
class SetRegister:
    """SET: a register number, a 32-bit value, and whether the value is added."""

    register: int
    value: int
    add: bool
    share: int = 0


@dataclass(frozen=True, slots=True)
class Dma:
    """DMA_LOAD (memory to sram) or DMA_STORE (sram to memory)."""

    engine: Engine
    memory: Matrix
    sram: Matrix
    share: int = 0

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return (self.sram,) if self.engine == Engine.ST else ()

    @property
    def writes(self) -> tuple[Matrix, ...]:
        """SRAM operands written."""
        return (self.sram,) if self.engine == Engine.LD else ()

    @property
    def in_place(self) -> tuple[Matrix, ...]:
        """Operands that the first written one may coincide with."""
        return ()


@dataclass(frozen=True, slots=True)
class Gemm:
    """GEMM. `b` None: from the stream. `scale`, `shift`: of PREFIX and SCALE, and of MUL."""

    m: int
    n: int
    k: int
    a_type: AType
    a: Matrix
    b: Operand | None
    transpose: bool
    c: Matrix
    d: Matrix | None
    sums: Matrix | None
    q: QForm
    bias: bool
    relu: bool
    table: bool
    accumulate: bool
    combine: Combine
    out_bits: int
    scale: int
    shift: int
    share: int
    engine: Engine = Engine.GEMM

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return tuple(x for x in (self.a, self.b, self.d, self.sums) if x is not None)

    @property
    def writes(self) -> tuple[Matrix, ...]:
        """SRAM operands written."""
        return (self.c,)

    @property
    def in_place(self) -> tuple[Matrix, ...]:
        """Operands that the first written one may coincide with."""
        return () if self.d is None else (self.d,)


@dataclass(frozen=True, slots=True)
class Vec:
    """VEC and GELU. `table` None with op TABLE: from the stream."""

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
        return tuple(x for x in (self.a, self.b, self.table) if x is not None)

    @property
    def writes(self) -> tuple[Matrix, ...]:
        """SRAM operands written."""
        return (self.c,)

    @property
    def in_place(self) -> tuple[Matrix, ...]:
        """Operands that the first written one may coincide with."""
        return (self.a,) if self.b is None else (self.a, self.b)


@dataclass(frozen=True, slots=True)
class Softmax:
    """SOFTMAX. `out`: 0 u8 probabilities, 1 u8 numerators, 2 u16 numerators; `n` columns."""

    n: int
    scores: Matrix
    numerators: Matrix
    sums: Matrix | None
    out: int
    causal: bool
    rows_per_head: int
    pos: int
    share: int = 0
    engine: Engine = Engine.SMX

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return (self.scores,)

    @property
    def writes(self) -> tuple[Matrix, ...]:
        """SRAM operands written."""
        return (self.numerators,) if self.sums is None else (self.numerators, self.sums)

    @property
    def in_place(self) -> tuple[Matrix, ...]:
        """Operands that the first written one may coincide with."""
        return (self.scores,) if self.out == 2 else ()


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """LAYERNORM. `params` None: from the stream."""

    x: Matrix
    c: Matrix
    params: Matrix | None
    n: int
    share: int
    engine: Engine = Engine.NRM

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return (self.x,) if self.params is None else (self.x, self.params)

    @property
    def writes(self) -> tuple[Matrix, ...]:
        """SRAM operands written."""
        return (self.c,)

    @property
    def in_place(self) -> tuple[Matrix, ...]:
        """Operands that the first written one may coincide with."""
        return ()


EngineOperation = Dma | Gemm | Vec | Softmax | LayerNorm
ControlOperation = Nop | End | Barrier | SetRegister
Operation = EngineOperation | ControlOperation

__all__ = [
    "AType",
    "Barrier",
    "ControlOperation",
    "Dma",
    "End",
    "EngineOperation",
    "Gemm",
    "LayerNorm",
    "Matrix",
    "Nop",
    "Operation",
    "QForm",
    "SetRegister",
    "Softmax",
    "Tiles",
    "Vec",
]
