# SPDX-License-Identifier: Apache-2.0
"""What becomes of one operation: chunks of work, each with what it reads, prepares and writes.

A kernel knows its operation and no place; the emission gives it matrices in SRAM. What lies in
memory is brought to a stage, a buffer of two slots that chunks use in turn, and results go out of
one, while the chunks before and behind are computed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from npu.compiler.emit import SramMatrix
from npu.compiler.errors import CompileError
from npu.compiler.network.layout import StorageView
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.stream import ShareData
from npu.graph.form import Graph, Operation
from npu.image import StreamShare
from spec.isa.operands import Limits, up

Array = npt.NDArray[Any]


AHEAD = 16 * 1024
"""Bytes in which shares are repeated: behind a seek the stream has read nothing ahead."""


class MisfitError(CompileError):
    """An operation fits in no way.

    Attributes:
        operation: its name.
    """

    def __init__(self, operation: str, message: str) -> None:
        super().__init__(f"{operation}: {message}")
        self.operation = operation


class KernelPlace(Protocol):
    """What a kernel emits through."""

    @property
    def builder(self) -> ProgramBuilder:
        """The program."""

    def source(self, number: int, chunk: int) -> SramMatrix:
        """Return the rows of an input that a chunk reads."""

    def result(self, chunk: int) -> SramMatrix:
        """Return the rows that a chunk writes."""

    def scratch(self, name: str) -> int:
        """Return the address of a buffer of the kernel's own."""

    def share(self, name: str) -> StreamShare:
        """Return a share of the kernel, with the stream standing at it."""

    def view(self, view: StorageView) -> SramMatrix | None:
        """Return the rows of a view if it lies in SRAM, else None."""

    def address(self, view: StorageView) -> int | None:
        """Return the address of a view's first element if it lies in SRAM, else None."""

    def load(self, view: StorageView, address: int, pitch: int) -> None:
        """Load the rows of a view from memory."""

    def constant(self, name: str, address: int) -> None:
        """Load a constant of the kernel."""


@dataclass(frozen=True)
class Context:
    """What kernels are made from.

    Attributes:
        graph: the network.
        views: of all tensors that lie on the chip.
        resident: storages that lie in SRAM; all others lie in memory.
        limits: of the chip.
        budget: bytes of SRAM that a kernel may use.
    """

    graph: Graph
    views: Mapping[str, StorageView]
    resident: frozenset[str]
    limits: Limits
    budget: int

    def view(self, name: str) -> StorageView:
        """Return the view of a tensor."""
        return self.views[name]

    def in_sram(self, view: StorageView) -> bool:
        """Whether a view lies in SRAM."""
        return view.storage in self.resident


