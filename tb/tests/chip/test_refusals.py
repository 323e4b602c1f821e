# SPDX-License-Identifier: Apache-2.0
"""Programs that the chip refuses, by the rules of docs/reference/isa.md.

After every refusal error code, engine, instruction and address are those of the documents and of
the model; SRAM and memory are compared whole, so nothing is half done; and a program that uses
every engine and the stream runs without a reset between and is compared as well, in the short form
behind one refusal in eight.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import cocotb
import numpy as np

from golden.machine import ErrorReport, Machine, StartState
from npu.asm import assemble
from spec.isa import OPCODES, PREFIX_FIELDS, WORD, Engine, ErrorCode, Instruction, Opcode, SetReg
from spec.isa.fields import WORD_FIELDS
from spec.isa.legality import check
from spec.isa.operands import (
    DYNAMIC,
    LINE_WORDS,
    MORE_LINES,
    Limits,
    Prefix,
    share_bytes,
    sram_operands,
    up,
)
from tb.bench.dut import Dut
from tb.bench.environment import DEFAULT_LIMIT, INPUT, OUTPUT
from tb.stimulus.refused_programs import BASES, END, NOP, OLDER, YOUNGER, Refusals, changed, forms
from tb.stimulus.refused_words import DEPTHWISE, FORBIDDEN, LINES, Group, groups

TAGS = ("seq", "faults")

FIELDS = ("flags", "dst", "src0", "src1", "m", "n", "k", "imm")


# -----------------------------------------------------------------------------------------------
# Opcodes and fields
# -----------------------------------------------------------------------------------------------
@cocotb.test
async def test_refuse_opcodes(dut: Dut) -> None:
    """All 256 opcodes: unknown ones are ILLEGAL_OPCODE, others never."""
    refusals = await Refusals.start(dut)
    known = {int(opcode) for opcode in OPCODES}
    assert len(known) == 20
    for number in range(256):
        if number not in known:
            await refusals.refused([Instruction(number)], ErrorCode.ILLEGAL_OPCODE)
            continue
        execution = await refusals.bench.execute([Instruction(number), END])
        error = execution.finish.error
        assert error is None or error.code != ErrorCode.ILLEGAL_OPCODE, (number, error)


@cocotb.test
async def test_refuse_opcodes_first(dut: Dut) -> None:
    """The opcode is checked before fields, dimensions, ranges and the use of a prefix."""
    refusals = await Refusals.start(dut)
    wrong = dict.fromkeys(FIELDS, 0xFFFF) | {"flags": 0xFF}
    prefix = Instruction(Opcode.PFX, flags=0x3F, **dict.fromkeys(FIELDS[1:], 0xFFFF))
    for number in (19, 20, 127, 128, 254):
        word = Instruction(number, **wrong)
        await refusals.refused([word], ErrorCode.ILLEGAL_OPCODE)
        await refusals.refused([prefix, word], ErrorCode.ILLEGAL_OPCODE)


def _reserved_bits(spare: int, random: np.random.Generator) -> list[int]:
    """Return the reserved bits of an opcode; of fields that are reserved whole, both ends and one.

    `spare` has a bit set for each reserved bit of the 128-bit word.
    """
    bits: list[int] = []
    for lsb, width in WORD_FIELDS.values():
        inside = [bit for bit in range(lsb, lsb + width) if spare >> bit & 1]
        if len(inside) == 16:
            inside = [inside[0], int(random.choice(inside[1:-1])), inside[-1]]
        bits += inside
    return bits


@cocotb.test
async def test_refuse_reserved_bits(dut: Dut) -> None:
    """A bit that an opcode does not name is ILLEGAL_FIELD by itself."""
    refusals = await Refusals.start(dut)
    plain = {words[-1].opcode: words for words in reversed(forms())}
    tried = 0
    for opcode, info in OPCODES.items():
        if opcode == Opcode.PFX:
            continue
        for bit in _reserved_bits(info.spare, refusals.bench.random):
            words = list(plain[opcode])
            words[-1] = Instruction.from_int(words[-1].to_int() | 1 << bit)
            await refusals.refused(words, ErrorCode.ILLEGAL_FIELD)
            tried += 1
    assert tried > 150, f"only {tried} bits were tried"


@cocotb.test
async def test_refuse_forbidden_fields(dut: Dut) -> None:
    """Each combination of fields that the documents forbid is ILLEGAL_FIELD."""
    refusals = await Refusals.start(dut)
    for words in (words for rule in FORBIDDEN.values() for words in rule):
        # A prefix is no instruction of its own for the checker of instructions.
        statically = words[-1].opcode != Opcode.PFX
        await refusals.refused(words, ErrorCode.ILLEGAL_FIELD, statically=statically)


@cocotb.test
async def test_refuse_unused_prefix(dut: Dut) -> None:
    """Each prefix operand that a form does not use is ILLEGAL_FIELD if it is not zero."""
    refusals = await Refusals.start(dut)
    tried = set()
    for words in forms():
        word = words[-1]
        prefix = words[0] if len(words) == 2 else Instruction(Opcode.PFX)
        for name, field in PREFIX_FIELDS.items():
            if name == "sums" or getattr(prefix, field):
                continue  # sums shares its field with mul
            pair = [replace(prefix, **{field: 16}), word]
            found = check(word, pair[0], refusals.limits)
            if found is None or found[0] != ErrorCode.ILLEGAL_FIELD:
                continue  # this form uses it
            await refusals.refused(pair, ErrorCode.ILLEGAL_FIELD)
            tried.add((word.opcode, name))
    named = {name for _, name in tried}
    assert named == PREFIX_FIELDS.keys() - {"sums"}, f"refused are only {named}"
    # What no form of an opcode uses, each opcode must have refused.
    for opcode, info in OPCODES.items():
        if opcode != Opcode.PFX:
            unused = PREFIX_FIELDS.keys() - set(info.prefix) - {"sums"}
            if "sums" in info.prefix:
                unused -= {"mul"}
            assert {(opcode, name) for name in unused} <= tried, opcode.name


@cocotb.test
async def test_refuse_changed_fields(dut: Dut) -> None:
    """Legal words with one field changed at random: refused or run exactly as the model says."""
    refusals = await Refusals.start(dut)
    bench, legal = refusals.bench, forms()
    refused = 0
    for _ in range(400):
        words = legal[int(bench.random.integers(len(legal)))]
        place = int(bench.random.integers(len(words)))
        field = str(bench.random.choice(FIELDS))
        width = 8 if field == "flags" else 16
        value = getattr(words[place], field) ^ (1 << int(bench.random.integers(width)))
        if bench.random.random() < 0.3:
            value = int(bench.random.choice([0, 1, 15, 16, 0x80, 0xEFFF, 0xF000, 0xFFFF]))
            value &= (1 << width) - 1
        words = changed(words, place, **{field: value})
        prefix = words[0] if len(words) == 2 else None
        if check(words[-1], prefix, refusals.limits) is None:
            continue  # still legal: the engines' own tests run such words
        execution = await bench.execute([*words, END], bases=BASES)
        assert execution.finish.error is not None
        await refusals.recover()
        refused += 1
    assert refused > 100, f"only {refused} words were refused"


@cocotb.test
async def test_refuse_noise(dut: Dut) -> None:
    """Programs of random words end as the model says: most are refused, none hangs."""
    refusals = await Refusals.start(dut)
    known = [int(opcode) for opcode in OPCODES]
    wanted = {ErrorCode.ILLEGAL_OPCODE, ErrorCode.ILLEGAL_FIELD, ErrorCode.BAD_DIMENSION, None}
    codes: set[ErrorCode | None] = set()
    number = 0
    while number < 100 or not wanted <= codes:
        number += 1
        assert number <= 1000, f"of {wanted} only {codes}"
        raw = refusals.bench.random.bytes(WORD * 4)
        words = [Instruction.decode(raw[at : at + WORD]) for at in range(0, len(raw), WORD)]
        for index in range(4):
            if refusals.bench.random.random() < 0.9:
                opcode = int(refusals.bench.random.choice(known))
                words[index] = replace(words[index], opcode=opcode)
            if refusals.bench.random.random() < 0.3:
                words[index] = Instruction(words[index].opcode)
        start = refusals.bench.load(words, bases=BASES)
        error = (await refusals.bench.run(words, start)).finish.error
        codes.add(None if error is None else error.code)
        await refusals.recover()


# -----------------------------------------------------------------------------------------------
# Dimensions
# -----------------------------------------------------------------------------------------------
def static(words: Group) -> Group:
    """Return the words with a GEMM's base taken out if none of its dimensions is dynamic."""
    word = words[-1]
    if word.opcode != Opcode.GEMM or len(words) == 1 or max(word.m, word.n, word.k) >= DYNAMIC:
        return words
    return changed(words, 0, k=0)


