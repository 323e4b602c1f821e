# SPDX-License-Identifier: Apache-2.0
"""The assembler and the disassembler."""

import re
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from npu.asm import AsmError, assemble, disassemble
from npu.asm.expressions import evaluate
from spec.isa import Instruction, Opcode
from spec.isa.operands import Limits
from tests.python.spec.isa_random import legal, mutated

LISTINGS = Path(__file__).parents[1] / "listings"
GENERAL = Limits()

_FIELD = st.integers(0, 40) | st.integers(0, 0xFFFF)
_BYTE = st.integers(0, 0xFF)
PROGRAMS = st.lists(
    st.builds(
        Instruction,
        st.sampled_from(Opcode) | _BYTE,
        flags=_BYTE,
        dst=_FIELD,
        src0=_FIELD,
        src1=_FIELD,
        m=_FIELD,
        n=_FIELD,
        k=_FIELD,
        imm=_FIELD,
    ),
    max_size=12,
)
"""Words of any opcode with any fields, small ones more often."""
EXPRESSIONS = st.recursive(
    st.sampled_from("ab") | st.integers(0, 99).map(str),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(["+", "-", "*", "&", "|", "^", "==", "<"]), inner).map(
            lambda parts: f"({' '.join(parts)})"
        ),
        st.tuples(st.sampled_from(["min", "max"]), inner, inner).map(
            lambda parts: f"{parts[0]}({parts[1]}, {parts[2]})"
        ),
        inner.map(lambda one: f"(-{one})"),
        inner.map(lambda one: f"({one} << 3 >> 1)"),
        inner.map(lambda one: f"({one} // b % 7)"),
        inner.map(lambda one: f"abs({one})"),
    ),
    max_leaves=6,
)
"""Integer expressions of the symbols a and b; b is not zero."""


def _counts(name: str, **symbols: int) -> tuple[int, int, int]:
    text = (LISTINGS / f"{name}.npu").read_text(encoding="utf-8")
    program = assemble(text, filename=name, symbols=symbols)
    assert assemble(disassemble(program.image())).image() == program.image()
    opcodes = [word.opcode for word in program.instructions]
    return len(opcodes), opcodes.count(Opcode.PFX), opcodes.count(Opcode.BARRIER)


@pytest.mark.parametrize("rows", [1, 16, 33, 64])
def test_gpt2_prefill_listing(rows: int) -> None:
    """Word, prefix and barrier counts of up to 64 rows."""
    assert _counts("gpt2_prefill", S=rows, L=0) == (49, 14, 15)


@pytest.mark.parametrize("rows", [65, 128])
def test_gpt2_prefill_listing_in_two_pieces(rows: int) -> None:
    """Counts with P.V in two pieces."""
    assert _counts("gpt2_prefill", S=rows, L=0) == (57, 18, 15)


def test_other_listings() -> None:
    """Word, prefix and barrier counts of the other listings."""
    assert _counts("llama_decode", L=1, CTX=128) == (39, 7, 14)
    assert _counts("tail") == (10, 0, 3)
    assert _counts("small_chunk", c=0, R=32, L=0) == (158, 48, 43)
    assert _counts("small_chunk", c=3, R=32, L=0) == (182, 48, 43)


@pytest.mark.parametrize("opcode", [op for op in Opcode if op != Opcode.PFX], ids=lambda o: o.name)
@pytest.mark.parametrize("seed", range(3))
def test_round_trip_of_legal_instructions(opcode: Opcode, seed: int) -> None:
    """Legal instructions have a text that gives back their bits."""
    print(f"seed {seed}")
    rng = Random(f"{opcode.name} {seed}")
    words: list[Instruction] = []
    for _ in range(60):
        prefix, word = legal(rng, opcode, GENERAL)
        words += [word] if prefix is None else [prefix, word]
    text = disassemble(words)
    assert ".word" not in text
    assert assemble(text).instructions == words


