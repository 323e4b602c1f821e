# SPDX-License-Identifier: Apache-2.0
"""Moves that need instructions, from the one description that all of them have: an index map.

The map says for each element of the result which element of the input stands there, or none. What
keeps to whole words is copied, rows of equal steps by one instruction; lanes are shifted by a GEMM
with a selection matrix, exact for int8 and int16; matrices are turned by a GEMM with the identity.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from npu.compiler.emit import ELEMENTS, Epilogue, SramMatrix, emit_elementwise, emit_product
from npu.compiler.emit import Element as ElementName
from npu.compiler.errors import CompileError
from npu.compiler.network.kernel import Context, Kernel, KernelPlace, even, row_part
from npu.compiler.network.layout import StorageView
from npu.compiler.stream import Channels, ShareData, product_share
from npu.graph.form import Element, Operation
from spec.isa.generated import Opcode
from spec.isa.operands import WORD, up

Index = npt.NDArray[np.int64]
UNIT_MULT, UNIT_SHIFT = 1 << 14, 14


def index_map(operation: Operation, shape: tuple[int, ...], result: tuple[int, ...]) -> Index:
    """Return for each element of a move's result the element of its input, -1 for none."""
    source = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    match operation.kind:
        case "identity" | "reshape":
            return source.reshape(result)
        case "transpose":
            return source.transpose(operation["order"])
        case "slice":
            cuts = zip(operation["starts"], operation["stops"], operation["steps"], strict=True)
            return source[tuple(_cut(*cut) for cut in cuts)]
        case "pad":
            widths = list(zip(operation["before"], operation["after"], strict=True))
            return np.pad(source, widths, constant_values=-1)
        case "expand":
            return np.broadcast_to(source, result)
    raise CompileError(f"{operation.name}: {operation.kind} is no move")


def _cut(start: int, stop: int, step: int) -> slice:
    return slice(start, stop if stop >= 0 else None, step)


@dataclass(frozen=True, slots=True)
class ElementRun:
    """Neighbouring elements of a row of the result that are neighbours in a row of the input."""

    source_column: int
    column: int
    count: int


