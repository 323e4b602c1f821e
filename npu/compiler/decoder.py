# SPDX-License-Identifier: Apache-2.0
"""A decoder: what a pass of some rows through embedding, layers and head emits."""

from dataclasses import dataclass

from npu.compiler.attention import (
    AttentionPlan,
    Keys,
    Unit,
    emit_attention,
    schedule,
    score_pitch,
    uses,
)
from npu.compiler.builder import ProgramBuilder
from npu.compiler.layout import Layout, Pass
from npu.compiler.shape import Shape
from npu.compiler.staging import Form, Rows, Staging
from npu.compiler.stream import Share
from npu.compiler.tensors import TensorRef
from npu.isa.operands import DYNAMIC, up

INPUT, OUTPUT, TOKENS, POSITIONS, ROPE, LOGITS = range(6)
"""Base registers: token ids in, token ids out, token, position and RoPE tables, logits out."""


@dataclass(frozen=True)
class Decoder:
    """Emits passes of one kind into a program.

    Attributes:
        builder: the program.
        shape: the decoder.
        shares: of its image, by name.
        work: what a pass is.
        layout: where it keeps things.
        keys: what its rows look at.
        first_row: number of its first row in its tensors.

    """

    builder: ProgramBuilder
    shape: Shape
    shares: dict[str, Share]
    work: Pass
    layout: Layout
    keys: Keys
    first_row: int = 0

    @property
    def x(self) -> int:
        """Address of the residual stream."""
        return self.layout.at["x"] + self.work.skip * self.shape.residual_pitch

    def embed(self) -> None:
        """Fetch the rows of the tokens, add those of the positions, fetch those of RoPE."""
        shape, work, at = self.shape, self.work, self.layout.at
        builder, row = self.builder, 2 * self.shape.hidden
        if work.listed:
            size, offset = 4 * (work.skip + work.rows), 4 * (self.first_row - work.skip)
            builder.emit("DMA_LOAD", dst=at["ids"], M=1, N=size, b=INPUT, off=offset)
        if shape.positions:
            builder.emit("EMBED", dst=at["positions"], M=work.rows, N=row, b=POSITIONS, idx="pos")
        if shape.rope:
            size = 2 * shape.head_dim
            builder.emit("EMBED", dst=at["rope"], M=work.rows, N=size, b=ROPE, idx="pos")
        builder.emit(
            "EMBED",
            dst=at["x"],
            src0=at["ids"] if work.listed else None,
            M=work.skip + work.rows,
            N=row,
            b=TOKENS,
            idx="list" if work.listed else "token",
        )
        if shape.positions:
            builder.emit(
                "VEC",
                op="add",
                dst=self.x,
                src0=self.x,
                src1=at["positions"],
                M=work.rows,
                N=shape.hidden,
                A="i16",
                out="i16",
            )

    def layers(self) -> None:
        """Emit all layers."""
        sources: list[Staging] = []
        for layer in range(self.shape.layers):
            sources.append(self.staging(layer, sources[-1] if sources else None))
        for layer, source in enumerate(sources):
            self.builder.comment(f"layer {layer}")
            self.layer(layer, source)

    def layer(self, layer: int, staging: Staging) -> None:
        """Emit one layer; its source of K and V is given."""
        shape, at, x = self.shape, self.layout.at, self.x
        staging.ahead()
        self.norm(layer, "norm1")
        columns = shape.qkv_pitch
        qkv = self.linear(layer, "qkv", "norm1", at["qkv"], columns, shape.hidden)
        self.heads(layer, ("q", "k", "v"), qkv)
        if shape.rope:
            staging.append_values()
            self.rotate(layer)
            staging.append_keys()
        else:
            staging.append_keys()
            staging.append_values()
        staging.fill()
        emit_attention(self.builder, self.attention(layer), staging)
        proj = self.linear(
            layer, "proj", "ctx", x, shape.hidden, shape.ctx_pitch, out="i16", op="add"
        )
        self.matrix(layer, "resid1", proj, x, shape.hidden, "int16")
        self.norm(layer, "norm2")
        self.feed_forward(layer)
        down = self.linear(layer, "down", "act", x, shape.hidden, shape.ffn, out="i16", op="add")
        self.matrix(layer, "resid2", down, x, shape.hidden, "int16")

    def feed_forward(self, layer: int) -> None:
        """Emit what is between the second norm and `down`."""
        shape, act = self.shape, self.layout.at["act"]
        numbers = shape.numbers[layer]
        size = (shape.ffn, shape.hidden)
        if not shape.gated:
            up_ = self.linear(layer, "up", "norm2", act, *size, table=True)
        else:
            gate = self.linear(layer, "gate", "norm2", act, *size, table=True)
            self.matrix(layer, "silu", gate, act, shape.ffn, "int8")
            product = (numbers.product_mult, numbers.product_shift)
            up_ = self.linear(layer, "up", "norm2", act, *size, op="mul", product=product)
        self.matrix(layer, "act", up_, act, shape.ffn, "int8")

    def norm(self, layer: int, name: str) -> None:
        """Emit a norm of the residual stream."""
        address = self.layout.at[name]
        instr = self.builder.emit(
            "RMSNORM" if self.shape.rms else "LAYERNORM",
            "stream",
            dst=address,
            src0=self.x,
            M=self.work.rows,
            N=self.shape.hidden,
            share=self.shares[f"h.{layer}.{name}"],
        )
        self.matrix(layer, name, instr, address, self.shape.hidden, "int8")

    def linear(
        self,
        layer: int,
        name: str,
        source: str,
        dst: int,
        columns: int,
        inner: int,
        *,
        out: str = "i8",
        op: str | None = None,
        table: bool = False,
        product: tuple[int, int] | None = None,
    ) -> int:
        """Emit a linear layer with streamed weights; D is what stands at `dst`."""
        return self.builder.emit(
            "GEMM",
            "bias",
            *(["table"] if table else []),
            dst=dst,
            src0=self.layout.at[source],
            src1=dst if op else None,
            M=self.work.rows,
            N=columns,
            K=inner,
            B="stream",
            q="ch",
            out=out,
            op=op,
            mul=product[0] if product else None,
            sh=product[1] if product else None,
            share=self.shares[f"h.{layer}.{name}"],
        )

    def rotate(self, layer: int) -> None:
        """Emit ROPE of q and k, in place."""
        shape, at = self.shape, self.layout.at
        heads = shape.heads + shape.kv_heads
        pitch = shape.qkv_pitch if self.work.rows > 1 else None
        instr = self.builder.emit(
            "ROPE",
            dst=at["qkv"],
            src0=at["qkv"],
            src1=at["rope"],
            M=self.work.rows,
            N=shape.head_dim,
            K=heads,
            ap=pitch,
            cp=pitch,
        )
        self.heads(layer, ("q_rope", "k_rope"), instr)

    def staging(self, layer: int, before: Staging | None) -> Staging:
        """Return the source of K and V of a layer; `before` is that of the layer before."""
        in_turn = self.layout.choice.form == Form.RING and self.layout.lasting
        shape, choice, qkv = self.shape, self.layout.choice, self.layout.at["qkv"]
        joint = self.attention(layer).joint
        steps = schedule(self.work.units, choice.scores, joint=joint)
        k = qkv + shape.heads * shape.lane
        return Staging(
            self.builder,
            self.layout.staging,
            layer,
            shape.kv_heads,
            shape.head_dim,
            self.units(),
            uses(steps, len(self.pieces())),
            self.keys,
            self.pieces(),
            Rows(k, k + shape.kv_heads * shape.lane, shape.qkv_pitch, self.work.rows),
            before if in_turn else None,
        )

    def pieces(self) -> tuple[tuple[int, int], ...]:
        """Return the pieces in which K and V of a head are used."""
        whole = self.layout.choice.form != Form.PIECES
        return self.keys.pieces(self.keys.count if whole else self.layout.choice.piece)

    def units(self) -> tuple[Unit, ...]:
        """Return the units of attention: query heads one by one, or some of a K/V head stacked."""
        shape, at = self.shape, self.layout.at
        stacked = self.work.stack
        return tuple(
            Unit(
                first // shape.group,
                tuple(range(first, first + stacked)),
                at["qkv"] + first * shape.lane,
                at["ctx"] + first * shape.lane,
            )
            for first in range(0, shape.heads, stacked)
        )

    def attention(self, layer: int) -> AttentionPlan:
        """Return the plan of a layer's attention."""
        shape, work, layout = self.shape, self.work, self.layout
        numbers, stacked = shape.numbers[layer], work.rows == 1
        return AttentionPlan(
            layer=layer,
            units=self.units(),
            rows=work.unit_rows,
            rows_per_head=work.rows,
            head_dim=shape.head_dim,
            q_pitch=shape.lane if stacked else shape.qkv_pitch,
            ctx_pitch=shape.lane if stacked else shape.ctx_pitch,
            keys=self.keys,
            pieces=self.pieces(),
            pitch=score_pitch(self.keys.count),
            scores=layout.scores,
            numer=layout.scores,
            sums=layout.sums,
            planes=layout.at.get("planes", 0),
            score_mult=numbers.score_mult,
            score_shift=numbers.score_shift,
            first_row=self.first_row,
        )

    def head(self) -> None:
        """Emit final norm and head of the last row, and make its best column the next token."""
        shape, at = self.shape, self.layout.at
        last = self.x + (self.work.rows - 1) * shape.residual_pitch
        self.builder.emit(
            "RMSNORM" if shape.rms else "LAYERNORM",
            "stream",
            dst=at["final"],
            src0=last,
            M=1,
            N=shape.hidden,
            share=self.shares["norm"],
        )
        edge = self.builder.limits.edge
        most = self.layout.logits_columns if self.work.logits else (DYNAMIC - 1) // edge * edge
        tile_bytes = 8 * edge + up(shape.hidden, edge) * edge
        for index, first in enumerate(range(0, shape.vocab, most)):
            count = min(most, shape.vocab - first)
            name = "head" if count == shape.vocab else f"head[{first}:{first + count}]"
            size = up(count, edge) // edge * tile_bytes
            share = self.shares["head"].part(name, first // edge * tile_bytes, size)
            self.columns(first, count, index % 2, share)
        self.builder.argmax(OUTPUT)

    def columns(self, first: int, count: int, slot: int, share: Share) -> None:
        """Emit some columns of the head; with logits they go to memory."""
        logits = self.work.logits
        address = self.layout.at[f"logits{slot}"] if logits else None
        instr = self.builder.emit(
            "GEMM",
            "bias",
            "argmax",
            dst=address,
            src0=self.layout.at["final"],
            M=1,
            N=count,
            K=self.shape.hidden,
            B="stream",
            q="ch",
            out="i16" if logits else "none",
            share=share,
        )
        if address is None:
            return
        self.builder.tensor(
            TensorRef(
                "logits",
                self.shape.layers,
                instr,
                address,
                (1, count),
                "int16",
                up(2 * count),
                column=first,
            )
        )
        self.builder.emit("DMA_STORE", dst=address, M=1, N=2 * count, b=LOGITS, off=2 * first)

    def matrix(
        self, layer: int, name: str, instr: int, address: int, width: int, dtype: str
    ) -> None:
        """Note a tensor of natural pitch that one instruction writes."""
        pitch = up(width * (2 if dtype == "int16" else 1))
        shape = (self.work.rows, width)
        self.builder.tensor(
            TensorRef(name, layer, instr, address, shape, dtype, pitch, row=self.first_row)
        )

    def heads(self, layer: int, names: tuple[str, ...], instr: int) -> None:
        """Note q, k and v in their common buffer: one piece each, or one per head if padded."""
        shape, address = self.shape, self.layout.at["qkv"]
        for name in names:
            count = shape.heads if name.startswith("q") else shape.kv_heads
            whole = shape.head_dim == shape.lane
            width = shape.head_dim * count if whole else shape.head_dim
            for head in range(1 if whole else count):
                self.builder.tensor(
                    TensorRef(
                        name,
                        layer,
                        instr,
                        address + head * shape.lane,
                        (self.work.rows, width),
                        "int8",
                        shape.qkv_pitch,
                        row=self.first_row,
                        column=head * shape.head_dim,
                    )
                )
            address += count * shape.lane
