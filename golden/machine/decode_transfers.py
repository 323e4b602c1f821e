# SPDX-License-Identifier: Apache-2.0
"""Decoding and legality of DMA_LOAD, DMA_STORE, EMBED, KV_APPEND, KV_READ and ARGMAX."""

from __future__ import annotations

from dataclasses import dataclass

from golden.machine.legal import (
    Dispatch,
    matrix,
    require,
    require_dimension,
    require_memory,
    require_room,
)
from golden.machine.operands import Matrix, Tiles, block, up
from golden.machine.operations import Dropped
from golden.machine.state import ADDRESS_LIMIT, ProgramError
from golden.machine.transfers import DmaStore, Gather, KvAppend, KvRead, Load, StoreToken
from spec.isa import WORD, EmbedIndex, ErrorCode, Flag, Opcode, SetReg

V_FLAG, STAGE_FLAG = 1 << Flag.V, 1 << Flag.STAGE
TOKEN_BYTES = 4


def decode_dma(at: Dispatch) -> Load | DmaStore:
    """Return the operation of a DMA word; ProgramError with the first check that fails."""
    word = at.word
    at.require_zero(imm=0x7)
    at.require_prefix("cp")
    rows, size = at.static("m"), at.static("n")
    address = at.registers.base(word.imm) + (word.src0 | word.src1 << 16)
    memory = Matrix(address, word.k * WORD or up(size, WORD), rows, size)
    require_memory(memory)
    sram = matrix(word.dst, at.prefix.cp, rows, size, 1)
    at.require_sram(sram)
    return Load(memory, sram) if word.opcode == Opcode.DMA_LOAD else DmaStore(memory, sram)


def decode_embed(at: Dispatch) -> Load | Gather:
    """Return the operation of an EMBED word; ProgramError with the first check that fails."""
    word, registers = at.word, at.registers
    at.require_zero("src1", imm=0x37)
    index = word.imm >> 4
    require(index in set(EmbedIndex) and (index == EmbedIndex.LIST or word.src0 == 0))
    at.require_prefix("cp")
    rows, size = at.static("m"), at.static("n")
    require_dimension(index != EmbedIndex.TOKEN or rows == 1)
    base, pitch = registers.base(word.imm & 7), word.k * WORD or up(size, WORD)
    sram = matrix(word.dst, at.prefix.cp, rows, size, 1)
    if index == EmbedIndex.LIST:
        ids = block(word.src0 * WORD, rows * TOKEN_BYTES)
        at.require_sram(sram, ids)
        return Gather(ids, base, pitch, sram)
    first = registers[SetReg.TOKEN if index == EmbedIndex.TOKEN else SetReg.POS]
    memory = Matrix(base + first * pitch, pitch, rows, size)
    require_memory(memory)
    at.require_sram(sram)
    return Load(memory, sram)


@dataclass(frozen=True, slots=True)
class _Heads:
    """The heads of a K/V instruction: their number, the dimension of one, where they begin.

    `address` is that of position 0 of the first head, `pitch` KVHEAD.
    """

    count: int
    lanes: int
    address: int
    pitch: int

    @classmethod
    def of(cls, at: Dispatch, lanes: int) -> _Heads:
        """Return the heads that a word names."""
        word, registers = at.word, at.registers
        first, count = word.imm & 0xFF, (word.imm >> 8) + 1
        address = registers[SetReg.KVBASE] + word.m * registers[SetReg.KVLAYER]
        if word.flags & V_FLAG:
            address += registers[SetReg.KVVOFF]
        pitch = registers[SetReg.KVHEAD]
        return cls(count, lanes, address + first * pitch, pitch)

    def cells(self, at: Dispatch, first: int, positions: int) -> Tiles:
        """Return some positions of all heads, every lane of their tiles."""
        edge = at.config.tile
        lanes = up(self.lanes, edge)
        return Tiles(self.address, positions, lanes, edge, first, self.count, self.pitch)

    def last_piece(self, at: Dispatch, end: int) -> Matrix:
        """Return the piece of the last head up to position `end`, exclusive."""
        edge = at.config.tile
        address = self.address + (self.count - 1) * self.pitch
        return block(address, up(end, edge) * up(self.lanes, edge))