@given(PROGRAMS)
@settings(max_examples=300)
def test_round_trip_of_any_words(words: list[Instruction]) -> None:
    """Any words, legal or not, come back with their bits."""
    assert assemble(disassemble(words)).instructions == words


@pytest.mark.parametrize("seed", range(3))
def test_round_trip_of_almost_legal_words(seed: int) -> None:
    """Legal instructions with a few changed bits come back with them."""
    print(f"seed {seed}")
    rng = Random(seed)
    words: list[Instruction] = []
    for _ in range(300):
        opcode = rng.choice([op for op in Opcode if op != Opcode.PFX])
        prefix, word = mutated(rng, legal(rng, opcode, GENERAL))
        words += [word] if prefix is None else [prefix, word]
    assert assemble(disassemble(words)).instructions == words


@given(EXPRESSIONS, st.integers(-9, 9), st.integers(1, 9))
@settings(max_examples=300)
def test_expressions_are_those_of_python(text: str, a: int, b: int) -> None:
    """Sums, products, shifts, comparisons and functions of symbols have the value of Python's."""
    symbols = {"a": a, "b": b}
    expected = eval(text, {"min": min, "max": max, "abs": abs}, dict(symbols))
    assert evaluate(text, symbols) == int(expected)


def test_fields() -> None:
    """Text operands land in their fields."""
    text = """
    DMA_LOAD dst=0x40 M=2 N=17 b=3 off=0x12345670 pitch=64 cp=48
    VEC op=clamp dst=0 src0=16 lo=-5 hi=7 M=1 N=3 A=i16 out=i16
    GEMM dst=0 src0=16 src1=32 M=1 N=2 K=3 scale=9 shift=4
    SET BASE2 v=0x10020 add
    """
    words = assemble(text).instructions
    assert words == [
        Instruction(Opcode.PFX, dst=3),
        Instruction(1, dst=4, src0=0x5670, src1=0x1234, m=2, n=17, k=4, imm=3),
        Instruction(4, src0=1, src1=0x10000 - 5, m=1, n=3, k=7, imm=0x34),
        Instruction(3, flags=4, src0=1, src1=2, m=1, n=2, k=3, imm=0x409),
        Instruction(15, flags=1, dst=18, src0=0x20, src1=1),
    ]


def test_dynamic_dimensions() -> None:
    """Dynamic dimensions and head ranges are encoded."""
    words = assemble("KV_READ dst=0 layer=2 N=16 K=len-1<=128 heads=1..3 cp=8192").instructions
    assert words[1].k == 0xF808
    assert words[1].imm == 0x0201
    word = assemble(
        "GEMM dst=0 src0=0 src1=0 M=1 N=len<=32768 K=2", limits=Limits(sram_bytes=1 << 20)
    )
    assert word.instructions[0].n == 0xF000


def test_directives() -> None:
    """Symbols, loops, conditions, labels and source lines."""
    text = """
    .equ A=2 B=A*3   ; six
    .for i 0 2
    .if i==1
    SET POS v=B
    .else
    SET POS v=(i + A)
    .endif
    .endr
    last: LOOP to=last
    """
    program = assemble(text)
    assert [word.src0 for word in program.instructions] == [2, 6, 4, 3]
    assert program.lines == [7, 5, 7, 10]
    assert program.labels == {"last": 3}


def test_depthwise_is_a_word() -> None:
    """The mode bit is written and read as a word; what refuses it says so."""
    text = (
        "GEMM dst=0x1000 src0=0x2000 M=4 N=20 K=32 B=stream q=ch out=i8 depthwise ap=0x30 bp=0x40"
    )
    prefix, word = assemble(text).instructions
    assert (prefix.src0, prefix.src1, word.imm >> 15) == (3, 4, 1)
    assert disassemble([prefix, word]).strip() == text
    for wrong, message in (
        (text.replace("K=32", "K=24"), "K=24: depthwise takes multiples of 16 up to 64"),
        (text.replace("K=32", "K=80"), "K=80: depthwise takes multiples of 16 up to 64"),
        (text.replace("B=stream", "A=i16 B=stream"), "depthwise needs A=i8 or u8"),
        (text.replace("B=stream", "B=row src1=0"), "depthwise needs B=stream"),
        (text.replace(" depthwise", ""), "prefix operand bp is not used here"),
    ):
        with pytest.raises(AsmError, match=message):
            assemble(wrong)
    with pytest.raises(AsmError, match="depthwise needs an array of 16 or 32"):
        assemble(text, limits=Limits(array_dim=8))


