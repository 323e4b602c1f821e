# SPDX-License-Identifier: Apache-2.0
"""Windows that take the largest or the mean of their pixels, and means of rows."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from npu.compiler.emit import Epilogue, SramMatrix, emit_elementwise, emit_product
from npu.compiler.errors import CompileError
from npu.compiler.network.convolution import COPY_MOST, MovingWindow, _bring
from npu.compiler.network.kernel import Context, Kernel, KernelPlace, even, row_part
from npu.compiler.network.layout import StorageView
from npu.compiler.stream import Channels, ShareData, product_share
from npu.graph.form import Operation
from spec.isa.generated import Opcode
from spec.isa.operands import up


def window_of(operation: Operation, x: StorageView, writes: StorageView) -> MovingWindow:
    """Return the geometry of a pool."""
    dilations = operation.attributes.get("dilations", (1, 1))
    return MovingWindow(
        x.shape[1],
        x.shape[2],
        tuple(operation["window"]),
        tuple(operation["strides"]),
        tuple(operation["pads"]),
        dilations,  # type: ignore[arg-type]
        (writes.shape[1], writes.shape[2]),
    )


class BandKernel(Kernel):
    """Work on bands of output rows of images, each with the input rows that it needs."""

    def __init__(
        self, context: Context, operation: Operation, x: StorageView, writes: StorageView, band: int
    ) -> None:
        self.window = window_of(operation, x, writes)
        self.bands = [
            (image, first, count)
            for image in range(x.shape[0])
            for first, count in even(self.window.out[0], band)
        ]
        super().__init__(context, operation, [x], writes, len(self.bands))

    def rows_of(self, chunk: int) -> tuple[int, int]:
        """Return the first row and the number of rows of the image that a band reads."""
        _, first, count = self.bands[chunk]
        top, rows = self.window.band(first, count)
        start, end = max(0, top), min(self.window.height, top + rows)
        return start, max(0, end - start)

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the input rows of a band."""
        width = self.window.width
        first, rows = self.rows_of(chunk)
        image = self.reads[number].at(self.bands[chunk][0])
        return row_part(image, first * width, rows * width)

    def target(self, chunk: int) -> StorageView:
        """Return the output rows of a band."""
        image, first, count = self.bands[chunk]
        columns = self.window.out[1]
        return row_part(self.writes.at(image), first * columns, count * columns)


