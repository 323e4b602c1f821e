# SPDX-License-Identifier: Apache-2.0
"""LOOP: turns, end token, full context, wrong targets; program and stream of the next turn."""

from __future__ import annotations

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles

from golden.machine import ErrorReport
from npu.asm import assemble
from spec.isa import TABLE_BYTES, WORD, Engine, ErrorCode, Instruction, Opcode, SetReg
from spec.regs import NO_TOKEN, ChipReg
from tb.bench.dut import Dut
from tb.bench.environment import DEFAULT_LIMIT, Bench
from tb.bench.knobs import Knobs
from tb.bench.recovery import command, next_program_runs, wait_idle

TAGS = ("seq", "faults")
TIMED = ("test_loop_abort", "test_loop_stream_is_there")

CAPACITY = 1 << 20

TURN = """
    SET BASE1 v=0x100 add
    VEC op=add dst=0x1000 src0=0x1000 src1=0x1400 M=3 N=40
    BARRIER vec
    DMA_STORE dst=0x1000 M=3 N=40 b=1
    BARRIER st
"""
"""Every turn leaves other bytes at another place."""


def words(text: str) -> list[Instruction]:
    """Assemble a program text."""
    return assemble(text).instructions


def loop(target: int) -> Instruction:
    """Return LOOP to any word, inside the program or not."""
    return Instruction(Opcode.LOOP, src0=target & 0xFFFF, src1=target >> 16)


@cocotb.test
async def test_loop_turns(dut: Dut) -> None:
    """LOOPLEFT turns, each at the next position; the program is fetched once per turn."""
    bench = await Bench.start(dut)
    program = words(f"again:\n{TURN}\nLOOP to=again\nEND")
    for turns in (0, 1, 2, 7, 40):
        execution = await bench.execute(program, pos=9, loop_left=turns, kv_cap=CAPACITY)
        finish = execution.finish
        assert finish.error is None, finish.error
        assert finish.counters.instrs == (turns + 1) * (len(program) - 1) + 1
        assert finish.last.pos == 9 + turns
        assert finish.counters.read_beats <= (turns + 1) * len(program)


@cocotb.test
async def test_loop_same_words(dut: Dut) -> None:
    """Turns that write the same words: each turn's are compared, other ones or the same again."""
    bench = await Bench.start(dut)
    body = """
        VEC op=mul dst=0x1000 src0=0x2000 src1=0x2400 M=3 N=40 sh=4
        VEC op=add dst=0x3000 src0=0x3000 src1=0x3400 M=3 N=40
        GEMM dst=0x5000 src0=0x6000 src1=0x7000 M=5 N=20 K=30 q=imm mul=9000 sh=20
        BARRIER
    """
    program = words(f"again:\n{body}\nLOOP to=again\nEND")
    execution = await bench.execute(program, loop_left=4, kv_cap=CAPACITY)
    assert execution.finish.error is None, execution.finish.error
    once = np.unique(execution.writes.words)
    assert execution.writes.words.size == 5 * once.size, "not every turn's words were compared"


@cocotb.test
async def test_loop_long(dut: Dut) -> None:
    """Bodies around the sizes of burst and queue of the fetch, short ones and long ones."""
    bench = await Bench.start(dut)
    for latency in (1, 90):
        await bench.set_knobs(Knobs(read_latency=latency))
        for length in (0, 1, 2, 14, 15, 16, 17, 62, 63, 64, 65, 130):
            program = [*[Instruction(Opcode.NOP)] * length, loop(0), *words("NOP\nEND")]
            execution = await bench.execute(program, loop_left=5, kv_cap=CAPACITY)
            assert execution.finish.error is None, execution.finish.error
            assert execution.finish.counters.instrs == 6 * (length + 1) + 2


@cocotb.test
async def test_loop_end_token(dut: Dut) -> None:
    """TOKEN = EOS ends the loop in its turn, wherever the fetch and the stream already are."""
    bench = await Bench.start(dut)
    text = """
        again: SET TOKEN v=1 add
        GELU dst=0x1000 src0=0x2000 M=2 N=60 stream
        BARRIER vec
        GELU dst=0x2000 src0=0x1000 M=2 N=60 stream
        BARRIER vec
        LOOP to=again
        SET OUTCNT v=3 add
        END
    """
    stream = bench.random.integers(0, 256, 2 * TABLE_BYTES, np.uint8).tobytes()
    for eos, ended in ((1, 1), (2, 2), (6, 6), (7, 7), (8, 7), (0, 7), (NO_TOKEN, 7)):
        program = words(text)
        execution = await bench.execute(program, stream, loop_left=6, eos=eos, kv_cap=CAPACITY)
        assert execution.finish.error is None, execution.finish.error
        assert execution.finish.last.token == ended
        assert execution.finish.last.pos == ended - 1
    # No token ends a loop without an end token.
    start = bench.load(words("again: NOP\nLOOP to=again\nEND"), token=NO_TOKEN, loop_left=3)
    execution = await bench.run(words("again: NOP\nLOOP to=again\nEND"), start)
    assert execution.finish.error == ErrorReport(ErrorCode.CONTEXT_FULL, Engine.SEQ, 1)


