# SPDX-License-Identifier: Apache-2.0
"""Attention of one layer as its plan has it: scores, softmax and context, K and V of any source."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from npu.compiler.attention_plan import AttentionPlan, UnitStep, score_pitch
from npu.compiler.program_builder import Operand, ProgramBuilder
from npu.compiler.tensor_map import TensorRef
from spec.isa.operands import WORD, up


@dataclass(frozen=True, slots=True)
class Scale:
    """Multiplier and shift of the scores' requantisation."""

    mult: int
    shift: int


class ShareSource(Protocol):
    """Where K and V come from."""

    @property
    def lanes(self) -> int:
        """Lanes of a head as GEMM reads them."""

    def operands(self, use: int) -> dict[str, Operand]:
        """Return the operands of B for a use, by its number, and see to it that they are there."""

    def spare(self) -> None:
        """Do what can be done now without waiting."""


def emit_attention(
    builder: ProgramBuilder,
    plan: AttentionPlan,
    source: ShareSource,
    *,
    layer: int,
    scale: Scale,
    first_row: int = 0,
) -> None:
    """Emit the attention of all units.

    Args:
        builder: of the program.
        plan: what is done.
        source: of K and V.
        layer: number of the layer, for the map of tensors.
        scale: of the scores.
        first_row: number of the pass's first row in its tensors.

    """
    _Attention(builder, plan, source, layer, scale, first_row).units()