class MaxPoolKernel(BandKernel):
    """The largest of windows: of whole rows first, then of neighbouring pixels."""

    prepares = True

    def __init__(
        self, context: Context, operation: Operation, x: StorageView, writes: StorageView, band: int
    ) -> None:
        super().__init__(context, operation, x, writes, band)
        rows = x.at(0).rows()
        if rows is None:
            raise CompileError(f"{operation.name}: pixels without a pitch")
        self.pixel = x.row_bytes
        self.dense = rows.pitch == self.pixel

    def staged(self, number: int) -> bool:
        """Whether the input needs a border, or lies in memory or with gaps."""
        return super().staged(number) or not self.window.plain or not self.dense

    def early(self, number: int) -> bool:
        """Whether the stage is read by `prepare` only."""
        del number
        return True

    def turns(self, number: int) -> list[int]:
        """Return all chunks: the same rows lie elsewhere in another band's border."""
        del number
        return list(range(self.count))

    @property
    def line(self) -> int:
        """Bytes of a row of the stage."""
        width = self.window.padded_width if self.staged(0) else self.window.width
        return width * self.pixel

    @property
    def most(self) -> int:
        """Output rows of the highest band."""
        return max(count for _, _, count in self.bands)

    def stage_bytes(self, number: int) -> int:
        """Return the bytes of a slot."""
        del number
        return self.window.band_rows(self.most) * self.line

    @property
    def tall(self) -> bool:
        """Whether windows are higher than a row."""
        return self.window.kernel[0] > 1

    @property
    def buffers(self) -> dict[str, int]:
        """The largest of the rows of windows."""
        return {"columns": self.most * self.line} if self.tall else {}

    def begin(self, place: KernelPlace) -> None:
        """Fill stages with what never wins."""
        if self.staged(0) and not self.window.plain:
            for slot in range(self.slots(0)):
                self._fill(place, place.scratch(f"stage0.{slot}"), self.window.band_rows(self.most))

    def _fill(self, place: KernelPlace, address: int, rows: int) -> None:
        for first in range(0, self.line if rows else 0, COPY_MOST):
            columns = min(COPY_MOST, self.line - first)
            matrix = SramMatrix(address + first, rows, columns, "int8", self.line)
            emit_elementwise(place.builder, "clamp", matrix, matrix, lo=-128, hi=-128)

    def fetch(self, place: KernelPlace, number: int, chunk: int, slot: int) -> None:
        """Bring a band into the middle of its border."""
        _, first, count = self.bands[chunk]
        window, source = self.window, self.part(number, chunk)
        top = -min(0, window.band(first, count)[0])
        rows = source.shape[0] // window.width
        below = window.band_rows(count) - top - rows
        if chunk >= self.slots(0):
            self._fill(place, slot, min(top, window.band_rows(count)))
            self._fill(place, slot + (top + rows) * self.line, max(0, below))
        at = slot + top * self.line + window.pads[1] * self.pixel
        step = source.strides[0]
        if self.dense and window.width * self.pixel <= COPY_MOST:
            width = window.width * self.pixel
            lines = StorageView(
                source.storage, source.offset, (rows, width), (width, 1), source.element
            )
            if rows:
                _bring(place, lines, at, self.line)
            return
        for row in range(rows):
            pixels = StorageView(
                source.storage,
                source.offset + row * window.width * step,
                (window.width, source.columns),
                (step, 1),
                source.element,
            )
            _bring(place, pixels, at + row * self.line, self.pixel)

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit the comparisons of neighbouring pixels."""
        _, _, count = self.bands[chunk]
        window, dst = self.window, place.result(chunk)
        rows = place.scratch("columns") if self.tall else place.source(0, chunk).address
        step = self.line * (1 if self.tall else window.strides[0])
        columns = window.out[1]
        lines, each = count, columns
        if columns * window.strides[1] * self.pixel == step:
            lines, each = 1, count * columns
        for y in range(lines):
            out = dst.part(y * each, each)
            taps = [
                SramMatrix(
                    rows + y * step + tap * window.dilations[1] * self.pixel,
                    each,
                    dst.columns,
                    "int8",
                    window.strides[1] * self.pixel,
                )
                for tap in range(window.kernel[1])
            ]
            if len(taps) == 1:
                emit_elementwise(place.builder, "copy2d", taps[0], out)
                continue
            emit_elementwise(place.builder, "max", taps[0], out, taps[1])
            for tap in taps[2:]:
                emit_elementwise(place.builder, "max", out, out, tap)

    def prepare(self, place: KernelPlace, chunk: int) -> None:
        """Emit the comparisons of whole rows."""
        if not self.tall:
            return
        _, _, count = self.bands[chunk]
        window, source = self.window, place.source(0, chunk).address
        for first in range(0, self.line, COPY_MOST):
            size = min(COPY_MOST, self.line - first)
            out = SramMatrix(place.scratch("columns") + first, count, size, "int8", self.line)
            taps = [
                SramMatrix(
                    source + first + tap * window.dilations[0] * self.line,
                    count,
                    size,
                    "int8",
                    window.strides[0] * self.line,
                )
                for tap in range(window.kernel[0])
            ]
            emit_elementwise(place.builder, "max", taps[0], out, taps[1])
            for tap in taps[2:]:
                emit_elementwise(place.builder, "max", out, out, tap)


class AveragePoolKernel(BandKernel):
    """The mean of windows: rows of weights where a window is, multiplied with the band's pixels."""

    def __init__(
        self, context: Context, operation: Operation, x: StorageView, writes: StorageView, band: int
    ) -> None:
        super().__init__(context, operation, x, writes, band)
        if max(count for _, _, count in self.bands) * self.window.out[1] < 1:
            raise CompileError(f"{operation.name}: no output")

    def groups(self, chunk: int) -> list[tuple[int, int]]:
        """Return (first, count) of neighbouring outputs that are scaled alike."""
        _, first, count = self.bands[chunk]
        values = self._factors(first, count)
        cuts = [0, *(np.flatnonzero((np.diff(values, axis=0) != 0).any(axis=1)) + 1), len(values)]
        most = self.context.limits.acc_rows
        return [
            (int(a) + at, n)
            for a, b in itertools.pairwise(cuts)
            for at, n in even(int(b - a), most)
        ]

    def _factors(self, first: int, count: int) -> npt.NDArray[np.int64]:
        """Return (outputs, 3) bias, mult and shift of the outputs of some rows."""
        one = self.operation.integers
        out = self.window.out
        parts = [
            np.broadcast_to(one[name].astype(np.int64).reshape(-1), out[0] * out[1])
            if one[name].size == 1
            else one[name].astype(np.int64).reshape(-1)
            for name in ("bias", "mult", "shift")
        ]
        whole = np.stack(parts, axis=1)
        return whole[first * out[1] : (first + count) * out[1]]

    def _weights(self, chunk: int) -> npt.NDArray[np.int8]:
        """Return (outputs, pixels of the band) weights where a window is."""
        _, first, count = self.bands[chunk]
        window = self.window
        start, rows = self.rows_of(chunk)
        down = _reach(window, 0, first, count, start, rows)
        across = _reach(window, 1, 0, window.out[1], 0, window.width)
        weights = np.einsum("yr,xc->yxrc", down, across) * self.operation["weight"]
        return np.asarray(weights, np.int8).reshape(count * window.out[1], rows * window.width)

    @property
    def _kinds(self) -> list[int]:
        """Return for each chunk the first chunk with the same weights."""
        seen: dict[bytes, int] = {}
        return [seen.setdefault(self._weights(i).tobytes(), i) for i in range(self.count)]

    @property
    def constants(self) -> dict[str, bytes]:
        """The weights of each kind of band, rows of whole words."""
        found = {}
        for chunk in dict.fromkeys(self._kinds):
            weights = self._weights(chunk)
            padded = np.zeros((weights.shape[0], up(weights.shape[1])), np.int8)
            padded[:, : weights.shape[1]] = weights
            found[f"weights{chunk}"] = padded.tobytes()
        return found

    @property
    def buffers(self) -> dict[str, int]:
        """The weights."""
        return {name: len(data) for name, data in self.constants.items()}

    @property
    def shares(self) -> dict[str, ShareData]:
        """The factors of each group, the same for all channels."""
        found, columns = {}, self.writes.columns
        for chunk in range(self.count):
            values = self._factors(*self.bands[chunk][1:])
            for first, _ in self.groups(chunk):
                bias, mult, shift = values[first]
                channels = Channels(
                    np.full(columns, bias, np.int32),
                    np.full(columns, mult, np.uint16),
                    np.full(columns, shift, np.uint8),
                )
                name = f"factor{bias}.{mult}.{shift}"
                edge = self.context.limits.edge
                found[name] = ShareData(Opcode.GEMM, product_share(edge, None, channels))
        return found

    def begin(self, place: KernelPlace) -> None:
        """Load the weights."""
        for name in self.constants:
            place.constant(name, place.scratch(name))

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit a product for each group of outputs."""
        kind = self._kinds[chunk]
        pixels, dst = place.source(0, chunk), place.result(chunk)
        weights = place.scratch(f"weights{kind}")
        values = self._factors(*self.bands[chunk][1:])
        for first, count in self.groups(chunk):
            bias, mult, shift = values[first]
            a = SramMatrix(weights + first * up(pixels.rows), count, pixels.rows)
            share = place.share(f"factor{bias}.{mult}.{shift}")
            out = dst.part(first, count)
            emit_product(place.builder, a, pixels, out, share, Epilogue())


def _reach(
    window: MovingWindow, axis: int, first: int, count: int, start: int, size: int
) -> npt.NDArray[np.int64]:
    """Return (outputs, rows) ones where outputs along an axis read rows."""
    result = np.zeros((count, size), np.int64)
    for out in range(count):
        begin = (first + out) * window.strides[axis] - window.pads[axis]
        for tap in range(window.kernel[axis]):
            at = begin + tap * window.dilations[axis] - start
            if 0 <= at < size:
                result[out, at] += 1
    return result


class MeanKernel(Kernel):
    """The mean of rows: a row of weights multiplied with them."""

    def __init__(
        self,
        context: Context,
        operation: Operation,
        x: StorageView,
        writes: StorageView,
        outer: int,
    ) -> None:
        self.inner = int(np.prod(x.shape[outer:-1]))
        self.outer = list(np.ndindex(*x.shape[:outer]))
        super().__init__(context, operation, [x], writes, len(self.outer))

    def part(self, number: int, chunk: int) -> StorageView:
        """Return the rows whose mean is taken."""
        return row_part(self.reads[number].at(*self.outer[chunk]), 0, self.inner)

    def target(self, chunk: int) -> StorageView:
        """Return the row of their mean."""
        return row_part(self.writes, chunk, 1)

    @property
    def buffers(self) -> dict[str, int]:
        """A row of weights."""
        return {"weights": up(self.inner)}

    @property
    def constants(self) -> dict[str, bytes]:
        """The weights."""
        return {"weights": bytes([self.operation["weight"]]) * self.inner + bytes(-self.inner % 16)}

    @property
    def shares(self) -> dict[str, ShareData]:
        """The factor of all columns."""
        one, columns = self.operation.integers, self.writes.columns
        channels = Channels(
            np.full(columns, int(one["bias"].reshape(-1)[0]), np.int32),
            np.full(columns, int(one["mult"].reshape(-1)[0]), np.uint16),
            np.full(columns, int(one["shift"].reshape(-1)[0]), np.uint8),
        )
        edge = self.context.limits.edge
        return {"factor": ShareData(Opcode.GEMM, product_share(edge, None, channels))}

    def begin(self, place: KernelPlace) -> None:
        """Load the weights."""
        place.constant("weights", place.scratch("weights"))

    def compute(self, place: KernelPlace, chunk: int) -> None:
        """Emit the product."""
        rows, dst = place.source(0, chunk), place.result(chunk)
        a = SramMatrix(place.scratch("weights"), 1, self.inner)
        emit_product(place.builder, a, rows, dst, place.share("factor"), Epilogue())
