# SPDX-License-Identifier: Apache-2.0
"""Attention of one pass through a layer: scores, softmax and context, over K and V of any source.

The schedule keeps the array at work while the softmax runs. Heads whose K and V do not fit are read
in pieces: scores piece by piece into one row, context accumulated over the pieces.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import Protocol

from npu.compiler.builder import Operand, ProgramBuilder
from npu.compiler.tensors import TensorRef
from npu.isa.operands import WORD, up


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys that the rows of a pass look at, counted from WSTART.

    Attributes:
        count: how many; the most there can be if `dynamic`.
        earlier: those of them at positions before the pass; the most there can be if `dynamic`.
        dynamic: the number follows from POS when the program runs: LEN keys, LEN - 1 earlier ones.
        first: position of key 0 if it is known.

    """

    count: int
    earlier: int
    dynamic: bool
    first: int = 0

    def part(self, base: int, most: int) -> dict[str, Operand]:
        """Return the operands "count" and "base" of at most `most` keys from key `base` on."""
        if not self.dynamic:
            return {"count": min(most, self.count - base), "base": None}
        return {"count": f"len<={most}", "base": base or None}

    def pieces(self, most: int) -> tuple[tuple[int, int], ...]:
        """Return (first key, number of keys) of pieces of at most `most` keys."""
        return tuple((base, min(most, self.count - base)) for base in range(0, self.count, most))


@dataclass(frozen=True, slots=True)
class Unit:
    """Rows that share one K/V head and go through attention together.

    Attributes:
        kv_head: the K/V head.
        heads: their query heads; each has the same number of consecutive rows.
        q, ctx: addresses of the first row of q and of the context.

    """

    kv_head: int
    heads: tuple[int, ...]
    q: int
    ctx: int


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """Where attention finds and leaves things; addresses and pitches in bytes.

    Attributes:
        layer: its number.
        units: what goes through one after the other.
        rows: rows of a unit.
        rows_per_head: rows of each of its query heads, at consecutive positions.
        head_dim: lanes of a head.
        q_pitch, ctx_pitch: from row to row of a unit.
        keys: what the rows look at.
        pieces: (first key, number of keys) of the pieces in which K and V are read.
        pitch: of a row of scores or numerators.
        scores, numer, sums: buffers that units use in turn, the same number of each; a numerator
            buffer may be its score buffer (softmax in place).
        planes: int32 partial sums of the context, needed with more than one piece.
        score_mult, score_shift: requantisation of the scores.
        first_row: number of the pass's first row in its tensors.

    """

    layer: int
    units: tuple[Unit, ...]
    rows: int
    rows_per_head: int
    head_dim: int
    q_pitch: int
    ctx_pitch: int
    keys: Keys
    pieces: tuple[tuple[int, int], ...]
    pitch: int
    scores: tuple[int, ...]
    numer: tuple[int, ...]
    sums: tuple[int, ...]
    planes: int
    score_mult: int
    score_shift: int
    first_row: int = 0

    @property
    def joint(self) -> bool:
        """Whether one softmax serves all units: single positions, the buffers one behind another.

        Its rows are short of work for the array, so nothing is gained by doing them apart.
        """
        step = self.rows * self.pitch
        steps = {b - a for a, b in pairwise(self.scores)} | {b - a for a, b in pairwise(self.numer)}
        sums = {b - a for a, b in pairwise(self.sums)}
        together = steps <= {step} and sums <= {self.rows * WORD}
        return together and self.rows_per_head == 1 and len(self.scores) >= len(self.units)


class Step(Enum):
    """What is done for a unit."""

    SCORES = "K"
    SOFTMAX = "softmax"
    CONTEXT = "V"


@dataclass(frozen=True, slots=True)
class Use:
    """One read of a piece of K or V: the unit that reads, and the piece's number."""

    step: Step
    unit: int
    piece: int