@cocotb.test
async def test_loop_context_full(dut: Dut) -> None:
    """LOOP is refused where the next position has no place in the cache, and only if it jumps."""
    bench = await Bench.start(dut)
    program = words(f"again:\n{TURN}\nLOOP to=again\nEND")
    at = len(program) - 2
    for pos, capacity, turns in ((0, 4, 5), (3, 4, 1), (2, 4, 1), (7, 0, 1), (0xFFFF_FFFF, 9, 2)):
        execution = await bench.execute(program, pos=pos, loop_left=turns, kv_cap=capacity)
        full = pos + turns >= capacity
        wanted = ErrorReport(ErrorCode.CONTEXT_FULL, Engine.SEQ, at) if full else None
        assert execution.finish.error == wanted, execution.finish.error
        execution = await bench.execute(program, pos=pos, loop_left=0, kv_cap=capacity)
        assert execution.finish.error is None


@cocotb.test
async def test_loop_targets(dut: Dut) -> None:
    """Every word of the program is a target, itself included; none outside, taken or not."""
    bench = await Bench.start(dut)
    body = words(f"NOP\nNOP\n{TURN}\nNOP\nNOP")
    program_length = len(body) + 3
    for target in range(program_length):
        program = [*body, loop(target), *words("NOP\nEND")]
        execution = await bench.execute(program, loop_left=3, kv_cap=CAPACITY)
        assert execution.finish.error is None, execution.finish.error
    for target in (program_length, program_length + 1, 0x1_0000, 0xFFFF_FFFF):
        program = [*body, loop(target), *words("NOP\nEND")]
        for turns in (0, 1):
            execution = await bench.execute(program, loop_left=turns, kv_cap=CAPACITY)
            wanted = ErrorReport(ErrorCode.ILLEGAL_FIELD, Engine.SEQ, len(body))
            assert execution.finish.error == wanted, execution.finish.error


@cocotb.test
async def test_loop_noise(dut: Dut) -> None:
    """Random programs of several loops and SETs of what they depend on."""
    bench = await Bench.start(dut)
    random, seen = bench.random, set()
    registers = (SetReg.POS, SetReg.TOKEN, SetReg.LOOPLEFT, SetReg.EOS, SetReg.OUTCNT)
    for _ in range(60):
        await bench.set_knobs(Knobs(read_latency=int(random.integers(1, 60))))
        length = int(random.integers(3, 100))
        program = []
        for _ in range(length):
            choice = random.random()
            if choice < 0.12:
                outside = random.random() < 0.03
                program.append(loop(length + 1000 if outside else int(random.integers(length))))
            elif choice < 0.3:
                register = int(random.choice(registers))
                flags, value = int(random.integers(2)), int(random.integers(4))
                if register == SetReg.LOOPLEFT:
                    flags = value = 0
                program.append(Instruction(Opcode.SET, flags, register, value))
            elif choice < 0.35:
                program.append(Instruction(Opcode.PFX))
                program += words("VEC op=relu dst=0x1000 src0=0x2000 M=1 N=16")
            else:
                program.append(Instruction(Opcode.NOP))
        program += words("END")
        capacity = CAPACITY if random.random() < 0.7 else 8
        execution = await bench.execute(
            program, loop_left=int(random.integers(12)), eos=5, kv_cap=capacity
        )
        error = execution.finish.error
        seen.add(None if error is None else error.code)
    assert {None, ErrorCode.CONTEXT_FULL, ErrorCode.ILLEGAL_FIELD} <= seen, seen


def _shares(count: int, extra: str = "", shape: str = "M=1 N=60", before: str = "") -> str:
    """Return a loop whose turns take `count` tables and pass the result on to the next turn."""
    lines = [before, "again:"]
    for number in range(count):
        to, of = (0x4000, 0x8000) if number % 2 else (0x8000, 0x4000)
        lines += [f"GELU dst={to:#x} src0={of:#x} {shape} stream", "BARRIER vec"]
    lines += [f"VEC op=add dst=0x4000 src0=0x4000 src1=0x8000 {shape}", "BARRIER vec"]
    return "\n".join([*lines, extra, "LOOP to=again", "END"])


