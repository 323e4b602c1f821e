# SPDX-License-Identifier: Apache-2.0
"""The assembler and the disassembler."""

import re
from pathlib import Path
from random import Random

import pytest

from npu.asm import AsmError, assemble, disassemble
from npu.isa import Instruction, Opcode
from npu.isa.operands import Limits
from tests.python.isa_random import legal, mutated

LISTINGS = Path(__file__).with_name("listings")
GENERAL = Limits()


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


@pytest.mark.parametrize("seed", range(3))
def test_round_trip_of_any_words(seed: int) -> None:
    """Any words, legal or not, come back with their bits."""
    print(f"seed {seed}")
    rng = Random(seed)
    words: list[Instruction] = []
    for _ in range(300):
        opcode = rng.choice([op for op in Opcode if op != Opcode.PFX])
        prefix, word = mutated(rng, legal(rng, opcode, GENERAL))
        words += [word] if prefix is None else [prefix, word]
        if rng.random() < 0.1:
            words.append(Instruction.from_int(rng.getrandbits(128)))
        if rng.random() < 0.1:
            words.append(Instruction(Opcode.PFX, dst=rng.randint(0, 3)))
    assert assemble(disassemble(words)).instructions == words


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
    ],
)
def test_errors(text: str, place: str, message: str) -> None:
    """Mistakes are reported with their place and what is allowed."""
    with pytest.raises(AsmError) as caught:
        assemble(text, filename="p.npu", symbols={"S": 4})
    assert str(caught.value).startswith(f"p.npu:{place}: "), str(caught.value)
    assert message in str(caught.value)


def test_built_only() -> None:
    """Opcodes that are not built are refused on request."""
    text = "RMSNORM dst=0 src0=0 M=1 N=16 stream"
    assemble(text)
    with pytest.raises(AsmError, match="opcode 11 is not built"):
        assemble(text, limits=Limits(built_only=True))


def test_indices_name_words() -> None:
    """The index comment names the word, prefix words counted."""
    program = assemble("DMA_LOAD dst=0 M=1 N=1 b=0 cp=32\nEND")
    assert re.findall(r"; (\d+)", disassemble(program.image(), indices=True)) == ["0", "2"]
