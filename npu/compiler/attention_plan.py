# SPDX-License-Identifier: Apache-2.0
"""How attention is done in every layer of a pass: what goes through together, in which order.

The schedule keeps the array at work while the softmax runs. Heads whose K and V do not fit are read
in pieces: scores piece by piece into one row, context accumulated over the pieces.
"""

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise

from npu.compiler.program_builder import Operand
from spec.isa.operands import WORD, up

BLOCK = 16
"""Rows, at least, of a block: the rows of a head that look at the keys of the last of them."""


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
class AttentionUnit:
    """Rows that share one K/V head and go through attention together.

    Attributes:
        kv_head: the K/V head.
        heads: their query heads; each has the same number of consecutive rows.
        q, ctx: addresses of the first row of q and of the context.
        rows: of all its heads.
        keys: what the last row of a head looks at; none of its rows looks at others.
        before: rows of the pass that stand before the first of a head.
        sequence: its number in a batch.

    """

    kv_head: int
    heads: tuple[int, ...]
    q: int
    ctx: int
    rows: int
    keys: Keys
    before: int = 0
    sequence: int = 0

    @property
    def rows_per_head(self) -> int:
        """Rows of each query head, at consecutive positions."""
        return self.rows // len(self.heads)

    @property
    def pitch(self) -> int:
        """Bytes of a row of scores or numerators."""
        return score_pitch(self.keys.count)


class UnitStep(Enum):
    """What is done for a unit."""

    SCORES = "K"
    SOFTMAX = "softmax"
    CONTEXT = "V"


@dataclass(frozen=True, slots=True)
class PieceRead:
    """One read of a piece of K or V: the unit that reads, and the piece's number."""

    step: UnitStep
    unit: int
    piece: int


def block_rows(edge: int) -> int:
    """Return the rows of a block on an array: fewer wait for the weights of a tile."""
    return max(BLOCK, edge)


def row_blocks(rows: int, most: int) -> list[tuple[int, int]]:
    """Return (first, number) of the rows of a head that are a unit each, `most` or fewer."""
    return [(first, min(most, rows - first)) for first in range(0, rows, most)]


def score_pitch(keys: int) -> int:
    """Return the bytes of a row of 16-bit scores or numerators: a multiple of 16 elements."""
    return 2 * up(keys)


def schedule(units: int, slots: int) -> list[tuple[UnitStep, int]]:
    """Return the steps of all units in order, for a number of score buffers.

    With two or more the scores of units to come, as far as there are buffers, and the context of
    the one before are computed under the softmax of this one; with a buffer for every unit each
    step is done for all units.
    """
    if slots == 1:
        return [(step, unit) for unit in range(units) for step in UnitStep]
    if slots >= units:
        return [(step, unit) for step in UnitStep for unit in range(units)]
    steps = [(UnitStep.SCORES, unit) for unit in range(slots)]
    steps.append((UnitStep.SOFTMAX, 0))
    for unit in range(1, units):
        steps += [(UnitStep.SOFTMAX, unit), (UnitStep.CONTEXT, unit - 1)]
        if unit + slots - 1 < units:
            steps.append((UnitStep.SCORES, unit + slots - 1))
    return [*steps, (UnitStep.CONTEXT, units - 1)]


def uses(steps: list[tuple[UnitStep, int]], pieces: int) -> list[PieceRead]:
    """Return the reads of K and V in the order of a schedule."""
    return [
        PieceRead(step, unit, piece)
        for step, unit in steps
        if step != UnitStep.SOFTMAX
        for piece in range(pieces)
    ]


@dataclass(frozen=True, slots=True)
class AttentionPlan:
    """Where attention finds and leaves things in any layer; addresses and pitches in bytes.

    Attributes:
        units: what goes through one after the other.
        head_dim: lanes of a head.
        q_pitch, ctx_pitch: from row to row of a unit.
        keys: what the rows of all units look at.
        pieces: (first key, number of keys) of the pieces in which K and V are read.
        scores, numer, sums: buffers that units use in turn, the same number of each; a numerator
            buffer may be its score buffer (softmax in place).
        planes: int32 partial sums of the context, needed with more than one piece.
        causal: a row looks at no key behind its own position.
        pos: position of the first row, needed where units have others before them.
        masks: by unit, int16 rows like the scores that are added to them; none if empty.

    """

    units: tuple[AttentionUnit, ...]
    head_dim: int
    q_pitch: int
    ctx_pitch: int
    keys: Keys
    pieces: tuple[tuple[int, int], ...]
    scores: tuple[int, ...]
    numer: tuple[int, ...]
    sums: tuple[int, ...]
    planes: int = 0
    causal: bool = True
    pos: int = 0
    masks: tuple[int, ...] = ()

    @property
    def together(self) -> int:
        """Units that one softmax serves: of a single position all, in buffers one behind another.

        Its rows are short of work for the array, so nothing is gained by doing them apart.
        """
        unit = self.units[0]
        many = sum(each.sequence == unit.sequence for each in self.units)
        step = unit.rows * unit.pitch
        steps = {b - a for a, b in pairwise(self.scores)} | {b - a for a, b in pairwise(self.numer)}
        sums = {b - a for a, b in pairwise(self.sums)}
        adjacent = steps <= {step} and sums <= {unit.rows * WORD}
        all_at_once = len(self.scores) == many == len(self.units)
        in_turn = len(self.scores) >= 2 * many and len(self.scores) % many == 0
        room = adjacent and (all_at_once or in_turn)
        return many if room and unit.rows_per_head == 1 else 1

    @property
    def steps(self) -> list[tuple[UnitStep, int]]:
        """The steps of all units in order; a softmax is named by the first unit that it serves."""
        many = self.together
        return [
            (step, group * many + unit)
            for step, group in schedule(len(self.units) // many, len(self.scores) // many)
            for unit in range(1 if step == UnitStep.SOFTMAX else many)
        ]

    @property
    def uses(self) -> list[PieceRead]:
        """The reads of K and V in order."""
        return uses(self.steps, len(self.pieces))
