# SPDX-License-Identifier: Apache-2.0
"""Causal attention of one block at position 0, scores of one head under the softmax of another."""

from dataclasses import dataclass

from npu.compiler.builder import ProgramBuilder
from npu.compiler.tensors import TensorRef
from npu.isa.operands import WORD, up

BARRIER_MOST = 4


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """Where attention finds and leaves things; addresses and pitches in bytes.

    Attributes:
        layer, rows, heads, head_dim: numbers; the rows are positions 0..rows-1.
        q, k, v, qkv_pitch: int8 rows; head h at up(head_dim) * h in each.
        ctx, ctx_pitch: int8 output rows, heads as in q.
        scores, numer, sums: buffers that heads use in turn, the same number of each; a numerator
            buffer may be its score buffer (softmax in place).
        score_mult, score_shift: requantisation of the scores.

    """

    layer: int
    rows: int
    heads: int
    head_dim: int
    q: int
    k: int
    v: int
    qkv_pitch: int
    ctx: int
    ctx_pitch: int
    scores: tuple[int, ...]
    numer: tuple[int, ...]
    sums: tuple[int, ...]
    score_mult: int
    score_shift: int

    @property
    def pitch(self) -> int:
        """Row pitch of scores and numerators in bytes."""
        return score_pitch(self.rows)


def score_pitch(rows: int) -> int:
    """Return the bytes of a row of 16-bit scores or numerators: a multiple of 16 elements."""
    return 2 * up(rows)


def emit_attention(builder: ProgramBuilder, plan: AttentionPlan) -> None:
    """Emit the attention of all heads. What it needs must be complete; ends with no barrier.

    With two or more buffers the scores of head h+1 are computed under the softmax of head h.
    """
    if len(plan.scores) == 1:
        for head in range(plan.heads):
            _scores(builder, plan, head)
            builder.barrier("gemm")
            _softmax(builder, plan, head)
            builder.barrier("smx")
            _context(builder, plan, head)
        return
    _scores(builder, plan, 0)
    ahead = _scores(builder, plan, 1) if plan.heads > 1 else 0
    for head in range(plan.heads):
        younger = ahead if head == 0 and ahead <= BARRIER_MOST else 0
        builder.barrier("gemm", n=younger)
        _softmax(builder, plan, head)
        if head > 0:
            builder.barrier("smx", n=1)
            _context(builder, plan, head - 1)
            if head + 1 < plan.heads:
                _scores(builder, plan, head + 1)
    builder.barrier("smx")
    _context(builder, plan, plan.heads - 1)


def _pieces(rows: int, most: int) -> list[tuple[int, int]]:
    """Return (first row, number of rows) of pieces that fit the accumulators."""
    return [(first, min(most, rows - first)) for first in range(0, rows, most)]


def _scores(builder: ProgramBuilder, plan: AttentionPlan, head: int) -> int:
    """Emit the scores of a head and return the number of instructions."""
    lane = up(plan.head_dim) * head
    buffer = plan.scores[head % len(plan.scores)]
    pieces = _pieces(plan.rows, builder.limits.acc_rows)
    for first, count in pieces:
        address = buffer + first * plan.pitch
        instr = builder.emit(
            "GEMM",
            "T",
            dst=address,
            src0=plan.q + lane + first * plan.qkv_pitch,
            src1=plan.k + lane,
            M=count,
            N=plan.rows,
            K=up(plan.head_dim),
            q="imm",
            out="i16",
            mul=plan.score_mult,
            sh=plan.score_shift,
            ap=plan.qkv_pitch,
            bp=plan.qkv_pitch,
            cp=plan.pitch,
        )
        builder.tensor(
            TensorRef(
                f"scores_h{head}",
                plan.layer,
                instr,
                address,
                (count, plan.rows),
                "int16",
                plan.pitch,
                row=first,
            )
        )
    return len(pieces)


def _softmax(builder: ProgramBuilder, plan: AttentionPlan, head: int) -> None:
    """Emit the softmax of a head: numerators and sums."""
    slot = head % len(plan.scores)
    instr = builder.emit(
        "SOFTMAX",
        "causal",
        dst=plan.numer[slot],
        src0=plan.scores[slot],
        src1=plan.sums[slot],
        M=plan.rows,
        N=plan.rows,
        out="u16",
        ap=plan.pitch if plan.pitch != up(2 * plan.rows) else None,
    )
    rows = plan.rows
    numer, sums = plan.numer[slot], plan.sums[slot]
    for ref in (
        TensorRef(f"numer_h{head}", plan.layer, instr, numer, (rows, rows), "uint16", plan.pitch),
        TensorRef(f"sums_h{head}", plan.layer, instr, sums, (rows,), "uint32", WORD),
    ):
        builder.tensor(ref)


def _context(builder: ProgramBuilder, plan: AttentionPlan, head: int) -> None:
    """Emit numerators times V of a head, with the division by the row sums."""
    lane = up(plan.head_dim) * head
    slot = head % len(plan.scores)
    for first, count in _pieces(plan.rows, builder.limits.acc_rows // 2):
        address = plan.ctx + lane + first * plan.ctx_pitch
        instr = builder.emit(
            "GEMM",
            dst=address,
            src0=plan.numer[slot] + first * plan.pitch,
            src1=plan.v + lane,
            M=count,
            N=up(plan.head_dim),
            K=plan.rows,
            A="u16",
            q="row",
            out="i8",
            cp=plan.ctx_pitch,
            ap=plan.pitch,
            bp=plan.qkv_pitch,
            sums=plan.sums[slot] + first * WORD,
        )
        builder.tensor(
            TensorRef(
                "ctx",
                plan.layer,
                instr,
                address,
                (count, plan.head_dim),
                "int8",
                plan.ctx_pitch,
                row=first,
                column=head * plan.head_dim,
            )
        )
