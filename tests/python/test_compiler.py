# SPDX-License-Identifier: Apache-2.0
"""The compiler: programs run on the instruction-level model, streams, packed files."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import gpt2
from golden.machine import ChipConfig, Machine, RunResult, StartState
from npu.asm import assemble
from npu.compiler import (
    CompiledBlock,
    CompileError,
    MissingTensorError,
    PackError,
    ProgramBuilder,
    TensorRef,
    collect,
    compile_block,
    pack,
    unpack,
)
from npu.compiler.sram import Buffer, place
from npu.compiler.stream import gemm_share, norm_share, tiles
from npu.isa import Instruction, Opcode
from npu.isa.instruction import encode_image
from npu.isa.operands import Limits, up
from tests.python.golden_support import random_model
from weights.model import QuantizedModel

MEMORY_BYTES = 1 << 20
STREAM_BASE, INPUT, OUTPUT = 0x10000, 0x80000, 0xC0000
CHIP = Limits()


@cache
def _model(seed: int, hidden: int, heads: int, ffn: int) -> QuantizedModel:
    return random_model(seed, hidden=hidden, heads=heads, ffn=ffn, layers=1)


def _input(model: QuantizedModel, rows: int) -> npt.NDArray[np.int16]:
    ids = np.random.default_rng(rows).integers(0, model.vocab, rows).tolist()
    return gpt2.embed(model, ids)


@dataclass(frozen=True)
class Run:
    """A run of a compiled block on the instruction-level model."""

    result: RunResult
    output: npt.NDArray[np.int16]


def _run(
    block: CompiledBlock,
    x: npt.NDArray[np.int16],
    chip: Limits,
    words: list[Instruction] | None = None,
) -> Run:
    words = block.program.instructions if words is None else words
    memory = np.random.default_rng(7).integers(0, 256, MEMORY_BYTES, dtype=np.uint8)
    for base, data in (
        (0, encode_image(words)),
        (STREAM_BASE, block.stream),
        (INPUT, x.astype("<i2").tobytes()),
    ):
        memory[base : base + len(data)] = np.frombuffer(data, np.uint8)
    config = ChipConfig(
        array_dim=chip.array_dim, sram_bytes=chip.sram_bytes, acc_rows=chip.acc_rows
    )
    sram = np.random.default_rng(8).integers(0, 256, config.sram_bytes, dtype=np.uint8)
    bases = (INPUT, OUTPUT, 0, 0, 0, 0, 0, 0)
    start = StartState(0, len(words), STREAM_BASE, len(block.stream), bases, 0)
    result = Machine(config, memory, sram).run(start)
    out = memory[OUTPUT : OUTPUT + block.output_bytes].view("<i2").astype(np.int16)
    return Run(result, out.reshape(x.shape))


def _expected(trace: gpt2.BlockTrace, name: str) -> npt.NDArray[Any]:
    base, head, index = name.partition("_h")
    tensor: npt.NDArray[Any] = getattr(trace, base)
    return tensor[int(index)] if head else tensor


def _check(model: QuantizedModel, rows: int, fused: bool, chip: Limits = CHIP) -> CompiledBlock:
    """Compile, run, and compare every tensor with the plain network, bit for bit."""
    block = compile_block(model, 0, rows, fused=fused, limits=chip)
    x = _input(model, rows)
    trace = gpt2.block(model, 0, x)
    run = _run(block, x, chip)
    assert run.result.error is None
    assert [str(race) for race in run.result.races] == []
    tensors = collect(block.tensors, run.result.sram_writes, chip.sram_bytes)
    for (layer, name), tensor in tensors.items():
        want = _expected(trace, name)
        assert (layer, tensor.dtype, tensor.shape) == (0, want.dtype, want.shape), name
        np.testing.assert_array_equal(tensor, want, err_msg=name)
    np.testing.assert_array_equal(run.output, trace.resid2)
    assert not np.array_equal(trace.resid2, x)
    names = {name for _, name in tensors}
    always = {"ln1", "q", "k", "v", "ctx", "resid1", "ln2", "fc", "resid2"}
    for head in range(model.heads):
        always |= {f"scores_h{head}", f"numer_h{head}", f"sums_h{head}"}
    assert names == (always if fused else always | {"proj", "fc_pre", "down"})
    return block


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("rows", [1, 2, 15, 16, 33, 64, 65, 100, 128])
def test_block_of_four_heads(rows: int, fused: bool) -> None:
    """Every tensor of a small block has the bits of the plain network."""
    _check(_model(3, 64, 4, 256), rows, fused)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize(
    ("hidden", "heads", "ffn", "rows"),
    [(48, 2, 100, 40), (32, 1, 33, 5), (16, 4, 5, 17), (96, 3, 65, 128), (64, 1, 17, 70)],
)
def test_odd_shapes(hidden: int, heads: int, ffn: int, rows: int, fused: bool) -> None:
    """Heads of 4, 24 and 64 lanes and feed-forward widths that fill no tile."""
    _check(_model(4, hidden, heads, ffn), rows, fused)


@pytest.mark.parametrize(
    "chip",
    [
        replace(CHIP, array_dim=32),
        replace(CHIP, array_dim=8),
        replace(CHIP, acc_rows=32),
        replace(CHIP, sram_bytes=20480),
    ],
    ids=["array32", "array8", "acc32", "sram20k"],
)
def test_other_chips(chip: Limits) -> None:
    """Tile edge, accumulator depth and SRAM size change the program, never the bits."""
    _check(_model(4, 64, 4, 100), 32 if chip.acc_rows == 32 else 40, True, chip)


def test_unfused_tensors_have_addresses_of_their_own() -> None:
    """Where the SRAM allows, no tensor overwrites another."""
    block = compile_block(_model(3, 64, 4, 256), 0, 16, fused=False)
    pieces = sorted({(r.address, r.name) for r in block.tensors if r.column == r.row == 0})
    assert len(pieces) == len({name for _, name in pieces}) == len({at for at, _ in pieces})


def test_barriers_are_needed() -> None:
    """Without any one of its barriers the program has a race; with them it has none."""
    model = _model(3, 64, 4, 256)
    block = compile_block(model, 0, 16)
    words = block.program.instructions
    x = _input(model, 16)
    assert _run(block, x, CHIP).result.races == []
    for index, word in enumerate(words):
        if word.opcode == Opcode.BARRIER:
            rest = words[:index] + words[index + 1 :]
            assert _run(block, x, CHIP, rest).result.races, f"barrier at {index}"


@pytest.mark.parametrize("fused", [True, False])
def test_text_and_stream_describe_the_program(fused: bool) -> None:
    """The text assembles to the program, and the shares cover the stream."""
    block = compile_block(_model(3, 64, 4, 256), 0, 70, fused=fused)
    assert assemble(block.text).image() == block.program.image()
    assert sum(share.bytes for share in block.shares) == len(block.stream)
    assert [share.name for share in block.shares][:2] == [
        "h.0.ln1",
        "h.0.qkv" if fused else "h.0.q",
    ]
    for ref in block.tensors:
        assert block.program.instructions[ref.instr].opcode not in (Opcode.PFX, Opcode.BARRIER)


def test_tile_layout() -> None:
    """Byte E*k + n of tile (j, i) is W[E*i + k][E*j + n]."""
    weight = np.random.default_rng(1).integers(-127, 128, (20, 35), dtype=np.int8)
    cut = tiles(weight, 16).view(np.int8)
    assert cut.shape == (3, 2, 256)
    for k, n in ((0, 0), (3, 17), (19, 34), (16, 31)):
        assert cut[n // 16, k // 16, 16 * (k % 16) + n % 16] == weight[k, n]
    assert cut[2, 0, 3] == 0
    assert cut[0, 1, 16 * 4] == 0


def test_share_layouts() -> None:
    """Channel records stand before the tiles of their n-tile; norms begin with epsilon."""
    model = _model(3, 64, 4, 256)
    layer, norm = model.blocks[0].fc, model.blocks[0].ln1
    share = gemm_share(layer, 16, model.blocks[0].gelu_table)
    assert len(share) == 256 + 16 * (128 + 4 * 256)
    at = 256 + 1 * (128 + 4 * 256) + 8 * 5
    bias = int.from_bytes(share[at : at + 4], "little", signed=True)
    assert bias == layer.bias[21]
    assert int.from_bytes(share[at + 4 : at + 6], "little") == layer.mult[21]
    assert share[at + 6] == layer.shift[21]
    raw = norm_share(norm)
    assert int.from_bytes(raw[:8], "little") == norm.eps_term
    assert int.from_bytes(raw[64 + 4 * 9 : 64 + 4 * 9 + 2], "little") == norm.gain[9]
    assert len(raw) == 64 + 4 * 64


@pytest.mark.parametrize(
    ("rows", "layer", "chip", "message"),
    [
        (0, 0, CHIP, "0 rows: allowed are 1 to 128"),
        (129, 0, CHIP, "129 rows: allowed are 1 to 128"),
        (65, 0, replace(CHIP, acc_rows=64), "65 rows: allowed are 1 to 64"),
        (4, 1, CHIP, "layer 1: allowed are 0 to 0"),
        (64, 0, replace(CHIP, sram_bytes=16384), r"needs \d+ bytes of SRAM, the chip has 16384"),
        (4, 0, replace(CHIP, norm_max=32), "hidden 64: the norm takes at most 32"),
    ],
)
def test_refusals(rows: int, layer: int, chip: Limits, message: str) -> None:
    """What does not fit is refused with what was given and what is allowed."""
    with pytest.raises(CompileError, match=message):
        compile_block(_model(3, 64, 4, 256), layer, rows, limits=chip)


def test_builder_refuses_wrong_shares_and_illegal_instructions() -> None:
    """An instruction and its share have to agree; opcodes that are not built are refused."""
    builder = ProgramBuilder(CHIP)
    with pytest.raises(CompileError, match="takes 256 bytes of the stream, given 0"):
        builder.emit("GELU", "stream", dst=0, src0=0, M=1, N=1)
    with pytest.raises(CompileError, match="SRAM_RANGE"):
        builder.emit("GELU", dst=0x3FFF0, src0=0, src1=0, M=2, N=16)
    with pytest.raises(CompileError, match="ILLEGAL_OPCODE"):
        builder.emit("ARGMAX", b=1)


def test_collect_notices_missing_writes() -> None:
    """A tensor that was not written completely is named."""
    model = _model(3, 64, 4, 256)
    block = compile_block(model, 0, 4)
    writes = _run(block, _input(model, 4), CHIP).result.sram_writes
    ref = block.tensors[0]
    longer = TensorRef(ref.name, 0, ref.instr, ref.address, (5, 64), "int8", 64)
    with pytest.raises(MissingTensorError, match=r"layer 0 ln1: .* row 4"):
        collect([longer], writes, CHIP.sram_bytes)


def test_place_keeps_live_buffers_apart() -> None:
    """Buffers that live at the same time never overlap; others may share their place."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        buffers = []
        for i in range(12):
            first = int(rng.integers(0, 8))
            last = first + int(rng.integers(0, 4))
            buffers.append(Buffer(str(i), int(rng.integers(1, 500)), first, last))
        at = place(buffers)
        for a in buffers:
            for b in buffers:
                if a.name < b.name and a.first <= b.last and b.first <= a.last:
                    apart = at[a.name] + up(a.size) <= at[b.name]
                    assert apart or at[b.name] + up(b.size) <= at[a.name]
    assert place([Buffer("a", 5, 0, 1), Buffer("b", 5, 2, 3)]) == {"a": 0, "b": 0}


