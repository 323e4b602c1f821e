# SPDX-License-Identifier: Apache-2.0
"""Machine registers and what depends on them: dynamic dimensions, windows, places of the cache."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import cocotb
import numpy as np

from golden.machine import ErrorReport
from npu.asm import assemble
from spec.isa import Engine, ErrorCode, Instruction, Opcode, SetReg
from spec.isa.operands import share_bytes
from spec.regs import MachineStart, SeqReg
from tb.bench.dut import Dut
from tb.bench.environment import OUTPUT, Bench, Execution
from tb.bench.knobs import Knobs
from tb.bench.logs import DISPATCH

TAGS = ("seq", "registers")
TIMED = ("test_machine_dispatch_speed",)

TOP = 1 << 32
UNWRITTEN = 0xEEEE_EEEE
"""No token."""
PLACES = "dst=0x1000 src0=0x8000"
DYNAMIC = (
    f"VEC op=add {PLACES} src1=0xC000 M={{}} N=40",
    f"VEC op=table {PLACES} M={{}} N=40 stream",
    f"GELU {PLACES} M={{}} N=24 stream",
    f"SILU {PLACES} src1=0xC000 M={{}} N=24",
    f"LAYERNORM {PLACES} M={{}} N=40 stream",
    f"RMSNORM {PLACES} M={{}} N=40 stream out=i16",
    f"ROPE {PLACES} src1=0xC000 M={{}} N=18 K=2",
    f"SOFTMAX {PLACES} src1=0xC000 M={{}} N=20 out=u16",
    f"SOFTMAX {PLACES} src1=0xC000 M=4 N={{}} out=u8 causal",
    f"SOFTMAX {PLACES} M={{}} N={{}} K=3 out=prob",
    f"GEMM {PLACES} M={{}} N=20 K=33 B=stream q=ch bias",
    f"GEMM {PLACES} src1=0xC000 M=4 N={{}} K=16 B=tile T out=i32",
    f"GEMM {PLACES} src1=0xC000 M=4 N={{}} K=16 B=tile T out=i32 base=16",
    f"GEMM {PLACES} src1=0xC000 M=4 N=20 K={{}} B=tile q=tensor",
    f"GEMM {PLACES} src1=0xC000 M=4 N=20 K={{}} base=32 acc d=0x10000 out=i32",
    f"GEMM {PLACES} src1=0xC000 M={{}} N={{}} K={{}} q=imm mul=9000 sh=17 A=u8",
)
"""A word of each form that takes a dynamic dimension, in place of the braces."""


def words(text: str) -> list[Instruction]:
    """Assemble a program text."""
    return assemble(text).instructions


async def run(
    bench: Bench, program: list[Instruction], **registers: Unpack[MachineStart]
) -> Execution:
    """Run a program with a random stream that holds just its shares."""
    size = sum(share_bytes(word, bench.config.tile) for word in program)
    stream = bench.random.integers(0, 256, size, np.uint8).tobytes()
    return await bench.execute(program, stream, limit=2_000_000, **registers)


@cocotb.test
async def test_machine_dynamic(dut: Dut) -> None:
    """Each form that takes a dynamic dimension, at many positions and windows."""
    bench = await Bench.start(dut)
    random, codes = bench.random, set()
    for turn in range(12):
        pos = int(random.choice([0, 1, 15, 16, 17, int(random.integers(200))]))
        window = int(random.choice([0, 1, 16, 17, int(random.integers(1, 120))]))
        if not turn:
            pos, window = 99, 0  # more than any cap
        for text in DYNAMIC:
            cap = 16 * int(random.integers(1, 5))
            value = f"len{random.choice(['', '-1'])}<={cap}"
            program = words(text.format(value, value, value) + "\nEND")
            execution = await run(bench, program, pos=pos, window=window)
            error = execution.finish.error
            codes.add(None if error is None else error.code)
    assert codes == {None, ErrorCode.CONTEXT_FULL}, codes


@cocotb.test
async def test_machine_far_positions(dut: Dut) -> None:
    """LEN at the ends of 32 bits: what is visible begins at a tile border, whatever the window."""
    bench = await Bench.start(dut)
    program = words("VEC op=relu dst=0x1000 src0=0x8000 M=len<=256 N=16\nEND")
    for pos in (0, 100, TOP // 2, TOP - 17, TOP - 2, TOP - 1):
        for window in (0, 1, 2, 31, 33, 200, pos, pos + 1, pos + 2, TOP - 1):
            execution = await run(bench, program, pos=pos, window=min(window, TOP - 1))
            assert execution.finish.error is None
            edge = bench.config.tile
            first = max(0, pos + 1 - window) // edge * edge if window else 0
            rows = min(256, pos + 1 - first)
            assert execution.writes.data.shape[0] == rows, (pos, window)


@cocotb.test
async def test_machine_nothing_to_do(dut: Dut) -> None:
    """A dynamic zero drops its share, however long, and the next share is the right one."""
    bench = await Bench.start(dut)
    nothing = {
        "GELU": "GELU dst=0x1000 src0=0x8000 M=len-1<=16 N=24 stream",
        "LAYERNORM": "LAYERNORM dst=0x1000 src0=0x8000 M=len-1<=16 N=200 stream",
        "GEMM": "GEMM dst=0x1000 src0=0x8000 M=len-1<=16 N=256 K=300 B=stream q=ch",
        "K/V": "KV_READ dst=0x1000 layer=9 N=16 K=len-1<=128 heads=3..8",
    }
    real = "GELU dst={:#x} src0=0x8000 M=1 N=24 stream"
    for latency_text in (
        ["GELU"],
        ["GEMM"],
        ["LAYERNORM", "GELU", "GEMM", "K/V", "GEMM"],
        ["K/V", "GELU", "GELU"],
    ):
        lines, at = [real.format(0x2000)], 0x2000
        for name in latency_text * 3:
            at += 0x100
            lines += [nothing[name], real.format(at)]
        program = words("\n".join([*lines, "BARRIER", "END"]))
        execution = await run(bench, program)
        assert execution.finish.error is None, execution.finish.error
        assert execution.finish.counters.instrs == len(program)
    # A share that is not there is an error even if nobody wants it.
    program = words(f"{nothing['GEMM']}\nEND")
    execution = await bench.execute(program, bytes(1024))
    assert execution.finish.error == ErrorReport(ErrorCode.STREAM_END, Engine.SEQ, 0)


@cocotb.test
async def test_machine_set(dut: Dut) -> None:
    """SET and SET ADD of every register, wrapping around; seen by the host, LOOP, and the model."""
    bench = await Bench.start(dut)
    random = bench.random
    plain = (SetReg.POS, SetReg.TOKEN, SetReg.OUTCNT, SetReg.WINDOW, SetReg.LOOPLEFT, SetReg.KVCAP)
    for _ in range(20):
        program = []
        for _ in range(int(random.integers(1, 12))):
            register = int(random.choice(plain))
            value = int(random.choice([0, 1, TOP - 1, int(random.integers(TOP))]))
            flags = int(random.integers(2))
            program.append(Instruction(Opcode.SET, flags, register, value & 0xFFFF, value >> 16))
        program += words("VEC op=relu dst=0x1000 src0=0x8000 M=len<=64 N=16\nEND")
        await run(
            bench,
            program,
            pos=int(random.integers(TOP)),
            token=int(random.integers(TOP)),
            window=int(random.integers(40)),
        )


@cocotb.test
async def test_machine_cache_places(dut: Dut) -> None:
    """The place of a K/V piece from random registers, SET or started with, as its refusal shows."""
    bench = await Bench.start(dut)
    random = bench.random
    for turn in range(40):
        layer, first, heads = (int(random.integers(1, high)) for high in (1 << 16, 256, 257))
        read, value = bool(random.integers(2)), int(random.integers(2))
        word = Instruction(
            Opcode.KV_READ if read else Opcode.KV_APPEND,
            flags=value,
            m=layer,
            n=8,
            k=1,
            imm=first | (heads - 1) << 8,
        )
        factors = {
            SetReg.KVBASE: 1,
            SetReg.KVLAYER: layer,
            SetReg.KVHEAD: first + heads - 1,
            SetReg.KVVOFF: value,
        }
        place, started, sets = 0, [], []
        for register, factor in factors.items():
            wanted, start = (int(random.integers(1 << 24)) << 8 for _ in range(2))
            place += factor * wanted
            if random.random() < 0.5:
                start = wanted
            else:
                add = int(random.integers(2))
                step = (wanted - start * add) % TOP
                sets.append(Instruction(Opcode.SET, add, register, step & 0xFFFF, step >> 16))
            started.append(start)
        given: MachineStart = {
            "kv_base": started[0],
            "kv_layer": started[1],
            "kv_head": started[2],
            "kv_voff": started[3],
            "kv_cap": 1,
        }
        program = [*sets, word, Instruction(Opcode.END)]
        execution = await bench.execute(program, **given)
        assert place > TOP
        report = ErrorReport(ErrorCode.BAD_ADDRESS, Engine.SEQ, len(sets), place % TOP)
        assert execution.finish.error == report, f"turn {turn}: {execution.finish.error}"
        # The same with no capacity, and with nothing to read
        given["kv_cap"] = 0
        if read:
            execution = await bench.execute([*sets, replace(word, k=0xF801), program[-1]], **given)
            assert execution.finish.error is None
        execution = await bench.execute(program, **given)
        assert execution.finish.error == ErrorReport(ErrorCode.CONTEXT_FULL, Engine.SEQ, len(sets))


@cocotb.test
async def test_machine_place_behind_set(dut: Dut) -> None:
    """What begins with a product of a register takes it from a SET right before it."""
    bench = await Bench.start(dut)
    text = ["DMA_LOAD dst=0x9000 M=16 N=256 b=0"]
    for turn in range(8):
        text += [
            "BARRIER",
            f"SET KVLAYER v={0x800 * (turn + 1):#x}",
            "KV_APPEND src0=0x9000 layer=1 N=16 K=1 heads=0..1",
            f"SET TOKEN v={turn}",
            f"EMBED dst={0x1000 + 0x40 * turn:#x} M=1 N=64 b=0 idx=token",
            "BARRIER",
            f"SET KVLAYER v={0x800 * turn:#x}",
            "NOP",
            f"KV_READ dst={0x2000 + 0x40 * turn:#x} layer=1 N=16 K=1 heads=0..1",
        ]
    program = words("\n".join([*text, "BARRIER", "DMA_STORE dst=0x1000 M=8 N=1024 b=1", "END"]))
    given: MachineStart = {
        "kv_base": 0x30_0000,
        "kv_layer": 0x8000,
        "kv_head": 0x200,
        "kv_cap": 16,
    }
    execution = await bench.execute(program, **given)
    assert execution.finish.error is None, execution.finish.error


@cocotb.test
async def test_machine_dispatch_speed(dut: Dut) -> None:
    """K/V transfers and EMBED are dispatched in single-digit cycles, all else in one."""
    bench = await Bench.start(dut)
    cases = {
        "KV_READ dst={:#x} layer=1 N=16 K=1 heads=0..1": 9,
        "KV_APPEND dst={:#x} src0=0x9000 hp=0x400 layer=1 N=16 K=1 heads=0..1 stage": 9,
        "EMBED dst={:#x} M=1 N=16 b=0 idx=token": 9,
        "VEC op=relu dst={:#x} src0=0x8000 M=1 N=16": 8,  # checking takes longer
    }
    for text, most in cases.items():
        # The barrier holds them back until all four are checked.
        program = words(
            "VEC op=relu dst=0x0 src0=0x8000 M=40 N=16\nBARRIER vec\n"
            + "\n".join(text.format(0x1000 + 0x1000 * number) for number in range(4))
            + "\nEND"
        )
        execution = await bench.execute(
            program, kv_base=0x30_0000, kv_layer=0x8000, kv_head=0x1000, kv_cap=16
        )
        assert execution.finish.error is None, execution.finish.error
        events = execution.events[execution.events["kind"] == DISPATCH]
        cycles = np.diff(events["cycle"].astype(np.int64))[2:4]
        assert (cycles <= most).all(), f"{text}: {cycles}"


@cocotb.test
async def test_machine_outcnt_is_written(dut: Dut) -> None:
    """A host that polls OUTCNT finds so many tokens in memory, however slowly they are written."""
    bench = await Bench.start(dut, Knobs(read_latency=1, write_latency=60, w_stall=95))
    tokens = 12
    bench.memory.stage(OUTPUT, np.full(tokens, UNWRITTEN, np.uint32))
    best = "GEMM dst=0 src0=0x0 src1=0x100 M=1 N=300 K=40 q=imm mul=256 sh=0 out=none argmax"
    program = words(f"{best}\nARGMAX b=1\n" * tokens + "END")
    seen: set[int] = set()

    async def poll() -> None:
        while len(seen) <= tokens:
            # Between the end of an access and the look at memory no clock edge passes.
            count = await bench.chip.read_seq(SeqReg.OUTCNT)
            written = bench.memory.array(OUTPUT, (tokens,), np.uint32) != UNWRITTEN
            assert written[:count].all(), f"OUTCNT {count}, tokens in memory: {written.tolist()}"
            seen.add(count)

    host = cocotb.start_soon(poll())
    await bench.execute(program)
    await host
    assert seen == set(range(tokens + 1))
