# SPDX-License-Identifier: Apache-2.0
"""Random int8 and int16 models of TFLite, of one operator each: shapes, scales, zeros by seed.

Scales are those of int8; int16 has steps of a 256th and zero points of 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from npu.graph.form import Array
from tests.python.importers.tflite_writer import Writer

Unit: TypeAlias = tuple[float, int]
PROBABILITIES: Unit = (1 / 256, -128)
"""What LiteRT demands of SOFTMAX and LOGISTIC."""
_PLAIN = {"dilation_across": 1, "dilation_down": 1}


@dataclass
class IntegerModel:
    """A model under construction.

    Attributes:
        random: source of everything.
        dtype: of activations, int8 or int16.
        writer: of the file.
        shapes: of the inputs.
        units: their scales and zero points.
    """

    random: np.random.Generator
    dtype: str = "int8"
    writer: Writer = field(default_factory=Writer)
    shapes: list[tuple[int, ...]] = field(default_factory=list)
    units: list[Unit] = field(default_factory=list)
    _inputs: list[int] = field(default_factory=list)
    _outputs: list[int] = field(default_factory=list)

    def unit(self, scale: float) -> Unit:
        """Return a scale near one, as a file holds it, and any zero point."""
        value = np.float32(scale * self.random.uniform(0.7, 1.4))
        return float(value), int(self.random.integers(-128, 128))

    def size(self, least: int, most: int) -> int:
        """Return a size."""
        return int(self.random.integers(least, most + 1))

    def input(self, shape: tuple[int, ...], unit: Unit | None = None) -> int:
        """Add an input."""
        unit = unit or self.unit(0.03)
        number = self._tensor(f"x{len(self.shapes)}", shape, unit)
        self.shapes.append(shape)
        self.units.append(unit)
        self._inputs.append(number)
        return number

    def output(self, shape: tuple[int, ...], unit: Unit) -> int:
        """Add the output."""
        number = self._tensor("y", shape, unit)
        self._outputs.append(number)
        return number

    @property
    def _steps(self) -> int:
        """Steps of an activation in one of int8."""
        return 256 if self.dtype == "int16" else 1

    def _tensor(self, name: str, shape: tuple[int, ...], unit: Unit) -> int:
        (scale, zero), steps = unit, self._steps
        if steps > 1:
            scale, zero = (1 / 128 if unit == PROBABILITIES else scale), 0
        return self.writer.tensor(name, shape, self.dtype, scale=scale / steps, zero=zero)

    def weights(self, shape: tuple[int, ...], axis: int, x: Unit) -> tuple[int, int, Array]:
        """Add weights with a scale per filter, and a bias; return both and the scales."""
        count = shape[axis]
        scales = self.random.uniform(0.004, 0.03, count).astype(np.float32)
        w = self.random.integers(-127, 128, shape, dtype=np.int8)
        held = self.writer.constant("w", w, scale=scales.tolist(), axis=axis)
        bias = self.random.integers(-3000, 3000, count) * self._steps
        bias = bias.astype(np.int64 if self._steps > 1 else np.int32)
        units = (np.float32(x[0] / self._steps) * scales).tolist()
        return held, self.writer.constant("b", bias, scale=units), scales

    def file(self) -> bytes:
        """Return the file."""
        return self.writer.write(self._inputs, self._outputs)

    def values(self) -> list[Array]:
        """Return full-range inputs."""
        edges = np.iinfo(self.dtype)
        draw = partial(self.random.integers, edges.min, edges.max, endpoint=True)
        return [draw(one).astype(self.dtype) for one in self.shapes]


def _image(m: IntegerModel) -> tuple[int, ...]:
    return 1, m.size(5, 12), m.size(5, 12), m.size(3, 24)


def _conv(m: IntegerModel) -> None:
    shape, filters = _image(m), m.size(3, 20)
    x = m.input(shape)
    w, b, scales = m.weights((filters, 3, 3, shape[3]), 0, m.units[0])
    natural = m.units[0][0] * float(scales.mean()) * 74 * 73 * np.sqrt(9 * shape[3]) / 40
    y = m.output((1, shape[1], shape[2], filters), m.unit(natural))
    steps = {"padding": 0, "across": 1, "down": 1, "fused": m.size(0, 1), **_PLAIN}
    m.writer.operator("CONV_2D", (x, w, b), (y,), **steps)


def _depthwise(m: IntegerModel) -> None:
    shape = _image(m)
    x = m.input(shape)
    w, b, scales = m.weights((1, 3, 3, shape[3]), 3, m.units[0])
    natural = m.units[0][0] * float(scales.mean()) * 74 * 73 * 3 / 40
    y = m.output(shape, m.unit(natural))
    steps = {"padding": 0, "across": 1, "down": 1, "fused": 0, "multiplier": 1, **_PLAIN}
    m.writer.operator("DEPTHWISE_CONV_2D", (x, w, b), (y,), **steps)


def _dense(m: IntegerModel) -> None:
    rows, inner, columns = m.size(1, 12), m.size(8, 200), m.size(4, 40)
    x = m.input((rows, inner))
    w, b, scales = m.weights((columns, inner), 0, m.units[0])
    natural = m.units[0][0] * float(scales.mean()) * 74 * 73 * np.sqrt(inner) / 40
    y = m.output((rows, columns), m.unit(natural))
    m.writer.operator("FULLY_CONNECTED", (x, w, b), (y,), fused=0)


def _batch(m: IntegerModel) -> None:
    count, rows, inner, columns = m.size(1, 3), m.size(2, 20), m.size(4, 60), m.size(2, 20)
    a, b = m.input((count, rows, inner)), m.input((count, inner, columns))
    natural = m.units[0][0] * m.units[1][0] * 74 * 74 * np.sqrt(inner) / 40
    y = m.output((count, rows, columns), m.unit(natural))
    m.writer.operator("BATCH_MATMUL", (a, b), (y,), a=0, b=0)


def _two(operator: str) -> Callable[[IntegerModel], None]:
    def make(m: IntegerModel) -> None:
        shape = m.size(2, 8), m.size(2, 8), m.size(3, 40)
        a, b = m.input(shape), m.input(shape)
        product = m.units[0][0] * m.units[1][0] * 80
        unit = m.unit(0.05 if operator in ("ADD", "SUB") else product)
        fused = {} if operator == "SQUARED_DIFFERENCE" else {"fused": 0}
        m.writer.operator(operator, (a, b), (m.output(shape, unit),), **fused)

    return make


def _bounds(operator: str) -> Callable[[IntegerModel], None]:
    def make(m: IntegerModel) -> None:
        shape, unit = (m.size(2, 8), m.size(3, 40)), m.unit(0.03)
        a, b = m.input(shape, unit), m.input(shape, unit)
        m.writer.operator(operator, (a, b), (m.output(shape, unit),))

    return make


def _pool(operator: str) -> Callable[[IntegerModel], None]:
    def make(m: IntegerModel) -> None:
        shape = _image(m)
        x = m.input(shape)
        down, across = -(-shape[1] // 2), -(-shape[2] // 2)
        y = m.output((1, down, across, shape[3]), m.units[0])
        steps = {"padding": 0, "across": 2, "down": 2, "width": 3, "height": 3, "fused": 0}
        m.writer.operator(operator, (x,), (y,), **steps)

    return make


def _mean(m: IntegerModel) -> None:
    shape = _image(m)
    x = m.input(shape)
    axes = m.writer.constant("axes", np.array([1, 2], np.int32))
    y = m.output((1, shape[3]), m.unit(m.units[0][0] / 3))
    m.writer.operator("MEAN", (x, axes), (y,), keep=0)


def _one(operator: str, unit: Unit | float, scale: float = 0.03, **options: Any) -> Any:  # noqa: ANN401
    def make(m: IntegerModel) -> None:
        shape = m.size(2, 8), m.size(2, 8), m.size(3, 40)
        x = m.input(shape, m.unit(scale))
        y = m.output(shape, unit if isinstance(unit, tuple) else m.unit(unit))
        m.writer.operator(operator, (x,), (y,), **options)

    return make


def _prelu(m: IntegerModel) -> None:
    shape = _image(m)
    x = m.input(shape)
    alpha = m.random.integers(-128, 128, (1, 1, shape[3])).astype(np.int8)
    held = m.writer.constant("alpha", alpha, scale=0.004, zero=int(m.random.integers(-128, 128)))
    m.writer.operator("PRELU", (x, held), (m.output(shape, m.unit(0.03)),))


def _turned(m: IntegerModel) -> None:
    shape, filters, step = _image(m), m.size(3, 12), m.size(1, 3)
    result = (1, shape[1] * step, shape[2] * step, filters)
    size = m.writer.constant("size", np.array(result, np.int32))
    x = m.input(shape)
    w, b, scales = m.weights((filters, 3, 3, shape[3]), 0, m.units[0])
    natural = m.units[0][0] * float(scales.mean()) * 74 * 73 * np.sqrt(9 * shape[3]) / 40 / step
    y = m.output(result, m.unit(natural))
    steps = {"padding": 0, "across": step, "down": step, "fused": 0}
    m.writer.operator("TRANSPOSE_CONV", (size, w, x, b), (y,), **steps)


def _resize(operator: str) -> Callable[[IntegerModel], None]:
    def make(m: IntegerModel) -> None:
        shape, size = _image(m), (m.size(3, 20), m.size(3, 20))
        x, held = m.input(shape), m.writer.constant("size", np.array(size, np.int32))
        y = m.output((1, *size, shape[3]), m.units[0])
        way = {"corners": 0, "centres": m.size(0, 1)}
        m.writer.operator(operator, (x, held), (y,), **way)

    return make


def _mirror(m: IntegerModel) -> None:
    shape = _image(m)
    x, edges = m.input(shape), np.array([[0, 0], [2, 1], [1, 3], [0, 0]], np.int32)
    wide = (1, shape[1] + 3, shape[2] + 4, shape[3])
    held, y = m.writer.constant("edges", edges), m.output(wide, m.units[0])
    m.writer.operator("MIRROR_PAD", (x, held), (y,), mode=m.size(0, 1))


def _pad(m: IntegerModel) -> None:
    shape = _image(m)
    x, edges = m.input(shape), np.array([[0, 0], [2, 1], [1, 3], [0, 0]], np.int32)
    wide = (1, shape[1] + 3, shape[2] + 4, shape[3])
    held, y = m.writer.constant("edges", edges), m.output(wide, m.units[0])
    m.writer.operator("PAD", (x, held), (y,))


def _strided(m: IntegerModel) -> None:
    shape = _image(m)
    x, result = m.input(shape), (1, shape[1] // 2, shape[2] - 1, shape[3])
    ways = {"begin": (0, 1, 0, 0), "end": (1, shape[1], shape[2] - 1, shape[3]), "by": (1, 2, 1, 1)}
    held = [m.writer.constant(name, np.array(one, np.int32)) for name, one in ways.items()]
    masks = dict.fromkeys(("begin", "end", "ellipsis", "new", "shrink"), 0)
    m.writer.operator("STRIDED_SLICE", (x, *held), (m.output(result, m.units[0]),), **masks)


def _to_batch(m: IntegerModel) -> None:
    shape = (1, 2 * m.size(2, 6), 2 * m.size(2, 6), m.size(3, 24))
    x = m.input(shape)
    block = m.writer.constant("block", np.array([2, 2], np.int32))
    edges = m.writer.constant("edges", np.array([[1, 1], [0, 2]], np.int32))
    y = m.output((4, shape[1] // 2 + 1, shape[2] // 2 + 1, shape[3]), m.units[0])
    m.writer.operator("SPACE_TO_BATCH_ND", (x, block, edges), (y,))


def _from_batch(m: IntegerModel) -> None:
    shape = (4, m.size(2, 6), m.size(2, 6), m.size(3, 24))
    x = m.input(shape)
    block = m.writer.constant("block", np.array([2, 2], np.int32))
    edges = m.writer.constant("edges", np.array([[1, 0], [0, 2]], np.int32))
    y = m.output((1, 2 * shape[1] - 1, 2 * shape[2] - 2, shape[3]), m.units[0])
    m.writer.operator("BATCH_TO_SPACE_ND", (x, block, edges), (y,))


OPERATORS: dict[str, Callable[[IntegerModel], None]] = {
    "CONV_2D": _conv,
    "DEPTHWISE_CONV_2D": _depthwise,
    "FULLY_CONNECTED": _dense,
    "BATCH_MATMUL": _batch,
    "ADD": _two("ADD"),
    "SUB": _two("SUB"),
    "MUL": _two("MUL"),
    "MAXIMUM": _bounds("MAXIMUM"),
    "MINIMUM": _bounds("MINIMUM"),
    "AVERAGE_POOL_2D": _pool("AVERAGE_POOL_2D"),
    "MAX_POOL_2D": _pool("MAX_POOL_2D"),
    "MEAN": _mean,
    "LOGISTIC": _one("LOGISTIC", PROBABILITIES),
    "TANH": _one("TANH", (1 / 128, 0)),
    "SOFTMAX": _one("SOFTMAX", PROBABILITIES, 0.1, beta=1.0),
    "RELU": _one("RELU", 0.02),
    "RELU6": _one("RELU6", 0.02),
    "LEAKY_RELU": _one("LEAKY_RELU", 0.02, alpha=0.1),
    "HARD_SWISH": _one("HARD_SWISH", 0.02),
    "ELU": _one("ELU", 0.02),
    "QUANTIZE": _one("QUANTIZE", 0.05),
    "PRELU": _prelu,
    "SQUARED_DIFFERENCE": _two("SQUARED_DIFFERENCE"),
    "L2_NORMALIZATION": _one("L2_NORMALIZATION", (1 / 128, 0), fused=0),
    "TRANSPOSE_CONV": _turned,
    "RESIZE_BILINEAR": _resize("RESIZE_BILINEAR"),
    "RESIZE_NEAREST_NEIGHBOR": _resize("RESIZE_NEAREST_NEIGHBOR"),
    "MIRROR_PAD": _mirror,
    "PAD": _pad,
    "STRIDED_SLICE": _strided,
    "SPACE_TO_BATCH_ND": _to_batch,
    "BATCH_TO_SPACE_ND": _from_batch,
}
"""What makes the model of an operator."""


def integer_model(operator: str, seed: int, dtype: str = "int8") -> tuple[bytes, list[Array]]:
    """Return the file of an operator and inputs for it."""
    made = IntegerModel(np.random.default_rng([seed, *operator.encode()]), dtype)
    OPERATORS[operator](made)
    return made.file(), made.values()
