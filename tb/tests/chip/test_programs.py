# SPDX-License-Identifier: Apache-2.0
"""Programs written by hand in assembler: the sequencer, barriers, SET, errors and restarts."""

from __future__ import annotations

import cocotb
import numpy as np

from npu.asm import assemble
from spec.isa import OPCODES, ErrorCode, Instruction, Opcode
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.bench.logs import DONE, Records

TAGS = ("seq",)


def words(text: str) -> list[Instruction]:
    """Assemble a program text."""
    return assemble(text).instructions


@cocotb.test
async def test_program_copy(dut: Dut) -> None:
    """Load a matrix, move it inside SRAM, store it elsewhere."""
    bench = await Bench.start(dut)
    program = words("""
        DMA_LOAD dst=0x1000 M=9 N=100 b=0
        BARRIER ld
        VEC op=copy2d dst=0x4000 src0=0x1000 M=9 N=100 cp=128
        BARRIER vec
        DMA_STORE dst=0x4000 M=9 N=100 b=1 cp=128
        END
    """)
    await bench.execute(program)
    rows = bench.memory.view(0x10_0000, 9 * 112).reshape(9, 112)[:, :100]
    stored = bench.memory.view(0x20_0000, 9 * 112).reshape(9, 112)[:, :100]
    assert (rows == stored).all()


@cocotb.test
async def test_program_end_only(dut: Dut) -> None:
    """The shortest program, and the same start again and again."""
    bench = await Bench.start(dut)
    for _ in range(3):
        execution = await bench.execute(words("END"))
        assert execution.finish.counters.instrs == 1


@cocotb.test
async def test_program_classic_gemm(dut: Dut) -> None:
    """The original's small program: load, multiply with scale and shift, add, ReLU, store."""
    bench = await Bench.start(dut)
    program = words("""
        .equ A=0x0 B=0x2000 C=0x4000 D=0x6000
        DMA_LOAD dst=A M=24 N=40 b=0
        DMA_LOAD dst=B M=40 N=24 b=0 off=0x1000
        BARRIER ld
        GEMM classic dst=C src0=A src1=B M=24 N=24 K=40 requant scale=23 shift=11
        BARRIER gemm
        VEC op=add dst=D src0=C src1=C M=24 N=24
        BARRIER vec
        VEC op=relu dst=D src0=D M=24 N=24
        BARRIER vec
        DMA_STORE dst=D M=24 N=24 b=1
        END
    """)
    await bench.execute(program)
    stored = bench.memory.view(0x20_0000, 24 * 32)
    assert len(set(stored.tolist())) > 16


@cocotb.test
async def test_program_set(dut: Dut) -> None:
    """SET changes the machine's bases and position, not the host's registers."""
    bench = await Bench.start(dut)
    text = ["NOP"]
    for base in range(8):
        text.append(f"SET BASE{base} v={0x10_0000 + 0x1_0000 * base:#x}")
        text.append(f"SET BASE{base} v={0x30 * base:#x} add")
    text += ["SET POS v=5", "SET POS v=4294967295 add", "SET STREAM v=0"]
    text += [f"DMA_LOAD dst={0x100 * base:#x} M=2 N=33 b={base} off=16" for base in range(8)]
    text += ["BARRIER"]
    text += [
        f"DMA_STORE dst={0x100 * base:#x} M=2 N=33 b={7 - base} off=0x8000" for base in range(8)
    ]
    text += ["END"]
    await bench.execute(words("\n".join(text)))
    # The same program without SET of the bases starts from the host's values again.
    await bench.execute(words("DMA_LOAD dst=0 M=1 N=64 b=0\nEND"))


@cocotb.test
async def test_program_set_before_transfer(dut: Dut) -> None:
    """A transfer right behind a SET of its base, both waiting at a barrier, takes the new base."""
    bench = await Bench.start(dut)
    text = ["DMA_LOAD dst=0x1000 M=16 N=256 b=0"]
    for turn in range(8):
        place = 0x100 * turn
        text += [
            f"BARRIER {'st' if turn % 2 else 'ld'}",
            f"SET BASE1 v={0x12_0000 + 0x1000 * turn:#x}",
            f"DMA_LOAD dst={place:#x} M=2 N=33 b=1",
            f"SET BASE1 v={0x30 * turn + 16:#x} add",
            f"DMA_STORE dst=0x1000 M=2 N=33 b=1 off={0x8_0000 + place:#x}",
            f"SET BASE1 v={0x15_0000 + 0x1000 * turn:#x}",
            "NOP",
            f"DMA_LOAD dst={place + 0x80:#x} M=1 N=64 b=1",
        ]
    await bench.execute(words("\n".join([*text, "END"])))


