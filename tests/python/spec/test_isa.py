# SPDX-License-Identifier: Apache-2.0
"""The instruction set: generated files, encoding, legality against a second opinion."""

from random import Random

import numpy as np
import numpy.typing as npt
import pytest

from golden.machine import ChipConfig, ErrorReport, Machine, StartState
from npu.asm import assemble
from spec.isa import (
    OPCODES,
    SET_REGISTERS,
    ErrorCode,
    Flag,
    Instruction,
    Opcode,
    SetReg,
    VecOp,
    WeightFormat,
    emit_sv,
    generate,
    source,
)
from spec.isa.emit_python import camel
from spec.isa.fields import WORD_FIELDS
from spec.isa.gemm import GemmForm
from spec.isa.instruction import decode_image, encode_image
from spec.isa.legality import check
from spec.isa.operands import Limits, Prefix, share_bytes, sram_operands
from tests.python.spec.isa_random import Pair, code_of, legal, mutated

CHIP = Limits()
SEEDS = range(4)
STREAM_BYTES = 1 << 20
# Errors that depend on registers and memory, not on the instruction.
RUNTIME = (ErrorCode.READ_ERROR, ErrorCode.WRITE_ERROR, ErrorCode.STREAM_END)


def test_committed_files_are_current() -> None:
    """Committed generated files match their source."""
    assert generate.main(["--check"]) == 0


def test_check_notices_a_stale_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """A committed file that differs makes --check fail."""
    committed, built = generate.outputs()
    stale = {path: text + "x" for path, text in committed.items()}
    monkeypatch.setattr(generate, "outputs", lambda: (stale, built))
    assert generate.main(["--check"]) == 1


def test_opcode_numbers() -> None:
    """The published opcode numbers stay."""
    kept = {
        "NOP": 0,
        "DMA_LOAD": 1,
        "DMA_STORE": 2,
        "GEMM": 3,
        "VEC": 4,
        "SOFTMAX": 5,
        "LAYERNORM": 6,
        "GELU": 7,
        "KV_APPEND": 8,
        "KV_READ": 9,
        "BARRIER": 10,
        "RMSNORM": 11,
        "ROPE": 12,
        "SILU": 13,
        "END": 255,
    }
    assert {name: Opcode[name].value for name in kept} == kept


def test_package_names_every_opcode_and_field() -> None:
    """The SystemVerilog package declares all opcodes and structs."""
    text = emit_sv.emit(source.load())
    for op in Opcode:
        assert f"Op{camel(op.name)} = 8'd{op.value}" in text
    for name in ("instr_t", "prefix_t", "gemm_mode_t", "engine_e", "error_e", "vec_op_e"):
        assert f"}} {name};" in text


def test_encoding_places_fields() -> None:
    """Fields lie where the word layout says, little-endian."""
    word = Instruction(3, 0x45, 0x1122, 0x3344, 0x5566, 0x7788, 0x99AA, 0xBBCC, 0xDDEE)
    assert word.encode().hex() == "03452211443366558877aa99ccbbeedd"
    for name, (lsb, width) in WORD_FIELDS.items():
        assert word.to_int() >> lsb & ((1 << width) - 1) == getattr(word, name)


@pytest.mark.parametrize("seed", SEEDS)
def test_encoding_round_trip(seed: int) -> None:
    """Decoding inverts encoding for any bits."""
    rng = Random(seed)
    words = [Instruction.from_int(rng.getrandbits(128)) for _ in range(200)]
    assert decode_image(encode_image(words)) == words


def test_encoding_refuses() -> None:
    """Values and images that do not fit are refused."""
    with pytest.raises(ValueError, match="m=65536: allowed are 0 to 65535"):
        Instruction(0, m=1 << 16)
    with pytest.raises(ValueError, match="flags=256"):
        Instruction(0, flags=256)
    with pytest.raises(ValueError, match="17 bytes"):
        decode_image(bytes(17))


