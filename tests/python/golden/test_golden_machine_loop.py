# SPDX-License-Identifier: Apache-2.0
"""EMBED, ARGMAX and LOOP: programs that choose tokens and go round."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import gemm as gemm_ops
from golden.gemm import Post
from spec.isa import Engine, ErrorCode, GemmOp, Instruction, Opcode, SetReg
from spec.isa.operands import up
from tests.python.golden import golden_programs as gp
from tests.python.golden.golden_programs import END, ProgramBench, barrier, gemm, pfx, set_register
from tests.python.golden.golden_support import integers, seeded

FIELD, ADDRESS, FULL = ErrorCode.ILLEGAL_FIELD, ErrorCode.BAD_ADDRESS, ErrorCode.CONTEXT_FULL
LD, ST, GEMM = 1, 2, 4
TABLE, OUT = 0x20000, 0x30000
"""BASE0 and BASE1 of the bench in memory."""
BY_TOKEN, BY_LIST, BY_POSITION = 0x00, 0x10, 0x20
ARGMAX = Instruction(Opcode.ARGMAX, imm=1)
PEEK = gp.ARGMAX | gp.OUT_NONE


def loop(target: int) -> Instruction:
    """Return a LOOP."""
    return Instruction(Opcode.LOOP, src0=target & 0xFFFF, src1=target >> 16)


def tokens(bench: ProgramBench, count: int) -> list[int]:
    """Return the first tokens that were stored."""
    stored: list[int] = bench.memory[OUT : OUT + 4 * count].view("<u4").tolist()
    return stored


def walk(table: npt.NDArray[np.int8], token: int, count: int) -> list[int]:
    """Return the chain of row maxima from a token, each row's first largest column."""
    chain = []
    for _ in range(count):
        row = table[token].tolist()
        token = row.index(max(row))
        chain.append(token)
    return chain


STEP = [
    Instruction(Opcode.EMBED, 0, 0x100, m=1, n=48, imm=BY_TOKEN),
    barrier(LD),
    pfx(imm=1),
    gemm(0, 0x100, 0x800, 1, 48, 48, gp.Q_PREFIX | PEEK, gp.REQUANT),
    ARGMAX,
]
"""Row TOKEN of a table times the unit matrix at 0x8000: the next token is the row's maximum."""


def chain_bench(program: list[Instruction], **registers: int) -> tuple[ProgramBench, Any]:
    """Return a bench with a random table and the unit matrix; and the table.

    The maxima of its rows make one cycle through all tokens.
    """
    rng = seeded(660)
    table = integers(rng, np.int8, (48, 48))
    table[table == 127] = -3
    cycle = rng.permutation(48)
    table[cycle, np.roll(cycle, 1)] = 127
    bench = ProgramBench(program, registers=registers)
    bench.memory[TABLE : TABLE + table.size] = table.reshape(-1).view(np.uint8)
    bench.put(0x8000, np.eye(48, dtype=np.int8))
    return bench, table


@pytest.mark.parametrize("turns", [0, 1, 2, 20])
def test_a_loop_goes_round_and_counts(turns: int) -> None:
    """LOOPLEFT turns after the first; TOKEN, OUTCNT and POS follow."""
    program = [*STEP, loop(0), END]
    bench, table = chain_bench(program, token=7, loop_left=turns, kv_cap=100)
    bench.pos = 5
    result = bench.run()
    assert result.error is None
    assert result.races == []
    chain = walk(table, 7, turns + 1)
    assert len(set(chain)) == turns + 1
    assert tokens(bench, turns + 1) == chain
    assert (result.token, result.out_count, result.pos) == (chain[-1], turns + 1, 5 + turns)
    assert result.executed == (len(program) - 2) * (turns + 1) + 1
    assert not bench.memory[OUT + 4 * turns + 4 : OUT + 4 * turns + 64].any()


