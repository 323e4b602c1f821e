# SPDX-License-Identifier: Apache-2.0
"""A whole model compiled: its image and tables, its cache, and programs of every kind for it."""

from dataclasses import asdict, dataclass, field
from typing import Literal

from npu.asm.program import Program
from npu.compiler.builder import ProgramBuilder
from npu.compiler.cache import MEMORY_BYTES, CacheLayout, cache_layout
from npu.compiler.decode import emit_decode
from npu.compiler.errors import CompileError
from npu.compiler.image import build_image, build_sections
from npu.compiler.layout import find_layout, make_passes
from npu.compiler.pack import pack, unpack
from npu.compiler.prefill import ENOUGH, choose_chunk, emit_prefill
from npu.compiler.shape import Shape, check_limits, check_shape
from npu.compiler.stream import Share
from npu.compiler.tensors import TensorRef, at_position
from npu.isa.operands import Limits, up
from weights.model import QuantizedModel

Place = Literal["auto", "sram", "memory"]


@dataclass(frozen=True)
class CompiledProgram:
    """A program for a compiled model.

    Attributes:
        program, text: its words and its text, which assembles to the same words.
        shares: what it takes from the stream, in order.
        tensors: where each tensor is written; those of a decode step depend on the position, see
            `tensors_at`. The logits have the number of layers as their layer.
        sram_bytes: bytes of SRAM that it uses from address 0 on, without the cache.
        rows: of its prompt; 0 for a decode step.
        shape, edge: of the decoder and the chip.

    """

    program: Program
    text: str
    shares: tuple[Share, ...]
    tensors: tuple[TensorRef, ...]
    sram_bytes: int
    rows: int
    shape: Shape
    edge: int

    def tensors_at(self, pos: int) -> list[TensorRef]:
        """Return the tensors of a decode step at a position; columns of scores are positions."""
        return at_position(self.tensors, pos, self.shape.first_key(pos, self.edge))


@dataclass(frozen=True)
class CompiledModel:
    """All that the chip and its host need of a model.

    Attributes:
        shape: the decoder.
        limits: the chip that it is made for.
        stream, shares: the one parameter image of all programs.
        sections: tables in memory: "tokens" at BASE2, "positions" at BASE3, "rope" at BASE4; the
            latter two where the model has them.
        cache: where K and V go.
        scales: real values of units, as in QuantizedModel.

    Programs read token ids (u32) from BASE0, write token ids (u32) to BASE1 and, with logits, int16
    logits to BASE5. The host sets the registers of `registers`, TOKEN, POS, LOOPLEFT and EOS.
    """

    shape: Shape
    limits: Limits
    stream: bytes = field(repr=False)
    shares: tuple[Share, ...] = field(repr=False)
    sections: dict[str, bytes] = field(repr=False)
    cache: CacheLayout
    scales: dict[str, float] = field(repr=False)

    @property
    def room(self) -> int:
        """Bytes of SRAM for programs."""
        return self.limits.sram_bytes if self.cache.in_memory else self.cache.base

    def registers(self, kv_base: int = 0) -> dict[str, int]:
        """Return the start values that follow from the model.

        The names are those of golden.machine.StartState: window, kv_in_memory (0 or 1), kv_base,
        kv_layer, kv_head, kv_voff, kv_cap. `kv_base` is the address of a cache in memory, a
        multiple of 256; it is not used for a cache in SRAM.
        """
        cache = self.cache
        return {
            "window": self.shape.window,
            "kv_in_memory": int(cache.in_memory),
            "kv_base": kv_base if cache.in_memory else cache.base,
            "kv_layer": cache.layer,
            "kv_head": cache.head,
            "kv_voff": cache.v_offset,
            "kv_cap": cache.capacity,
        }

    def decode(self, *, logits: bool = False) -> CompiledProgram:
        """Return one decode step for any position, repeated while LOOPLEFT lasts.

        It takes TOKEN at POS, appends its K and V, and writes the next token to BASE1 and TOKEN;
        with `logits` also the int16 logits, 2 * vocab bytes, to BASE5.
        """
        builder = self._builder()
        used = emit_decode(builder, self.shape, self._by_name(), self.room, logits=logits)
        builder.loop(0)
        return self._finish(builder, used, 0)

    def prefill(
        self, rows: int, start: int = 0, *, logits: bool = False, chunk: int | None = None
    ) -> CompiledProgram:
        """Return a program for `rows` token ids at BASE0, at positions from `start` on.

        It appends K and V of all rows and writes the token after the last one to BASE1 and TOKEN;
        with `logits` also the int16 logits of the last row to BASE5. POS ends at the first row of
        the last chunk. `chunk` is the largest number of rows that go through the layers together.

        Raises CompileError for rows that the context or the SRAM have no room for.
        """
        builder = self._builder()
        used = self._prefill(builder, rows, start, logits, chunk)
        builder.emit("END")
        return self._finish(builder, used, rows)

    def generate(self, rows: int, start: int = 0, *, chunk: int | None = None) -> CompiledProgram:
        """Return prefill and decode in one program: LOOPLEFT + 1 tokens, or up to EOS, to BASE1.

        Arguments and errors as of `prefill`.
        """
        builder = self._builder()
        used = self._prefill(builder, rows, start, False, chunk)
        builder.set("POS", start + rows - 1)
        target = builder.loop(None)
        builder.comment("decode")
        step = emit_decode(builder, self.shape, self._by_name(), self.room, logits=False)
        builder.loop(target)
        return self._finish(builder, max(used, step), rows)

    def packed(self) -> bytes:
        """Return image, tables and all that `CompiledModel.load` needs as one packed file."""
        info = {
            "shape": self.shape.to_json(),
            "limits": asdict(self.limits),
            "cache": asdict(self.cache),
            "scales": self.scales,
        }
        return pack(
            self.stream, self.shares, edge=self.limits.edge, sections=self.sections, info=info
        )

    @classmethod
    def load(cls, data: bytes, *, filename: str = "<bytes>") -> "CompiledModel":
        """Return the model of a packed file. Raises PackError, or CompileError for another file."""
        file = unpack(data, filename=filename)
        try:
            shape = Shape.from_json(file.info["shape"])
            limits = Limits(**file.info["limits"])
            cache = CacheLayout(**file.info["cache"])
            scales = dict(file.info["scales"])
        except (KeyError, TypeError) as error:
            raise CompileError(f"{filename}: JSON: no compiled model: {error}") from None
        return cls(shape, limits, file.stream, file.shares, file.sections, cache, scales)

    def _builder(self) -> ProgramBuilder:
        return ProgramBuilder(self.limits)

    def _by_name(self) -> dict[str, Share]:
        return {share.name: share for share in self.shares}

    def _prefill(
        self, builder: ProgramBuilder, rows: int, start: int, logits: bool, chunk: int | None
    ) -> int:
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
        return emit_prefill(
            builder,
            self.shape,
            self._by_name(),
            self.room,
            rows,
            start,
            most=chunk,
            logits=logits,
        )

    def _finish(self, builder: ProgramBuilder, used: int, rows: int) -> CompiledProgram:
        program, text = builder.program()
        return CompiledProgram(
            program,
            text,
            tuple(builder.shares),
            tuple(builder.tensors),
            used,
            rows,
            self.shape,
            self.limits.edge,
        )