def _packed() -> tuple[CompiledBlock, bytes]:
    block = compile_block(_model(3, 64, 4, 256), 0, 4)
    sections = {"tokens": b"abc" * 50, "empty": b""}
    return block, pack(block.stream, block.shares, sections=sections, info={"model": "m"})


def test_pack_round_trip() -> None:
    """A packed file gives back what went in."""
    block, data = _packed()
    assert data[:8] == b"TSRNPACK"
    assert len(data) % 64 == 0
    back = unpack(data, edge=16)
    assert (back.stream, back.shares) == (block.stream, block.shares)
    assert back.sections == {"tokens": b"abc" * 50, "empty": b""}
    assert (back.info, back.edge) == ({"model": "m"}, 16)


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (0, b"X", "magic b'XSRNPACK', expected b'TSRNPACK'"),
        (8, b"\x02", r"version 2\.0, this reader knows 1\.x"),
        (12, b"\x00", "payload start"),
        (24, b"\x01", r"\d+ bytes, the header says"),
        (50, b"\x01", "a reserved byte is not zero"),
        (70, b"\xff", "CRC of the JSON"),
        (-1, b"\x01", "CRC of the payload"),
    ],
)
def test_unpack_refuses(at: int, value: bytes, message: str) -> None:
    """Damage is named, with the file."""
    _, data = _packed()
    at %= len(data)
    with pytest.raises(PackError, match=f"w.npu: .*{message}"):
        unpack(data[:at] + value + data[at + 1 :], filename="w.npu")


def test_unpack_refuses_other_files() -> None:
    """Truncated files and files for another tile edge are refused."""
    _, data = _packed()
    with pytest.raises(PackError, match="a header alone has 64"):
        unpack(data[:20])
    with pytest.raises(PackError, match="the header says"):
        unpack(data[:-64])
    with pytest.raises(PackError, match="tile edge 16, the chip has 32"):
        unpack(data, edge=32)
    with pytest.raises(ValueError, match="the shares hold"):
        pack(b"", unpack(data).shares)
