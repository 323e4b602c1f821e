# SPDX-License-Identifier: Apache-2.0
"""Where a block alone keeps its tensors in SRAM: at addresses of their own, or by lifetimes."""

from dataclasses import dataclass, replace

from npu.compiler.attention_plan import AttentionPlan, AttentionUnit, Keys, score_pitch
from npu.compiler.errors import CompileError
from npu.compiler.shape import Shape, ctx_pitch, lane, residual_pitch
from npu.compiler.sram_allocation import Buffer, place, top
from npu.isa.operands import WORD, Limits, up

LOAD, LN1, QKV, ATTENTION, PROJ, ADD1, LN2, FC, GELU, DOWN, ADD2, STORE = range(12)
"""Phases of a block, for the lifetimes of buffers. The fused form leaves some of them empty."""


@dataclass(frozen=True, slots=True)
class BlockChoice:
    """How buffers are laid out.

    Attributes:
        separate: every tensor at its own address for the whole program.
        slots: score buffers.
        in_place: numerators over scores.

    """

    separate: bool
    slots: int
    in_place: bool


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """A choice, its buffers and their addresses, as of pass_layout.Layout."""

    choice: BlockChoice
    buffers: tuple[Buffer, ...]
    at: dict[str, int]

    @property
    def sram_bytes(self) -> int:
        """First byte past everything."""
        return top(self.buffers, self.at)

    def attention(self, shape: Shape, rows: int, q: int, q_pitch: int) -> AttentionPlan:
        """Return how attention is done: a query head is a unit; q lies at an address of its own."""
        slots = range(self.choice.slots)
        scores = tuple(self.at[f"scores{i}"] for i in slots)
        in_place = self.choice.in_place
        keys = Keys(rows, 0, dynamic=False)
        return AttentionPlan(
            units=tuple(
                AttentionUnit(
                    head, (head,), q + head * lane(shape), self.at["ctx"] + head * lane(shape)
                )
                for head in range(shape.heads)
            ),
            rows=rows,
            rows_per_head=rows,
            head_dim=shape.head_dim,
            q_pitch=q_pitch,
            ctx_pitch=ctx_pitch(shape),
            keys=keys,
            pieces=keys.pieces(rows),
            scores=scores,
            numer=scores if in_place else tuple(self.at[f"numer{i}"] for i in slots),
            sums=tuple(self.at[f"sums{i}"] for i in slots),
        )


def _buffers(shape: Shape, rows: int, fused: bool, choice: BlockChoice) -> list[Buffer]:
    pitch, residual = score_pitch(rows), rows * residual_pitch(shape)
    act, wide, ffn = rows * up(shape.hidden), rows * ctx_pitch(shape), rows * up(shape.ffn)
    slots = range(choice.slots)
    result = [
        Buffer("x", residual, LOAD, STORE if fused else ADD1),
        Buffer("norm1", act, LN1, QKV),
        Buffer("ctx", wide, ATTENTION, PROJ),
        Buffer("norm2", act, LN2, FC),
        Buffer("act", ffn, FC if fused else GELU, DOWN),
    ]
    result += [Buffer(f"scores{i}", rows * pitch, ATTENTION, ATTENTION) for i in slots]
    result += [Buffer(f"sums{i}", rows * WORD, ATTENTION, ATTENTION) for i in slots]
    if not choice.in_place:
        result += [Buffer(f"numer{i}", rows * pitch, ATTENTION, ATTENTION) for i in slots]
    if fused:
        result.append(Buffer("qkv", 3 * wide, QKV, ATTENTION))
    else:
        result += [Buffer(name, wide, QKV, ATTENTION) for name in ("q", "k", "v")]
        result += [
            Buffer("proj", residual, PROJ, ADD1),
            Buffer("resid1", residual, ADD1, ADD2),
            Buffer("up", ffn, FC, GELU),
            Buffer("down", residual, DOWN, ADD2),
            Buffer("resid2", residual, ADD2, STORE),
        ]
    if choice.separate:
        result = [replace(buffer, first=LOAD, last=STORE) for buffer in result]
    return result


def plan_block(shape: Shape, rows: int, fused: bool, chip: Limits) -> BlockLayout:
    """Return the most generous layout that fits. Raises CompileError if none does."""
    two = min(2, shape.heads)
    frugal = [BlockChoice(False, two, True), BlockChoice(False, 1, True)]
    generous = [
        BlockChoice(True, shape.heads, False),
        BlockChoice(True, two, False),
        BlockChoice(True, two, True),
    ]
    for choice in frugal if fused else generous + frugal:
        buffers = _buffers(shape, rows, fused, choice)
        layout = BlockLayout(choice, tuple(buffers), place(buffers))
        if layout.sram_bytes <= chip.sram_bytes:
            return layout
    parts = ", ".join(f"{buffer.name} {buffer.size}" for buffer in buffers)
    raise CompileError(
        f"a block of {rows} rows, hidden {shape.hidden}, ffn {shape.ffn} needs "
        f"{layout.sram_bytes} bytes of SRAM, the chip has {chip.sram_bytes} (bytes: {parts})"
    )
