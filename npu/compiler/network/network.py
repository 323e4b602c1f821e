# SPDX-License-Identifier: Apache-2.0
"""A whole network compiled: segments of the chip, operations of the host, and what both share."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from npu.asm.program import Program
from npu.compiler.errors import CompileError
from npu.compiler.network.aliasing import laid, lay_out
from npu.compiler.network.emission import Addresses, Constants, Emission, is_large
from npu.compiler.network.kernel import MisfitError
from npu.compiler.network.layout import Layout, StorageView
from npu.compiler.network.lowering import lower, move_to_host
from npu.compiler.network.residence import Lifetime, Residence, settle
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.sram_allocation import SramBuffer, place, top
from npu.compiler.stream import StreamWriter
from npu.compiler.tensor_map import TensorRef
from npu.graph.form import Graph, Operation
from npu.image import StreamShare
from spec.isa.operands import Limits, up

ARENA_ALIGNMENT = 64


@dataclass(frozen=True)
class Segment:
    """Operations that one program executes.

    Attributes:
        operations: in order.
        program, text: its words, ending with END, and its text.
        shares: what it takes from the stream, in the order in which it takes it.
        first_word: for each operation that emits instructions the index of its first word.
        sram_bytes: of SRAM that it uses, from address 0.
        reads, writes: tensors in the arena that it takes and leaves.
        tensors: where those appear that operations make inside themselves.
    """

    operations: tuple[Operation, ...]
    program: Program
    text: str
    shares: tuple[StreamShare, ...]
    first_word: Mapping[str, int]
    sram_bytes: int
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    tensors: tuple[TensorRef, ...] = ()


@dataclass(frozen=True, slots=True)
class Storage:
    """A place in the arena.

    Attributes:
        offset, bytes: where it is, and its rows, padded to whole words.
        first, last: operations, counted over the whole network in the order in which they run,
            between which the place is taken.
    """

    offset: int
    bytes: int
    first: int
    last: int


@dataclass(frozen=True)
class CompiledNetwork:
    """A network as segments and operations of the host, in order.

    Attributes:
        graph: what was compiled.
        steps: a Segment, or an operation that the host executes.
        limits: of the chip that it is for.
        stream, shares: parameters of all segments, and what they consist of.
        constants: what segments load from beside the stream.
        arena: bytes of the tensors in memory.
        storages: what lies in the arena, by the name of its tensor, row behind row: what segments
            take and leave there, and what has no room in SRAM.
    """

    graph: Graph
    steps: tuple[Segment | Operation, ...]
    limits: Limits
    stream: bytes
    shares: tuple[StreamShare, ...]
    constants: bytes
    arena: int
    storages: Mapping[str, Storage]

    @property
    def offsets(self) -> dict[str, int]:
        """Where in the arena each storage lies."""
        return {name: one.offset for name, one in self.storages.items()}

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The segments."""
        return tuple(step for step in self.steps if isinstance(step, Segment))

    def digest(self) -> str:
        """Return the SHA-256 of programs, stream and constants: equal for equal networks."""
        whole = hashlib.sha256()
        for segment in self.segments:
            whole.update(segment.program.image())
        whole.update(self.stream)
        whole.update(self.constants)
        return whole.hexdigest()


def compile_network(
    graph: Graph, limits: Limits | None = None, *, split: Collection[str] = ()
) -> CompiledNetwork:
    """Compile a quantised and fused graph.

    A move that fits in no way is made by the host, on the integers as they are.

    Args:
        graph: to compile.
        limits: of the chip, the standard one if None.
        split: operations of the chip behind which a segment ends.

    Raises:
        CompileError: naming the operation that fits in no way, or that `split` names in vain.
    """
    lowered = lower(graph)
    while True:
        try:
            return _Compilation(lowered, limits or Limits(), frozenset(split)).network()
        except MisfitError as error:
            lowered = move_to_host(lowered, error)


def groups_of(
    graph: Graph, inside: Callable[[Operation], bool] = lambda one: one.on_chip
) -> list[list[Operation]]:
    """Return the operations in groups that run one behind the other, inside or outside as a whole.

    An operation goes into the earliest group of its side behind those whose results it takes.
    """
    level: dict[str, int] = {}
    groups: list[list[Operation]] = []
    for op in graph.operations:
        at = 0
        for name in op.used:
            if name in level:
                at = max(at, level[name])
        while at < len(groups) and inside(groups[at][0]) != inside(op):
            at += 1
        if at == len(groups):
            groups.append([])
        groups[at].append(op)
        for name in op.outputs:
            level[name] = at
    return groups


def split_behind(groups: list[list[Operation]], names: Collection[str]) -> list[list[Operation]]:
    """Return the groups, those of the chip cut behind operations of these names."""
    known = [one.name for group in groups for one in group if one.on_chip]
    for name in names:
        if name not in known:
            raise CompileError(
                f"split: given {name!r}, allowed are operations of the chip: "
                f"{', '.join(known) or 'there are none'}"
            )
    found: list[list[Operation]] = []
    for group in groups:
        found.append([])
        for one in group:
            if found[-1] and found[-1][-1].name in names and one.on_chip:
                found.append([])
            found[-1].append(one)
    return found


