# SPDX-License-Identifier: Apache-2.0
"""KV_APPEND and KV_READ: every byte where the formula puts it, and attention through the cache."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from golden.machine import ChipConfig, ErrorReport
from spec.isa import Engine, ErrorCode, Instruction, Opcode, SetReg
from spec.isa.operands import up
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_programs import (
    END,
    ProgramBench,
    barrier,
    gemm,
    length,
    pfx,
    set_register,
)
from tests.python.golden.golden_support import integers, seeded

LD, ST, GEMM, SMX = 1, 2, 4, 8

CACHE, LAYER, HEAD, V_OFFSET = 0x20000, 0x4000, 0x1000, 0x2000
"""Place and strides of the cache in bytes; a head holds 0x1000 bytes."""
IN_SRAM = 0x30000
ROWS, STAGING = 0x1000, 0x8000
"""Byte addresses of rows and staging tiles in SRAM."""


def cell(edge: int, lanes: int, position: int, lane: int) -> int:
    """Return the offset of a lane of a position inside a head, as the reference page has it."""
    blocks = up(lanes, edge) // edge
    tile = (position // edge) * blocks + lane // edge
    return tile * edge * edge + (position % edge) * edge + lane % edge


def registers(in_memory: bool, **others: int) -> dict[str, int]:
    """Return the start registers of a cache of 32 positions of 128 lanes, or the like."""
    base = CACHE if in_memory else IN_SRAM
    strides = {"kv_layer": LAYER, "kv_head": HEAD, "kv_voff": V_OFFSET}
    return {"kv_base": base, "kv_cap": 40, "kv_in_memory": in_memory, **strides, **others}


def append(
    n: int, rows: int, heads: tuple[int, int], flags: int = 0, layer: int = 0, **fields: int
) -> Instruction:
    """Return a KV_APPEND of `heads` (first, count)."""
    imm = heads[0] | heads[1] - 1 << 8
    return Instruction(
        Opcode.KV_APPEND, flags, src0=ROWS // 16, m=layer, n=n, k=rows, imm=imm, **fields
    )


def read(
    n: int, positions: int, heads: tuple[int, int], flags: int = 0, layer: int = 0
) -> Instruction:
    """Return a KV_READ of `heads` (first, count) to STAGING."""
    imm = heads[0] | heads[1] - 1 << 8
    return Instruction(Opcode.KV_READ, flags, STAGING // 16, m=layer, n=n, k=positions, imm=imm)


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("edge", [16, 32])
@pytest.mark.parametrize(
    ("n", "rows", "pos", "base", "heads", "flags", "ap"),
    [
        (16, 1, 0, 0, (0, 1), 0, 0),
        (17, 5, 13, 0, (1, 1), gp.V, 0),
        (1, 3, 30, 0, (0, 2), 0, 9),
        (40, 9, 4, 32, (1, 1), gp.V, 11),
        (64, 20, 15, 0, (0, 2), 0, 0),
    ],
)
def test_append_places_every_byte(
    in_memory: bool,
    edge: int,
    n: int,
    rows: int,
    pos: int,
    base: int,
    heads: tuple[int, int],
    flags: int,
    ap: int,
) -> None:
    """Lanes of the rows at their cells, zeros in the lanes up to the tile's edge, nothing else."""
    rng = seeded(600)
    first, count = heads
    width = up(n, 16)
    data = integers(rng, np.uint8, (rows, count * width))
    state = registers(in_memory, kv_cap=64)
    word = append(n, rows, heads, flags, layer=1)
    bench = ProgramBench([pfx(ap=ap, base=base), word, END], config=ChipConfig(array_dim=edge))
    bench.pos, bench.registers = pos, state
    bench.memory[0x8000:] = rng.integers(0, 256, bench.memory.size - 0x8000)
    bench.put(ROWS, data, 16 * ap or None)
    space = bench.memory if in_memory else bench.sram
    expected = space.copy()
    for head in range(count):
        start = state["kv_base"] + LAYER + (V_OFFSET if flags else 0) + (first + head) * HEAD
        for row in range(rows):
            for lane in range(up(n, edge)):
                value = data[row, head * width + lane] if lane < n else 0
                expected[start + cell(edge, n, pos + base + row, lane)] = value
    other = bench.sram.copy() if in_memory else bench.memory.copy()
    result = bench.run()
    assert result.error is None
    assert result.races == []
    assert np.array_equal(space[0x100:], expected[0x100:])
    assert np.array_equal((bench.sram if in_memory else bench.memory)[0x100:], other[0x100:])


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("edge", [16, 32])
@pytest.mark.parametrize(
    ("n", "count", "pos", "window", "base", "heads", "cp"),
    [
        (16, 1, 0, 0, 0, (0, 1), 0),
        (17, 19, 30, 0, 0, (1, 1), 0),
        (1, 16, 39, 8, 0, (0, 2), 0),
        (40, 7, 63, 20, 0, (0, 2), 0x100),
        (64, 8, 63, 0, 32, (0, 2), 0),
    ],
)
def test_read_copies_rows_of_positions(
    in_memory: bool,
    edge: int,
    n: int,
    count: int,
    pos: int,
    window: int,
    base: int,
    heads: tuple[int, int],
    cp: int,
) -> None:
    """Position WSTART + base of the cache is row 0 of the tiles; other rows stay untouched."""
    rng = seeded(601)
    first, number = heads
    start = max(0, pos + 1 - window) // edge * edge if window else 0
    state = registers(in_memory, kv_cap=start + base + count, window=window)
    word = read(n, count, heads, gp.V, layer=1)
    bench = ProgramBench([pfx(cp=cp, base=base), word, END], config=ChipConfig(array_dim=edge))
    bench.pos, bench.registers = pos, state
    space = bench.memory if in_memory else bench.sram
    space[0x20000:] = rng.integers(0, 256, space.size - 0x20000)
    expected = bench.sram.copy()
    pitch = 16 * cp or up(count, edge) * up(n, edge)
    for head in range(number):
        source = state["kv_base"] + LAYER + V_OFFSET + (first + head) * HEAD
        for position in range(count):
            for lane in range(up(n, edge)):
                value = space[source + cell(edge, n, start + base + position, lane)]
                expected[STAGING + head * pitch + cell(edge, n, position, lane)] = value
    result = bench.run()
    assert result.error is None
    assert result.races == []
    assert np.array_equal(bench.sram, expected)
    words = sum(len(write.data) for write in result.sram_writes)
    assert words == number * count * up(n, edge) // 16


