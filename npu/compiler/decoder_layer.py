# SPDX-License-Identifier: Apache-2.0
"""The fused layer of a decoder: everything but K and V, in the order of the data flow."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from npu.compiler.emit import (
    Scale,
    SramMatrix,
    emit_elementwise,
    emit_linear,
    emit_norm,
    emit_rope,
    note,
    note_heads,
)
from npu.compiler.emit.row_operations import NormName
from npu.compiler.emit.sram_matrix import Element
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.shape import Numbers, Shape, ctx_pitch, lane, qkv_pitch
from npu.image import StreamShare


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

    def note(self, name: str, instr: int, matrix: SramMatrix) -> None:
        """Note a tensor that one instruction writes."""
        note(self.builder, name, self.layer, instr, matrix, row=self.first_row)

    def note_heads(self, names: tuple[str, ...], instr: int) -> None:
        """Note q, k and v in their common buffer."""
        shape, address = self.shape, self.at["qkv"]
        for name in names:
            heads = shape.heads if name.startswith("q") else shape.kv_heads
            note_heads(
                self.builder,
                name,
                self.layer,
                instr,
                address,
                rows=self.x.rows,
                heads=heads,
                head_dim=shape.head_dim,
                pitch=qkv_pitch(shape),
                row=self.first_row,
            )
            address += heads * lane(shape)

    def norm(self, name: str) -> None:
        """Emit "norm1" or "norm2" of the residual stream."""
        dst = self.buffer(name, self.shape.hidden)
        instr = emit_norm(self.builder, norm_name(self.shape), self.x, dst, self.share(name))
        self.note(name, instr, dst)

    def qkv(self) -> None:
        """Emit q, k and v of all heads side by side."""
        src = self.buffer("norm1", self.shape.hidden)
        dst = self.buffer("qkv", qkv_pitch(self.shape))
        instr = emit_linear(self.builder, src, dst, self.share("qkv"))
        self.note_heads(("q", "k", "v"), instr)

    def rotate(self) -> None:
        """Emit the rotation of q and k, in place."""
        shape = self.shape
        instr = emit_rope(
            self.builder,
            self.at["qkv"],
            self.at["rope"],
            rows=self.x.rows,
            head_dim=shape.head_dim,
            heads=shape.heads + shape.kv_heads,
            pitch=qkv_pitch(shape),
        )
        self.note_heads(("q_rope", "k_rope"), instr)

    def project(self) -> None:
        """Emit what attention adds to the residual stream."""
        src = self.buffer("ctx", ctx_pitch(self.shape))
        instr = emit_linear(self.builder, src, self.x, self.share("proj"), op="add")
        self.note("resid1", instr, self.x)

    def feed_forward(self) -> None:
        """Emit the second norm and what the feed-forward part adds to the residual stream."""
        self.norm("norm2")
        src = self.buffer("norm2", self.shape.hidden)
        act = replace(self.buffer("act", self.shape.ffn), element=self.inner)
        if self.shape.gated:
            instr = self._gated(src, act)
        else:
            instr = emit_linear(self.builder, src, act, self.share("up"), table=True)
        self.note("act", instr, act)
        instr = emit_linear(self.builder, act, self.x, self.share("down"), op="add")
        self.note("resid2", instr, self.x)

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

    def _wide(self, src: SramMatrix, act: SramMatrix) -> int:
        """Emit the product of activation and `up` in int16."""
        silu = self.buffer("silu", self.shape.ffn)
        wide = replace(act, address=self.at["up"])
        gate = emit_linear(self.builder, src, silu, self.share("gate"), table=True)
        self.note("silu", gate, silu)
        self.note("up", emit_linear(self.builder, src, wide, self.share("up")), wide)
        emit_elementwise(self.builder, "scale_shift", silu, act, scale=1, sh=0)
        shift = self.numbers.product_shift
        return emit_elementwise(self.builder, "mul", act, act, wide, sh=shift)
