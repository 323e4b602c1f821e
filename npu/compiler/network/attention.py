# SPDX-License-Identifier: Apache-2.0
"""Attention of a network: heads of any layout, a causal window or a mask."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npu.compiler.attention_plan import AttentionPlan, AttentionUnit, Keys, PieceRead, score_pitch
from npu.compiler.attention_plan import UnitStep as AttentionStep
from npu.compiler.emit import Scale, emit_attention
from npu.compiler.errors import CompileError
from npu.compiler.network.kernel import Context, Kernel, KernelPlace
from npu.compiler.network.layout import StorageView, natural
from npu.compiler.program_builder import Operand
from npu.graph.form import Operation
from spec.isa.operands import WORD

MASK = 3
"""The input that is a mask which is not constant."""


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

    def operands(self, use: int) -> dict[str, Operand]:
        """Return the operands of B for a use."""
        read: PieceRead = self.plan.uses[use]
        heads = self.k if read.step == AttentionStep.SCORES else self.v
        head = self.plan.units[read.unit].kv_head
        return {"src1": heads.address + head * heads.head, "bp": heads.row}

    def spare(self) -> None:
        """Do nothing: all is there."""


class AttentionKernel(Kernel):
    """Scores, softmax and context of all heads, one batch after the other."""

    def __init__(
        self,
        context: Context,
        operation: Operation,
        reads: list[StorageView],
        writes: StorageView,
    ) -> None:
        query, key, value = reads[:3]
        self.batches, self.heads, self.rows, self.lanes = query.shape
        self.key_heads, self.keys = key.shape[1:3]
        if value.shape[3] != self.lanes:
            raise CompileError(
                f"{operation.name}: heads of {value.shape[3]} values, allowed {self.lanes} as keys"
            )
        self.buffers_used = min(2, self.heads)
        super().__init__(context, operation, list(reads), writes, self.batches)
        if self.sram_bytes > context.budget:
            self.buffers_used = 1

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the heads of a batch; a mask is for all of them."""
        return self.reads[number] if number == MASK else self.reads[number].at(chunk)

    def target(self, chunk: int) -> StorageView:
        """Return the heads of a batch."""
        return self.writes.at(chunk)

    @property
    def pitch(self) -> int:
        """Bytes of a row of scores."""
        return score_pitch(self.keys)

    @property
    def buffers(self) -> dict[str, int]:
        """Scores and sums of a head at a time, and the mask."""
        found = {}
        for slot in range(self.buffers_used):
            found[f"scores{slot}"] = self.rows * self.pitch
            found[f"sums{slot}"] = self.rows * WORD
        if self._masks is not None:
            found["mask"] = self._masks[0].nbytes
        return found

    @property
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

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit the attention of a batch."""
        one = self.operation
        query, key, value = (self._at(place, number, chunk) for number in range(3))
        result = self._at(place, -1, chunk)
        each = self.heads // self.key_heads
        units = tuple(
            AttentionUnit(
                head // each,
                (head,),
                query.address + head * query.head,
                result.address + head * result.head,
            )
            for head in range(self.heads)
        )
        scores = tuple(place.scratch(f"scores{slot}") for slot in range(self.buffers_used))
        masks: tuple[int, ...] = ()
        if self._masks is not None:
            size = self.rows * self.pitch
            masks = tuple(place.scratch("mask") + i * size for i in self._masks[1])
        elif len(self.reads) > MASK:
            masks = (place.source(MASK, chunk).address,) * self.heads
        plan = AttentionPlan(
            units=units,
            rows=self.rows,
            rows_per_head=self.rows,
            head_dim=self.lanes,
            q_pitch=query.row,
            ctx_pitch=result.row,
            keys=Keys(self.keys, 0, dynamic=False),
            pieces=((0, self.keys),),
            scores=scores,
            numer=scores,
            sums=tuple(place.scratch(f"sums{slot}") for slot in range(self.buffers_used)),
            causal=one["causal"],
            masks=masks,
        )
        source = HeadRows(plan, key, value, self.lanes)
        scale = Scale(int(one.integers["mult"][0]), int(one.integers["shift"][0]))
        emit_attention(place.builder, plan, source, layer=0, scale=scale)
