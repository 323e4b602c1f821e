# SPDX-License-Identifier: Apache-2.0
"""What running a network takes: programs, bytes, and which step comes when.

A plan knows no compiler: `npu.planner` makes it, or it is read from files
(`npu.runtime.plan_files`), and both run in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from npu.graph.form import Graph, Operation
from npu.image import Share
from npu.isa.instruction import Instruction, decode_image
from npu.isa.operands import Limits


@dataclass(frozen=True)
class PlannedSegment:
    """Operations that one program executes.

    Attributes:
        operations: their names, in order.
        image: the program, ending with END.
        text: the program as text, "" if it is not at hand.
        first_word: index of the first word of each operation that has instructions, in order.
        stream_bytes: of the stream from its beginning on that the program reads from.
        sram_bytes: of SRAM that it uses, from address 0.
        reads, writes: tensors in the arena that it takes and leaves.
    """

    operations: tuple[str, ...]
    image: bytes
    text: str
    first_word: Mapping[str, int]
    stream_bytes: int
    sram_bytes: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]

    @property
    def program(self) -> list[Instruction]:
        """Its words."""
        return decode_image(self.image)


@dataclass(frozen=True)
class Origin:
    """Where a plan comes from.

    Attributes:
        file: as it was named.
        sha256: of its content, "" if there was no file.
        calibration: "given" for a network that was quantised there; the number of samples and
            their SHA-256; or "random:N".
    """

    file: str = ""
    sha256: str = ""
    calibration: str = "given"


@dataclass(frozen=True)
class Plan:
    """A network that can be run.

    Attributes:
        graph: types of all tensors, operations with their places; of constants only those that
            operations of the host read have values.
        steps: in order; the number of a segment, or the name of an operation of the host.
        segments: what the chip executes.
        limits: of the chip.
        stream, shares: parameters of all segments, and what they consist of.
        constants: what segments load from beside the stream.
        arena: bytes of the tensors in memory.
        offsets: where in the arena each tensor lies that segments take or leave there.
        origin: where it comes from.
    """

    graph: Graph
    steps: tuple[int | str, ...]
    segments: tuple[PlannedSegment, ...]
    limits: Limits
    stream: bytes
    shares: tuple[Share, ...]
    constants: bytes
    arena: int
    offsets: Mapping[str, int]
    origin: Origin = field(default_factory=Origin)

    def operation(self, name: str) -> Operation:
        """Return an operation of the graph."""
        return next(one for one in self.graph.operations if one.name == name)
