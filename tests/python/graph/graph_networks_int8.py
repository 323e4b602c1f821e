# SPDX-License-Identifier: Apache-2.0
"""A network in int8 with given scales, as ONNX (NCHW), as a function of jax and as TFLite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from npu.graph.form import Array
from tests.python.importers.tflite_writer import Writer

IMAGE = (1, 8, 8, 4)
FILTERS, CLASSES = 8, 5


@dataclass(frozen=True)
class Quantised:
    """Integers and scales: of filters HWIO and a matrix (K, N), both one scale per column.

    Attributes:
        filters, bias, matrix, shift: int8 and int32 arrays.
        filter_scales, matrix_scales: float32.
        units: scale and zero point of input, images, means and output.
    """

    filters: Array
    filter_scales: Array
    bias: Array
    matrix: Array
    matrix_scales: Array
    shift: Array
    units: tuple[tuple[float, int], ...]

    def bias_scales(self, linear: int) -> Array:
        """Return the scales of a bias: those of input times weights, in float32."""
        weights = (self.filter_scales, self.matrix_scales)[linear]
        found: Array = np.float32(self.units[2 * linear][0]) * weights
        return found


def quantised(seed: int) -> Quantised:
    """Return seeded integers and scales."""
    random = np.random.default_rng(seed)
    scales = [float(np.float32(one)) for one in (0.02, 0.05, 0.03, 0.04)]
    return Quantised(
        filters=random.integers(-127, 128, (3, 3, IMAGE[3], FILTERS), dtype=np.int8),
        filter_scales=random.uniform(0.005, 0.01, FILTERS).astype(np.float32),
        bias=random.integers(-2000, 2000, FILTERS, dtype=np.int32),
        matrix=random.integers(-127, 128, (FILTERS, CLASSES), dtype=np.int8),
        matrix_scales=random.uniform(0.005, 0.01, CLASSES).astype(np.float32),
        shift=random.integers(-2000, 2000, CLASSES, dtype=np.int32),
        units=tuple(zip(scales, (3, -128, -128, -5), strict=True)),
    )


def quantised_jax(w: Quantised) -> Any:  # noqa: ANN401
    """Return the network as a function of int8 images."""
    import jax

    from tessera.jax import dequantize, quantize

    def again(x: Any, unit: tuple[float, int]) -> Any:  # noqa: ANN401
        return dequantize(quantize(x, *unit), *unit)

    def network(x: Any) -> Any:  # noqa: ANN401
        filters = dequantize(w.filters, w.filter_scales.tolist(), axis=3)
        y = jax.lax.conv_general_dilated(
            dequantize(x, *w.units[0]),
            filters,
            (2, 2),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        y = jax.nn.relu(y + dequantize(w.bias, w.bias_scales(0).tolist(), axis=0))
        y = again(again(y, w.units[1]).mean((1, 2)), w.units[2])
        matrix = dequantize(w.matrix, w.matrix_scales.tolist(), axis=1)
        y = y @ matrix + dequantize(w.shift, w.bias_scales(1).tolist(), axis=0)
        return quantize(y, *w.units[3])

    return network


def quantised_tflite(w: Quantised) -> bytes:
    """Return the network as a file."""
    writer = Writer()

    def made(name: str, shape: tuple[int, ...], index: int) -> int:
        scale, zero = w.units[index]
        return writer.tensor(name, shape, "int8", scale=scale, zero=zero)

    x, image = made("x", IMAGE, 0), made("image", (1, 4, 4, FILTERS), 1)
    mean, y = made("mean", (1, FILTERS), 2), made("y", (1, CLASSES), 3)
    filters = writer.constant(
        "filters",
        np.ascontiguousarray(w.filters.transpose(3, 0, 1, 2)),
        scale=w.filter_scales.tolist(),
    )
    bias = writer.constant("bias", w.bias, scale=w.bias_scales(0).tolist())
    sizes = {"padding": 0, "across": 2, "down": 2, "dilation_across": 1, "dilation_down": 1}
    writer.operator("CONV_2D", (x, filters, bias), (image,), fused=1, **sizes)
    axes = writer.constant("axes", np.array([1, 2], np.int32))
    writer.operator("MEAN", (image, axes), (mean,), keep=0)
    matrix = writer.constant(
        "matrix", np.ascontiguousarray(w.matrix.T), scale=w.matrix_scales.tolist()
    )
    shift = writer.constant("shift", w.shift, scale=w.bias_scales(1).tolist())
    writer.operator("FULLY_CONNECTED", (mean, matrix, shift), (y,), fused=0)
    return writer.write((x,), (y,))


def quantised_onnx(w: Quantised) -> Any:  # noqa: ANN401
    """Return the network as a model with QuantizeLinear and DequantizeLinear."""
    held: dict[str, Array] = {
        "filters": w.filters.transpose(3, 2, 0, 1),
        "filters.s": w.filter_scales,
        "filters.z": np.zeros(FILTERS, np.int8),
        "bias": w.bias,
        "bias.s": w.bias_scales(0),
        "bias.z": np.zeros(FILTERS, np.int32),
        "matrix": w.matrix,
        "matrix.s": w.matrix_scales,
        "matrix.z": np.zeros(CLASSES, np.int8),
        "shift": w.shift,
        "shift.s": w.bias_scales(1),
        "shift.z": np.zeros(CLASSES, np.int32),
    }
    for index, (scale, zero) in enumerate(w.units):
        held[f"{index}.s"] = np.array(scale, np.float32)
        held[f"{index}.z"] = np.array(zero, np.int8)
    nodes = []

    def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:  # noqa: ANN401
        nodes.append(helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def real(name: str, unit: str, axis: int = 1) -> str:
        inputs = [name, f"{unit}.s", f"{unit}.z"]
        return node("DequantizeLinear", inputs, f"{name}.real", axis=axis)

    def integers(name: str, unit: str, output: str) -> str:
        return node("QuantizeLinear", [name, f"{unit}.s", f"{unit}.z"], output)

    steps = {"strides": [2, 2], "pads": [0, 0, 1, 1]}
    inputs = [real("x", "0"), real("filters", "filters", 0), real("bias", "bias", 0)]
    image = node("Relu", [node("Conv", inputs, "conv", **steps)], "relu")
    image = real(integers(image, "1", "image"), "1")
    mean = node("Flatten", [node("GlobalAveragePool", [image], "mean")], "flat")
    mean = real(integers(mean, "2", "mean.q"), "2")
    inputs = [mean, real("matrix", "matrix"), real("shift", "shift", 0)]
    integers(node("Gemm", inputs, "gemm"), "3", "y")
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("x", onnx.TensorProto.INT8, [1, 4, 8, 8])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT8, [1, CLASSES])],
        [
            numpy_helper.from_array(np.ascontiguousarray(value), name)
            if value.ndim
            else numpy_helper.from_array(value, name)
            for name, value in held.items()
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
