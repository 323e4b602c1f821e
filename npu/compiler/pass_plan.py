# SPDX-License-Identifier: Apache-2.0
"""A pass of some rows through a decoder, planned: a decode step, or a chunk of a prompt."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from npu.compiler.attention_plan import AttentionPlan, AttentionUnit, Keys, score_pitch
from npu.compiler.kv_staging import Form
from npu.compiler.pass_layout import (
    ForwardPass,
    PassHeads,
    PassLayout,
    find_layout,
    layouts,
    make_passes,
    overlaps,
)
from npu.compiler.shape import (
    Shape,
    ctx_pitch,
    first_key,
    lane,
    most_keys,
    most_rows,
    widest,
)
from spec.isa.operands import Limits

STEP = 16
"""Chunks are multiples of this many rows, if as many fit."""
SMALL = (8, 4, 2, 1)
"""Chunks for decoders whose rows are so wide that fewer fit."""
ENOUGH = 32
"""From so many rows on a chunk keeps the array busier than the bus: wider ones must gain more."""


KeysOf = Callable[[int, int, int], Keys]
"""The keys in a window, of so many rows of the pass, behind so many others."""


@dataclass(frozen=True, slots=True)
class PassPlan:
    """What a pass is, where it keeps things, and how it does attention in every layer.

    Attributes:
        work: its rows.
        layout: where they are kept, and while which phases.
        attention: of each layer; those with the same window share one.
        pos: position of the first row; None where the program finds it in POS.
        first_row: number of the first row in the prompt.

    """

    work: ForwardPass
    layout: PassLayout
    attention: tuple[AttentionPlan, ...]
    pos: int | None = None
    first_row: int = 0


def plan_step(
    shape: Shape,
    limits: Limits,
    room: int,
    *,
    logits: int,
    sequences: int = 1,
    lists: int = 0,
) -> PassPlan:
    """Plan a decode step of sequences at any positions in `room` bytes of SRAM.

    Raises CompileError if none fits.
    """

    def keys(window: int, before: int, rows: int) -> Keys:
        most = most_keys(shape.context, window, limits.edge)
        return Keys(most, most, dynamic=True)

    works = make_passes(
        shape,
        sequences,
        keys(widest(shape), 0, 1).count,
        limits.edge,
        lists=lists,
        logits=logits,
        sequences=sequences,
    )
    what = "a decode step" if sequences == 1 else f"a decode step of {sequences} sequences"
    work, layout = find_layout(shape, works, limits, room, what)
    return PassPlan(work, layout, _attentions(shape, work, layout, keys, 0))


def plan_chunk(
    shape: Shape,
    limits: Limits,
    room: int,
    pos: int,
    left: int,
    most: int | None,
    *,
    logits: int,
    first_row: int = 0,
    skip: int = 0,
) -> PassPlan:
    """Plan the next chunk of a prompt.

    Args:
        shape: the decoder.
        limits: the chip.
        room: bytes of SRAM.
        pos: position of the first row.
        left: rows of the prompt that are to go.
        most: largest number of rows of a chunk, None for what fits.
        logits: rows whose logits go to memory: none, the last, or all.
        first_row: number of the first row in the prompt.
        skip: number of ids before its first one in the same word.

    Raises:
        CompileError: no chunk fits.

    """
    work, layout = _choose_chunk(shape, limits, room, pos, left, most, logits, skip)
    attentions = _attentions(shape, work, layout, _keys_at(pos, limits.edge), pos)
    return PassPlan(work, layout, attentions, pos, first_row)


def plan_verification(shape: Shape, limits: Limits, room: int, pos: int, rows: int) -> PassPlan:
    """Plan a pass of rows from a position on, to the logits of all. CompileError: none fits."""
    most = pos + rows - first_key(widest(shape), pos, limits.edge)
    works = make_passes(shape, rows, most, limits.edge, lists=1, logits=rows)
    what = f"a pass of {rows} rows at position {pos}"
    work, layout = find_layout(shape, works, limits, room, what)
    attentions = _attentions(shape, work, layout, _keys_at(pos, limits.edge), pos)
    return PassPlan(work, layout, attentions, pos)


def _keys_at(pos: int, edge: int) -> KeysOf:
    """Return the keys of rows whose first one is at a position."""

    def keys(window: int, before: int, rows: int) -> Keys:
        start = pos + before
        first = first_key(window, start, edge)
        return Keys(start + rows - first, start - first, dynamic=False, first=first)

    return keys


def _choose_chunk(
    shape: Shape,
    limits: Limits,
    room: int,
    pos: int,
    left: int,
    most: int | None,
    logits: int,
    skip: int,
) -> tuple[ForwardPass, PassLayout]:
    """Return the most rows that fit, and their layout. Raises CompileError."""
    first = first_key(widest(shape), pos, limits.edge)
    rows = most_rows(shape, limits)
    limit = min(rows, most or rows)
    sizes = [*range(limit // STEP * STEP, 0, -STEP), *(size for size in SMALL if size <= limit)]
    for size in dict.fromkeys(min(size, left) for size in sizes):
        keys = pos + size - first
        works = make_passes(shape, size, keys, limits.edge, lists=1, logits=logits, skip=skip)
        for work, layout in layouts(shape, works, limits):
            good = size <= ENOUGH or overlaps(layout.choice)
            if good and layout.sram_bytes <= room:
                return work, layout
    what = f"a chunk of {size} rows at position {pos}"
    return find_layout(shape, works, limits, room, what)


def _attentions(
    shape: Shape, work: ForwardPass, layout: PassLayout, keys: KeysOf, pos: int
) -> tuple[AttentionPlan, ...]:
    """Return how attention is done in each layer."""
    windows = [shape.window_of(layer) for layer in range(shape.layers)]
    plans = {
        window: _attention(shape, work, layout, partial(keys, window), pos)
        for window in dict.fromkeys(windows)
    }
    return tuple(plans[window] for window in windows)


def _attention(
    shape: Shape,
    work: ForwardPass,
    layout: PassLayout,
    keys: Callable[[int, int], Keys],
    pos: int,
) -> AttentionPlan:
    """Return how attention is done: of a single row, query heads are the rows of a unit."""
    single, own = work.single, work.rows // work.sequences
    whole, every = layout.choice.form != Form.PIECES, keys(0, own)
    rows = PassHeads.of(shape, layout.at["qkv"], work.rows)
    row = ctx_pitch(shape)
    q_pitch, ctx = (lane(shape), lane(shape)) if single else (rows.q_pitch, row)
    score = work.unit_rows * score_pitch(every.count)
    scores = tuple(layout.at["scores"] + slot * score for slot in range(layout.choice.scores))
    units = tuple(
        AttentionUnit(
            first // shape.group,
            tuple(range(first, first + work.stack)),
            rows.q + first * lane(shape) + before * q_pitch + sequence * own * rows.q_pitch,
            layout.at["ctx"] + first * lane(shape) + before * ctx + sequence * own * row,
            work.stack * count,
            keys(before, count),
            before,
            sequence,
        )
        for sequence in range(work.sequences)
        for first in range(0, shape.heads, work.stack)
        for before, count in work.blocks
    )
    return AttentionPlan(
        units=units,
        head_dim=shape.head_dim,
        q_pitch=q_pitch,
        ctx_pitch=ctx,
        keys=every,
        pieces=every.pieces(every.count if whole else layout.choice.piece),
        scores=scores,
        numer=scores,
        sums=layout.sums,
        planes=layout.at.get("planes", 0),
        pos=pos,
    )