@cocotb.test
async def test_refuse_dimensions(dut: Dut) -> None:
    """Each dimension of each form: zero, and from 0xF000 on where it must be a number."""
    refusals = await Refusals.start(dut)
    tried = set()
    for words in forms():
        info = OPCODES[Opcode(words[-1].opcode)]
        for name in ("m", "n", "k"):
            field = info.fields.get(name)
            if field is None or field.kind not in ("dim", "dyn"):
                continue
            tried.add((words[-1].opcode, name))
            dynamic = (0xF000, 0xF800 + words[-1].opcode, 0xFFFF) if field.kind == "dim" else ()
            for value in (0, *dynamic):
                wrong = static(changed(words, -1, **{name: value}))
                await refusals.refused(wrong, ErrorCode.BAD_DIMENSION)
    two = {Opcode.DMA_LOAD, Opcode.DMA_STORE, Opcode.VEC, Opcode.SOFTMAX, Opcode.LAYERNORM}
    two |= {Opcode.RMSNORM, Opcode.GELU, Opcode.SILU, Opcode.EMBED}
    three = {Opcode.GEMM, Opcode.ROPE}
    cached = {Opcode.KV_APPEND, Opcode.KV_READ}
    assert tried == {*product(two, "mn"), *product(three, "mnk"), *product(cached, "nk")}