class MoveKernel(Kernel):
    """One move, all at once.

    Args:
        context: where things are.
        operation: the move.
        x: the input.
        writes: where the result goes; for one input of a concatenation its part of the result.
        index: (rows, columns) of the result, see `index_map`.
        fill: the value where the map has no element.
    """

    def __init__(
        self,
        context: Context,
        operation: Operation,
        x: StorageView,
        writes: StorageView,
        index: Index,
        fill: int = 0,
    ) -> None:
        self.index = index.reshape(-1, writes.shape[-1])
        self.fill = fill
        super().__init__(context, operation, [x], writes, 1)
        # Lanes between words are products with a selection, added to zeros.
        if self._shifted and writes.element == Element.I32:
            raise CompileError(f"{operation.name}: int32 off whole words, allowed int8, int16")
        if self._shifted and fill:
            raise CompileError(f"{operation.name}: a border of {fill} off whole words, allowed 0")

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the whole input."""
        del chunk
        return self.reads[number]

    def target(self, chunk: int) -> StorageView:
        """Return the whole result."""
        del chunk
        return self.writes

    @cached_property
    def runs(self) -> dict[ElementRun, list[tuple[int, int]]]:
        """The (row of the input, row of the result) of each kind of run, in order."""
        columns = self.reads[0].columns
        found: dict[ElementRun, list[tuple[int, int]]] = defaultdict(list)
        patterns: dict[bytes, list[tuple[int, int, int, int]]] = {}
        for row, indices in enumerate(self.index):
            rows = np.where(indices < 0, -1, indices // columns)
            lanes = np.where(indices < 0, -1, indices % columns)
            base = int(rows.max(initial=-1))
            if base < 0:
                continue
            key = (np.where(rows < 0, -1, rows - base) * columns * 2 + lanes).tobytes()
            if key not in patterns:
                patterns[key] = _runs_of(rows - base, lanes, rows < 0)
            for step, lane, at, count in patterns[key]:
                found[ElementRun(lane, at, count)].append((base + step, row))
        return found

    def aligned(self, run: ElementRun) -> bool:
        """Whether a run keeps to whole words."""
        size = self.writes.size
        end = run.column + run.count
        whole = end == self.writes.columns or end * size % WORD == 0
        return not (run.column * size % WORD or run.source_column * size % WORD) and whole

    @property
    def _shifted(self) -> list[ElementRun]:
        return [run for run in self.runs if not self.aligned(run)]

    @cached_property
    def _uncovered(self) -> bool:
        return bool((self.index < 0).any())

    @property
    def shares(self) -> dict[str, ShareData]:
        """Selection matrices."""
        edge, found, writes = self.context.limits.edge, {}, self.writes
        unit = Channels(
            np.zeros(writes.columns, np.int32),
            np.full(writes.columns, UNIT_MULT, np.uint16),
            np.full(writes.columns, UNIT_SHIFT, np.uint8),
        )
        for run in self._shifted:
            matrix = np.zeros((self.reads[0].columns, writes.columns), np.int8)
            lanes = np.arange(run.count)
            matrix[run.source_column + lanes, run.column + lanes] = 1
            data = product_share(edge, matrix, unit)
            found[f"select{run}"] = ShareData(Opcode.GEMM, data)
        return found

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit fills, copies and products."""
        source = _Lines.of(place, self, self.part(0, chunk), 0)
        target = _Lines.of(place, self, self.target(chunk), -1)
        written: set[int] = set()
        if self._uncovered or self._mixed:
            self._clear(place, target)
            written.update(range(len(self.index)))
        for run, pairs in self.runs.items():
            if self.aligned(run):
                self._copy(place, run, pairs, source, target)
                written.update(row for _, row in pairs)
        for run in self._shifted:
            self._select(place, run, self.runs[run], source, target, written)

    @property
    def _mixed(self) -> bool:
        """Whether some rows are copied in part and shifted in part."""
        copied = {row for run, p in self.runs.items() if self.aligned(run) for _, row in p}
        return any(row in copied for run in self._shifted for _, row in self.runs[run])

    def _clear(self, place: KernelPlace, target: _Lines) -> None:
        """Fill the result with the value; with zero where lanes are added to it."""
        for first, count, pitch in target.progressions(range(len(self.index))):
            rows = SramMatrix(
                target.at(first),
                count,
                target.columns,
                target.element,
                pitch,
            )
            emit_elementwise(place.builder, "clamp", rows, rows, lo=self.fill, hi=self.fill)

    def _copy(
        self,
        place: KernelPlace,
        run: ElementRun,
        pairs: list[tuple[int, int]],
        source: _Lines,
        target: _Lines,
    ) -> None:
        size = self.writes.size
        for first, count, steps in _progressions(pairs, source, target):
            a, c = (
                SramMatrix(
                    lines.at(row) + column * size,
                    count,
                    run.count,
                    lines.element,
                    step,
                )
                for lines, row, column, step in (
                    (source, first[0], run.source_column, steps[0]),
                    (target, first[1], run.column, steps[1]),
                )
            )
            emit_elementwise(place.builder, "copy2d", a, c)

    def _select(
        self,
        place: KernelPlace,
        run: ElementRun,
        pairs: list[tuple[int, int]],
        source: _Lines,
        target: _Lines,
        written: set[int],
    ) -> None:
        most = self.context.limits.acc_rows // self.writes.size
        for add in (False, True):
            chosen = [pair for pair in pairs if (pair[1] in written) == add]
            for first, total, steps in _progressions(chosen, source, target):
                for at, count in even(total, most):
                    a = SramMatrix(
                        source.at(first[0]) + at * steps[0],
                        count,
                        self.reads[0].columns,
                        source.element,
                        steps[0],
                    )
                    c = SramMatrix(
                        target.at(first[1]) + at * steps[1],
                        count,
                        self.writes.columns,
                        target.element,
                        steps[1],
                    )
                    epilogue = Epilogue(op="add" if add else None, operand=c if add else None)
                    emit_product(place.builder, a, None, c, place.share(f"select{run}"), epilogue)
        written.update(row for _, row in pairs)


def _runs_of(
    rows: Index, lanes: Index, empty: npt.NDArray[np.bool_]
) -> list[tuple[int, int, int, int]]:
    """Return (row, lane, column, count) of the runs of one row."""
    found: list[tuple[int, int, int, int]] = []
    breaks = (np.diff(rows) != 0) | (np.diff(lanes) != 1) | (empty[1:] != empty[:-1])
    cuts = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(rows)]
    for a, b in itertools.pairwise(cuts):
        if not empty[a]:
            found.append((int(rows[a]), int(lanes[a]), a, b - a))
    return found