@cocotb.test
async def test_loop_stream(dut: Dut) -> None:
    """The stream of each turn is read once: it goes on at its start, with or without SET STREAM."""
    bench = await Bench.start(dut)
    for latency in (1, 60):
        await bench.set_knobs(Knobs(read_latency=latency))
        for count in (1, 2, 9, 127, 128, 129, 300):
            stream = bench.random.integers(0, 256, count * TABLE_BYTES, np.uint8).tobytes()
            for extra in ("", "SET STREAM v=0"):
                program = words(_shares(count, extra))
                execution = await bench.execute(
                    program, stream, loop_left=3, kv_cap=CAPACITY, limit=2_000_000
                )
                assert execution.finish.error is None, execution.finish.error
                beats = execution.finish.counters.stream_beats
                turns = 5 if extra else 4  # SET STREAM asks for another one
                assert 4 <= beats / (len(stream) / WORD) <= turns, f"{count} tables, {beats} beats"


@cocotb.test
async def test_loop_stream_is_there(dut: Dut) -> None:
    """The next turn waits neither for its words nor for its first share."""
    bench = await Bench.start(dut)
    count, turns = 12, 8
    stream = bench.random.integers(0, 256, count * TABLE_BYTES, np.uint8).tobytes()
    program = words(_shares(count, shape="M=8 N=256"))
    cycles = {}
    for latency in (1, 200):
        await bench.set_knobs(Knobs(read_latency=latency))
        for left in (0, turns):
            execution = await bench.execute(program, stream, loop_left=left, kv_cap=CAPACITY)
            cycles[latency, left] = execution.finish.counters.cycles
    turn = {latency: (cycles[latency, turns] - cycles[latency, 0]) / turns for latency in (1, 200)}
    dut._log.info("cycles of a turn by latency: %s", turn)
    assert turn[200] <= turn[1] + 8, turn


@cocotb.test
async def test_loop_stream_elsewhere(dut: Dut) -> None:
    """Turns that leave a part of the stream, go back inside it, or set LOOPLEFT themselves."""
    bench = await Bench.start(dut)
    shares = 140
    stream = bench.random.integers(0, 256, shares * TABLE_BYTES, np.uint8).tobytes()
    for at in (0, 1, 70, shares - 1, shares):
        for left in (0, 1, 3):
            gelu = "" if at == shares else "GELU dst=0xC000 src0=0x8000 M=1 N=60 stream"
            extra = f"BARRIER vec\nSET STREAM v={at * TABLE_BYTES}\n{gelu}"
            text = _shares(9, extra).replace("END", f"SET STREAM v={shares * TABLE_BYTES}\nEND")
            execution = await bench.execute(words(text), stream, loop_left=left, kv_cap=CAPACITY)
            assert execution.finish.error is None, execution.finish.error
    # The streamer believed in another turn, or did not.
    for before, extra in (
        ("", "SET LOOPLEFT v=0\nSET STREAM v=0"),
        ("", "SET EOS v=7\nSET TOKEN v=7"),
        ("SET LOOPLEFT v=2", ""),
        ("SET LOOPLEFT v=2", "SET STREAM v=0\nSET LOOPLEFT v=0\nSET LOOPLEFT v=1 add\nSET EOS v=0"),
    ):
        for left in (0, 5):
            execution = await bench.execute(
                words(_shares(shares, extra, before=before)),
                stream,
                loop_left=left,
                kv_cap=CAPACITY,
                limit=2_000_000,
            )
            assert execution.finish.error is None, execution.finish.error


@cocotb.test
async def test_loop_abort(dut: Dut) -> None:
    """An endless loop ends by an abort; the host sees how far it came; the next program runs."""
    bench = await Bench.start(dut)
    program = words("again: NOP\nSET OUTCNT v=1 add\nSET TOKEN v=3 add\nLOOP to=again\nEND")
    for wait in (100, 731, 2000):
        start = bench.load(program, loop_left=NO_TOKEN, kv_cap=NO_TOKEN)
        await bench.chip.start(start)
        await ClockCycles(dut.clk, wait)
        await command(bench, "ABORT")
        await bench.bus.wait_interrupt(DEFAULT_LIMIT)
        await bench.chip.write_chip(ChipReg.IRQ_STATUS, 1)
        await wait_idle(bench)
        error = await bench.chip.report()
        assert error is not None and error.code == ErrorCode.ABORTED
        found = await bench.chip.last()
        assert found.out_count >= wait // 80, found
        assert found.pos in (found.out_count, found.out_count - 1)
        assert found.token in (3 * found.out_count, 3 * found.out_count - 3)
        await ClockCycles(dut.clk, 100)
        assert await bench.chip.last() == found
        await next_program_runs(bench)
        assert await bench.chip.last() != found
