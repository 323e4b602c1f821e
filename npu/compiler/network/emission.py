# SPDX-License-Identifier: Apache-2.0
"""Emits kernels chunk by chunk: transfers and copies of neighbouring chunks beside the work of one.

A barrier holds back all that is younger, so the order of instructions decides what overlaps. While
chunk i is computed, operands of chunk i + 1 are prepared, inputs of chunk i + 2 are loaded and
results of chunk i - 1 are stored.
"""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from npu.compiler.emit import ELEMENTS, MemoryRows, SramMatrix, emit_load_rows, emit_store_rows
from npu.compiler.errors import CompileError
from npu.compiler.hazards import Footprint, block_words
from npu.compiler.network.kernel import AHEAD, Kernel, copies_ahead, part_rows, row_part, row_pieces
from npu.compiler.network.layout import StorageView
from npu.compiler.program_builder import ProgramBuilder
from npu.compiler.stream import ShareData, StreamWriter
from npu.image import StreamShare
from spec.isa.operands import WORD, up

ARENA, CONSTANTS = 0, 2
"""Base registers of the tensors in memory and of the constants."""
GRANULE = 4096
"""Bytes of memory that are ordered as one."""
ALIGNMENT = 64


@dataclass
class Constants:
    """What lies in memory beside the stream; equal pieces lie there once."""

    data: bytearray = field(default_factory=bytearray)
    _known: dict[bytes, int] = field(default_factory=dict)

    def add(self, data: bytes) -> int:
        """Return the offset of a piece."""
        if data not in self._known:
            self._known[data] = len(self.data)
            self.data += data + bytes(-len(data) % ALIGNMENT)
        return self._known[data]


@dataclass(frozen=True)
class Addresses:
    """Where things are.

    Attributes:
        sram: address of each storage that is resident, and of each buffer of a kernel.
        memory: offset in the arena of each storage that lies in memory or is taken there.
        constants: offset among the constants of storages that hold constants.
    """

    sram: Mapping[str, int]
    memory: Mapping[str, int]
    constants: Mapping[str, int]


