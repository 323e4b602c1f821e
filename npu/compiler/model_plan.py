# SPDX-License-Identifier: Apache-2.0
"""All that is decided about a model on a chip before a word is emitted: cache, passes, layouts."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Literal

from npu.compiler.cache_layout import CacheLayout, cache_layout
from npu.compiler.errors import CompileError, MemoryFullError
from npu.compiler.pass_layout import position_lists
from npu.compiler.pass_plan import ENOUGH, PassPlan, plan_chunk, plan_step, plan_verification
from npu.compiler.shape import (
    Shape,
    check_limits,
    check_shape,
    ctx_pitch,
    most_rows,
    norm_sizes,
    qkv_products,
    residual_pitch,
)
from spec.isa.generated import LINE, WeightFormat, WeightGroup
from spec.isa.operands import TABLE_BYTES, Limits, up
from spec.isa.weight_formats import GROUPED, StreamLayout
from weights.formats.recipe import INT8_WEIGHTS, Kind, WeightRecipe

Place = Literal["auto", "sram", "memory"]
IDS = 4
"""Ids in a word of memory, where a list begins."""
MEMORY_BYTES = 1 << 32
"""That the chip can address."""
BESIDE = 1 << 20
"""Bytes that are kept for programs, and for what parts lose that begin on pages."""
SEQUENCES = 16
"""That share a decode step at most, and rows that a pass verifies: those of the usual array."""
FEW_POSITIONS = 512
"""Texts of fewer positions have the same decode steps."""


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

    def decode(self, positions: int | None, *, logits: bool) -> PassPlan:
        """Return the pass of a decode step in texts of at most `positions`, None for the context.

        Less is read piece by piece, and fewer pieces are there only to be skipped, where the text
        is known to be short: the number is rounded up to a power of two.

        Raises CompileError if the context has not so many positions.
        """
        whole = self.step_with_logits if logits else self.step
        shape = self._shortened(positions)
        if shape is self.shape:
            return whole
        return plan_step(shape, self.limits, self.room, logits=logits)

    def batch(self, sequences: int, positions: int | None) -> PassPlan:
        """Return the pass of a decode step of several sequences; positions as of `decode`.

        Raises CompileError also if it does not fit, or for more sequences than SEQUENCES.
        """
        if not 1 <= sequences <= SEQUENCES:
            raise CompileError(f"batch: given {sequences} sequences, allowed 1 to {SEQUENCES}")
        shape = self._shortened(positions)
        lists = 1 + position_lists(shape)
        return plan_step(
            shape, self.limits, self.room, logits=sequences, sequences=sequences, lists=lists
        )

    def verify(self, rows: int, start: int) -> PassPlan:
        """Return the pass of `rows` tokens from position `start` on, to the logits of all of them.

        Raises CompileError if context or SRAM have no room for them, or for more than SEQUENCES.
        """
        self._check_prompt(rows, start, None)
        if rows > SEQUENCES:
            raise CompileError(f"rows: given {rows} to verify, allowed 1 to {SEQUENCES}")
        return plan_verification(self.shape, self.limits, self.room, start, rows)

    def _shortened(self, positions: int | None) -> Shape:
        """Return the shape for texts of at most so many positions."""
        if positions is None:
            return self.shape
        if not 1 <= positions <= self.shape.context:
            raise CompileError(
                f"positions: given {positions}, allowed 1 to {self.shape.context} (context)"
            )
        most = max(FEW_POSITIONS, 1 << (positions - 1).bit_length())
        return self.shape if most >= self.shape.context else replace(self.shape, context=most)

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


def plan_model(shape: Shape, limits: Limits, place: Place, stream: int | None = None) -> ModelPlan:
    """Plan a model, with the cache where `place` wants it, see `compile_model`.

    `stream` is the bytes of its stream, None for those of int8 weights.

    Raises CompileError if anything does not fit the chip, MemoryFullError if all of it does not fit
    the memory.
    """
    check_limits(limits)
    check_shape(shape, limits)
    if place not in ("auto", "sram", "memory"):
        raise CompileError(f"cache: given {place!r}, allowed 'auto', 'sram', 'memory'")
    if stream is None:
        stream = stream_bytes(shape, limits.edge)
    if place != "memory":
        try:
            cache = cache_layout(shape, limits.edge, limits.sram_bytes)
            steps = _steps(shape, limits, cache.base, ENOUGH if place == "auto" else 1)
        except CompileError:
            if place == "sram":
                raise
        else:
            _check_memory(shape, limits.edge, stream, in_memory=False)
            return ModelPlan(shape, limits, cache, *steps)
    _check_memory(shape, limits.edge, stream, in_memory=True)
    steps = _steps(shape, limits, limits.sram_bytes, 1)
    return ModelPlan(shape, limits, cache_layout(shape, limits.edge, None), *steps)


def _room(cache: CacheLayout, limits: Limits) -> int:
    return limits.sram_bytes if cache.in_memory else cache.base


def _steps(shape: Shape, limits: Limits, room: int, rows: int) -> tuple[PassPlan, PassPlan]:
    """Return the decode steps without and with logits.

    Raises CompileError unless they and prefill fit, the latter with chunks of `rows`.
    """
    with_logits = plan_step(shape, limits, room, logits=True)
    rows = min(rows, shape.context, most_rows(shape, limits))
    last = shape.context - rows
    fits = plan_chunk(shape, limits, room, last, rows, None, logits=True).work.rows
    if fits < rows:
        raise CompileError(f"a chunk of {rows} rows: only {fits} fit into {room} bytes")
    return plan_step(shape, limits, room, logits=False), with_logits


def stream_bytes(shape: Shape, edge: int, weights: WeightRecipe = INT8_WEIGHTS) -> int:
    """Return the bytes of the stream of a model whose weights have these formats."""

    def linear(kind: Kind, inner: int, columns: int) -> int:
        encoding = weights[kind]
        fmt = WeightFormat.INT8 if encoding.format is None else encoding.format
        group = WeightGroup.named(str(encoding.group)) if fmt in GROUPED else WeightGroup.G32
        lines = StreamLayout.of(fmt, group, edge).lines(inner)
        return up(columns, edge) // edge * (8 * edge + LINE * lines)

    def norm(size: int) -> int:
        return up(64 + 4 * up(size), LINE)

    layer = (not shape.wide) * TABLE_BYTES + sum(map(norm, norm_sizes(shape)))
    layer += sum(linear("qkv", shape.hidden, columns) for columns in qkv_products(shape))
    layer += linear("o", ctx_pitch(shape), shape.hidden)
    layer += linear("down", shape.ffn, shape.hidden) + linear("up", shape.hidden, shape.ffn)
    layer += linear("gate", shape.hidden, shape.ffn) * shape.gated
    return shape.layers * layer + norm(shape.hidden) + linear("head", shape.hidden, shape.vocab)


def memory_parts(shape: Shape, edge: int, stream: int, cache: int) -> dict[str, int]:
    """Return the bytes of memory that a model takes, by what they are for.

    Args:
        shape: of the decoder.
        edge: of a tile.
        stream: its bytes.
        cache: its bytes in memory.
    """
    pitch, context = residual_pitch(shape), shape.context
    rotations = up(2 * shape.head_dim) * shape.table_count
    positions = context * (pitch * shape.positions + rotations)
    return {
        "stream": stream,
        "token table": shape.vocab * pitch,
        "positions": positions,
        "K/V cache": cache,
        "ids, tokens, logits and programs": 8 * context + 2 * shape.vocab + BESIDE,
    }


def placed_parts(
    shape: Shape, edge: int, stream: int, context: int, *, in_memory: bool
) -> dict[str, int]:
    """Return `memory_parts` for so many positions, K and V among them if they lie in memory."""
    one = replace(shape, context=context)
    cache = cache_layout(one, edge, None).bytes if in_memory else 0
    return memory_parts(one, edge, stream, cache)


def longest_context(shape: Shape, edge: int, stream: int, *, in_memory: bool) -> int:
    """Return the most positions of a model that the memory has room for, 0 for none."""

    def size(context: int) -> int:
        return sum(placed_parts(shape, edge, stream, context, in_memory=in_memory).values())

    return bisect_right(range(1, shape.context + 1), MEMORY_BYTES, key=size)


def _check_memory(shape: Shape, edge: int, stream: int, *, in_memory: bool) -> None:
    """Raise MemoryFullError, with what would help, if a model exceeds the address space."""
    found = placed_parts(shape, edge, stream, shape.context, in_memory=in_memory)
    size = sum(found.values())
    if size <= MEMORY_BYTES:
        return
    fits = longest_context(shape, edge, stream, in_memory=in_memory)
    help_ = (
        f"a context of up to {fits:,} would fit (max_position_embeddings in config.json)"
        if fits
        else "no context is short enough, narrower --weights or a smaller model may fit"
    )
    listed = ", ".join(f"{name} {number:,}" for name, number in found.items())
    raise MemoryFullError(
        f"memory: given a model of {shape.layers} layers, hidden {shape.hidden}, ffn {shape.ffn}, "
        f"vocabulary {shape.vocab:,}, context {shape.context:,} that takes {size:,} bytes "
        f"({listed}), allowed {MEMORY_BYTES:,}; {help_}"
    )
