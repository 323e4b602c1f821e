# SPDX-License-Identifier: Apache-2.0
"""What running a network takes: programs, bytes, and which step comes when.

A plan knows no compiler: `npu.planner` makes it, or it is read from files
(`npu.runtime.plan_files`), and both run in the same way. It holds no absolute address:
`npu.runtime.prepare` binds it to addresses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from npu.graph.form import Array, Graph, Operation, TensorType
from npu.image import StreamShare
from spec.isa.generated import Opcode
from spec.isa.instruction import Instruction, decode_image
from spec.isa.operands import Limits

if TYPE_CHECKING:
    from npu.runtime.decoder import Decoder

ALIGNMENT = 64
"""Of the arena and of every part of the image in memory."""
CACHE_ALIGNMENT = 256
SEQUENCED = (Opcode.NOP, Opcode.BARRIER, Opcode.PFX, Opcode.SET, Opcode.LOOP, Opcode.END)
"""What no engine executes."""


@dataclass(frozen=True)
class PlannedTensor:
    """What lies in the arena, row behind row, rows padded to whole words.

    Attributes:
        name: of a tensor of the graph; `type` is what the graph says of it.
        offset, bytes: where.
        first, last: operations, counted over the whole plan in the order of its steps, from and up
            to which the place is taken.
    """

    name: str
    type: TensorType
    offset: int
    bytes: int
    first: int
    last: int


class BaseArea(StrEnum):
    """What a base register points into."""

    ARENA = "arena"
    CONSTANTS = "constants"


@dataclass(frozen=True, slots=True)
class Base:
    """Where a base register points to.

    Attributes:
        area: into what.
        offset: bytes from its beginning.
    """

    area: BaseArea
    offset: int = 0


@dataclass(frozen=True)
class PlannedSegment:
    """Operations that one program executes.

    Attributes:
        operations: their names, in order.
        image: the program, ending with END.
        text: the program as text, "" if it is not at hand.
        first_word: index of the first word of each operation that has instructions, in order.
        bases: where the base registers that it uses point to, by number.
        stream_bytes: of the stream from its beginning on that the program reads from.
        sram_bytes: of SRAM that it uses, from address 0.
        reads, writes: tensors in the arena that it takes and leaves.
        registers: start values of others, by their names in StartState; `kv_base` of a cache in
            memory counts from the beginning of the arena.
    """

    operations: tuple[str, ...]
    image: bytes
    text: str
    first_word: Mapping[str, int]
    bases: Mapping[int, Base]
    stream_bytes: int = 0
    sram_bytes: int = 0
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    registers: Mapping[str, int] = field(default_factory=dict)

    @cached_property
    def program(self) -> list[Instruction]:
        """Its words."""
        return decode_image(self.image)

    @cached_property
    def owners(self) -> list[str]:
        """The operation that each word belongs to, "" behind the last one.

        What follows the last instruction of an engine, the restored stream and END, is the end.
        """
        program = self.program
        count = len(program)
        starts = sorted((at, name) for name, at in self.first_word.items())
        names = [""] * count
        for index, (at, name) in enumerate(starts):
            stop = starts[index + 1][0] if index + 1 < len(starts) else count
            names[at:stop] = [name] * (stop - at)
        last = count - 1
        while last >= 0 and program[last].opcode in SEQUENCED:
            last -= 1
        return names[: last + 1] + [""] * (count - last - 1)


class Action(StrEnum):
    """What a step does."""

    LAUNCH = "launch"
    HOST = "host"
    PORT = "port"
    PACK = "pack"
    UNPACK = "unpack"


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step.

    Attributes:
        action: what it does: starts a segment, evaluates an operation on the host or by the
            command port, puts a tensor into the arena or takes it from there.
        of: the number of a segment, or the name of an operation or tensor.
        reads, writes: tensors; those of a launch are in the arena, others with the host, and a
            tensor that is packed or unpacked is in both behind the step.
    """

    action: Action
    of: int | str
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def segment(self) -> int:
        """The segment of a launch, -1 of another step."""
        return self.of if isinstance(self.of, int) else -1


@dataclass(frozen=True)
class Origin:
    """Where a plan comes from.

    Attributes:
        file: its name, "" if there was none.
        sha256: of its content, "" if there was no file.
        calibration: "given" for a network that was quantised there; the number of samples and
            their SHA-256; or "random:N".
        compiler: version of Tessera.
    """

    file: str = ""
    sha256: str = ""
    calibration: str = "given"
    compiler: str = ""


@dataclass(frozen=True)
class Plan:
    """A network that can be run.

    Attributes:
        graph: types of all tensors, operations with their places; of constants only those that
            operations of the host read have values.
        steps: in order.
        segments: what the chip executes.
        limits: of the chip.
        stream, shares: parameters of all segments, and what they consist of.
        constants: what segments load from beside the stream.
        arena: bytes of the tensors in memory.
        tensors: what lies there, by offset.
        origin: where it comes from.
        decoder: what the plan of a decoder is made from, None for a network of operations.
    """

    graph: Graph
    steps: tuple[PlanStep, ...]
    segments: tuple[PlannedSegment, ...]
    limits: Limits
    stream: bytes
    shares: tuple[StreamShare, ...]
    constants: bytes
    arena: int
    tensors: tuple[PlannedTensor, ...]
    origin: Origin = field(default_factory=Origin)
    decoder: Decoder | None = None

    @property
    def alignment(self) -> int:
        """Of the arena: addresses of a cache are multiples of 256."""
        cached = self.decoder is not None and self.decoder.cache_bytes
        return CACHE_ALIGNMENT if cached else ALIGNMENT

    @cached_property
    def places(self) -> dict[str, PlannedTensor]:
        """What lies in the arena, by name."""
        return {one.name: one for one in self.tensors}

    @cached_property
    def host_constants(self) -> dict[str, Array]:
        """The constants that operations beside the programs read, by name."""
        tensors = self.graph.tensors.items()
        return {name: tensor.data for name, tensor in tensors if tensor.data is not None}

    @property
    def products(self) -> dict[int, PlanStep]:
        """The steps that are products on the command port, by number."""
        return {i: step for i, step in enumerate(self.steps) if step.action is Action.PORT}

    @cached_property
    def operations(self) -> dict[str, Operation]:
        """The operations of the graph, by name."""
        return {op.name: op for op in self.graph.operations}

    def operation(self, name: str) -> Operation:
        """Return an operation of the graph."""
        return self.operations[name]

    @property
    def launches(self) -> Iterator[int]:
        """The segments in the order in which they start."""
        return (step.segment for step in self.steps if step.action is Action.LAUNCH)

    @cached_property
    def positions(self) -> dict[str, int]:
        """The number of each operation in the order of the steps."""
        names: list[str] = []
        for step in self.steps:
            if step.action is Action.LAUNCH:
                names += self.segments[step.segment].operations
            elif step.action in (Action.HOST, Action.PORT):
                names.append(str(step.of))
        return {name: number for number, name in enumerate(names)}