@dataclass
class Emission:
    """Emits kernels into one program; the `Place` of all of them.

    `large` says that the program reads more of the stream than AHEAD.
    """

    builder: ProgramBuilder
    addresses: Addresses
    stream: StreamWriter
    constants: Constants
    large: bool
    kernel: Kernel = field(init=False)
    _shares: Mapping[str, ShareData] = field(init=False, default_factory=dict)
    _copies: dict[str, list[StreamShare]] = field(init=False, default_factory=dict)
    _uses: Counter[str] = field(init=False, default_factory=Counter)

    # The chunks of a kernel ---------------------------------------------------------------------

    def run(self, kernel: Kernel) -> None:
        """Emit all chunks of a kernel."""
        self.kernel, self._shares = kernel, kernel.shares
        self._copies, self._uses = {name: [] for name in self._shares}, Counter()
        kernel.begin(self)
        self._load(0, early=True)
        self._load(0, early=False)
        if kernel.prepares:
            kernel.prepare(self, 0)
            self._load(1, early=True)
        for chunk in range(kernel.count):
            kernel.compute(self, chunk)
            if kernel.prepares:
                self._load(chunk + 2, early=True)
            self._store(chunk - 1)
            self._load(chunk + 1, early=False)
            if not kernel.prepares:
                self._load(chunk + 1, early=True)
            elif chunk + 1 < kernel.count:
                kernel.prepare(self, chunk + 1)
        self._store(kernel.count - 1)
        kernel.end(self)

    def _load(self, chunk: int, *, early: bool) -> None:
        """Bring to their stages what is due before a chunk."""
        kernel = self.kernel
        for number in range(len(kernel.reads)):
            if not kernel.staged(number) or kernel.early(number) != early:
                continue
            due = kernel.due(number, chunk)
            if due is not None:
                turn = kernel.turns(number).index(due)
                kernel.fetch(self, number, due, self._slot(number, turn))

    def _slot(self, number: int, turn: int) -> int:
        return self.scratch(f"stage{number}.{turn % self.kernel.slots(number)}")

    def _store(self, chunk: int) -> None:
        """Take the result of a chunk to memory, if it belongs there."""
        if chunk < 0 or not self.kernel.final(chunk):
            return
        if self.kernel.target(chunk).storage not in self.addresses.memory:
            return
        for part, matrix in self.kernel.outgoing(self, chunk):
            rows = self._memory(part)
            also = Footprint(writes=self._words(part))
            emit_store_rows(self.builder, matrix.address, matrix.given_pitch, rows, also=also)

    # What kernels ask for -----------------------------------------------------------------------

    def view(self, view: StorageView) -> SramMatrix | None:
        """Return the rows of a view if it lies in SRAM, else None."""
        address = self.addresses.sram.get(view.storage)
        if address is None:
            return None
        rows = view.rows()
        if rows is None:
            raise CompileError(f"{view.storage}: rows without a pitch")
        element = ELEMENTS[view.element]
        return SramMatrix(address + rows.offset, rows.count, rows.columns, element, rows.pitch)

    def address(self, view: StorageView) -> int | None:
        """Return the address of a view's first element if it lies in SRAM, else None."""
        address = self.addresses.sram.get(view.storage)
        return None if address is None else address + view.offset

    def source(self, number: int, chunk: int) -> SramMatrix:
        """Return the rows of an input that a chunk reads."""
        part = self.kernel.part(number, chunk)
        if not self.kernel.staged(number):
            matrix = self.view(part)
            assert matrix is not None
            return matrix
        turns = self.kernel.turns(number)
        turn = bisect_right(turns, chunk) - 1
        return _dense(part, self._slot(number, turn))

    def result(self, chunk: int) -> SramMatrix:
        """Return the rows that a chunk writes."""
        part = self.kernel.target(chunk)
        matrix = self.view(part)
        if matrix is not None:
            return matrix
        return _dense(part, self.scratch(f"result.{chunk % self.kernel.result_slots}"))

    def scratch(self, name: str) -> int:
        """Return the address of a buffer of the kernel's own."""
        return self.addresses.sram[buffer_name(self.kernel, name)]

    def share(self, name: str) -> StreamShare:
        """Return a share of the kernel, with the stream standing at it.

        Shares stand in the stream in the order of their use. Where a seek throws away much that was
        read ahead, or a chunk is too brief to wait for one, they do as often as AHEAD has room for.
        In a small program they don't: copies that are read ahead delay the first load.
        """
        copies, data = self._copies[name], self._shares[name]
        turn = self._uses[name] % self._most_copies
        self._uses[name] += 1
        if turn == len(copies):
            copy = f".copy{turn}" if turn else ""
            where = f"{self.kernel.operation.name}.{name}{copy}"
            copies.append(self.stream.append(where, *data))
        share = copies[turn]
        if self.builder.stream_offset != share.offset:
            self.builder.seek(share.offset)
        return share

    @property
    def _most_copies(self) -> int:
        """How often a share of the kernel may stand in the stream."""
        if not (self.large or self.kernel.brief):
            return 1
        return copies_ahead(sum(len(share.data) for share in self._shares.values()))

    def load(self, view: StorageView, address: int, pitch: int) -> None:
        """Load the rows of a view from memory."""
        for part, first in row_pieces(view):
            rows = self._memory(part)
            given = None if rows.rows == 1 or pitch == up(rows.size) else pitch
            also = Footprint(reads=self._words(part))
            emit_load_rows(self.builder, rows, address + first * pitch, given, also=also)

    def load_whole(self, view: StorageView) -> None:
        """Load a storage that lies in SRAM besides, natural rows."""
        rows = view.rows()
        assert rows is not None
        for first in range(0, rows.count, _ROWS):
            count = min(_ROWS, rows.count - first)
            part = row_part(view, first, count)
            self.load(part, self.addresses.sram[view.storage] + first * rows.pitch, rows.pitch)

    def constant(self, name: str, address: int) -> None:
        """Load a constant of the kernel."""
        data = self.kernel.constants[name]
        for first in range(0, len(data), _PIECE):
            size = min(_PIECE, len(data) - first)
            offset = self.constants.add(data) + first
            rows = MemoryRows(CONSTANTS, offset, 1, size, up(size))
            emit_load_rows(self.builder, rows, address + first)

    # Memory -------------------------------------------------------------------------------------

    def _memory(self, view: StorageView) -> MemoryRows:
        rows = view.rows()
        if rows is None:
            raise CompileError(f"{view.storage}: rows without a pitch")
        size = rows.columns * view.size
        if view.storage in self.addresses.constants:
            offset = self.addresses.constants[view.storage] + rows.offset
            return MemoryRows(CONSTANTS, offset, rows.count, size, rows.pitch)
        offset = self.addresses.memory[view.storage] + rows.offset
        return MemoryRows(ARENA, offset, rows.count, size, rows.pitch)

    def _words(self, view: StorageView) -> int:
        """Return the words that stand for a part of the arena in the order of instructions."""
        if view.storage in self.addresses.constants:
            return 0
        base = self.addresses.memory[view.storage]
        first = (base + view.offset) // GRANULE
        last = (base + view.end - 1) // GRANULE
        behind = self.builder.limits.sram_bytes + WORD
        return block_words(behind + first * WORD, (last - first + 1) * WORD)


_ROWS = 0xE000
"""Rows that one instruction loads."""
_PIECE = 0xE000
"""Bytes of a constant that one instruction loads."""


def is_large(kernels: Iterable[Kernel]) -> bool:
    """Whether the shares of a program's kernels are more than AHEAD, each of them once."""
    sizes = (len(share.data) for kernel in kernels for share in kernel.shares.values())
    return any(total > AHEAD for total in itertools.accumulate(sizes))


def _dense(part: StorageView, address: int) -> SramMatrix:
    return SramMatrix(address, part_rows(part), part.columns, ELEMENTS[part.element])


def buffer_name(kernel: Kernel, name: str) -> str:
    """Return the name of a kernel's buffer among the storages."""
    return f"{kernel.operation.name}/{name}"


def buffers_of(kernel: Kernel) -> dict[str, int]:
    """Return the bytes of a kernel's stages and buffers, by name."""
    found = {buffer_name(kernel, name): size for name, size in kernel.buffers.items()}
    for number in range(len(kernel.reads)):
        if kernel.staged(number):
            size = kernel.stage_bytes(number)
            for slot in range(kernel.slots(number)):
                found[buffer_name(kernel, f"stage{number}.{slot}")] = size
    for slot in range(kernel.result_slots):
        found[buffer_name(kernel, f"result.{slot}")] = kernel.result_bytes
    return found