@pytest.mark.parametrize("opcode", list(Opcode), ids=lambda op: op.name)
def test_every_spare_bit_is_refused(opcode: Opcode) -> None:
    """A set bit that the opcode does not name is ILLEGAL_FIELD."""
    rng = Random(1)
    if opcode == Opcode.PFX:
        word = Instruction(Opcode.PFX)
    else:
        _, word = legal(rng, opcode, Limits())
    for bit in range(8, 128):
        if OPCODES[opcode].spare >> bit & 1:
            wrong = Instruction.from_int(word.to_int() | 1 << bit)
            assert code_of(check(wrong)) == ErrorCode.ILLEGAL_FIELD, f"bit {bit}"


def _gemm(prefix: Instruction | None = None, **fields: int) -> Pair:
    values = {"flags": 0, "m": 16, "n": 16, "k": 16, "src0": 16, "src1": 32} | fields
    return prefix, Instruction(Opcode.GEMM, **values)


def _depthwise(prefix: Instruction | None = None, imm: int = 0, **fields: int) -> Pair:
    imm |= I32 | DEPTHWISE | STREAM
    return _gemm(prefix, **{"flags": MODE, "src1": 0, "imm": imm} | fields)


def _cut(words: int, lines: int = 3, bp: int = 9, **fields: int) -> Instruction:
    """Return the prefix word of a GEMM whose rows of A are lines of so many words."""
    return Instruction(Opcode.PFX, src1=bp, m=lines - 1 << 14 | words, **fields)


def _lined(prefix: Instruction, imm: int = 0, **fields: int) -> Pair:
    values = {"flags": MODE, "src1": 0, "k": 144, "imm": imm | I32 | STREAM}
    return _gemm(prefix, **values | fields)


PFX = Instruction(Opcode.PFX)
MUL = Instruction(Opcode.PFX, imm=5, flags=3)
LINES = Instruction(Opcode.PFX, src1=4)
MODE = 1 << Flag.MODE
QUANT = MODE | 1 << Flag.REQUANT
ACC = 1 << Flag.ACCUMULATE
TILE, MX, INT4G = 4, 12, 2 << 4
I32, I16, TENSOR, CHANNEL, ROW, STREAM, TABLE = 2 << 10, 1 << 10, 1 << 7, 2 << 7, 3 << 7, 8, 1 << 9
ADD, MULD = 1 << 12, 2 << 12
DEPTHWISE = 1 << 15
F, D, R, A, U, N = (
    ErrorCode.ILLEGAL_FIELD,
    ErrorCode.BAD_DIMENSION,
    ErrorCode.SRAM_RANGE,
    ErrorCode.BAD_ADDRESS,
    ErrorCode.ILLEGAL_OPCODE,
    ErrorCode.NONE,
)