@dataclass
class _Compilation:
    graph: Graph
    limits: Limits
    split: frozenset[str] = frozenset()

    def network(self) -> CompiledNetwork:
        graph = self.graph
        groups = split_behind(groups_of(graph), self.split)
        outside = self._outside(groups)
        chip = [group for group in groups if group[0].on_chip]
        layout = lay_out(graph, [one for group in chip for one in group], outside)
        self._constants = Constants()
        self._stream = StreamWriter()
        offsets = {
            view.storage: self._constants.add(self._image(name, view))
            for name, view in layout.views.items()
            if graph[name].constant and view.storage == name
        }
        residences = [
            settle(
                graph,
                layout,
                group,
                [self._reads(one) for one in group],
                outside | frozenset(offsets),
                self.limits,
            )
            for group in chip
        ]
        arena, storages = self._arena(groups, layout, residences, outside, offsets)
        memory = {name: one.offset for name, one in storages.items()}
        steps: list[Segment | Operation] = []
        number = 0
        for group in groups:
            if not group[0].on_chip:
                steps += group
                continue
            number += 1
            last = number == len(chip)
            steps.append(
                self._segment(group, residences[number - 1], memory, offsets, outside, last)
            )
        return CompiledNetwork(
            graph,
            tuple(steps),
            self.limits,
            self._stream.image(),
            tuple(self._stream.shares),
            bytes(self._constants.data),
            arena,
            storages,
        )

    def _reads(self, op: Operation) -> list[str]:
        return [name for _, name in laid(self.graph, op)]

    def _outside(self, groups: list[list[Operation]]) -> frozenset[str]:
        """Return the tensors that cross the border of a segment."""
        home = {name: i for i, group in enumerate(groups) for one in group for name in one.outputs}
        crossing = {*self.graph.inputs, *self.graph.outputs}
        for i, group in enumerate(groups):
            for one in group:
                crossing.update(
                    name
                    for name in one.used
                    if home.get(name, -1) != i and not self.graph[name].constant
                )
        return frozenset(crossing)

    def _image(self, name: str, view: StorageView) -> bytes:
        """Return a constant as it lies in rows."""
        data = self.graph.constant(name)
        assert data is not None
        rows = data.reshape(-1, view.columns)
        image = np.zeros((rows.shape[0], view.row_bytes // view.size), rows.dtype)
        image[:, : view.columns] = rows
        return image.tobytes()

    def _arena(
        self,
        groups: list[list[Operation]],
        layout: Layout,
        residences: list[Residence],
        outside: frozenset[str],
        constants: Mapping[str, int],
    ) -> tuple[int, dict[str, Storage]]:
        """Return the bytes of the arena and the storages there."""
        spans: dict[str, Lifetime] = {}
        at = -1
        in_sram = (
            frozenset().union(*(r.resident for r in residences)) if residences else frozenset()
        )
        for group in groups:
            for one in group:
                at += 1
                for name in (*one.used, *one.outputs):
                    view = layout.views.get(name)
                    if view is None or view.storage in constants:
                        continue
                    if view.storage in in_sram and view.storage not in outside:
                        continue
                    first = spans[view.storage].first if view.storage in spans else at
                    spans[view.storage] = Lifetime(first, at)
        for name in self.graph.inputs:
            if name in spans:
                spans[name] = Lifetime(0, spans[name].last)
        for name in self.graph.outputs:
            if name in spans:
                spans[name] = Lifetime(spans[name].first, at)
        buffers = [
            SramBuffer(name, up(layout.bytes[name], ARENA_ALIGNMENT), span.first, span.last)
            for name, span in spans.items()
        ]
        addresses = place(buffers)
        # Storages begin at lines: sizes are whole lines, and so are all sums of them.
        found = {
            name: Storage(addresses[name], layout.bytes[name], span.first, span.last)
            for name, span in spans.items()
        }
        return up(top(buffers, addresses), ARENA_ALIGNMENT), found

    def _segment(
        self,
        group: list[Operation],
        residence: Residence,
        memory: Mapping[str, int],
        constants: Mapping[str, int],
        outside: frozenset[str],
        last: bool,
    ) -> Segment:
        builder = ProgramBuilder(self.limits)
        addresses = Addresses(residence.sram, memory, constants)
        large = is_large(itertools.chain.from_iterable(residence.kernels))
        emission = Emission(builder, addresses, self._stream, self._constants, large)
        first_word = {}
        made = {name for one in group for name in one.outputs}
        missing = {
            name for name in residence.resident if (name in outside or name in constants)
        } - made
        for one, kernels in zip(group, residence.kernels, strict=True):
            if kernels:
                first_word[one.name] = builder.size
                builder.comment(f"{one.name}: {one.kind} {one.source}".rstrip())
                for name in self._reads(one):
                    view = residence.views[name]
                    if view.storage in missing:
                        missing.remove(view.storage)
                        emission.load_whole(residence.views[view.storage])
            for kernel in kernels:
                emission.run(kernel)
        # END takes the beginning of the stream, or its end, which only the last segment reaches.
        if builder.stream_offset and not (last and builder.stream_offset == self._stream.size):
            builder.seek(0)
        builder.end()
        program, text = builder.program()
        reads = {n for one in group for n in self._reads(one)} - made
        return Segment(
            tuple(group),
            program,
            text,
            tuple(builder.shares),
            first_word,
            residence.sram_bytes,
            tuple(sorted(name for name in reads if name not in constants)),
            tuple(sorted(made & outside)),
            tuple(builder.tensors),
        )