class Source(Protocol):
    """Where K and V come from."""

    lanes: int
    """Lanes of a head as GEMM reads them."""

    def operands(self, use: int) -> dict[str, Operand]:
        """Return the operands of B for a use, by its number, and see to it that they are there."""

    def spare(self) -> None:
        """Do what can be done now without waiting."""


def score_pitch(keys: int) -> int:
    """Return the bytes of a row of 16-bit scores or numerators: a multiple of 16 elements."""
    return 2 * up(keys)


def schedule(units: int, slots: int, *, joint: bool = False) -> list[tuple[Step, int]]:
    """Return the steps of all units in order, for a number of score buffers.

    With two buffers the scores of the next unit and the context of the one before are computed
    under the softmax of this one; with a buffer for every unit each step is done for all units.
    With `joint` there is one softmax for all of them, at unit 0.
    """
    if slots == 1:
        return [(step, unit) for unit in range(units) for step in Step]
    if slots >= units:
        steps = [(step, unit) for step in Step for unit in range(units)]
        return [
            (step, unit) for step, unit in steps if step != Step.SOFTMAX or not unit or not joint
        ]
    steps = [(Step.SCORES, 0), (Step.SCORES, 1), (Step.SOFTMAX, 0)]
    for unit in range(1, units):
        steps += [(Step.SOFTMAX, unit), (Step.CONTEXT, unit - 1)]
        if unit + 1 < units:
            steps.append((Step.SCORES, unit + 1))
    return [*steps, (Step.CONTEXT, units - 1)]


def uses(steps: list[tuple[Step, int]], pieces: int) -> list[Use]:
    """Return the reads of K and V in the order of a schedule."""
    return [
        Use(step, unit, piece)
        for step, unit in steps
        if step != Step.SOFTMAX
        for piece in range(pieces)
    ]


def emit_attention(builder: ProgramBuilder, plan: AttentionPlan, source: Source) -> None:
    """Emit the attention of all units."""
    _Attention(builder, plan, source).emit()


@dataclass
class _Attention:
    builder: ProgramBuilder
    plan: AttentionPlan
    source: Source
    use: int = 0

    def emit(self) -> None:
        emitters = {
            Step.SCORES: self.scores,
            Step.SOFTMAX: self.softmax,
            Step.CONTEXT: self.context,
        }
        plan = self.plan
        for step, unit in schedule(len(plan.units), len(plan.scores), joint=plan.joint):
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
                    mul=plan.score_mult,
                    sh=plan.score_shift,
                    ap=plan.q_pitch,
                    cp=plan.pitch,
                    more=b_operands,
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

    def softmax(self, number: int) -> None:
        plan, slot = self.plan, number % len(self.plan.scores)
        units = plan.units if plan.joint else plan.units[number : number + 1]
        rows = plan.rows * len(units)
        part = plan.keys.part(0, plan.keys.count)
        natural = score_pitch(plan.keys.count)
        pitch = plan.pitch if plan.pitch != natural else None
        instr = self.builder.emit(
            "SOFTMAX",
            "causal",
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
                plan.layer,
                instr,
                address,
                shape,
                dtype,
                plan.pitch if pitch is None else pitch,
                row=plan.first_row + row,
                column=column + (plan.keys.first if by_key else 0),
                dynamic=by_key and plan.keys.dynamic,
            )
        )


@dataclass
class RowMajor:
    """K and V as rows in SRAM: head h at up(head_dim) * h of each row."""

    units: list[Use]
    k: int
    v: int
    pitch: int
    lanes: int
    group: int = 1

    def operands(self, use: int) -> dict[str, Operand]:
        """Return the operands of B for a use."""
        step, unit = self.units[use].step, self.units[use].unit
        address = self.k if step == Step.SCORES else self.v
        return {"src1": address + unit // self.group * self.lanes, "bp": self.pitch}

    def spare(self) -> None:
        """Do nothing: all is there."""