@cocotb.test
async def test_program_barriers(dut: Dut) -> None:
    """Every mask bit and every count of BARRIER, with work in flight on each engine."""
    bench = await Bench.start(dut)
    engines = ("ld", "st", "gemm", "smx", "nrm", "vec")
    work = """
        DMA_LOAD dst=0x0 M=4 N=64 b=0
        DMA_LOAD dst=0x100 M=4 N=64 b=0
        DMA_LOAD dst=0x200 M=4 N=64 b=0
        DMA_LOAD dst=0x300 M=4 N=64 b=0
        DMA_STORE dst=0x1000 M=4 N=64 b=1
        GEMM dst=0x2000 src0=0x3000 src1=0x4000 M=3 N=17 K=20 out=i32
        SOFTMAX dst=0x5000 src0=0x6000 src1=0x7000 M=3 N=20 out=u16
        LAYERNORM dst=0x8000 src0=0x9000 src1=0xA000 M=2 N=40
        VEC op=sub dst=0xB000 src0=0xC000 src1=0xD000 M=3 N=50
    """
    text = ""
    for count in range(5):
        for engine in engines:
            text += work + f"BARRIER {engine} n={count}\nBARRIER\n"
        text += work + f"BARRIER n={count}\nBARRIER {' '.join(engines)}\n"
    execution = await bench.execute(words(text + "END"))
    waited = _check_barriers(execution.events)
    assert waited == {int(engine) for engine in range(6)}, f"no barrier waited for {waited}"


def _check_barriers(events: Records) -> set[int]:
    """Check each barrier against the unfinished instructions at its dispatch.

    Returns:
        the engines that some barrier with a single mask bit left with just its number unfinished.
    """
    unfinished = [0] * 6
    waited = set()
    # What finishes in the cycle of a dispatch is still unfinished for it.
    for event in events[np.lexsort((events["kind"], events["cycle"]))]:
        if event["kind"] == DONE:
            unfinished[event["engine"]] -= 1
            continue
        word = Instruction.decode(event["word"].tobytes())
        if word.opcode == Opcode.BARRIER:
            mask = word.m or 0x3F
            for engine in (e for e in range(6) if mask >> e & 1):
                assert unfinished[engine] <= word.n, (
                    f"word {event['instr']}: BARRIER mask {mask:#x} n={word.n} passed with "
                    f"{unfinished[engine]} unfinished in engine {engine}"
                )
                if mask == 1 << engine and unfinished[engine] == word.n:
                    waited.add(engine)
        elif OPCODES[Opcode(word.opcode)].engine < 6:
            unfinished[OPCODES[Opcode(word.opcode)].engine] += 1
    return waited


@cocotb.test
async def test_program_queues(dut: Dut) -> None:
    """More instructions than the queues hold, on all engines at once, without barriers."""
    bench = await Bench.start(dut)
    text = ""
    for turn in range(12):
        text += f"""
            DMA_LOAD dst={0x100 * turn:#x} M=2 N=64 b=0 off={turn * 256}
            DMA_STORE dst={0x10000 + 0x100 * turn:#x} M=2 N=64 b=1 off={turn * 256}
            GEMM dst={0x4000 + 0x100 * turn:#x} src0=0x18000 src1=0x19000 M=4 N=16 K=16 out=i32
            VEC op=add dst={0x8000 + 0x40 * turn:#x} src0=0x1A000 src1=0x1B000 M=1 N=64
            SOFTMAX dst={0xC000 + 0x100 * turn:#x} src0=0x1C000 M=2 N=33 out=prob
            LAYERNORM dst={0xE000 + 0x100 * turn:#x} src0=0x1D000 src1=0x1E000 M=2 N=24
        """
    await bench.execute(words(text + "BARRIER\nEND"))


@cocotb.test
async def test_program_no_end(dut: Dut) -> None:
    """A program that runs off its length is stopped, named, and the next one runs."""
    bench = await Bench.start(dut)
    program = words("DMA_LOAD dst=0 M=1 N=64 b=0\nNOP\nNOP\nEND")
    execution = await bench.run(program, bench.load(program, length=3))
    assert execution.finish.error is not None
    assert execution.finish.error.code == ErrorCode.NO_END
    again = await bench.execute(program)
    assert again.finish.error is None


@cocotb.test
async def test_program_waits_for_older(dut: Dut) -> None:
    """A refused instruction changes nothing, and what is older finishes first."""
    bench = await Bench.start(dut)
    program = [
        *words("""
            GEMM dst=0x0 src0=0x8000 src1=0x9000 M=128 N=64 K=64 out=i32
            DMA_LOAD dst=0xA000 M=16 N=256 b=0
            VEC op=add dst=0xC000 src0=0xC000 src1=0xD000 M=8 N=64
        """),
        Instruction(0x77),
        *words("VEC op=add dst=0xE000 src0=0xC000 src1=0xD000 M=8 N=64\nEND"),
    ]
    execution = await bench.execute(program)
    assert execution.finish.error is not None
    assert execution.finish.error.code == ErrorCode.ILLEGAL_OPCODE
    assert execution.finish.error.instr == 3


@cocotb.test
async def test_program_stream_rewind(dut: Dut) -> None:
    """SET STREAM goes back, forward and nowhere; the shares that follow come from there."""
    bench = await Bench.start(dut)
    tables = bench.random.integers(0, 256, (200, 256), np.uint8)
    text, turn = "", 0
    for offset in (0, 256, 0, 0, 199 * 256, 40 * 256, 41 * 256, 150 * 256, 64 * 256, 198 * 256):
        text += f"SET STREAM v={offset}\n"
        for _ in range(2 if offset < 199 * 256 else 1):
            text += f"GELU dst={0x1000 + 0x100 * turn:#x} src0=0x0 M=1 N=256 stream\n"
            turn += 1
    await bench.execute(words(text + "END"), tables.tobytes())
    results = (await bench.sync())[0x1000 : 0x1000 + 256 * turn].reshape(turn, 256)
    assert len({row.tobytes() for row in results}) > 10, "the tables hardly differ"