def test_a_loop_ends_at_the_end_token() -> None:
    """The end token itself is stored; another one does not stop the loop."""
    program = [*STEP, loop(0), END]
    bench, table = chain_bench(program)
    chain = walk(table, 7, 20)
    first = chain.index(chain[4])
    bench, _ = chain_bench(program, token=7, loop_left=19, kv_cap=100, eos=chain[4])
    result = bench.run()
    assert result.error is None
    assert result.out_count == first + 1
    assert tokens(bench, first + 2) == [*chain[: first + 1], 0]
    absent = next(token for token in range(48) if token not in chain)
    bench, _ = chain_bench(program, token=7, loop_left=19, kv_cap=100, eos=absent)
    assert bench.run().out_count == 20


def test_no_token_is_the_end_token_none() -> None:
    """With EOS = 0xFFFFFFFF nothing equals it."""
    program = [Instruction(Opcode.NOP), loop(0), END]
    state = {"token": 0xFFFF_FFFF, "loop_left": 3, "kv_cap": 10}
    assert ProgramBench(program, registers=state).run().pos == 3
    assert ProgramBench(program, registers=state | {"eos": 0xFFFF_FFFF}).run().pos == 3
    assert ProgramBench(program, registers=state | {"eos": 3, "token": 3}).run().pos == 0


def test_a_loop_stops_at_the_capacity() -> None:
    """POS + 1 = KVCAP is refused if a turn is asked for, and only then."""
    program = [Instruction(Opcode.NOP), loop(0), END]
    for pos, left, cap, expected in (
        (3, 1, 5, None),
        (3, 2, 5, FULL),
        (4, 1, 5, FULL),
        (4, 0, 5, None),
        ((1 << 32) - 1, 1, (1 << 32) - 1, FULL),
    ):
        bench = ProgramBench(program, pos=pos, registers={"loop_left": left, "kv_cap": cap})
        result = bench.run()
        assert (None if result.error is None else result.error.code) == expected
        if result.error is not None:
            assert (result.error.engine, result.error.instr, result.error.address) == (
                Engine.SEQ,
                1,
                0,
            )
            assert result.pos == min(pos + left, cap - 1) or pos >= cap
    end = ProgramBench(
        program, pos=4, registers={"loop_left": 9, "kv_cap": 5, "token": 2, "eos": 2}
    ).run()
    assert end.error is None


def test_a_loop_jumps_forwards_and_into_a_pair() -> None:
    """The target is any word, also one behind the LOOP or the second of a pair."""
    copy = Instruction(Opcode.VEC, 0, 0x40, 0, 0, 2, 16, 0, 6)
    program = [loop(3), END, copy, pfx(cp=4), copy, loop(4), END]
    bench = ProgramBench(program, registers={"loop_left": 2, "kv_cap": 9})
    result = bench.run()
    assert result.error is None
    assert [(write.instr, write.address) for write in result.sram_writes] == [
        (4, 0x40),
        (4, 0x44),
        (4, 0x40),
    ]
    assert [len(write.data) for write in result.sram_writes] == [1, 1, 2]


GELU = Instruction(Opcode.GELU, 0, 0x10, 0, 0, 1, 16, 0, 1)


def test_every_turn_takes_the_stream_from_its_start() -> None:
    """Two shares per turn, of which one is taken in the last; END sees the offset of its turn."""
    program = [GELU, replace(GELU, dst=0x20), loop(0), END]
    stream = bytes([9]) * 256 + bytes([5]) * 256
    bench = ProgramBench(program, stream, registers={"loop_left": 4, "kv_cap": 9})
    result = bench.run()
    assert result.error is None
    assert result.stream_offset == 512
    assert [int(write.data[0, 0]) for write in result.sram_writes] == [9, 5] * 5
    short = ProgramBench(program, stream + bytes(64), registers={"loop_left": 4, "kv_cap": 9}).run()
    assert short.error is not None
    assert short.error.code == ErrorCode.STREAM_LEFT
    program = [loop(2), END, GELU, END]
    bench = ProgramBench(program, stream[:256], registers={"loop_left": 1, "kv_cap": 9})
    assert bench.run().stream_offset == 256


