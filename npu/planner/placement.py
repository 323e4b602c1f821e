# SPDX-License-Identifier: Apache-2.0
"""Lays a compiled model out in memory and makes the plans that the chip runs from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from npu.compiler import CompiledModel, CompiledProgram, CompileError
from npu.driver.chip import PAGE
from npu.driver.generate import PromptError, PromptPlan, check_count
from npu.planner.decoder_plan import plan_of_images
from npu.runtime.decoder import CACHE, LOGITS, PROMPT, TOKENS
from npu.runtime.prepare import MEMORY_END, bases_from, prepare
from npu.runtime.schema import EntryError
from spec.isa.generated import Opcode
from spec.isa.instruction import Instruction
from spec.isa.operands import WORD, up
from spec.regs import StartState


@dataclass
class Placement:
    """A model in memory as its plan lays it out, and programs behind it.

    Attributes:
        model: what is placed.
        base: first address that may be used.
        pieces: (address, bytes) of all that the host must write before the first start.
        end: first address behind all areas, those that the chip writes included.
    """

    model: CompiledModel
    base: int = 0
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    end: int = field(init=False)

    def __post_init__(self) -> None:
        """Place stream, tables, cache and the areas of ids, tokens and logits."""
        # Whatever a program is, its registers are those of the plan.
        nothing = Instruction(Opcode.END).encode()
        plan = plan_of_images(self.model, 1, [nothing] * 3, [0] * 3)
        try:
            self._prepared = prepare(plan, bases_from(plan, self.base))
        except EntryError as error:
            raise CompileError(str(error)) from None
        self.pieces += self._prepared.memory[: -len(plan.segments)]
        self.end = up(self._prepared.end, PAGE)

    def launch(self, program: CompiledProgram) -> StartState:
        """Place a program and return how it starts, at position 0 with token 0."""
        image = program.program.image()
        address = self.end
        if address + len(image) > MEMORY_END:
            raise CompileError(
                f"a program: {len(image)} bytes from {address:#x} on end past the "
                f"{MEMORY_END:#x} bytes that the chip can address"
            )
        self.pieces.append((address, image))
        self.end = up(address + len(image), PAGE)
        return self.start(address, len(image) // WORD)

    def start(self, address: int, words: int) -> StartState:
        """Return how a program starts that lies at an address, at position 0 with token 0."""
        start = self._prepared.starts[0]
        return replace(start, ucode_base=address, ucode_len=words, loop_left=0)

    @property
    def tokens(self) -> int:
        """Address of the tokens that the chip writes."""
        return self._prepared.address(TOKENS)

    @property
    def cache(self) -> int:
        """Address of the K/V cache; 0 if it lies in SRAM."""
        return self._prepared.address(CACHE) if CACHE in self._prepared.plan.places else 0

    def plan(
        self, prompt: Sequence[int], *, logits: bool = False, count: int | None = None
    ) -> PromptPlan:
        """Place a prompt and the programs for it.

        Args:
            prompt: token ids.
            logits: also for sampling on the host.
            count: tokens behind it at most, None for as many as there is room for.

        Raises:
            PromptError: ids outside the vocabulary, none, or more than the context holds; a count
                that has no room behind them.
            CompileError: the prompt's rows fit nowhere, or memory is full.
        """
        first, context = self.model.first, self.model.shape.context
        check_prompt(prompt, self.model.shape.vocab, context - first)
        rows = len(prompt)
        positions = None
        if count is not None:
            check_count(count, first + rows, context)
            positions = first + rows + count - 1
        ids = np.array(prompt, "<u4").tobytes()
        self.pieces.append((self._prepared.address(PROMPT), ids))
        greedy = self.launch(self.model.generate(rows, positions=positions))
        with_logits, step = None, None
        if logits:
            with_logits = self.launch(self.model.prefill(rows, logits=True))
            step = self.launch(self.model.decode(logits=True, positions=positions))
        return PromptPlan(
            greedy=greedy,
            prompt=with_logits,
            step=step,
            prompt_length=first + rows,
            context=positions or context,
            vocab=self.model.shape.vocab,
            tokens=self.tokens,
            logits=self._prepared.address(LOGITS),
        )


def check_prompt(prompt: Sequence[int], vocab: int, context: int) -> None:
    """Raise PromptError unless a model of these dimensions can take the prompt."""
    if not 1 <= len(prompt) <= context:
        raise PromptError(f"prompt: given {len(prompt)} tokens, allowed 1 to {context} (context)")
    for index, token in _outside(prompt, vocab):
        raise PromptError(
            f"prompt: given token id {token} at index {index}, allowed 0 to {vocab - 1}"
        )


def _outside(prompt: Sequence[int], vocab: int) -> Iterator[tuple[int, int]]:
    return ((i, token) for i, token in enumerate(prompt) if not 0 <= token < vocab)
