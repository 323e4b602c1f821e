# SPDX-License-Identifier: Apache-2.0
"""What a decoder takes of the chip, format by format and context by context, from its shape alone.

Bytes are those of the compiled model. Cycles are the limit of the bus: 16 bytes of the stream, of
rows of tables and of a K/V cache in memory in each; the latency of memory is hidden by reading
ahead. Measured decode steps take up to 5 % more; docs/user-guide.md says when it is not so.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

from npu.compiler import ideal
from npu.compiler.cache_layout import cache_layout
from npu.compiler.errors import CompileError, MemoryFullError
from npu.compiler.model_plan import (
    longest_context,
    placed_parts,
    plan_model,
    stream_bytes,
)
from npu.compiler.shape import check_shape
from npu.compiler.stream import refused_format
from spec.isa.operands import Limits
from spec.isa.weight_formats import GROUPED
from weights.formats.recipe import WORDS, Encoding, WeightRecipe, parse_recipe
from weights.shape import Shape

PARTS = (1, 4, 16)
"""Contexts that are shown: parts of the whole one."""


@dataclass(frozen=True, slots=True)
class FormatEstimate:
    """A model whose weights have some format.

    Attributes:
        weights: recipe of the formats.
        stream, memory: bytes of the stream, and of all that lies in memory.
        cycles_first, cycles_last: of the bus for a token at position 0, and at the last one; of an
            encoder for a pass over all positions.
        longest: most positions that fit, 0 for none.
    """

    weights: str
    stream: int
    memory: int
    cycles_first: int
    cycles_last: int
    longest: int


@dataclass(frozen=True, slots=True)
class ContextEstimate:
    """A model with so many positions, in the format that was asked for.

    Attributes:
        context: positions.
        tables: bytes of the tables of tokens and positions.
        cache: bytes of K and V.
        in_memory: they lie in memory, not in SRAM.
        memory: bytes of all that lies in memory.
        cycles_last: as of a format.
    """

    context: int
    tables: int
    cache: int
    in_memory: bool
    memory: int
    cycles_last: int


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a model takes.

    Attributes:
        asked: the format that was asked for.
        contexts: the whole one first.
        formats: by recipe, all words of a recipe, with what was asked for.
        refusal: why no program of the chip computes it with so many positions, "" if one does or
            if it is the memory that is too small.
    """

    asked: FormatEstimate
    contexts: tuple[ContextEstimate, ...]
    formats: Mapping[str, FormatEstimate]
    refusal: str

    @property
    def context(self) -> int:
        """Positions that were asked for."""
        return self.contexts[0].context

    @property
    def fits(self) -> bool:
        """Whether the chip takes it as it was asked for."""
        return self.asked.longest >= self.context

    @property
    def helps(self) -> FormatEstimate | None:
        """The widest format that fits with the whole context, None if there is none."""
        fitting = [one for one in self.formats.values() if one.longest >= self.context]
        return max(fitting, key=lambda one: one.stream, default=None)


def estimate(shape: Shape, limits: Limits, asked: WeightRecipe, *, encoder: bool) -> Estimate:
    """Return what a model takes of a chip; an encoder has neither head nor cache.

    Raises CompileError for a format that the chip cannot expand.
    """
    for encoding in asked.kinds.values():
        if why := _refused(encoding, limits):
            raise CompileError(f"weights: {why}")
    model = _Model(shape, limits, encoder)
    error = model.plan(shape.context)[1]
    longest = shape.context if error is None else model.longest()
    recipes = {str(one): one for one in (asked, *map(parse_recipe, WORDS))}
    formats = {
        name: model.in_format(recipe, longest)
        for name, recipe in recipes.items()
        if not any(_refused(one, limits) for one in recipe.kinds.values())
    }
    found = formats[str(asked)]
    contexts = dict.fromkeys(max(1, shape.context // part) for part in PARTS)
    shown = tuple(model.at_context(context, found.stream) for context in contexts)
    refusal = "" if error is None or isinstance(error, MemoryFullError) else str(error)
    return Estimate(found, shown, formats, refusal)


def _refused(encoding: Encoding, limits: Limits) -> str:
    """Return why a chip cannot expand weights, or ""."""
    fmt = encoding.format
    if fmt is None:
        return ""
    return refused_format(fmt.asm, str(encoding.group) if fmt in GROUPED else "", limits)


@cache
def _plan(shape: Shape, limits: Limits, encoder: bool) -> tuple[bool, CompileError | None]:
    """Return whether K and V lie in memory, and why no program computes the model."""
    try:
        if encoder:
            check_shape(shape, limits)
            return False, None
        return plan_model(shape, limits, "auto", 0).cache.in_memory, None
    except CompileError as error:
        return not encoder, error


@dataclass(frozen=True, slots=True)
class _Model:
    """A shape on a chip."""

    shape: Shape
    limits: Limits
    encoder: bool

    def plan(self, context: int) -> tuple[bool, CompileError | None]:
        """Return whether K and V lie in memory, and why no program computes it."""
        return _plan(replace(self.shape, context=context), self.limits, self.encoder)

    def longest(self) -> int:
        """Return the most positions that programs can compute, fewer than the model has."""
        every = range(1, self.shape.context)
        return bisect_left(every, True, key=lambda context: self.plan(context)[1] is not None)

    def _cycles(self, context: int, past: int, stream: int) -> int:
        shape = replace(self.shape, context=context)
        if self.encoder:
            return ideal.encode(shape, stream).ideal_cycles
        return ideal.step(shape, past, stream, in_memory=self.plan(context)[0]).ideal_cycles

    def _parts(self, context: int, stream: int) -> dict[str, int]:
        edge, in_memory = self.limits.edge, self.plan(context)[0]
        return placed_parts(self.shape, edge, stream, context, in_memory=in_memory)

    def in_format(self, recipe: WeightRecipe, longest: int) -> FormatEstimate:
        """Return the estimate of a format; programs can compute `longest` positions."""
        edge, context = self.limits.edge, self.shape.context
        headed = replace(self.shape, vocab=0) if self.encoder else self.shape
        stream = stream_bytes(headed, edge, recipe)
        in_memory = self.plan(context)[0]
        return FormatEstimate(
            str(recipe),
            stream,
            sum(self._parts(context, stream).values()),
            self._cycles(context, 0, stream),
            self._cycles(context, context - 1, stream),
            min(longest, longest_context(self.shape, edge, stream, in_memory=in_memory)),
        )

    def at_context(self, context: int, stream: int) -> ContextEstimate:
        """Return the estimate of so many positions."""
        parts = self._parts(context, stream)
        shape = replace(self.shape, context=context)
        return ContextEstimate(
            context,
            parts["token table"] + parts["positions"],
            0 if self.encoder else cache_layout(shape, self.limits.edge, None).bytes,
            self.plan(context)[0],
            sum(parts.values()),
            self._cycles(context, context - 1, stream),
        )
