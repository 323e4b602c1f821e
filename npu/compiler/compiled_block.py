# SPDX-License-Identifier: Apache-2.0
"""One GPT-2 block at position 0, without a cache: fused, or one instruction per operation.

Both forms give the same bits. The input residual stream, (S, H) int16 row by row, lies at BASE0;
the output goes to BASE1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from npu.asm.program import Program
from npu.compiler.block_layout import BlockLayout, plan_block
from npu.compiler.decoder_layer import DecoderLayer, Parameters
from npu.compiler.emit import (
    RowMajor,
    SramMatrix,
    emit_add,
    emit_attention,
    emit_linear,
    emit_load,
    emit_store,
    emit_table,
    note_heads,
)
from npu.compiler.errors import CompileError
from npu.compiler.pack import pack
from npu.compiler.parameter_image import build_block_image
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.shape import Shape, check_limits, check_model, ctx_pitch, numbers_of, qkv_pitch
from npu.compiler.stream import Share
from npu.compiler.tensor_map import TensorRef
from npu.isa.operands import DYNAMIC, WORD, Limits
from weights.model import QuantizedModel

INPUT, OUTPUT = range(2)
"""Base registers of the residual streams."""


@dataclass(frozen=True)
class CompiledBlock:
    """A program with its stream and the map of its tensors.

    Attributes:
        program: ends with END; reads its input from BASE0 and writes its output to BASE1.
        text: the program as text; it assembles to the same words.
        stream: the parameter stream, a multiple of 64 bytes.
        shares: the stream's pieces in order.
        tensors: where each tensor is written.
        sram_bytes: bytes of SRAM that the program uses, from address 0.
        input_bytes, output_bytes: what lies at BASE0 and BASE1.
        edge: tile edge of the chip that it is made for.

    """

    program: Program
    text: str
    stream: bytes
    shares: tuple[Share, ...]
    tensors: tuple[TensorRef, ...]
    sram_bytes: int
    input_bytes: int
    output_bytes: int
    edge: int = 16

    def packed(self, info: Mapping[str, Any] | None = None) -> bytes:
        """Return program and stream as one packed file; `info` joins its JSON."""
        sections = {"program": self.program.image()}
        return pack(self.stream, self.shares, edge=self.edge, sections=sections, info=info)


def compile_block(
    model: QuantizedModel,
    layer: int,
    rows: int,
    *,
    fused: bool = True,
    limits: Limits | None = None,
) -> CompiledBlock:
    """Compile block `layer` of a model for `rows` positions from position 0.

    Raises CompileError if an argument makes no sense, or if the block does not fit the chip; it
    says what was given and what is allowed or how much is needed.
    """
    chip = limits or Limits()
    shape = _check_request(model, layer, rows, chip)
    layout = plan_block(shape, rows, fused, chip)
    image = build_block_image(model, layer, chip.edge, fused=fused)
    builder = ProgramBuilder(chip)
    x = SramMatrix(layout.at["x"], rows, shape.hidden, "int16")
    parameters = Parameters.of(numbers_of(model), image.shares)
    parts = DecoderLayer(builder, shape, parameters, layer, layout.at, x)
    size = 2 * shape.hidden
    emit_load(builder, x.address, INPUT, rows=rows, size=size)
    out = _fused(parts, layout) if fused else _Unfused(parts, layout).block()
    emit_store(builder, out.address, OUTPUT, rows=rows, size=size)
    builder.end()
    program, text = builder.program()
    return CompiledBlock(
        program,
        text,
        image.stream,
        image.shares,
        tuple(builder.tensors),
        layout.sram_bytes,
        rows * size,
        rows * size,
        chip.edge,
    )


def _check_request(model: QuantizedModel, layer: int, rows: int, chip: Limits) -> Shape:
    """Return the shape; CompileError unless the arguments make sense and the chip can exist."""
    check_model(model)
    decoder = model.shape
    check_limits(chip)
    for name, value in (("layer", layer), ("rows", rows)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise CompileError(f"{name}: given {value!r}, allowed int")
    if not 0 <= layer < model.shape.layers:
        raise CompileError(f"layer {layer}: allowed are 0 to {model.shape.layers - 1}")
    for name, plain in (
        ("norm", decoder.norm == "layernorm"),
        ("rope", not decoder.rope),
        ("window", not decoder.window),
        ("gate", not decoder.gated),
        ("kv_heads", decoder.group == 1),
    ):
        if not plain:
            raise CompileError(f"{name}: a {decoder.family} has one; a block alone is GPT-2's only")
    _check_sizes(decoder, rows, chip)
    return decoder


def _check_sizes(shape: Shape, rows: int, chip: Limits) -> None:
    most = min(chip.acc_rows, shape.context)
    if not 1 <= rows <= most:
        raise CompileError(
            f"{rows} rows: allowed are 1 to {most} (accumulators {chip.acc_rows} rows, "
            f"context {shape.context})"
        )
    if shape.hidden % WORD:
        raise CompileError(f"hidden {shape.hidden}: allowed are multiples of {WORD}")
    if shape.hidden > chip.norm_max:
        raise CompileError(f"hidden {shape.hidden}: the norm takes at most {chip.norm_max}")
    for name, value in (("3 * hidden", qkv_pitch(shape)), ("ffn", shape.ffn)):
        if value >= DYNAMIC:
            raise CompileError(f"{name} = {value}: a GEMM has at most {DYNAMIC - 1} columns")


def _attention(
    parts: DecoderLayer, layout: BlockLayout, qkv: tuple[int, int, int], pitch: int
) -> None:
    """Emit attention over q, k and v that lie in SRAM, rows `pitch` bytes apart."""
    q, k, v = qkv
    plan = layout.attention(parts.shape, parts.x.rows, q, pitch)
    source = RowMajor(plan, k, v, pitch)
    emit_attention(parts.builder, plan, source, layer=parts.layer, scale=parts.scale)


def _fused(parts: DecoderLayer, layout: BlockLayout) -> SramMatrix:
    """Emit the block with everything fused that GEMM can fuse; return its output."""
    shape, at = parts.shape, layout.at["qkv"]
    parts.norm("norm1")
    parts.qkv()
    qkv = at, at + ctx_pitch(shape), at + 2 * ctx_pitch(shape)
    _attention(parts, layout, qkv, qkv_pitch(shape))
    parts.project()
    parts.feed_forward()
    return parts.x


@dataclass(frozen=True, slots=True)
class _Unfused:
    """The block with one instruction per operation."""

    parts: DecoderLayer
    layout: BlockLayout

    def block(self) -> SramMatrix:
        """Emit everything; return the output."""
        parts, shape, at = self.parts, self.parts.shape, self.layout.at
        parts.norm("norm1")
        for name in "qkv":
            self.heads(name)
        _attention(parts, self.layout, (at["q"], at["k"], at["v"]), ctx_pitch(shape))
        proj = self.linear("proj", parts.buffer("ctx", ctx_pitch(shape)), self.residual("proj"))
        middle = self.add("resid1", parts.x, proj)
        replace(parts, x=middle).norm("norm2")
        up = self.linear("up", parts.buffer("norm2", shape.hidden), parts.buffer("up", shape.ffn))
        act = parts.buffer("act", shape.ffn)
        parts.note("act", emit_table(parts.builder, up, act, parts.share("gelu")), act)
        return self.add("resid2", middle, self.linear("down", act, self.residual("down")))

    def residual(self, name: str) -> SramMatrix:
        """Return a buffer of the residual stream's kind."""
        return replace(self.parts.x, address=self.layout.at[name])

    def heads(self, name: str) -> None:
        """Emit q, k or v."""
        parts, shape = self.parts, self.parts.shape
        dst = parts.buffer(name, ctx_pitch(shape))
        src = parts.buffer("norm1", shape.hidden)
        instr = emit_linear(parts.builder, src, dst, parts.share(name))
        note_heads(
            parts.builder,
            name,
            parts.layer,
            instr,
            dst.address,
            rows=dst.rows,
            heads=shape.heads,
            head_dim=shape.head_dim,
            pitch=ctx_pitch(shape),
        )

    def linear(self, name: str, src: SramMatrix, dst: SramMatrix) -> SramMatrix:
        """Emit a linear layer; return its result."""
        parts = self.parts
        parts.note(name, emit_linear(parts.builder, src, dst, parts.share(name)), dst)
        return dst

    def add(self, name: str, a: SramMatrix, b: SramMatrix) -> SramMatrix:
        """Emit a sum; return it."""
        dst = self.residual(name)
        self.parts.note(name, emit_add(self.parts.builder, a, b, dst), dst)
        return dst