@pytest.mark.parametrize(
    ("pair", "code"),
    [
        (_gemm(), N),
        (_gemm(flags=4, imm=0x3FFF), N),
        (_gemm(flags=4, imm=0x4000), F),
        (_gemm(imm=1), F),
        (_gemm(flags=2), F),
        (_gemm(flags=8), F),
        (_gemm(flags=ACC), N),
        (_gemm(flags=ACC | 4), F),
        (_gemm(PFX, flags=ACC | 4, dst=5), N),
        (_gemm(flags=MODE, imm=I32), N),
        (_gemm(flags=MODE, imm=0), F),
        (_gemm(flags=QUANT, imm=I32 | TENSOR), F),
        (_gemm(flags=QUANT, imm=0), F),
        (_gemm(MUL, flags=QUANT, imm=0), N),
        (_gemm(Instruction(Opcode.PFX, imm=32768), flags=QUANT, imm=0), F),
        (_gemm(flags=QUANT, imm=ROW), F),
        (_gemm(PFX, flags=QUANT, imm=ROW), N),
        (_gemm(flags=QUANT | 2, imm=TENSOR), F),
        (_gemm(flags=QUANT | 2, imm=CHANNEL), N),
        (_gemm(flags=QUANT | 1, src1=0, imm=CHANNEL | STREAM), F),
        (_gemm(flags=QUANT, imm=CHANNEL | STREAM), F),
        (_gemm(flags=QUANT, src1=0, imm=CHANNEL | STREAM), N),
        (_gemm(flags=QUANT, imm=CHANNEL | STREAM | ADD), N),
        (_gemm(flags=QUANT, imm=CHANNEL | ADD), F),
        (_gemm(PFX, flags=QUANT, imm=CHANNEL | ADD), N),
        (_gemm(PFX, flags=QUANT | ACC, imm=CHANNEL | ADD, dst=9), F),
        (_gemm(PFX, flags=QUANT | ACC, imm=CHANNEL), F),
        (_gemm(PFX, flags=QUANT | ACC, imm=CHANNEL, dst=9), N),
        (_gemm(PFX, flags=QUANT, imm=ROW | MULD), F),
        (_gemm(MUL, flags=QUANT, imm=CHANNEL | MULD), N),
        (_gemm(MUL, flags=QUANT, imm=CHANNEL | MULD | I16), F),
        (_gemm(flags=QUANT, imm=CHANNEL | TABLE | I16), F),
        (_gemm(flags=MODE, imm=I32 | TABLE), F),
        (_gemm(flags=MODE | 8, imm=I32), F),
        (_gemm(MUL, flags=MODE, imm=I32), F),
        (_gemm(Instruction(Opcode.PFX, m=4), flags=QUANT, imm=CHANNEL), F),
        (_gemm(Instruction(Opcode.PFX, src1=4), flags=QUANT, imm=CHANNEL | 4), F),
        (_gemm(Instruction(Opcode.PFX, k=16), flags=MODE, imm=I32), F),
        (_gemm(flags=MODE, imm=I32 | 1 << 14), F),
        (_gemm(flags=MODE, imm=I32 | DEPTHWISE, k=16), F),
        (_gemm(flags=MODE, imm=I32 | TILE | DEPTHWISE, k=16), F),
        (_depthwise(), N),
        (_depthwise(imm=1), N),
        (_depthwise(imm=2), F),
        (_depthwise(imm=3), F),
        (_depthwise(imm=MX), N),
        (_depthwise(k=64), N),
        (_depthwise(k=80), D),
        (_depthwise(k=24), D),
        (_depthwise(k=8), D),
        (_depthwise(k=0xF001), D),
        (_depthwise(m=0xF008), N),
        (_depthwise(m=126, src0=0x3F7F), N),
        (_depthwise(m=127, src0=0x3F7F), R),
        (_depthwise(LINES, m=126, k=64, src0=0x3F73), N),
        (_depthwise(LINES, m=126, k=64, src0=0x3F74), R),
        (_gemm(LINES, flags=MODE, src1=0, imm=I32 | STREAM, k=16), F),
        (_lined(_cut(3)), N),
        (_lined(_cut(3), imm=MX), N),
        (_lined(_cut(3), imm=1, k=129), N),
        (_lined(_cut(3), k=128), D),
        (_lined(_cut(3), k=145), D),
        (_lined(_cut(4)), D),
        (_lined(_cut(2)), D),
        (_lined(_cut(0)), D),
        (_lined(_cut(0x3FFF)), D),
        (_lined(_cut(3, 2), k=96), N),
        (_lined(_cut(3, 4), k=192), N),
        (_lined(_cut(3, 2)), D),
        (_lined(_cut(3, 4)), D),
        (_lined(_cut(9, 1)), F),
        (_lined(_cut(9, 1, bp=0)), F),
        (_lined(_cut(3, bp=0)), F),
        (_lined(_cut(4), imm=2, k=96), N),
        (_lined(_cut(4), imm=3, k=89), N),
        (_lined(_cut(4), imm=2, k=88), D),
        (_lined(_cut(3), imm=2, k=72), D),
        (_lined(_cut(3), k=0xF009), D),
        (_lined(_cut(3), n=0xF009), D),
        (_lined(_cut(3), m=0xF008), N),
        (_lined(_cut(3, k=32), m=0xF008), N),
        (_lined(_cut(3), imm=DEPTHWISE, k=48), F),
        (_lined(_cut(3, bp=0), imm=DEPTHWISE, k=48), F),
        (_gemm(_cut(3, bp=0), k=144), F),
        (_gemm(_cut(3), flags=MODE, imm=I32 | TILE, k=144), F),
        (_gemm(_cut(3, bp=0), flags=MODE | ACC, imm=I32, k=144), R),
        (_gemm(_cut(3, 1, bp=0), flags=MODE | ACC, imm=I32, k=144), N),
        (_lined(_cut(3), src1=7), F),
        (_lined(_cut(3), flags=MODE | ACC, src1=7), N),
        (_lined(_cut(3), m=2, src0=0x3FE2), N),
        (_lined(_cut(3), m=2, src0=0x3FE3), R),
        (_lined(_cut(3, src0=1), m=128, src0=0x3F6C), N),
        (_lined(_cut(3, src0=1), m=128, src0=0x3F6D), R),
        (_lined(_cut(3, bp=0x1000), m=1, src0=0x1FFD), N),
        (_lined(_cut(3, bp=0x1000), m=1, src0=0x1FFE), R),
        (_gemm(flags=MODE, imm=3 << 10), F),
        *(
            (
                _gemm(flags=MODE, src1=0, imm=I32 | (MX if fmt > 7 else STREAM) | (fmt & 7) << 4),
                N if fmt in set(WeightFormat) else F,
            )
            for fmt in range(16)
        ),
        *((_gemm(flags=MODE, imm=I32 | fmt << 4), F) for fmt in range(1, 8)),
        *((_gemm(flags=MODE, imm=I32 | TILE | fmt << 4), F) for fmt in range(1, 8)),
        *((_gemm(flags=MODE | g, src1=0, imm=I32 | STREAM | INT4G), N) for g in (1, 16, 17)),
        *((_gemm(flags=MODE | g, src1=0, imm=I32 | STREAM), F) for g in (1, 16, 17)),
        *((_gemm(flags=MODE | g, src1=0, imm=I32 | MX), F) for g in (1, 16, 17)),
        *((_gemm(flags=g, imm=0), F) for g in (16, 17)),
        *((_gemm(flags=MODE | 16, imm=I32 | form), F) for form in (0, TILE)),
        (_gemm(m=0), D),
        (_gemm(n=0), D),
        (_gemm(k=0xF001), N),
        (_gemm(m=0xF009), D),
        (_gemm(m=0xF008), N),
        (_gemm(m=0xF001, flags=MODE, imm=I32 | 3), D),
        (_gemm(m=128), N),
        (_gemm(m=129), D),
        (_gemm(m=64, flags=MODE, imm=I32 | 3), N),
        (_gemm(m=65, flags=MODE, imm=I32 | 3), D),
        (_gemm(dst=0x4000), R),
        (_gemm(src1=0x3FF1), R),
        (_gemm(src1=0x3FF0), N),
        ((None, Instruction(Opcode.SOFTMAX, m=6, n=5, k=4, imm=2)), D),
        ((None, Instruction(Opcode.SOFTMAX, m=6, n=5, k=3, imm=2)), N),
        ((None, Instruction(Opcode.SOFTMAX, m=6, n=5, src1=1)), F),
        ((None, Instruction(Opcode.SOFTMAX, m=6, n=5, imm=3)), F),
        ((None, Instruction(Opcode.LAYERNORM, m=1, n=8193, imm=1)), D),
        ((None, Instruction(Opcode.LAYERNORM, m=1, n=8192, imm=1)), N),
        ((None, Instruction(Opcode.LAYERNORM, m=1, n=64, imm=1, src1=1)), F),
        ((None, Instruction(Opcode.GELU, m=1, n=64, src1=0x3FF1)), R),
        ((None, Instruction(Opcode.VEC, m=1, n=64, imm=0x10)), F),
        ((None, Instruction(Opcode.VEC, m=1, n=64, imm=0x23)), N),
        ((None, Instruction(Opcode.VEC, m=1, n=64, imm=0x37)), F),
        ((None, Instruction(Opcode.VEC, m=1, n=64, imm=len(VecOp))), F),
        ((None, Instruction(Opcode.VEC, m=1, n=64, imm=0x40)), F),
        ((None, Instruction(Opcode.VEC, m=1, n=64, imm=0x100)), F),
        ((None, Instruction(Opcode.VEC, m=1, n=64, imm=5, k=1)), F),
        ((Instruction(Opcode.PFX, src1=9), Instruction(Opcode.VEC, m=1, n=64, imm=6)), F),
        ((None, Instruction(Opcode.BARRIER, m=64)), F),
        ((None, Instruction(Opcode.BARRIER, n=5)), F),
        ((PFX, Instruction(Opcode.BARRIER)), F),
        ((PFX, Instruction(Opcode.END)), F),
        ((None, Instruction(Opcode.SET, dst=SetReg.BASE3, src0=8)), A),
        ((None, Instruction(Opcode.SET, dst=SetReg.STREAM, src0=0x20)), A),
        ((None, Instruction(Opcode.SET, dst=SetReg.STREAM, src0=0x40, flags=1)), F),
        ((None, Instruction(Opcode.SET, dst=SetReg.TOKEN, src0=1)), N),
        ((None, Instruction(Opcode.SET, dst=SetReg.KVCAP, src0=1, flags=1)), N),
        ((None, Instruction(Opcode.SET, dst=SetReg.KVHEAD, src0=0x80)), A),
        ((None, Instruction(Opcode.SET, dst=7)), F),
        ((None, Instruction(Opcode.DMA_LOAD, m=1, n=1, src0=8)), A),
        ((None, Instruction(Opcode.DMA_LOAD, m=2, n=16, src0=0xFFF0, src1=0xFFFF)), A),
        ((None, Instruction(Opcode.DMA_LOAD, m=1, n=16, src0=0xFFF0, src1=0xFFFF)), N),
        ((None, Instruction(Opcode.KV_READ, n=16, k=1)), N),
        ((None, Instruction(Opcode.KV_READ, n=16, k=0)), D),
        ((Instruction(Opcode.PFX, k=8), Instruction(Opcode.KV_READ, n=16, k=1)), F),
        ((None, Instruction(Opcode.KV_APPEND, n=16, k=0xF001)), D),
        ((None, Instruction(Opcode.KV_APPEND, n=16, k=1, src1=1)), F),
        ((None, Instruction(Opcode.ROPE, m=1, n=15, k=1)), D),
        ((None, Instruction(Opcode.EMBED, m=2, n=16)), D),
        ((None, Instruction(Opcode.EMBED, m=2, n=16, imm=0x30)), F),
        ((None, Instruction(Opcode.EMBED, m=2, n=16, imm=0x20, src0=1)), F),
        (_gemm(flags=QUANT, m=1, imm=CHANNEL | 3 << 10 | 1 << 14), N),
        (_gemm(flags=QUANT, m=1, dst=1, imm=CHANNEL | 3 << 10 | 1 << 14), F),
        (_gemm(flags=QUANT, m=2, imm=CHANNEL | 1 << 14), D),
        (_gemm(PFX, flags=QUANT | ACC, m=1, imm=CHANNEL | 3 << 10 | 1 << 14), F),
        ((None, Instruction(99)), U),
    ],
)
def test_legality(pair: Pair, code: ErrorCode) -> None:
    """Each rule of the reference page, from both sides."""
    prefix, word = pair
    assert code_of(check(word, prefix, CHIP)) == code


