# SPDX-License-Identifier: Apache-2.0
"""The fused layer of a decoder: everything but K and V, in the order of the data flow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from npu.compiler.emit import (
    Scale,
    SramMatrix,
    emit_add,
    emit_elementwise,
    emit_linear,
    emit_norm,
    emit_rope,
    note,
    note_heads,
)
from npu.compiler.emit.row_operations import NormName
from npu.compiler.emit.sram_matrix import Element
from npu.compiler.pass_layout import PassHeads, ratio_piece, rope_buffer
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.shape import Numbers, Shape, ctx_pitch, lane, qkv_pitch
from npu.image import StreamShare
from spec.isa.operands import TABLE_BYTES
from weights.limits import INT16_MAX
from weights.model import RATIO_BITS


def norm_name(shape: Shape) -> NormName:
    """Return the instruction of a decoder's norms."""
    return "RMSNORM" if shape.norm == "rmsnorm" else "LAYERNORM"


@dataclass(frozen=True, slots=True)
class Parameters:
    """What programs need to know of a model's weights.

    Attributes:
        numbers: those of each layer that stand in instructions.
        shares: of the image, by name.

    """

    numbers: Sequence[Numbers]
    shares: Mapping[str, StreamShare]

    @classmethod
    def of(cls, numbers: Sequence[Numbers], shares: Iterable[StreamShare]) -> "Parameters":
        """Return the parameters of an image."""
        return cls(numbers, {share.name: share for share in shares})


