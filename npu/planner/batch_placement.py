# SPDX-License-Identifier: Apache-2.0
"""Lays out what a batch needs beside its model: caches, lists, logits, and programs as it goes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from npu.compiler import CompiledModel, CompiledProgram, CompileError
from npu.compiler.decoder_program import INPUT, LOGITS
from npu.compiler.model_plan import SEQUENCES
from npu.driver.batch import Pieces, Row
from npu.driver.chip import PAGE
from npu.driver.generate import check_count
from npu.planner.placement import Placement, check_prompt
from npu.runtime.prepare import MEMORY_END
from spec.isa.operands import WORD, up
from spec.regs import StartState

ID_BYTES = 4
"""Of a token in a list."""
PROGRAM_ROOM = 1 << 24
"""Bytes for a program; a larger one is refused."""


@dataclass
class BatchPlacement:
    """A model in memory with a cache for each of several sequences.

    Attributes:
        placement: of the model; what must be written before the first start are its `pieces`.
        sequences: that share a step at most.
        rows: of one sequence that a pass verifies at most.
        positions: that the longest text takes at most, None for the context; shorter ones have
            faster steps.
        caches, lists, logits: addresses: of the first cache, of tokens and positions, and of the
            int16 logits, a row of `pitch` bytes for each sequence.
        program: address behind all of them, where each program in turn is put.
    """

    placement: Placement
    sequences: int
    positions: int | None = None
    rows: int = 1
    caches: int = field(init=False)
    lists: int = field(init=False)
    logits: int = field(init=False)
    program: int = field(init=False)
    _steps: dict[tuple[tuple[int, ...], ...], CompiledProgram] = field(
        default_factory=dict, init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Take room behind the model.

        Raises CompileError if there is none, for a cache in SRAM of several sequences, or for too
        many of them.
        """
        model, sequences = self.model, self.sequences
        if not 1 <= sequences <= SEQUENCES:
            raise CompileError(f"batch: given {sequences} sequences, allowed 1 to {SEQUENCES}")
        if sequences > 1 and not model.cache.in_memory:
            raise CompileError(
                "batch: given a K/V cache in SRAM, allowed one in memory: each sequence has its own"
            )
        in_memory = sequences * model.cache.bytes * model.cache.in_memory
        self.caches = self.placement.end
        self.lists = up(self.caches + in_memory, PAGE)
        nothing = [0] * sequences
        given = max(ID_BYTES * model.shape.context, len(model.batch_lists(nothing, nothing)))
        self.logits = up(self.lists + given, PAGE)
        self.program = up(self.logits + max(sequences, self.rows) * self.pitch, PAGE)
        if self.end > MEMORY_END:
            raise CompileError(
                f"batch: caches, logits and a program end at {self.end:#x}, past the "
                f"{MEMORY_END:#x} bytes that the chip can address; fewer sequences or a shorter "
                "context help"
            )

    @property
    def model(self) -> CompiledModel:
        """What runs."""
        return self.placement.model

    @property
    def end(self) -> int:
        """First address behind all areas."""
        return self.program + PROGRAM_ROOM

    @property
    def vocab(self) -> int:
        """Token ids that there are."""
        return self.model.shape.vocab

    @property
    def pitch(self) -> int:
        """Bytes from a sequence's logits to the next one's."""
        return up(2 * self.vocab)

    @property
    def first(self) -> int:
        """The position that a text begins at."""
        return self.model.first

    def check(self, prompt: Sequence[int], count: int) -> None:
        """Raise PromptError unless a prompt and `count` tokens behind it fit."""
        context = self.positions or self.model.shape.context
        check_prompt(prompt, self.vocab, context - self.first)
        check_count(count, self.first + len(prompt), context)

    def slot_of(self, address: int) -> int | None:
        """Return the cache that an address of memory lies in, None for none of them."""
        slot = (address - self.caches) // self.model.cache.bytes
        return slot if 0 <= slot < self.sequences and self.model.cache.in_memory else None

    def prompt(self, slot: int, ids: Sequence[int]) -> tuple[StartState, Pieces]:
        """Return how a prompt starts whose cache is number `slot`, and what it needs in memory."""
        program = self.model.prefill(len(ids), logits=True)
        return self._launch(program, slot, np.array(ids, "<u4").tobytes())

    def step(self, rows: Sequence[Row]) -> tuple[StartState, Pieces]:
        """Return how a step of these rows starts, and what it needs in memory."""
        first = rows[0]
        lists = self.model.batch_lists([row.token for row in rows], [row.position for row in rows])
        start, pieces = self._launch(self.step_program(rows), first.slot, lists)
        return replace(start, pos=first.position), pieces

    def verify(self, slot: int, ids: Sequence[int], position: int) -> tuple[StartState, Pieces]:
        """Return how a pass of ids from a position on starts, and what it needs in memory."""
        program = self.model.verify(len(ids), position)
        return self._launch(program, slot, np.array(ids, "<u4").tobytes())

    def step_program(self, rows: Sequence[Row]) -> CompiledProgram:
        """Return the program of these rows; it serves them at later positions too."""
        first, size = rows[0], self.model.cache.bytes
        ahead = tuple(row.position - first.position for row in rows)
        caches = tuple((row.slot - first.slot) * size for row in rows)
        if (ahead, caches) not in self._steps:
            self._steps = {
                (ahead, caches): self.model.batch(ahead, caches, positions=self.positions)
            }
        return self._steps[ahead, caches]

    def _launch(
        self, program: CompiledProgram, slot: int, given: bytes
    ) -> tuple[StartState, Pieces]:
        image = program.program.image()
        if len(image) > PROGRAM_ROOM:
            raise CompileError(
                f"batch: given a program of {len(image)} bytes, allowed {PROGRAM_ROOM}; fewer "
                "sequences help"
            )
        start = self.placement.start(self.program, len(image) // WORD)
        bases = list(start.bases)
        bases[INPUT], bases[LOGITS] = self.lists, self.logits
        pieces = [(self.program, image), (self.lists, given)]
        if self.model.cache.in_memory:
            start = replace(start, kv_base=self.caches + slot * self.model.cache.bytes)
        return replace(start, bases=tuple(bases)), pieces
