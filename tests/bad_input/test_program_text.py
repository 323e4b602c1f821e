# SPDX-License-Identifier: Apache-2.0
"""Program texts that the assembler refuses: one line with file, line, column and what is allowed.

Half a program never comes out, and a good text assembles after every bad one.
"""

from __future__ import annotations

from random import Random

import pytest

from npu.asm import AsmError, Program, assemble, assembler, disassemble
from spec.isa import Instruction, Opcode
from spec.isa.instruction import decode_image
from tb.stimulus.refused_words import FORBIDDEN, FORMS

GOOD = "GELU dst=0 src0=0x100 M=1 N=16 stream\nEND"


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("NOP\nNOPE", "2:1", "unknown instruction NOPE: allowed are NOP, DMA_LOAD"),
        ("GELU dst=0 src0=8 M=1 N=1 stream", "1:17", "src0: 0x8: allowed are multiples of 16"),
        ("GELU dst=0 src0=0x100000 M=1 N=1", "1:17", "from 0 to 0xFFFF0"),
        ("GELU dst=0 src0=0 M=X N=1", "1:21", "symbol X is not defined"),
        ("GELU dst=0 src0=0 M=1+Y N=1", "1:23", "symbol Y is not defined"),
        ("GELU dst=0 src0=0 M=1", "1:1", "GELU needs the operand N"),
        ("GELU dst=0 src0=0 M=1 N=1 K=3", "1:27", "unknown operand K=3: GELU allows dst=, src0="),
        ("GELU dst=0 src0=0 M=1 M=1 N=1", "1:23", "M is given twice"),
        ("GELU dst=0 src0=0 M=0 N=1", "1:21", "0: allowed are 1 to 61439"),
        ("GELU dst=0x3FFF0 src0=0 M=2 N=1", "1:1", "SRAM_RANGE"),
        ("GELU dst=0 src0=0 M=1 N=len<=16", "1:25", "not allowed to be dynamic"),
        ("GEMM dst=0 src0=0 M=129 N=1 K=1", "1:1", "BAD_DIMENSION"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 q=chan", "1:33", "allowed are imm, tensor, ch, row"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 bias", "1:1", "ILLEGAL_FIELD"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 scale=3 q=ch", "1:39", "q is not used by this form"),
        ("VEC op=add dst=0 src0=0 lo=3 M=1 N=1", "1:25", "lo is not used by this form of VEC"),
        ("BARRIER gemm dma", "1:14", "unknown operand dma: BARRIER allows n=, ld, st, gemm"),
        ("BARRIER n=5", "1:1", "n=5: allowed are 0 to 4"),
        ("SET", "1:1", "SET needs a register"),
        ("SET BASE9 v=0", "1:5", "allowed are POS"),
        ("SET STREAM v=32", "1:1", "STREAM takes multiples of 64, given 32"),
        (".for i 0 3\nNOP", "1:1", ".for without .endr"),
        (".endr", "1:1", ".endr closes nothing"),
        (".for i 0\n.endr", "1:1", "write .for name first last"),
        (".if 1\nNOP\n.else\n.else\n.endif", "4:1", "a second .else"),
        (".equ a=1/2", "1:8", "allowed are integers"),
        (".equ a=(1", "1:9", "unbalanced parenthesis"),
        (".equ a=1//0", "1:11", "division by zero"),
        (".equ S=1", "1:6", "symbol S is given from outside"),
        (".org 3", "1:1", "unknown directive .org"),
        ("a:\na:", "2:1", "label a is defined twice"),
        (".word 0x1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "1:7", "numbers of 128 bits"),
        ("KV_READ dst=0 layer=0 N=16 K=1 heads=3", "1:38", "write first..last"),
        ("GEMM", "1:1", "GEMM needs the operand src0"),
        ("gemm dst=0", "1:1", "unknown instruction gemm: allowed are NOP"),
        ("PFX dst=1", "1:1", "unknown instruction PFX: allowed are NOP"),
        ("NOP 5", "1:5", "unknown operand 5: NOP allows none"),
        ("END=1", "1:1", "unknown instruction END=1: allowed are"),
        ("  GELU  dst=0 src0=0 M=1  N=", "1:29", "N: a value is missing"),
        ("GELU dst=0 src0=0 M= N=1", "1:21", "M: a value is missing"),
        ("GELU dst =0 src0=0 M=1 N=1", "1:6", "unknown operand dst: GELU allows dst=, src0="),
        ("GELU dst=0 src0=0 M=1.5 N=1", "1:21", "M: allowed are integers, symbols"),
        ("GELU dst=0 src0=0 M='a' N=1", "1:21", "M: allowed are integers, symbols"),
        ("GELU dst=0 src0=0 M=True N=1", "1:21", "M: allowed are integers, symbols"),
        ("GELU dst=0 src0=0 M=2**3 N=1", "1:21", "M: allowed are integers, symbols"),
        ("GELU dst=0 src0=0 M=open(3) N=1", "1:21", "M: allowed are integers, symbols"),
        ("GELU dst=0 src0=0 M=S.real N=1", "1:21", "M: allowed are integers, symbols"),
        ("GELU dst=0 src0=0 M=up(1,2,3) N=1", "1:21", "M: up() takes 1 to 2 values"),
        ("GELU dst=0 src0=0 M=1+ N=1", "1:21", "M: '1+' is no expression"),
        ("GELU dst=0 src0=0 M=1<<64 N=1", "1:24", "M: shift by 64: allowed are 0 to 63"),
        ("GELU dst=0 src0=0 M=1<<-1 N=1", "1:24", "M: shift by -1: allowed are 0 to 63"),
        ("GELU dst=0 src0=0 M=1<<63<<63 N=1", "1:21", "M: the value"),
        ("GELU dst=0 src0=0 M=5%0 N=1", "1:23", "M: division by zero"),
        ("GELU dst=0 src0=0 M=up(5,0) N=1", "1:26", "M: up() to multiples of 0"),
        ("GELU dst=0 src0=0 M=-1 N=1", "1:21", "M: -1: allowed are 1 to 61439"),
        ("GELU dst=0 src0=0 M=61440 N=1", "1:21", "M: 61440: allowed are 1 to 61439"),
        ("GELU dst=-16 src0=0 M=1 N=1", "1:10", "allowed are multiples of 16 from 0 to 0xFFFF0"),
        (
            "LAYERNORM dst=0 src0=0 src1=0 M=1 N=8193",
            "1:1",
            "(BAD_DIMENSION): N=8193: at most 8192",
        ),
        ("LAYERNORM dst=0 src0=0 M=1 N=16 stream src1=16", "1:1", "src1 must be zero with stream"),
        ("GEMM dst=0 src0=0 M=65 N=1 K=1 A=u16", "1:1", "M=65: at most 64 rows fit"),
        ("GEMM dst=0 src0=0 M=1 N=len<=17 K=1", "1:25", "N: cap 17: allowed are multiples of 16"),
        (
            "GEMM dst=0 src0=0 M=1 N=1 K=1 q=imm mul=32768",
            "1:1",
            "mul=32768: allowed are 1 to 32767",
        ),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 q=imm mul=65536", "1:41", "65536: allowed are 0 to 65535"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 q=imm", "1:1", "q=imm: mul=0: allowed are 1 to 32767"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 q=imm mul=1 sh=64", "1:46", "sh: 64: allowed are 0 to 63"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 q=row", "1:1", "q=row needs the prefix operand sums"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 out=i8", "1:1", "requantisation needs out=i8"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 q=ch op=add", "1:1", "D needs the prefix operand d"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 q=ch B=stream T", "1:45", "T is not used by this form"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 B=row fmt=int4", "1:37", "fmt is not used by this form"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 B=stream group=32", "1:40", "group is not used by this"),
        (
            "GEMM dst=0 src0=0 M=1 N=1 K=1 B=stream fmt=int4 group=64",
            "1:49",
            "group is not used by this form of GEMM",
        ),
        (
            "GEMM dst=0 src0=0 M=1 N=1 K=1 B=stream fmt=mxfp4 group=32",
            "1:50",
            "group is not used by this form of GEMM",
        ),
        (
            "GEMM dst=0 src0=0 M=1 N=1 K=1 B=stream fmt=int4g group=48",
            "1:56",
            "group: 48: allowed are 32, 64, 128, 16",
        ),
        (
            "GEMM dst=0 src0=0 M=1 N=1 K=1 B=stream fmt=int3",
            "1:44",
            "fmt: int3: allowed are int8, int4, int4g",
        ),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 B=mx", "1:33", "B: mx: allowed are row, tile, stream"),
        ("GEMM dst=0 src0=0 M=1 N=1 K=1 shift=64 scale=1", "1:1", "shift=64: allowed are 0 to 63"),
        ("VEC op=div dst=0 src0=0 M=1 N=1", "1:8", "op: div: allowed are add, sub, mul"),
        ("VEC op=add dst=0 src0=0 src1=0 M=1 N=1 A=i32", "1:42", "A: i32: allowed are i8, i16"),
        ("VEC op=add dst=0 src0=0 src1=0 M=1 N=1 A=i16", "1:1", "A and out differ: only in"),
        ("VEC op=clamp dst=0 src0=0 lo=-32769 M=1 N=1", "1:30", "allowed are -32768 to 32767"),
        ("SOFTMAX dst=0 src0=0 M=3 N=1 K=2 out=prob", "1:1", "M=3 is no multiple of K=2"),
        ("SOFTMAX dst=0 src0=0 M=3 N=1", "1:1", "SOFTMAX needs the operand out"),
        ("DMA_LOAD dst=0 M=1 N=1 b=8", "1:26", "b: 8: allowed are 0 to 7"),
        ("DMA_LOAD dst=0 M=1 N=1 b=0 off=8", "1:1", "off=0x8: allowed are multiples of 16"),
        ("DMA_LOAD dst=0 M=1 N=1 b=0 off=1<<32", "1:32", "allowed are -2^31 to 2^32-1"),
        ("DMA_LOAD dst=0 M=2 N=16 b=0 off=0xFFFFFFF0", "1:1", "that end within 32 bits"),
        ("SET POS v=1<<32", "1:11", "v: 4294967296: allowed are -2^31 to 2^32-1"),
        ("SET POS", "1:1", "SET needs the operand v"),
        ("SET STREAM v=64 add", "1:1", "register STREAM cannot be added to"),
        ("BARRIER gemm gemm", "1:14", "gemm is given twice"),
        (".word", "1:1", "write .word number"),
        (".word 5 6", "1:1", "write .word number"),
        (".word x", "1:7", "x: allowed are numbers of 128 bits"),
        (".word -1", "1:7", "-1: allowed are numbers of 128 bits"),
        (".equ a", "1:6", "write .equ name=value"),
        (".equ 5=3", "1:6", "'5' is no name"),
        (".for 5 0 1\n.endr", "1:1", "write .for name first last"),
        (".for S 0 1\n.endr", "1:6", "symbol S is given from outside"),
        (".for i 0 x\n.endr", "1:10", "symbol x is not defined"),
        (".for i 1 1<<40\n.endr", "1:1", "more than 1048576 turns of .for"),
        (".for i 1 2000\n.for j 1 2000\n.endr\n.endr", "2:1", "more than 1048576 turns of .for"),
        (".for i 0 1\n.endif\n.endr", "2:1", ".endif closes nothing inside .for"),
        (".for i 0 1\n.else\n.endr", "2:1", ".else closes nothing inside .for"),
        (".if 1", "1:1", ".if without .endif or .endr"),
        (".if\n.endif", "1:1", "write .if value"),
        (".if x\n.endif", "1:5", "symbol x is not defined"),
        (".else", "1:1", ".else closes nothing"),
        (".if 1\n" * 65, "65:1", ".if nested deeper than 64"),
        ("S: NOP", "1:1", "symbol S is given from outside"),
        ("LOOP to=later\nlater: NOP", "1:9", "symbol later is not defined"),
        ("NOP)", "1:4", "unbalanced parenthesis"),
        ("NOP )(", "1:5", "unbalanced parenthesis"),
        ("KV_READ dst=0 layer=0 N=16 K=1 heads=3..1", "1:38", "heads: 3..1: allowed are 0..0 to"),
        ("KV_READ dst=0 layer=0 N=16 K=1 heads=0..256", "1:38", "0..256: allowed are 0..0 to"),
        ("\0", "1:1", "unknown instruction"),
        ("GELU dst=\0 src0=0 M=1 N=1", "1:10", "no expression"),
    ],
)
def test_errors(text: str, place: str, message: str) -> None:
    """Mistakes are reported with their place and what is allowed."""
    with pytest.raises(AsmError) as caught:
        assemble(text, filename="p.npu", symbols={"S": 4})
    assert str(caught.value).startswith(f"p.npu:{place}: "), str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(assemble(GOOD).instructions) == 2