def _require_cache(at: Dispatch, piece: Matrix) -> None:
    """Refuse with BAD_ADDRESS a piece in memory that carries out of 32 bits."""
    if at.registers.start.kv_in_memory:
        require_memory(piece)


def decode_kv_append(at: Dispatch) -> KvAppend:
    """Return the operation of a KV_APPEND word; ProgramError with the first check that fails."""
    word, prefix, registers = at.word, at.prefix, at.registers
    at.require_zero(flags=V_FLAG | STAGE_FLAG, imm=0xFFFF)
    stage = bool(word.flags & STAGE_FLAG)
    require(stage or (word.dst == 0 and word.src1 == 0))
    at.require_prefix("ap", "base")
    n, positions = at.static("n"), at.static("k")
    heads = _Heads.of(at, n)
    first = registers[SetReg.POS] + prefix.base
    end = first + positions
    require_room(end <= registers[SetReg.KVCAP])
    piece = heads.last_piece(at, end)
    _require_cache(at, piece)
    rows = matrix(word.src0, prefix.ap, positions, heads.count * up(n, 16), 1)
    edge, start = at.config.tile, registers.window_start
    lanes, pitch = up(n, edge), word.src1 * WORD
    tiles = Tiles(word.dst * WORD, positions, lanes, edge, first - start, heads.count, pitch)
    at_last = block(tiles.address + (heads.count - 1) * pitch, up(end - start, edge) * lanes)
    at.require_sram(
        rows, at_last if stage else None, None if registers.start.kv_in_memory else piece
    )
    cache = heads.cells(at, first, positions)
    return KvAppend(n, rows, tiles if stage else None, cache, bool(registers.start.kv_in_memory))


def decode_kv_read(at: Dispatch) -> KvRead | Dropped:
    """Return the operation of a KV_READ word; ProgramError with the first check that fails."""
    word, prefix, registers = at.word, at.prefix, at.registers
    at.require_zero("src0", "src1", flags=V_FLAG, imm=0xFFFF)
    at.require_prefix("cp", "base")
    n, positions = at.static("n"), at.dimension("k")
    edge, heads = at.config.tile, _Heads.of(at, n)
    lanes = up(n, edge)
    first = registers.window_start + prefix.base
    end = first + positions.value
    piece = heads.last_piece(at, end)
    if positions.value:
        require_room(end <= registers[SetReg.KVCAP])
        _require_cache(at, piece)
    staged = matrix(word.dst, prefix.cp, heads.count, up(positions.cap, edge) * lanes, 1)
    from_sram = positions.value and not registers.start.kv_in_memory
    at.require_sram(staged, piece if from_sram else None)
    if not positions.value:
        return Dropped(0)
    tiles = Tiles(staged.address, positions.value, lanes, edge, 0, heads.count, staged.pitch)
    cache = heads.cells(at, first, positions.value)
    return KvRead(cache, tiles, bool(registers.start.kv_in_memory))


def decode_argmax(at: Dispatch) -> StoreToken:
    """Return the operation of an ARGMAX word; ProgramError with the first check that fails."""
    registers = at.registers
    at.require_zero("dst", "src0", "src1", "m", "n", "k", imm=0x7)
    at.require_prefix()
    if registers.argmax is None:
        raise ProgramError(ErrorCode.ILLEGAL_FIELD)
    base = registers.base(at.word.imm)
    address = base + TOKEN_BYTES * registers[SetReg.OUTCNT]
    if base % WORD or address + TOKEN_BYTES > ADDRESS_LIMIT:
        raise ProgramError(ErrorCode.BAD_ADDRESS, address % ADDRESS_LIMIT)
    return StoreToken(registers.argmax.column, address)