@dataclass
class _Attention:
    builder: ProgramBuilder
    plan: AttentionPlan
    source: ShareSource
    layer: int
    scale: Scale
    first_row: int
    use: int = 0

    def units(self) -> None:
        emitters = {
            UnitStep.SCORES: self.scores,
            UnitStep.SOFTMAX: self.softmax,
            UnitStep.CONTEXT: self.context,
        }
        for step, unit in self.plan.steps:
            emitters[step](unit)

    def operands(self) -> dict[str, Operand]:
        """Return the operands of B of the next use."""
        self.use += 1
        return self.source.operands(self.use - 1)

    def splits(self, most: int) -> list[tuple[int, int]]:
        """Return (first row, number of rows) of parts that fit the accumulators."""
        rows = self.plan.rows
        return [(first, min(most, rows - first)) for first in range(0, rows, most)]

    def parts(self, first: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (query head, its row, row of the unit, rows) for rows of a unit."""
        each = self.plan.rows_per_head
        for index in range(first // each, (first + count - 1) // each + 1):
            start, end = max(first, index * each), min(first + count, (index + 1) * each)
            yield index, start - index * each, start, end - start

    def scores(self, number: int) -> None:
        plan, unit, slot = self.plan, self.plan.units[number], number % len(self.plan.scores)
        for base, most in plan.pieces:
            b_operands = self.operands()
            part = plan.keys.part(base, most)
            for first, count in self.splits(self.builder.limits.acc_rows):
                address = plan.scores[slot] + first * plan.pitch + 2 * base
                instr = self.builder.emit(
                    "GEMM",
                    "T",
                    dst=address,
                    src0=unit.q + first * plan.q_pitch,
                    M=count,
                    N=part["count"],
                    K=self.source.lanes,
                    base=part["base"],
                    q="imm",
                    out="i16",
                    mul=self.scale.mult,
                    sh=self.scale.shift,
                    ap=plan.q_pitch,
                    cp=plan.pitch,
                    more=b_operands | self.masked(number, first, base),
                )
                for index, row, at, rows in self.parts(first, count):
                    self.tensor(
                        f"scores_h{unit.heads[index]}",
                        instr,
                        address + (at - first) * plan.pitch,
                        (rows, most),
                        "int16",
                        row=row,
                        column=base,
                    )

    def masked(self, number: int, first: int, base: int) -> dict[str, Operand]:
        """Return the operands of what is added to scores."""
        plan = self.plan
        if not plan.masks:
            return {}
        address = plan.masks[number] + first * plan.pitch + 2 * base
        return {"op": "add", "d": address, "dp": plan.pitch}

    def softmax(self, number: int) -> None:
        plan, slot = self.plan, number % len(self.plan.scores)
        units = plan.units if plan.joint else plan.units[number : number + 1]
        rows = plan.rows * len(units)
        part = plan.keys.part(0, plan.keys.count)
        natural = score_pitch(plan.keys.count)
        pitch = plan.pitch if plan.pitch != natural else None
        instr = self.builder.emit(
            "SOFTMAX",
            *(["causal"] if plan.causal else []),
            dst=plan.numer[slot],
            src0=plan.scores[slot],
            src1=plan.sums[slot],
            M=rows,
            N=part["count"],
            K=plan.rows_per_head if plan.rows_per_head != rows else None,
            out="u16",
            ap=plan.pitch if plan.pitch != up(2 * plan.keys.count) else None,
            cp=pitch,
        )
        heads = [head for unit in units for head in unit.heads]
        for index, row, at, count in self.parts(0, rows):
            name, shape = f"numer_h{heads[index]}", (count, plan.keys.count)
            address = plan.numer[slot] + at * plan.pitch
            self.tensor(name, instr, address, shape, "uint16", row=row)
            name, address = f"sums_h{heads[index]}", plan.sums[slot] + at * WORD
            self.tensor(name, instr, address, (count,), "uint32", row=row, pitch=WORD)
        self.source.spare()

    def context(self, number: int) -> None:
        plan = self.plan
        last = len(plan.pieces) - 1
        for piece, (base, most) in enumerate(plan.pieces):
            b_operands = self.operands()
            part = plan.keys.part(base, most)
            for first, count in self.splits(self.builder.limits.acc_rows // 2):
                self.product(number, piece, piece == last, base, first, count, part | b_operands)

    def product(
        self,
        number: int,
        piece: int,
        last: bool,
        base: int,
        first: int,
        count: int,
        operands: dict[str, Operand],
    ) -> None:
        """Emit numerators times V of a piece; the last one divides by the row sums."""
        plan, unit, slot = self.plan, self.plan.units[number], number % len(self.plan.scores)
        planes = plan.planes + 2 * first * up(4 * self.source.lanes)
        address = unit.ctx + first * plan.ctx_pitch
        final: dict[str, Operand] = {"out": "i32"}
        if last:
            final = {
                "q": "row",
                "out": "i8",
                "cp": plan.ctx_pitch,
                "sums": plan.sums[slot] + first * WORD,
            }
        inner = operands.pop("count")
        instr = self.builder.emit(
            "GEMM",
            *(["acc"] if piece else []),
            dst=address if last else planes,
            src0=plan.numer[slot] + first * plan.pitch + 2 * base,
            M=count,
            N=self.source.lanes,
            K=inner,
            A="u16",
            ap=plan.pitch,
            d=planes if piece else None,
            more=final | operands,
        )
        if not last:
            return
        for index, row, at, rows in self.parts(first, count):
            self.tensor(
                "ctx",
                instr,
                address + (at - first) * plan.ctx_pitch,
                (rows, plan.head_dim),
                "int8",
                row=row,
                column=unit.heads[index] * plan.head_dim,
                pitch=plan.ctx_pitch,
            )

    def tensor(
        self,
        name: str,
        instr: int,
        address: int,
        shape: tuple[int, ...],
        dtype: str,
        *,
        row: int,
        column: int = 0,
        pitch: int | None = None,
    ) -> None:
        """Note a tensor; the columns of scores and numerators are positions."""
        plan = self.plan
        by_key = pitch is None
        self.builder.tensor(
            TensorRef(
                name,
                self.layer,
                instr,
                address,
                shape,
                dtype,
                plan.pitch if pitch is None else pitch,
                row=self.first_row + row,
                column=column + (plan.keys.first if by_key else 0),
                dynamic=by_key and plan.keys.dynamic,
            )
        )
