# SPDX-License-Identifier: Apache-2.0
"""K and V as tiles in SRAM: read from the cache ahead of their use, appended rows staged with them.

Three forms. ALL: every head has tiles of its own, filled by a few instructions. RING: whole heads
pass through a few slots in the order of their use. PIECES: parts of heads pass through the slots;
they are read, appended rows included, once these have landed in the cache.
"""

from dataclasses import dataclass, field
from enum import Enum

from npu.compiler.attention_plan import AttentionPlan, AttentionUnit, Keys, PieceRead, UnitStep
from npu.compiler.emit.cache_transfers import (
    CacheHeads,
    emit_kv_append,
    emit_kv_read_earlier,
    emit_kv_read_piece,
)
from npu.compiler.program_builder import Operand, ProgramBuilder
from npu.compiler.sequence_registers import SequenceRegisters
from spec.isa.generated import Engine
from spec.isa.operands import up


class Form(Enum):
    """How K and V come to SRAM; see the module."""

    ALL = "all heads at once"
    RING = "heads in turn"
    PIECES = "heads in pieces"


@dataclass(frozen=True, slots=True)
class AppendedRows:
    """The rows that a pass appends to each sequence.

    Attributes:
        k, v: addresses of head 0 in the first row.
        pitch: bytes from row to row.
        count: rows of a sequence.
        sequences: how many there are; the rows of one lie behind those of the one before.

    """

    k: int
    v: int
    pitch: int
    count: int
    sequences: int = 1


@dataclass(frozen=True, slots=True)
class StagingPlan:
    """Where tiles lie.

    Attributes:
        form: one of the three.
        slots: addresses, each with room for `slot_bytes`; with ALL one for K and one for V of each
            head: K of all heads, then V of all heads, one behind the other.
        slot_bytes: the tiles of one head, or of a piece of it.
        heads: of a sequence that share a slot of a RING.

    """

    form: Form
    slots: tuple[int, ...]
    slot_bytes: int
    heads: int = 1


Key = tuple[UnitStep, int, int]
"""K (SCORES) or V (CONTEXT); unit and piece, or the first head, counted through all sequences."""


