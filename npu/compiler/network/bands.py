# SPDX-License-Identifier: Apache-2.0
"""Convolutions whose GEMMs run over the pixels of images, without copies of windows.

A band of the image lies in SRAM with its border, pixel behind pixel; the border behind a line is
also the one in front of the next. An instruction runs over the pixels of several lines without a
break. What it makes of pixels that no window begins at is left behind where results are stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from npu.compiler.emit import (
    ELEMENTS,
    Element,
    Epilogue,
    SramMatrix,
    emit_elementwise,
    emit_product,
)
from npu.compiler.network.convolution import (
    COPY_MOST,
    COPY_OVERHEAD,
    GEMM_OVERHEAD,
    SEEK,
    MovingWindow,
    window_of,
)
from npu.compiler.network.epilogues import AfterSums, factor_buffer, finish_of, finish_product
from npu.compiler.network.kernel import Context, Kernel, KernelPlace, copies_ahead, even
from npu.compiler.network.layout import StorageView
from npu.compiler.network.linear import Wide
from npu.compiler.stream import ShareData, weight_share
from npu.graph.form import Element as TensorElement
from npu.graph.form import Operation
from npu.graph.weight_rows import encoding_of
from spec.isa.operands import up
from weights.formats.codes import codes_of
from weights.formats.recipe import INT8, Encoding

Rows = list[tuple[int, int]]
"""First and count of neighbouring rows."""


@dataclass(frozen=True)
class Filters:
    """Filters as GEMMs take them, in lines of neighbouring pixels.

    Attributes:
        weights: (K, N), their sum is what the stream holds.
        total: (N,) the sum of each filter.
        image: pixels of a line of the image with its border.
        lines: of a window.
        apart: pixels from the beginning of a line to that of the next.
        taps: pixels that are read of a line.
        every: pixels from a row of the product to the next.
        depthwise: whether a column multiplies its own channel.
    """

    weights: list[npt.NDArray[np.int8]]
    total: Wide
    image: int
    lines: int
    apart: int
    taps: int
    every: int = 1
    depthwise: bool = False

    @property
    def reach(self) -> int:
        """Pixels from the first that a window reads to the last, both counted."""
        return (self.lines - 1) * self.apart + self.taps

    def held(self, encoding: Encoding) -> bool:
        """Say whether shares hold the weights in their format."""
        return encoding == INT8 or all(
            codes_of(encoding, weight) is not None for weight in self.weights
        )


@dataclass(frozen=True, slots=True)
class Band:
    """Output rows whose input rows are there together.

    Attributes:
        image: of which image.
        first, rows: output rows.
    """

    image: int
    first: int
    rows: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Output rows of a band, or a part of one row; rows and columns are those of the output."""

    band: int
    y: int
    rows: int
    x: int
    columns: int


