# SPDX-License-Identifier: Apache-2.0
"""Generates several texts at a time: a step of all of them reads the weights once.

Batching is by iteration: when a text ends, the next prompt takes its place in the following step.
The host picks every token, so that each text may be sampled in its own way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

from npu.driver.chip import Chip
from npu.driver.errors import ProgramFailed
from spec.isa import ErrorReport
from spec.regs import StartState

Pieces = Sequence[tuple[int, bytes]]
"""Address and bytes of what must lie in memory before a start."""
Logits = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Row:
    """What a step does for one text: a token at a position, and which cache holds the text."""

    slot: int
    token: int
    position: int


class BatchPrograms(Protocol):
    """Where the programs of a batch come from."""

    @property
    def sequences(self) -> int:
        """Texts that share a step at most."""

    @property
    def vocab(self) -> int:
        """Token ids that there are."""

    @property
    def logits(self) -> int:
        """Address of the logits, (sequences, vocab) int16."""

    @property
    def pitch(self) -> int:
        """Bytes from a row of logits to the next."""

    @property
    def first(self) -> int:
        """The position that a text begins at."""

    def check(self, prompt: Sequence[int], count: int) -> None:
        """Raise PromptError unless a prompt and `count` tokens behind it fit."""

    def slot_of(self, address: int) -> int | None:
        """Return the cache that an address of memory lies in, None for none of them."""

    def prompt(self, slot: int, ids: Sequence[int]) -> tuple[StartState, Pieces]:
        """Return how a prompt starts, and what it needs in memory."""

    def step(self, rows: Sequence[Row]) -> tuple[StartState, Pieces]:
        """Return how a step of these rows starts, and what it needs in memory."""


@dataclass(frozen=True, slots=True)
class BatchRequest:
    """A text to generate.

    Attributes:
        prompt: token ids.
        count: tokens behind it at most.
        ends: tokens after which it is over.
    """

    prompt: Sequence[int]
    count: int
    ends: Collection[int] = ()


@dataclass
class BatchText:
    """What has come of a request.

    Attributes:
        request: the request.
        ids: the tokens after the prompt, an end token included.
        error: why it ended early: its cache could not be read or written.
    """

    request: BatchRequest
    ids: list[int] = field(default_factory=list)
    error: ErrorReport | None = None

    @property
    def over(self) -> bool:
        """Whether nothing follows."""
        ended = bool(self.ids) and self.ids[-1] in self.request.ends
        return ended or len(self.ids) == self.request.count or self.error is not None


@dataclass(frozen=True, slots=True)
class BatchPass:
    """A program that ran: a prompt, or a step of all texts.

    Attributes:
        prompt: rows of the prompt, 0 for a step.
        positions: of the rows of a step, of a text each or all of one; none for a prompt.
        cycles: that it took.
    """

    prompt: int
    positions: tuple[int, ...]
    cycles: int


@dataclass
class Batched:
    """What came out.

    Attributes:
        texts: of the requests, in their order.
        passes: the programs, in their order.
    """

    texts: list[BatchText]
    passes: list[BatchPass] = field(default_factory=list)


async def batched(
    chip: Chip,
    programs: BatchPrograms,
    requests: Sequence[BatchRequest],
    pick: Callable[[int, Logits], int] | None = None,
    on_token: Callable[[int, int, Logits], None] | None = None,
) -> Batched:
    """Generate a text for each request, as many at a time as there are caches.

    A text whose cache cannot be read or written ends with the report, the others go on; the cache
    is not used again.

    Args:
        chip: with the model in place.
        programs: of the model.
        requests: any number; those that have no cache yet wait.
        pick: returns a token for a request's number and its logits, (vocab,) int16; the largest of
            them, the lowest of equals, if none is given.
        on_token: told of each token, with the request's number and the logits.

    Raises:
        PromptError: a request that does not fit, by its number, before anything starts.
        ProgramFailed: the chip reports an error that belongs to no text, or no cache is left.
        DeviceError: the chip did not do what it reported.
    """
    for number, request in enumerate(requests):
        try:
            programs.check(request.prompt, request.count)
        except ValueError as error:
            raise type(error)(f"prompt {number}: {error}") from None
    return await _Batch(
        chip, programs, requests, pick or (lambda _, logits: largest(logits)), on_token
    ).run()


def largest(logits: Logits) -> int:
    """Return the token of the largest of the logits (V,), the lowest one of equals."""
    return int(logits.argmax())


def read_logits(chip: Chip, programs: BatchPrograms, row: int) -> Logits:
    """Return the logits (V,) that the last program has left for a row."""
    address = programs.logits + row * programs.pitch
    return np.frombuffer(chip.bus.read_memory(address, 2 * programs.vocab), "<i2")


class _Batch:
    def __init__(
        self,
        chip: Chip,
        programs: BatchPrograms,
        requests: Sequence[BatchRequest],
        pick: Callable[[int, Logits], int],
        on_token: Callable[[int, int, Logits], None] | None,
    ) -> None:
        self.chip, self.programs = chip, programs
        self.pick, self.on_token = pick, on_token
        self.result = Batched([BatchText(request) for request in requests])
        self.waiting = deque(range(len(requests)))
        self.active: dict[int, int] = {}  # slot to number of the request
        self.slots = list(range(programs.sequences))

    async def run(self) -> Batched:
        while self.waiting or self.active:
            await self._admit()
            if self.active:
                await self._step()
        return self.result

    async def _admit(self) -> None:
        """Give every free cache to a prompt that waits."""
        while self.waiting:
            slot = next((slot for slot in self.slots if slot not in self.active), None)
            if slot is None:
                return
            number = self.waiting.popleft()
            self.active[slot] = number
            request = self.result.texts[number].request
            cycles = await self._execute(*self.programs.prompt(slot, request.prompt))
            if cycles is not None:
                self.result.passes.append(BatchPass(len(request.prompt), (), cycles))
                self._take(slot, 0)
            self._leave()

    async def _step(self) -> None:
        slots = sorted(self.active)
        rows = []
        for slot in slots:
            text = self.result.texts[self.active[slot]]
            position = self.programs.first + len(text.request.prompt) + len(text.ids) - 1
            rows.append(Row(slot, text.ids[-1], position))
        cycles = await self._execute(*self.programs.step(rows))
        if cycles is not None:
            positions = tuple(row.position for row in rows)
            self.result.passes.append(BatchPass(0, positions, cycles))
            for index, slot in enumerate(slots):
                self._take(slot, index)
        self._leave()

    def _leave(self) -> None:
        """Free the caches of texts that are over."""
        for slot, number in list(self.active.items()):
            if self.result.texts[number].over:
                del self.active[slot]

    async def _execute(self, start: StartState, pieces: Pieces) -> int | None:
        """Run a program; return its cycles, None if it failed at a text's cache and ended it."""
        self.chip.stage(pieces)
        try:
            finish = await self.chip.execute(start)
        except ProgramFailed as failure:
            slot = self.programs.slot_of(failure.report.address)
            if slot not in self.active:
                raise
            self.slots.remove(slot)  # nobody else shall lose a text to it
            if not self.slots:
                raise
            self.result.texts[self.active[slot]].error = failure.report
            return None
        return finish.counters.cycles

    def _take(self, slot: int, row: int) -> None:
        """Pick the token of a text from a row of logits."""
        number = self.active[slot]
        logits = read_logits(self.chip, self.programs, row)
        token = self.pick(number, logits)
        self.result.texts[number].ids.append(token)
        if self.on_token is not None:
            self.on_token(number, token, logits)
