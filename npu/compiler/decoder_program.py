# SPDX-License-Identifier: Apache-2.0
"""The programs of a decoder, emitted from its plan: a decode step, and a prompt chunk by chunk.

A step is for every position: the token TOKEN at position POS, again while a LOOP turns. Of a prompt
a chunk of rows goes through all layers before the next one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from npu.compiler.decoder_layer import DecoderLayer, Parameters, norm_name
from npu.compiler.emit import (
    CacheHeads,
    MemoryRows,
    SramMatrix,
    emit_add,
    emit_attention,
    emit_best_columns,
    emit_embed,
    emit_kv_append,
    emit_linear,
    emit_load,
    emit_norm,
    emit_store,
    emit_store_rows,
    note,
)
from npu.compiler.kv_staging import AppendedRows, Form, Staging
from npu.compiler.pass_layout import PassHeads, rope_buffer
from npu.compiler.pass_plan import PassPlan
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.sequence_registers import SequenceRegisters
from npu.compiler.shape import Shape, lane, qkv_pitch, residual_pitch
from npu.image import StreamShare
from spec.isa.generated import Engine
from spec.isa.operands import DYNAMIC, up

INPUT, OUTPUT, TOKENS, POSITIONS, ROPE, LOGITS, SINK = range(7)
"""Base registers: token ids in, token ids out, token, position and RoPE tables, logits out, and
keys and values of position 0."""


def emit_step(
    builder: ProgramBuilder, shape: Shape, parameters: Parameters, plan: PassPlan
) -> None:
    """Emit a decode step; it can be the target of a LOOP."""
    step = _DecoderPass(builder, shape, parameters, plan, SequenceRegisters(builder))
    step.embed()
    step.layers()
    step.head()


def emit_batch(
    builder: ProgramBuilder,
    shape: Shape,
    parameters: Parameters,
    plan: PassPlan,
    registers: SequenceRegisters,
) -> None:
    """Emit a decode step of the sequences of a batch, to the logits of each.

    At BASE0 is a list of their tokens, and for each table of positions a list of rows of it.
    """
    step = _DecoderPass(builder, shape, parameters, plan, registers)
    step.embed_batch()
    step.layers()
    step.heads()


def emit_verification(
    builder: ProgramBuilder, shape: Shape, parameters: Parameters, plan: PassPlan
) -> None:
    """Emit a pass whose rows all leave their logits."""
    builder.set("POS", plan.pos or 0)
    step = _DecoderPass(builder, shape, parameters, plan, SequenceRegisters(builder))
    step.embed()
    step.layers()
    step.heads()


def emit_prompt(
    builder: ProgramBuilder, shape: Shape, parameters: Parameters, chunks: Sequence[PassPlan]
) -> None:
    """Emit the chunks of a prompt, and the head of its last row."""
    for plan in chunks:
        first = plan.first_row
        if first:
            builder.fence(Engine.ST)
            builder.rewind()
        builder.comment(f"rows {first} to {first + plan.work.rows - 1}")
        builder.set("POS", plan.pos or 0)
        chunk = _DecoderPass(builder, shape, parameters, plan, SequenceRegisters(builder))
        chunk.embed()
        chunk.layers()
    chunk.head()


def emit_sink(builder: ProgramBuilder, shape: Shape, plan: PassPlan) -> None:
    """Emit the append of position 0 in all layers; `plan` is of the first rows behind it."""
    builder.comment("position 0")
    builder.set("POS", 0)
    size = shape.kv_heads * lane(shape)
    room = qkv_pitch(shape) // (2 * size)
    for layer in range(shape.layers):
        keys = plan.layout.at["qkv"] + layer % room * 2 * size
        emit_load(builder, keys, SINK, rows=1, size=2 * size, offset=layer * 2 * size)
        for values in (False, True):
            heads = CacheHeads(values, layer, 0, shape.kv_heads, shape.head_dim)
            emit_kv_append(builder, heads, keys + values * size, 1, size, None, 0)
    builder.fence(Engine.ST)


@dataclass(frozen=True, slots=True)
class _DecoderPass:
    """Emits one pass.

    Attributes:
        builder: the program.
        shape: the decoder.
        parameters: of the model.
        plan: what the pass is.
        registers: of its sequences.

    """

    builder: ProgramBuilder
    shape: Shape
    parameters: Parameters
    plan: PassPlan
    registers: SequenceRegisters

    @property
    def at(self) -> Mapping[str, int]:
        """Addresses by name."""
        return self.plan.layout.at

    @property
    def x(self) -> SramMatrix:
        """The residual stream."""
        address = self.at["x"] + self.plan.work.skip * residual_pitch(self.shape)
        return SramMatrix(address, self.plan.work.rows, self.shape.hidden, "int16")

    def embed(self) -> None:
        """Fetch the rows of the tokens, add those of the positions, fetch those of RoPE."""
        shape, work, at, x = self.shape, self.plan.work, self.at, self.x
        row, fetched = 2 * shape.hidden, work.skip + work.rows
        if work.lists:
            offset = 4 * (self.plan.first_row - work.skip)
            emit_load(self.builder, at["ids"], INPUT, rows=1, size=4 * fetched, offset=offset)
        if shape.positions:
            self._by_position(at["positions"], POSITIONS, row)
        self._rotations()
        emit_embed(
            self.builder,
            at["x"],
            TOKENS,
            rows=fetched,
            size=row,
            index="list" if work.lists else "token",
            ids=at["ids"] if work.lists else None,
        )
        if shape.positions:
            positions = SramMatrix(at["positions"], work.rows, shape.hidden, "int16")
            emit_add(self.builder, x, positions, x)

    def _by_position(self, dst: int, base: int, size: int) -> None:
        rows = self.plan.work.rows
        emit_embed(self.builder, dst, base, rows=rows, size=size, index="pos")

    def _rotations(self) -> None:
        """Fetch the rows of all tables of rotations: POS counts on through the tables."""
        shape = self.shape
        for number in range(shape.table_count):
            if number:
                self.builder.advance("POS", shape.context)
            self._by_position(self.at[rope_buffer(number)], ROPE, 2 * shape.head_dim)
        if shape.table_count > 1:
            self.builder.advance("POS", -shape.context * (shape.table_count - 1))

    def embed_batch(self) -> None:
        """Fetch the rows of tokens and positions by the lists that the host has written."""
        shape, work, at, x = self.shape, self.plan.work, self.at, self.x
        positions = at["ids"] + work.list_bytes
        emit_load(self.builder, at["ids"], INPUT, rows=1, size=work.lists * work.list_bytes)
        tables = [(at["x"], TOKENS, 2 * shape.hidden, at["ids"])]
        if shape.positions:
            tables.append((at["positions"], POSITIONS, 2 * shape.hidden, positions))
        for number in range(shape.table_count):
            ids = positions + number * work.list_bytes
            tables.append((at[rope_buffer(number)], ROPE, 2 * shape.head_dim, ids))
        for dst, base, row, ids in tables:
            emit_embed(self.builder, dst, base, rows=work.rows, size=row, index="list", ids=ids)
        if shape.positions:
            emit_add(self.builder, x, replace(x, address=at["positions"]), x)

    def layers(self) -> None:
        """Emit all layers."""
        sources: list[Staging] = []
        for layer in range(self.shape.layers):
            sources.append(self._staging(layer, sources[-1] if sources else None))
        for layer, source in enumerate(sources):
            self.builder.comment(f"layer {layer}")
            self._layer(layer, source)

    def _layer(self, number: int, staging: Staging) -> None:
        """Emit one layer; its source of K and V is given.

        The register WINDOW changes where the layer before, or the last one of the pass before, has
        another window; a program begins with that of layer 0.
        """
        window = self.shape.window_of(number)
        if window != self.shape.window_of(number - 1):
            self.builder.set("WINDOW", window)
        layer = DecoderLayer(
            self.builder, self.shape, self.parameters, number, self.at, self.x, self.plan.first_row
        )
        staging.ahead()
        layer.coarsen()
        layer.norm("norm1")
        layer.qkv()
        layer.head_norms()
        if self.shape.rope:
            staging.append_values()
            layer.rotate()
            staging.append_keys()
        else:
            staging.append_keys()
            staging.append_values()
        staging.fill()
        layer.ratios()
        if self.shape.parallel:
            layer.norm("norm2")
        emit_attention(
            self.builder,
            self.plan.attention[number],
            staging,
            layer=number,
            scale=layer.scale,
            first_row=self.plan.first_row,
            registers=self.registers,
        )
        layer.project()
        if not self.shape.parallel:
            layer.norm("norm2")
        layer.feed_forward()

    def _staging(self, layer: int, before: Staging | None) -> Staging:
        """Return the source of K and V of a layer; `before` is that of the layer before."""
        shape, layout = self.shape, self.plan.layout
        in_turn = layout.choice.form == Form.RING and layout.lasting
        work = self.plan.work
        rows = PassHeads.of(shape, self.at["qkv"], work.rows)
        own = work.rows // work.sequences
        return Staging(
            self.builder,
            layout.staging,
            self.plan.attention[layer],
            layer,
            shape.kv_heads,
            AppendedRows(rows.k, rows.v, rows.kv_pitch, own, work.sequences),
            self.registers,
            shape.window_of(layer),
            before if in_turn else None,
        )

    def head(self) -> None:
        """Emit final norm and head of the last row, and make its best column the next token."""
        shape, edge = self.shape, self.builder.limits.edge
        final = SramMatrix(self.at["final"], 1, shape.hidden)
        emit_norm(
            self.builder, norm_name(shape), self.x.last_row, final, self.parameters.shares["norm"]
        )
        logits = self.plan.work.logits
        most = self.plan.layout.logits_columns if logits else (DYNAMIC - 1) // edge * edge
        for index, first in enumerate(range(0, shape.vocab, most)):
            count = min(most, shape.vocab - first)
            share = self._columns(first, count)
            if logits:
                self._logits(final, first, count, index % 2, share)
            else:
                emit_best_columns(self.builder, final, count, share, None)
        self.builder.argmax(OUTPUT)

    def heads(self) -> None:
        """Emit final norm and head of all rows, and send their logits to memory, row by row."""
        shape, work = self.shape, self.plan.work
        final = SramMatrix(self.at["final"], work.rows, shape.hidden)
        norm = self.parameters.shares["norm"]
        emit_norm(self.builder, norm_name(shape), self.x, final, norm)
        most = self.plan.layout.logits_columns
        for index, first in enumerate(range(0, shape.vocab, most)):
            count = min(most, shape.vocab - first)
            dst = SramMatrix(self.at[f"logits{index % 2}"], work.rows, count, "int16")
            instr = emit_linear(self.builder, final, dst, self._columns(first, count))
            note(self.builder, "logits", shape.layers, instr, dst, column=first)
            target = MemoryRows(LOGITS, 2 * first, work.rows, 2 * count, up(2 * shape.vocab))
            emit_store_rows(self.builder, dst.address, None, target)

    def _columns(self, first: int, count: int) -> StreamShare:
        """Return the share of some columns of the head."""
        edge, head = self.builder.limits.edge, self.parameters.shares["head"]
        tile_bytes = head.bytes // (up(self.shape.vocab, edge) // edge)
        name = "head" if count == self.shape.vocab else f"head[{first}:{first + count}]"
        size = up(count, edge) // edge * tile_bytes
        return head.part(name, first // edge * tile_bytes, size)

    def _logits(
        self, final: SramMatrix, first: int, count: int, slot: int, share: StreamShare
    ) -> None:
        """Emit some columns of the head, and send them to memory."""
        dst = SramMatrix(self.at[f"logits{slot}"], 1, count, "int16")
        instr = emit_best_columns(self.builder, final, count, share, dst)
        note(self.builder, "logits", self.shape.layers, instr, dst, column=first)
        size, offset = 2 * count, 2 * first
        emit_store(self.builder, dst.address, LOGITS, rows=1, size=size, offset=offset)
