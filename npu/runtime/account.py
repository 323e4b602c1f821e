# SPDX-License-Identifier: Apache-2.0
"""What the instructions of a program cost: multiplications, tiles and bytes, word by word.

Counted from the words alone, as the chip's counters count them (docs/reference/registers.md): a
multiplication with a zero that fills a tile up counts where the instruction names it in M, N and K.
Programs here have no loops and no sizes that registers hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from operator import add, attrgetter
from typing import Literal

from spec.isa.gemm import GemmForm
from spec.isa.generated import Opcode
from spec.isa.instruction import Instruction
from spec.isa.operands import WORD, Limits, Prefix, share_bytes, sram_operands, up

BYTES_PER_CYCLE = 16
"""Of a channel of the bus, and of the vector engines."""
VECTOR = (
    *(Opcode.VEC, Opcode.SOFTMAX, Opcode.LAYERNORM, Opcode.RMSNORM),
    *(Opcode.ROPE, Opcode.GELU, Opcode.SILU, Opcode.ARGMAX),
)
"""Whose time is that of the words that they read."""

Bound = Literal["mac", "bus", "vector", ""]


@dataclass(frozen=True, slots=True)
class Cost:
    """What instructions cost; costs of several are sums.

    Attributes:
        instructions: that the chip dispatches.
        words: of microcode, prefixes included.
        macs: multiplications of 8 by 8 bits; 16-bit values take two.
        tiles: of B that the array takes in, for each pass once.
        load_bytes, store_bytes: of transfers on the bus, whole beats of 16.
        stream_bytes: taken from the parameter stream.
        vector_bytes: that the engines beside the array read in SRAM.
    """

    instructions: int = 0
    words: int = 0
    macs: int = 0
    tiles: int = 0
    load_bytes: int = 0
    store_bytes: int = 0
    stream_bytes: int = 0
    vector_bytes: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(*map(add, _numbers(self), _numbers(other)))

    @property
    def bus_bytes(self) -> int:
        """Of the busier channel."""
        return max(self.load_bytes + self.stream_bytes, self.store_bytes)

    def cycles(self, limits: Limits) -> dict[Bound, int]:
        """Return the least cycles that array, bus and vector engines take, each by itself."""
        return {
            "mac": -(-self.macs // limits.array_dim**2),
            "bus": -(-self.bus_bytes // BYTES_PER_CYCLE),
            "vector": -(-self.vector_bytes // BYTES_PER_CYCLE),
        }

    def bound(self, limits: Limits) -> Bound:
        """Return which of them takes longest, "" if there is nothing to do."""
        cycles = self.cycles(limits)
        worst = max(cycles, key=lambda name: cycles[name])
        return worst if cycles[worst] else ""

    def ideal_cycles(self, limits: Limits) -> int:
        """Return the longest of them."""
        return max(self.cycles(limits).values())


_numbers = attrgetter(*(one.name for one in fields(Cost)))


def total(costs: Iterable[Cost]) -> Cost:
    """Return the sum."""
    rows = [_numbers(one) for one in costs]
    return Cost(*map(sum, zip(*rows, strict=True))) if rows else Cost()


def word_costs(program: Sequence[Instruction], limits: Limits) -> list[Cost]:
    """Return the cost of each word of a program; that of a prefix is its word alone."""
    costs = []
    prefix: Instruction | None = None
    for word in program:
        if word.opcode == Opcode.PFX:
            prefix = word
            costs.append(Cost(words=1))
            continue
        costs.append(_cost(word, Prefix.of(prefix), limits))
        prefix = None
    return costs


def _cost(word: Instruction, prefix: Prefix, limits: Limits) -> Cost:
    edge = limits.edge
    macs = tiles = load = store = vector = 0
    if word.opcode == Opcode.GEMM:
        form = GemmForm.of(word)
        macs = form.macs(word.m, word.n, word.k, edge)
        tiles = up(word.n, edge) // edge * (up(word.k, edge) // edge) * form.a_bytes
    elif word.opcode in (Opcode.DMA_LOAD, Opcode.EMBED):
        load = word.m * up(word.n)
    elif word.opcode == Opcode.DMA_STORE:
        store = word.m * up(word.n)
    elif word.opcode in VECTOR:
        operands = sram_operands(word, prefix, edge)
        vector = sum(one.rows * up(one.row_bytes) for one in operands if not one.writes)
    return Cost(1, 1, macs, tiles, load, store, share_bytes(word, edge), vector)


def beats(size: int) -> int:
    """Return the beats of the bus that bytes take."""
    return -(-size // WORD)
