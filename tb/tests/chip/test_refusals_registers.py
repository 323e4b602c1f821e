# SPDX-License-Identifier: Apache-2.0
"""Refusals that depend on machine registers: cache, EMBED, ARGMAX, contexts, and their order."""

from __future__ import annotations

from dataclasses import replace

import cocotb

from golden.machine import ErrorReport
from npu.asm import assemble
from spec.isa import Engine, ErrorCode, Instruction, Opcode
from spec.isa.operands import Limits
from spec.regs import MachineStart
from tb.bench.dut import Dut
from tb.bench.environment import Bench
from tb.stimulus.refused_programs import END, OLDER, YOUNGER, Refusals
from tb.stimulus.refused_words import Group, groups

TAGS = ("seq", "faults")

TOP = 1 << 32
ARGMAX = Instruction(Opcode.ARGMAX, imm=1)
BEST = "GEMM src0=0x2000 src1=0x3000 M=1 N=20 K=16 q=imm mul=9000 sh=20 out=none argmax"


def group(text: str) -> Group:
    """Return the one instruction of a text, in or out of the SRAM."""
    (words,) = groups(text, Limits(sram_bytes=1 << 30))
    return words


async def legal(bench: Bench, words: Group, registers: MachineStart) -> None:
    """Run a word that the sequencer must not refuse; there may be no memory where it goes."""
    start = bench.load([*words, END], **registers)
    error = (await bench.chip.run(start, 20_000)).error
    assert error is None or error.engine != Engine.SEQ, f"{words}: {error}"


@cocotb.test
async def test_refuse_context(dut: Dut) -> None:
    """K/V transfers end with the last position of the cache, SOFTMAX with its last column."""
    refusals = await Refusals.start(dut)
    append, read = (
        group("KV_APPEND src0=0x2000 layer=0 N=16 K=3 heads=0..0"),
        group("KV_READ dst=0x2000 layer=0 N=16 K=5 heads=0..0 base=32"),
    )
    gather = group("KV_READ dst=0x2000 layer=0 N=16 K=len-1<=64 heads=0..0")
    full = ErrorCode.CONTEXT_FULL
    for pos, capacity in ((0, 3), (7, 10), ((1 << 27) - 3, 1 << 27)):
        await legal(refusals.bench, append, {"pos": pos, "kv_cap": capacity})
        await refusals.refused(append, full, statically=False, pos=pos, kv_cap=capacity - 1)
    await refusals.refused(append, full, statically=False, pos=TOP - 1, kv_cap=TOP - 1)
    staged = group(
        "KV_APPEND dst=0x1000 src0=0x2000 hp=0 layer=0 N=16 K=3 heads=0..0 base=32 stage"
    )
    await legal(refusals.bench, staged, {"pos": 4, "kv_cap": 39})
    await refusals.refused(staged, full, statically=False, pos=4, kv_cap=38)
    # pos 100, window 40: the first visible tile begins at 32 * floor(61/32) = 32 or 16 * 3 = 48
    first = 61 // refusals.limits.edge * refusals.limits.edge
    await legal(refusals.bench, read, {"pos": 100, "kv_cap": first + 37, "window": 40})
    await refusals.refused(read, full, statically=False, pos=100, kv_cap=first + 36, window=40)
    await legal(refusals.bench, gather, {"pos": 9, "kv_cap": 9})
    await refusals.refused(gather, full, statically=False, pos=9, kv_cap=8)
    for text, most in (("len<=32", 31), ("len-1<=32", 32)):
        softmax = group(f"SOFTMAX dst=0x1000 src0=0x2000 M=2 N={text} out=prob")
        await legal(refusals.bench, softmax, {"pos": most})
        await refusals.refused(softmax, full, statically=False, pos=most + 1)
        await refusals.refused(softmax, full, statically=False, pos=TOP - 1)
        none = [replace(softmax[0], m=0xF801)]
        await refusals.refused(none, full, statically=False, pos=most + 1)


