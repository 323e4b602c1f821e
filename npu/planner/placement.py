# SPDX-License-Identifier: Apache-2.0
"""Lays a compiled model out in memory and makes the plans that the chip runs from there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from npu.compiler import CompiledModel, CompiledProgram, CompileError
from npu.driver.chip import PAGE
from npu.driver.generate import Plan, PromptError
from npu.isa.operands import up
from npu.regs import StartState

MEMORY_END = 1 << 32
TABLES = {"tokens": 2, "positions": 3, "rope": 4}
"""Base register of each table."""


@dataclass
class Placement:
    """A model in memory: where everything lies, and the bytes to put there.

    Attributes:
        model: what is placed.
        pieces: (address, bytes) of all that the host must write before the first start.
        end: first address behind all areas, those that the chip writes included.
    """

    model: CompiledModel
    base: int = 0
    pieces: list[tuple[int, bytes]] = field(default_factory=list)
    end: int = field(init=False)

    def __post_init__(self) -> None:
        """Place stream, tables, cache and the areas of ids, tokens and logits.

        Each begins on a page, so that regions can protect it apart from the rest.
        """
        model, shape = self.model, self.model.shape
        self.end = up(self.base, PAGE)
        self._stream = self._place("the parameter stream", model.stream)
        self._tables = {name: self._place(name, data) for name, data in model.sections.items()}
        size = model.cache.bytes if model.cache.in_memory else 0
        self._cache = self._reserve("the K/V cache", size)
        self._ids = self._reserve("the prompt", 4 * shape.context)
        self._tokens = self._reserve("the tokens", 4 * (shape.context + 1))
        self._logits = self._reserve("the logits", 2 * shape.vocab)

    def _reserve(self, what: str, size: int) -> int:
        address = self.end
        self.end = up(address + size, PAGE)
        if self.end > MEMORY_END:
            raise CompileError(
                f"{what}: {size} bytes from {address:#x} on end past the {MEMORY_END:#x} bytes "
                "that the chip can address"
            )
        return address

    def _place(self, what: str, data: bytes) -> int:
        address = self._reserve(what, len(data))
        self.pieces.append((address, data))
        return address

    def launch(self, program: CompiledProgram) -> StartState:
        """Place a program and return how it starts, at position 0 with token 0."""
        image = program.program.image()
        bases = [0] * 8
        bases[0], bases[1], bases[5] = self._ids, self._tokens, self._logits
        for name, address in self._tables.items():
            bases[TABLES[name]] = address
        return StartState(
            ucode_base=self._place("a program", image),
            ucode_len=len(image) // 16,
            stream_base=self._stream,
            stream_len=len(self.model.stream),
            bases=tuple(bases),
            **self.model.registers(self._cache),
        )

    @property
    def tokens(self) -> int:
        """Address of the tokens that the chip writes."""
        return self._tokens

    @property
    def cache(self) -> int:
        """Address of the K/V cache, if it lies in memory."""
        return self._cache

    def plan(self, prompt: Sequence[int], *, logits: bool = False) -> Plan:
        """Place a prompt and the programs for it.

        Args:
            prompt: token ids.
            logits: also for sampling on the host.

        Raises:
            PromptError: ids outside the vocabulary, none, or more than the context holds.
            CompileError: the prompt's rows fit nowhere, or memory is full.
        """
        check_prompt(prompt, self.model.shape.vocab, self.model.shape.context)
        rows = len(prompt)
        self.pieces.append((self._ids, np.array(prompt, "<u4").tobytes()))
        return Plan(
            greedy=self.launch(self.model.generate(rows)),
            prompt=self.launch(self.model.prefill(rows, logits=True)) if logits else None,
            step=self.launch(self.model.decode(logits=True)) if logits else None,
            prompt_length=rows,
            context=self.model.shape.context,
            vocab=self.model.shape.vocab,
            tokens=self._tokens,
            logits=self._logits,
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
