# SPDX-License-Identifier: Apache-2.0
"""The instruction-level model, one instruction at a time, on whole SRAM and memory images.

The SRAM starts with a guard pattern: a test compares every byte of it, so a word too many, a lane
past a row's end that is not zero, or a wrong pitch shows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import gemm as gemm_ops
from golden import layernorm, rope, softmax, vec
from golden.gemm import Post
from golden.machine import ChipConfig, RunResult
from spec.isa import GemmA, GemmOp, Instruction, Opcode, SmxOut, VecOp
from spec.isa.operands import up
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_programs import END, ProgramBench, gemm, pfx
from tests.python.golden.golden_support import Rng, integers, random_norm, seeded
from weights.model import Linear

A_DTYPES: list[type[np.integer[Any]]] = [np.int8, np.uint8, np.int16, np.uint16]


Write = tuple[int, npt.NDArray[Any], int | None]


def expect(bench: ProgramBench, writes: list[Write]) -> RunResult:
    """Run and compare the whole SRAM with the old one plus the given matrices.

    `writes` holds (byte address, rows, pitch in bytes or None). The log of SRAM writes must lead
    from the old SRAM to the new one and name only the words of the matrices.
    """
    before = bench.sram.copy()
    reference = ProgramBench([])
    reference.sram = before.copy()
    words = 0
    for address, rows, pitch in writes:
        reference.put(address, rows, pitch)
        raw = np.atleast_2d(rows)
        words += raw.shape[0] * up(raw.shape[1] * raw.itemsize, 16) // 16
    result = bench.run()
    assert result.error is None
    assert result.races == []
    different = np.flatnonzero(bench.sram != reference.sram)
    assert different.size == 0, f"first differing SRAM byte {different[0]:#x}"
    for write in result.sram_writes:
        before[write.address * 16 :][: write.data.size] = write.data.reshape(-1)
    assert np.array_equal(before, bench.sram)
    assert sum(len(write.data) for write in result.sram_writes) == words
    return result


@pytest.mark.parametrize(("rows", "size", "cp", "k"), [(1, 16, 0, 0), (5, 33, 0, 4), (7, 1, 3, 0)])
def test_dma_load(rows: int, size: int, cp: int, k: int) -> None:
    """Rows at both pitches; the rest of a last word becomes zero."""
    rng = seeded(300)
    word = Instruction(Opcode.DMA_LOAD, 0, 0x100, 0x40, 0, rows, size, k, 1)
    bench = ProgramBench([*([pfx(cp=cp)] if cp else []), word, END])
    bench.memory[0x30000:] = rng.integers(0, 256, gp.MEMORY_BYTES - 0x30000)
    pitch = 16 * k or up(size, 16)
    lines = [bench.memory[0x30040 + i * pitch :][:size] for i in range(rows)]
    image = bench.memory.copy()
    expect(bench, [(0x1000, np.stack(lines), 16 * cp or None)])
    assert np.array_equal(bench.memory[0x30000:], image[0x30000:])


@pytest.mark.parametrize(("rows", "size", "cp", "k"), [(1, 16, 0, 0), (5, 33, 4, 3), (7, 1, 0, 2)])
def test_dma_store(rows: int, size: int, cp: int, k: int) -> None:
    """Rows at both pitches; the bytes behind a row keep their values."""
    rng = seeded(301)
    word = Instruction(Opcode.DMA_STORE, 0, 0x100, 0x40, 0, rows, size, k, 1)
    bench = ProgramBench([*([pfx(cp=cp)] if cp else []), word, END])
    bench.memory[:] = rng.integers(0, 256, gp.MEMORY_BYTES)
    data = rng.integers(0, 256, (rows, size)).astype(np.uint8)
    bench.put(0x1000, data, 16 * cp or None)
    expected = bench.memory.copy()
    for index, row in enumerate(data):
        expected[0x30040 + index * (16 * k or up(size, 16)) :][:size] = row
    expect(bench, [])
    assert np.array_equal(bench.memory[0x8000:], expected[0x8000:])


@pytest.mark.parametrize("a_type", list(GemmA))
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 17, 5), (9, 16, 33), (64, 40, 16)])
def test_gemm_int32_of_row_major_b(a_type: GemmA, transpose: bool, m: int, n: int, k: int) -> None:
    """Sums and planes with natural pitches, and with pitches of our own."""
    rng = seeded(310)
    a, b = integers(rng, A_DTYPES[a_type], (m, k)), integers(rng, np.int8, (k, n))
    planes = gemm_ops.accumulate(a, b).reshape(-1, n)
    mode = a_type | gp.OUT_INT32
    for pitches in ((0, 0, 0), (up(n, 4) // 4 + 1, up(2 * k, 16) // 16, 9)):
        cp, ap, bp = (16 * pitch or None for pitch in pitches)
        word = gemm(0x1000, 0x100, 0x800, m, n, k, mode, gp.TRANSPOSE if transpose else 0)
        bench = ProgramBench([pfx(*pitches), word, END])
        bench.put(0x1000, a, ap)
        bench.put(0x8000, b.T if transpose else b, bp)
        expect(bench, [(0x10000, planes, cp)])


def test_gemm_without_mode() -> None:
    """The original instruction: int32 without, int8 with scale and shift, partial sums at dst."""
    rng = seeded(311)
    a, b = integers(rng, np.int8, (6, 20)), integers(rng, np.int8, (20, 7))
    sums = gemm_ops.accumulate(a, b)
    partial = integers(rng, np.int32, (1, 6, 7))
    for flags, imm, result in (
        (0, 0, sums[0]),
        (gp.REQUANT, 201 | 15 << 8, gemm_ops.gemm(a, b, gemm_ops.per_tensor(201, 15))),
        (gp.ACCUMULATE, 0, gemm_ops.accumulate(a, b, partial)[0]),
    ):
        word = Instruction(Opcode.GEMM, flags, 0x1000, 0x100, 0x800, 6, 7, 20, imm)
        bench = ProgramBench([word, END])
        bench.put(0x1000, a)
        bench.put(0x8000, b)
        bench.put(0x10000, partial[0])
        expect(bench, [(0x10000, result, None)])


def tiles(values: npt.NDArray[np.int8], edge: int) -> npt.NDArray[np.uint8]:
    """Return (positions, lanes) int8 in tile order with garbage in the unused cells."""
    positions, lanes = values.shape
    padded = np.full((up(positions, edge), up(lanes, edge)), 77, np.int8)
    padded[:positions, :lanes] = values
    parts = [
        padded[p : p + edge, c : c + edge]
        for p in range(0, padded.shape[0], edge)
        for c in range(0, padded.shape[1], edge)
    ]
    return np.concatenate([part.reshape(-1) for part in parts]).view(np.uint8)


@pytest.mark.parametrize("edge", [16, 32])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (3, 17, 40), (9, 35, 16)])
def test_gemm_of_tile_order_b(edge: int, transpose: bool, m: int, n: int, k: int) -> None:
    """Positions run along N with TRANSPOSE_B, along K without; garbage beyond is not seen."""
    rng = seeded(312)
    a, b = integers(rng, np.int8, (m, k)), integers(rng, np.int8, (k, n))
    flags = gp.TRANSPOSE if transpose else 0
    word = gemm(0x1000, 0x100, 0x800, m, n, k, gp.B_TILES | gp.OUT_INT32, flags)
    bench = ProgramBench([word, END], config=ChipConfig(array_dim=edge))
    bench.put(0x1000, a)
    bench.put(0x8000, tiles(b.T if transpose else b, edge))
    expect(bench, [(0x10000, gemm_ops.accumulate(a, b)[0], None)])


def channel_layer(rng: Rng, k: int, n: int) -> Linear:
    """Return a requantised linear layer with full-range weights."""
    weight = np.clip(integers(rng, np.int8, (k, n)), -127, 127).astype(np.int8)
    bias = rng.integers(-(1 << 16), 1 << 16, n).astype(np.int32)
    mult = rng.integers(1 << 14, 1 << 15, n).astype(np.uint16)
    shift = rng.integers(22, 25, n).astype(np.uint8)
    return Linear(weight, bias, mult, shift)


@pytest.mark.parametrize("edge", [4, 8, 16, 32])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (5, 17, 50), (33, 64, 16)])
def test_gemm_of_streamed_b(edge: int, bias: bool, m: int, n: int, k: int) -> None:
    """Channel records with and without bias, table, and a residual add in place."""
    rng = seeded(313)
    layer = channel_layer(rng, k, n)
    weight = layer.weight
    a = integers(rng, np.int8, (m, k))
    tile = max(16, edge)
    config = ChipConfig(array_dim=edge)
    flags = gp.REQUANT | (gp.BIAS if bias else 0)
    requant = gemm_ops.per_channel(layer.mult, layer.shift, layer.bias if bias else None)
    table = integers(rng, np.int8, (256,))
    mode = gp.B_STREAM | gp.Q_CHANNEL | gp.TABLE
    share = gp.linear_share(layer, table, tile)
    bench = ProgramBench([gemm(0x1000, 0x100, 0, m, n, k, mode, flags), END], share, config)
    bench.put(0x1000, a)
    result = expect(bench, [(0x10000, gemm_ops.gemm(a, weight, requant, Post(table=table)), None)])
    assert result.stream_offset == len(share)

    d = integers(rng, np.int16, (m, n))
    mode = gp.B_STREAM | gp.Q_CHANNEL | gp.OUT_INT16 | gp.OP_ADD
    share = gp.linear_share(layer, None, tile)
    bench = ProgramBench([gemm(0x1000, 0x100, 0x1000, m, n, k, mode, flags), END], share, config)
    bench.put(0x1000, a)
    bench.put(0x10000, d)
    post = Post(16, combine=GemmOp.ADD, d=d)
    expect(bench, [(0x10000, gemm_ops.gemm(a, weight, requant, post), None)])


def test_gemm_tensor_factor_from_the_stream_with_mul() -> None:
    """Q = 1 with B and the factor D in SRAM, each with its own pitch; ReLU in between."""
    rng = seeded(314)
    a, b = integers(rng, np.int8, (6, 30)), integers(rng, np.int8, (30, 20))
    d = integers(rng, np.int8, (6, 20))
    share = (20011).to_bytes(2, "little") + bytes([23]) + bytes(61)
    mode = gp.Q_TENSOR | gp.OP_MUL
    program = [pfx(cp=3, bp=5, d=0x1800, dp=7, imm=17003, sh=20)]
    program += [gemm(0x1000, 0x100, 0x800, 6, 20, 30, mode, gp.REQUANT | gp.RELU), END]
    bench = ProgramBench(program, share)
    bench.put(0x1000, a)
    bench.put(0x8000, b, 80)
    bench.put(0x18000, d, 112)
    post = Post(relu=True, combine=GemmOp.MUL, d=d, mul=17003, sh=20)
    expected = gemm_ops.gemm(a, b, gemm_ops.per_tensor(20011, 23), post)
    assert np.unique(expected).size > 16
    expect(bench, [(0x10000, expected, 48)])


@pytest.mark.parametrize(("edge", "n"), [(16, 20), (32, 33)])
def test_gemm_channel_factors_with_b_in_sram(edge: int, n: int) -> None:
    """A share of table and records alone, behind a share that another instruction takes."""
    rng = seeded(316)
    layer = channel_layer(rng, 30, n)
    a, table = integers(rng, np.int8, (6, 30)), integers(rng, np.int8, (256,))
    records = b"".join(gp.channel_records(layer, edge))
    first = Instruction(Opcode.GELU, 0, 0x2000, 0x100, 0, 1, 16, 0, 1)
    mode, flags = gp.Q_CHANNEL | gp.TABLE, gp.REQUANT | gp.BIAS
    program = [first, gemm(0x1000, 0x100, 0x800, 6, n, 30, mode, flags), END]
    other = integers(rng, np.int8, (256,))
    stream = other.tobytes() + table.tobytes() + records
    bench = ProgramBench(program, stream, ChipConfig(array_dim=edge))
    bench.put(0x1000, a)
    bench.put(0x8000, layer.weight)
    looked = other[a[:1, :16].view(np.uint8)]
    requant = gemm_ops.per_channel(layer.mult, layer.shift, layer.bias)
    expected = gemm_ops.gemm(a, layer.weight, requant, Post(table=table))
    result = expect(bench, [(0x20000, looked, None), (0x10000, expected, None)])
    assert result.stream_offset == len(stream)


def test_gemm_row_factors_and_partial_planes() -> None:
    """P.V in two steps: int32 planes of the first keys, then the rest divided by the sums."""
    rng = seeded(315)
    numer, sums = softmax.numerators16(integers(rng, np.int16, (10, 48)) >> 6)
    v = integers(rng, np.int8, (48, 18))
    mode = gp.A_UINT16 | gp.B_ROWS
    program = [
        pfx(ap=6),
        gemm(0x1000, 0x100, 0x800, 10, 18, 32, mode | gp.OUT_INT32),
        gp.barrier(),
        pfx(ap=6, d=0x1000, imm=0x1800),
        gemm(0x1400, 0x104, 0x840, 10, 18, 16, mode | gp.Q_ROW, gp.REQUANT | gp.ACCUMULATE),
        END,
    ]
    bench = ProgramBench(program)
    bench.put(0x1000, numer)
    bench.put(0x8000, v)
    words = np.zeros((10, 4), np.uint32)
    words[:, 0] = sums
    bench.put(0x18000, words)
    partial = gemm_ops.accumulate(numer[:, :32], v[:32]).reshape(-1, 18)
    context = gemm_ops.gemm(numer, v, gemm_ops.per_row(sums))
    expect(bench, [(0x10000, partial, None), (0x14000, context, None)])


@pytest.mark.parametrize("n", [1, 16, 37])
@pytest.mark.parametrize("wide", [False, True])
def test_vec(n: int, wide: bool) -> None:
    """Every operation on both widths, with natural and with other pitches."""
    rng = seeded(320)
    dtype: type[np.integer[Any]] = np.int16 if wide else np.int8
    a, b = integers(rng, dtype, (5, n)), integers(rng, dtype, (5, n))
    both = 0x30 if wide else 0
    other = 0x10 if wide else 0x20
    bits = 16 if wide else 8
    negative = vec.scale_shift(a, 0x8123 - 0x10000, 9, bits)
    cases: list[tuple[VecOp, int, int, int, npt.NDArray[Any], bool]] = [
        (VecOp.ADD, both, 0x800, 0, vec.add(a, b), True),
        (VecOp.SUB, both, 0x800, 0, vec.sub(a, b), True),
        (VecOp.MUL, both | 5 << 8, 0x800, 0, vec.mul(a, b, 5), True),
        (VecOp.SCALE_SHIFT, both | 9 << 8, 0, 0x8123, negative, False),
        (VecOp.SCALE_SHIFT, other | 3 << 8, 0, 77, vec.scale_shift(a, 77, 3, 24 - bits), False),
        (VecOp.CLAMP, both, 0xFFF0, 90, vec.clamp(a, -16, 90), False),
        (VecOp.RELU, both, 0, 0, vec.relu(a), False),
        (VecOp.COPY2D, both, 0, 0, a, False),
    ]  # fmt: skip
    for op, imm, src1, k, expected, two in cases:
        for pitch in (0, 6):
            word = Instruction(Opcode.VEC, 0, 0x1000, 0x100, src1, 5, n, k, op | imm)
            bench = ProgramBench([pfx(pitch, pitch, pitch if two else 0), word, END])
            bench.put(0x1000, a, 16 * pitch or None)
            bench.put(0x8000, b, 16 * pitch or None)
            expect(bench, [(0x10000, expected, 16 * pitch or None)])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("opcode", [Opcode.VEC, Opcode.GELU, Opcode.SILU])
def test_table_lookup_in_place(opcode: Opcode, streamed: bool) -> None:
    """VEC TABLE, GELU and SILU, the table from SRAM or from the stream, C over A."""
    rng = seeded(321)
    a, table = integers(rng, np.int8, (4, 21)), integers(rng, np.int8, (256,))
    imm = (VecOp.TABLE | streamed << 6) if opcode == Opcode.VEC else int(streamed)
    word = Instruction(opcode, 0, 0x100, 0x100, 0 if streamed else 0x800, 4, 21, 0, imm)
    bench = ProgramBench([word, END], table.tobytes() if streamed else b"")
    bench.put(0x1000, a)
    bench.put(0x8000, table)
    expect(bench, [(0x1000, table[a.view(np.uint8)], None)])


@pytest.mark.parametrize("out", list(SmxOut))
@pytest.mark.parametrize("int8", [False, True])
@pytest.mark.parametrize(("n", "heads", "pos"), [(1, 1, 0), (9, 3, 2), (40, 2, 36)])
def test_softmax(out: int, int8: bool, n: int, heads: int, pos: int) -> None:
    """Numerators and probabilities of up(N, 16) columns, sums in words, causal by POS and head."""
    rng = seeded(330)
    dtype: type[np.integer[Any]] = np.int8 if int8 else np.int16
    scores = integers(rng, dtype, (4 * heads, n)) >> (0 if int8 else 5)
    values: npt.NDArray[Any]
    sums = np.zeros((4 * heads, 4), np.uint32)
    if out == SmxOut.PROB8:
        values = softmax.probabilities(scores, causal=True, pos=pos, rows_per_head=4)
    else:
        function = softmax.numerators8 if out == SmxOut.NUMER8 else softmax.numerators16
        values, sums[:, 0] = function(scores, causal=True, pos=pos, rows_per_head=4)
    padded = np.zeros((4 * heads, up(n, 16)), values.dtype)
    padded[:, :n] = values
    imm = out | int8 << 2
    src1 = 0x1800 if out else 0
    word = Instruction(Opcode.SOFTMAX, gp.CAUSAL, 0x1000, 0x100, src1, 4 * heads, n, 4, imm)
    bench = ProgramBench([word, END], pos=pos)
    bench.put(0x1000, scores)
    second: list[Write] = [(0x18000, sums, None)] if out else []
    expect(bench, [(0x10000, padded, None), *second])


def test_softmax_in_place() -> None:
    """u16 numerators over int16 scores at one pitch that holds both."""
    rng = seeded(331)
    scores = integers(rng, np.int16, (6, 20)) >> 5
    numer, sums = softmax.numerators16(scores)
    padded = np.zeros((6, 32), np.uint16)
    padded[:, :20] = numer
    words = np.zeros((6, 4), np.uint32)
    words[:, 0] = sums
    program = [pfx(4, 4), Instruction(Opcode.SOFTMAX, 0, 0x100, 0x100, 0x800, 6, 20, 0, 2), END]
    bench = ProgramBench(program)
    bench.put(0x1000, scores, 64)
    expect(bench, [(0x1000, padded, 64), (0x8000, words, None)])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("opcode", [Opcode.LAYERNORM, Opcode.RMSNORM])
@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 37), (3, 64)])
def test_norm(streamed: bool, wide: bool, opcode: Opcode, m: int, n: int) -> None:
    """Both norms and widths, parameters from SRAM or from the stream."""
    rng = seeded(340)
    norm = random_norm(rng, n)
    x = integers(rng, np.int16, (m, n))
    function = layernorm.norm16 if wide else layernorm.norm8
    rms = opcode == Opcode.RMSNORM
    expected = function(x, norm.eps_term, norm.gain, norm.shift, norm.bias, rms=rms)
    if n > 1:
        other = function(x, norm.eps_term, norm.gain, norm.shift, norm.bias, rms=not rms)
        assert not np.array_equal(expected, other)
    share = gp.norm_share(norm)
    imm = int(streamed) | wide << 1
    word = Instruction(opcode, 0, 0x1000, 0x100, 0 if streamed else 0x800, m, n, 0, imm)
    bench = ProgramBench([word, END], share if streamed else b"")
    bench.put(0x1000, x)
    bench.put(0x8000, np.frombuffer(share, np.uint8))
    expect(bench, [(0x10000, expected, None)])


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize(
    ("m", "n", "heads", "pitches"),
    [(1, 2, 1, (0, 0, 0)), (3, 20, 3, (7, 8, 4)), (5, 64, 2, (0, 0, 0))],
)
def test_rope(
    pairs: bool, in_place: bool, m: int, n: int, heads: int, pitches: tuple[int, int, int]
) -> None:
    """Heads of whole words, one row of angles for all heads of a row, zeros behind a head."""
    rng = seeded(350)
    width = up(n, 16)
    cp, ap, bp = pitches
    cp = ap if in_place else cp
    x = integers(rng, np.int8, (m, heads, width))
    angles = integers(rng, np.int16, (m, n // 2, 2))
    expected = np.zeros(x.shape, np.int8)
    cos, sin = angles[:, None, :, 0], angles[:, None, :, 1]
    expected[:, :, :n] = rope.rotate(x[:, :, :n], cos, sin, pairs=pairs)
    dst = 0x100 if in_place else 0x1000
    word = Instruction(Opcode.ROPE, 0, dst, 0x100, 0x800, m, n, heads, int(pairs))
    bench = ProgramBench([pfx(cp, ap, bp), word, END])
    bench.put(0x1000, x.reshape(m, -1), 16 * ap or None)
    bench.put(0x8000, angles.reshape(m, -1), 16 * bp or None)
    expect(bench, [(16 * dst, expected.reshape(m, -1), 16 * cp or None)])