def test_a_loop_left_set_by_the_program() -> None:
    """SET LOOPLEFT, EOS, TOKEN, OUTCNT and KVCAP change the machine's copies."""
    program = [
        set_register(SetReg.LOOPLEFT, 2),
        set_register(SetReg.KVCAP, 3),
        set_register(SetReg.KVCAP, 4, add=True),
        set_register(SetReg.TOKEN, 11),
        set_register(SetReg.OUTCNT, 6),
        set_register(SetReg.EOS, 12),
        set_register(SetReg.TOKEN, 1, add=True),
        set_register(SetReg.EOS, 0xFFFF_FFFE, add=True),
        loop(6),
        END,
    ]
    bench = ProgramBench(program)
    for _ in range(2):
        result = bench.run()
        assert result.error is None
        assert (result.token, result.out_count, result.pos) == (14, 6, 2)


@pytest.mark.parametrize("target", [3, 4, 0xFFFF, 0x10000])
def test_a_target_outside_the_program(target: int) -> None:
    """Refused even if the jump would not be taken."""
    error = ProgramBench([Instruction(Opcode.NOP), loop(target), END]).run().error
    assert error is not None
    assert (error.code, error.instr) == (FIELD, 1)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("written", [False, True])
def test_argmax_runs_over_several_gemms(wide: bool, written: bool) -> None:
    """A split head with ties across the cut: the lowest column wins; C is written if asked for."""
    rng = seeded(661)
    a = integers(rng, np.int8, (1, 20), 0.0)
    b = integers(rng, np.int8, (20, 50), 0.0)
    dtype = np.int16 if wide else np.int8
    shift = 5 if wide else 11
    y = gemm_ops.gemm(a, b, gemm_ops.per_tensor(3, shift), Post(16 if wide else 8))[0]
    best = int(y.argmax())
    b[:, 47] = b[:, best]
    b[:, 48] = b[:, best]
    out = gp.OUT_INT16 if wide else gp.OUT_INT8
    mode = gp.ARGMAX | (out if written else gp.OUT_NONE if wide else gp.OUT_INT8)
    words = []
    for first, count in ((0, 17), (17, 1), (18, 30), (48, 2)):
        at = 0x1000 + 8 * first if written or not wide else 0
        words += [pfx(bp=4, imm=3, sh=shift)]
        word = gemm(at, 0x100, 0, 1, count, 20, mode | gp.Q_PREFIX | gp.B_ROWS, gp.REQUANT)
        words.append(replace(word, src1=0x800 if first == 0 else 0x1800 + 0x100 * (first % 7)))
    bench = ProgramBench([*words, ARGMAX, END])
    bench.put(0x1000, a)
    for word, (first, count) in zip(
        words[1::2], ((0, 17), (17, 1), (18, 30), (48, 2)), strict=True
    ):
        bench.put(word.src1 * 16, b[:, first : first + count], 64)
    result = bench.run()
    assert result.error is None
    assert result.races == []
    assert result.token == best == tokens(bench, 1)[0]
    assert best < 47
    if written:
        assert np.array_equal(bench.get(0x10000, (1, 17), dtype)[0], y[:17])
    if wide and not written:
        assert result.sram_writes == []