def test_rows_in_lines() -> None:
    """Lines are written as count x bytes; what is no such text, or is refused, says why."""
    text = (
        "GEMM dst=0x1000 src0=0x2000 src1=0x3000 M=4 N=20 K=143 B=stream q=ch out=i8 op=add "
        "ap=0x10 bp=0x200 lines=3x48 dp=0x30"
    )
    prefix, word = assemble(text).instructions
    assert (prefix.src0, prefix.src1, prefix.m, prefix.n) == (1, 0x20, 2 << 14 | 3, 3)
    assert disassemble([prefix, word]).strip() == text
    symbols = {"TAPS": 3, "LINE": 16}
    assert assemble(text.replace("3x48", "TAPSxTAPS*LINE"), symbols=symbols).instructions == [
        prefix,
        word,
    ]
    assert assemble(text.replace("3x48", "3x0x30")).instructions == [prefix, word]
    for wrong, message in (
        ("lines=48", "lines: 48: write lines x bytes of one, as in 3x48"),
        ("lines=3x", "lines: a value is missing"),
        ("lines=x48", "lines: a value is missing"),
        *(
            (f"lines={wrong}", f"lines: {wrong}: allowed are 2 to 4 lines of multiples of 16")
            for wrong in ("1x144", "1x0", "5x16", "0x48", "3x40", "3x0", "3x262144")
        ),
        ("lines=3x64", "lines=3x64: a row of K=143 has 144 bytes"),
        ("lines=2x48", "lines=2x48: a row of K=143 has 144 bytes"),
        ("d=0x100", "d is not used by this form of GEMM"),
        ("", "prefix operand bp is not used here"),
    ):
        with pytest.raises(AsmError, match=re.escape(message)):
            assemble(text.replace("lines=3x48", wrong))
    for change, message in (
        (" bp=0x200", "lines need the prefix operand bp"),
        (" B=stream", "lines is not used by this form of GEMM"),
    ):
        with pytest.raises(AsmError, match=message):
            assemble(text.replace(change, ""))
    with pytest.raises(AsmError, match="lines is not used by this form of GEMM"):
        assemble(text.replace("K=143", "K=48") + " depthwise")
    with pytest.raises(AsmError, match="lines of 48 bytes: allowed are multiples of 32"):
        assemble(text, limits=Limits(array_dim=32))


def test_every_number_of_lines() -> None:
    """Two to four lines, of the shortest tile to a long one, are read as they are written."""
    for lines in (2, 3, 4):
        for size in (32, 64, 4096):
            line = f"GEMM dst=0x0 src0=0x0 M=2 N=9 K={lines * size // 2} A=i16 B=stream out=i32"
            text = f"{line} bp=0x20 lines={lines}x{size}"
            prefix, word = assemble(text).instructions
            assert (prefix.m >> 14, prefix.m & 0x3FFF) == (lines - 1, size // 16)
            assert disassemble([prefix, word]).strip() == text


def test_indices_name_words() -> None:
    """The index comment names the word, prefix words counted."""
    program = assemble("DMA_LOAD dst=0 M=1 N=1 b=0 cp=32\nEND")
    assert re.findall(r"; (\d+)", disassemble(program.image(), indices=True)) == ["0", "2"]


@pytest.mark.parametrize("char", "\x0b\x0c\x1c\x85\u2028\u2029")
def test_only_a_newline_ends_a_comment(char: str) -> None:
    """What stands behind another separator is a comment, too."""
    assert assemble(f"END ; one{char}two\r\n").instructions == assemble("END").instructions
