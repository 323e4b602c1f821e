# SPDX-License-Identifier: Apache-2.0
"""Random instructions: legal ones of every opcode, and words with a few random changes."""

from dataclasses import replace
from random import Random

from spec.isa import OPCODES, ErrorCode, Flag, GemmB, GemmOut, Instruction, Opcode, SetReg
from spec.isa.legality import check
from spec.isa.operands import LINE_WORDS, MORE_LINES, Limits

Pair = tuple[Instruction | None, Instruction]

_ATTEMPTS = 20000
_LINED = 0.005
"""Share of GEMMs that have A in lines: every fourth legal one, as few others are legal."""


def _dimension(rng: Random, dynamic: bool) -> int:
    if dynamic and rng.random() < 0.2:
        return 0xF000 | rng.choice((0, 0x800)) | rng.choice((1, 2, 4, 8))
    return rng.choice((1, 2, 3, 15, 16, 17, 31, 32, 33, 64, 100, 128, rng.randint(1, 300)))


def _imm(rng: Random, opcode: Opcode, flags: int) -> int:
    info = OPCODES[opcode]
    layout = info.imm_alt if opcode == Opcode.GEMM and not flags & 0x40 else info.imm
    value = 0
    for bits in layout.values():
        if rng.random() < (0.1 if bits.name == "depthwise" else 0.6):
            value |= bits.put(rng.getrandbits(bits.width))
    return value


def _candidate(rng: Random, opcode: Opcode) -> Pair:
    info = OPCODES[opcode]
    values = {"flags": 0, "imm": 0}
    for bit in info.flags.values():
        if rng.random() < 0.35:
            values["flags"] |= 1 << bit
    for name, field in info.fields.items():
        if field.kind in ("dim", "dyn"):
            values[name] = _dimension(rng, field.kind == "dyn")
        elif name in ("dst", "src0", "src1"):
            values[name] = rng.choice((0, 0, rng.randint(0, 0x3FFF), rng.getrandbits(16)))
        else:
            values[name] = rng.choice((0, 1, 4, rng.randint(0, 40), rng.getrandbits(16)))
    values["imm"] = _imm(rng, opcode, values["flags"])
    if opcode == Opcode.SET:
        values["dst"] = rng.choice(list(SetReg))
        values["src0"] &= rng.choice((0xFFFF, 0xFFC0, 0xFF00))
    elif opcode in (Opcode.DMA_LOAD, Opcode.DMA_STORE):
        values["src0"] &= 0xFFF0
    elif opcode == Opcode.BARRIER:
        values["m"], values["n"] = rng.getrandbits(6), rng.randint(0, 4)
    elif opcode == Opcode.SOFTMAX and values["k"]:
        values["k"] = values["m"]
    word = Instruction(opcode, **values)
    if opcode == Opcode.GEMM and rng.random() < _LINED:
        return _in_lines(rng, word)
    return _prefix(rng, opcode), word


def _prefix(rng: Random, opcode: Opcode) -> Instruction | None:
    info = OPCODES[opcode]
    if not info.prefix or rng.random() < 0.4:
        return None
    fields = {"cp": "dst", "ap": "src0", "bp": "src1", "d": "m", "dp": "n"}
    values = {
        fields[name]: rng.randint(0, 70)
        for name in info.prefix
        if name in fields and rng.random() < 0.4
    }
    if "mul" in info.prefix and rng.random() < 0.6:
        values["imm"] = rng.choice((0, 100, rng.randint(1, 32767)))
        values["flags"] = rng.choice((0, rng.getrandbits(6)))
    if "base" in info.prefix and rng.random() < 0.2:
        values["k"] = 32 * rng.randint(0, 50)
    return Instruction(Opcode.PFX, **values)


def _in_lines(rng: Random, word: Instruction) -> Pair:
    """Return a GEMM of exact sums with A in as many lines and words as its K takes."""
    lines, words, a_type = rng.randint(2, 4), rng.choice((1, 2, 4, 8)), rng.randint(0, 3)
    b_form = rng.choice((GemmB.STREAM, GemmB.STREAM_MX))
    given = {"a_type": a_type, "b_form": b_form, "out": GemmOut.INT32}
    imm = sum(OPCODES[Opcode.GEMM].imm[name].put(value) for name, value in given.items())
    element = 1 + a_type // 2
    k = (lines * words * 16 - rng.randrange(16)) // element
    values = {"flags": 1 << Flag.MODE, "src1": 0, "imm": imm, "k": k}
    prefix = Instruction(
        Opcode.PFX,
        dst=rng.choice((0, rng.randint(1, 70))),
        src0=rng.choice((0, rng.randint(1, 70))),
        src1=rng.randint(1, 70),
        m=MORE_LINES.put(lines - 1) | LINE_WORDS.put(words),
    )
    return prefix, replace(word, **values)


def legal(rng: Random, opcode: Opcode, limits: Limits) -> Pair:
    """Return a random (prefix or None, instruction) that is legal within `limits`."""
    for _ in range(_ATTEMPTS):
        prefix, word = _candidate(rng, opcode)
        if check(word, prefix, limits) is None:
            return prefix, word
    raise AssertionError(f"no legal {opcode.name} in {_ATTEMPTS} attempts")


def mutated(rng: Random, pair: Pair) -> Pair:
    """Return the pair with one to three random bits or fields changed."""
    prefix, word = pair
    for _ in range(rng.randint(1, 3)):
        victim = prefix if prefix is not None and rng.random() < 0.3 else word
        value = victim.to_int()
        lsb = rng.choice((8, 16, 32, 48, 64, 80, 96, 112))
        if rng.random() < 0.5:
            value ^= 1 << rng.randrange(8, 128)
        else:
            mask = 0xFF if lsb == 8 else 0xFFFF
            value = (
                value & ~(mask << lsb)
                | rng.choice((0, 1, 0xEFFF, 0xF001, 128, 129)) % (mask + 1) << lsb
            )
        changed = Instruction.from_int(value)
        if victim is prefix:
            prefix = changed
        else:
            word = changed
    return prefix, word


def code_of(refusal: tuple[ErrorCode, str] | None) -> ErrorCode:
    """Return the error code of a legality answer; NONE if legal."""
    return ErrorCode.NONE if refusal is None else refusal[0]
