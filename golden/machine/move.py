# SPDX-License-Identifier: Apache-2.0
"""What the load and the store engine do: copies between memory and SRAM, cell by cell."""

from __future__ import annotations

import numpy as np

from golden.machine.operands import Matrix, MemoryOperand, Tiles, up
from golden.machine.state import Bytes, ProgramError
from golden.machine.transfers import (
    DmaStore,
    Gather,
    KvAppend,
    KvRead,
    Load,
    StoreToken,
    Transfer,
)
from spec.isa import WORD, Engine, ErrorCode


def _require_inside(operand: MemoryOperand, memory: Bytes, engine: Engine) -> None:
    """Raise the bus error of the first word outside memory; heads of tiles one after the other."""
    if isinstance(operand, Matrix) and operand.end <= memory.size:
        return
    words = operand.words()
    if isinstance(operand, Tiles):
        words = np.sort(words.reshape(operand.heads, -1), axis=1).reshape(-1)
    outside = words[words >= memory.size // WORD]
    if outside.size:
        code = ErrorCode.READ_ERROR if engine == Engine.LD else ErrorCode.WRITE_ERROR
        raise ProgramError(code, int(outside[0]) * WORD, engine)


def _store(operation: DmaStore, memory: Bytes, sram: Bytes) -> None:
    """Write the bytes of each row and no others."""
    target, rows = operation.memory, operation.sram.read(sram)
    if target.overlaps_itself:
        for index, row in enumerate(rows):
            start = target.address + index * target.pitch
            memory[start : start + target.row_bytes] = row
        return
    view = np.lib.stride_tricks.as_strided(
        memory[target.address :], rows.shape, (target.pitch, 1), writeable=True
    )
    view[...] = rows


def _append(operation: KvAppend, memory: Bytes, sram: Bytes) -> None:
    """Write rows of heads to the cache and to the staging tiles, zeros past the head dimension."""
    cache = operation.cache
    rows = operation.rows.read(sram, np.int8)
    heads = rows.reshape(cache.positions, cache.heads, up(operation.n, WORD))
    values = heads[:, :, : operation.n].transpose(1, 0, 2)
    if operation.staging is not None:
        operation.staging.write(sram, values)
    cache.write(memory if operation.in_memory else sram, values)


def move(operation: Transfer, memory: Bytes, sram: Bytes) -> None:
    """Carry out a transfer in place.

    Args:
        operation: decoded and legal; a gather located.
        memory: uint8, changed in place.
        sram: uint8, changed in place.

    Raises:
        ProgramError: READ_ERROR or WRITE_ERROR if a memory operand leaves the given memory;
            nothing has been written then.

    """
    for operand in (*operation.memory_reads, *operation.memory_writes):
        _require_inside(operand, memory, operation.engine)
    match operation:
        case Load():
            operation.sram.write(sram, operation.memory.read(memory))
        case DmaStore():
            _store(operation, memory, sram)
        case Gather():
            assert operation.rows is not None
            operation.sram.write(sram, operation.rows.read(memory))
        case KvAppend():
            _append(operation, memory, sram)
        case KvRead():
            source = memory if operation.in_memory else sram
            operation.staging.write(sram, operation.cache.read(source))
        case StoreToken():
            token = np.array([operation.token], "<u4").view(np.uint8)
            memory[operation.address : operation.address + token.size] = token
