# SPDX-License-Identifier: Apache-2.0
"""The compiler: programs run on the instruction-level model, streams, packed files."""

import re
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from golden import decoder
from golden.machine import ChipConfig, Machine, RunResult, StartState
from npu.asm import assemble
from npu.compiler import (
    CompiledBlock,
    MissingTensorError,
    TensorRef,
    collect,
    compile_block,
    pack,
    unpack,
)
from npu.compiler.sram_allocation import SramBuffer, place
from npu.compiler.stream import gemm_share, norm_share
from npu.compiler.weight_tiles import plain_bytes
from spec.isa import Instruction, Opcode
from spec.isa.generated import WeightFormat
from spec.isa.instruction import encode_image
from spec.isa.operands import Limits, up
from spec.paths import ROOT
from weights.model import Norm, QuantizedModel
from weights.synthetic import random_model, shape_of

MEMORY_BYTES = 1 << 20
STREAM_BASE, INPUT = 0x10000, 0x80000
CHIP = Limits()


@cache
def _model(seed: int, hidden: int, heads: int, ffn: int) -> QuantizedModel:
    shape = shape_of("gpt2", hidden=hidden, heads=heads, ffn=ffn, layers=1, vocab=99, context=128)
    return random_model(shape, seed)


def _input(model: QuantizedModel, rows: int) -> npt.NDArray[np.int16]:
    ids = np.random.default_rng(rows).integers(0, model.shape.vocab, rows).tolist()
    return decoder.embed(model, ids)


@dataclass(frozen=True)
class BlockRun:
    """A run of a compiled block on the instruction-level model."""

    result: RunResult
    output: npt.NDArray[np.int16]


def _run(
    block: CompiledBlock,
    x: npt.NDArray[np.int16],
    chip: Limits,
    words: list[Instruction] | None = None,
) -> BlockRun:
    words = block.program.instructions if words is None else words
    memory = np.random.default_rng(7).integers(0, 256, MEMORY_BYTES, dtype=np.uint8)
    for base, data in (
        (0, encode_image(words)),
        (STREAM_BASE, block.stream),
        (INPUT + block.input_offset, x.astype("<i2").tobytes()),
    ):
        memory[base : base + len(data)] = np.frombuffer(data, np.uint8)
    config = ChipConfig(
        array_dim=chip.array_dim, sram_bytes=chip.sram_bytes, acc_rows=chip.acc_rows
    )
    sram = np.random.default_rng(8).integers(0, 256, config.sram_bytes, dtype=np.uint8)
    bases = (INPUT, 0, 0, 0, 0, 0, 0, 0)
    start = StartState(0, len(words), STREAM_BASE, len(block.stream), bases=bases)
    result = Machine(config, memory, sram).run(start)
    output = INPUT + block.output_offset
    out = memory[output : output + block.output_bytes].view("<i2").astype(np.int16)
    return BlockRun(result, out.reshape(x.shape))


def _expected(trace: decoder.BlockTrace, name: str) -> npt.NDArray[Any]:
    base, head, index = name.partition("_h")
    tensor: npt.NDArray[Any] = getattr(trace, base)
    return tensor[int(index)] if head else tensor


def _check(model: QuantizedModel, rows: int, fused: bool, chip: Limits = CHIP) -> CompiledBlock:
    """Compile, run, and compare every tensor with the plain network, bit for bit."""
    block = compile_block(model, 0, rows, fused=fused, limits=chip)
    x = _input(model, rows)
    trace = decoder.block(model, 0, x)
    run = _run(block, x, chip)
    assert run.result.error is None
    assert [str(race) for race in run.result.races] == []
    tensors = collect(block.tensors, run.result.sram_writes, chip.sram_bytes)
    for (layer, name), tensor in tensors.items():
        want = _expected(trace, name)
        assert (layer, tensor.dtype, tensor.shape) == (0, want.dtype, want.shape), name
        if name.startswith("scores"):  # of what a row looks at; the chip leaves most others out
            tensor, want = np.tril(tensor), np.tril(want)
        np.testing.assert_array_equal(tensor, want, err_msg=name)
    np.testing.assert_array_equal(run.output, trace.resid2)
    assert not np.array_equal(trace.resid2, x)
    names = {name for _, name in tensors}
    always = {"norm1", "q", "k", "v", "ctx", "resid1", "norm2", "act", "resid2"}
    for head in range(model.shape.heads):
        always |= {f"scores_h{head}", f"numer_h{head}", f"sums_h{head}"}
    assert names == (always if fused else always | {"proj", "up", "down"})
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
        "h.0.norm1",
        "h.0.qkv" if fused else "h.0.q",
    ]
    for ref in block.tensors:
        assert block.program.instructions[ref.instr].opcode not in (Opcode.PFX, Opcode.BARRIER)


def test_tile_layout() -> None:
    """Byte E*k + n of tile (j, i) is W[E*i + k][E*j + n]."""
    weight = np.random.default_rng(1).integers(-127, 128, (20, 35), dtype=np.int8)
    cut = plain_bytes(weight, 16, WeightFormat.INT8).view(np.int8).reshape(3, 2, 256)
    for k, n in ((0, 0), (3, 17), (19, 34), (16, 31)):
        assert cut[n // 16, k // 16, 16 * (k % 16) + n % 16] == weight[k, n]
    assert cut[2, 0, 3] == 0
    assert cut[0, 1, 16 * 4] == 0


def test_share_layouts() -> None:
    """Channel records stand before the tiles of their n-tile; norms begin with epsilon."""
    model = _model(3, 64, 4, 256)
    layer, norm = model.blocks[0].up, model.blocks[0].norm1
    assert isinstance(norm, Norm)
    share = gemm_share(layer, 16, model.blocks[0].table)
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


def test_collect_notices_missing_writes() -> None:
    """A tensor that was not written completely is named."""
    model = _model(3, 64, 4, 256)
    block = compile_block(model, 0, 4)
    writes = _run(block, _input(model, 4), CHIP).result.sram_writes
    ref = block.tensors[0]
    longer = TensorRef(ref.name, 0, ref.instr, ref.address, (5, 64), "int8", 64)
    with pytest.raises(MissingTensorError, match=r"layer 0 norm1: .* row 4"):
        collect([longer], writes, CHIP.sram_bytes)


def test_instructions_are_emitted_in_one_place() -> None:
    """Only the emitters and the builder itself write instructions; whoever else wants one calls."""
    folder = ROOT / "npu" / "compiler"
    callers = {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*.py")
        if re.search(r"\.emit\(", path.read_text(encoding="utf-8"))
    }
    emitters = {name for name in callers if name.startswith("emit/")}
    assert callers - emitters == {"program_builder.py"}
    assert len(emitters) > 3


def test_place_keeps_live_buffers_apart() -> None:
    """Buffers that live at the same time never overlap; others may share their place."""
    rng = np.random.default_rng(5)
    for _ in range(50):
        buffers = []
        for i in range(12):
            first = int(rng.integers(0, 8))
            last = first + int(rng.integers(0, 4))
            buffers.append(SramBuffer(str(i), int(rng.integers(1, 500)), first, last))
        at = place(buffers)
        for a in buffers:
            for b in buffers:
                if a.name < b.name and a.first <= b.last and b.first <= a.last:
                    apart = at[a.name] + up(a.size) <= at[b.name]
                    assert apart or at[b.name] + up(b.size) <= at[a.name]
    assert place([SramBuffer("a", 5, 0, 1), SramBuffer("b", 5, 2, 3)]) == {"a": 0, "b": 0}


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