@cocotb.test
async def test_refuse_cache_addresses(dut: Dut) -> None:
    """The piece of the last head may end with the last byte of 32 bits."""
    refusals = await Refusals.start(dut)
    code, edge = ErrorCode.BAD_ADDRESS, refusals.limits.edge
    tile_row = edge * -(-20 // edge) * edge
    for text, pos, rows in (
        ("KV_APPEND src0=0x2000 layer=2 N=20 K=3 heads=1..4 v", 5, 1),
        ("KV_APPEND src0=0x2000 layer=2 N=20 K=3 heads=1..4", edge - 2, 2),
        ("KV_READ dst=0x2000 layer=2 N=20 K=5 heads=1..4 v base=32", 9, 32 // edge + 1),
    ):
        words = group(text)
        value = words[-1].flags & 1
        fixed: MachineStart = {"kv_layer": 0x4_0000, "kv_head": 0x1_0000, "kv_voff": 0x10_0000}
        offset = 2 * 0x4_0000 + 4 * 0x1_0000 + value * 0x10_0000
        base = TOP - offset - rows * tile_row
        given: MachineStart = {"pos": pos, "kv_base": base, "kv_cap": 100, **fixed}
        await legal(refusals.bench, words, given)
        given["kv_base"] = base + 0x100
        place = (base + 0x100 + offset) % TOP
        await refusals.refused(words, code, place, statically=False, **given)
        # The address goes before an operand outside, the capacity before both.
        if words[-1].opcode == Opcode.KV_READ:
            outside = [*words[:-1], replace(words[-1], dst=0xFFFF)]
        else:
            outside = [replace(words[-1], src0=0xFFFF)]
        await refusals.refused(outside, code, place, statically=False, **given)
        given["kv_base"] = base
        await refusals.refused(outside, ErrorCode.SRAM_RANGE, 0xFFFF0, **given)
        given["kv_cap"] = 2
        await refusals.refused(outside, ErrorCode.CONTEXT_FULL, statically=False, **given)
    # Products far beyond 32 bits
    (words,) = groups("KV_READ dst=0x2000 layer=0xFFFF N=20 K=1 heads=0..255 v cp=0x200")
    words = [words[0], replace(words[1], imm=0xFFFF)]
    top = TOP - 0x100
    given = {"kv_base": top, "kv_layer": top, "kv_head": top, "kv_voff": top, "kv_cap": TOP - 1}
    place = top + 0xFFFF * top + 510 * top + top
    await refusals.refused(words, code, place % TOP, statically=False, **given)
    # A product of twice the memory, and a sum that reaches it with the last summand
    for layer, step, start in ((0x8000, 1 << 18, 0), (1, 0x1_0000, top)):
        words = group(f"KV_READ dst=0x2000 layer={layer} N=16 K=1 heads=0..0 v")
        given = {"kv_base": start, "kv_layer": step, "kv_voff": start, "kv_cap": 1}
        place = 2 * start + layer * step
        assert 2 * TOP <= place < 2 * TOP + (1 << 20)
        await refusals.refused(words, code, place % TOP, statically=False, **given)


@cocotb.test
async def test_refuse_cache_ranges(dut: Dut) -> None:
    """Staging tiles and a cache in SRAM may end with the last word of the SRAM."""
    refusals = await Refusals.start(dut)
    code, size, edge = ErrorCode.SRAM_RANGE, refusals.bench.config.sram_bytes, refusals.limits.edge
    tile_row = edge * -(-20 // edge) * edge
    for pos, tiles in ((0, 1), (edge - 3, 1), (edge - 2, 2), (3 * edge, 4)):
        pitch = 0x4000
        last = size - tiles * tile_row
        for start, good in ((last - 2 * pitch, True), (last - 2 * pitch + 16, False)):
            words = group(
                f"KV_APPEND dst={start:#x} src0=0x100 hp={pitch:#x} layer=0 N=20 K=3 heads=0..2"
                " stage"
            )
            if good:
                await refusals.accepted(words, pos=pos)
            else:
                address = start + 2 * pitch
                await refusals.refused(words, code, address, statically=False, pos=pos)
    # With a window the tiles begin at its first tile.
    words = group(
        f"KV_APPEND dst={size - 2 * tile_row:#x} src0=0x100 hp=0 layer=0 N=20 K=1 heads=0..0 stage"
    )
    await refusals.accepted(words, pos=1000, window=3)
    await refusals.refused(words, code, size - 2 * tile_row, statically=False, pos=1000)
    for text in (
        "KV_APPEND src0=0x100 layer=1 N=20 K=3 heads=0..2 v",
        "KV_READ dst=0x100 layer=1 N=20 K=3 heads=0..2 v",
    ):
        words = group(text)
        fixed: MachineStart = {"kv_layer": 0x2000, "kv_head": 0x1000, "kv_voff": 0x800}
        base = size - tile_row - 0x2000 - 2 * 0x1000 - 0x800
        base -= base % 256
        given: MachineStart = {"kv_base": base, "kv_in_memory": False, **fixed}
        await refusals.accepted(words, **given)
        given["kv_base"] = base + 0x100
        place = base + 0x100 + 0x2000 + 2 * 0x1000 + 0x800
        await refusals.refused(words, code, place, statically=False, **given)
        given["kv_base"] = TOP - 0x100
        place = (place - base - 0x100 + TOP - 0x100) % TOP
        await refusals.refused(words, code, place, statically=False, **given)
    # Rows, staging and cache, in this order
    given = {"kv_base": TOP - 0x100, "kv_head": 0, "kv_in_memory": False}
    words = group("KV_APPEND dst=0xFFFF0 src0=0xFFFE0 hp=0x100 layer=0 N=20 K=3 heads=0..2 stage")
    await refusals.refused(words, code, 0xFFFE0, **given)
    inside = [*words[:-1], replace(words[-1], src0=0x10)]
    await refusals.refused(inside, code, 0xFFFF0 + 0x200, statically=False, **given)
    inside = [*words[:-1], replace(words[-1], src0=0x10, dst=0x100)]
    await refusals.refused(inside, code, TOP - 0x100, statically=False, **given)


@cocotb.test
async def test_refuse_embed(dut: Dut) -> None:
    """A row of a table by TOKEN or POS ends within 32 bits and begins on a word."""
    refusals = await Refusals.start(dut)
    bench, code = refusals.bench, ErrorCode.BAD_ADDRESS
    token = group("EMBED dst=0x1000 M=1 N=40 b=3 idx=token pitch=0x100")
    rows = group("EMBED dst=0x1000 M=5 N=40 b=3 idx=pos pitch=0x100")
    for index in (0, 1, 1000, (TOP >> 8) - 1):
        base = (TOP - 48 - index * 0x100) % TOP
        bases = (0, 0, 0, base, 0, 0, 0, 0)
        start = bench.load([*token, END], bases=bases, token=index)
        error = (await bench.chip.run(start, 20_000)).error
        assert error == ErrorReport(ErrorCode.READ_ERROR, Engine.LD, 0, TOP - 48), error
        bases = (0, 0, 0, base + 16, 0, 0, 0, 0)
        await refusals.refused(token, code, TOP - 32, statically=False, bases=bases, token=index)
        bases = (0, 0, 0, 0x1008, 0, 0, 0, 0)
        address = (0x1008 + index * 0x100) % TOP
        await refusals.refused(token, code, address, statically=False, bases=bases, token=index)
    for pos in (0, 3, 1 << 20):
        base = TOP - 48 - (pos + 4) * 0x100
        for step, good in ((0, True), (16, False)):
            bases = (0, 0, 0, base + step, 0, 0, 0, 0)
            if good:
                start = bench.load([*rows, END], bases=bases, pos=pos)
                error = (await bench.chip.run(start, 20_000)).error
                assert error is not None and error.engine == Engine.LD, error
            else:
                address = base + step + pos * 0x100
                await refusals.refused(rows, code, address, statically=False, bases=bases, pos=pos)
    for index in (TOP - 1, 1 << 28):
        address = (0x1000 + index * 0x100) % TOP
        bases = (0, 0, 0, 0x1000, 0, 0, 0, 0)
        await refusals.refused(token, code, address, statically=False, bases=bases, token=index)
        await refusals.refused(rows, code, address, statically=False, bases=bases, pos=index)
    outside = [replace(token[0], dst=0xFFFF)]
    await refusals.refused(outside, ErrorCode.SRAM_RANGE, 0xFFFF0)
    bases = (0, 0, 0, 0x1001, 0, 0, 0, 0)
    await refusals.refused(outside, code, 0x1001, statically=False, bases=bases)


@cocotb.test
async def test_refuse_argmax(dut: Dut) -> None:
    """ARGMAX needs a GEMM with argmax since the last one, and a word of memory for the token."""
    refusals = await Refusals.start(dut)
    best = assemble(BEST).instructions
    illegal = ErrorCode.ILLEGAL_FIELD
    await refusals.refused([ARGMAX], illegal, statically=False)
    program = [*best, ARGMAX, ARGMAX, *YOUNGER]
    await refusals.run(program, ErrorReport(illegal, Engine.SEQ, len(best) + 1))
    nothing = [replace(best[0], n=0xF801)]
    await refusals.run([*nothing, ARGMAX, END], ErrorReport(illegal, Engine.SEQ, 1))
    # What came before the start does not count.
    await refusals.run([*best, END], None)
    await refusals.refused([ARGMAX], illegal, statically=False)
    for base, count, good in (
        (0x20_0000, 0, True),
        (0x20_0008, 0, False),
        (0x20_0004, 1, False),
        (TOP - 16, 4, False),
        (0x20_0000, (TOP - 0x20_0000) // 4, False),
        (0x20_0000, TOP - 1, False),
        (0x20_0000, 77, True),
    ):
        bases = (0, base, 0, 0, 0, 0, 0, 0)
        sets = [Instruction(Opcode.SET, 0, 4, count & 0xFFFF, count >> 16)]
        program = [*OLDER, *best, *sets, ARGMAX, *YOUNGER]
        error = ErrorReport(
            ErrorCode.BAD_ADDRESS, Engine.SEQ, len(program) - 3, (base + 4 * count) % TOP
        )
        await refusals.run(program, None if good else error, bases=bases)