@pytest.mark.parametrize("edge", [16, 32])
@pytest.mark.parametrize(("window", "pos"), [(0, 0), (0, 18), (5, 37), (40, 70)])
def test_staged_rows_follow_the_window(edge: int, window: int, pos: int) -> None:
    """STAGE puts position POS + r - WSTART of head i at dst + i*hp, the cache gets the same."""
    rng = seeded(602)
    n, rows, hp = 24, 3, 0x90
    start = max(0, pos + 1 - window) // edge * edge if window else 0
    state = registers(True, kv_cap=80, window=window, kv_head=0x2000, kv_voff=0)
    data = integers(rng, np.uint8, (rows, 2 * 32))
    fields = {"dst": STAGING // 16, "src1": hp if edge == 16 else 2 * hp}
    word = append(n, rows, (0, 2), gp.STAGE, **fields)
    bench = ProgramBench([word, END], config=ChipConfig(array_dim=edge), pos=pos, registers=state)
    bench.put(ROWS, data)
    expected, cache = bench.sram.copy(), bench.memory.copy()
    for head in range(2):
        for row in range(rows):
            for lane in range(up(n, edge)):
                value = data[row, head * 32 + lane] if lane < n else 0
                at = STAGING + head * 16 * fields["src1"]
                expected[at + cell(edge, n, pos + row - start, lane)] = value
                at = CACHE + head * 0x2000
                cache[at + cell(edge, n, pos + row, lane)] = value
    result = bench.run()
    assert result.error is None
    assert result.races == []
    assert np.array_equal(bench.sram, expected)
    assert np.array_equal(bench.memory[0x100:], cache[0x100:])


def attention_step(
    n: int, cap: int, scale: tuple[int, int], in_memory: bool, staged: bool
) -> list[Instruction]:
    """Return one decode step of one head: q at ROWS, k at ROWS + 0x100, v at ROWS + 0x200.

    The context goes to 0x100. With `staged` the earlier positions are read and the current one is
    staged; else everything is read back.
    """
    k, v = STAGING // 16, STAGING // 16 + 0x300
    scores, sums, context = 0x600, 0x700, 0x10
    flags = gp.STAGE if staged else 0
    places = (k, v) if staged else (0, 0)
    words = []
    for kind, place, source in ((0, places[0], 0x10), (gp.V, places[1], 0x20)):
        word = append(n, 1, (0, 1), flags | kind, dst=place)
        words.append(replace(word, src0=ROWS // 16 + source))
    fence = [] if staged else [barrier(ST)]
    words += fence
    count = length(cap, int(staged))
    for kind, place in ((0, k), (gp.V, v)):
        words.append(Instruction(Opcode.KV_READ, kind, place, n=n, k=count))
    words += [barrier(LD | ST), pfx(imm=scale[0], sh=scale[1])]
    keys = length(cap)
    mode = gp.B_TILES | gp.OUT_INT16
    words.append(gemm(scores, ROWS // 16, k, 1, keys, n, mode, gp.TRANSPOSE | gp.REQUANT))
    words.append(barrier(GEMM))
    words.append(Instruction(Opcode.SOFTMAX, gp.CAUSAL, scores, scores, sums, 1, keys, 1, 2))
    words += [barrier(SMX), pfx(imm=sums)]
    mode = gp.A_UINT16 | gp.B_TILES | gp.Q_ROW
    words.append(gemm(context, scores, v, 1, n, keys, mode, gp.REQUANT))
    return words


def direct_context(
    q: npt.NDArray[np.int8],
    keys: npt.NDArray[np.int8],
    values: npt.NDArray[np.int8],
    scale: tuple[int, int],
) -> list[int]:
    """Return the context of one query over all given keys, in Python integers."""
    mult, shift = scale
    scores = []
    for key in keys.tolist():
        dot = sum(a * b for a, b in zip(q.tolist(), key, strict=True))
        scores.append(min(max((dot * mult + (1 << shift - 1)) >> shift, -32768), 32767))
    numerators = []
    for score in scores:
        d = max(scores) - score
        table = round(65535 * 2 ** (-(d & 63) / 64))
        half = (1 << (d >> 6)) >> 1
        numerators.append((table + half) >> (d >> 6) if d >> 6 <= 17 else 0)
    total = sum(numerators)
    top = total.bit_length() - 1
    reciprocal = round(65536 / (1 + (((total << 7) >> top & 127) + 0.5) / 128))
    result = []
    for column in values.T.tolist():
        weighted = sum(e * v for e, v in zip(numerators, column, strict=True))
        rounded = (weighted * reciprocal + (1 << 15 + top)) >> (16 + top)
        result.append(min(max(rounded, -128), 127))
    return result


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("staged", [True, False])
@pytest.mark.parametrize(
    ("edge", "n", "window"), [(16, 16, 0), (16, 40, 11), (32, 20, 0), (32, 64, 33)]
)
def test_attention_through_the_cache(
    in_memory: bool, staged: bool, edge: int, n: int, window: int
) -> None:
    """One program at every position 0..55 equals attention over the visible keys themselves."""
    rng = seeded(603)
    cap, scale = 64, (20011, 19)
    data = integers(rng, np.int8, (3, 56, n), 0.05)
    data[:2] //= 3
    program = [*attention_step(n, cap, scale, in_memory, staged), END]
    bench = ProgramBench(program, config=ChipConfig(array_dim=edge))
    bench.registers = registers(in_memory, kv_cap=56, window=window, kv_voff=0x4000)
    distinct = set()
    for pos in range(56):
        bench.pos = pos
        for index, at in enumerate((ROWS, ROWS + 0x100, ROWS + 0x200)):
            bench.put(at, data[index, pos])
        result = bench.run()
        assert result.error is None
        assert result.races == [], result.races[0]
        first = max(0, pos + 1 - window) if window else 0
        seen = slice(first, pos + 1)
        expected = direct_context(data[0, pos], data[1, seen], data[2, seen], scale)
        assert bench.get(0x100, (1, n), np.int8)[0].tolist() == expected, f"position {pos}"
        distinct |= set(expected)
    assert len(distinct) > 32


@pytest.mark.parametrize("opcode", [Opcode.KV_APPEND, Opcode.KV_READ])
def test_the_first_word_outside_memory_is_named(opcode: Opcode) -> None:
    """By address inside a head, head after head; nothing is written."""
    word = append(32, 20, (0, 2)) if opcode == Opcode.KV_APPEND else read(32, 20, (0, 2))
    state = registers(True, kv_base=0x40000, kv_head=0x400)
    bench = ProgramBench([word, END], registers=state)
    bench.memory = np.zeros(0x40480, np.uint8)
    sram = bench.sram.copy()
    error = bench.run().error
    code = ErrorCode.WRITE_ERROR if opcode == Opcode.KV_APPEND else ErrorCode.READ_ERROR
    engine = Engine.ST if opcode == Opcode.KV_APPEND else Engine.LD
    assert error == ErrorReport(code, engine, 0, 0x40480)
    assert not bench.memory[0x40000:].any()
    assert np.array_equal(bench.sram, sram)


def test_a_read_of_nothing() -> None:
    """At position 0 there is no earlier key: nothing is read, checked or written."""
    words = [read(16, length(16, 1), (0, 255)), END]
    bench = ProgramBench(words, registers=registers(True, kv_cap=0, kv_layer=0xFFFFFF00))
    before = bench.sram.copy()
    result = bench.run()
    assert result.error is None
    assert result.executed == 2
    assert np.array_equal(before, bench.sram)


def test_registers_of_the_cache_can_be_set() -> None:
    """The same append with registers of the host, and with SET."""
    rng = seeded(604)
    data = integers(rng, np.int8, (2, 16))
    words = [append(16, 2, (3, 1), gp.V, layer=2), END]
    values = {
        SetReg.KVBASE: 0x30000,
        SetReg.KVLAYER: 0x1000,
        SetReg.KVHEAD: 0x100,
        SetReg.KVVOFF: 0x800,
        SetReg.KVCAP: 2,
    }
    sets = [set_register(register, value) for register, value in values.items()]
    for program, state in (
        (sets + words, registers(True)),
        (words, {name.name.lower().replace("kv", "kv_"): v for name, v in values.items()}),
    ):
        bench = ProgramBench(program, registers=state)
        bench.put(ROWS, data)
        assert bench.run().error is None
        at = 0x30000 + 2 * 0x1000 + 0x800 + 3 * 0x100
        assert np.array_equal(bench.memory[at : at + 32].view(np.int8).reshape(2, 16), data)
