# SPDX-License-Identifier: Apache-2.0
"""Attention of one layer as its plan has it: scores, softmax and context, K and V of any source."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from npu.compiler.attention_plan import AttentionPlan, AttentionUnit, Keys, UnitStep, score_pitch
from npu.compiler.program_builder import Operand, ProgramBuilder
from npu.compiler.sequence_registers import SequenceRegisters
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

    def operands(self, use: int, skip: int) -> dict[str, Operand]:
        """Return the operands of B for a use, by its number, and see to it that they are there.

        The first `skip` keys are left out, a multiple of the edge of a tile.
        """

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
    registers: SequenceRegisters | None = None,
) -> None:
    """Emit the attention of all units.

    Args:
        builder: of the program.
        plan: what is done.
        source: of K and V.
        layer: number of the layer, for the map of tensors.
        scale: of the scores.
        first_row: number of the pass's first row in its tensors.
        registers: of the sequences of a batch; None for a single one.

    """
    registers = registers or SequenceRegisters(builder)
    _Attention(builder, plan, source, layer, scale, first_row, registers).units()


@dataclass
class _Attention:
    builder: ProgramBuilder
    plan: AttentionPlan
    source: ShareSource
    layer: int
    scale: Scale
    first_row: int
    registers: SequenceRegisters
    use: int = 0

    def units(self) -> None:
        emitters = {
            UnitStep.SCORES: self.scores,
            UnitStep.SOFTMAX: self.softmax,
            UnitStep.CONTEXT: self.context,
        }
        for step, unit in self.plan.steps:
            self.registers.turn_to(self.plan.units[unit].sequence)
            emitters[step](unit)

    def operands(self, unit: AttentionUnit) -> dict[str, Operand]:
        """Return the operands of B of the next use, by a unit."""
        self.use += 1
        operands = self.source.operands(self.use - 1, unit.keys.first - self.plan.keys.first)
        self.registers.turn_to(unit.sequence)  # the source may have read for others
        return operands

    @staticmethod
    def splits(rows: int, most: int) -> list[tuple[int, int]]:
        """Return (first row, number of rows) of parts that fit the accumulators."""
        return [(first, min(most, rows - first)) for first in range(0, rows, most)]

    @staticmethod
    def parts(unit: AttentionUnit, first: int, count: int) -> Iterator[tuple[int, int, int, int]]:
        """Yield (query head, its row, row of the unit, rows) for rows of a unit."""
        each = unit.rows_per_head
        for index in range(first // each, (first + count - 1) // each + 1):
            start, end = max(first, index * each), min(first + count, (index + 1) * each)
            yield index, unit.sequence + unit.before + start - index * each, start, end - start

    def scores(self, number: int) -> None:
        plan, unit, slot = self.plan, self.plan.units[number], number % len(self.plan.scores)
        for base, most in plan.pieces:
            b_operands = self.operands(unit)
            part = unit.keys.part(base, most)
            for first, count in self.splits(unit.rows, self.builder.limits.acc_rows):
                address = plan.scores[slot] + first * unit.pitch + 2 * base
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
                    cp=unit.pitch,
                    more=b_operands | self.masked(number, first, base),
                )
                for index, row, at, rows in self.parts(unit, first, count):
                    self.tensor(
                        f"scores_h{unit.heads[index]}",
                        instr,
                        address + (at - first) * unit.pitch,
                        (rows, min(most, unit.keys.count - base)),
                        "int16",
                        row=row,
                        column=base,
                        keys=unit.keys,
                    )

    def masked(self, number: int, first: int, base: int) -> dict[str, Operand]:
        """Return the operands of what is added to scores."""
        plan = self.plan
        if not plan.masks:
            return {}
        pitch = plan.units[number].pitch
        address = plan.masks[number] + first * pitch + 2 * base
        return {"op": "add", "d": address, "dp": pitch}

    def softmax(self, number: int) -> None:
        plan, slot = self.plan, number % len(self.plan.scores)
        units = plan.units[number : number + plan.together]
        first = units[0]
        rows, keys = first.rows * len(units), first.keys
        if first.before:
            self.builder.set("POS", plan.pos + first.before)
        instr = self.builder.emit(
            "SOFTMAX",
            *(["causal"] if plan.causal else []),
            dst=plan.numer[slot],
            src0=plan.scores[slot],
            src1=plan.sums[slot],
            M=rows,
            N=keys.part(0, keys.count)["count"],
            K=first.rows_per_head if first.rows_per_head != rows else None,
            out="u16",
            ap=first.pitch if first.pitch != up(2 * keys.count) else None,
        )
        if first.before:
            self.builder.set("POS", plan.pos)
        at = 0
        for unit in units:
            for index, row, start, count in self.parts(unit, 0, unit.rows):
                name, shape = f"numer_h{unit.heads[index]}", (count, keys.count)
                address = plan.numer[slot] + (at + start) * unit.pitch
                self.tensor(name, instr, address, shape, "uint16", row=row, keys=keys)
                name, address = f"sums_h{unit.heads[index]}", plan.sums[slot] + (at + start) * WORD
                self.tensor(name, instr, address, (count,), "uint32", row=row, pitch=WORD)
            at += unit.rows
        self.source.spare()

    def context(self, number: int) -> None:
        plan, unit = self.plan, self.plan.units[number]
        last = len(plan.pieces) - 1
        for piece, (base, most) in enumerate(plan.pieces):
            b_operands = self.operands(unit)
            part = unit.keys.part(base, most)
            for first, count in self.splits(unit.rows, self.builder.limits.acc_rows // 2):
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
            src0=plan.numer[slot] + first * unit.pitch + 2 * base,
            M=count,
            N=self.source.lanes,
            K=inner,
            A="u16",
            ap=unit.pitch,
            d=planes if piece else None,
            more=final | operands,
        )
        if not last:
            return
        for index, row, at, rows in self.parts(unit, first, count):
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
        keys: Keys | None = None,
    ) -> None:
        """Note a tensor; with `keys` its columns are their positions."""
        self.builder.tensor(
            TensorRef(
                name,
                self.layer,
                instr,
                address,
                shape,
                dtype,
                score_pitch(keys.count) if keys else pitch or 0,
                row=self.first_row + row,
                column=column + (keys.first if keys else 0),
                dynamic=keys is not None and keys.dynamic,
            )
        )
