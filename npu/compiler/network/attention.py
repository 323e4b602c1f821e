# SPDX-License-Identifier: Apache-2.0
"""Attention of a network: heads of any layout, a causal window or a mask.

All heads of a batch go through together. What SRAM does not hold at once is done in parts: one head
or two at a time, and some of their rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from npu.compiler.attention_plan import (
    AttentionPlan,
    AttentionUnit,
    Keys,
    PieceRead,
    block_rows,
    row_blocks,
    score_pitch,
)
from npu.compiler.attention_plan import UnitStep as AttentionStep
from npu.compiler.emit import Scale, emit_attention
from npu.compiler.errors import CompileError
from npu.compiler.network.kernel import Context, Kernel, KernelPlace, bytes_of, even, row_part
from npu.compiler.network.layout import StorageView, natural
from npu.compiler.program_builder import Operand
from npu.graph.form import Operation
from spec.isa.operands import WORD

KEYS, MASK = (1, 2), 3
"""The inputs that are K and V, and a mask which is not constant."""


@dataclass(frozen=True, slots=True)
class SramHeads:
    """Heads in SRAM: address of the first row of the first, bytes to the next head and row."""

    address: int
    head: int
    row: int


@dataclass
class HeadRows:
    """K and V as rows in SRAM, each head anywhere.

    Attributes:
        plan: of the attention that reads them; one piece.
        k, v: where they lie.
        lanes: of a head.
    """

    plan: AttentionPlan
    k: SramHeads
    v: SramHeads
    lanes: int

    def operands(self, use: int, skip: int) -> dict[str, Operand]:
        """Return the operands of B for a use; no keys are left out."""
        read: PieceRead = self.plan.uses[use]
        heads = self.k if read.step == AttentionStep.SCORES else self.v
        head = self.plan.units[read.unit].kv_head
        return {"src1": heads.address + head * heads.head, "bp": heads.row}

    def spare(self) -> None:
        """Do nothing: all is there."""


@dataclass(frozen=True, slots=True)
class Division:
    """How much goes through at a time.

    Attributes:
        heads: of a batch.
        rows: of each, at most; of one head twice as many, in halves.
        scores: buffers of scores.
        stages: slots of the stages of K and V.
    """

    heads: int
    rows: int
    scores: int
    stages: int = 2


ROWS = (128, 64, 32, 16, 8)
"""Rows that go through at a time where not all of a head do."""


def divisions(
    context: Context, operation: Operation, reads: list[StorageView], writes: StorageView
) -> Iterator[Division]:
    """Yield divisions, the one that is fastest first; parts only where SRAM never holds all.

    Of two heads, or of two halves of a head, the array multiplies one under the softmax of the
    other, which counts for more than the number of rows.
    """
    heads, rows = reads[0].shape[1:3]
    key_heads, keys = reads[1].shape[1:3]
    unit = rows
    if _in_blocks(operation, reads):
        unit = min(rows, block_rows(context.limits.edge))
    yield Division(heads, rows, min(4, heads * -(-rows // unit)))
    yield Division(heads, rows, min(2, heads * -(-rows // unit)))
    yield Division(heads, rows, 1)
    least = unit * (score_pitch(keys) + WORD)
    least += sum(bytes_of(view.at(0)) for view in (*reads[:MASK], writes))
    if least <= context.limits.sram_bytes:
        return
    ordered = operation["causal"] or operation["window"]  # a row's number counts from its head's
    pairs = heads % 2 == 0 and (heads == key_heads or heads // key_heads % 2 == 0)
    for count in (2, 1) if pairs else (1,):
        for most in (rows,) if ordered else ROWS:
            for stages in (2, 1):
                yield Division(count, most, count if ordered and unit == rows else 2, stages)


def _in_blocks(operation: Operation, reads: list[StorageView]) -> bool:
    """Whether the rows of a head are cut, as later ones look at more keys."""
    masked = len(reads) > MASK or "mask" in operation.integers
    return operation["causal"] and not operation["window"] and not masked


@dataclass(frozen=True, slots=True)
class AttentionPart:
    """Rows of some heads of a batch; of one head in one piece or in halves."""

    batch: int
    head: int
    first: int
    count: int
    pieces: int = 1

    @property
    def rows(self) -> int:
        """Rows of a piece."""
        return self.count // self.pieces


def _cuts(rows: int, division: Division) -> Iterator[tuple[int, int, int]]:
    """Yield (first, count, pieces) of the parts of a head."""
    if division.heads > 1 or rows <= division.rows:
        yield from ((first, count, 1) for first, count in even(rows, division.rows))
        return
    pairs = rows - rows % 2
    for first in range(0, pairs, 2 * division.rows):
        yield first, min(2 * division.rows, pairs - first), 2
    if rows % 2:
        yield pairs, 1, 1


class AttentionKernel(Kernel):
    """Scores, softmax and context of some rows of some heads, one after the other."""

    def __init__(
        self,
        context: Context,
        operation: Operation,
        reads: list[StorageView],
        writes: StorageView,
        division: Division,
    ) -> None:
        query, key, value = reads[:3]
        batches, self.heads, self.rows, self.lanes = query.shape
        self.key_heads, self.keys = key.shape[1:3]
        if value.shape[3] != self.lanes:
            raise CompileError(
                f"{operation.name}: heads of {value.shape[3]} values, allowed {self.lanes} as keys"
            )
        self.division = division
        self.parts = [
            AttentionPart(batch, head, *cut)
            for batch in range(batches)
            for head in range(0, self.heads, division.heads)
            for cut in _cuts(self.rows, division)
        ]
        super().__init__(context, operation, list(reads), writes, len(self.parts))

    @property
    def shared(self) -> int:
        """Heads that read one head of K and V."""
        return self.heads // self.key_heads

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the rows of Q, the heads of K or V, or the rows of a mask, which is for all."""
        one = self.parts[chunk]
        if number == MASK:
            return row_part(self.reads[MASK], one.first, one.count)
        if number == 0:
            return self._rows(self.reads[0], one)
        view = self.reads[number].at(one.batch)
        count = max(1, self.division.heads // self.shared)
        moved = one.head // self.shared * view.strides[0]
        return replace(view, offset=view.offset + moved, shape=(count, *view.shape[1:]))

    def target(self, chunk: int) -> StorageView:
        """Return the rows of the result."""
        return self._rows(self.writes, self.parts[chunk])

    def _rows(self, whole: StorageView, one: AttentionPart) -> StorageView:
        view = whole.at(one.batch, one.head)
        moved = one.first * view.strides[0]
        shape = (self.division.heads, one.count, view.columns)
        strides = whole.strides[1:]
        return replace(view, offset=view.offset + moved, shape=shape, strides=strides)

    def slots(self, number: int) -> int:
        """Return the slots of an input's stage."""
        most = self.division.stages if number in KEYS else 2
        return min(most, super().slots(number))

    @property
    def pitch(self) -> int:
        """Bytes of a row of scores."""
        return score_pitch(self.keys)

    @property
    def buffers(self) -> dict[str, int]:
        """Scores and sums of a head at a time, and the mask."""
        found = {}
        rows = max(count for one in self.parts for _, count, _ in self._pieces(one))
        for slot in range(self.division.scores):
            found[f"scores{slot}"] = rows * self.pitch
            found[f"sums{slot}"] = rows * WORD
        if self._masks is not None:
            found["mask"] = self._masks[0].nbytes
        return found

    @cached_property
    def _masks(self) -> tuple[np.ndarray, list[int]] | None:
        """Return the distinct masks as rows of scores, and which of them each head takes."""
        mask = self.operation.integers.get("mask")
        if mask is None:
            return None
        if mask.ndim == 4 and mask.shape[0] not in (0, 1):
            raise CompileError(f"{self.operation.name}: a mask for each batch")
        whole = np.broadcast_to(mask, (1, self.heads, self.rows, self.keys))[0]
        rows = np.zeros((self.heads, self.rows, self.pitch // 2), "<i2")
        rows[..., : self.keys] = whole
        distinct, of_head = np.unique(rows.reshape(self.heads, -1), axis=0, return_inverse=True)
        return distinct, [int(i) for i in of_head.reshape(-1)]

    @property
    def constants(self) -> dict[str, bytes]:
        """The masks."""
        return {} if self._masks is None else {"mask": self._masks[0].tobytes()}

    def begin(self, place: KernelPlace) -> None:
        """Load the masks; set which keys a row looks at."""
        if self._masks is not None:
            place.constant("mask", place.scratch("mask"))
        one = self.operation
        if one["causal"] and (one["offset"] or one["window"]):
            place.builder.set("POS", one["offset"])
            place.builder.set("WINDOW", one["window"])

    def end(self, place: KernelPlace) -> None:
        """Take back what is set."""
        one = self.operation
        if one["causal"] and (one["offset"] or one["window"]):
            place.builder.set("POS", 0)
            place.builder.set("WINDOW", 0)

    def _at(self, place: KernelPlace, number: int, chunk: int) -> SramHeads:
        """Return where heads lie; the result for number -1."""
        part = self.target(chunk) if number < 0 else self.part(number, chunk)
        address = place.address(part)
        if address is None:
            fresh = natural("", part.shape, part.element)
            matrix = place.result(chunk) if number < 0 else place.source(number, chunk)
            return SramHeads(matrix.address, fresh.strides[0], fresh.strides[1])
        head, row = part.strides[:2]
        return SramHeads(address, head, row if part.shape[1] > 1 else part.row_bytes)

    def _pieces(self, part: AttentionPart) -> list[tuple[int, int, Keys]]:
        """Return (first, number, keys) of the rows of a head of a part that are a unit each."""
        one, every = self.operation, Keys(self.keys, 0, dynamic=False)
        if not _in_blocks(one, self.reads):
            return [(piece * part.rows, part.rows, every) for piece in range(part.pieces)]
        return [
            (first, count, replace(every, count=min(self.keys, one["offset"] + first + count)))
            for first, count in row_blocks(part.rows, block_rows(self.context.limits.edge))
        ]

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit the attention of a part."""
        one, part = self.operation, self.parts[chunk]
        query, key, value = (self._at(place, number, chunk) for number in range(3))
        result = self._at(place, -1, chunk)
        inner = [  # head and rows within the part
            (head, *piece) for head in range(self.division.heads) for piece in self._pieces(part)
        ]
        units = tuple(
            AttentionUnit(
                head // self.shared,
                (part.head + head,),
                query.address + head * query.head + first * query.row,
                result.address + head * result.head + first * result.row,
                rows,
                keys,
                first if one["causal"] else 0,
            )
            for head, first, rows, keys in inner
        )
        buffers = range(self.division.scores)
        scores = tuple(place.scratch(f"scores{slot}") for slot in buffers)
        masks: tuple[int, ...] = ()
        if self._masks is not None:
            size, number = self.rows * self.pitch, self._masks[1]
            masks = tuple(
                place.scratch("mask")
                + number[part.head + head] * size
                + (part.first + first) * self.pitch
                for head, first, _, _ in inner
            )
        elif len(self.reads) > MASK:
            mask = place.source(MASK, chunk).address
            masks = tuple(mask + first * self.pitch for _, first, _, _ in inner)
        plan = AttentionPlan(
            units=units,
            head_dim=self.lanes,
            q_pitch=query.row,
            ctx_pitch=result.row,
            keys=Keys(self.keys, 0, dynamic=False),
            pieces=((0, self.keys),),
            scores=scores,
            numer=scores,
            sums=tuple(place.scratch(f"sums{slot}") for slot in buffers),
            causal=one["causal"],
            pos=one["offset"],
            masks=masks,
        )
        source = HeadRows(plan, key, value, self.lanes)
        scale = Scale(int(one.integers["mult"][0]), int(one.integers["shift"][0]))
        emit_attention(place.builder, plan, source, layer=0, scale=scale, first_row=part.first)
