# SPDX-License-Identifier: Apache-2.0
"""What running a network takes: programs, bytes, and which step comes when.

A plan knows no compiler: it is made from a compiled network or read from files
(`npu.runtime.plan_files`), and both run in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from npu.compiler.network import CompiledNetwork, Segment
from npu.compiler.stream import Share
from npu.graph.form import Graph, Operation
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


def plan_of(network: CompiledNetwork, origin: Origin | None = None) -> Plan:
    """Return the plan of a compiled network."""
    segments = tuple(map(_segment, network.segments))
    numbers = iter(range(len(segments)))
    steps = tuple(next(numbers) if isinstance(one, Segment) else one.name for one in network.steps)
    taken = {name for one in segments for name in (*one.reads, *one.writes)}
    return Plan(
        _for_running(network.graph),
        steps,
        segments,
        network.limits,
        network.stream,
        network.shares,
        network.constants,
        network.arena,
        {name: network.offsets[name] for name in sorted(taken)},
        origin or Origin(),
    )


def _segment(one: Segment) -> PlannedSegment:
    return PlannedSegment(
        tuple(each.name for each in one.operations),
        one.program.image(),
        one.text,
        one.first_word,
        max((share.offset + share.bytes for share in one.shares), default=0),
        one.sram_bytes,
        one.reads,
        one.writes,
    )


def _for_running(graph: Graph) -> Graph:
    """Return the graph without what only programs and stream need of it."""
    wanted = {*graph.outputs}
    for one in graph.operations:
        if not one.on_chip:
            wanted.update(one.used)
    operations = [replace(one, integers={}) if one.on_chip else one for one in graph.operations]
    tensors = [
        replace(tensor, data=None)
        for name, tensor in graph.tensors.items()
        if tensor.constant and name not in wanted
    ]
    return graph.with_operations(operations, tensors)
