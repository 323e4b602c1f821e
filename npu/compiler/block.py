# SPDX-License-Identifier: Apache-2.0
"""One GPT-2 block at position 0, without a cache: fused, or one instruction per operation.

Both forms give the same bits. The input residual stream, (S, H) int16 row by row, lies at BASE0;
the output goes to BASE1.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from npu.asm.program import Program
from npu.compiler.attention import (
    AttentionPlan,
    Keys,
    RowMajor,
    Unit,
    emit_attention,
    schedule,
    score_pitch,
    uses,
)
from npu.compiler.builder import ProgramBuilder
from npu.compiler.errors import CompileError
from npu.compiler.layers import columns, pad_inputs, pad_outputs
from npu.compiler.pack import pack
from npu.compiler.shape import Shape, check_limits
from npu.compiler.sram import Buffer, place, top
from npu.compiler.stream import Share, Stream, gemm_share, norm_share, table_share
from npu.compiler.tensors import TensorRef
from npu.isa.generated import Opcode
from npu.isa.operands import DYNAMIC, WORD, Limits, up
from weights.model import Block, Linear, QuantizedModel

# Phases of a block, for the lifetimes of buffers. The fused form leaves some of them empty.
LOAD, LN1, QKV, ATTENTION, PROJ, ADD1, LN2, FC, GELU, DOWN, ADD2, STORE = range(12)


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


@dataclass(frozen=True, slots=True)
class _Layout:
    """How buffers are laid out: the choices from generous to frugal."""

    separate: bool  # every tensor at its own address for the whole program
    slots: int  # score buffers
    in_place: bool  # numerators over scores


@dataclass(frozen=True, slots=True)
class _Shape:
    rows: int
    hidden: int
    heads: int
    head_dim: int
    ffn: int

    @property
    def wide(self) -> int:
        """Lanes of q, k, v and the context: heads padded to whole words."""
        return self.heads * up(self.head_dim)

    @property
    def residual_pitch(self) -> int:
        """Bytes of a row of the residual stream."""
        return up(2 * self.hidden)


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
    _check_request(model, layer, rows, chip)
    shape = _Shape(rows, model.hidden, model.heads, model.head_dim, model.ffn)
    _check(model, shape, chip)
    layout, buffers, addresses = _choose(shape, fused, chip)
    block = _Block(ProgramBuilder(chip), model.blocks[layer], layer, shape, layout, addresses)
    if fused:
        block.fused()
    else:
        block.unfused()
    block.builder.emit("END")
    program, text = block.builder.program()
    size = rows * 2 * shape.hidden
    return CompiledBlock(
        program,
        text,
        block.stream.image(),
        tuple(block.stream.shares),
        tuple(block.builder.tensors),
        top(buffers, addresses),
        size,
        size,
        chip.edge,
    )


def _check_request(model: QuantizedModel, layer: int, rows: int, chip: Limits) -> None:
    """Raise CompileError unless the arguments are of the right kind and the chip can exist."""
    decoder = Shape.of(model)
    check_limits(chip)
    for name, value in (("layer", layer), ("rows", rows)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise CompileError(f"{name}: given {value!r}, allowed int")
    if not 0 <= layer < model.layers:
        raise CompileError(f"layer {layer}: allowed are 0 to {model.layers - 1}")
    for name, plain in (
        ("norm", not decoder.rms),
        ("rope", not decoder.rope),
        ("window", not decoder.window),
        ("gate", not decoder.gated),
        ("kv_heads", decoder.group == 1),
    ):
        if not plain:
            raise CompileError(f"{name}: a {decoder.family} has one; a block alone is GPT-2's only")


def _check(model: QuantizedModel, shape: _Shape, chip: Limits) -> None:
    most = min(chip.acc_rows, model.context)
    if not 1 <= shape.rows <= most:
        raise CompileError(
            f"{shape.rows} rows: allowed are 1 to {most} (accumulators {chip.acc_rows} rows, "
            f"context {model.context})"
        )
    if shape.hidden % WORD:
        raise CompileError(f"hidden {shape.hidden}: allowed are multiples of {WORD}")
    if shape.hidden > chip.norm_max:
        raise CompileError(f"hidden {shape.hidden}: the norm takes at most {chip.norm_max}")
    for name, value in (("3 * hidden", 3 * shape.wide), ("ffn", shape.ffn)):
        if value >= DYNAMIC:
            raise CompileError(f"{name} = {value}: a GEMM has at most {DYNAMIC - 1} columns")


def _buffers(shape: _Shape, fused: bool, layout: _Layout) -> list[Buffer]:
    rows, pitch = shape.rows, score_pitch(shape.rows)
    residual = rows * shape.residual_pitch
    act, wide, ffn = rows * up(shape.hidden), rows * shape.wide, rows * up(shape.ffn)
    slots = range(layout.slots)
    result = [
        Buffer("x", residual, LOAD, STORE if fused else ADD1),
        Buffer("norm1", act, LN1, QKV),
        Buffer("ctx", wide, ATTENTION, PROJ),
        Buffer("norm2", act, LN2, FC),
        Buffer("act", ffn, FC if fused else GELU, DOWN),
    ]
    result += [Buffer(f"scores{i}", rows * pitch, ATTENTION, ATTENTION) for i in slots]
    result += [Buffer(f"sums{i}", rows * WORD, ATTENTION, ATTENTION) for i in slots]
    if not layout.in_place:
        result += [Buffer(f"numer{i}", rows * pitch, ATTENTION, ATTENTION) for i in slots]
    if fused:
        result.append(Buffer("qkv", 3 * wide, QKV, ATTENTION))
    else:
        result += [Buffer(name, wide, QKV, ATTENTION) for name in ("q", "k", "v")]
        result += [
            Buffer("proj", residual, PROJ, ADD1),
            Buffer("resid1", residual, ADD1, ADD2),
            Buffer("up", ffn, FC, GELU),
            Buffer("down", residual, DOWN, ADD2),
            Buffer("resid2", residual, ADD2, STORE),
        ]
    if layout.separate:
        result = [replace(buffer, first=LOAD, last=STORE) for buffer in result]
    return result


def _choose(
    shape: _Shape, fused: bool, chip: Limits
) -> tuple[_Layout, list[Buffer], dict[str, int]]:
    """Return the most generous layout that fits. Raises CompileError if none does."""
    two = min(2, shape.heads)
    frugal = [_Layout(False, two, True), _Layout(False, 1, True)]
    generous = [
        _Layout(True, shape.heads, False),
        _Layout(True, two, False),
        _Layout(True, two, True),
    ]
    for layout in frugal if fused else generous + frugal:
        buffers = _buffers(shape, fused, layout)
        addresses = place(buffers)
        needed = top(buffers, addresses)
        if needed <= chip.sram_bytes:
            return layout, buffers, addresses
    parts = ", ".join(f"{buffer.name} {buffer.size}" for buffer in buffers)
    raise CompileError(
        f"a block of {shape.rows} rows, hidden {shape.hidden}, ffn {shape.ffn} needs {needed} "
        f"bytes of SRAM, the chip has {chip.sram_bytes} (bytes: {parts})"
    )


@dataclass(frozen=True, slots=True)
class _Block:
    builder: ProgramBuilder
    params: Block
    layer: int
    shape: _Shape
    layout: _Layout
    at: dict[str, int]
    stream: Stream = field(default_factory=Stream)

    def fused(self) -> None:
        """Emit the block with everything fused that GEMM can fuse."""
        shape, params, x = self.shape, self.params, self.at["x"]
        self._load("x")
        self._norm("norm1", "x")
        qkv = pad_outputs(params.qkv, shape.head_dim)
        instr = self._linear("qkv", "norm1", self.at["qkv"], qkv)
        for i, name in enumerate("qkv"):
            self._heads(name, instr, self.at["qkv"] + i * shape.wide, 3 * shape.wide)
        self._attention(self.at["qkv"], shape.wide, 3 * shape.wide)
        proj = pad_inputs(params.proj, shape.head_dim)
        self._matrix("resid1", self._linear("proj", "ctx", x, proj, out="i16", add=x), x, "int16")
        self._norm("norm2", "x")
        up_ = self._linear("up", "norm2", self.at["act"], params.up, gelu=True)
        self._matrix("act", up_, self.at["act"], "int8", shape.ffn)
        down = self._linear("down", "act", x, params.down, out="i16", add=x)
        self._matrix("resid2", down, x, "int16")
        self._store("x")

    def unfused(self) -> None:
        """Emit the block with one instruction per operation."""
        shape, params, at = self.shape, self.params, self.at
        self._load("x")
        self._norm("norm1", "x")
        for i, name in enumerate("qkv"):
            part = columns(params.qkv, i * shape.hidden, (i + 1) * shape.hidden)
            instr = self._linear(name, "norm1", at[name], pad_outputs(part, shape.head_dim))
            self._heads(name, instr, at[name], shape.wide)
        self._attention(None, 0, shape.wide)
        proj = pad_inputs(params.proj, shape.head_dim)
        instr = self._linear("proj", "ctx", at["proj"], proj, out="i16")
        self._matrix("proj", instr, at["proj"], "int16")
        self._add("resid1", "x", "proj")
        self._norm("norm2", "resid1")
        instr = self._linear("up", "norm2", at["up"], params.up)
        self._matrix("up", instr, at["up"], "int8", shape.ffn)
        self._gelu()
        instr = self._linear("down", "act", at["down"], params.down, out="i16")
        self._matrix("down", instr, at["down"], "int16")
        self._add("resid2", "resid1", "down")
        self._store("resid2")

    def _share(self, name: str, opcode: Opcode, data: bytes) -> Share:
        return self.stream.append(f"h.{self.layer}.{name}", opcode, data)

    def _load(self, name: str) -> None:
        size = 2 * self.shape.hidden
        self.builder.emit("DMA_LOAD", dst=self.at[name], M=self.shape.rows, N=size, b=0)

    def _store(self, name: str) -> None:
        size = 2 * self.shape.hidden
        self.builder.emit("DMA_STORE", dst=self.at[name], M=self.shape.rows, N=size, b=1)

    def _norm(self, name: str, source: str) -> None:
        norm = self.params.norm1 if name == "norm1" else self.params.norm2
        instr = self.builder.emit(
            "LAYERNORM",
            "stream",
            dst=self.at[name],
            src0=self.at[source],
            M=self.shape.rows,
            N=self.shape.hidden,
            share=self._share(name, Opcode.LAYERNORM, norm_share(norm)),
        )
        self._matrix(name, instr, self.at[name], "int8")

    def _linear(
        self,
        name: str,
        source: str,
        dst: int,
        layer: Linear,
        *,
        out: str = "i8",
        add: int | None = None,
        gelu: bool = False,
    ) -> int:
        """Emit a linear layer with streamed weights and wait for it; return its word index."""
        table = self.params.table if gelu else None
        return self.builder.emit(
            "GEMM",
            "bias",
            *(["table"] if gelu else []),
            dst=dst,
            src0=self.at[source],
            src1=add,
            M=self.shape.rows,
            N=layer.outputs,
            K=layer.inputs,
            B="stream",
            q="ch",
            out=out,
            op=None if add is None else "add",
            share=self._share(
                name, Opcode.GEMM, gemm_share(layer, self.builder.limits.edge, table)
            ),
        )

    def _attention(self, qkv: int | None, step: int, pitch: int) -> None:
        """Emit attention; q, k and v lie `step` apart from `qkv`, or in buffers of their own."""
        slots = range(self.layout.slots)
        scores = tuple(self.at[f"scores{i}"] for i in slots)
        numer = scores
        if not self.layout.in_place:
            numer = tuple(self.at[f"numer{i}"] for i in slots)
        q, k, v = (self.at[name] if qkv is None else qkv + i * step for i, name in enumerate("qkv"))
        shape, keys = self.shape, Keys(self.shape.rows, 0, dynamic=False)
        lane = up(shape.head_dim)
        units = tuple(
            Unit(head, (head,), q + head * lane, self.at["ctx"] + head * lane)
            for head in range(shape.heads)
        )
        plan = AttentionPlan(
            layer=self.layer,
            units=units,
            rows=shape.rows,
            rows_per_head=shape.rows,
            head_dim=shape.head_dim,
            q_pitch=pitch,
            ctx_pitch=shape.wide,
            keys=keys,
            pieces=keys.pieces(shape.rows),
            pitch=score_pitch(shape.rows),
            scores=scores,
            numer=numer,
            sums=tuple(self.at[f"sums{i}"] for i in slots),
            planes=0,
            score_mult=self.params.score_mult,
            score_shift=self.params.score_shift,
        )
        steps = schedule(shape.heads, len(scores), joint=plan.joint)
        source = RowMajor(uses(steps, 1), k, v, pitch, lane)
        emit_attention(self.builder, plan, source)

    def _gelu(self) -> None:
        instr = self.builder.emit(
            "GELU",
            "stream",
            dst=self.at["act"],
            src0=self.at["up"],
            M=self.shape.rows,
            N=self.shape.ffn,
            share=self._share("gelu", Opcode.GELU, table_share(self.params.table)),
        )
        self._matrix("act", instr, self.at["act"], "int8", self.shape.ffn)

    def _add(self, name: str, a: str, b: str) -> None:
        instr = self.builder.emit(
            "VEC",
            op="add",
            dst=self.at[name],
            src0=self.at[a],
            src1=self.at[b],
            M=self.shape.rows,
            N=self.shape.hidden,
            A="i16",
            out="i16",
        )
        self._matrix(name, instr, self.at[name], "int16")

    def _matrix(
        self, name: str, instr: int, address: int, dtype: str, width: int | None = None
    ) -> None:
        """Note a tensor of natural pitch that one instruction writes."""
        width = self.shape.hidden if width is None else width
        pitch = up(width * (2 if dtype == "int16" else 1))
        self.builder.tensor(
            TensorRef(name, self.layer, instr, address, (self.shape.rows, width), dtype, pitch)
        )

    def _heads(self, name: str, instr: int, address: int, pitch: int) -> None:
        """Note q, k or v: one piece, or one per head where heads are padded."""
        dim, heads = self.shape.head_dim, self.shape.heads
        pieces = [(0, dim * heads)] if dim == up(dim) else [(h, dim) for h in range(heads)]
        for head, width in pieces:
            self.builder.tensor(
                TensorRef(
                    name,
                    self.layer,
                    instr,
                    address + head * up(dim),
                    (self.shape.rows, width),
                    "int8",
                    pitch,
                    column=head * dim,
                )
            )