@pytest.mark.parametrize(("array", "code"), [(4, F), (8, F), (16, D), (32, N)])
def test_depthwise_by_array(array: int, code: ErrorCode) -> None:
    """Small arrays do not have it; the others take one to four of their own edges of K."""
    prefix, word = _depthwise(k=96)
    assert code_of(check(word, prefix, Limits(array_dim=array))) == code


@pytest.mark.parametrize("edge", [16, 32])
def test_lines_of_a_depthwise_gemm(edge: int) -> None:
    """Each line of A is an operand: three more rows, natural pitches of a row of N bytes."""
    prefix, word = _depthwise(m=5, n=17, k=3 * edge)
    for given, pitch, step in ((prefix, 32, 32), (Instruction(Opcode.PFX, src0=1, src1=4), 16, 64)):
        lines = [o for o in sram_operands(word, Prefix.of(given), edge) if o.name == "src0"]
        assert [(o.address, o.rows, o.row_bytes, o.pitch) for o in lines] == [
            (256 + line * step, 8, 17, pitch) for line in range(3)
        ]
        assert lines[-1].end == 256 + 2 * step + 7 * pitch + 32
    assert GemmForm.of(word).macs(5, 17, 3 * edge, edge) == 4 * 3 * 5 * 17


@pytest.mark.parametrize(
    ("a_type", "words", "code"),
    [(0, 2, N), (1, 4, N), (0, 3, D), (0, 1, D), (2, 4, N), (3, 8, N), (2, 2, D), (3, 6, D)],
)
def test_lines_are_whole_inner_tiles(a_type: int, words: int, code: ErrorCode) -> None:
    """A tile of an array of 32 is two words of A, or four of a 16-bit A."""
    prefix, word = _lined(_cut(words), imm=a_type, k=3 * words * 16 // (1 + a_type // 2))
    assert code_of(check(word, prefix, Limits(array_dim=32))) == code


def test_operands_of_rows_in_lines() -> None:
    """Each line of A is an operand; the natural pitch is that of the whole row."""
    prefix, word = _lined(_cut(4), imm=2, m=5, k=90)
    for given, pitch in ((prefix, 192), (_cut(4, src0=2), 32)):
        lines = [o for o in sram_operands(word, Prefix.of(given), 16) if o.name == "src0"]
        assert [(o.address, o.rows, o.row_bytes, o.pitch) for o in lines] == [
            (256 + line * 9 * 16, 5, 64, pitch) for line in range(3)
        ]
        assert lines[-1].end == 256 + 2 * 9 * 16 + 4 * pitch + 64
    assert GemmForm.of(word).macs(5, 16, 90, 16) == 2 * 5 * 16 * 90
    assert (Prefix.of(prefix).lines, Prefix.of(prefix).line_words) == (3, 4)
    assert (Prefix().lines, Prefix().line_words) == (1, 0)


def test_checks_come_in_order() -> None:
    """Mend an instruction that is wrong in every respect step by step: the error moves on."""
    word = Instruction(Opcode.DMA_LOAD, flags=1, dst=0x4000, src0=8, m=0, n=16)
    codes = []
    for change in (0, 1 << 8, 1 << 64, 8 << 32, 0x4000 << 16):
        word = Instruction.from_int(word.to_int() ^ change)
        codes.append(code_of(check(word, None, CHIP)))
    assert codes == [F, D, A, R, N]


# A value for ARGMAX to find, so that it depends on nothing but its word.
_ARGMAX_GEMM = Instruction(Opcode.GEMM, QUANT, 0, 0, 0, 1, 1, 1, 3 << 10 | 1 << 14)


def _golden_error(
    pair: Pair, memory: npt.NDArray[np.uint8], config: ChipConfig
) -> tuple[ErrorReport | None, int]:
    """Return how the instruction-level model refuses the pair, and the words of the program.

    The program ends otherwise, and most checks that depend on registers do not fail.
    """
    words = [word for word in pair if word is not None]
    program = [MUL, _ARGMAX_GEMM, *words]
    program += [Instruction(Opcode.SET, dst=SetReg.STREAM), Instruction(Opcode.END)]
    image = encode_image(program)
    base = memory.size - 1024
    memory[base : base + len(image)] = np.frombuffer(image, np.uint8)
    machine = Machine(config, memory, np.zeros(config.sram_bytes, np.uint8), races=False)
    start = StartState(base, len(program), 0, STREAM_BYTES, kv_cap=0xFFFF_FFFF)
    return machine.run(start).error, len(program)


def _depends_on_registers(word: Instruction, error: ErrorReport, length: int) -> bool:
    """Whether an error follows from POS, memory, the stream, or the length of the program."""
    if error.code in RUNTIME:
        return True
    if word.opcode == Opcode.LOOP:
        outside = word.src0 | word.src1 << 16
        return error.code == ErrorCode.ILLEGAL_FIELD and outside >= length
    if word.opcode == Opcode.KV_APPEND and error.code == ErrorCode.SRAM_RANGE:
        last = (word.dst + (word.imm >> 8) * word.src1) * 16
        return word.flags >> Flag.STAGE & 1 == 1 and error.address == last
    return False


@pytest.mark.parametrize("seed", SEEDS)
def test_two_legality_checks_agree(seed: int) -> None:
    """spec.isa.legality and golden were written apart from the same text; tiles of both edges."""
    print(f"seed {seed}")
    chip = Limits(array_dim=(16, 32)[seed % 2])
    config = ChipConfig(array_dim=chip.array_dim)
    rng = Random(seed)
    opcodes = [op for op in Opcode if op != Opcode.PFX]
    seen = set()
    executed = set()
    memory = np.zeros(1024 + STREAM_BYTES, np.uint8)
    for _ in range(400):
        pair = legal(rng, rng.choice(opcodes), chip)
        if rng.random() < 0.7:
            pair = mutated(rng, pair)
        code = code_of(check(pair[1], pair[0], chip))
        seen.add(code)
        executed |= {pair[1].opcode} if code == N else set()
        error, length = _golden_error(pair, memory, config)
        if code == N and error is not None and _depends_on_registers(pair[1], error, length):
            continue
        assert code == (N if error is None else error.code), f"{pair}"
    assert seen >= {N, F, D}
    assert executed == set(opcodes)


def test_share_bytes() -> None:
    """Share sizes follow the table of the reference page."""

    def share(pair: Pair) -> int:
        assert check(pair[1], pair[0], CHIP) is None
        return share_bytes(pair[1])

    assert share(_gemm()) == 0
    stream = QUANT | 2
    wide = _gemm(flags=stream, src1=0, n=33, k=17, imm=CHANNEL | STREAM | TABLE)
    assert share(wide) == 256 + 3 * (128 + 2 * 256)
    assert share(_gemm(flags=QUANT, imm=TENSOR)) == 64
    assert share((None, Instruction(Opcode.LAYERNORM, m=1, n=65, imm=1))) == 64 + 4 * 80
    assert share((None, Instruction(Opcode.LAYERNORM, m=1, n=65))) == 0
    assert share((None, Instruction(Opcode.GELU, m=1, n=5, imm=1))) == 256
    table = int(VecOp.TABLE) | 0x40
    assert share((None, Instruction(Opcode.VEC, m=1, n=5, imm=table))) == 256


@pytest.mark.parametrize(
    ("text", "edge", "lines"),
    [
        ("int8", 16, 13 * 4),
        ("int4", 16, 13 * 2),
        ("int4g group=16", 16, 13 * 2 + 4),
        ("nf4g", 16, 13 * 2 + 2),
        ("fp4g group=64", 16, 13 * 2 + 1),
        ("int4g group=128", 16, 13 * 2 + 1),
        ("int4s", 16, 13 + 7),
        ("int2", 16, 13),
        ("int8s", 16, 13 * 2 + 7),
        ("mxint8", 16, 13 * 4 + 2),
        ("mxfp6e2", 16, 13 * 3 + 2),
        ("mxfp4", 16, 13 * 2 + 2),
        ("int8", 32, 7 * 16),
        ("int4g group=32", 32, 7 * 8 + 4),
        ("int4g group=128", 32, 7 * 8 + 1),
        ("int4s", 32, 7 * 4 + 14),
        ("int8s", 32, 7 * 8 + 14),
        ("int2", 32, 7 * 4),
        ("mxfp6e3", 32, 7 * 12 + 4),
        ("mxfp8e5", 32, 7 * 16 + 4),
    ],
)
def test_share_bytes_of_weight_formats(text: str, edge: int, lines: int) -> None:
    """208 rows of one n-tile, raw sums: side lines and tiles counted by hand."""
    line = f"GEMM dst=0 src0=0 M=1 N=3 K=200 B=stream fmt={text} out=i32\n"
    (word,) = assemble(line, limits=Limits(array_dim=edge)).instructions
    assert share_bytes(word, edge) == 64 * lines


def test_set_registers_have_granularity() -> None:
    """Bases are multiples of 16, stream offsets of 64."""
    assert SET_REGISTERS[SetReg.STREAM].granularity == 64
    assert {SET_REGISTERS[SetReg(16 + i)].granularity for i in range(8)} == {16}