def compile_model(
    model: QuantizedModel, limits: Limits | None = None, *, cache: Place = "auto"
) -> CompiledModel:
    """Compile a whole decoder for a chip.

    Args:
        model: the quantised model.
        limits: the chip.
        cache: where K and V go: "sram", "memory", or "auto": in SRAM if the programs lose nothing
            by it. Programs are the same but for the SRAM that they may use.

    Raises:
        CompileError: something does not fit; it says what, how much is needed and how much there
            is.

    """
    chip = limits or Limits()
    shape = Shape.of(model)
    layout = plan_model(shape, chip, cache)
    image = build_image(model, chip.edge)
    sections = build_sections(model)
    return CompiledModel(
        shape, chip, image.stream, image.shares, sections, layout, dict(model.scales)
    )


def plan_model(shape: Shape, limits: Limits, place: Place) -> CacheLayout:
    """Return where the cache goes. Raises CompileError if anything does not fit the chip."""
    check_limits(limits)
    check_shape(shape, limits)
    if place not in ("auto", "sram", "memory"):
        raise CompileError(f"cache: given {place!r}, allowed 'auto', 'sram', 'memory'")
    _check_image(shape, limits.edge)
    return _place_cache(shape, limits, place)


def image_bytes(shape: Shape, edge: int) -> int:
    """Return the bytes of stream and tables."""

    def linear(inner: int, columns: int) -> int:
        return up(columns, edge) * (8 + up(inner, edge))

    norm = 64 + 4 * up(shape.hidden)
    layer = 2 * norm + 256 + linear(shape.hidden, shape.qkv_pitch)
    layer += linear(shape.ctx_pitch, shape.hidden) + linear(shape.ffn, shape.hidden)
    layer += (2 if shape.gated else 1) * linear(shape.hidden, shape.ffn)
    size = shape.layers * layer + norm + linear(shape.hidden, shape.vocab)
    size += shape.vocab * shape.residual_pitch
    size += shape.context * shape.residual_pitch * shape.positions
    return size + shape.context * up(2 * shape.head_dim) * shape.rope


def _check_image(shape: Shape, edge: int) -> None:
    """Raise CompileError if stream and tables exceed the address space."""
    size = image_bytes(shape, edge)
    if size > MEMORY_BYTES:
        raise CompileError(
            f"the image of {shape.layers} layers, hidden {shape.hidden}, ffn {shape.ffn}, "
            f"vocabulary {shape.vocab} needs {size} bytes of memory, there are {MEMORY_BYTES}"
        )


def _place_cache(shape: Shape, limits: Limits, place: Place) -> CacheLayout:
    """Return where the cache goes, with room left for the programs. Raises CompileError."""
    if place != "memory":
        try:
            layout = cache_layout(shape, limits.edge, limits.sram_bytes)
            _check_room(shape, limits, layout.base, ENOUGH if place == "auto" else 1)
        except CompileError:
            if place == "sram":
                raise
        else:
            return layout
    _check_room(shape, limits, limits.sram_bytes, 1)
    return cache_layout(shape, limits.edge, None)


def _check_room(shape: Shape, limits: Limits, room: int, rows: int) -> None:
    """Raise CompileError unless decode and prefill fit, the latter with chunks of `rows`."""
    steps = make_passes(shape, 1, shape.keys(limits.edge), logits=True)
    find_layout(shape, steps, limits, room, "a decode step")
    rows = min(rows, shape.context, limits.acc_rows)
    last = shape.context - rows
    work, _ = choose_chunk(shape, limits, room, last, rows, None, True)
    if work.rows < rows:
        raise CompileError(f"a chunk of {rows} rows: only {work.rows} fit into {room} bytes")
