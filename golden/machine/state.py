# SPDX-License-Identifier: Apache-2.0
"""Configuration, errors and results of the instruction-level model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spec.isa import WORD, Engine, ErrorCode, ErrorReport

if TYPE_CHECKING:
    from golden.machine.decode import Operation

ARRAY_DIMS = (4, 8, 16, 32)
BASE_REGISTERS = 8
ADDRESS_LIMIT = 1 << 32
CACHE_GRANULE = 256
"""The cache begins at, and its strides are, multiples of this many bytes."""

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class ChipConfig:
    """The parameters of a chip that programs can see.

    Attributes:
        array_dim: edge of the systolic array; tiles have the edge max(16, array_dim).
        sram_bytes: size of the on-chip SRAM, a multiple of 16.
        acc_rows: rows that one GEMM may have, half of it with a 16-bit A.
        norm_max: longest row of a norm.
        narrow_formats: whether weights in the stream may be narrower than int8.

    """

    array_dim: int = 16
    sram_bytes: int = 262144
    acc_rows: int = 128
    norm_max: int = 8192
    narrow_formats: bool = True

    def __post_init__(self) -> None:
        """Refuse a chip that cannot be built."""
        if self.array_dim not in ARRAY_DIMS:
            raise ValueError(f"ChipConfig.array_dim: given {self.array_dim}, allowed {ARRAY_DIMS}")
        for name, multiple in (("sram_bytes", WORD), ("acc_rows", 2), ("norm_max", 1)):
            value = getattr(self, name)
            if value < multiple or value % multiple:
                raise ValueError(
                    f"ChipConfig.{name}: given {value}, allowed multiples of {multiple} above 0"
                )

    @property
    def tile(self) -> int:
        """E, the edge of a weight tile."""
        return max(16, self.array_dim)

    @property
    def depthwise(self) -> bool:
        """Whether it has the depthwise GEMM: not where a tile is larger than the array."""
        return self.array_dim == self.tile


@dataclass(frozen=True, slots=True, eq=False)
class SramWrite:
    """Words that one instruction wrote.

    Attributes:
        instr: index of the instruction word.
        address: address of the first word, in words.
        data: (n, 16) uint8, the final contents of n consecutive words.

    """

    instr: int
    address: int
    data: Bytes


@dataclass(frozen=True, slots=True, eq=False)
class MemoryWrite:
    """Words of memory that one instruction has written to, in part or as a whole.

    Attributes:
        instr: index of the instruction word.
        words: (n,) int64, addresses in words.
        data: (n, 16) uint8, what they hold when it is done.

    """

    instr: int
    words: npt.NDArray[np.int64]
    data: Bytes


@dataclass(frozen=True, slots=True)
class Race:
    """Two accesses to one word whose order the program leaves open.

    Attributes:
        kind: "RAW", "WAR", "WAW"; "SELF" for an instruction whose output meets its own input or
            output in another way than the allowed in-place form; "PROGRAM" or "STREAM" for a store
            into the running program or its parameter stream.
        older, younger: instruction indices; equal for the last three kinds.
        space: "sram" or "memory".
        address: byte address of the first common word.

    """

    kind: str
    older: int
    younger: int
    space: str
    address: int

    def __str__(self) -> str:
        """Return the race as one line."""
        return (
            f"{self.kind} race in {self.space} at byte {self.address:#x}: "
            f"instruction {self.older}, then {self.younger} without the barrier between"
        )


@dataclass(frozen=True, slots=True, eq=False)
class RunResult:
    """What a run leaves behind besides memory and SRAM.

    Attributes:
        error: the first error, None after a clean END.
        sram_writes: every written word with its instruction, in program order.
        executed: dispatched words: END, SET and BARRIER counted, prefix and refused words not;
            every turn of a loop counts.
        macs: multiplications of 8 by 8 bits of all executed GEMMs, both passes of a 16-bit A.
        races: see `Race`; empty when the detector is off.
        stream_offset: where the next share would be taken.
        token, out_count, pos: TOKEN, OUTCNT and POS at the end.
        dispatched: index and decoded operation of every dispatched word, in order.
        memory_writes: what every instruction has left in the words of memory that it writes to.

    """

    error: ErrorReport | None
    sram_writes: list[SramWrite]
    executed: int
    macs: int
    races: list[Race]
    stream_offset: int
    token: int = 0
    out_count: int = 0
    pos: int = 0
    dispatched: list[tuple[int, Operation]] = field(default_factory=list)
    memory_writes: list[MemoryWrite] = field(default_factory=list)

    @property
    def stored(self) -> npt.NDArray[np.int64]:
        """The words of memory that it wrote to: (n,) int64 addresses, in words, ascending."""
        words = [write.words for write in self.memory_writes]
        return np.unique(np.concatenate([np.zeros(0, np.int64), *words]))


class ProgramError(Exception):
    """An instruction that is refused or a bus access that fails."""

    def __init__(self, code: ErrorCode, address: int = 0, engine: Engine = Engine.SEQ) -> None:
        """Keep what the error report will say."""
        super().__init__(f"{code.name} at address {address:#x}, engine {engine.name}")
        self.code = code
        self.address = address
        self.engine = engine