@pytest.mark.parametrize("value", ["(" * 5000 + "1" + ")" * 5000, "-" * 50_000 + "1"])
def test_expressions_that_are_too_deep(value: str) -> None:
    """A nesting that no parser takes is refused in a short line."""
    with pytest.raises(AsmError, match=r"\A<text>:1:\d+: .*(no expression|too deeply)\Z") as caught:
        assemble(f".equ a={value}")
    assert len(str(caught.value)) < 120


def test_programs_that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text of a few lines cannot fill the machine."""
    monkeypatch.setattr(assembler, "_MOST_WORDS", 100)
    assert len(assemble(".for i 1 50\nNOP\nNOP\n.endr").instructions) == 100
    with pytest.raises(AsmError, match=r"<text>:2:1: the program is longer than 100 words"):
        assemble(".for i 1 51\nNOP\nNOP\n.endr")


@pytest.mark.parametrize("rule", FORBIDDEN)
def test_forbidden_words_have_no_text(rule: str) -> None:
    """What a chip refuses is disassembled as a raw word with the reason, and comes back as it is.

    A prefix with reserved bits is refused with the word that it belongs to.
    """
    for words in FORBIDDEN[rule]:
        program = [*words, Instruction(Opcode.NOP)]
        text = disassemble(program)
        assert text.splitlines()[len(words) - 1].startswith(".word 0x"), text
        assert assemble(text).instructions == program


@pytest.mark.parametrize("seed", range(4))
def test_noise(seed: int) -> None:
    """Texts with random changes assemble or are refused at a place, whatever they say."""
    print(f"seed {seed}")
    rng = Random(seed)
    letters = "=0123456789xXMNKabq.,;:()+-*/%<>&|^~ \t\n\0é'\""
    lines = [line.strip() for line in FORMS.strip().splitlines()]
    lines += [".for i 0 3", ".endr", ".if 1", ".else", ".endif", ".equ a=3", "x: NOP", ".word 5"]
    refused = 0
    for _ in range(400):
        text = list("\n".join(rng.choices(lines, k=3)))
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(text))
            text[at : at + rng.randint(0, 2)] = rng.choice(letters)
        try:
            assert isinstance(assemble("".join(text), filename="p.npu"), Program)
        except AsmError as error:
            refused += 1
            assert str(error).startswith(f"p.npu:{error.line}:{error.column}: ")
            assert error.line >= 1
            assert error.column >= 1
            assert "\n" not in str(error)
    assert refused > 100


@pytest.mark.parametrize(
    "symbols", [{"S": 1.5}, {"S": "4"}, {"S": None}, {"S": True}, {"4": 4}, {"a b": 4}, {"": 4}]
)
def test_symbols_from_outside(symbols: dict[str, int]) -> None:
    """A symbol is a name of an integer."""
    with pytest.raises(ValueError, match=r"symbols: given '.*': .*, allowed a name of an integer"):
        assemble(GOOD, symbols=symbols)


@pytest.mark.parametrize("size", [1, 15, 17, 31])
def test_images_that_are_no_whole_words(size: int) -> None:
    """A program image is a multiple of 16 bytes."""
    for use in (decode_image, disassemble):
        with pytest.raises(ValueError, match=rf"multiple of 16 bytes, given were {size} bytes"):
            use(bytes(size))
    assert disassemble(bytes(16)) == "NOP\n"
