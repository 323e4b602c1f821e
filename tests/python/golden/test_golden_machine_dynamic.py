# SPDX-License-Identifier: Apache-2.0
"""Dynamic dimensions: the same results as with numbers, zero, caps, and CONTEXT_FULL."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from golden import gemm as gemm_ops
from golden.machine import ChipConfig, RunResult
from spec.isa import Engine, ErrorCode, GemmA, Instruction, Opcode, SetReg, VecOp
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_programs import END, ProgramBench, gemm, length, pfx, set_register
from tests.python.golden.golden_support import integers, seeded

FULL = ErrorCode.CONTEXT_FULL


def keys(pos: int, window: int, edge: int) -> int:
    """Return LEN: POS + 1 less the keys before the tile in which the window begins."""
    hidden = 0
    while window and hidden + edge <= pos + 1 - window:
        hidden += edge
    return pos + 1 - hidden


def test_keys_by_hand() -> None:
    """The last 10 of 40 positions begin at 30, in the tile of 16."""
    assert keys(39, 10, 16) == 24
    assert keys(39, 10, 32) == 40
    assert keys(39, 8, 32) == 8
    assert keys(8, 9, 16) == 9


def run(words: list[Instruction], pos: int, window: int, edge: int, share: bytes) -> ProgramBench:
    """Run on an SRAM of random bytes that depends on nothing but the seed."""
    bench = ProgramBench([*words, END], share, ChipConfig(array_dim=edge), pos=pos)
    bench.registers = {"window": window}
    rng = np.random.default_rng(650)
    bench.sram[:] = rng.integers(0, 256, bench.sram.size)
    result = bench.run()
    assert result.error is None
    assert result.races == []
    return bench


CASES = {
    "gemm rows": (gemm(0x1000, 0x100, 0x800, 1, 9, 33), "m", pfx()),
    "gemm columns": (gemm(0x1000, 0x100, 0x800, 5, 1, 33), "n", pfx(cp=16, bp=4)),
    "gemm inner": (gemm(0x1000, 0x100, 0x800, 5, 9, 1), "k", pfx(ap=4)),
    "gemm transposed": (
        gemm(0x1000, 0x100, 0x800, 5, 9, 1, None, gp.TRANSPOSE),
        "k",
        pfx(ap=4, bp=4),
    ),
    "gemm tiles": (
        gemm(0x1000, 0x100, 0x800, 5, 1, 20, gp.B_TILES | gp.OUT_INT32, gp.TRANSPOSE),
        "n",
        pfx(cp=16),
    ),
    "gemm of numerators": (
        gemm(0x1000, 0x100, 0x800, 5, 20, 1, gp.A_UINT16 | gp.B_TILES | gp.OUT_INT32),
        "k",
        pfx(ap=8),
    ),
    "gemm of planes": (
        gemm(0x1000, 0x100, 0x800, 1, 9, 16, gp.A_INT16, gp.ACCUMULATE | gp.REQUANT),
        "m",
        pfx(d=0x1800, imm=77, sh=25),
    ),
    "gemm sums": (
        gemm(0x1000, 0x100, 0x800, 1, 9, 16, gp.Q_ROW, gp.REQUANT),
        "m",
        pfx(imm=0x1800),
    ),
    "vec": (
        Instruction(Opcode.VEC, 0, 0x1000, 0x100, 0x800, 1, 20, 0, VecOp.SUB),
        "m",
        pfx(),
    ),
    "gelu": (Instruction(Opcode.GELU, 0, 0x1000, 0x100, 0x800, 1, 20), "m", pfx()),
    "norm": (Instruction(Opcode.LAYERNORM, 0, 0x1000, 0x100, 0x800, 1, 20), "m", pfx()),
    "rope": (Instruction(Opcode.ROPE, 0, 0x1000, 0x100, 0x800, 1, 20, 2), "m", pfx()),
    "softmax rows": (
        Instruction(Opcode.SOFTMAX, gp.CAUSAL, 0x1000, 0x100, 0x1800, 1, 20, 0, 2),
        "m",
        pfx(),
    ),
    "softmax columns": (
        Instruction(Opcode.SOFTMAX, gp.CAUSAL, 0x1000, 0x100, 0x1800, 6, 1, 0, 1),
        "n",
        pfx(cp=4, ap=8),
    ),
}
"""Instruction, its dynamic field with the cap 64, and the pitches that are natural at the cap."""


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("edge", [16, 32])
@pytest.mark.parametrize(
    ("pos", "window", "v", "base"),
    [
        (0, 0, 0, 0),
        (1, 0, 1, 0),
        (36, 0, 0, 0),
        (63, 0, 0, 0),
        (90, 0, 1, 0),
        (90, 20, 0, 0),
        (70, 20, 0, 0),
        (130, 70, 1, 0),
        (47, 0, 1, 32),
        (90, 0, 0, 32),
        (200, 0, 0, 32),
    ],
)
def test_a_dynamic_dimension_is_its_value(
    name: str, edge: int, pos: int, window: int, v: int, base: int
) -> None:
    """The same SRAM as with the number itself and the pitches that are natural at the cap."""
    word, field, pitches = CASES[name]
    base = base if word.opcode == Opcode.GEMM else 0
    value = min(keys(pos, window, edge) - v - base, 64)
    if name == "softmax columns" and value == 64:
        pos, window, value = 63 + v, 0, 64
    share = bytes(64)
    given = pfx(base=base, d=pitches.m, imm=pitches.imm, sh=pitches.flags)
    dynamic = run([given, replace(word, **{field: length(64, v)})], pos, window, edge, share)
    static = run([pitches, replace(word, **{field: value})], pos, window, edge, share)
    assert np.array_equal(dynamic.sram, static.sram)
    untouched = run([], pos, window, edge, share)
    assert not np.array_equal(dynamic.sram, untouched.sram)


ZERO = [
    (gemm(0x1000, 0x100, 0x800, length(16, 1), 9, 33), 0),
    (gemm(0x1000, 0x100, 0x800, 5, length(16, 1), 33), 0),
    (gemm(0x1000, 0x100, 0, length(16, 1), 16, 16, gp.B_STREAM | gp.Q_CHANNEL, gp.REQUANT), 384),
    (gemm(0x1000, 0x100, 0x800, 4, length(16, 1), 16, gp.Q_TENSOR | gp.TABLE, gp.REQUANT), 320),
    (Instruction(Opcode.VEC, 0, 0x1000, 0x100, 0x800, length(16, 1), 20), 0),
    (Instruction(Opcode.VEC, 0, 0x1000, 0x100, 0, length(16, 1), 20, 0, VecOp.TABLE | 64), 256),
    (Instruction(Opcode.SILU, 0, 0x1000, 0x100, 0, length(16, 1), 20, 0, 1), 256),
    (Instruction(Opcode.LAYERNORM, 0, 0x1000, 0x100, 0, length(16, 1), 20, 0, 1), 192),
    (Instruction(Opcode.RMSNORM, 0, 0x1000, 0x100, 0, length(16, 1), 16, 0, 1), 128),
    (Instruction(Opcode.ROPE, 0, 0x1000, 0x100, 0x800, length(16, 1), 20, 2), 0),
    (Instruction(Opcode.SOFTMAX, 0, 0x1000, 0x100, 0x800, length(16, 1), 20, 0, 2), 0),
    (Instruction(Opcode.SOFTMAX, 0, 0x1000, 0x100, 0x800, 4, length(16, 1), 0, 2), 0),
    (Instruction(Opcode.KV_READ, 0, 0x1000, n=20, k=length(16, 1)), 0),
]


@pytest.mark.parametrize(("word", "share"), ZERO)
def test_zero_drops_the_instruction_but_takes_its_share(word: Instruction, share: int) -> None:
    """Nothing is written, the next instruction finds its own share, a short stream is noticed."""
    last = Instruction(Opcode.GELU, 0, 0x3000, 0x100, 0, 1, 16, 0, 1)
    bench = ProgramBench([word, last, END], bytes(share) + bytes([7]) * 256)
    result = bench.run()
    assert result.error is None
    assert result.executed == 3
    assert [write.instr for write in result.sram_writes] == [1]
    assert bench.sram[0x30000:0x30010].tolist() == [7] * 16
    assert result.stream_offset == share + 256
    if share:
        error = ProgramBench([word, END], bytes(share - 64)).run().error
        assert error is not None
        assert (error.code, error.instr) == (ErrorCode.STREAM_END, 0)
    done = ProgramBench([word, END], bytes(share), pos=1).run()
    assert done.error is None or word.opcode == Opcode.KV_READ
    assert done.sram_writes or word.opcode == Opcode.KV_READ


def test_a_zero_is_still_checked_for_its_range() -> None:
    """Checks that do not depend on registers are made, with the cap."""
    word = gemm(0x3FF1, 0x100, 0x800, length(16, 1), 9, 33)
    error = ProgramBench([word, END]).run().error
    assert error is not None
    assert (error.code, error.address) == (ErrorCode.SRAM_RANGE, 0x3FF10)


@pytest.mark.parametrize("a_type", list(GemmA))
@pytest.mark.parametrize("b_form", [gp.B_ROWS, gp.B_TILES])
@pytest.mark.parametrize("transpose", [False, True])
def test_an_inner_length_of_zero_is_an_empty_sum(a_type: int, b_form: int, transpose: bool) -> None:
    """Partial sums pass through; nothing of A and B is read, so nothing races with them."""
    rng = seeded(651)
    passes = 2 if a_type in (GemmA.INT16, GemmA.UINT16) else 1
    partial = integers(rng, np.int32, (passes * 3, 5))
    flags = gp.TRANSPOSE if transpose else 0
    load = Instruction(Opcode.DMA_LOAD, 0, 0x100, m=1, n=64)
    words = [load, replace(load, dst=0x800), pfx(d=0x1800)]
    mode = a_type | b_form | gp.OUT_INT32
    words.append(gemm(0x1000, 0x100, 0x800, 3, 5, length(32, 1), mode, flags | gp.ACCUMULATE))
    words += [pfx(d=0x1800, imm=900, sh=20)]
    mode = a_type | b_form | gp.Q_PREFIX | gp.OUT_INT16
    flags |= gp.ACCUMULATE | gp.REQUANT
    words += [gemm(0x1400, 0x100, 0x800, 3, 5, length(32, 1), mode, flags), END]
    bench = ProgramBench(words)
    bench.put(0x18000, partial)
    result = bench.run()
    assert result.error is None
    assert result.races == []
    assert np.array_equal(bench.get(0x10000, partial.shape, np.int32), partial)
    planes = partial.reshape(passes, 3, 5).astype(np.int64)
    v = planes[0] if passes == 1 else planes[0] * 256 + planes[1]
    expected = np.clip((v * 900 + (1 << 19)) >> 20, -32768, 32767)
    assert np.array_equal(bench.get(0x14000, (3, 5), np.int16), expected)


def test_an_empty_sum_with_bias_table_and_operand() -> None:
    """Everything behind the sum applies."""
    rng = seeded(652)
    bias = rng.integers(-(1 << 20), 1 << 20, 7).astype(np.int32)
    records = np.zeros((16, 8), np.uint8)
    records[:7, :4] = bias.reshape(-1, 1).view(np.uint8)
    records[:7, 4:6] = np.full((7, 1), 1 << 14, "<u2").view(np.uint8)
    records[:7, 6] = 28
    table, d = integers(rng, np.int8, (256,)), integers(rng, np.int8, (2, 7))
    mode = gp.Q_CHANNEL | gp.TABLE | gp.OP_ADD
    word = gemm(0x1000, 0x100, 0x800, 2, 7, length(16, 1), mode, gp.REQUANT | gp.BIAS)
    bench = ProgramBench([pfx(d=0x1800), word, END], table.tobytes() + records.tobytes())
    bench.put(0x18000, d)
    assert bench.run().error is None
    y = np.clip((bias.astype(np.int64) * (1 << 14) + (1 << 27)) >> 28, -128, 127)
    expected = np.clip(table[y.astype(np.int8).view(np.uint8)].astype(int) + d, -128, 127)
    assert np.unique(expected).size > 8
    assert np.array_equal(bench.get(0x10000, (2, 7), np.int8), expected)


def outcome(result: RunResult) -> tuple[ErrorCode, int] | None:
    """Return code and address of the error, which must come from the sequencer or the bus."""
    if result.error is None:
        return None
    bus = result.error.code in (ErrorCode.READ_ERROR, ErrorCode.WRITE_ERROR)
    assert (result.error.engine == Engine.SEQ) != bus
    return result.error.code, result.error.address


@pytest.mark.parametrize("v", [0, 1])
@pytest.mark.parametrize(("window", "most"), [(0, 48), (1, 0), (33, 0), (40, 0)])
def test_softmax_is_never_cut_short(v: int, window: int, most: int) -> None:
    """A row of LEN - v columns must fit the cap; in a window it may fit at every position."""
    word = Instruction(Opcode.SOFTMAX, gp.CAUSAL, 0x1000, 0x100, 0x800, 1, length(48, v), 0, 2)
    for pos in range(v, 100):
        result = ProgramBench([word, END], pos=pos, registers={"window": window}).run(races=False)
        fits = keys(pos, window, 16) - v <= 48
        assert outcome(result) == (None if fits else (FULL, 0)), pos
        assert fits or window or pos >= most + v


APPEND = Instruction(Opcode.KV_APPEND, n=16, k=3, imm=0x0102, m=2)
READ = Instruction(Opcode.KV_READ, dst=0x100, n=16, k=3, imm=0x0102, m=2)


def cached(
    word: Instruction, pos: int = 0, base: int = 0, **registers: int
) -> tuple[ErrorCode, int] | None:
    """Return how a K/V instruction is refused; two heads, 2 and 3, of layer 2."""
    state = {"kv_cap": 1 << 20, "kv_base": 0x20000, "kv_in_memory": True} | registers
    bench = ProgramBench([pfx(base=base), word, END], pos=pos, registers=state)
    return outcome(bench.run())


def test_capacity_of_the_cache() -> None:
    """The last position of the transfer must lie below KVCAP; a window moves a read, no append."""
    assert cached(APPEND, 13, kv_cap=16) is None
    assert cached(APPEND, 14, kv_cap=16) == (FULL, 0)
    assert cached(APPEND, 0, 16, kv_cap=19) is None
    assert cached(APPEND, 0, 16, kv_cap=18) == (FULL, 0)
    assert cached(APPEND, 14, kv_cap=16, window=4) == (FULL, 0)
    assert cached(APPEND, (1 << 32) - 2, kv_cap=(1 << 32) - 1) == (FULL, 0)
    assert cached(READ, 9, kv_cap=3) is None
    assert cached(READ, 9, kv_cap=2) == (FULL, 0)
    assert cached(READ, 9, 32, kv_cap=34) == (FULL, 0)
    assert cached(READ, 40, window=8, kv_cap=35) is None
    assert cached(READ, 40, window=8, kv_cap=34) == (FULL, 0)
    assert cached(replace(READ, k=length(32)), 9, kv_cap=10) is None
    assert cached(replace(READ, k=length(32)), 9, kv_cap=9) == (FULL, 0)


def test_cache_in_memory_ends_within_32_bits() -> None:
    """The whole last tile row of the last head counts; the address is that of its position 0."""
    strides = {"kv_layer": 0x1000, "kv_head": 0x100}
    last = 2 * 0x1000 + 3 * 0x100
    top = (1 << 32) - 256
    for word, bus in ((APPEND, ErrorCode.WRITE_ERROR), (READ, ErrorCode.READ_ERROR)):
        assert cached(word, kv_base=top - last, **strides) == (bus, top - 0x100)
        assert cached(word, kv_base=top - last + 256, **strides) == (ErrorCode.BAD_ADDRESS, 0)
        values = replace(word, flags=gp.V)
        refusal = cached(values, kv_base=top - last, kv_voff=0x200, **strides)
        assert refusal == (ErrorCode.BAD_ADDRESS, 0x100)
    assert cached(APPEND, 14, kv_base=top - last, **strides) == (ErrorCode.BAD_ADDRESS, top)
    longer = replace(READ, k=17)
    assert cached(longer, kv_base=top - last, **strides) == (ErrorCode.BAD_ADDRESS, top)


def test_cache_in_sram_ends_within_the_sram() -> None:
    """Rows, staging tiles of the last head, then the piece of the last head."""
    bad = ErrorCode.SRAM_RANGE
    state = {"kv_in_memory": False, "kv_layer": 0x1000, "kv_head": 0x100}
    last = 2 * 0x1000 + 3 * 0x100
    for word in (APPEND, READ):
        assert cached(word, kv_base=0x3FF00 - last, **state) is None
        assert cached(word, kv_base=0x40000 - last, **state) == (bad, 0x40000)
        huge = {**state, "kv_layer": (1 << 32) - 256}
        assert cached(word, kv_base=0, **huge) == (bad, (3 * 0x100 - 512) % (1 << 32))
    assert cached(APPEND, 14, kv_base=0x3FF00 - last, **state) == (bad, 0x3FF00)
    assert cached(replace(READ, k=17), kv_base=0x3FF00 - last, **state) == (bad, 0x3FF00)
    staged = replace(APPEND, flags=gp.STAGE, dst=0x3FE0, src1=0x10)
    assert cached(staged) is None
    assert cached(staged, 14) == (bad, 0x3FF00)
    assert cached(staged, 28, window=10) is None
    assert cached(staged, 0, 16, kv_base=0x40000, **state) == (bad, 0x3FF00)
    assert cached(replace(staged, src0=0x3FFF), 14) == (bad, 0x3FFF0)
    assert cached(replace(READ, dst=0x3FFF), kv_base=0x40000, **state) == (bad, 0x3FFF0)


def test_positions_are_set_and_added() -> None:
    """SET POS and SET WINDOW decide a dynamic dimension from the next instruction on."""
    word = Instruction(Opcode.VEC, 0, 0x1000, 0x100, 0x800, length(64), 16)
    program = [set_register(SetReg.POS, 9), replace(word, dst=0x1000)]
    program += [set_register(SetReg.POS, 30, add=True), replace(word, dst=0x2000)]
    program += [set_register(SetReg.WINDOW, 3), replace(word, dst=0x3000)]
    program += [set_register(SetReg.WINDOW, 7, add=True), replace(word, dst=0x3400), END]
    result = ProgramBench(program, pos=55).run()
    assert result.error is None
    rows = [len(write.data) for write in result.sram_writes]
    assert rows == [10, 40, 40 - 32, 40 - 16]
    assert result.pos == 39


def test_the_sums_of_a_windowed_softmax_start_at_a_tile() -> None:
    """Column j of a row is key WSTART + j, also for stacked rows of two heads."""
    rng = seeded(653)
    scores = integers(rng, np.int16, (4, 32)) >> 5
    word = Instruction(Opcode.SOFTMAX, gp.CAUSAL, 0x1000, 0x100, 0x1800, 4, length(32), 2, 2)
    bench = ProgramBench([word, END], pos=40, registers={"window": 12})
    bench.put(0x1000, scores)
    assert bench.run().error is None
    numer = bench.get(0x10000, (4, 25), np.uint16, 64)
    sums = bench.get(0x18000, (4, 4), np.uint32)
    for row in range(4):
        own = 40 + row % 2
        for j in range(25):
            assert (numer[row, j] > 0) <= (own - 12 < 16 + j <= own)
        seen = scores[row, own - 11 - 16 : min(own - 16 + 1, 25)].astype(int)
        exact = 65535 * np.exp2((seen - seen.max()) / 64)
        assert abs(int(sums[row, 0]) - exact.sum()) < 13
    assert gemm_ops.per_row(sums[:, 0]).mult.min() > 0