def test_argmax_looks_at_the_last_value() -> None:
    """ReLU and the second operand count, and so does a maximum that is negative."""
    rng = seeded(662)
    a, b = integers(rng, np.int8, (1, 9)), integers(rng, np.int8, (9, 30))
    d = rng.integers(-32768, -30000, (1, 30)).astype(np.int16)
    requant = gemm_ops.per_tensor(5, 9)
    expected = gemm_ops.gemm(a, b, requant, Post(16, True, None, GemmOp.ADD, d))[0]
    assert expected.max() < 0
    assert expected.argmax() != gemm_ops.gemm(a, b, requant, Post(16))[0].argmax()
    mode = gp.Q_TENSOR | PEEK | gp.OP_ADD
    words = [pfx(d=0x1800), gemm(0, 0x100, 0x800, 1, 30, 9, mode, gp.REQUANT | gp.RELU), ARGMAX]
    bench = ProgramBench([*words, END], (5).to_bytes(2, "little") + bytes([9]) + bytes(61))
    bench.put(0x1000, a)
    bench.put(0x8000, b)
    bench.put(0x18000, d)
    assert bench.run().token == expected.argmax()


def peek(columns: int) -> list[Instruction]:
    """Return a GEMM of one row that only argmax sees."""
    return [pfx(imm=1), gemm(0, 0x100, 0x800, 1, columns, 16, gp.Q_PREFIX | PEEK, gp.REQUANT)]


def test_argmax_starts_afresh() -> None:
    """After ARGMAX columns count from 0 again, and a smaller value wins."""
    bench = ProgramBench([*peek(40), ARGMAX, barrier(ST), *peek(3), ARGMAX, END])
    bench.put(0x1000, np.eye(1, 16, dtype=np.int8))
    rows = np.zeros((16, 40), np.int8)
    rows[0] = np.arange(40)
    rows[0, 1] = 7
    bench.put(0x8000, rows)
    bench.program[5] = replace(bench.program[5], n=3)
    result = bench.run()
    assert result.error is None
    assert tokens(bench, 2)[0] == 39
    assert result.out_count == 2


def test_argmax_needs_a_value() -> None:
    """No GEMM with argmax, none since the last ARGMAX, or one of no columns."""
    none = gemm(0, 0x100, 0x800, 1, gp.length(16, 1), 16, gp.Q_PREFIX | PEEK, gp.REQUANT)
    for program in ([ARGMAX], [*peek(2), ARGMAX, ARGMAX], [pfx(imm=1), none, ARGMAX]):
        error = ProgramBench([*program, END]).run().error
        assert error is not None
        assert (error.code, error.instr) == (FIELD, len(program) - 1)


@pytest.mark.parametrize(
    ("base", "count", "code", "address"),
    [
        (OUT + 8, 0, ADDRESS, OUT + 8),
        (0xFFFF_FFF0, 4, ADDRESS, 0),
        (0xFFFF_FFF0, 3, ErrorCode.WRITE_ERROR, 0xFFFF_FFF0),
        (OUT, 0x3FFF_FFFF, ADDRESS, OUT - 4),
        (gp.MEMORY_BYTES - 16, 5, ErrorCode.WRITE_ERROR, gp.MEMORY_BYTES),
    ],
)
def test_argmax_refuses_an_address(base: int, count: int, code: ErrorCode, address: int) -> None:
    """Misaligned bases, words past 2^32, and words that the bus refuses."""
    program = [*peek(2), set_register(SetReg.OUTCNT, count), ARGMAX, END]
    error = ProgramBench(program, bases=(TABLE, base, *[0] * 6)).run().error
    assert error is not None
    assert (error.code, error.address, error.instr) == (code, address, 3)
    assert error.engine == (Engine.ST if code == ErrorCode.WRITE_ERROR else Engine.SEQ)


