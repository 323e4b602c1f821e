# SPDX-License-Identifier: Apache-2.0
"""Decoded instructions of the load and the store engine; see `golden.machine.operations`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from golden.machine.operands import Matrix, MemoryOperand, Operand, Scattered, Tiles, block
from golden.machine.operations import Accesses, present
from golden.machine.state import ADDRESS_LIMIT, Bytes, ProgramError
from spec.isa import WORD, Engine, ErrorCode


@dataclass(frozen=True, slots=True)
class Load(Accesses):
    """DMA_LOAD, and EMBED of consecutive rows: memory to sram."""

    memory: Matrix
    sram: Matrix
    share: int = 0
    engine: Engine = Engine.LD

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return (self.sram,)

    @property
    def memory_reads(self) -> tuple[MemoryOperand, ...]:
        """Memory operands read."""
        return (self.memory,)


@dataclass(frozen=True, slots=True)
class DmaStore(Accesses):
    """DMA_STORE: sram to memory."""

    memory: Matrix
    sram: Matrix
    share: int = 0
    engine: Engine = Engine.ST

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return (self.sram,)

    @property
    def memory_writes(self) -> tuple[MemoryOperand, ...]:
        """Memory operands written."""
        return (self.memory,)


@dataclass(frozen=True, slots=True)
class Gather(Accesses):
    """EMBED by a list of row numbers in SRAM; the rows are known once `located`."""

    ids: Matrix
    base: int
    pitch: int
    sram: Matrix
    rows: Scattered | None = None
    share: int = 0
    engine: Engine = Engine.LD

    def located(self, sram: Bytes) -> Gather:
        """Return the operation with the addresses of its rows.

        Raises:
            ProgramError: BAD_ADDRESS of the load engine at the first row that begins off a multiple
                of 16 or ends past 2^32.

        """
        numbers = self.ids.read(sram, np.uint32)[0].astype(np.int64)
        addresses = self.base + numbers * self.pitch
        size = self.sram.row_bytes
        wrong = np.flatnonzero((addresses % WORD != 0) | (addresses + size > ADDRESS_LIMIT))
        if wrong.size:
            address = int(addresses[wrong[0]]) % ADDRESS_LIMIT
            raise ProgramError(ErrorCode.BAD_ADDRESS, address, self.engine)
        return replace(self, rows=Scattered(addresses, size))

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return (self.ids,)

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return (self.sram,)

    @property
    def memory_reads(self) -> tuple[MemoryOperand, ...]:
        """Memory operands read."""
        return () if self.rows is None else (self.rows,)


@dataclass(frozen=True, slots=True)
class KvAppend(Accesses):
    """KV_APPEND: rows of heads of `n` lanes to the cache and, if asked, to staging tiles."""

    n: int
    rows: Matrix
    staging: Tiles | None
    cache: Tiles
    in_memory: bool
    share: int = 0
    engine: Engine = Engine.ST

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return (self.rows,)

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return present(self.staging, None if self.in_memory else self.cache)

    @property
    def memory_writes(self) -> tuple[MemoryOperand, ...]:
        """Memory operands written."""
        return (self.cache,) if self.in_memory else ()


@dataclass(frozen=True, slots=True)
class KvRead(Accesses):
    """KV_READ: positions of the cache to staging tiles."""

    cache: Tiles
    staging: Tiles
    in_memory: bool
    share: int = 0
    engine: Engine = Engine.LD

    @property
    def reads(self) -> tuple[Operand, ...]:
        """SRAM operands read."""
        return () if self.in_memory else (self.cache,)

    @property
    def writes(self) -> tuple[Operand, ...]:
        """SRAM operands written."""
        return (self.staging,)

    @property
    def memory_reads(self) -> tuple[MemoryOperand, ...]:
        """Memory operands read."""
        return (self.cache,) if self.in_memory else ()


@dataclass(frozen=True, slots=True)
class StoreToken(Accesses):
    """ARGMAX: 4 bytes to a multiple of 4 in memory."""

    token: int
    address: int
    share: int = 0
    engine: Engine = Engine.ST

    @property
    def memory_writes(self) -> tuple[MemoryOperand, ...]:
        """Memory operands written."""
        return (block(self.address - self.address % WORD, WORD),)


Transfer = Load | DmaStore | Gather | KvAppend | KvRead | StoreToken