class Kernel:
    """The work of one operation.

    Attributes:
        operation: whose.
        reads: the inputs that chunks read, each a view.
        writes: the result.
        count: how many chunks.
    """

    prepares = False
    """Whether `prepare` emits anything."""

    def __init__(
        self,
        context: Context,
        operation: Operation,
        reads: list[StorageView],
        writes: StorageView,
        count: int,
    ) -> None:
        self.context = context
        self.operation = operation
        self.reads = reads
        self.writes = writes
        self.count = count

    # What the kernel asks for -------------------------------------------------------------------

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the rows of an input that a chunk reads."""
        raise NotImplementedError

    def target(self, chunk: int) -> StorageView:
        """Return the rows that a chunk writes."""
        raise NotImplementedError

    def final(self, chunk: int) -> bool:
        """Whether a chunk ends a result, so that it can be stored."""
        del chunk
        return True

    def early(self, number: int) -> bool:
        """Whether `prepare` reads an input, and `compute` does not."""
        del number
        return False

    def staged(self, number: int) -> bool:
        """Whether an input goes through a stage."""
        return not self.context.in_sram(self.reads[number])

    def stage_bytes(self, number: int) -> int:
        """Return the bytes of a slot of an input's stage."""
        return max(bytes_of(self.part(number, chunk)) for chunk in self.turns(number))

    def turns(self, number: int) -> list[int]:
        """Return the chunks that read another part of an input than the chunk before."""
        return self._turns[number]

    def due(self, number: int, chunk: int) -> int | None:
        """Return the chunk whose part of an input is to be brought before `chunk`, None if none."""
        return chunk if chunk in self.turns(number) else None

    @cached_property
    def _turns(self) -> list[list[int]]:
        found = []
        for number in range(len(self.reads)):
            parts = [self.part(number, chunk) for chunk in range(self.count)]
            found.append([i for i, p in enumerate(parts) if i == 0 or p != parts[i - 1]])
        return found

    @property
    def buffers(self) -> dict[str, int]:
        """Bytes of buffers of the kernel's own, by name."""
        return {}

    @property
    def constants(self) -> dict[str, bytes]:
        """What lies in memory beside the stream, by name."""
        return {}

    @property
    def shares(self) -> dict[str, ShareData]:
        """Pieces of the stream by name."""
        return {}

    @property
    def brief(self) -> bool:
        """Whether a chunk takes less time than the stream takes to begin elsewhere."""
        return False

    # What the kernel emits ----------------------------------------------------------------------

    def begin(self, place: KernelPlace) -> None:
        """Emit what comes once, in front of the first chunk."""

    def end(self, place: KernelPlace) -> None:
        """Emit what comes once, behind the last chunk."""

    def fetch(self, place: KernelPlace, number: int, chunk: int, slot: int) -> None:
        """Emit what brings an input of a chunk to a slot of its stage."""
        part = self.part(number, chunk)
        place.load(part, slot, part.row_bytes)

    def prepare(self, place: KernelPlace, chunk: int) -> None:
        """Emit what makes the operands of a chunk, beside the computation of the one before."""

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit the computation of a chunk."""
        raise NotImplementedError

    def outgoing(self, place: KernelPlace, chunk: int) -> Iterable[tuple[StorageView, SramMatrix]]:
        """Yield the pieces of a chunk's result that are stored, and where they lie in SRAM."""
        for part, first in row_pieces(self.target(chunk)):
            matrix = place.view(part)
            yield part, matrix or place.result(chunk).part(first, part_rows(part))

    # Sizes --------------------------------------------------------------------------------------

    def slots(self, number: int) -> int:
        """Return the slots of an input's stage."""
        return min(2, len(self.turns(number)))

    @property
    def sram_bytes(self) -> int:
        """Bytes of SRAM for stages and buffers."""
        size = sum(up(each) for each in self.buffers.values())
        for number in range(len(self.reads)):
            if self.staged(number):
                size += self.slots(number) * up(self.stage_bytes(number))
        return size + self.result_slots * up(self.result_bytes)

    @property
    def result_slots(self) -> int:
        """Slots of the stage of results, 0 without one."""
        return 0 if self.context.in_sram(self.writes) else min(2, self.count)

    @cached_property
    def result_bytes(self) -> int:
        """Bytes of a slot of the stage of results."""
        if not self.result_slots:
            return 0
        return max(bytes_of(self.target(chunk)) for chunk in self.sizes())

    def sizes(self) -> Iterable[int]:
        """Return chunks of all sizes of results."""
        return range(self.count)

    def integers(self, name: str) -> Array | None:
        """Return an array of the operation's integers."""
        return self.operation.integers.get(name)


def bytes_of(view: StorageView) -> int:
    """Return the bytes of a view's rows without gaps."""
    return int(np.prod(view.shape[:-1], dtype=np.int64)) * view.row_bytes


def row_part(view: StorageView, first: int, count: int) -> StorageView:
    """Return rows `first` to `first + count - 1` of a view that has a pitch, as (rows, columns)."""
    rows = view.rows()
    if rows is None:
        raise CompileError(f"{view.storage}: rows without a pitch")
    return StorageView(
        view.storage,
        rows.offset + first * rows.pitch,
        (count, view.columns),
        (rows.pitch, view.size),
        view.element,
    )


def part_rows(view: StorageView) -> int:
    """Return the rows of a view."""
    return int(np.prod(view.shape[:-1], dtype=np.int64))


def row_pieces(view: StorageView, first: int = 0) -> Iterator[tuple[StorageView, int]]:
    """Yield the pieces of a view that lie in rows at one pitch, and the number of their first row.

    Raises CompileError if a single row is off whole words.
    """
    if view.rows() is not None:
        yield view, first
        return
    if len(view.shape) < 3:
        raise CompileError(f"{view.storage}: rows off whole words")
    each = part_rows(view) // view.shape[0]
    for index in range(view.shape[0]):
        yield from row_pieces(view.at(index), first + index * each)


def copies_ahead(size: int) -> int:
    """Return how often shares of so many bytes stand in the stream, if they are used as often."""
    return max(1, AHEAD // max(1, size))


def even(total: int, most: int) -> list[tuple[int, int]]:
    """Return (first, count) of parts of nearly equal size, at most `most` each."""
    parts = -(-total // max(1, most))
    cuts = [total * i // parts for i in range(parts + 1)]
    return [(a, b - a) for a, b in itertools.pairwise(cuts)]