@dataclass
class Staging:
    """The source of K and V of one layer; call ahead, append_*, fill, then operands.

    `window` is that of the layer, which the register WINDOW holds while it is computed. `before` is
    the source of the layer before if the slots keep their contents in between: the slots that it
    needs no longer are filled for this one early.
    """

    builder: ProgramBuilder
    plan: StagingPlan
    attention: AttentionPlan
    layer: int
    kv_heads: int
    rows: AppendedRows
    registers: SequenceRegisters
    window: int = 0
    before: "Staging | None" = None
    _uses: list[PieceRead] = field(init=False)
    _loads: list[Key] = field(default_factory=list)
    _last_use: dict[Key, int] = field(default_factory=dict)
    _gemms: dict[int, int] = field(default_factory=dict)  # use -> GEMMs issued before it
    _issued: int = 0
    _ahead: int = 0
    _first_slot: int = 0
    _after: "Staging | None" = None

    def __post_init__(self) -> None:
        """List what is to be loaded in the order of first use, and go on behind `before`."""
        if self.before is not None:
            self.before._after = self
            self._first_slot = self.before._first_slot + len(self.before._loads)
        self._uses = self.attention.uses
        for number, use in enumerate(self._uses):
            key = self._key(use)
            if key not in self._last_use:
                self._loads.append(key)
            self._last_use[key] = number

    @property
    def lanes(self) -> int:
        """Lanes of a head as GEMM reads them."""
        return self.attention.head_dim

    @property
    def keys(self) -> Keys:
        """What the rows look at."""
        return self.attention.keys

    def _key(self, use: PieceRead) -> Key:
        if self.plan.form == Form.PIECES:
            return use.step, use.unit, use.piece
        unit, share = self.attention.units[use.unit], self.plan.heads
        return use.step, unit.sequence * self.kv_heads + unit.kv_head // share * share, 0

    def _slot(self, load: int) -> int:
        key = self._loads[load]
        if self.plan.form == Form.ALL:
            return self.plan.slots[key[1] + (self.kv_heads if key[0] == UnitStep.CONTEXT else 0)]
        return self.plan.slots[(self._first_slot + load) % len(self.plan.slots)]

    def ahead(self) -> None:
        """Read the earlier positions of what is used first."""
        if self.plan.form == Form.ALL:
            if self.keys.earlier:
                self._read(UnitStep.SCORES, 0, self.kv_heads, self.plan.slots[0])
                self._read(UnitStep.CONTEXT, 0, self.kv_heads, self.plan.slots[self.kv_heads])
        elif self.plan.form == Form.RING:
            while self._ahead < self._at_once:
                self._read_ahead()

    @property
    def _at_once(self) -> int:
        """Number of loads that have room at the same time."""
        return min(len(self.plan.slots), len(self._loads))

    def _read_ahead(self) -> None:
        """Read the earlier positions of what is used first and has not been read."""
        step, head, _ = self._loads[self._ahead]
        if self.keys.earlier:
            self._read(step, head, self.plan.heads, self._slot(self._ahead))
        self._ahead += 1

    def append_values(self) -> None:
        """Append the rows of V of all heads, unless heads go through slots in turn."""
        if self.plan.form == Form.ALL:
            self._append(UnitStep.CONTEXT, 0, self.kv_heads, self.plan.slots[self.kv_heads])
        elif self.plan.form == Form.PIECES:
            self._append_all(UnitStep.CONTEXT)

    def append_keys(self) -> None:
        """Append the rows of K of all heads, unless heads go through slots in turn."""
        if self.plan.form == Form.ALL:
            self._append(UnitStep.SCORES, 0, self.kv_heads, self.plan.slots[0])
        elif self.plan.form == Form.PIECES:
            self._append_all(UnitStep.SCORES)

    def _append_all(self, step: UnitStep) -> None:
        for sequence in range(self.rows.sequences):
            self._append(step, sequence * self.kv_heads, self.kv_heads, None)

    def fill(self) -> None:
        """Fill the slots for the first time."""
        if self.plan.form == Form.ALL:
            self._issued = len(self._loads)
            return
        while self._issued < self._at_once:
            self._fill(ahead=self.plan.form == Form.RING)

    def operands(self, use: int, skip: int) -> dict[str, Operand]:
        """Return the operands of B for a use, by its number, and see to it that they are there.

        The first `skip` keys are left out, a multiple of the edge of a tile.
        """
        key = self._key(self._uses[use])
        load = self._loads.index(key)
        while self._issued <= load:
            self._fill()
        self._refill(use - 1 - self.plan.heads)
        self._gemms[use] = self.builder.board.issued[Engine.GEMM]
        skipped = skip * up(self.lanes, self.builder.limits.edge)
        skipped += (
            self.attention.units[self._uses[use].unit].kv_head
            % self.plan.heads
            * self.plan.slot_bytes
        )
        return {"src1": self._slot(load) + skipped, "B": "tile"}

    def spare(self) -> None:
        """Fill the slots whose last use is known to be complete."""
        board = self.builder.board
        done = len(self._gemms) - 1
        while done >= 0 and self._gemms.get(done + 1, board.issued[Engine.GEMM]) > board.complete(
            Engine.GEMM
        ):
            done -= 1
        self._refill(done)

    def _refill(self, done: int) -> None:
        """Fill the slots whose last use is at most number `done`."""
        while self._issued < len(self._loads):
            before = self._loads[self._issued - len(self.plan.slots)]
            if self._last_use[before] > done:
                return
            self._fill()
        after = self._after
        while after is not None and after._ahead < after._at_once:
            load = len(self._loads) + after._ahead - len(self.plan.slots)
            if load >= 0 and self._last_use[self._loads[load]] > done:
                return
            self._read_ahead_of(after)

    def _read_ahead_of(self, after: "Staging") -> None:
        """Read what the next layer uses first; the register has this layer's window behind it."""
        other = after.window != self.window
        if other:
            self.builder.set("WINDOW", after.window)
        after._read_ahead()
        if other:
            self.builder.set("WINDOW", self.window)

    def _fill(self, *, ahead: bool = False) -> None:
        """Fill the next slot; its earlier positions may have been read ahead."""
        step, number, piece = self._loads[self._issued]
        slot = self._slot(self._issued)
        self._issued += 1
        if self.plan.form == Form.PIECES:
            self._read_piece(step, self.attention.units[number], piece, slot)
            return
        if self.keys.earlier and not ahead:
            self._read(step, number, self.plan.heads, slot)
        self._append(step, number, self.plan.heads, slot)

    def _heads(self, step: UnitStep, first: int, count: int) -> CacheHeads:
        """Return heads of one sequence, and turn to it; `first` counts through all sequences."""
        sequence, head = divmod(first, self.kv_heads)
        self.registers.turn_to_cache(sequence)
        return CacheHeads(step == UnitStep.CONTEXT, self.layer, head, count, self.lanes)

    def _read(self, step: UnitStep, first: int, heads: int, slot: int) -> None:
        """Read the earlier positions of whole heads."""
        read = self._heads(step, first, heads)
        emit_kv_read_earlier(self.builder, read, self.keys, slot, self.plan.slot_bytes)

    def _read_piece(self, step: UnitStep, unit: AttentionUnit, piece: int, slot: int) -> None:
        """Read a piece of a unit's head, appended positions included."""
        base, most = self.attention.pieces[piece]
        count = f"len<={most}" if self.keys.dynamic else most
        head = self._heads(step, unit.sequence * self.kv_heads + unit.kv_head, 1)
        emit_kv_read_piece(self.builder, head, base, count, slot)

    def _append(self, step: UnitStep, first: int, heads: int, slot: int | None) -> None:
        """Append the pass's rows of some heads; `slot` is where they are staged too."""
        rows, (sequence, head) = self.rows, divmod(first, self.kv_heads)
        src = (rows.k if step == UnitStep.SCORES else rows.v) + head * up(self.lanes)
        src += sequence * rows.count * rows.pitch
        given = self._heads(step, first, heads)
        size = self.plan.slot_bytes
        emit_kv_append(self.builder, given, src, rows.count, rows.pitch, slot, size)
