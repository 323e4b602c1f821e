# SPDX-License-Identifier: Apache-2.0
"""The least time that work can take on bus and array, from shapes alone.

`ideal_cycles` is the larger of two times: the multiplications at 256 a cycle (those of the usual
array), and the necessary bytes at 16 a cycle, where reads and writes have a channel each and the
slower one counts. Necessary are weights without padding, 8 bytes per output channel, 4 per norm
channel, tables as listed in the stream's format, input and output; never microcode. Nothing here
comes from a run.

Of a whole model the K/V cache counts where it lies in memory: the positions that are looked at are
read, the new ones written. Of attention a row's visible keys count, in scores and P.V once each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from npu.compiler.shape import Shape, norm_sizes
from spec.isa.operands import TABLE_BYTES
from spec.isa.weight_formats import StreamLayout

ARRAY_DIM = 16
"""Edge of the usual array, in processing elements."""
MACS_PER_CYCLE = ARRAY_DIM**2
BYTES_PER_CYCLE = 16
CHANNEL_BYTES, NORM_CHANNEL_BYTES = 8, 4

Layouts = Mapping[str, StreamLayout]
Bound = Literal["mac", "bus", "port", "turns"]


@dataclass(frozen=True)
class LeastWork:
    """What must be done, whatever the chip looks like but for its array; sums of works are works.

    Attributes:
        macs: multiplications of 8 by 8 bits.
        read_bytes, write_bytes: necessary bytes on the bus.
        cycles: of the command port, which has a unit of its own.
        array_dim: edge of the array that multiplies, in processing elements.
        turns: cycles of works one after the other, some bound by the array and some by the bus.
    """

    macs: int = 0
    read_bytes: int = 0
    write_bytes: int = 0
    cycles: int = 0
    array_dim: int = ARRAY_DIM
    turns: int = 0

    def __add__(self, other: LeastWork) -> LeastWork:
        if self.array_dim != other.array_dim:
            raise ValueError(
                f"works of arrays of {self.array_dim} and {other.array_dim} have no sum"
            )
        return LeastWork(
            self.macs + other.macs,
            self.read_bytes + other.read_bytes,
            self.write_bytes + other.write_bytes,
            self.cycles + other.cycles,
            self.array_dim,
            self.turns + other.turns,
        )

    @property
    def mac_cycles(self) -> int:
        """Cycles of the array, rounded up."""
        return -(-self.macs // self.array_dim**2)

    @property
    def bus_cycles(self) -> int:
        """Cycles of the busier channel, rounded up."""
        return -(-max(self.read_bytes, self.write_bytes) // BYTES_PER_CYCLE)

    @property
    def ideal_cycles(self) -> int:
        """The largest of all."""
        return max(self.mac_cycles, self.bus_cycles, self.cycles, self.turns)

    @property
    def bound(self) -> Bound:
        """Which of them it is."""
        if self.turns and self.turns == self.ideal_cycles:
            return "turns"
        if self.cycles > max(self.mac_cycles, self.bus_cycles):
            return "port"
        return "mac" if self.mac_cycles >= self.bus_cycles else "bus"


def in_turn(works: Iterable[LeastWork]) -> LeastWork:
    """Works that begin one after the other, each when the one before has ended."""
    listed = list(works)
    return replace(sum(listed, LeastWork()), turns=sum(work.ideal_cycles for work in listed))


def transfer(read_bytes: int = 0, write_bytes: int = 0) -> LeastWork:
    """Input and output."""
    return LeastWork(0, read_bytes, write_bytes)


def multiply(m: int, n: int, k: int, *, wide: bool = False) -> LeastWork:
    """(m, k) times (k, n), both in SRAM; 16-bit values (`wide`) take two multiplications each."""
    return LeastWork(m * n * k * (2 if wide else 1))


def linear(
    m: int, n: int, k: int, *, table: bool = False, layout: StreamLayout | None = None
) -> LeastWork:
    """`multiply` with streamed weights, a channel record per column, and maybe a table.

    `layout` is that of weights in a narrow format; their side bytes are necessary.
    """
    weights = k * n if layout is None else -(-n * layout.bits(k) // 8)
    stream = weights + CHANNEL_BYTES * n + (TABLE_BYTES if table else 0)
    return multiply(m, n, k) + transfer(stream)


def norm(n: int) -> LeastWork:
    """A norm with streamed parameters, whatever the number of rows."""
    return transfer(NORM_CHANNEL_BYTES * n)


def visible_keys(rows: int, past: int, window: int = 0) -> int:
    """Keys that `rows` positions behind `past` ones see, summed over the rows.

    A position sees itself and those before it, with a `window` above 0 the last `window` of them.
    """
    seen = (position + 1 for position in range(past, past + rows))
    return sum(min(keys, window) if window else keys for keys in seen)


def block(rows: int, hidden: int, heads: int, ffn: int) -> LeastWork:
    """One GPT-2 block on positions 0 to rows-1, int16 residuals in and out."""
    work = transfer(2 * rows * hidden, 2 * rows * hidden) + norm(hidden) + norm(hidden)
    work += linear(rows, 3 * hidden, hidden) + linear(rows, hidden, hidden)
    work += linear(rows, ffn, hidden, table=True) + linear(rows, hidden, ffn)
    return work + LeastWork(2 * visible_keys(rows, 0) * hidden)


def attention(shape: Shape, rows: int, past: int, number: int = 0) -> LeastWork:
    """Scores and context in a layer of `rows` positions after `past` ones, K and V in SRAM."""
    keys = visible_keys(rows, past, shape.window_of(number))
    return LeastWork(2 * keys * shape.q_columns)


def layer(
    shape: Shape,
    rows: int,
    past: int,
    number: int = 0,
    *,
    in_memory: bool,
    layouts: Layouts | None = None,
) -> LeastWork:
    """One layer of a model on `rows` positions that follow `past` ones."""
    work = parameters(shape, rows, layouts) + attention(shape, rows, past, number)
    return work + (cached(shape, rows, past, number) if in_memory else LeastWork())


def parameters(shape: Shape, rows: int, layouts: Layouts | None = None) -> LeastWork:
    """What a layer does on `rows` positions with its parameters: all but attention."""
    narrow = layouts or {}
    queries, keys = shape.q_columns, shape.kv_columns
    work = sum(map(norm, norm_sizes(shape)), LeastWork())
    layout = narrow.get("q" if shape.head_norms else "qkv")  # q, k and v have one
    work += linear(rows, queries + 2 * keys, shape.hidden, layout=layout)
    work += linear(rows, shape.hidden, queries, layout=narrow.get("proj"))
    table = not shape.wide  # else a norm's, among `norm_sizes`
    work += linear(rows, shape.ffn, shape.hidden, table=table, layout=narrow.get("up"))
    if shape.gated:
        work += linear(rows, shape.ffn, shape.hidden, layout=narrow.get("gate"))
    down = linear(rows, shape.hidden, shape.ffn, layout=narrow.get("down"))
    return work + replace(down, macs=(1 + shape.wide) * down.macs)


def cached(shape: Shape, rows: int, past: int, number: int = 0) -> LeastWork:
    """What a layer reads of a K/V cache in memory, and appends to it."""
    window = shape.window_of(number)
    seen = min(past, window - 1) if window else past
    return transfer(2 * shape.kv_columns * seen, 2 * shape.kv_columns * rows)


def looked_up(shape: Shape) -> int:
    """Return the bytes of the rows that a token takes from the tables."""
    rotations = shape.head_dim * shape.table_count
    return 2 * (shape.hidden * (2 if shape.positions else 1) + rotations)


def forward(
    shape: Shape,
    rows: int,
    past: int,
    *,
    in_memory: bool,
    logits: int = 0,
    layouts: Layouts | None = None,
) -> LeastWork:
    """A pass of a model on `rows` tokens that follow `past` ones, to the token after the last.

    With `logits` all int16 logits of so many rows are written and not only a token. `layouts` has
    what is narrow of the weights, by the last part of the names of their shares.
    """
    work = transfer(4 * rows if rows > 1 else 0)  # the ids of a prompt; a step has its token
    work += transfer(looked_up(shape) * rows, 2 * shape.vocab * logits if logits else 4)
    for number in range(shape.layers):
        work += layer(shape, rows, past, number, in_memory=in_memory, layouts=layouts)
    head_rows, layout = max(1, logits), (layouts or {}).get("head")
    return work + norm(shape.hidden) + linear(head_rows, shape.vocab, shape.hidden, layout=layout)


def batch(shape: Shape, pasts: Sequence[int], layouts: Layouts | None = None) -> LeastWork:
    """A decode step of sequences behind so many positions each, to the logits of all of them.

    Weights are read once; K and V lie in memory.
    """
    rows = len(pasts)
    work = transfer(rows * (4 + looked_up(shape)), rows * 2 * shape.vocab)
    for number in range(shape.layers):
        work += parameters(shape, rows, layouts)
        for past in pasts:
            work += attention(shape, 1, past, number) + cached(shape, 1, past, number)
    head = linear(rows, shape.vocab, shape.hidden, layout=(layouts or {}).get("head"))
    return work + norm(shape.hidden) + head


def step(shape: Shape, past: int, stream: int, *, in_memory: bool) -> LeastWork:
    """A decode step with a stream of so many bytes, padding and all; the bus decides it."""
    layers = [cached(shape, 1, past, number) for number in range(shape.layers * in_memory)]
    return transfer(stream + looked_up(shape), 4) + sum(layers, LeastWork())


def encode(shape: Shape, stream: int) -> LeastWork:
    """A pass of an encoder over all of its positions, each of which sees all; no head."""
    rows = shape.context
    macs = rows * shape.layer_weights + 2 * rows * rows * shape.q_columns
    moved = transfer(stream + rows * looked_up(shape), 2 * rows * shape.hidden)
    return LeastWork(macs * shape.layers) + moved
