# SPDX-License-Identifier: Apache-2.0
"""All that is decided about a model on a chip before a word is emitted: cache, passes, layouts."""

from dataclasses import dataclass
from typing import Literal

from npu.compiler.cache_layout import MEMORY_BYTES, CacheLayout, cache_layout
from npu.compiler.errors import CompileError
from npu.compiler.pass_plan import ENOUGH, PassPlan, plan_chunk, plan_step
from npu.compiler.shape import (
    Shape,
    check_limits,
    check_shape,
    ctx_pitch,
    qkv_pitch,
    residual_pitch,
)
from npu.isa.operands import Limits, up

Place = Literal["auto", "sram", "memory"]
IDS = 4
"""Ids in a word of memory, where a list begins."""


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """A model on a chip: what its programs are emitted from.

    Attributes:
        shape: the decoder.
        limits: the chip.
        cache: where K and V go.
        step, step_with_logits: the pass of a decode step.

    """

    shape: Shape
    limits: Limits
    cache: CacheLayout
    step: PassPlan
    step_with_logits: PassPlan

    @classmethod
    def with_cache(cls, cache: CacheLayout, shape: Shape, limits: Limits) -> "ModelPlan":
        """Plan a model whose cache is placed. Raises CompileError if its passes do not fit."""
        return cls(shape, limits, cache, *_steps(shape, limits, _room(cache, limits), 1))

    @property
    def room(self) -> int:
        """Bytes of SRAM for programs."""
        return _room(self.cache, self.limits)

    def prompt(
        self, rows: int, start: int, *, chunk: int | None, logits: bool
    ) -> tuple[PassPlan, ...]:
        """Plan the chunks of a prompt.

        Args:
            rows: of the prompt; the ids lie at BASE0, four bytes each.
            start: position of the first one.
            chunk: largest number of rows of a chunk, None for what fits.
            logits: the last row's logits go to memory.

        Raises:
            CompileError: an argument makes no sense, the context has not so many positions, or no
                chunk fits.

        """
        self._check_prompt(rows, start, chunk)
        chunks: list[PassPlan] = []
        done = 0
        while done < rows:
            chunks.append(
                plan_chunk(
                    self.shape,
                    self.limits,
                    self.room,
                    start + done,
                    rows - done,
                    chunk,
                    logits=logits,
                    first_row=done,
                    skip=done % IDS,
                )
            )
            done += chunks[-1].work.rows
        return tuple(chunks)

    def _check_prompt(self, rows: int, start: int, chunk: int | None) -> None:
        for name, value, least in (("rows", rows, 1), ("start", start, 0), ("chunk", chunk, 1)):
            if value is None and name == "chunk":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < least:
                raise CompileError(f"{name}: given {value!r}, allowed whole numbers from {least}")
        if start + rows > self.shape.context:
            raise CompileError(
                f"context full: {rows} rows from position {start} end at {start + rows}, the "
                f"context has {self.shape.context} positions"
            )


def plan_model(shape: Shape, limits: Limits, place: Place) -> ModelPlan:
    """Plan a model, with the cache where `place` wants it, see `compile_model`.

    Raises CompileError if anything does not fit the chip.
    """
    check_limits(limits)
    check_shape(shape, limits)
    if place not in ("auto", "sram", "memory"):
        raise CompileError(f"cache: given {place!r}, allowed 'auto', 'sram', 'memory'")
    _check_image(shape, limits.edge)
    if place != "memory":
        try:
            cache = cache_layout(shape, limits.edge, limits.sram_bytes)
            steps = _steps(shape, limits, cache.base, ENOUGH if place == "auto" else 1)
            return ModelPlan(shape, limits, cache, *steps)
        except CompileError:
            if place == "sram":
                raise
    steps = _steps(shape, limits, limits.sram_bytes, 1)
    return ModelPlan(shape, limits, cache_layout(shape, limits.edge, None), *steps)


def _room(cache: CacheLayout, limits: Limits) -> int:
    return limits.sram_bytes if cache.in_memory else cache.base


def _steps(shape: Shape, limits: Limits, room: int, rows: int) -> tuple[PassPlan, PassPlan]:
    """Return the decode steps without and with logits.

    Raises CompileError unless they and prefill fit, the latter with chunks of `rows`.
    """
    with_logits = plan_step(shape, limits, room, logits=True)
    rows = min(rows, shape.context, limits.acc_rows)
    last = shape.context - rows
    fits = plan_chunk(shape, limits, room, last, rows, None, logits=True).work.rows
    if fits < rows:
        raise CompileError(f"a chunk of {rows} rows: only {fits} fit into {room} bytes")
    return plan_step(shape, limits, room, logits=False), with_logits


def image_bytes(shape: Shape, edge: int) -> int:
    """Return the bytes of stream and tables."""

    def linear(inner: int, columns: int) -> int:
        return up(columns, edge) * (8 + up(inner, edge))

    norm = 64 + 4 * up(shape.hidden)
    layer = 2 * norm + 256 + linear(shape.hidden, qkv_pitch(shape))
    layer += linear(ctx_pitch(shape), shape.hidden) + linear(shape.ffn, shape.hidden)
    layer += (2 if shape.gated else 1) * linear(shape.hidden, shape.ffn)
    size = shape.layers * layer + norm + linear(shape.hidden, shape.vocab)
    size += shape.vocab * residual_pitch(shape)
    size += shape.context * residual_pitch(shape) * shape.positions
    return size + shape.context * up(2 * shape.head_dim) * shape.rope


def _check_image(shape: Shape, edge: int) -> None:
    """Raise CompileError if stream and tables exceed the address space."""
    size = image_bytes(shape, edge)
    if size > MEMORY_BYTES:
        raise CompileError(
            f"the image of {shape.layers} layers, hidden {shape.hidden}, ffn {shape.ffn}, "
            f"vocabulary {shape.vocab} needs {size} bytes of memory, there are {MEMORY_BYTES}"
        )