@cocotb.test
async def test_refuse_dynamic_dimensions(dut: Dut) -> None:
    """Where a form of an opcode takes a number only, or a limit counts the cap."""
    refusals = await Refusals.start(dut)
    rows = refusals.bench.config.acc_rows
    gemm = "GEMM dst=0x1000 src0=0x2000 src1=0x3000"
    streamed = "GEMM dst=0x1000 src0=0x2000"
    cases: list[tuple[str, dict[str, int]]] = [
        (f"{streamed} M=4 N=16 K=16 B=stream q=ch", {"n": 0xF001}),
        (f"{streamed} M=4 N=16 K=16 B=stream q=ch", {"k": 0xF801}),
        (f"{streamed} M=4 N=16 K=16 B=stream out=i32", {"n": 0xF001}),
        (f"{gemm} M=4 N=16 K=16 q=ch", {"n": 0xF001}),
        (f"{gemm} M=4 N=16 K=16 A=i16 out=i32", {"m": 0xF001}),
        (f"{gemm} M=1 N=16 K=16 q=tensor argmax", {"m": 2}),
        (f"{gemm} M=1 N=16 K=16 q=tensor argmax", {"m": 0xF001}),
        (f"{gemm} M=4 N=16 K=16 classic", {"m": 0xF000 | (rows // 16 + 1)}),
        (f"{gemm} M=4 N=16 K=16 classic", {"m": 0xF000}),
        (f"{gemm} M=4 N=16 K=16 A=u16 q=tensor", {"m": 0xF800 | (rows // 32 + 1)}),
        ("EMBED dst=0x1000 M=1 N=16 b=0 idx=token", {"m": 2}),
        ("ROPE dst=0x1000 src0=0x2000 src1=0x3000 M=3 N=18 K=2", {"n": 17}),
    ]
    for text, fields in cases:
        (words,) = groups(text)
        await refusals.refused(changed(words, -1, **fields), ErrorCode.BAD_DIMENSION)
    for text, fields in (
        (f"{gemm} M=4 N=16 K=16 q=ch", {"k": 0xF001}),
        (f"{gemm} M=4 N=16 K=16 classic", {"m": 0xF000 | rows // 16}),
        (f"{gemm} M=4 N=16 K=16 A=u16 q=tensor", {"m": 0xF000 | rows // 32}),
        ("SOFTMAX dst=0x4000 src0=0x8000 M=4 N=9 out=prob", {"m": 0xF002, "k": 3}),
    ):
        (words,) = groups(text)
        await refusals.accepted(changed(words, -1, **fields), pos=20)


@cocotb.test
async def test_refuse_accumulator_rows(dut: Dut) -> None:
    """A GEMM may have as many rows as the accumulators, half of that with a 16-bit A."""
    refusals = await Refusals.start(dut)
    rows = refusals.bench.config.acc_rows
    for a_type, most in (("i8", rows), ("u8", rows), ("i16", rows // 2), ("u16", rows // 2)):
        text = f"GEMM dst=0x10000 src0=0 src1=0x18000 M=1 N=3 K=5 A={a_type} out=i32"
        (words,) = groups(text)
        await refusals.accepted(changed(words, -1, m=most))
        for more in (most + 1, 2 * most, 2 * most + 1, 256 * most, 0xEFFF):
            await refusals.refused(changed(words, -1, m=more), ErrorCode.BAD_DIMENSION)
    (classic,) = groups("GEMM dst=0x10000 src0=0 src1=0x18000 M=1 N=3 K=5 classic")
    await refusals.accepted(changed(classic, -1, m=rows))
    await refusals.refused(changed(classic, -1, m=rows + 1), ErrorCode.BAD_DIMENSION)


@cocotb.test
async def test_refuse_row_limits(dut: Dut) -> None:
    """Norms have a longest row; the rows of SOFTMAX divide into heads."""
    refusals = await Refusals.start(dut)
    most = refusals.bench.config.norm_max
    for name in ("LAYERNORM", "RMSNORM"):
        (norm,) = groups(f"{name} dst=0x8000 src0=0 M=1 N={most} stream")
        await refusals.accepted(norm)
        for longer in (most + 1, most + 16, 0xEFFF):
            await refusals.refused(changed(norm, -1, n=longer), ErrorCode.BAD_DIMENSION)
    (softmax,) = groups("SOFTMAX dst=0x1000 src0=0x2000 src1=0x3000 M=12 N=9 out=u16 causal")
    for heads in (1, 2, 3, 4, 6, 12):
        await refusals.accepted(changed(softmax, -1, k=heads))
    for heads in (5, 7, 8, 9, 10, 11, 13, 24, 0x8000, 0xEFFF, 0xF000, 0xFFFF):
        await refusals.refused(changed(softmax, -1, k=heads), ErrorCode.BAD_DIMENSION)


@cocotb.test
async def test_refuse_overflowing_dimensions(dut: Dut) -> None:
    """Footprints whose end would wrap around in 16, 20, 24, 32 bits are still outside."""
    refusals = await Refusals.start(dut)
    for words in forms():
        word, largest = words[-1], {}
        for name in ("m", "n", "k"):
            field = OPCODES[Opcode(word.opcode)].fields.get(name)
            if field is not None and field.kind in ("dim", "dyn"):
                largest[name] = 0xEFFF
        if not largest or ("m" in largest and word.m == 1):
            continue  # one row of any length fits
        if word.opcode == Opcode.GEMM:
            largest["m"] = refusals.bench.config.acc_rows // 2
            said = Prefix.of(words[0] if len(words) > 1 else None)
            operands = sram_operands(word, said, refusals.limits.edge)
            if [operand.name for operand in operands].count("src0") == 2:
                half = MORE_LINES.put(1) | LINE_WORDS.put(up(largest["k"]) // WORD // 2)
                words = changed(words, 0, **{PREFIX_FIELDS["lines"]: half})
        if word.opcode == Opcode.SOFTMAX:
            largest["k"] = 0
        if word.opcode in (Opcode.LAYERNORM, Opcode.RMSNORM):
            largest["n"] = refusals.bench.config.norm_max
        if word.opcode == Opcode.ROPE:
            largest["n"] = 0xEFFE
        wide = static(changed(words, -1, **largest))
        address = refusals.outside(wide)
        await refusals.refused(wide, ErrorCode.SRAM_RANGE, address)
    pitched = {
        "cp": "VEC op=copy2d dst=0 src0=0x10 M=2 N=8",
        "ap": "VEC op=copy2d dst=0x10 src0=0 M=2 N=8",
        "bp": "VEC op=add dst=0x10 src0=0x10 src1=0 M=2 N=8",
    }
    for name, text in pitched.items():
        (words,) = groups(text)
        for rows, pitch in ((3, 0x8000), (0x201, 0x8000), (0x8001, 0x8000), (0xE001, 0x8000)):
            prefix = Instruction(Opcode.PFX, **{PREFIX_FIELDS[name]: pitch})
            pair = [prefix, replace(words[-1], m=rows)]
            if name != "cp":
                # The output stays inside: its rows lie on one another.
                pair = changed(pair, 0, dst=0)
            await refusals.refused(pair, ErrorCode.SRAM_RANGE, refusals.outside(pair))


# -----------------------------------------------------------------------------------------------
# Operands in SRAM
# -----------------------------------------------------------------------------------------------
PLACES = {"dst": 0x1000, "src0": 0x2000, "src1": 0x3000, "d": 0x4000, "sums": 0x5000}
FOOTPRINTS: list[tuple[str, dict[str, int]]] = [
    ("DMA_LOAD dst={dst} M=3 N=40 b=0 cp=64", {"dst": 64 * 2 + 48}),
    ("DMA_STORE dst={dst} M=3 N=40 b=1", {"dst": 48 * 3}),
    (
        "GEMM dst={dst} src0={src0} src1={src1} M=5 N=20 K=17 classic",
        {"dst": 80 * 5, "src0": 32 * 5, "src1": 32 * 17},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} M=5 N=20 K=17 T classic cp=96 ap=48 bp=64",
        {"dst": 96 * 4 + 80, "src0": 48 * 4 + 32, "src1": 64 * 19 + 32},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} M=5 N=20 K=17 scale=3 shift=2",
        {"dst": 32 * 5, "src0": 32 * 5, "src1": 32 * 17},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} d={d} M=5 N=20 K=17 classic acc dp=96",
        {"dst": 80 * 5, "src0": 32 * 5, "src1": 32 * 17, "d": 96 * 4 + 80},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} d={d} M=5 N=20 K=17 A=i16 out=i32 acc",
        {"dst": 80 * 10, "src0": 48 * 5, "src1": 32 * 17, "d": 80 * 10},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} d={d} M=5 N=20 K=17 q=tensor op=add out=i16",
        {"dst": 48 * 5, "src0": 32 * 5, "src1": 32 * 17, "d": 48 * 5},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} d={d} M=5 N=20 K=17 q=tensor op=mul mul=9",
        {"dst": 32 * 5, "src0": 32 * 5, "src1": 32 * 17, "d": 32 * 5},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} d={d} sums={sums} M=5 N=20 K=17 A=u16 q=row op=add",
        {"dst": 32 * 5, "src0": 48 * 5, "src1": 32 * 17, "d": 32 * 5, "sums": 16 * 5},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} M=5 N=20 K=16 B=stream q=ch op=add out=i16",
        {"dst": 48 * 5, "src0": 16 * 5, "src1": 48 * 5},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} M=5 N=20 K=16 B=stream acc",
        {"dst": 80 * 5, "src0": 16 * 5, "src1": 80 * 5},
    ),
    (
        "VEC op=add dst={dst} src0={src0} src1={src1} M=2 N=33 cp=64 ap=80 bp=96",
        {"dst": 64 + 48, "src0": 80 + 48, "src1": 96 + 48},
    ),
    (
        "VEC op=sub dst={dst} src0={src0} src1={src1} M=2 N=33 A=i16 out=i16",
        {"dst": 160, "src0": 160, "src1": 160},
    ),
    (
        "VEC op=scale_shift dst={dst} src0={src0} M=2 N=33 A=i16 out=i8 scale=5",
        {"dst": 96, "src0": 160},
    ),
    (
        "VEC op=table dst={dst} src0={src0} src1={src1} M=2 N=33",
        {"dst": 96, "src0": 96, "src1": 256},
    ),
    (
        "SOFTMAX dst={dst} src0={src0} src1={src1} M=2 N=17 out=u16",
        {"dst": 128, "src0": 96, "src1": 32},
    ),
    (
        "SOFTMAX dst={dst} src0={src0} src1={src1} M=2 N=17 A=i8 out=u8 cp=48 ap=64",
        {"dst": 48 + 32, "src0": 64 + 32, "src1": 32},
    ),
    ("SOFTMAX dst={dst} src0={src0} M=3 N=8 out=prob", {"dst": 48, "src0": 48}),
    (
        "LAYERNORM dst={dst} src0={src0} src1={src1} M=2 N=17",
        {"dst": 64, "src0": 96, "src1": 64 + 128},
    ),
    (
        "LAYERNORM dst={dst} src0={src0} M=2 N=17 out=i16 stream cp=80 ap=96",
        {"dst": 80 + 48, "src0": 96 + 48},
    ),
    (
        "GELU dst={dst} src0={src0} src1={src1} M=2 N=9 cp=48 ap=32",
        {"dst": 48 + 16, "src0": 32 + 16, "src1": 256},
    ),
    ("GELU dst={dst} src0={src0} M=2 N=9 stream", {"dst": 32, "src0": 32}),
    (
        "GEMM src0={src0} src1={src1} M=1 N=20 K=17 q=tensor out=none argmax",
        {"src0": 32, "src1": 32 * 17},
    ),
    (
        "GEMM dst={dst} src0={src0} src1={src1} M=len<=16 N=len-1<=32 K=len<=48 q=imm mul=5 sh=3",
        {"dst": 32 * 16, "src0": 48 * 16, "src1": 32 * 48},
    ),
    (
        "SOFTMAX dst={dst} src0={src0} src1={src1} M=len<=16 N=len<=32 out=u16",
        {"dst": 64 * 16, "src0": 64 * 16, "src1": 16 * 16},
    ),
    (
        "RMSNORM dst={dst} src0={src0} src1={src1} M=2 N=17",
        {"dst": 64, "src0": 96, "src1": 64 + 128},
    ),
    (
        "SILU dst={dst} src0={src0} src1={src1} M=2 N=9 cp=48 ap=32",
        {"dst": 48 + 16, "src0": 32 + 16, "src1": 256},
    ),
    (
        "ROPE dst={dst} src0={src0} src1={src1} M=3 N=18 K=5",
        {"dst": 160 * 3, "src0": 160 * 3, "src1": 48 * 3},
    ),
    (
        "ROPE dst={dst} src0={src0} src1={src1} M=3 N=18 K=5 cp=192 ap=208 bp=64",
        {"dst": 192 * 2 + 160, "src0": 208 * 2 + 160, "src1": 64 * 2 + 48},
    ),
    ("KV_APPEND src0={src0} layer=0 N=20 K=3 heads=0..4", {"src0": 160 * 3}),
    ("KV_APPEND src0={src0} layer=0 N=20 K=3 heads=0..4 ap=192", {"src0": 192 * 2 + 160}),
    ("EMBED dst={dst} M=1 N=40 b=0 idx=token", {"dst": 48}),
    ("EMBED dst={dst} M=3 N=40 b=0 idx=pos cp=64", {"dst": 64 * 2 + 48}),
    ("EMBED dst={dst} src0={src0} M=5 N=40 b=0 idx=list", {"dst": 48 * 5, "src0": 32}),
]
"""Program texts with the bytes of each operand, counted by hand from the table of the documents."""
READ = "KV_READ dst={dst} layer=0 N=20 K=5 heads=0..2"
TILED = "GEMM dst={dst} src0={src0} src1={src1} M=5 N=20 K=17 B=tile out=i32"


def _placed(text: str, places: dict[str, int]) -> Group:
    """Return the instruction with its operands at byte addresses, in or out of the SRAM."""
    at = {name: hex(address) for name, address in (PLACES | places).items()}
    (words,) = groups(text.format(**at), Limits(sram_bytes=1 << 30))
    return words


@cocotb.test
async def test_refuse_ranges(dut: Dut) -> None:
    """Each operand may end with the last word of the SRAM and not one word later."""
    refusals = await Refusals.start(dut)
    size, edge = refusals.bench.config.sram_bytes, refusals.limits.edge
    tiles = 2 * 16 if edge == 16 else 32
    tiled = (TILED, {"dst": 80 * 5, "src0": 32 * 5, "src1": tiles * tiles})
    read = (READ, {"dst": 3 * (2 * 256 if edge == 16 else 1024)})
    covered = set()
    for text, lengths in [*FOOTPRINTS, tiled, read]:
        for name, length in lengths.items():
            last = size - length
            await refusals.accepted(_placed(text, {name: last}))
            for address in (last + WORD, size, 0xFFFF0):
                words = _placed(text, {name: address})
                await refusals.refused(words, ErrorCode.SRAM_RANGE, address)
            covered.add((words[-1].opcode, name))
        prefix = Prefix.of(words[0] if len(words) == 2 else None)
        operands = [operand.name for operand in sram_operands(words[-1], prefix, edge)]
        assert set(operands) == lengths.keys(), f"{text} has the operands {operands}"
    kinds = {opcode: {"dst", "src0", "src1"} for opcode in Opcode}
    kinds[Opcode.DMA_LOAD] = kinds[Opcode.DMA_STORE] = {"dst"}
    kinds[Opcode.GEMM] |= {"d", "sums"}
    kinds[Opcode.KV_READ], kinds[Opcode.KV_APPEND] = {"dst"}, {"src0"}
    kinds[Opcode.EMBED] = {"dst", "src0"}
    for opcode in (Opcode.NOP, Opcode.BARRIER, Opcode.PFX, Opcode.SET, Opcode.END):
        del kinds[opcode]
    del kinds[Opcode.ARGMAX], kinds[Opcode.LOOP]
    assert covered == {(opcode, name) for opcode, names in kinds.items() for name in names}


@cocotb.test
async def test_refuse_depthwise(dut: Dut) -> None:
    """The mode bit on small arrays, else K; A's further rows and lines count in its range."""
    refusals = await Refusals.start(dut)
    limits = refusals.limits
    edge, size = limits.edge, limits.sram_bytes

    def word(k: int, m: int = 4, at: int = 0x2000, pitches: str = "") -> Group:
        text = DEPTHWISE.format(src0=hex(at), m=m, k=16) + pitches
        (words,) = groups(text, Limits(sram_bytes=1 << 30))
        return changed(words, -1, k=k)

    if not refusals.bench.config.depthwise:
        for k in (16, 24, 64):
            await refusals.refused(word(k), ErrorCode.ILLEGAL_FIELD)
        return
    for k in (1, edge - 1, edge + 8, 4 * edge - 1, 4 * edge + 1, 5 * edge, 8 * edge, 0xF001):
        await refusals.refused(word(k), ErrorCode.BAD_DIMENSION)
    for m in (limits.acc_rows + 1, 0xF000):
        await refusals.refused(changed(word(edge), -1, m=m), ErrorCode.BAD_DIMENSION)
    for m in (1, limits.acc_rows, 0xF001):
        await refusals.accepted(changed(word(edge), -1, m=m), pos=5)
    for lines, m, pitches, length in (
        (1, 4, "", 7 * 32),
        (1, 1, " ap=16", 3 * 16 + 32),
        (4, 4, "", (7 + 3) * 32),
        (2, 4, " bp=16", 7 * 32 + 16),
        (3, 5, " ap=48 bp=0x400", 7 * 48 + 32 + 2 * 0x400),
        (4, 4, " bp=0x2000", 7 * 32 + 3 * 0x2000),
    ):
        last = size - length
        await refusals.accepted(word(lines * edge, m, last, pitches))
        for at in (last + WORD, size, 0xFFFF0):
            await refusals.refused(word(lines * edge, m, at, pitches), ErrorCode.SRAM_RANGE, at)


@cocotb.test
async def test_refuse_lines(dut: Dut) -> None:
    """Lines that are no whole tiles or not a row; all of them count in the range of A."""
    refusals = await Refusals.start(dut)
    limits = refusals.limits
    edge, size = limits.edge, limits.sram_bytes

    def word(k: int, lines: str, at: int = 0x2000, pitches: str = " bp=0x100") -> Group:
        form = "2x32 A=i16" if lines.endswith("w") else "2x16"
        text = LINES.format(src0=hex(at), k=32, lines=form) + pitches
        (words,) = groups(text, Limits(sram_bytes=1 << 30, array_dim=4))
        count, line = (int(part) for part in lines.rstrip("w").split("x"))
        return changed(
            changed(words, -1, k=k), 0, m=MORE_LINES.put(count - 1) | LINE_WORDS.put(line // WORD)
        )

    for k, lines in (
        (2 * edge, f"2x{2 * edge}"),
        (2 * edge + 1, f"2x{edge}"),
        (edge, f"2x{edge}"),
        (3 * edge, f"2x{edge}"),
        (4 * edge, f"3x{edge}"),
        (edge, "2x0"),
        (edge, f"2x{edge}w"),
        (3 * edge // 2, f"3x{edge}w"),
        (2 * edge, f"2x{edge}w"),
    ):
        await refusals.refused(word(k, lines), ErrorCode.BAD_DIMENSION)
    if edge > 16:
        await refusals.refused(word(32, "2x16"), ErrorCode.BAD_DIMENSION)
    await refusals.refused(word(edge, f"1x{edge}"), ErrorCode.ILLEGAL_FIELD)
    without = changed(word(2 * edge, f"2x{edge}"), 0, src1=0)
    await refusals.refused(without, ErrorCode.ILLEGAL_FIELD)
    for k, lines, pitches, length in (
        (2 * edge, f"2x{edge}", " bp=16", 3 * 2 * edge + 16 + edge),
        (2 * edge - 15, f"2x{edge}", " bp=0x400", 3 * 2 * edge + 0x400 + edge),
        (3 * edge, f"3x{edge}", " ap=16 bp=0x100", 3 * 16 + 2 * 0x100 + edge),
        (8 * edge, f"4x{2 * edge}", " ap=16 bp=0x200", 3 * 16 + 3 * 0x200 + 2 * edge),
        (4 * edge, f"4x{2 * edge}w", " ap=16 bp=0x200", 3 * 16 + 3 * 0x200 + 2 * edge),
    ):
        last = size - length
        await refusals.accepted(word(k, lines, last, pitches))
        for at in (last + WORD, size, 0xFFFF0):
            await refusals.refused(word(k, lines, at, pitches), ErrorCode.SRAM_RANGE, at)


@cocotb.test
async def test_refuse_ranges_in_order(dut: Dut) -> None:
    """With several operands outside, the first of dst, src0, src1, d, sums is named."""
    refusals = await Refusals.start(dut)
    size = refusals.bench.config.sram_bytes
    for text, lengths in FOOTPRINTS:
        outside = {name: size + WORD * number for number, name in enumerate(PLACES)}
        for name in (name for name in PLACES if name in lengths):
            words = _placed(text, {key: outside[key] for key in lengths if key in outside})
            await refusals.refused(words, ErrorCode.SRAM_RANGE, outside[name])
            del outside[name]


# -----------------------------------------------------------------------------------------------
# Addresses in memory and SET
# -----------------------------------------------------------------------------------------------
@cocotb.test
async def test_refuse_addresses(dut: Dut) -> None:
    """Transfers that start between words or leave 32 bits; each base; loads and stores."""
    refusals = await Refusals.start(dut)
    code, top = ErrorCode.BAD_ADDRESS, 1 << 32
    for opcode in (Opcode.DMA_LOAD, Opcode.DMA_STORE):
        for base in range(8):
            for low in (1 << base % 4, 8):
                bases = tuple(0x10_0000 + (low if number == base else 0) for number in range(8))
                word = Instruction(opcode, dst=0x100, src0=0x20, m=2, n=64, imm=base)
                address = 0x10_0020 + low
                await refusals.refused([word], code, address, bases=bases, statically=False)
        for low in (1, 2, 4, 8, 15):
            word = Instruction(opcode, dst=0x100, src0=0x20 + low, m=2, n=64)
            await refusals.refused([word], code, INPUT + 0x20 + low)
        # The last byte may be the last of 32 bits: (base, offset, rows, bytes, pitch in words)
        for base, offset, rows, size, pitch in (
            (0x10, 0xFFFF_FFF0, 1, 16, 0),
            (0x10, 0xFFFF_FF80, 2, 64, 0),
            (0xFFFF_FFF0, 0, 1, 17, 0),
            (0xFFFF_FFF0, 0xFFFF_FFF0, 1, 16, 0),
            (0xFFFF_FF00, 0, 2, 16, 16),
            (0, 0x8000_0000, 0x8001, 16, 0x1000),
            (0, 0, 0xEFFF, 16, 0xFFFF),
            (0x1000, 0, 0x1002, 16, 0xFFFF),
        ):
            word = Instruction(
                opcode,
                dst=0,
                src0=offset & 0xFFFF,
                src1=offset >> 16,
                m=rows,
                n=size,
                k=pitch,
                imm=4,
            )
            prefix = Instruction(Opcode.PFX, dst=1)
            bases = (INPUT, OUTPUT, 0, 0, base, 0, 0, 0)
            last = base + offset + (rows - 1) * (pitch * WORD or -(-size // WORD) * WORD) + size
            assert last > top
            address = (base + offset) % top
            await refusals.refused([prefix, word], code, address, bases=bases, statically=False)


@cocotb.test
async def test_refuse_nothing_at_the_top_of_memory(dut: Dut) -> None:
    """A transfer whose last byte is the last of 32 bits is legal: it reaches the bus."""
    refusals = await Refusals.start(dut)
    bench = refusals.bench
    codes = {"LOAD": (ErrorCode.READ_ERROR, Engine.LD), "STORE": (ErrorCode.WRITE_ERROR, Engine.ST)}
    for name, (code, engine) in codes.items():
        for rows, size in ((1, 16), (1, 7), (2, 64), (3, 256)):
            offset = (1 << 32) - 0x10 - (rows - 1) * -(-size // WORD) * WORD - size
            offset -= offset % WORD
            text = f"NOP\nDMA_{name} dst=0x100 b=2 off={offset:#x} M={rows} N={size}\nEND"
            start = bench.load(assemble(text).instructions, bases=BASES)
            found = (await bench.chip.run(start, DEFAULT_LIMIT)).error
            assert found == ErrorReport(code, engine, 1, 0x10 + offset), found
            await refusals.recover()


@cocotb.test
async def test_refuse_addresses_before_ranges(dut: Dut) -> None:
    """A transfer with a bad memory address and a bad SRAM range names the memory address."""
    refusals = await Refusals.start(dut)
    for opcode in (Opcode.DMA_LOAD, Opcode.DMA_STORE):
        word = Instruction(opcode, dst=0xFFFF, src0=0x28, m=2, n=64)
        await refusals.refused([word], ErrorCode.BAD_ADDRESS, INPUT + 0x28)
        await refusals.refused([replace(word, src0=0x20)], ErrorCode.SRAM_RANGE, 0xFFFF0)
        await refusals.refused([replace(word, m=0)], ErrorCode.BAD_DIMENSION)
        await refusals.refused([replace(word, m=0, flags=1)], ErrorCode.ILLEGAL_FIELD)
        await refusals.refused([replace(word, m=0, flags=1, opcode=99)], ErrorCode.ILLEGAL_OPCODE)


@cocotb.test
async def test_refuse_set_values(dut: Dut) -> None:
    """SET takes multiples of the register's granularity; the address is the value."""
    refusals = await Refusals.start(dut)
    registers: dict[int, tuple[int, ...]] = {
        SetReg.BASE0 + number: (1 << number % 4, 8) for number in range(8)
    }
    registers[SetReg.STREAM] = (1, 2, 4, 8, 16, 32)
    places = (SetReg.KVBASE, SetReg.KVLAYER, SetReg.KVHEAD, SetReg.KVVOFF)
    registers |= dict.fromkeys(places, (1, 16, 128))
    for register, wrong in registers.items():
        for low, high in product(wrong, (0x1_0000, 0xFFFF_FF00)):
            value = low | high
            for flags in (0, 1) if register != SetReg.STREAM else (0,):
                word = Instruction(Opcode.SET, flags, register, value & 0xFFFF, value >> 16)
                await refusals.refused([word], ErrorCode.BAD_ADDRESS, value)


# -----------------------------------------------------------------------------------------------
# The end of the program
# -----------------------------------------------------------------------------------------------
@cocotb.test
async def test_refuse_no_end(dut: Dut) -> None:
    """Programs that run off their length, at every length around bursts and queues of the fetch."""
    refusals = await Refusals.start(dut)
    words = [*OLDER, *(NOP for _ in range(140)), END]
    for length in (0, 1, 2, 3, 4, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 142):
        error = ErrorReport(ErrorCode.NO_END, Engine.SEQ, length, 0)
        await refusals.run(words, error, length=length)
    await refusals.run(words, None)


@cocotb.test
async def test_refuse_prefix_at_the_end(dut: Dut) -> None:
    """A prefix that nothing follows is NO_END, and nothing of it reaches the next program."""
    refusals = await Refusals.start(dut)
    prefix = Instruction(Opcode.PFX, dst=3, src0=5, src1=7)
    for older in ([], [NOP], [NOP] * 15, OLDER):
        words = [*older, prefix]
        await refusals.run(words, ErrorReport(ErrorCode.NO_END, Engine.SEQ, len(words), 0))


@cocotb.test
async def test_refuse_nothing_behind_end(dut: Dut) -> None:
    """What stands behind END is not executed, whatever it is, and is no error."""
    refusals = await Refusals.start(dut)
    wrong = Instruction(99, **dict.fromkeys(FIELDS[1:], 0xFFFF))
    for younger in ([END], [wrong], [wrong] * 40, [Instruction(Opcode.PFX)], YOUNGER):
        await refusals.run([END, *younger], None)
        await refusals.run([*OLDER, END, *younger], None)


@cocotb.test
async def test_refuse_program_beyond_memory(dut: Dut) -> None:
    """A program that leaves the memory is READ_ERROR at its first word outside."""
    refusals = await Refusals.start(dut)
    bench = refusals.bench
    size = bench.memory.data.size
    for inside, words in ((0, 1), (0, 100), (1, 2), (5, 6), (16, 40), (40, 1000)):
        base = size - WORD * inside
        bench.memory.data[base:] = 0  # NOP
        start = StartState(base, words, bases=BASES)
        await bench.sync()
        memory, sram = bench.memory.snapshot(), await bench.sync()
        expected = Machine(bench.config, memory, sram).run(start).error
        assert expected == ErrorReport(ErrorCode.READ_ERROR, Engine.SEQ, inside, size)
        found = (await bench.chip.run(start, DEFAULT_LIMIT)).error
        assert found == expected, f"{inside} words inside: given {found}, wanted {expected}"
        assert np.array_equal(memory, bench.memory.data)
        assert np.array_equal(sram, await bench.sync())
        await refusals.recover()


# -----------------------------------------------------------------------------------------------
# The stream
# -----------------------------------------------------------------------------------------------
CONSUMERS = """
    GEMM dst=0x1000 src0=0x2000 M=2 N=20 K=40 B=stream out=i32
    GEMM dst=0x1000 src0=0x2000 M=2 N=20 K=40 B=stream q=ch bias table
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=2 N=20 K=16 q=tensor
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=2 N=20 K=16 q=ch
    GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=2 N=20 K=16 q=imm mul=20000 sh=9 table
    VEC op=table dst=0x1000 src0=0x2000 M=2 N=50 stream
    LAYERNORM dst=0x1000 src0=0x2000 M=2 N=40 stream
    GELU dst=0x1000 src0=0x2000 M=2 N=40 stream
"""


@cocotb.test
async def test_refuse_stream_ends(dut: Dut) -> None:
    """A share past the end is STREAM_END; what is left over at END is STREAM_LEFT."""
    refusals = await Refusals.start(dut)
    for words in groups(CONSUMERS):
        size = share_bytes(words[-1], refusals.limits.edge)
        stream = refusals.bench.random.integers(0, 256, size + 128, np.uint8).tobytes()
        await refusals.accepted(words)
        for short in sorted({0, 64, size - 64}):
            if short < size:
                await refusals.refused(
                    words, ErrorCode.STREAM_END, stream=stream[:short], statically=False
                )
        again = ErrorReport(ErrorCode.STREAM_END, Engine.SEQ, 2 * len(words) - 1)
        await refusals.run([*words, *words, END], again, stream=stream[: size + 64 * (size > 64)])
        for more in (64, 128):
            left = ErrorReport(ErrorCode.STREAM_LEFT, Engine.SEQ, len(words))
            await refusals.run([*words, END], left, stream=stream[: size + more])


@cocotb.test
async def test_refuse_stream_positions(dut: Dut) -> None:
    """SET STREAM to the end, past it and to where the sum of offset and share wraps."""
    refusals = await Refusals.start(dut)
    stream = refusals.bench.random.integers(0, 256, 1024, np.uint8).tobytes()
    (gelu,) = groups("GELU dst=0x1000 src0=0x2000 M=2 N=40 stream")

    def seek(value: int) -> Instruction:
        return Instruction(Opcode.SET, 0, SetReg.STREAM, value & 0xFFFF, value >> 16)

    for offset in (832, 1024, 1088, 0x1_0000, 0x8000_0000, 0xFFFF_FF00, 0xFFFF_FFC0):
        error = ErrorReport(ErrorCode.STREAM_END, Engine.SEQ, 1)
        await refusals.run([seek(offset), *gelu, END], error, stream=stream)
    for offset in (64, 960, 1088, 0x1_0000, 0xFFFF_FFC0):
        left = ErrorReport(ErrorCode.STREAM_LEFT, Engine.SEQ, 1)
        await refusals.run([seek(offset), END], left, stream=stream)
    for offset in (0, 1024):
        await refusals.run([seek(offset), END], None, stream=stream)
        await refusals.run([seek(768), *gelu, seek(offset), END], None, stream=stream)
    # Without a stream there is nothing to take and nothing left over.
    await refusals.run([END], None)
    await refusals.refused(gelu, ErrorCode.STREAM_END, statically=False)
    await refusals.run([seek(64), END], ErrorReport(ErrorCode.STREAM_LEFT, Engine.SEQ, 1))
