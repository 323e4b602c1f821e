# SPDX-License-Identifier: Apache-2.0
"""What the chip refuses: the documented error at the documented place, nothing changed, usable."""

from __future__ import annotations

import cocotb
import numpy as np

from npu.asm import assemble
from npu.isa import OPCODES, Engine, ErrorCode, Instruction, Opcode
from npu.isa.legality import check
from npu.isa.operands import Limits
from tb.dut import Dut
from tb.environment import Bench

END = Instruction(Opcode.END)
BUILT = Limits(built_only=True)

LEGAL = """
    DMA_LOAD dst=0x400 off=0x100 M=3 N=40 b=5 cp=64
    DMA_STORE dst=0x400 off=0x100 M=3 N=40 b=6
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=5 N=20 K=33 q=imm mul=20000 sh=24 relu
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=5 N=20 K=33 T classic
    GEMM dst=0x1000 src0=0x2000 src1=0x40 M=4 N=9 K=16 A=u16 B=tile q=row op=add sums=0 d=0x5000
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=4 N=20 K=16 B=tile out=i32 acc d=0x6000
    VEC op=mul dst=0x1000 src0=0x2000 src1=0x3000 M=3 N=50 sh=7
    VEC op=scale_shift dst=0x1000 src0=0x2000 M=3 N=50 scale=-77 sh=5 A=i16 out=i8
    VEC op=clamp dst=0x1000 src0=0x2000 M=3 N=50 lo=-5 hi=60
    VEC op=table dst=0x1000 src0=0x2000 src1=0x3000 M=3 N=50
    SOFTMAX dst=0x1000 src0=0x2000 src1=0x3000 M=6 N=20 K=3 causal out=u16
    LAYERNORM dst=0x1000 src0=0x2000 src1=0x3000 M=2 N=40
    GELU dst=0x1000 src0=0x2000 src1=0x3000 M=2 N=40
    BARRIER gemm n=2
    SET BASE3 v=0x1000
    SET POS v=5
    NOP
    END
"""
"""One or more words of every built opcode, to be changed in one field."""


def _groups(text: str) -> list[list[Instruction]]:
    """Return the instructions of a program text, each with its prefix word if it has one."""
    groups: list[list[Instruction]] = [[]]
    for word in assemble(text).instructions:
        groups[-1].append(word)
        if word.opcode != Opcode.PFX:
            groups.append([])
    return groups[:-1]


async def _expect(
    bench: Bench, words: list[Instruction], code: ErrorCode, *, address: int = 0
) -> None:
    """Run `words` and END; the last of `words` must be refused as told."""
    error = (await bench.execute([*words, END])).finish.error
    assert error is not None, f"{words[-1]} was not refused"
    given = (error.code, error.engine, error.instr, error.address)
    wanted = (code, Engine.SEQ, len(words) - 1, address)
    assert given == wanted, f"{words[-1]}: given {given}, wanted {wanted}"


@cocotb.test
async def test_refuse_opcodes(dut: Dut) -> None:
    """Every opcode that is unknown or not built is ILLEGAL_OPCODE, and the next program runs."""
    bench = await Bench.start(dut)
    built = {int(opcode) for opcode, info in OPCODES.items() if info.built}
    for number in sorted(set(range(256)) - built):
        await _expect(bench, [Instruction(Opcode.NOP), Instruction(number)], ErrorCode(1))
    assert (await bench.execute([END])).finish.error is None


@cocotb.test
async def test_refuse_changed_fields(dut: Dut) -> None:
    """Legal words with one field changed at random: refused or run exactly as the model says."""
    bench = await Bench.start(dut)
    groups = _groups(LEGAL)
    fields = ("flags", "dst", "src0", "src1", "m", "n", "k", "imm")
    refused = 0
    for _ in range(400):
        words = list(groups[int(bench.random.integers(len(groups)))])
        place = int(bench.random.integers(len(words)))
        field = str(bench.random.choice(fields))
        width = 8 if field == "flags" else 16
        value = getattr(words[place], field) ^ (1 << int(bench.random.integers(width)))
        if bench.random.random() < 0.3:
            value = int(bench.random.choice([0, 1, 15, 16, 0x80, 0xEFFF, 0xF000, 0xFFFF]))
            value &= (1 << width) - 1
        values = {name: getattr(words[place], name) for name in fields}
        words[place] = Instruction(words[place].opcode, **{**values, field: value})
        prefix = words[0] if len(words) == 2 else None
        if check(words[-1], prefix, BUILT) is None:
            continue  # still legal: the engines' own tests run such words
        execution = await bench.execute([*words, END])
        assert execution.finish.error is not None
        refused += 1
    assert refused > 100, f"only {refused} words were refused"


