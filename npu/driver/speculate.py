# SPDX-License-Identifier: Apache-2.0
"""Generates a text with guesses: several tokens are verified in one pass over the weights.

What followed the last tokens where they came before is the guess (look-up of n-grams in prompt and
text; no second model). Rows are kept while the guess is what is picked, and the first other one
gives its token, so that the text is the one without guesses, always. Keys and values of refused
rows are overwritten by the pass that comes to their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from npu.driver.batch import (
    Batched,
    BatchPass,
    BatchPrograms,
    BatchRequest,
    BatchText,
    Logits,
    Pieces,
    largest,
    read_logits,
)
from npu.driver.chip import Chip
from spec.regs import StartState

LONGEST, SHORTEST = 3, 1
"""Tokens that are looked for."""


class VerifyingPrograms(BatchPrograms, Protocol):
    """Where the programs come from."""

    def verify(self, slot: int, ids: Sequence[int], position: int) -> tuple[StartState, Pieces]:
        """Return how a pass of ids from a position on starts, and what it needs in memory."""


def guess(text: Sequence[int], most: int) -> list[int]:
    """Return up to `most` tokens that may follow a text: those behind its last tokens before.

    Three tokens are looked for, then two, then one; of several places the last counts. Where it
    comes to the end of the text, it goes on in itself, as what repeats does.
    """
    known = np.array(text)
    for size in range(LONGEST, SHORTEST - 1, -1):
        if len(text) <= size:
            continue
        windows = np.lib.stride_tricks.sliding_window_view(known[:-1], size)
        places = np.flatnonzero((windows == known[-size:]).all(axis=1))
        if places.size:
            start, found = int(places[-1]) + size, list(text)
            for at in range(most):
                found.append(found[start + at])
            return found[len(text) :]
    return []


async def speculated(
    chip: Chip,
    programs: VerifyingPrograms,
    request: BatchRequest,
    guesses: int,
    pick: Callable[[Logits], int] | None = None,
    on_token: Callable[[int, Logits], None] | None = None,
) -> Batched:
    """Generate a text, with up to so many guesses in a pass.

    Args:
        chip: with the model in place.
        programs: of the model.
        request: the text.
        guesses: in a pass, 0 and more.
        pick: returns a token for its logits, (vocab,) int16, called once for each in order; the
            largest of them, the lowest of equals, if none is given.
        on_token: told of each token and its logits.

    Raises:
        PromptError: the request does not fit.
        ProgramFailed: the chip reports an error.
        DeviceError: the chip did not do what it reported.
    """
    programs.check(request.prompt, request.count)
    choose = pick or largest
    text = BatchText(request)
    result = Batched([text])
    given: list[int] = []  # what was guessed for the rows of the pass behind the first
    start, pieces = programs.prompt(0, request.prompt)
    rows, positions = len(request.prompt), tuple[int, ...]()
    while True:
        chip.stage(pieces)
        cycles = (await chip.execute(start)).counters.cycles
        result.passes.append(BatchPass(0 if positions else rows, positions, cycles))
        for row in range(len(given) + 1):
            logits = read_logits(chip, programs, row)
            text.ids.append(choose(logits))
            if on_token is not None:
                on_token(text.ids[-1], logits)
            if text.over:
                return result
            if row < len(given) and given[row] != text.ids[-1]:
                break
        position = programs.first + len(request.prompt) + len(text.ids) - 1
        left = request.count - len(text.ids) - 1
        given = guess([*request.prompt, *text.ids], min(guesses, left))
        positions = tuple(range(position, position + 1 + len(given)))
        start, pieces = programs.verify(0, [text.ids[-1], *given], position)