@dataclass(frozen=True, slots=True)
class DecoderLayer:
    """A layer on some rows of the residual stream; its methods emit its operations.

    Attributes:
        builder: of the program.
        shape: the decoder.
        parameters: of the model.
        layer: number of the layer.
        at: addresses of its buffers, by name.
        x: the residual stream, (rows, hidden) int16.
        first_row: number of the first row in the tensors.

    """

    builder: ProgramBuilder
    shape: Shape
    parameters: Parameters
    layer: int
    at: Mapping[str, int]
    x: SramMatrix
    first_row: int = 0

    @property
    def numbers(self) -> Numbers:
        """The numbers that stand in its instructions."""
        return self.parameters.numbers[self.layer]

    @property
    def scale(self) -> Scale:
        """The requantisation of the scores."""
        return Scale(self.numbers.score_mult, self.numbers.score_shift)

    def buffer(self, name: str, columns: int) -> SramMatrix:
        """Return an int8 matrix of a row for each of x."""
        return SramMatrix(self.at[name], self.x.rows, columns)

    def share(self, name: str) -> StreamShare:
        """Return a share of the layer."""
        return self.parameters.shares[f"h.{self.layer}.{name}"]

    def note(
        self, name: str, instr: int, matrix: SramMatrix, row: int = 0, column: int = 0
    ) -> None:
        """Note what one instruction writes of a tensor, from a row of the pass and a column on."""
        at = self.first_row + row
        note(self.builder, name, self.layer, instr, matrix, row=at, column=column)

    @property
    def rows(self) -> PassHeads:
        """Where q, k and v lie in int8."""
        return PassHeads.of(self.shape, self.at["qkv"], self.x.rows)

    def heads(self, part: str) -> int:
        """Return the heads of q, k or v."""
        return self.shape.heads if part == "q" else self.shape.kv_heads

    def placed(self, part: str) -> tuple[int, int]:
        """Return address and row pitch of "q", "k" or "v" in int8."""
        rows = self.rows
        return {
            "q": (rows.q, rows.q_pitch),
            "k": (rows.k, rows.kv_pitch),
            "v": (rows.v, rows.kv_pitch),
        }[part]

    def note_heads(self, instr: int, *names: str) -> None:
        """Note q, k or v, or what has been made of them, in int8."""
        for name in names:
            self._note_heads(instr, name, *self.placed(name[0]))

    def _note_heads(
        self, instr: int, name: str, address: int, pitch: int, element: Element = "int8"
    ) -> None:
        note_heads(
            self.builder,
            name,
            self.layer,
            instr,
            address,
            rows=self.x.rows,
            heads=self.heads(name[0]),
            head_dim=self.shape.head_dim,
            pitch=pitch,
            row=self.first_row,
            element=element,
        )

    def coarsen(self) -> None:
        """Emit the change of the stream's unit, where there is one."""
        shift = self.numbers.stream_shift
        if shift:
            instr = emit_elementwise(self.builder, "scale_shift", self.x, self.x, scale=1, sh=shift)
            self.note("stream", instr, self.x)

    def norm(self, name: Literal["norm1", "norm2"]) -> None:
        """Emit what attention or feed-forward reads: the stream normalised, or in another unit."""
        dst = self.buffer(name, self.shape.hidden)
        if self.shape.pre_norms:
            instr = emit_norm(self.builder, norm_name(self.shape), self.x, dst, self.share(name))
        else:
            mult, shift = self.numbers.rescale(name)
            instr = emit_elementwise(self.builder, "scale_shift", self.x, dst, scale=mult, sh=shift)
        self.note(name, instr, dst)

    def qkv(self) -> None:
        """Emit q, k and v of all heads; where heads are normalised, q and k in int16."""
        src = self.buffer("norm1", self.shape.hidden)
        if not self.shape.head_norms:
            dst = self.buffer("qkv", qkv_pitch(self.shape))
            instr = emit_linear(self.builder, src, dst, self.share("qkv"))
            self.note_heads(instr, "q", "k", "v")
            return
        for part in "qk":
            wide = self._unnormalised(part)
            instr = emit_linear(self.builder, src, wide, self.share(part))
            self._note_heads(instr, part, wide.address, wide.pitch, wide.element)
        address, pitch = self.placed("v")
        columns = self.shape.kv_heads * lane(self.shape)
        dst = SramMatrix(address, self.x.rows, columns, spacing=pitch)
        self.note_heads(emit_linear(self.builder, src, dst, self.share("v")), "v")

    def _unnormalised(self, part: str) -> SramMatrix:
        """Return q or k in int16, the heads of all rows one behind the other."""
        columns = self.heads(part) * lane(self.shape)
        return SramMatrix(self.at[f"{part}16"], self.x.rows, columns, "int16")

    def head_norms(self) -> None:
        """Emit the norms of q and k: a row is a head, or all heads of a position."""
        shape = self.shape
        if not shape.head_norms:
            return
        for part in "qk":
            wide, (address, pitch) = self._unnormalised(part), self.placed(part)
            dst = SramMatrix(address, wide.rows, wide.columns, spacing=pitch)
            if shape.head_norms == "head":
                size = wide.rows * self.heads(part), shape.head_dim
                wide = SramMatrix(wide.address, *size, "int16", 2 * lane(shape))
                dst = SramMatrix(address, *size, spacing=lane(shape))
            name = f"{part}_norm"
            instr = emit_norm(self.builder, norm_name(shape), wide, dst, self.share(name))
            self.note_heads(instr, name)

    def rotate(self) -> None:
        """Emit the rotation of q and k, in place."""
        rows, shape = self.rows, self.shape
        if rows.joined:
            heads = shape.heads + shape.kv_heads
            self.note_heads(self._rotate(rows.q, heads, rows.q_pitch), "q_rope", "k_rope")
            return
        for part in "qk":
            address, pitch = self.placed(part)
            instr = self._rotate(address, self.heads(part), pitch)
            self.note_heads(instr, f"{part}_rope")

    def _rotate(self, address: int, heads: int, pitch: int) -> int:
        return emit_rope(
            self.builder,
            address,
            self.at[rope_buffer(self.shape.table_of(self.layer))],
            rows=self.x.rows,
            head_dim=self.shape.head_dim,
            heads=heads,
            pitch=pitch,
        )

    def project(self) -> None:
        """Emit what attention adds to the residual stream."""
        src = self.buffer("ctx", ctx_pitch(self.shape))
        self._add(src, "proj", "o_norm", "resid1")

    def _add(self, src: SramMatrix, name: str, norm: str, result: str) -> None:
        """Emit the linear layer of a part, its norm if it has one, and the sum with the stream."""
        if not self.shape.part_norms:
            instr = emit_linear(self.builder, src, self.x, self.share(name), op="add")
            self.note(result, instr, self.x)
            return
        part, addend = (replace(self.x, address=self.at[each]) for each in (name, norm))
        self.note(name, emit_linear(self.builder, src, part, self.share(name)), part)
        kind = norm_name(self.shape)
        self.note(norm, emit_norm(self.builder, kind, part, addend, self.share(norm)), addend)
        self.note(result, emit_add(self.builder, self.x, addend, self.x), self.x)

    def feed_forward(self) -> None:
        """Emit what the feed-forward part adds to the residual stream; "norm2" is there."""
        src = self.buffer("norm2", self.shape.hidden)
        act = replace(self.buffer("act", self.shape.ffn), element=self.inner)
        if self.shape.gated:
            instr = self._gated(src, act)
        else:
            instr = emit_linear(self.builder, src, act, self.share("up"), table=True)
        self.note("act", instr, act)
        self._add(act, "down", "down_norm", "resid2")

    @property
    def inner(self) -> Element:
        """The type of the input of `down`."""
        return "int16" if self.shape.wide else "int8"

    def _gated(self, src: SramMatrix, act: SramMatrix) -> int:
        if self.shape.wide:
            return self._wide(src, act)
        gate = emit_linear(self.builder, src, act, self.share("gate"), table=True)
        self.note("silu", gate, act)
        product = self.numbers.product_mult, self.numbers.product_shift
        return emit_linear(self.builder, src, act, self.share("up"), op="mul", product=product)

    def ratios(self) -> None:
        """Emit the table of a wide shape into SRAM: a norm without gains writes its biases.

        It is streamed beside attention, where no other share is waited for. VEC would take it from
        the stream only behind the weights of `up`, or hold these up until the gate is there.
        """
        if not self.shape.wide:
            return
        anything = SramMatrix(self.at["ratios"], 1, TABLE_BYTES, "int16")
        name = norm_name(self.shape)
        emit_norm(self.builder, name, anything, self._ratios, self.share("ratio"))

    @property
    def _ratios(self) -> SramMatrix:
        """The table of a wide shape, behind what the norm that writes it reads."""
        return SramMatrix(self.at["ratios"] + 2 * TABLE_BYTES, 1, TABLE_BYTES)

    def _wide(self, src: SramMatrix, act: SramMatrix) -> int:
        """Emit the product of activation and `up` in int16, the activation while `up` is made."""
        wide = replace(act, address=self.at["up"])
        self.note("gate", emit_linear(self.builder, src, act, self.share("gate")), act)
        self.note("up", emit_linear(self.builder, src, wide, self.share("up")), wide)
        rows, columns = ratio_piece(self.shape, act.rows)
        for row in range(0, act.rows, rows):
            for column in range(0, act.columns, columns):
                self._activate(act.part(row, rows).columns_from(column, columns), row, column)
        numbers = self.numbers
        shift, limit = numbers.product_shift, numbers.act_limit
        instr = emit_elementwise(self.builder, "mul", act, act, wide, sh=shift)
        if limit < INT16_MAX:
            instr = emit_elementwise(self.builder, "clamp", act, act, lo=-limit - 1, hi=limit)
        return instr

    def _activate(self, gate: SramMatrix, row: int, column: int) -> None:
        """Emit the activation of a piece of the gate, in place; row and column are its place."""
        builder, numbers = self.builder, self.numbers
        near = SramMatrix(self.at["near"], gate.rows, gate.columns)
        ratio = SramMatrix(self.at["ratio"], gate.rows, gate.columns, "int16")
        scale, shift = numbers.near_mult, numbers.near_shift
        instr = emit_elementwise(builder, "scale_shift", gate, near, scale=scale, sh=shift)
        self.note("near", instr, near, row, column)
        instr = emit_elementwise(builder, "table", near, near, self._ratios)
        self.note("ratio", instr, near, row, column)
        emit_elementwise(builder, "scale_shift", near, ratio, scale=1, sh=0)
        instr = emit_elementwise(builder, "mul", gate, gate, ratio, sh=RATIO_BITS)
        self.note("silu", instr, gate, row, column)