@pytest.mark.parametrize(("n", "pitch", "cp"), [(16, 0, 0), (33, 4, 5), (5, 0, 2), (40, 2, 0)])
def test_embed(n: int, pitch: int, cp: int) -> None:
    """Rows by token, by a list with repetitions, and by position, at both pitches."""
    rng = seeded(663)
    step = 16 * pitch or up(n, 16)
    ids = [9, 0, 200, 9, 31]
    state: dict[str, Any] = {"token": 77}
    for index, rows, count in (
        (BY_TOKEN, [77], 1),
        (BY_LIST, ids, 5),
        (BY_POSITION, [21, 22, 23, 24], 4),
    ):
        src0 = 0x800 if index == BY_LIST else 0
        word = Instruction(Opcode.EMBED, 0, 0x100, src0, 0, count, n, pitch, index)
        bench = ProgramBench([pfx(cp=cp), word, END], pos=21, registers=state)
        bench.memory[TABLE:] = rng.integers(0, 256, bench.memory.size - TABLE)
        bench.put(0x8000, np.array([ids], np.uint32))
        expected = bench.sram.copy()
        for place, row in enumerate(rows):
            at = 0x1000 + place * (16 * cp or up(n, 16))
            expected[at : at + up(n, 16)] = 0
            expected[at : at + n] = bench.memory[TABLE + row * step :][:n]
        result = bench.run()
        assert result.error is None
        assert np.array_equal(bench.sram, expected)
        assert all(write.instr == 1 for write in result.sram_writes)


@pytest.mark.parametrize(
    ("index", "number", "base", "code", "address"),
    [
        (BY_TOKEN, 0, TABLE + 8, ADDRESS, TABLE + 8),
        (BY_TOKEN, (1 << 28) - 1, 0, ErrorCode.READ_ERROR, (1 << 32) - 16),
        (BY_TOKEN, 1 << 28, 0, ADDRESS, 0),
        (BY_TOKEN, (1 << 32) - 1, 0x100, ADDRESS, 0xF0),
        (BY_POSITION, (1 << 28) - 2, 0, ErrorCode.READ_ERROR, (1 << 32) - 32),
        (BY_POSITION, (1 << 28) - 1, 0, ADDRESS, (1 << 32) - 16),
        (BY_LIST, (1 << 28) - 1, 0, ErrorCode.READ_ERROR, (1 << 32) - 16),
        (BY_LIST, 1 << 28, 0x30, ADDRESS, 0x30),
        (BY_LIST, 1, TABLE + 8, ADDRESS, TABLE + 8),
    ],
)
def test_embed_refuses_an_address(
    index: int, number: int, base: int, code: ErrorCode, address: int
) -> None:
    """Token and position are checked before dispatch, a list by the load engine."""
    rows = 1 if index == BY_TOKEN else 2
    src0 = 0x800 if index == BY_LIST else 0
    word = Instruction(Opcode.EMBED, 0, 0x100, src0, 0, rows, 16, 0, index)
    bench = ProgramBench(
        [word, END], bases=(base, *[0] * 7), pos=number, registers={"token": number}
    )
    bench.put(0x8000, np.array([[0, number]], np.uint32))
    error = bench.run().error
    assert error is not None
    assert (error.code, error.address, error.instr) == (code, address, 0)
    early = code == ADDRESS and index != BY_LIST
    assert error.engine == (Engine.SEQ if early else Engine.LD)


@pytest.mark.parametrize(
    ("name", "value", "allowed"),
    [
        ("kv_base", 0x80, "multiples of 256"),
        ("kv_head", 1 << 32, "multiples of 256"),
        ("kv_layer", 255, "multiples of 256"),
        ("kv_voff", -256, "multiples of 256"),
        ("token", 1 << 32, r"0 to 2\^32-1"),
        ("window", -1, r"0 to 2\^32-1"),
        ("loop_left", 1 << 32, r"0 to 2\^32-1"),
        ("eos", -1, r"0 to 2\^32-1"),
        ("kv_cap", 1 << 32, r"0 to 2\^32-1"),
    ],
)
def test_start_registers_are_checked(name: str, value: int, allowed: str) -> None:
    """Values that the host's registers cannot hold are refused by name."""
    with pytest.raises(ValueError, match=f"StartState.{name}: given .* allowed {allowed}"):
        ProgramBench([END], registers={name: value}).run()
