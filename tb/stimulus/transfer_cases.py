# SPDX-License-Identifier: Apache-2.0
"""Random KV_APPEND, KV_READ and EMBED instructions with the registers that they need."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from spec.isa import DYNAMIC, SET_REGISTERS, WORD, EmbedIndex, Opcode, SetReg
from spec.isa.operands import up
from tb.bench.environment import OUTPUT
from tb.stimulus.random_case import Case, instruction, size
from tb.stimulus.simple_cases import DMA_WINDOW, StoreWindow
from tb.stimulus.sram_space import Space

"""A dimension field that is computed when its instruction is dispatched."""
GRANULE = SET_REGISTERS[SetReg.KVBASE].granularity
"""Places and strides of the K/V cache are multiples of this many bytes."""
HEAD_DIMENSIONS = (1, 15, 16, 17, 32, 33, 64, 80, 128)
"""Forms of EMBED."""
TABLE_BYTES = 1 << 20
"""Bytes behind OUTPUT + DMA_WINDOW, which nobody writes, that EMBED reads rows of."""
LARGEST_CACHE = 1 << 16
LARGEST_ROWS = 3 << 14
"""Bytes of the heads in the cache or in staging tiles, and of the rows to append."""


def set_register(register: SetReg, value: int) -> Case:
    """Return the SET of a register."""
    words = instruction(Opcode.SET, dst=register, src0=value & 0xFFFF, src1=value >> 16)
    return Case(words)


@dataclass(frozen=True)
class Heads:
    """What a K/V instruction moves.

    Attributes:
        count: heads.
        lanes: head dimension.
        positions: positions, from `pos + base` (append) or `start + base` (read) on.
        pos: POS.
        window: WINDOW.
        base: prefix operand, a multiple of the tile edge.
        cap: of a dynamic number of positions, which is then `positions`; else 0.
        v: the number that it takes from LEN.
    """

    count: int
    lanes: int
    positions: int
    pos: int = 0
    window: int = 0
    base: int = 0
    cap: int = 0
    v: int = 0

    def start(self, edge: int) -> int:
        """Return WSTART."""
        return max(0, self.pos + 1 - self.window) // edge * edge if self.window else 0

    def dynamic(self, edge: int, v: int, cap: int) -> Heads:
        """Return these heads with as many positions as LEN - v - base, at most `cap`."""
        length = self.pos + 1 - self.start(edge)
        positions = min(max(length - v - self.base, 0), cap)
        return replace(self, positions=positions, cap=cap, v=v)

    def tiles(self, edge: int, end: int) -> int:
        """Return the bytes of one head up to position `end`."""
        return up(end, edge) * up(self.lanes, edge)


def _draw(random: np.random.Generator, edge: int, fits: Callable[[Heads], bool]) -> Heads:
    """Return random heads that fit."""
    while True:
        heads = Heads(
            count=int(random.integers(1, 13)),
            lanes=int(random.choice(HEAD_DIMENSIONS))
            if random.random() < 0.7
            else size(random, 140),
            positions=int(random.integers(1, 41)) if random.random() < 0.6 else size(random, 120),
            pos=int(random.integers(0, 3 * edge)) if random.random() < 0.6 else size(random, 900),
            window=size(random, 100) if random.random() < 0.4 else 0,
            base=edge * int(random.choice([0, 0, 0, 1, 2])),
        )
        if fits(heads):
            return heads


def random_append(random: np.random.Generator, edge: int) -> Heads:
    """Return random heads of an append."""

    def fits(heads: Heads) -> bool:
        in_cache = heads.count * heads.tiles(edge, heads.pos + heads.base + heads.positions)
        rows = heads.positions * heads.count * up(heads.lanes)
        return in_cache <= LARGEST_CACHE and rows <= LARGEST_ROWS

    return _draw(random, edge, fits)


def random_read(random: np.random.Generator, edge: int) -> Heads:
    """Return random heads of a read."""

    def fits(heads: Heads) -> bool:
        end = heads.start(edge) + heads.base + max(heads.positions, heads.cap)
        return heads.count * heads.tiles(edge, end) <= LARGEST_CACHE

    while random.random() < 0.3:
        v, cap = int(random.integers(2)), WORD * int(random.integers(1, 9))
        heads = _draw(random, edge, fits).dynamic(edge, v, cap)
        if fits(heads):
            return heads
    return _draw(random, edge, fits)


@dataclass(frozen=True)
class Cache:
    """The registers of a cache such that the heads of one instruction come to a given place.

    Attributes:
        registers: KVBASE, KVLAYER, KVHEAD, KVVOFF, KVCAP, POS and WINDOW.
        layer, first_head, v: operands of the instruction.
    """

    registers: dict[SetReg, int]
    layer: int
    first_head: int
    v: bool

    @classmethod
    def around(
        cls, random: np.random.Generator, heads: Heads, piece: int, take: Callable[[int], int]
    ) -> Cache:
        """Return a cache whose pieces `take` finds room for.

        Args:
            random: source of strides, layer and first head.
            heads: the heads of the instruction.
            piece: bytes of one head from its position 0 on.
            take: returns the place of so many bytes, a multiple of GRANULE.
        """
        pitch = piece + GRANULE * int(random.choice([0, 0, 1, 3]))
        at = take((heads.count - 1) * pitch + piece)
        layer_pitch, v_offset = (GRANULE * int(random.integers(0, 40)) for _ in range(2))
        layer, first_head = int(random.integers(0, 4)), int(random.integers(0, 4))
        v = bool(random.integers(2))
        base = at - layer * layer_pitch - first_head * pitch - v * v_offset
        if base < 0:
            base, layer, first_head, v = at, 0, 0, False
        registers = {
            SetReg.KVBASE: base,
            SetReg.KVLAYER: layer_pitch,
            SetReg.KVHEAD: pitch,
            SetReg.KVVOFF: v_offset,
            SetReg.POS: heads.pos,
            SetReg.WINDOW: heads.window,
        }
        return cls(registers, layer, first_head, v)

    def case(self, capacity: int) -> Case:
        """Return the SETs of the registers."""
        case = Case([])
        for register, value in (self.registers | {SetReg.KVCAP: capacity}).items():
            case.words += set_register(register, value).words
        return case

    def imm(self, heads: Heads) -> dict[str, int]:
        """Return the mode fields of the instruction."""
        return {"first_head": self.first_head, "heads_minus_1": heads.count - 1}

    @property
    def flags(self) -> list[str]:
        """Flags of the instruction."""
        return ["V"] if self.v else []


def _in_sram(space: Space) -> Callable[[int], int]:
    """Return how to place a cache in SRAM; gives byte addresses."""

    def take(count: int) -> int:
        return up(space.take((up(count) + GRANULE) // WORD) * WORD, GRANULE)

    return take


def _in_memory(memory: StoreWindow) -> Callable[[int], int]:
    """Return how to place a cache in the window of memory; gives byte addresses."""
    return lambda count: up(OUTPUT + memory.take(count + GRANULE), GRANULE)


def _unwritten(random: np.random.Generator) -> Callable[[int], int]:
    """Return how to place a cache where no store writes; gives byte addresses."""
    return lambda _: OUTPUT + DMA_WINDOW + GRANULE * int(random.integers(0, 2048))


def kv_append(
    memory: StoreWindow | None,
    edge: int,
    random: np.random.Generator,
    space: Space,
    heads: Heads | None = None,
    stage: bool | None = None,
) -> Case:
    """Return a random KV_APPEND.

    Args:
        memory: the window for a cache in memory; None: the cache lies in SRAM.
        edge: tile edge.
        random: source of everything that is not given.
        space: where operands find room.
        heads: what to append.
        stage: whether to write staging tiles too.
    """
    heads = heads or random_append(random, edge)
    stage = bool(random.integers(2)) if stage is None else stage
    first = heads.pos + heads.base
    end = first + heads.positions
    take = _in_memory(memory) if memory is not None else _in_sram(space)
    cache = Cache.around(random, heads, heads.tiles(edge, end), take)
    case = cache.case(end + int(random.choice([0, 0, 5])))
    rows = space.matrix(heads.positions, heads.count * up(heads.lanes))
    values = random.integers(0, 256, (heads.positions, heads.count * up(heads.lanes)), np.uint8)
    case.fill("rows", rows, values)
    staging, pitch = 0, 0
    if stage:
        tiles = heads.tiles(edge, end - heads.start(edge))
        place = space.at_pitch(heads.count, tiles, tiles // WORD + int(random.choice([0, 1])), True)
        staging, pitch = place.word, place.pitch
    case.words += instruction(
        Opcode.KV_APPEND,
        flags=cache.flags + (["STAGE"] if stage else []),
        dst=staging,
        src0=rows.word,
        src1=pitch,
        m=cache.layer,
        n=heads.lanes,
        k=heads.positions,
        imm=cache.imm(heads),
        prefix={"ap": rows.prefix_pitch, "base": heads.base},
    )
    return case


def kv_read(
    in_memory: bool,
    edge: int,
    random: np.random.Generator,
    space: Space,
    heads: Heads | None = None,
    memory: StoreWindow | None = None,
) -> Case:
    """Return a random KV_READ from SRAM as it is, or from memory: a piece of `memory` or unwritten.

    Without `memory` nobody writes where it reads.
    """
    heads = heads or random_read(random, edge)
    end = heads.start(edge) + heads.base + heads.positions
    if not in_memory:
        take = _in_sram(space)
    else:
        take = _in_memory(memory) if memory is not None else _unwritten(random)
    cache = Cache.around(random, heads, heads.tiles(edge, end), take)
    case = cache.case(end + int(random.choice([0, 0, 5])))
    place = space.matrix(heads.count, heads.tiles(edge, heads.cap or heads.positions))
    dynamic = DYNAMIC | heads.v << 11 | heads.cap // WORD
    case.words += instruction(
        Opcode.KV_READ,
        flags=cache.flags,
        dst=place.word,
        m=cache.layer,
        n=heads.lanes,
        k=dynamic if heads.cap else heads.positions,
        imm=cache.imm(heads),
        prefix={"cp": place.prefix_pitch, "base": heads.base},
    )
    return case


def embed(
    random: np.random.Generator,
    space: Space,
    index: EmbedIndex | None = None,
    rows: int | None = None,
    row_bytes: int | None = None,
    memory: StoreWindow | None = None,
) -> Case:
    """Return a random EMBED of a table at BASE1..BASE7 (all OUTPUT).

    It reads rows of a piece of `memory`, without one rows that no store writes.
    """
    index = EmbedIndex(int(random.integers(3))) if index is None else index
    rows = (size(random, 40) if rows is None else rows) if index != EmbedIndex.TOKEN else 1
    row_bytes = size(random, 300) if row_bytes is None else row_bytes
    natural = up(row_bytes) // WORD
    pitch = int(random.choice([0, 0, natural, natural + 1, natural + 6, 1]))
    step = (pitch or natural) * WORD
    if memory is not None:
        numbers = memory.take(rows * step) // step + random.permutation(rows)
    else:
        numbers = -(-DMA_WINDOW // step) + random.integers(0, TABLE_BYTES // step - rows, rows)
    case = Case([])
    source = 0
    if index == EmbedIndex.TOKEN:
        case.words += set_register(SetReg.TOKEN, int(numbers[0])).words
    elif index == EmbedIndex.POS:
        case.words += set_register(SetReg.POS, int(numbers[0])).words
    else:
        place = space.block(4 * rows)
        case.fill("list", replace(place, row_bytes=4 * rows), numbers[None].astype(np.uint32))
        source = place.word
    place = space.matrix(rows, row_bytes)
    case.words += instruction(
        Opcode.EMBED,
        dst=place.word,
        src0=source,
        m=rows,
        n=row_bytes,
        k=pitch,
        imm={"base": int(random.integers(1, 8)), "index": index},
        prefix={"cp": place.prefix_pitch},
    )
    return case