@dataclass(frozen=True)
class _Lines:
    """Addresses of the rows of a tensor in SRAM."""

    addresses: Index
    columns: int
    element: ElementName

    @classmethod
    def of(cls, place: KernelPlace, kernel: MoveKernel, view: StorageView, number: int) -> _Lines:
        """Return the rows of an input, or of the result for -1."""
        # Bytes are moved as they are: unsigned ones as signed ones.
        element: ElementName = "int8" if view.size == 1 else ELEMENTS[view.element]
        base = place.address(view)
        if base is None:
            matrix = place.result(0) if number < 0 else place.source(number, 0)
            return cls(
                matrix.address + matrix.pitch * np.arange(matrix.rows), view.columns, element
            )
        offsets = np.zeros((), np.int64)
        for n, step in zip(view.shape[:-1], view.strides[:-1], strict=True):
            offsets = offsets[..., None] + step * np.arange(n)
        del kernel
        return cls(base + offsets.reshape(-1), view.columns, element)

    def at(self, row: int) -> int:
        """Return the address of a row."""
        return int(self.addresses[row])

    def progressions(self, rows: range) -> list[tuple[int, int, int]]:
        """Return (first row, count, pitch) of rows at equal steps."""
        pairs = [(row, row) for row in rows]
        return [
            (first[0], count, steps[0]) for first, count, steps in _progressions(pairs, self, self)
        ]


def _progressions(
    pairs: list[tuple[int, int]], source: _Lines, target: _Lines
) -> list[tuple[tuple[int, int], int, tuple[int, int]]]:
    """Return (first pair, count, pitches) of pairs whose rows lie at equal positive steps."""
    found = []
    at = 0
    while at < len(pairs):
        steps, count = (0, 0), 1
        if at + 1 < len(pairs):
            steps = _steps(pairs[at], pairs[at + 1], source, target)
            while (
                min(steps) > 0
                and at + count < len(pairs)
                and _steps(pairs[at + count - 1], pairs[at + count], source, target) == steps
            ):
                count += 1
        found.append((pairs[at], count, steps if count > 1 else (0, 0)))
        at += count
    return found


def _steps(
    a: tuple[int, int], b: tuple[int, int], source: _Lines, target: _Lines
) -> tuple[int, int]:
    return source.at(b[0]) - source.at(a[0]), target.at(b[1]) - target.at(a[1])


class TurnKernel(Kernel):
    """Matrices turned: the last two axes exchanged, int8."""

    def __init__(
        self, context: Context, operation: Operation, x: StorageView, writes: StorageView
    ) -> None:
        if x.size != 1:
            raise CompileError(f"{operation.name}: {x.element} turned, allowed int8")
        self.outer = list(np.ndindex(*x.shape[:-2]))
        self.chunks = [
            (index, first, count)
            for index in self.outer
            for first, count in even(writes.shape[-2], context.limits.acc_rows)
        ]
        super().__init__(context, operation, [x], writes, len(self.chunks))

    def part(self, number: int, chunk: int) -> StorageView:
        """Return a matrix."""
        matrix = self.reads[number].at(*self.chunks[chunk][0])
        return row_part(matrix, 0, matrix.shape[0])

    def target(self, chunk: int) -> StorageView:
        """Return some rows of the turned matrix."""
        index, first, count = self.chunks[chunk]
        return row_part(self.writes.at(*index), first, count)

    @property
    def size(self) -> int:
        """Rows of a turned matrix."""
        return self.writes.shape[-2]

    @property
    def buffers(self) -> dict[str, int]:
        """The identity."""
        return {"identity": self.size * up(self.size)}

    @property
    def constants(self) -> dict[str, bytes]:
        """The identity, rows of whole words."""
        rows = np.zeros((self.size, up(self.size)), np.int8)
        rows[:, : self.size] = np.eye(self.size, dtype=np.int8)
        return {"identity": rows.tobytes()}

    @property
    def shares(self) -> dict[str, ShareData]:
        """A factor of one."""
        columns = self.writes.columns
        unit = Channels(
            np.zeros(columns, np.int32),
            np.full(columns, UNIT_MULT, np.uint16),
            np.full(columns, UNIT_SHIFT, np.uint8),
        )
        edge = self.context.limits.edge
        return {"unit": ShareData(Opcode.GEMM, product_share(edge, None, unit))}

    def begin(self, place: KernelPlace) -> None:
        """Load the identity."""
        place.constant("identity", place.scratch("identity"))

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit the product."""
        _, first, count = self.chunks[chunk]
        matrix, dst = place.source(0, chunk), place.result(chunk)
        a = SramMatrix(place.scratch("identity") + first * up(self.size), count, self.size)
        share = place.share("unit")
        emit_product(place.builder, a, matrix, dst, share, Epilogue(), transpose=True)