@cocotb.test
async def test_refuse_ranges(dut: Dut) -> None:
    """Each operand may end with the last word of the SRAM and not one word later."""
    bench = await Bench.start(dut)
    size = bench.config.sram_bytes
    cases = {
        "DMA_LOAD dst={} M=3 N=40 b=0 cp=64": 64 * 2 + 48,
        "DMA_STORE dst={} M=3 N=40 b=1": 48 * 3,
        "GEMM dst={} src0=0 src1=0x100 M=5 N=20 K=16 classic": 80 * 5,
        "GEMM dst=0x4000 src0={} src1=0x100 M=5 N=20 K=16 classic ap=48": 48 * 4 + 16,
        "GEMM dst=0x4000 src0=0 src1={} M=5 N=20 K=17 classic": 32 * 17,
        "GEMM dst=0x4000 src0=0 src1={} M=5 N=20 K=17 T classic": 32 * 20,
        "GEMM dst=0x4000 src0=0 src1={} M=5 N=20 K=17 B=tile out=i32": 32 * 32,
        "GEMM dst=0x4000 src0=0 src1=0x100 M=5 N=20 K=16 A=i16 out=i32 acc d={}": 80 * 10,
        "GEMM dst=0x4000 src0=0 src1=0x100 M=5 N=20 K=16 A=u16 q=row sums={}": 16 * 5,
        "VEC op=add dst=0x4000 src0=0 src1={} M=2 N=33": 96,
        "VEC op=table dst=0x4000 src0=0 src1={} M=2 N=33": 256,
        "SOFTMAX dst={} src0=0 src1=0x1000 M=2 N=17 out=u16": 128,
        "SOFTMAX dst=0x4000 src0={} src1=0x1000 M=2 N=17 out=u16": 96,
        "SOFTMAX dst=0x4000 src0=0 src1={} M=2 N=17 out=u16": 32,
        "LAYERNORM dst=0x4000 src0=0 src1={} M=2 N=17": 64 + 128,
        "GELU dst=0x4000 src0=0 src1={} M=1 N=9": 256,
    }
    for text, length in cases.items():
        good = assemble(text.format(hex(size - length))).instructions
        assert (await bench.execute([*good, END])).finish.error is None, text
        bad = assemble(
            text.format(hex(size - length + 16)), limits=Limits(sram_bytes=2 * size)
        ).instructions
        await _expect(bench, list(bad), ErrorCode.SRAM_RANGE, address=size - length + 16)


@cocotb.test
async def test_refuse_stream_ends(dut: Dut) -> None:
    """A share past the end of the stream and a stream that is not used up are named."""
    bench = await Bench.start(dut)
    words = list(assemble("GELU dst=0 src0=0x100 M=1 N=16 stream").instructions)
    table = np.arange(512).astype(np.uint8).tobytes()
    short = (await bench.execute([*words, END], table[:192])).finish.error
    assert short is not None and (short.code, short.instr) == (ErrorCode.STREAM_END, 0)
    left = (await bench.execute([*words, END], table)).finish.error
    assert left is not None and (left.code, left.instr) == (ErrorCode.STREAM_LEFT, 1)
    assert (await bench.execute([*words, *words, END], table)).finish.error is None


@cocotb.test
async def test_refuse_addresses(dut: Dut) -> None:
    """Transfers that leave 32 bits or start between words are refused with their address."""
    bench = await Bench.start(dut)
    load = list(assemble("DMA_LOAD dst=0 M=2 N=64 b=2 off=0xFFFFFF80").instructions)
    bases = (0x10_0000, 0x20_0000, 0x10, 0, 0, 0, 0, 0)
    error = (await bench.execute([*load, END], bases=bases)).finish.error
    assert error is not None and error.code == ErrorCode.BAD_ADDRESS
    assert error.address == 0xFFFF_FF90
    bases = (0x10_0000, 0x20_0000, 0x10_0008, 0, 0, 0, 0, 0)
    load = list(assemble("DMA_LOAD dst=0 M=2 N=64 b=2").instructions)
    error = (await bench.execute([*load, END], bases=bases)).finish.error
    assert error is not None and error.code == ErrorCode.BAD_ADDRESS
    assert error.address == 0x10_0008
