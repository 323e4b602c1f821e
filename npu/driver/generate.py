# SPDX-License-Identifier: Apache-2.0
"""Generates text: a prompt goes in, token ids come out.

Greedy generation is one program from the prompt to the last token: the chip picks each token and
feeds it to its next step by itself. To sample, the host reads the logits of every step, picks a
token and starts the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from npu.driver.chip import Chip
from npu.driver.errors import DeviceError
from spec.regs import NO_TOKEN, StartState

MOST_ENDS = 1
"""End tokens that the chip compares by itself; register EOS holds one."""


class PromptError(ValueError):
    """A prompt, a number of tokens after it, or end tokens that model or chip cannot take."""


@dataclass(frozen=True, slots=True)
class PromptPlan:
    """A prompt in memory, ready to run; plain data, so that it can be handed to another process.

    Attributes:
        greedy: prompt and all further tokens; LOOPLEFT is one less than the number of tokens.
        prompt: the prompt, to the logits of the first token; None if the plan is for greedy only.
        step: one further token, to its logits; position and token are filled in per step.
        prompt_length: positions that the prompt takes, with what stands before every text.
        context: positions that its programs are for.
        vocab: token ids that there are.
        tokens: address of the u32 tokens that the greedy program writes.
        logits: address of the (vocab,) int16 logits that prompt and step write.
    """

    greedy: StartState
    prompt: StartState | None
    step: StartState | None
    prompt_length: int
    context: int
    vocab: int
    tokens: int
    logits: int

    def to_json(self) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        return asdict(self)

    @classmethod
    def of_json(cls, content: dict[str, Any]) -> PromptPlan:
        """Return what `to_json` was made from."""
        launches = {
            name: None
            if content[name] is None
            else StartState(**(content[name] | {"bases": tuple(content[name]["bases"])}))
            for name in ("greedy", "prompt", "step")
        }
        return cls(**(content | launches))

    def check_count(self, count: int) -> None:
        """Raise PromptError unless `count` more tokens fit."""
        check_count(count, self.prompt_length, self.context)


def check_count(count: int, prompt: int, context: int) -> None:
    """Raise PromptError unless `count` tokens fit a context behind a prompt of so many.

    The last token is not fed back, so that it needs no position.
    """
    most = context - prompt + 1
    if not 1 <= count <= most:
        raise PromptError(
            f"tokens: given {count} after a prompt of {prompt}, allowed 1 to {most} (the context "
            f"has {context} positions)"
        )


def check_ends(ends: Collection[int], vocab: int) -> None:
    """Raise PromptError unless the chip can stop at each of these tokens."""
    if len(ends) > MOST_ENDS:
        raise PromptError(
            f"end tokens: given {len(ends)} ({', '.join(map(str, ends))}), allowed up to "
            f"{MOST_ENDS}, which the chip's register EOS holds; a host that picks the tokens stops "
            "at any"
        )
    for end in ends:
        if not 0 <= end < vocab:
            raise PromptError(f"end tokens: given {end}, allowed 0 to {vocab - 1}")


@dataclass(frozen=True, slots=True)
class Generated:
    """What came out.

    Attributes:
        ids: the tokens after the prompt, an end token included.
        cycles: of each program, in order: one for greedy, one per token otherwise.
    """

    ids: list[int]
    cycles: list[int]


async def greedy(chip: Chip, plan: PromptPlan, count: int, ends: Collection[int] = ()) -> Generated:
    """Return up to `count` tokens, each the most likely one; one start, no host in between.

    Args:
        chip: with the plan's memory in place.
        plan: of the prompt.
        count: tokens at most.
        ends: the token after which it is over, if there is one.

    Raises:
        ProgramFailed: the chip reports an error.
        DeviceError: the chip did not do what it reported.
        PromptError: so many tokens do not fit the context, or there are more ends than the chip
            compares.
    """
    plan.check_count(count)
    check_ends(ends, plan.vocab)
    launch = replace(plan.greedy, loop_left=count - 1, eos=next(iter(ends), NO_TOKEN))
    finish = await chip.execute(launch)
    tokens = finish.last.out_count
    if not 1 <= tokens <= count:
        raise DeviceError(f"OUTCNT: the chip reports {tokens} tokens, asked for 1 to {count}")
    data = chip.bus.read_memory(plan.tokens, 4 * tokens)
    return Generated([int(i) for i in np.frombuffer(data, "<u4")], [finish.counters.cycles])


async def sampled(
    chip: Chip,
    plan: PromptPlan,
    count: int,
    pick: Callable[[npt.NDArray[np.int16]], int],
    ends: Collection[int] = (),
    on_token: Callable[[int, npt.NDArray[np.int16]], None] | None = None,
) -> Generated:
    """Return up to `count` tokens, each picked by the host from (vocab,) int16 logits.

    Args:
        chip: with the plan's memory in place.
        plan: with `prompt` and `step`.
        count: tokens at most.
        pick: returns a token for logits.
        ends: tokens after which it is over.
        on_token: told of each token and the logits that it was picked from.

    Raises:
        ProgramFailed: the chip reports an error.
        DeviceError: the chip did not do what it reported.
        PromptError: so many tokens do not fit.
        ValueError: the plan is for greedy generation.
    """
    plan.check_count(count)
    if plan.prompt is None or plan.step is None:
        raise ValueError("plan: given one for greedy generation, allowed one with logits")
    ids: list[int] = []
    cycles: list[int] = []
    launch = plan.prompt
    while True:
        cycles.append((await chip.execute(launch)).counters.cycles)
        data = chip.bus.read_memory(plan.logits, 2 * plan.vocab)
        logits = np.frombuffer(data, "<i2")
        ids.append(pick(logits))
        if on_token is not None:
            on_token(ids[-1], logits)
        if len(ids) == count or ids[-1] in ends:
            return Generated(ids, cycles)
        launch = replace(plan.step, pos=plan.prompt_length + len(ids) - 1, token=ids[-1])