class BandKernel(Kernel):
    """A convolution whose products read bands of the image as they lie there.

    Args:
        context: what kernels are made from.
        operation: a conv.
        x, operand, writes: (B, H, W, C), rows for columns if the image is turned.
        window: how the filter moves over the image.
        filters: as the products take them, zero point taken off.
        bands: first and count of the output rows of each band.
        rows: most output rows of a chunk; 0 cuts rows.
    """

    def __init__(
        self,
        context: Context,
        operation: Operation,
        x: StorageView,
        operand: StorageView | None,
        writes: StorageView,
        window: MovingWindow,
        filters: Filters,
        bands: Rows,
        rows: int,
    ) -> None:
        self.window, self.filters, self.line = window, filters, filters.image
        self.steps = _steps(window, filters)
        self.bands = [Band(image, *part) for image in range(x.shape[0]) for part in bands]
        most = (context.limits.acc_rows // x.size - 1) // self.steps[1] + 1
        across = even(window.out[1], window.out[1] if rows else most)
        self.chunks = [
            Chunk(number, one.first + y, count, *part)
            for number, one in enumerate(self.bands)
            for y, count in even(one.rows, max(rows, 1))
            for part in across
        ]
        reads = [x] if operand is None else [x, operand]
        super().__init__(context, operation, reads, writes, len(self.chunks))

    # Pixels -------------------------------------------------------------------------------------

    def pixels(self, rows: int, columns: int) -> int:
        """Return the rows of a product from the first window to the last, both counted."""
        return (rows - 1) * self.steps[0] + (columns - 1) * self.steps[1] + 1

    def _most(self) -> int:
        return max(self.pixels(one.rows, one.columns) for one in self.chunks)

    @property
    def _border(self) -> int:
        """Pixels between the image's part of a line and that of the next."""
        return self.line - self.window.width

    @cached_property
    def stage_rows(self) -> int:
        """Rows of the highest band."""
        return self.window.band_rows(max(one.rows for one in self.bands))

    @property
    def _stage_pixels(self) -> int:
        """Pixels of a slot: a band with its border, and what is read behind it."""
        rows = max(one.rows for one in self.bands)
        read = (self.pixels(rows, self.window.out[1]) - 1) * self.filters.every
        read += self.filters.reach
        return max(read, self.stage_rows * self.line + self.window.pads[1])

    @cached_property
    def direct(self) -> bool:
        """Whether all that a GEMM makes is the result, in rows at one pitch."""
        dense = all(
            self.pixels(one.rows, one.columns) == one.rows * one.columns for one in self.chunks
        )
        views = [self.writes, *self.reads[1:]]
        return dense and all(
            self._pixels(view, self.chunks[chunk]).rows()
            for view in views
            for chunk in self.sizes()
        )

    # Operands -----------------------------------------------------------------------------------

    def staged(self, number: int) -> bool:
        """Whether an input goes through a stage, to lie there as the GEMM runs over it."""
        return number == 0 or not self.direct or super().staged(number)

    def _rows(self, band: Band) -> tuple[int, int, int, int]:
        """Return of a band the first image row and the rows above the image, of it, and below."""
        first, rows = self.window.band(band.first, band.rows)
        top = min(rows, max(0, -first))
        inner = max(0, min(self.window.height, first + rows) - max(0, first))
        return max(0, first), top, inner, rows - top - inner

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the input rows of a chunk's band, or the pixels of an operand."""
        one = self.chunks[chunk]
        if number:
            return self._pixels(self.reads[number], one)
        band = self.bands[one.band]
        first, _, inner, _ = self._rows(band)
        image = self.reads[0].at(band.image)
        moved = image.offset + (first * image.strides[0] if inner else 0)
        return replace(image, offset=moved, shape=(inner, *image.shape[1:]))

    def turns(self, number: int) -> list[int]:
        """Return the chunks that begin a band: the same rows lie elsewhere in another border."""
        if number:
            return list(range(self.count))
        return self._band_turns

    def due(self, number: int, chunk: int) -> int | None:
        """Return the band that is brought beside the first chunk of the one before."""
        if number or chunk == 0:
            return super().due(number, chunk)
        behind = [turn for turn in self._band_turns if turn >= chunk]
        return behind[0] if behind and chunk - 1 in self._band_turns else None

    @cached_property
    def _band_turns(self) -> list[int]:
        bands = [one.band for one in self.chunks]
        return [i for i, band in enumerate(bands) if i == 0 or band != bands[i - 1]]

    def _pixels(self, view: StorageView, one: Chunk) -> StorageView:
        """Return the output pixels of a chunk as (rows, columns, C)."""
        image = view.at(self.bands[one.band].image)
        offset = image.offset + one.y * image.strides[0] + one.x * image.strides[1]
        return replace(image, offset=offset, shape=(one.rows, one.columns, image.columns))

    def target(self, chunk: int) -> StorageView:
        """Return the output pixels of a chunk."""
        return self._pixels(self.writes, self.chunks[chunk])

    def sizes(self) -> Iterable[int]:
        """Return chunks of all sizes of results."""
        return {(one.rows, one.columns): i for i, one in enumerate(self.chunks)}.values()

    def stage_bytes(self, number: int) -> int:
        """Return the bytes of a slot."""
        pixels = self._most() if number else self._stage_pixels
        return pixels * self.reads[number].row_bytes

    @property
    def result_slots(self) -> int:
        """Slots of what GEMMs make."""
        return super().result_slots if self.direct else min(2, self.count)

    @cached_property
    def result_bytes(self) -> int:
        """Bytes of a slot."""
        return self._most() * self.writes.row_bytes if self.result_slots else 0

    @property
    def buffers(self) -> dict[str, int]:
        """Partial sums of weights that leave int8, and what is multiplied behind them."""
        if len(self.filters.weights) == 1:
            return {}
        found = {"sums": self._most() * up(4 * self.writes.columns)}
        return found | factor_buffer(self.operation, self._most(), self.writes.columns)

    # Parameters ---------------------------------------------------------------------------------

    @cached_property
    def finish(self) -> AfterSums:
        """What follows the sums."""
        total = self.filters.total
        return finish_of(self.operation, total.shape[0], -int(self.operation["x_zero"]) * total)

    @property
    def shares(self) -> dict[str, ShareData]:
        """Weights, and channels with the last of them."""
        limits, weights = self.context.limits, self.filters.weights
        encoding, made = encoding_of(self.context.graph.type(self.operation.inputs[1])), {}
        for number, weight in enumerate(weights):
            last = number == len(weights) - 1
            channels = self.finish.channels if last else None
            table = self.finish.table if last else None
            made[f"weight{number}"] = weight_share(
                self.operation.name, limits, weight, channels, table, encoding
            )
        return made

    @property
    def _inner(self) -> int:
        """Rows of B, which a chunk takes."""
        return sum(weight.shape[0] for weight in self.filters.weights)

    @property
    def _share_bytes(self) -> int:
        """Bytes of the weights as int8 with their channels, which a chunk takes."""
        return (self._inner + 8) * up(self.writes.columns, self.context.limits.edge)

    @property
    def brief(self) -> bool:
        """A depthwise pass takes little more than the pixels of a band."""
        return self.filters.depthwise

    @property
    def copies(self) -> int:
        """How often the shares stand in the stream."""
        return min(self.count, copies_ahead(self._share_bytes))

    # Instructions -------------------------------------------------------------------------------

    def fetch(self, place: KernelPlace, number: int, chunk: int, slot: int) -> None:
        """Bring a band into its border, or an operand to where results lie."""
        one, view = self.chunks[chunk], self.part(number, chunk)
        pixel = self.reads[number].row_bytes
        if number:
            pieces = _pieces(view, slot, *(step * pixel for step in self.steps))
        else:
            _, top, inner, _ = self._rows(self.bands[one.band])
            inside = slot + (top * self.line + self.window.pads[1]) * pixel
            pieces = _pieces(view, inside, self.line * pixel, pixel) if inner else iter(())
        for part, matrix in pieces:
            source = place.view(part)
            if source is None:
                place.load(part, matrix.address, matrix.pitch)
            else:
                emit_elementwise(place.builder, "copy2d", replace(source, element="int8"), matrix)
        if number == 0:
            self._fill_border(place, one.band, slot)

    def _fill_border(self, place: KernelPlace, band: int, slot: int) -> None:
        """Fill what is no image; beside it only once in each slot, as nothing else lies there."""
        _, top, inner, bottom = self._rows(self.bands[band])
        line, border, left = self.line, self._border, self.window.pads[1]
        fresh = band < self.slots(0)
        rows = self.stage_rows if fresh else top + inner + bottom
        below = top + inner if bottom else rows + 1
        if top:
            self._fill(place, slot, 0, 1, top * line + left)
        if fresh and not top:
            self._fill(place, slot, 0, 1, left)
        if fresh:
            beside = max(1, top + 1)
            self._fill(place, slot, beside * line + left - border, below - beside, border)
        if bottom:
            first = max(0, below * line + left - border)
            self._fill(place, slot, first, 1, rows * line + left - first)

    def _fill(self, place: KernelPlace, slot: int, first: int, rows: int, count: int) -> None:
        """Fill `count` pixels, from one on, of each of some lines."""
        if rows <= 0 or count <= 0:
            return
        x, value = self.reads[0], int(self.operation["pad_value"])
        value = value - 256 if x.size == 1 and value > 127 else value
        element: Element = "int8" if x.size == 1 else "int16"
        pixel = x.row_bytes
        for at in range(0, count * pixel, COPY_MOST):
            size = min(COPY_MOST, count * pixel - at)
            address = slot + first * pixel + at
            matrix = SramMatrix(address, rows, size // x.size, element, self.line * pixel)
            emit_elementwise(place.builder, "clamp", matrix, matrix, lo=value, hi=value)

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Multiply the pixels of a chunk, and bring the results of the one before together."""
        one, x, filters = self.chunks[chunk], self.reads[0], self.filters
        top = (one.y - self.bands[one.band].first) * self.window.strides[0]
        first = top * self.line + one.x * self.window.strides[1]
        rows = self.pixels(one.rows, one.columns)
        address = place.source(0, chunk).address + first * x.row_bytes
        columns = x.columns if filters.depthwise else filters.weights[0].shape[0]
        every = filters.every * x.row_bytes
        a = SramMatrix(address, rows, columns, ELEMENTS[x.element], every)
        lines = filters.lines, filters.apart * x.row_bytes
        dst = place.result(chunk) if self.direct else self._made(place, chunk)
        sums, operand = None, None
        if len(self.reads) > 1:
            operand = place.source(1, chunk)
            if self.staged(1):
                element = ELEMENTS[self.reads[1].element]
                operand = replace(dst, address=operand.address, spacing=0, element=element)
        last = len(filters.weights) - 1
        for number in range(last):
            partial = SramMatrix(place.scratch("sums"), rows, dst.columns, "int32")
            share = place.share(f"weight{number}")
            emit_product(
                place.builder,
                a,
                None,
                partial,
                share,
                Epilogue(sums=sums, channels=False),
                lines=lines,
                depthwise=filters.depthwise,
            )
            sums = partial
        finish_product(
            place,
            a,
            None,
            dst,
            place.share(f"weight{last}"),
            self.finish,
            sums=sums,
            operand=operand,
            lines=lines,
            depthwise=filters.depthwise,
        )
        if self.direct or not self.context.in_sram(self.writes):
            return
        # A copy waits for its GEMM: that of the chunk before runs beside this chunk's.
        last = chunk == self.count - 1
        for done in range(max(chunk - 1, 0), chunk + last):
            for part, made in self._results(place, done):
                goal = place.view(part)
                assert goal is not None
                emit_elementwise(place.builder, "copy2d", made, goal)

    def _made(self, place: KernelPlace, chunk: int) -> SramMatrix:
        """Return the rows that the GEMM of a chunk writes."""
        one, address = self.chunks[chunk], place.scratch(f"result.{chunk % self.result_slots}")
        rows, element = self.pixels(one.rows, one.columns), ELEMENTS[self.writes.element]
        return SramMatrix(address, rows, self.writes.columns, element)

    def _results(self, place: KernelPlace, chunk: int) -> Iterator[tuple[StorageView, SramMatrix]]:
        """Yield the results of a chunk as bytes, and where they lie among what a GEMM makes."""
        pitches = (step * self.writes.row_bytes for step in self.steps)
        return _pieces(self.target(chunk), self._made(place, chunk).address, *pitches)

    def outgoing(self, place: KernelPlace, chunk: int) -> Iterable[tuple[StorageView, SramMatrix]]:
        """Yield what is stored of a chunk, and where it lies."""
        if self.direct or self.context.in_sram(self.writes):
            return super().outgoing(place, chunk)
        return self._results(place, chunk)

    # Cycles -------------------------------------------------------------------------------------

    def cycles(self) -> float:
        """Return the modelled cycles: of each band the longest of multiplying, copying, memory."""
        columns, products = self.writes.columns, len(self.filters.weights)
        from_memory = not self.context.in_sram(self.reads[0])
        to_memory = not self.context.in_sram(self.writes)
        turns = [*self.turns(0), self.count]
        loads = [self._moving(0, chunk) for chunk in turns[:-1]]
        total, stored = loads[0], 0.0
        for (start, stop), load in zip(pairwise(turns), [*loads[1:], 0.0], strict=True):
            gemm, reads = 0.0, load + SEEK if from_memory and load else 0.0
            copy, writes = 0.0 if from_memory else load, 0.0
            for chunk in range(start, stop):
                one = self.chunks[chunk]
                rows = self.pixels(one.rows, one.columns)
                gemm += self._multiplying(rows) + GEMM_OVERHEAD * products
                gemm += (products - 1) * 8 * rows * up(columns) / 16
                seek = SEEK if chunk and chunk % self.copies == 0 else 0
                gemm += seek if self.brief else 0
                reads += self._share_bytes / 16 + (0 if self.brief else seek)
                if len(self.reads) > 1:
                    beside = self._moving(1, chunk)
                    reads += 0.0 if self.context.in_sram(self.reads[1]) else beside
                    copy += beside if self.context.in_sram(self.reads[1]) else 0.0
                writes += stored if to_memory else 0.0
                copy += 0.0 if to_memory else stored
                stored = self._moving(-1, chunk)
            total += max(gemm, reads, writes, copy)
        return total + stored

    def _multiplying(self, rows: int) -> float:
        """Return the cycles in which the array multiplies rows of A with all weights."""
        limits = self.context.limits
        edge = limits.edge
        tiles = up(self.writes.columns, edge) // edge * (self._inner // edge)
        if self.filters.depthwise:
            return tiles * (rows + self.filters.taps - 1)
        return tiles * rows * self.reads[0].size * (edge // limits.array_dim) ** 2

    def _moving(self, number: int, chunk: int) -> float:
        """Return the cycles in which an input, or with -1 the result, of a chunk is moved."""
        one, outer = self.chunks[chunk], self.writes if number < 0 else self.reads[number]
        rows = self._rows(self.bands[one.band])[2] if number == 0 else one.rows
        columns = self.window.width if number == 0 else one.columns
        if not rows or (number and self.direct and self.context.in_sram(outer)):
            return 0.0
        steps = self.steps if number else (self.line, 1)
        view = replace(outer.at(0), shape=(rows, columns, outer.columns))
        cut = _cut(view, *(step * outer.row_bytes for step in steps))
        return cut.count * (COPY_OVERHEAD + cut.rows * (1 + up(cut.size) / 16))


@dataclass(frozen=True, slots=True)
class _Cut:
    """Pixels as `count` times `rows` rows of `size` bytes; pitches and steps in both places."""

    count: int
    step: tuple[int, int]
    rows: int
    pitch: tuple[int, int]
    size: int


def _cut(view: StorageView, line: int, pixel: int) -> _Cut:
    """Return (lines, pixels, C) in the fewest instructions, other arguments as of `_pieces`."""
    lines, pixels, _ = view.shape
    down, across = view.strides[:2]
    size = pixels * view.row_bytes
    if across == view.row_bytes == pixel and size <= COPY_MOST:
        if down == line == size and lines * size <= COPY_MOST:
            lines, size = 1, lines * size
        return _Cut(1, (0, 0), lines, (down, line), size)
    size = view.columns * view.size
    if pixels < lines:
        return _Cut(pixels, (across, pixel), lines, (down, line), size)
    return _Cut(lines, (down, line), pixels, (across, pixel), size)


def _pieces(
    view: StorageView, address: int, line: int, pixel: int
) -> Iterator[tuple[StorageView, SramMatrix]]:
    """Yield (lines, pixels, C) as rows of bytes, and where they lie in SRAM, as few as it takes.

    Args:
        view: where pixels lie.
        address: of the first pixel in SRAM.
        line: bytes from line to line there.
        pixel: bytes from pixel to pixel there.
    """
    cut = _cut(view, line, pixel)
    for number in range(cut.count):
        yield (
            StorageView(
                view.storage,
                view.offset + number * cut.step[0],
                (cut.rows, cut.size),
                (cut.pitch[0], 1),
                TensorElement.I8,
            ),
            SramMatrix(address + number * cut.step[1], cut.rows, cut.size, "int8", cut.pitch[1]),
        )


def line_of(window: MovingWindow) -> int:
    """Return the pixels of a line in SRAM: the border beside a line is the next one's as well.

    Windows of border alone are behind the first of the next line no more than others are.
    """
    last = (window.out[1] - 1) * window.strides[1]
    reach = last + window.span[1] - window.pads[1]
    return max(window.width + window.pads[1], reach, last + 1)


def _steps(window: MovingWindow, filters: Filters) -> tuple[int, int]:
    """Return the rows of a product from a window to that below, and to that beside it."""
    down, across = window.strides
    return down * filters.image // filters.every, across // filters.every


def band_kernel(
    context: Context,
    operation: Operation,
    x: StorageView,
    operand: StorageView | None,
    writes: StorageView,
    filters_of: Callable[[Wide, MovingWindow], Filters | None],
) -> BandKernel | None:
    """Return a convolution cut in the way that takes the fewest cycles; None if nothing fits.

    Args:
        context: what kernels are made from.
        operation: a conv.
        x: image it reads.
        operand: image that a fused sum adds, if it has one.
        writes: image it writes.
        filters_of: returns filters (KH, KW, C / groups, O) as products take them, None if they
            can't.
    """
    weight, limits = context.graph.constant(operation.inputs[1]), context.limits
    assert weight is not None
    if "mult" not in operation.integers:
        return None
    encoding = encoding_of(context.graph.type(operation.inputs[1]))
    window = window_of(operation, x, weight, writes)
    wide = weight.astype(np.int64) - int(operation["w_zero"])
    best: tuple[float, BandKernel] | None = None
    for _ in range(2):
        filters = filters_of(wide, window)
        if filters is not None and filters.held(encoding):
            for bands, rows in _cuts(window, filters, limits.acc_rows // x.size):
                kernel = BandKernel(
                    context, operation, x, operand, writes, window, filters, bands, rows
                )
                if kernel.sram_bytes > context.budget:
                    continue
                cycles = kernel.cycles()
                if best is None or cycles < best[0]:
                    best = cycles, kernel
        x, writes = _turned(x), _turned(writes)
        operand = None if operand is None else _turned(operand)
        window, wide = window.turned, wide.swapaxes(0, 1)
    return None if best is None else best[1]


def _turned(view: StorageView) -> StorageView:
    """Return images with rows for columns."""
    (images, height, width, channels), (image, down, across, size) = view.shape, view.strides
    return replace(
        view, shape=(images, width, height, channels), strides=(image, across, down, size)
    )


BANDS = (1, 2, 3, 4, 5, 6, 8, 12, 16, 28, 56, 112, 224, 448, 1024, 4096)
"""Bands of an image that are tried."""


def _cuts(window: MovingWindow, filters: Filters, most: int) -> Iterator[tuple[Rows, int]]:
    """Yield bands and the output rows of chunks; a chunk of no rows is a part of one."""
    (rows, columns), (down, across) = window.out, _steps(window, filters)
    single = (columns - 1) * across + 1
    fit = (most - single) // down + 1 if single <= most else 0
    sizes = [*(-(-rows // count) for count in BANDS), *(fit * n for n in (1, 2, 3, 4) if fit)]
    for size in dict.fromkeys(min(rows, size) for size in sizes):
        for end in dict.fromkeys((0, size // 2, size // 4)):
            if 2 * end < rows:
                bands = _bands(rows, size, end)
                for part in dict.fromkeys((min(fit, size), min(fit, 1))):
                    yield bands, part


def _bands(rows: int, size: int, end: int) -> Rows:
    """Return bands of at most `size` rows, the first and the last of `end` if that is not 0.

    Nothing is multiplied while the first is loaded and the last is stored.
    """
    inner = [(end + first, count) for first, count in even(rows - 2 * end, size)]
    return [(0, end), *inner, (rows - end, end)] if end else inner
