# SPDX-License-Identifier: Apache-2.0
"""Where a pass through the decoder keeps its tensors in SRAM, and how it does attention."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from npu.compiler.attention_plan import block_rows, row_blocks, score_pitch
from npu.compiler.errors import CompileError
from npu.compiler.kv_staging import Form, StagingPlan
from npu.compiler.shape import Shape, act_pitch, ctx_pitch, lane, qkv_pitch, residual_pitch
from npu.compiler.sram_allocation import SramBuffer, place, top
from spec.isa.operands import TABLE_BYTES, WORD, Limits, up

EMBED, NORM1, QKV, ATTENTION, PROJ, NORM2, FFN, DOWN, HEAD = range(9)
"""Phases of a pass, for the lifetimes of buffers; a pass repeats NORM1 to DOWN for each layer."""
RATIOS_MOST = 4096
"""Elements of a wide gate whose ratios have room at a time."""
LOGITS_MOST = 4096
"""Most columns of the head that go to memory at a time."""


@dataclass(frozen=True, slots=True)
class LayoutChoice:
    """How attention is done.

    Attributes:
        form: how K and V come to SRAM.
        slots: tiles for so many heads or pieces, or for `heads` each.
        piece: positions that a slot has room for, a multiple of the tile edge.
        scores: score buffers.
        heads: of a sequence that share a slot.

    """

    form: Form
    slots: int
    piece: int
    scores: int
    heads: int = 1


@dataclass(frozen=True, slots=True)
class PassLayout:
    """A choice, its buffers and their addresses.

    Attributes:
        choice: how attention is done.
        buffers: what needs room, and when.
        at: addresses by name.
        staging: the tiles.
        sums: of each score buffer.
        lasting: tiles keep their contents from layer to layer.
        sram_bytes: first byte past everything.
        logits_columns: columns of the head that have room in each of "logits0" and "logits1".

    """

    choice: LayoutChoice
    buffers: tuple[SramBuffer, ...]
    at: dict[str, int]
    staging: StagingPlan
    sums: tuple[int, ...]
    lasting: bool
    sram_bytes: int
    logits_columns: int


@dataclass(frozen=True, slots=True)
class PassHeads:
    """Where the int8 heads of q, k and v of a pass lie.

    Attributes:
        q, k, v: addresses of head 0 in the first row; k lies behind q, and v behind k.
        q_pitch, kv_pitch: bytes from row to row.
        joined: the heads of q and k of a row lie side by side.

    """

    q: int
    k: int
    v: int
    q_pitch: int
    kv_pitch: int
    joined: bool

    @classmethod
    def of(cls, shape: Shape, address: int, rows: int) -> "PassHeads":
        """Return where they lie from an address on.

        They lie side by side in a row, as one product makes them, but where heads are normalised:
        then all rows of q come first, so that one instruction reaches the heads of all rows.
        """
        queries, keys = shape.heads * lane(shape), shape.kv_heads * lane(shape)
        if not shape.head_norms:
            pitch = qkv_pitch(shape)
            return cls(address, address + queries, address + queries + keys, pitch, pitch, True)
        k = address + rows * queries
        return cls(address, k, k + rows * keys, queries, keys, rows == 1)


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """The rows of a pass, and what a unit of its attention is.

    Attributes:
        rows: positions.
        keys: the most keys that they look at.
        units: of attention.
        unit_rows: rows of a unit, at most.
        stack: query heads of a unit.
        lists: that name rows of tables, for every row: of tokens, and of positions; of a single
            position there are none, TOKEN and POS name them.
        logits: rows whose logits go to memory: none, the last, or all.
        skip: rows before those of the pass that are fetched too, as a list begins at a whole word.
        sequences: that have an equal share of the rows, one behind the other.

    """

    rows: int
    keys: int
    units: int
    unit_rows: int
    stack: int
    lists: int
    logits: int
    skip: int = 0
    sequences: int = 1

    @property
    def single(self) -> bool:
        """Whether each row is the only one of its sequence."""
        return self.rows == self.sequences

    @property
    def blocks(self) -> list[tuple[int, int]]:
        """(first, number) of the rows of a head that go through attention together."""
        return row_blocks(self.rows // self.sequences, self.unit_rows // self.stack)

    @property
    def list_bytes(self) -> int:
        """Bytes of a list of a word for each row that is fetched."""
        return up(4 * (self.skip + self.rows))

    @property
    def logits_columns(self) -> int:
        """Columns of the head that go to memory at a time, at most."""
        return LOGITS_MOST // max(1, self.logits) // 32 * 32  # a whole number of tiles of any array


def make_passes(
    shape: Shape,
    rows: int,
    keys: int,
    edge: int,
    *,
    lists: int = 0,
    logits: int = 0,
    skip: int = 0,
    sequences: int = 1,
) -> list[ForwardPass]:
    """Return the ways to cut a pass into units of attention, best first.

    Its rows are consecutive positions, or one position of each of several sequences.

    Some rows of a query head are a unit, or all of them. Of a single position the query heads of a
    K/V head are the rows of a unit, all of them or, as scores of long rows need much room, only
    some.
    """
    if rows > sequences:
        return [
            ForwardPass(rows, keys, shape.heads * -(-rows // most), most, 1, lists, logits, skip)
            for most in dict.fromkeys((min(block_rows(edge), rows), rows))
        ]
    stacks = [size for size in range(shape.group, 0, -1) if shape.group % size == 0]
    return [
        ForwardPass(
            rows,
            keys,
            sequences * shape.heads // stack,
            stack,
            stack,
            lists,
            logits,
            skip,
            sequences,
        )
        for stack in stacks
    ]


def choices(shape: Shape, work: ForwardPass, edge: int) -> Iterator[LayoutChoice]:
    """Yield the ways to do attention, best first."""
    whole = up(work.keys, edge)
    buffers = list(range(min(2 if work.single else 3, work.units), 0, -1))
    if work.sequences > 1:
        each = work.units // work.sequences  # one softmax serves a sequence
        buffers = list(dict.fromkeys((2 * each, min(3, 2 * each), *buffers)))
        for scores, slots in ((3, 6), (2, 4), (2, 3)):
            yield LayoutChoice(Form.RING, slots, whole, scores * each, shape.kv_heads)
    elif work.single and work.units > 2:
        yield LayoutChoice(Form.ALL, 2 * shape.kv_heads, whole, work.units)
    for scores in buffers:
        if work.sequences == 1:
            yield LayoutChoice(Form.ALL, 2 * shape.kv_heads, whole, scores)
        for slots in (4, 3):
            yield LayoutChoice(Form.RING, slots, whole, scores)
    for scores in buffers:
        yield LayoutChoice(Form.RING, 2, whole, scores)
    if work.units // work.sequences > shape.heads:
        return  # each unit would read the pieces of its head again
    halves = [whole]
    while halves[-1] > edge:
        halves.append(up(halves[-1] // 2, edge))
    for scores in buffers:
        for allowed in ((4, 3), (2,)):
            for piece in halves[1:]:
                for slots in allowed:
                    yield LayoutChoice(Form.PIECES, slots, piece, scores)


def overlaps(choice: LayoutChoice) -> bool:
    """Whether the softmax runs under other work, and K and V are read ahead."""
    return choice.form != Form.PIECES and (choice.scores > 1 or choice.slots > 2)


def layouts(
    shape: Shape, works: Sequence[ForwardPass], limits: Limits
) -> Iterator[tuple[ForwardPass, PassLayout]]:
    """Yield the layouts of passes for each choice, best first, whether they fit or not."""
    for work in works:
        for choice in choices(shape, work, limits.edge):
            yield work, _layout(shape, work, choice, limits)


def find_layout(
    shape: Shape, works: Sequence[ForwardPass], limits: Limits, room: int, what: str
) -> tuple[ForwardPass, PassLayout]:
    """Return the best layout in `room` bytes of SRAM. Raises CompileError if there is none."""
    found = []
    for work, layout in layouts(shape, works, limits):
        if layout.sram_bytes <= room:
            return work, layout
        found.append((layout.sram_bytes, work, layout))
    _, work, layout = min(found, key=lambda each: each[0])
    raise CompileError(_refusal(shape, work, layout, room, what))


def _refusal(shape: Shape, work: ForwardPass, layout: PassLayout, room: int, what: str) -> str:
    """Return why a layout does not fit."""
    parts = ", ".join(f"{buffer.name} {buffer.size}" for buffer in layout.buffers)
    return (
        f"{what} of a decoder with hidden {shape.hidden}, {shape.heads} heads on {shape.kv_heads} "
        f"of {shape.head_dim}, ffn {shape.ffn} over {work.keys} keys needs {layout.sram_bytes} "
        f"bytes of SRAM, there are {room} (bytes, not all at a time: {parts})"
    )


def rope_buffer(number: int) -> str:
    """Return the name of the buffer for rows of a table of rotations."""
    return f"rope{number or ''}"


def position_lists(shape: Shape) -> int:
    """Return the lists of positions by which a batch fetches rows of tables: at least one."""
    return max(1, shape.table_count)


def ratio_piece(shape: Shape, rows: int) -> tuple[int, int]:
    """Return the rows and columns of a wide gate whose ratios are there at a time."""
    columns = min(shape.ffn, RATIOS_MOST)
    return min(rows, RATIOS_MOST // columns), columns


def _second_norm(shape: Shape) -> int:
    """Return the phase from which "norm2" holds something: it may be made beside attention."""
    return ATTENTION if shape.parallel else NORM2


def _lasting(work: ForwardPass) -> bool:
    """Whether tiles share their place with nothing: single rows are small and leave the room."""
    return work.single


def _buffers(shape: Shape, work: ForwardPass, choice: LayoutChoice, edge: int) -> list[SramBuffer]:
    rows, residual = work.rows, work.rows * residual_pitch(shape)
    score = work.unit_rows * score_pitch(work.keys)
    tile = choice.piece * up(shape.head_dim, edge)
    result = [
        SramBuffer("x", residual + work.skip * residual_pitch(shape), EMBED, HEAD),
        SramBuffer("norm1", rows * up(shape.hidden), NORM1, QKV),
        SramBuffer("qkv", rows * qkv_pitch(shape), QKV, ATTENTION),
        SramBuffer("ctx", rows * ctx_pitch(shape), ATTENTION, PROJ),
        SramBuffer("norm2", rows * up(shape.hidden), _second_norm(shape), FFN),
        SramBuffer("act", rows * act_pitch(shape), FFN, DOWN),
        SramBuffer("final", max(1, work.logits) * up(shape.hidden), HEAD, HEAD),
        SramBuffer(
            "tiles",
            choice.slots * choice.heads * tile,
            NORM1,
            DOWN if _lasting(work) else ATTENTION,
        ),
    ]
    if shape.head_norms:
        head = 2 * rows * lane(shape)
        result.append(SramBuffer("q16", shape.heads * head, QKV, QKV))
        result.append(SramBuffer("k16", shape.kv_heads * head, QKV, QKV))
    if shape.part_norms:
        for part, norm, phase in (("proj", "o_norm", PROJ), ("down", "down_norm", DOWN)):
            result += [SramBuffer(name, residual, phase, phase) for name in (part, norm)]
    if shape.wide:
        result.append(SramBuffer("ratios", 3 * TABLE_BYTES, ATTENTION, FFN))
        piece, columns = ratio_piece(shape, rows)
        result.append(SramBuffer("near", piece * up(columns), FFN, FFN))
        result.append(SramBuffer("ratio", piece * up(2 * columns), FFN, FFN))
        result.append(SramBuffer("up", rows * act_pitch(shape), FFN, FFN))
    if work.lists:
        result.append(SramBuffer("ids", work.lists * work.list_bytes, EMBED, EMBED))
    if shape.positions:
        result.append(SramBuffer("positions", residual, EMBED, DOWN if rows == 1 else EMBED))
    for number in range(shape.table_count):
        size = rows * up(2 * shape.head_dim)
        result.append(SramBuffer(rope_buffer(number), size, EMBED, HEAD))
    sums = choice.scores * work.unit_rows * WORD
    result.append(SramBuffer("scores", choice.scores * score, ATTENTION, ATTENTION))
    result.append(SramBuffer("sums", sums, ATTENTION, ATTENTION))
    if choice.form == Form.PIECES:
        planes = 2 * work.unit_rows * up(4 * shape.head_dim)
        result.append(SramBuffer("planes", planes, ATTENTION, ATTENTION))
    if work.logits:
        size = work.logits * 2 * min(up(shape.vocab, 32), work.logits_columns)
        result += [SramBuffer(f"logits{slot}", size, HEAD, HEAD) for slot in range(2)]
    return result


def _layout(shape: Shape, work: ForwardPass, choice: LayoutChoice, limits: Limits) -> PassLayout:
    buffers = _buffers(shape, work, choice, limits.edge)
    at = place(buffers)
    tile = choice.piece * up(shape.head_dim, limits.edge)
    size = choice.heads * tile
    slots = tuple(at["tiles"] + slot * size for slot in range(choice.slots))
    return PassLayout(
        choice,
        tuple(buffers),
        at,
        StagingPlan(choice.form, slots, tile, choice.heads),
        tuple(at["sums"] + slot * work.unit_rows * WORD for slot in range(choice.scores)),
        _lasting(work),
        top(buffers, at),
        min(up(shape.vocab, 32), work.logits_columns),
    )
