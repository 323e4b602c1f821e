# SPDX-License-Identifier: Apache-2.0
"""A whole model compiled: its image and tables, its cache, and programs of every kind for it."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

import numpy as np

from npu.asm.program import Program
from npu.compiler.cache_layout import CacheLayout
from npu.compiler.decoder_layer import Parameters
from npu.compiler.decoder_program import (
    emit_batch,
    emit_prompt,
    emit_sink,
    emit_step,
    emit_verification,
)
from npu.compiler.errors import CompileError
from npu.compiler.model_plan import IDS, ModelPlan, Place, plan_model
from npu.compiler.parameter_image import build_image, build_sections
from npu.compiler.pass_layout import position_lists
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.sequence_registers import SequenceRegisters
from npu.compiler.shape import (
    Numbers,
    Shape,
    check_model,
    first_key,
    from_json,
    numbers_of,
    to_json,
)
from npu.compiler.stream import refused_format
from npu.compiler.tensor_map import TensorRef, at_position
from npu.image import StreamShare, pieces_of_pack, unpack
from spec.isa.generated import WeightFormat, WeightGroup
from spec.isa.operands import Limits, up
from spec.isa.weight_formats import StreamLayout
from weights.model import QuantizedModel

__all__ = ["CompiledModel", "CompiledProgram", "Place", "compile_model", "plan_model"]


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
    shares: tuple[StreamShare, ...]
    tensors: tuple[TensorRef, ...]
    sram_bytes: int
    rows: int
    shape: Shape
    edge: int

    def tensors_at(self, pos: int) -> list[TensorRef]:
        """Return the tensors of a decode step at a position; columns of scores are positions."""
        windows = [self.shape.window_of(layer) for layer in range(self.shape.layers)]
        first = [first_key(window, pos, self.edge) for window in windows]
        return at_position(self.tensors, pos, [*first, 0])  # the logits are of no layer


@dataclass(frozen=True)
class CompiledModel:
    """All that the chip and its host need of a model.

    Attributes:
        plan: what its programs are emitted from.
        numbers: those of each layer that stand in instructions.
        stream, shares: the one parameter image of all programs.
        sections: tables in memory: "tokens" at BASE2, "positions" at BASE3, "rope" at BASE4; the
            latter two where the model has them.
        scales: real values of units, as in QuantizedModel.
        sink: token at position 0, whose keys and values are the table "sink" at BASE6: each program
            of a text's beginning puts them into the cache. None for nothing.

    Programs read token ids (u32) from BASE0, write token ids (u32) to BASE1 and, with logits, int16
    logits to BASE5. The host sets the registers of `registers`, TOKEN, POS, LOOPLEFT and EOS.
    """

    plan: ModelPlan
    numbers: tuple[Numbers, ...] = field(repr=False)
    stream: bytes = field(repr=False)
    shares: tuple[StreamShare, ...] = field(repr=False)
    sections: dict[str, bytes] = field(repr=False)
    scales: dict[str, float] = field(repr=False)
    sink: int | None = None

    @property
    def first(self) -> int:
        """The position that a text begins at."""
        return int(self.sink is not None)

    @property
    def shape(self) -> Shape:
        """The decoder."""
        return self.plan.shape

    @property
    def limits(self) -> Limits:
        """The chip that it is made for."""
        return self.plan.limits

    @property
    def cache(self) -> CacheLayout:
        """Where K and V go."""
        return self.plan.cache

    @property
    def room(self) -> int:
        """Bytes of SRAM for programs."""
        return self.plan.room

    @property
    def layouts(self) -> dict[str, StreamLayout]:
        """How weights in narrow formats lie in the stream, by the last part of a share's name."""
        found = {}
        for share in self.shares:
            if share.format:
                group = WeightGroup.named(share.group) if share.group else WeightGroup.G32
                layout = StreamLayout.of(WeightFormat.named(share.format), group, self.limits.edge)
                found[share.name.rpartition(".")[2]] = layout
        return found

    def registers(self, kv_base: int = 0) -> dict[str, int]:
        """Return the start values that follow from the model.

        The names are those of spec.regs.StartState: window, kv_in_memory (0 or 1), kv_base,
        kv_layer, kv_head, kv_voff, kv_cap. `kv_base` is the address of a cache in memory, a
        multiple of 256; it is not used for a cache in SRAM.
        """
        cache = self.cache
        return {
            "window": self.shape.window_of(0),
            "kv_in_memory": int(cache.in_memory),
            "kv_base": kv_base if cache.in_memory else cache.base,
            "kv_layer": cache.layer,
            "kv_head": cache.head,
            "kv_voff": cache.v_offset,
            "kv_cap": cache.capacity,
        }

    def decode(self, *, logits: bool = False, positions: int | None = None) -> CompiledProgram:
        """Return one decode step for any position, repeated while LOOPLEFT lasts.

        It takes TOKEN at POS, appends its K and V, and writes the next token to BASE1 and TOKEN;
        with `logits` also the int16 logits, 2 * vocab bytes, to BASE5. Of a text that takes at most
        so many `positions` it is faster; None is the context.

        Raises CompileError for positions that the context does not have.
        """
        builder = self._builder()
        used = self._emit_step(builder, positions, logits=logits)
        builder.loop(0)
        return self._finish(builder, used, 0)

    def batch(
        self,
        ahead: Sequence[int],
        caches: Sequence[int],
        *,
        positions: int | None = None,
    ) -> CompiledProgram:
        """Return one decode step of several sequences, whose weights pass by once.

        It takes the tokens and positions of `batch_lists` from BASE0, appends K and V to each
        sequence's cache, and writes the int16 logits of each, up(2 * vocab) bytes, to BASE5. POS is
        the position of the first sequence, KVBASE its cache.

        Args:
            ahead: positions of each sequence, counted from the first one's.
            caches: bytes from the first one's cache to each one's.
            positions: as of `decode`, of the longest one.

        Raises:
            CompileError: no sequences, or more than fit; positions that the context does not have.

        """
        builder = self._builder()
        plan = self.plan.batch(len(ahead), positions)
        registers = SequenceRegisters(builder, tuple(ahead), tuple(caches))
        emit_batch(builder, self.shape, self._parameters, plan, registers)
        builder.end()
        return self._finish(builder, plan.layout.sram_bytes, 0)

    def verify(self, rows: int, start: int) -> CompiledProgram:
        """Return a program for `rows` token ids at BASE0, at positions from `start` on.

        It appends K and V of all rows, over what may be there, and writes the int16 logits of each,
        up(2 * vocab) bytes, to BASE5.

        Raises CompileError for rows that the context or the SRAM have no room for.
        """
        builder, plan = self._builder(), self.plan.verify(rows, start)
        emit_verification(builder, self.shape, self._parameters, plan)
        builder.end()
        return self._finish(builder, plan.layout.sram_bytes, rows)

    def batch_lists(self, tokens: Sequence[int], positions: Sequence[int]) -> bytes:
        """Return what the program of a batch finds at BASE0: tokens, and rows of tables."""
        lists = np.zeros((1 + position_lists(self.shape), up(len(tokens), IDS)), "<u4")
        lists[0, : len(tokens)] = tokens
        for number, one in enumerate(lists[1:]):
            one[: len(tokens)] = np.array(positions) + number * self.shape.context
        return lists.tobytes()

    def prefill(
        self,
        rows: int,
        start: int | None = None,
        *,
        logits: bool = False,
        chunk: int | None = None,
    ) -> CompiledProgram:
        """Return a program for `rows` token ids at BASE0, at positions from `start` on.

        None is the beginning of a text.

        It appends K and V of all rows and writes the token after the last one to BASE1 and TOKEN;
        with `logits` also the int16 logits of the last row to BASE5. POS ends at the first row of
        the last chunk. `chunk` is the largest number of rows that go through the layers together.

        Raises CompileError for rows that the context or the SRAM have no room for.
        """
        builder = self._builder()
        used = self._emit_prompt(builder, rows, start, chunk, logits=logits)
        builder.end()
        return self._finish(builder, used, rows)

    def generate(
        self,
        rows: int,
        start: int | None = None,
        *,
        chunk: int | None = None,
        positions: int | None = None,
    ) -> CompiledProgram:
        """Return prefill and decode in one program: LOOPLEFT + 1 tokens, or up to EOS, to BASE1.

        Arguments and errors as of `prefill` and `decode`.
        """
        builder = self._builder()
        used = self._emit_prompt(builder, rows, start, chunk, logits=False)
        builder.set("POS", (self.first if start is None else start) + rows - 1)
        target = builder.loop(None)
        builder.comment("decode")
        step = self._emit_step(builder, positions, logits=False)
        builder.loop(target)
        return self._finish(builder, max(used, step), rows)

    def packed(self) -> bytes:
        """Return image, tables and all that `CompiledModel.load` needs as one packed file."""
        return b"".join(self.pieces())

    def pieces(self) -> list[bytes]:
        """Return the packed file in pieces: a large image is not copied."""
        info = {
            "shape": to_json(self.shape, self.numbers),
            "limits": asdict(self.limits),
            "cache": asdict(self.cache),
            "scales": self.scales,
        } | ({} if self.sink is None else {"sink": self.sink})
        return pieces_of_pack(
            self.stream, self.shares, edge=self.limits.edge, sections=self.sections, info=info
        )

    @classmethod
    def load(
        cls, data: bytes, *, filename: str = "<bytes>", chip: Limits | None = None
    ) -> "CompiledModel":
        """Return the model of a packed file.

        Args:
            data: the file.
            filename: for messages.
            chip: that runs it; None is the one that it was compiled for.

        Raises:
            PackError: a damaged file, or one of another tile edge.
            CompileError: no model, weights in a format that the chip lacks, a cache without room.

        """
        file = unpack(data, filename=filename, edge=None if chip is None else chip.edge)
        try:
            shape, numbers = from_json(file.info["shape"])
            limits = chip or Limits(**file.info["limits"])
            _check_formats(file.shares, limits)
            plan = ModelPlan.with_cache(CacheLayout(**file.info["cache"]), shape, limits)
            scales = dict(file.info["scales"])
            sink = file.info.get("sink")
        except (KeyError, TypeError) as error:
            raise CompileError(f"{filename}: JSON: no compiled model: {error}") from None
        except CompileError as error:
            raise CompileError(f"{filename}: {error}") from None
        return cls(plan, numbers, file.stream, file.shares, file.sections, scales, sink)

    def _builder(self) -> ProgramBuilder:
        return ProgramBuilder(self.limits, self.shape.window_of(0))

    @property
    def _parameters(self) -> Parameters:
        return Parameters.of(self.numbers, self.shares)

    def _emit_step(self, builder: ProgramBuilder, positions: int | None, *, logits: bool) -> int:
        """Emit a decode step; return the bytes of SRAM that it uses."""
        plan = self.plan.decode(positions, logits=logits)
        emit_step(builder, self.shape, self._parameters, plan)
        return plan.layout.sram_bytes

    def _emit_prompt(
        self,
        builder: ProgramBuilder,
        rows: int,
        start: int | None,
        chunk: int | None,
        *,
        logits: bool,
    ) -> int:
        """Emit a prompt; return the bytes of SRAM that it uses."""
        start = self.first if start is None else start
        chunks = self.plan.prompt(rows, start, chunk=chunk, logits=logits)
        if self.first and start == self.first:
            emit_sink(builder, self.shape, chunks[0])
        emit_prompt(builder, self.shape, self._parameters, chunks)
        return max(plan.layout.sram_bytes for plan in chunks)

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


def _check_formats(shares: tuple[StreamShare, ...], limits: Limits) -> None:
    """Raise CompileError naming the first layer whose weights the chip cannot expand."""
    for share in shares:
        if why := refused_format(share.format, share.group, limits):
            raise CompileError(f"{share.name}: {why}")


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
    check_model(model)
    image = build_image(model, chip.edge)
    plan = plan_model(model.shape, chip, cache, len(image.stream))
    _check_formats(image.shares, chip)
    sections = build_sections(model)
    return CompiledModel(
        plan,
        numbers_of(model),
        image.stream,
        image.shares,
        sections,
        dict(model.scales),
        None if model.sink is None else model.sink.token,
    )
