# SPDX-License-Identifier: Apache-2.0
"""GEMM alone: every form of B, A type, requantisation, output, second operand, and the argmax.

These tests follow the size of the array they run on; they run on every size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import cocotb
import numpy as np

from npu.asm import assemble
from spec.isa import (
    GEMM_LINES,
    WORD,
    GemmA,
    GemmB,
    GemmOp,
    GemmOut,
    GemmQ,
    Instruction,
    Opcode,
    SetReg,
    WeightFormat,
    WeightGroup,
)
from spec.isa.operands import up
from tb.bench.dut import Dut
from tb.bench.environment import INPUT, OUTPUT, Bench, full, turns
from tb.stimulus import Case, build_program, join, run_cases
from tb.stimulus.gemm_cases import (
    SOURCES,
    WIDE,
    Cut,
    GemmMode,
    GemmSize,
    argmax,
    build,
    classic,
    gemm,
    random_mode,
)
from tb.stimulus.lined_rows import with_effect, written_sums
from tb.stimulus.random_case import Generator, instruction
from tb.stimulus.sram_space import NoRoomError, Space

TAGS = ("gemm", "random")
TIMED = ("test_gemm_argmax_time", "test_gemm_idle_sums_time")

B_FORMS = (
    (GemmB.ROW_MAJOR, False),
    (GemmB.ROW_MAJOR, True),
    (GemmB.TILE, False),
    (GemmB.TILE, True),
    (GemmB.STREAM, False),
)
"""Forms of B, and whether it is transposed."""
A_TYPES = ((GemmA.INT8,), (GemmA.UINT8,), WIDE)
"""Types of A; two are 16 bits wide."""


def _sums_mode(a_type: GemmA, b_form: GemmB, transpose: bool, accumulate: bool) -> GemmMode:
    """Return the mode of exact int32 sums."""
    return GemmMode(
        a_type=a_type,
        b_form=b_form,
        transpose=transpose,
        requant=False,
        q=GemmQ.PREFIX,
        out=GemmOut.INT32,
        op=GemmOp.NONE,
        accumulate=accumulate,
        bias=False,
        relu=False,
        table=False,
    )


@cocotb.test
async def test_gemm_random(dut: Dut) -> None:
    """Random modes and shapes, several instructions in flight."""
    bench = await Bench.start(dut)
    config = bench.config
    make = partial(gemm, rows=config.acc_rows, edge=config.tile, depthwise=config.depthwise)
    await run_cases(bench, [make], count=60, programs=4)


@cocotb.test
async def test_gemm_classic(dut: Dut) -> None:
    """The instruction without a mode word: scale and shift, raw sums, accumulate over C."""
    bench = await Bench.start(dut)
    make = partial(classic, rows=bench.config.acc_rows, edge=bench.config.tile)
    await run_cases(bench, [make], count=50, programs=2)


@cocotb.test
async def test_gemm_shapes(dut: Dut) -> None:
    """Every remainder of M, N and K modulo 16 and the tile, exact int32 sums, all forms of B."""
    bench = await Bench.start(dut)
    edge = bench.config.tile
    for b_form in SOURCES:
        generators = []
        for low in range(1, edge + 2):
            shape = GemmSize(low, (low * 5) % (2 * edge) + 1, (low * 7) % (3 * edge) + 1)
            mode = _sums_mode(
                a_type=GemmA(low % 4),
                b_form=b_form,
                transpose=b_form != GemmB.STREAM and low % 2 == 1,
                accumulate=low % 3 == 0,
            )
            generators.append(partial(build, shape=shape, mode=mode, edge=edge))

        program, stream = build_program(bench, generators)
        execution = await bench.execute(program, stream, limit=1_000_000)
        assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_gemm_depthwise(dut: Dut) -> None:
    """Every number of columns from 1 past two tiles, one to four lines, one row to the most.

    Every third mode is drawn, the others are exact int32 sums, some of weights in groups, whose
    length stands where B from SRAM is transposed. Small arrays do not have it.
    """
    bench = await Bench.start(dut)
    if not bench.config.depthwise:
        return
    random, edge, rows = bench.random, bench.config.tile, bench.config.acc_rows
    generators = []
    for turn in range(1, 2 * edge + 2):
        m = rows if turn == 1 else turn if turn % 2 else int(random.integers(1, 6))
        drawn = random_mode(random, edge, depthwise=True)
        sums = _sums_mode(GemmA(turn % 2), GemmB.STREAM, False, accumulate=turn % 5 == 0)
        while not drawn.depthwise:
            drawn = random_mode(random, edge, depthwise=True)
        if turn % 3 == 1 and bench.config.narrow_formats:
            sums = replace(sums, fmt=WeightFormat.INT4G, group=WeightGroup.G64)
        mode = drawn if turn % 3 == 0 else replace(sums, depthwise=True)
        shape = GemmSize(m, turn, edge * (turn // 2 % GEMM_LINES + 1))
        generators.append(partial(build, shape=shape, mode=mode, edge=edge))
    program, stream = build_program(bench, generators)
    execution = await bench.execute(program, stream, limit=1_000_000)
    assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_gemm_lines(dut: Dut) -> None:
    """Rows in two to four lines of one to three tiles, each type of A, columns past two tiles.

    Lines lie apart or over each other, never one behind the other: whole rows have other sums,
    but for weights of narrow formats, which may all be zero. Every third mode is drawn, the others
    are exact int32 sums, some of weights in groups.
    """
    bench = await Bench.start(dut)
    random, edge, rows = bench.random, bench.config.tile, bench.config.acc_rows
    generators = []
    for turn in range(36):
        a_type, tiles = GemmA(turn % 4), turn // 12 + 1
        m = rows // 2 if turn < 2 else int(random.integers(1, 9))
        lines = turn // 3 % 3 + 2
        k = edge * tiles * lines - (int(random.integers(8)) if turn % 2 else 0)
        drawn = random_mode(random, edge)
        while drawn.b_form != GemmB.STREAM:
            drawn = random_mode(random, edge)
        mode = _sums_mode(a_type, GemmB.STREAM, False, accumulate=turn % 5 == 0)
        if turn % 3 == 0:
            mode = replace(drawn, a_type=a_type)
        elif turn % 3 == 1 and bench.config.narrow_formats:
            mode = replace(mode, fmt=WeightFormat.INT4G, group=WeightGroup.G64)
        line = edge * tiles * (2 if a_type in WIDE else 1) // WORD
        cut = Cut(
            lines,
            ap=(0, 1, line, lines * line + 1)[turn // 4 % 4],
            bp=(line + 1, 2 * lines * line, line - 1 or 2)[(turn + turn // 3 + turn // 9) % 3],
        )
        shape = GemmSize(m, turn + 4, k)
        make = partial(build, shape=shape, mode=mode, edge=edge, cut=cut)
        generators.append(make if mode.narrow else with_effect(make, edge))
    program, stream = build_program(bench, generators)
    execution = await bench.execute(program, stream, limit=1_000_000)
    assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_gemm_image(dut: Dut) -> None:
    """A filter of 3 x 3 over an image of pixels: one GEMM whose windows are lines of the image.

    Rows step from pixel to pixel, also over the ends of lines, where no window begins.
    """
    bench = await Bench.start(dut)
    edge, height, width = bench.config.tile, 6, 9
    across = width - 2
    for a_type in (GemmA.INT8, GemmA.UINT8, GemmA.INT16):
        mode = _sums_mode(a_type, GemmB.STREAM, transpose=False, accumulate=False)
        pixel = edge * (2 if a_type in WIDE else 1) // WORD
        shape = GemmSize((height - 3) * width + across, 2 * edge + 5, 9 * edge)
        cut = Cut(3, ap=pixel, bp=width * pixel)
        make = partial(build, shape=shape, mode=mode, edge=edge, cut=cut)
        space = Space(bench.random, bench.config.sram_bytes // WORD)
        case = with_effect(make, edge)(bench.random, space)
        execution = await bench.execute(*join(bench, [[case]]), limit=1_000_000)
        assert execution.finish.error is None, str(execution.finish.error)
        found = written_sums(case, edge, await bench.sync())
        image = case.data["A"].reshape(height, width, edge).astype(np.int64)
        filters = case.data["B"].reshape(3, 3, edge, shape.n).astype(np.int64)
        for y, x in np.ndindex(height - 2, across):
            window = image[y : y + 3, x : x + 3]
            expected = np.tensordot(window, filters, axes=3)
            assert np.array_equal(found[y * width + x], expected), f"window at {y}, {x}"


@cocotb.test
async def test_gemm_weights_at_the_start(dut: Dut) -> None:
    """Weights in the first words of the SRAM: their address is no number of words of a line."""
    bench = await Bench.start(dut)
    edge, tiles = bench.config.tile, 20
    mode = _sums_mode(GemmA.INT8, GemmB.ROW_MAJOR, transpose=False, accumulate=False)
    shape = GemmSize(2, 1, tiles * edge)
    words = 2 * shape.k  # little more than A, B and C take
    found = 0
    while found < turns(4):
        space = Space(bench.random, words)
        try:
            case = build(bench.random, space, shape=shape, mode=mode, edge=edge)
        except NoRoomError:
            continue
        if not 0 < case.words[-1].src1 * WORD < shape.k - edge:
            continue
        found += 1
        execution = await bench.execute(*join(bench, [[case]]), limit=1_000_000)
        assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_gemm_products_in_order(dut: Dut) -> None:
    """Rows of int32 that hold the pipe, then a product with D, a stage longer, then a plain one."""
    bench = await Bench.start(dut)
    edge = bench.config.tile
    sums = _sums_mode(GemmA.INT8, GemmB.ROW_MAJOR, transpose=False, accumulate=False)
    plain = replace(sums, requant=True, out=GemmOut.INT8)
    product = replace(plain, q=GemmQ.TENSOR, op=GemmOp.MUL)
    generators: list[Generator] = []
    for turn in range(turns(24)):
        for m, mode in ((24, sums), (turn % 3 + 1, product), (1, plain)):
            generators.append(partial(build, shape=GemmSize(m, edge, edge), mode=mode, edge=edge))
    program, stream = build_program(bench, generators)
    execution = await bench.execute(program, stream, limit=1_000_000)
    assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_gemm_largest(dut: Dut) -> None:
    """As many rows as the accumulators hold, and one long row."""
    bench = await Bench.start(dut)
    rows, edge = bench.config.acc_rows, bench.config.tile
    sums = partial(_sums_mode, transpose=False, accumulate=False)
    plain = sums(GemmA.INT8, GemmB.STREAM)
    wide = sums(GemmA.UINT16, GemmB.ROW_MAJOR)
    shapes = [(plain, GemmSize(rows, 33, 150)), (wide, GemmSize(rows // 2, 20, 70))]
    shapes += [(plain, GemmSize(1, 40, 4000)), (plain, GemmSize(2, 1500, 40))]
    for mode, shape in shapes:
        make = partial(build, shape=shape, mode=mode, edge=edge)
        program, stream = build_program(bench, [make])
        execution = await bench.execute(program, stream, limit=1_000_000)
        assert execution.finish.error is None, str(execution.finish.error)


@cocotb.test
async def test_gemm_single_rows(dut: Dut) -> None:
    """One row over several inner tiles behind a slow GEMM: both weight sets wait, rows crowd."""
    bench = await Bench.start(dut)
    text = ""
    for turn in range(8):
        c, k = 0x30000 + turn * 0x200, 40 + turn
        text += f"""
            GEMM dst={0x10000 + turn * 0x4000:#x} src0=0x0 src1=0x2000 M=128 N=32 K=16 out=i32
            GEMM dst={c:#x} src0=0x4000 src1=0x5000 M=1 N=40 K={k} out=i32
            GEMM dst={c + 0x100:#x} src0=0x4000 src1=0x8000 M=1 N=40 K=64 T out=i32
        """
    await bench.execute(assemble(text + "END").instructions)


@cocotb.test
async def test_gemm_tables(dut: Dut) -> None:
    """Short instructions in a row, each with its own activation table: rows look up in theirs."""
    bench = await Bench.start(dut)
    random, edge = bench.random, bench.config.tile
    generators = []
    for turn in range(72):
        mode = GemmMode(
            a_type=GemmA(turn % 2),
            b_form=GemmB(turn // 4 % 3),
            transpose=False,
            requant=True,
            q=GemmQ(turn % 4),
            out=GemmOut.INT8,
            op=GemmOp.ADD if turn % 5 == 0 else GemmOp.NONE,
            accumulate=False,
            bias=False,
            relu=False,
            table=True,
        )
        m, n, k = (int(random.integers(1, last + 1)) for last in (4, 2 * edge, 2 * edge))
        generators.append(partial(build, shape=GemmSize(m, n, k), mode=mode, edge=edge))
    program, stream = build_program(bench, generators)
    execution = await bench.execute(program, stream, limit=1_000_000)
    assert execution.finish.error is None, str(execution.finish.error)


async def _walk(bench: Bench, dimension: str) -> None:
    """Run one dimension from 1 past two tiles, the others drawn, for each form of B and type of A.

    In the short form the types of A take turns over the forms of B, which share the values: each
    has every third. Of the two 16-bit types each case draws one; the rest of the mode is drawn as
    well.
    """
    random, edge = bench.random, bench.config.tile
    first = int(random.integers(len(A_TYPES)))
    for turn, (b_form, transpose) in enumerate(B_FORMS, first):
        for a_types in A_TYPES if full() else (A_TYPES[turn % len(A_TYPES)],):
            most = dict.fromkeys("mnk", 2 * edge + 1)
            most["m"] = min(most["m"], bench.config.acc_rows >> (len(a_types) - 1))
            generators = []
            values = range(1, most[dimension] + 1)
            for value in values if full() else values[turn % 3 :: 3]:
                sizes = {name: int(random.integers(1, last + 1)) for name, last in most.items()}
                a_type = GemmA(int(random.choice(a_types)))
                generators.append(
                    partial(
                        build,
                        shape=GemmSize(**{**sizes, dimension: value}),
                        mode=_in_form(random, a_type, b_form, transpose, edge),
                        edge=edge,
                    )
                )
            program, stream = build_program(bench, generators)
            execution = await bench.execute(program, stream, limit=1_000_000)
            assert execution.finish.error is None, str(execution.finish.error)


def _in_form(
    random: np.random.Generator, a_type: GemmA, b_form: GemmB, transpose: bool, edge: int
) -> GemmMode:
    """Return a random mode with a given type of A and form of B."""
    return replace(random_mode(random, edge), a_type=a_type, b_form=b_form, transpose=transpose)


@cocotb.test
async def test_gemm_every_m(dut: Dut) -> None:
    """Every number of rows from 1 past two tiles, N and K drawn."""
    await _walk(await Bench.start(dut), "m")


@cocotb.test
async def test_gemm_every_n(dut: Dut) -> None:
    """Every number of columns from 1 past two tiles, M and K drawn."""
    await _walk(await Bench.start(dut), "n")


@cocotb.test
async def test_gemm_every_k(dut: Dut) -> None:
    """Every inner length from 1 past two tiles, M and N drawn."""
    await _walk(await Bench.start(dut), "k")


def _argmax_group(bench: Bench, makers: Sequence[Generator]) -> list[Case]:
    """Return a few GEMMs with argmax, others between them, and the ARGMAX behind them."""
    space = Space(bench.random, bench.config.sram_bytes // WORD)
    cases: list[Case] = []
    try:
        for _ in range(int(bench.random.integers(1, 5))):
            cases += [make(bench.random, space) for make in makers[: len(cases) % 2 + 1]]
    except NoRoomError:
        if not cases:
            raise
    return [*cases, Case(instruction(Opcode.ARGMAX, imm={"base": 1}))]


@cocotb.test
async def test_gemm_argmax_random(dut: Dut) -> None:
    """Random modes with argmax, written or not; columns are numbered over several instructions."""
    bench = await Bench.start(dut)
    config = bench.config
    makers = [
        partial(argmax, edge=config.tile, depthwise=config.depthwise),
        partial(gemm, rows=config.acc_rows, edge=config.tile, depthwise=config.depthwise),
    ]
    for _ in range(4 if full() else 2):
        program, stream = join(bench, [_argmax_group(bench, makers) for _ in range(turns(16))])
        execution = await bench.execute(program, stream, limit=1_000_000)
        assert execution.finish.error is None, str(execution.finish.error)


PEAKS = 45
"""Columns: past two tiles of 16, and one of 32."""


def _peaks(random: np.random.Generator) -> list[list[int]]:
    """Return rows of int8: the greatest value in every column, equal ones behind it; extremes."""
    rows = []
    for column in range(PEAKS):
        top = int(random.integers(-127, 128))
        row = random.integers(-128, top, PEAKS)
        row[column] = top
        row[random.integers(column, PEAKS, 3)] = top
        rows.append(row.tolist())
    return [*rows, [-128] * PEAKS, [127] * PEAKS, [*[-128] * (PEAKS - 1), -127]]


@cocotb.test
async def test_gemm_argmax_columns(dut: Dut) -> None:
    """The greatest value in every column and equal ones behind it; two instructions at a time.

    The tokens go to every base register in turn. Before every second one GEMM has long been idle.
    """
    bench = await Bench.start(dut)
    bases = (INPUT, *(OUTPUT + 0x1000 * index for index in range(7)))
    rows = _peaks(bench.random)
    b = np.zeros((len(rows), up(PEAKS)), np.int8)
    b[:, :PEAKS] = rows
    bench.memory.stage(INPUT, np.array([[1]], np.int8))
    bench.memory.stage(INPUT + 0x100, b)
    text = f"""
        DMA_LOAD dst=0x0 M=1 N=1 b=0
        DMA_LOAD dst=0x100 M={len(rows)} N={up(PEAKS)} b=0 off=0x100
        BARRIER ld
    """
    expected = []
    for turn in range(len(rows)):
        pair = (turn, int(bench.random.integers(len(rows))))
        for row in pair:
            at = 0x100 + row * up(PEAKS)
            text += f"GEMM dst=0 src0=0x0 src1={at} M=1 N={PEAKS} K=1 q=imm mul=256 sh=0 out=none "
            text += "argmax\n"
        if turn % 2:
            text += "BARRIER gemm\nDMA_LOAD dst=0x2000 M=1 N=1 b=0 off=0x100\nBARRIER ld\n"
        text += f"ARGMAX b={turn % len(bases)}\n"
        expected.append(int(np.argmax(np.concatenate([rows[row] for row in pair]))))
    await bench.execute(assemble(text + "END").instructions, bases=bases)
    places = [bases[turn % len(bases)] + 4 * turn for turn in range(len(rows))]
    stored = [int.from_bytes(bench.memory.read(place, 4), "little") for place in places]
    assert stored == expected


@cocotb.test
async def test_gemm_argmax_time(dut: Dut) -> None:
    """A wide row of outputs from the stream takes as long with argmax as without."""
    bench = await Bench.start(dut)
    edge = bench.config.tile
    sums = _sums_mode(GemmA.INT8, GemmB.STREAM, transpose=False, accumulate=False)
    plain = replace(sums, requant=True, q=GemmQ.CHANNEL, out=GemmOut.INT16, bias=True)
    cycles = {}
    for mode in (plain, replace(plain, out=GemmOut.NONE, argmax=True)):
        make = partial(build, shape=GemmSize(1, 2000, 3 * edge), mode=mode, edge=edge)
        program, stream = build_program(bench, [make])
        execution = await bench.execute(program, stream, limit=1_000_000)
        assert execution.finish.error is None, str(execution.finish.error)
        cycles[mode.argmax] = execution.finish.counters.cycles
    assert cycles[True] <= 1.01 * cycles[False], f"cycles by argmax: {cycles}"


def _dynamic_k(
    random: np.random.Generator, space: Space, mode: GemmMode, cap: int, keys: int, edge: int
) -> Case:
    """Return a GEMM whose inner length is min(`keys`, `cap`), behind a SET of the position."""
    shape = GemmSize(int(random.integers(1, 40)), int(random.integers(1, 40)), cap)
    case = build(random, space, shape, mode, edge)
    base = int(random.choice([0, 0, edge, 4 * edge]))
    *before, word = case.words
    if base:
        prefix = before[0] if before else Instruction(Opcode.PFX)
        before = [replace(prefix, k=base)]
    word = replace(word, k=0xF800 | cap // 16)  # len - 1 - base
    case.words = [*instruction(Opcode.SET, dst=SetReg.POS, src0=keys + base), *before, word]
    return case


@cocotb.test
async def test_gemm_empty_sums(dut: Dut) -> None:
    """A dynamic inner length of zero, and of numbers around tiles; every form of B in SRAM."""
    bench = await Bench.start(dut)
    edge = bench.config.tile
    makers = []
    for keys in (0, 1, 0, 15, 16, 17, 0, 31, 32, 33, 47, 48, 200, 0):
        for b_form, transpose in B_FORMS[:-1]:
            for a_type in GemmA:
                makers.append(
                    partial(
                        _dynamic_k,
                        mode=_in_form(bench.random, a_type, b_form, transpose, edge),
                        cap=48,
                        keys=keys,
                        edge=edge,
                    )
                )
    program, stream = build_program(bench, makers)
    execution = await bench.execute(program, stream, limit=1_000_000)
    assert execution.finish.error is None, str(execution.finish.error)


def _partial_sums(place: str, keys: int, count: int) -> list[Instruction]:
    """Return products of dynamic inner length that are added to partial sums in SRAM.

    Args:
        place: operands of C and D.
        keys: that there are, one behind the first position.
        count: products.
    """
    product = f"GEMM src0=0x800 src1=0x1000 M=3 N=32 K=len-1<=48 A=u16 B=tile out=i32 acc {place}"
    text = f"DMA_LOAD dst=0x0 off=0 M=1 N=16384 b=0\nBARRIER\nSET POS v={keys}\n"
    return assemble(text + f"{product}\nBARRIER gemm\n" * count + "END").instructions


@cocotb.test
async def test_gemm_idle_sums_time(dut: Dut) -> None:
    """Nothing that is added to sums at their own place takes no time; at another it is a copy."""
    bench = await Bench.start(dut)
    bench.memory.stage(INPUT, bench.random.bytes(16384))
    cycles = {}
    for keys in (0, 1, 48):
        for place in (
            "dst=0x2000 d=0x2000",
            "dst=0x2000 d=0x3000",
            "dst=0x2000 d=0x2000 cp=0x100 dp=0x100",
        ):
            for count in (1, 33):
                execution = await bench.execute(_partial_sums(place, keys, count))
                assert execution.finish.error is None, str(execution.finish.error)
                cycles[keys, place, count] = execution.finish.counters.cycles
    for keys in (0, 1, 48):
        for place in {place for _, place, _ in cycles}:
            each = (cycles[keys, place, 33] - cycles[keys, place, 1]) / 32
            idle = keys == 0 and "d=0x2000" in place.split()
            assert each < 12 if idle else each > 60, f"{keys} keys, {place}: {each} cycles each"
