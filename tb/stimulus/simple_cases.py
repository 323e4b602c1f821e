# SPDX-License-Identifier: Apache-2.0
"""Random DMA, VEC, GELU, SILU, SOFTMAX, LAYERNORM, RMSNORM and ROPE instructions."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt

from spec.isa import TABLE_BYTES, VEC_OPS, WORD, Opcode, SetReg, SmxOut, VecOp
from spec.isa.operands import up
from tb.bench.environment import OUTPUT
from tb.stimulus.operand_values import corners, full, mixed
from tb.stimulus.random_case import Case, instruction, size
from tb.stimulus.sram_space import Place, Space

DMA_WINDOW = 1 << 20
"""Bytes from OUTPUT on that random stores may write."""

Extent = tuple[int, int]
"""Rows, elements per row."""


class StoreWindow:
    """Hands out pieces of the window that stores write, so that no two overlap."""

    def __init__(self) -> None:
        """Start with an empty window."""
        self._next = 0

    def take(self, size_bytes: int) -> int:
        """Return the offset from OUTPUT of a free piece; starts over when the window is full."""
        if self._next + size_bytes > DMA_WINDOW:
            self._next = 0
        start = self._next
        self._next = up(start + size_bytes + WORD)
        return start


def _extent(random: np.random.Generator, rows: int, count: int) -> Extent:
    """Return a random extent of at most `rows` and `count`."""
    return size(random, rows), size(random, count)


def _transfer(random: np.random.Generator) -> Extent:
    """Return the extent of a DMA: a matrix, sometimes one long row."""
    return (1, size(random, 9000)) if random.random() < 0.1 else _extent(random, 40, 300)


def dma_load(
    random: np.random.Generator,
    space: Space,
    extent: Extent | None = None,
    memory: StoreWindow | None = None,
) -> Case:
    """Return a random DMA_LOAD through BASE1..BASE7 (all OUTPUT).

    It reads a piece of `memory`, without one the random bytes that no store writes.
    """
    return _dma(Opcode.DMA_LOAD, random, space, extent, memory)[0]


def dma_store(
    memory: StoreWindow, random: np.random.Generator, space: Space, extent: Extent | None = None
) -> Case:
    """Return a random DMA_STORE to a fresh piece of the window at BASE1..BASE7."""
    case, place, shape = _dma(Opcode.DMA_STORE, random, space, extent, memory)
    case.fill("source", place, full(random, shape, np.uint8))
    return case


def _dma(
    opcode: Opcode,
    random: np.random.Generator,
    space: Space,
    extent: Extent | None,
    memory: StoreWindow | None,
) -> tuple[Case, Place, Extent]:
    """Return a random DMA, its place in SRAM and its extent."""
    rows, count = extent or _transfer(random)
    place = space.matrix(rows, count)
    extra = int(random.choice([0, 0, 1, 3, 40]))
    pitch = up(count) // WORD + extra if extra or random.random() < 0.3 else 0
    if memory is not None:
        offset = memory.take(rows * (up(count) + extra * WORD))
    else:
        offset = int(random.integers(0, DMA_WINDOW // WORD // 2)) * WORD + DMA_WINDOW
    words = instruction(
        opcode,
        dst=place.word,
        src0=offset & 0xFFFF,
        src1=offset >> 16,
        m=rows,
        n=count,
        k=pitch,
        imm={"base": int(random.integers(1, 8))},
        prefix={"cp": place.prefix_pitch},
    )
    return Case(words), place, (rows, count)


DMA_BASES = (OUTPUT - DMA_WINDOW,) + (OUTPUT,) * 7
"""BASE0 for fills; loads read and stores write from OUTPUT on, through any other base."""


def vec(
    random: np.random.Generator,
    space: Space,
    op: VecOp | None = None,
    extent: Extent | None = None,
) -> Case:
    """Return a random VEC."""
    op = VecOp(int(random.integers(len(VecOp)))) if op is None else op
    uses = VEC_OPS[op]
    rows, count = extent or _extent(random, 24, 200)
    wide_a = int(random.integers(2)) if uses.wide else 0
    wide_c = int(random.integers(2)) if uses.converts else wide_a
    kind = np.int16 if wide_a else np.int8
    a = space.matrix(rows, count << wide_a)
    case = Case([])
    case.fill("A", a, mixed(random, (rows, count), kind))
    b = space.matrix(rows, count << wide_a) if uses.two else None
    if b is not None:
        case.fill("B", b, mixed(random, (rows, count), kind))
    in_place = wide_a == wide_c and random.random() < 0.3
    c = (b if b is not None and random.random() < 0.5 else a) if in_place else None
    if c is None:
        c = space.matrix(rows, count << wide_c)
    source, k = b.word if b is not None else 0, 0
    imm = {"op": int(op), "a16": wide_a, "c16": wide_c}
    if uses.shift:
        imm["sh"] = int(random.integers(64)) if random.random() < 0.2 else int(random.integers(18))
    if uses.k == "scale":
        case.data["K"] = mixed(random, (1,), np.int16)
        k = int(case.data["K"][0]) & 0xFFFF
    if uses.k == "bound":
        limits = mixed(random, (2,), np.int16 if random.random() < 0.3 else kind)
        case.data["bounds"] = limits
        low, high = sorted(int(x) for x in limits)
        if random.random() < 0.1:
            low, high = high, low
        source, k = low & 0xFFFF, high & 0xFFFF
    if uses.src1 == "table":
        table = full(random, (1, TABLE_BYTES), np.int8)
        if random.random() < 0.5:
            imm["stream"] = 1
            case.stream, case.data["table"] = table.tobytes(), table
        else:
            place = space.block(TABLE_BYTES)
            case.fill("table", place, table)
            source = place.word
    case.words = instruction(
        Opcode.VEC,
        dst=c.word,
        src0=a.word,
        src1=source,
        m=rows,
        n=count,
        k=k,
        imm=imm,
        prefix={
            "cp": c.prefix_pitch,
            "ap": a.prefix_pitch,
            "bp": b.prefix_pitch if b is not None else 0,
        },
    )
    return case


def activation(
    opcode: Opcode, random: np.random.Generator, space: Space, extent: Extent | None = None
) -> Case:
    """Return a random GELU or SILU with a random table."""
    rows, count = extent or _extent(random, 24, 300)
    a = space.matrix(rows, count)
    case = Case([])
    case.fill("A", a, mixed(random, (rows, count), np.int8))
    c = a if random.random() < 0.3 else space.matrix(rows, count)
    table = full(random, (1, TABLE_BYTES), np.int8)
    source = 0
    stream = int(random.integers(2))
    if stream:
        case.stream, case.data["table"] = table.tobytes(), table
    else:
        place = space.block(TABLE_BYTES)
        case.fill("table", place, table)
        source = place.word
    case.words = instruction(
        opcode,
        dst=c.word,
        src0=a.word,
        src1=source,
        m=rows,
        n=count,
        imm={"stream": stream},
        prefix={"cp": c.prefix_pitch, "ap": a.prefix_pitch},
    )
    return case


gelu = partial(activation, Opcode.GELU)
silu = partial(activation, Opcode.SILU)


def softmax(random: np.random.Generator, space: Space, extent: Extent | None = None) -> Case:
    """Return a random SOFTMAX, sometimes behind a SET of position and window."""
    if extent is None:
        heads, per_head = _extent(random, 4, 20)
        rows, count = heads * per_head, size(random, 300)
    else:
        rows, count = extent
        per_head = int(random.choice([n for n in range(1, rows + 1) if rows % n == 0]))
    out, score8 = SmxOut(int(random.integers(3))), int(random.integers(2))
    causal = random.random() < 0.5
    kind = np.int8 if score8 else np.int16
    width = up(count, 16) * (2 if out == SmxOut.NUMER16 else 1)
    in_place = out == SmxOut.NUMER16 and not score8 and random.random() < 0.3
    if in_place:
        whole = space.matrix(rows, width)
        a = replace(whole, explicit=True, row_bytes=count * 2)
    else:
        a = space.matrix(rows, count << (1 - score8))
    spread = random.random()
    scores = mixed(random, (rows, count), kind)
    if spread < 0.5 and not score8:
        centre = int(random.integers(-30000, 30000))
        near = centre + random.integers(-400, 400, (rows, count))
        scores = np.clip(near, -32768, 32767).astype(np.int16)
    elif spread < 0.6:
        scores = np.full((rows, count), int(scores[0, 0]), kind)
    case = Case([])
    case.fill("scores", a, scores)
    c = a if in_place else space.matrix(rows, width)
    sums = space.block(rows * WORD).word if out != SmxOut.PROB8 else 0
    if causal and random.random() < 0.7:
        pos = int(random.integers(0, 320))
        window = int(random.integers(1, 64)) if random.random() < 0.5 else 0
        case.words += instruction(Opcode.SET, dst=SetReg.POS, src0=pos)
        case.words += instruction(Opcode.SET, dst=SetReg.WINDOW, src0=window)
    case.words += instruction(
        Opcode.SOFTMAX,
        flags=["CAUSAL_MASK"] if causal else [],
        dst=c.word,
        src0=a.word,
        src1=sums,
        m=rows,
        n=count,
        k=per_head if random.random() < 0.7 else 0,
        imm={"out": out, "score8": score8},
        prefix={"cp": c.prefix_pitch, "ap": a.prefix_pitch},
    )
    return case


def norm(
    opcode: Opcode, random: np.random.Generator, space: Space, extent: Extent | None = None
) -> Case:
    """Return a random norm: rows of every spread, gains around the useful ones and any."""
    if extent is None:
        long = random.random() < 0.05
        extent = (1, size(random, 2500)) if long else _extent(random, 20, 300)
    rows, count = extent
    out16, stream = int(random.integers(2)), int(random.integers(2))
    x = mixed(random, (rows, count), np.int16).astype(np.int64)
    for row in range(rows):
        kind = random.random()
        if kind < 0.2:
            x[row] = int(random.integers(-32768, 32768))
        elif kind < 0.6:
            x[row] = random.normal(random.integers(-9000, 9000), random.integers(1, 9000), count)
        elif kind < 0.7:
            x[row] = corners(random, (count,), np.int16)
    a = space.matrix(rows, count * 2)
    case = Case([])
    case.fill("X", a, np.clip(x, -32768, 32767).astype(np.int16))
    c = space.matrix(rows, count << out16)
    channels = np.zeros(up(count), np.dtype([("gain", "<u2"), ("shift", "u1"), ("bias", "i1")]))
    useful = random.random(count) >= 0.05  # of the others every bit is random
    channels["gain"][:count] = np.where(
        useful, random.integers(0, 1 << 15, count), mixed(random, (count,), np.uint16)
    )
    channels["shift"][:count] = np.where(
        useful, random.integers(14, 28, count), full(random, (count,), np.uint8)
    )
    channels["bias"][:count] = mixed(random, (count,), np.int8)
    case.data |= {name: channels[name][:count] for name in ("gain", "shift", "bias")}
    epsilon = int(full(random, (), np.uint64)) >> int(random.integers(0, 64))
    if random.random() < 0.05:
        epsilon = (1 << 64) - 1
    case.data["epsilon"] = np.array([epsilon], np.uint64)
    share = epsilon.to_bytes(8, "little") + bytes(56) + channels.tobytes()
    source = 0
    if stream:
        case.stream = share + bytes(-len(share) % 64)
    else:
        place = space.block(len(share))
        case.fill("parameters", place, np.frombuffer(share, np.uint8).reshape(1, -1))
        source = place.word
    case.words = instruction(
        opcode,
        dst=c.word,
        src0=a.word,
        src1=source,
        m=rows,
        n=count,
        imm={"stream": stream, "out16": out16},
        prefix={"cp": c.prefix_pitch, "ap": a.prefix_pitch},
    )
    return case


layernorm = partial(norm, Opcode.LAYERNORM)
rmsnorm = partial(norm, Opcode.RMSNORM)

ROPE_DIMENSIONS = (2, 4, 6, 8, 10, 14, 16, 18, 20, 24, 30, 32, 34, 48, 50, 64, 66, 80, 96, 128, 130)
"""Head dimensions whose halves end at each kind of place in a word, in one word or in several."""


def _turns(random: np.random.Generator, rows: int, pairs: int) -> npt.NDArray[np.int16]:
    """Return (rows, pairs, 2) cos and sin in Q1.14: of an angle, or any two numbers."""
    if random.random() < 0.5:
        return mixed(random, (rows, pairs, 2), np.int16)
    angles = random.uniform(0, 2 * np.pi, (rows, pairs))
    turns = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    return np.asarray(np.round(turns * (1 << 14)), np.int16)


def rope(
    random: np.random.Generator,
    space: Space,
    extent: Extent | None = None,
    heads: int | None = None,
    neighbours: bool | None = None,
) -> Case:
    """Return a random ROPE; the extent is rows and head dimension."""
    if extent is None:
        extent = size(random, 12), int(random.choice(ROPE_DIMENSIONS))
    rows, dimension = extent
    heads = size(random, 6) if heads is None else heads
    neighbours = bool(random.integers(2)) if neighbours is None else neighbours
    a = space.matrix(rows, heads * up(dimension))
    case = Case([])
    case.fill("A", a, mixed(random, (rows, heads * up(dimension)), np.int8))
    c = a if random.random() < 0.4 else space.matrix(rows, heads * up(dimension))
    turns = space.matrix(rows, 2 * dimension)
    pairs = _turns(random, rows, dimension // 2)
    case.fill("cos and sin", turns, pairs.reshape(rows, dimension))
    case.words = instruction(
        Opcode.ROPE,
        dst=c.word,
        src0=a.word,
        src1=turns.word,
        m=rows,
        n=dimension,
        k=heads,
        imm={"pairs": int(neighbours)},
        prefix={"cp": c.prefix_pitch, "ap": a.prefix_pitch, "bp": turns.prefix_pitch},
    )
    return case
