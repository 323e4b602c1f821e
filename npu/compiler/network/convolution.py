# SPDX-License-Identifier: Apache-2.0
"""Convolutions: rows of a pixel's window made by copies beside the GEMM that multiplies them.

For a row of the filter, the window's pixels of one output pixel are contiguous, and those of its
neighbour overlap with them: one copy with overlapping rows makes them for a whole row of outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from npu.compiler.emit import (
    ELEMENTS,
    Element,
    Epilogue,
    SramMatrix,
    emit_elementwise,
    emit_product,
)
from npu.compiler.errors import CompileError
from npu.compiler.network.epilogues import AfterSums, factor_buffer, finish_of, finish_product
from npu.compiler.network.kernel import Array, Context, Kernel, KernelPlace, even, row_part
from npu.compiler.network.layout import StorageView
from npu.compiler.network.linear import Wide, summands
from npu.compiler.stream import ShareData, weight_share
from npu.graph.form import Operation
from npu.graph.weight_rows import ChannelBlock, blocks_of, encoding_of, filter_rows
from spec.isa.operands import DYNAMIC, up
from weights.formats.codes import codes_of
from weights.formats.recipe import INT8, Encoding

COPY_OVERHEAD, GEMM_OVERHEAD, SEEK = 12, 16, 64
"""Cycles of an instruction besides its work, and of a stream that begins elsewhere."""


@dataclass(frozen=True, slots=True)
class MovingWindow:
    """Geometry of a window that moves over images (B, H, W, C)."""

    height: int
    width: int
    kernel: tuple[int, int]
    strides: tuple[int, int]
    pads: tuple[int, int, int, int]
    dilations: tuple[int, int]
    out: tuple[int, int]

    @property
    def span(self) -> tuple[int, int]:
        """Rows and columns that a window reaches over."""
        return tuple((k - 1) * d + 1 for k, d in zip(self.kernel, self.dilations, strict=True))  # type: ignore[return-value]

    @property
    def padded_width(self) -> int:
        """Columns of a padded row."""
        reach = (self.out[1] - 1) * self.strides[1] + self.span[1]
        return max(reach, self.pads[1] + self.width)

    @property
    def plain(self) -> bool:
        """Whether windows never leave the image."""
        top, left, _bottom, _right = self.pads
        return not (top or left) and (
            (self.out[0] - 1) * self.strides[0] + self.span[0] <= self.height
            and (self.out[1] - 1) * self.strides[1] + self.span[1] <= self.width
        )

    @property
    def turned(self) -> MovingWindow:
        """The same windows with rows for columns."""
        top, left, bottom, right = self.pads
        return MovingWindow(
            self.width,
            self.height,
            self.kernel[::-1],
            self.strides[::-1],
            (left, top, right, bottom),
            self.dilations[::-1],
            self.out[::-1],
        )

    def band(self, first: int, rows: int) -> tuple[int, int]:
        """Return the first row (of the image, may be negative) and rows of some output rows."""
        return first * self.strides[0] - self.pads[0], self.band_rows(rows)

    def band_rows(self, rows: int) -> int:
        """Return the rows of images that some output rows read."""
        return (rows - 1) * self.strides[0] + self.span[0]


@dataclass(frozen=True, slots=True)
class Tiling:
    """How a convolution is cut.

    Attributes:
        pixels: most output pixels of a chunk.
        band: output rows whose input rows are there together.
        parts: pieces in which the rows of the filter are multiplied.
    """

    pixels: int
    band: int
    parts: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """Output rows or a part of one, for one block of channels and some rows of the filter."""

    image: int
    band: int
    band_first: int
    band_rows: int
    y: int
    rows: int
    x: int
    columns: int
    block: int
    taps: tuple[int, int]
    first: bool
    last: bool

    @property
    def pixels(self) -> int:
        """Output pixels."""
        return self.rows * self.columns


class ConvKernel(Kernel):
    """A convolution of images, cut as a tiling says."""

    prepares = True

    def __init__(
        self,
        context: Context,
        operation: Operation,
        x: StorageView,
        operand: StorageView | None,
        writes: StorageView,
        window: MovingWindow,
        blocks: list[ChannelBlock],
        tiling: Tiling,
    ) -> None:
        self.window, self.blocks, self.tiling = window, blocks, tiling
        self.lanes = up(blocks[0].inputs)
        self.chunks = list(self._cut(x.shape[0]))
        image = x.at(0).rows()
        if image is None or writes.at(0).rows() is None:
            raise CompileError(f"{operation.name}: pixels without a pitch")
        self.dense = image.pitch == self.lanes * x.size and len(blocks) == 1
        reads = [x] if operand is None else [x, operand]
        super().__init__(context, operation, reads, writes, len(self.chunks))

    def _cut(self, images: int) -> list[Chunk]:
        found, window, band = [], self.window, 0
        out_rows, out_columns = window.out
        per_row = even(out_columns, self.tiling.pixels)
        most = max(1, self.tiling.pixels // out_columns) if len(per_row) == 1 else 1
        taps = even(window.kernel[0], -(-window.kernel[0] // self.tiling.parts))
        for image in range(images):
            for first, count in even(out_rows, self.tiling.band):
                for block in range(len(self.blocks)):
                    for y, rows in even(count, most):
                        for x, columns in per_row:
                            for number, part in enumerate(taps):
                                last = number == len(taps) - 1
                                found.append(
                                    Chunk(
                                        image,
                                        band,
                                        first,
                                        count,
                                        first + y,
                                        rows,
                                        x,
                                        columns,
                                        block,
                                        part,
                                        number == 0,
                                        last,
                                    )
                                )
                band += 1
        return found

    # Operands -----------------------------------------------------------------------------------

    def early(self, number: int) -> bool:
        """Whether an input is read by copies only."""
        return number == 0

    def staged(self, number: int) -> bool:
        """Whether an input goes through a stage: it lies in memory, or needs a border."""
        if number:
            return super().staged(number)
        return super().staged(0) or not self.dense or not self.window.plain

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the input rows of a chunk's band, or the pixels of an operand."""
        one = self.chunks[chunk]
        if number:
            return self._pixels(self.reads[number], one)
        first, rows = self.window.band(one.band_first, one.band_rows)
        top, bottom = max(0, first), min(self.window.height, first + rows)
        width = self.window.width
        image = self.reads[0].at(one.image)
        return row_part(image, top * width, max(0, bottom - top) * width)

    def turns(self, number: int) -> list[int]:
        """Return the chunks that begin a band: the same rows lie elsewhere in another border."""
        if number:
            return super().turns(number)
        return self._band_turns

    @cached_property
    def _band_turns(self) -> list[int]:
        bands = [one.band for one in self.chunks]
        return [i for i, band in enumerate(bands) if i == 0 or band != bands[i - 1]]

    def _pixels(self, view: StorageView, one: Chunk) -> StorageView:
        """Return the output pixels of a chunk, in the columns of its block."""
        block = self.blocks[one.block]
        part = row_part(
            view.at(one.image), one.y * self.window.out[1] + one.x, one.rows * one.columns
        )
        if len(self.blocks) == 1:
            return part
        return StorageView(
            part.storage,
            part.offset + block.first_output * part.size,
            (part.shape[0], block.outputs),
            part.strides,
            part.element,
        )

    def target(self, chunk: int) -> StorageView:
        """Return the output pixels of a chunk."""
        return self._pixels(self.writes, self.chunks[chunk])

    def final(self, chunk: int) -> bool:
        """Whether a chunk ends a result."""
        return self.chunks[chunk].last

    @property
    def pixel_bytes(self) -> int:
        """Bytes of a pixel of a block in the stage."""
        return self.lanes * self.reads[0].size

    @cached_property
    def stage_rows(self) -> int:
        """Rows of the highest band."""
        return self.window.band_rows(max(one.band_rows for one in self.chunks))

    def sizes(self) -> Iterable[int]:
        """Return chunks of all sizes of results."""
        return {(one.block, one.pixels): i for i, one in enumerate(self.chunks)}.values()

    def stage_bytes(self, number: int) -> int:
        """Return the bytes of a slot."""
        if number:
            return super().stage_bytes(number)
        plane = self.stage_rows * self.window.padded_width * self.pixel_bytes
        return plane * len(self.blocks)

    @property
    def row_bytes(self) -> int:
        """Bytes of a row of operand A."""
        taps = max(count for _, count in (one.taps for one in self.chunks))
        return taps * self.window.kernel[1] * self.pixel_bytes

    @property
    def buffers(self) -> dict[str, int]:
        """Rows of windows for two chunks, and partial sums."""
        pixels = max(one.pixels for one in self.chunks)
        found = {f"rows{slot}": pixels * self.row_bytes for slot in range(min(2, self.count))}
        if self._sums:
            columns = max(block.outputs for block in self.blocks)
            # Of int16 pixels they are two planes, of high and of low bytes.
            found["sums"] = pixels * up(4 * columns) * self.reads[0].size
            found |= factor_buffer(self.operation, pixels, columns)
        if self._plain_bias is not None:
            found["bias"] = found.get("sums", pixels * up(4 * self.blocks[0].outputs))
        return found

    @property
    def _sums(self) -> bool:
        return self.tiling.parts > 1 or any(block.wide for block in self.blocks)

    # Parameters ---------------------------------------------------------------------------------

    @cached_property
    def finishes(self) -> list[AfterSums]:
        """What follows the sums, by block."""
        total = np.concatenate([block.weight.sum((0, 1, 2)) for block in self.blocks])
        correction = -int(self.operation["x_zero"]) * total
        whole = finish_of(self.operation, total.shape[0], correction)
        return [whole.columns(block.first_output, block.outputs) for block in self.blocks]

    @cached_property
    def _plain_bias(self) -> Wide | None:
        """What int32 results have added; None for nothing."""
        if "mult" in self.operation.integers:
            return None
        total = self.blocks[0].weight.sum((0, 1, 2))
        bias = self.operation.integers.get("bias", np.zeros(1, np.int32)).astype(np.int64)
        plain = np.broadcast_to(bias - int(self.operation["x_zero"]) * total, total.shape)
        if plain.any() and len(self.blocks) > 1:
            raise CompileError(f"{self.operation.name}: int32 results of groups with a zero point")
        return plain if plain.any() else None

    @property
    def constants(self) -> dict[str, bytes]:
        """The bias of int32 results, a row for each pixel of a chunk."""
        if self._plain_bias is None:
            return {}
        pixels = max(one.pixels for one in self.chunks)
        row = np.zeros(up(4 * self._plain_bias.shape[0]) // 4, "<i4")
        row[: self._plain_bias.shape[0]] = self._plain_bias
        return {"bias": np.tile(row, pixels).tobytes()}

    @property
    def shares(self) -> dict[str, ShareData]:
        """Weights by block and rows of the filter; channels with the last."""
        limits, found = self.context.limits, {}
        for one in self.chunks:
            name = _share_name(one, 0)
            if name in found:
                continue
            first, count = one.taps
            matrix = self._matrix(one.block, first, count)
            finish = self.finishes[one.block]
            for number, weight in enumerate(matrix):
                final = one.last and number == len(matrix) - 1
                channels = finish.channels if final else None
                table = finish.table if final else None
                found[_share_name(one, number)] = weight_share(
                    self.operation.name, limits, weight, channels, table, self.encoding
                )
        return found

    def _matrix(self, block: int, first: int, count: int) -> list[np.ndarray]:
        """Return the (K, N) weights of some rows of a block's filter."""
        return summands(filter_rows(self.blocks[block].weight[first : first + count]))

    @cached_property
    def encoding(self) -> Encoding:
        """What the weights were rounded to."""
        return encoding_of(self.context.graph.type(self.operation.inputs[1]))

    def holds(self) -> bool:
        """Say whether each share holds the weights in their format: groups may not be cut."""
        parts = {(one.block, *one.taps): one for one in self.chunks}
        return self.encoding == INT8 or all(
            codes_of(self.encoding, weight) is not None
            for part in parts
            for weight in self._matrix(*part)
        )

    # Instructions -------------------------------------------------------------------------------

    def begin(self, place: KernelPlace) -> None:
        """Fill the border beside images, and load the bias of int32 results."""
        if self._plain_bias is not None:
            place.constant("bias", place.scratch("bias"))
        if self.staged(0) and not self.window.plain:
            for slot in range(self.slots(0)):
                address, rows = place.scratch(f"stage0.{slot}"), self.stage_rows * len(self.blocks)
                left, width = self.window.pads[1], self.window.width
                right = self.window.padded_width - left - width
                self._fill(place, address, rows, left)
                self._fill(place, address + (left + width) * self.pixel_bytes, rows, right)

    def _fill(self, place: KernelPlace, address: int, rows: int, pixels: int) -> None:
        """Fill pixels of padded rows with the value of the border."""
        size, unit = pixels * self.pixel_bytes, self.reads[0].size
        pitch = self.window.padded_width * self.pixel_bytes
        value = int(self.operation["pad_value"])
        value = value - 256 if unit == 1 and value > 127 else value
        most = COPY_MOST * unit
        for first in range(0, size if rows else 0, most):
            columns = min(most, size - first) // unit
            matrix = SramMatrix(address + first, rows, columns, self._element, pitch)
            emit_elementwise(place.builder, "clamp", matrix, matrix, lo=value, hi=value)

    def fetch(self, place: KernelPlace, number: int, chunk: int, slot: int) -> None:
        """Bring a band into the middle of its border."""
        if number:
            super().fetch(place, number, chunk, slot)
            return
        one, window = self.chunks[chunk], self.window
        first, rows = window.band(one.band_first, one.band_rows)
        top = min(rows, max(0, -first))
        bottom = min(rows, max(0, first + rows - window.height))
        line = window.padded_width * self.pixel_bytes
        source = self.part(0, chunk)
        inner = source.shape[0] // window.width
        for block in range(len(self.blocks)):
            plane = slot + block * self.stage_rows * line
            self._fill(place, plane, top, window.padded_width)
            self._fill(place, plane + (top + inner) * line, bottom, window.padded_width)
            at = plane + top * line + window.pads[1] * self.pixel_bytes
            if inner:
                self._fetch_plane(place, source, block, at, line, inner)

    def _fetch_plane(
        self, place: KernelPlace, source: StorageView, block: int, at: int, line: int, rows: int
    ) -> None:
        """Bring the channels of a block: whole rows at once where pixels are dense."""
        width, pixel = self.window.width, self.pixel_bytes
        step = source.strides[0]
        if self.dense and width * pixel // source.size < COPY_MOST:
            lines = StorageView(
                source.storage,
                source.offset,
                (rows, width * pixel // source.size),
                (width * step, source.size),
                source.element,
            )
            _bring(place, lines, at, line)
            return
        offset = block * self.lanes * source.size
        count = min(self.lanes, source.columns - block * self.lanes)
        turns, each = (1, rows) if width == 1 else (rows, width)
        for number in range(turns):
            pixels = StorageView(
                source.storage,
                source.offset + number * width * step + offset,
                (each, count),
                (step, source.size),
                source.element,
            )
            _bring(place, pixels, at + number * line, line if width == 1 else pixel)

    def prepare(self, place: KernelPlace, chunk: int) -> None:
        """Copy the windows of a chunk's pixels."""
        one, window, pixel = self.chunks[chunk], self.window, self.pixel_bytes
        slot = place.scratch(f"rows{chunk % 2}")
        origin, line = self._origin(place, chunk)
        kernel = window.kernel[1]
        row = one.taps[1] * kernel * pixel
        element = self._element
        unit = 2 if element == "int16" else 1
        lines, columns, pitch = one.rows, one.columns, window.strides[1] * pixel
        if columns == window.out[1] and window.strides[0] * line == columns * pitch:
            lines, columns = 1, one.rows * one.columns
        elif window.out[1] == 1:
            lines, columns, pitch = 1, one.rows, window.strides[0] * line
        for y in range(lines):
            for tap in range(one.taps[1]):
                top = (one.y - one.band_first + y) * window.strides[0]
                top += (one.taps[0] + tap) * window.dilations[0]
                source = origin + top * line + one.x * window.strides[1] * pixel
                target = slot + y * one.columns * row + tap * kernel * pixel
                self._copy(place, source, target, columns, pitch, row, element, unit)

    def _copy(
        self,
        place: KernelPlace,
        source: int,
        target: int,
        columns: int,
        pitch: int,
        row: int,
        element: Element,
        unit: int,
    ) -> None:
        """Copy one row of the filter for neighbouring pixels; tap by tap if they are apart."""
        window, pixel = self.window, self.pixel_bytes
        kernel, dilation = window.kernel[1], window.dilations[1]
        joined = dilation == 1 or kernel == 1
        for tap in range(1 if joined else kernel):
            size = kernel * pixel if joined else pixel
            a = SramMatrix(
                source + tap * dilation * pixel,
                columns,
                size // unit,
                element,
                pitch,
            )
            dst = SramMatrix(
                target + tap * pixel,
                columns,
                size // unit,
                element,
                row,
            )
            emit_elementwise(place.builder, "copy2d", a, dst)

    @property
    def _element(self) -> Element:
        return "int16" if self.reads[0].size == 2 else "int8"

    def _origin(self, place: KernelPlace, chunk: int) -> tuple[int, int]:
        """Return the address of a chunk's band and the bytes of its rows."""
        one, window, pixel = self.chunks[chunk], self.window, self.pixel_bytes
        if not self.staged(0):
            return place.source(0, chunk).address, window.width * pixel
        line = window.padded_width * pixel
        plane = one.block * self.stage_rows * line
        return place.source(0, chunk).address + plane, line

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Multiply the rows of a chunk."""
        one, dst = self.chunks[chunk], place.result(chunk)
        element = ELEMENTS[self.reads[0].element]
        unit = self.reads[0].size
        columns = one.taps[1] * self.window.kernel[1] * self.pixel_bytes // unit
        rows = place.scratch(f"rows{chunk % 2}")
        a = SramMatrix(rows, one.pixels, columns, element)
        partial = None
        if self._sums:
            partial = SramMatrix(place.scratch("sums"), one.pixels, dst.columns, "int32")
        sums = None if one.first else partial
        if one.first and self._plain_bias is not None:
            sums = SramMatrix(place.scratch("bias"), one.pixels, dst.columns, "int32")
        count = len(self._matrix(one.block, *one.taps)) if self._sums else 1
        for number in range(count):
            share = place.share(_share_name(one, number))
            if one.last and number == count - 1:
                operand = place.source(1, chunk) if len(self.reads) > 1 else None
                finish = self.finishes[one.block]
                finish_product(place, a, None, dst, share, finish, sums=sums, operand=operand)
                return
            assert partial is not None
            epilogue = Epilogue(sums=sums, channels=False)
            emit_product(place.builder, a, None, partial, share, epilogue)
            sums = partial


COPY_MOST = (DYNAMIC - 1) // 16 * 16
"""Most elements of a row of an instruction, in whole words."""


def _share_name(one: Chunk, number: int) -> str:
    return f"block{one.block}.taps{one.taps[0]}.weight{number}"


def _bring(place: KernelPlace, source: StorageView, address: int, pitch: int) -> None:
    """Copy rows within SRAM, or load them from memory."""
    matrix = place.view(source)
    if matrix is None:
        place.load(source, address, pitch)
        return
    rows = SramMatrix(address, matrix.rows, matrix.columns, matrix.element, pitch)
    emit_elementwise(place.builder, "copy2d", matrix, rows)


def window_of(
    operation: Operation, x: StorageView, weight: Array, writes: StorageView
) -> MovingWindow:
    """Return how the filter (KH, KW, ...) of a convolution moves over its images."""
    return MovingWindow(
        x.shape[1],
        x.shape[2],
        (weight.shape[0], weight.shape[1]),
        tuple(operation["strides"]),
        tuple(operation["pads"]),
        tuple(operation["dilations"]),
        (writes.shape[1], writes.shape[2]),
    )


def conv_kernel(
    context: Context,
    operation: Operation,
    x: StorageView,
    operand: StorageView | None,
    writes: StorageView,
) -> ConvKernel:
    """Return the convolution cut in the way that takes the fewest cycles of those that fit.

    Raises CompileError if none does.
    """
    weight = context.graph.constant(operation.inputs[1])
    assert weight is not None
    window = window_of(operation, x, weight, writes)
    wide = weight.astype(np.int64) - int(operation["w_zero"])

    def fitting(window: MovingWindow, filters: Wide) -> Iterator[ConvKernel]:
        blocks, whole = blocks_of(filters, operation["groups"]), dict[int, bool]()
        for tiling in _tilings(window, context.limits.acc_rows // x.size):
            kernel = ConvKernel(context, operation, x, operand, writes, window, blocks, tiling)
            if kernel.sram_bytes > context.budget:
                continue
            if tiling.parts not in whole:
                whole[tiling.parts] = kernel.holds()
            if whole[tiling.parts]:
                yield kernel

    best: tuple[float, ConvKernel] | None = None
    for kernel in fitting(window, wide):
        if kernel.tiling.parts > 1 and operation["combine"] == "mul" and best is not None:
            break  # GEMM multiplies with no operand behind partial sums
        cycles = cycles_of(kernel)
        if best is None or cycles < best[0]:
            best = cycles, kernel
    if best is not None:
        return best[1]
    if window.height == window.kernel[0] == window.out[0] == 1:
        # A line is cut along its length, as an image of one column: the longest parts that fit.
        turned = fitting(window.turned, wide.reshape(-1, 1, *wide.shape[2:]))
        for kernel in turned:
            return kernel
    encoding = encoding_of(context.graph.type(operation.inputs[1]))
    groups = f" and whole groups of {encoding}" if encoding.group else ""
    raise CompileError(
        f"{operation.name}: no cut of a convolution of {x.shape} with {weight.shape}{groups} fits "
        f"{context.budget} bytes of SRAM"
    )


def _tilings(window: MovingWindow, most: int) -> list[Tiling]:
    rows, columns = window.out
    pixels = sorted({min(most, rows * columns), *(most * n // 8 for n in range(1, 8))})
    bands = [rows, *(-(-rows // n) for n in (2, 3, 4, 6, 8, 12, 16, 28, 56, 112))]
    if columns == 1:
        bands += [-(-rows // n) for n in (224, 448, 1024, 2048, 4096)]  # of a line
    parts = [1, *([window.kernel[0]] if window.kernel[0] > 1 else [])]
    return [
        Tiling(count, band, part)
        for part in parts
        for count in reversed(pixels)
        for band in dict.fromkeys(bands)
    ]


def cycles_of(kernel: ConvKernel) -> float:
    """Return the modelled cycles: of each chunk the longest of multiplying, copying, the stream."""
    total, window = 0.0, kernel.window
    band, load = -1, kernel.stage_bytes(0) / 16 if kernel.staged(0) else 0.0
    products = 1 + any(block.wide for block in kernel.blocks)
    for one in kernel.chunks:
        block = kernel.blocks[one.block]
        inner = one.taps[1] * window.kernel[1] * kernel.lanes
        columns = up(block.outputs)
        gemm = one.pixels * inner * columns / kernel.context.limits.array_dim**2 + GEMM_OVERHEAD
        gemm *= kernel.reads[0].size
        gemm *= products
        if products > 1 or not (one.first and one.last):
            gemm += 8 * one.pixels * columns / 16
        stream = products * (inner * columns / 16 + SEEK)
        copies = one.rows * one.taps[1] * (1 if window.dilations[1] == 1 else window.kernel[1])
        copy = one.pixels * inner * kernel.reads[0].size / 16 + COPY_OVERHEAD * copies
        if one.band != band and kernel.staged(0):
            band = one.band
            if kernel.context.in_sram(kernel.reads[0]):
                copy += load
            else:
                stream += load
        total += max(gemm, stream, copy)
        if one is kernel.chunks[0]:
            total += copy
    return total
