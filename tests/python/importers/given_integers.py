# SPDX-License-Identifier: Apache-2.0
"""Random products and convolutions of integers that a file gives, and what they mean.

Every code of weights and inputs is drawn, every zero point, scales over many powers of two, the
ends of each range more often than chance has it. A case is written in each form that its source
has, and its outputs follow from integer arithmetic and, where they are scaled, from exact fractions
that are rounded once: nothing of importer, compiler or golden takes part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from golden.graph import run
from npu.compiler.network import compile_network
from npu.graph.form import Array
from npu.graph.importers import read, stablehlo
from npu.graph.prepare import prepare
from tests.python.compiler.network_runs import run_compiled
from tests.python.importers.tflite_writer import Writer

Rounding = Callable[[Fraction], int]
_PLAIN = {"dilation_across": 1, "dilation_down": 1}


def half_even(value: Fraction) -> int:
    """Round as ONNX does."""
    return round(value)


def half_away(value: Fraction) -> int:
    """Round as TFLite does."""
    return int(math.copysign(math.floor(abs(value) + Fraction(1, 2)), value))


@dataclass
class CaseDraw:
    """Draws what a case is made of.

    Attributes:
        random: source of everything.
    """

    random: np.random.Generator

    def codes(self, shape: tuple[int, ...], dtype: type) -> Array:
        """Return codes of the whole range, its ends one time in four."""
        ends = np.iinfo(dtype)
        found = self.random.integers(ends.min, ends.max + 1, shape)
        extreme = self.random.choice([ends.min, ends.min + 1, ends.max - 1, ends.max], shape)
        return np.where(self.random.random(shape) < 0.25, extreme, found).astype(dtype)

    def zero(self, dtype: type) -> int:
        """Return a zero point: the middle, an end, or any other."""
        ends = np.iinfo(dtype)
        middle = (ends.min + ends.max + 1) // 2
        some = [middle, ends.min, ends.max, int(self.random.integers(ends.min, ends.max + 1))]
        return int(self.random.choice(some))

    def scale(self) -> np.float32:
        """Return a scale of some power of two."""
        return np.float32(2.0 ** self.random.integers(-9, 3) * self.random.uniform(1, 2))

    def dtype(self) -> type:
        """Return a type of bytes."""
        return (np.int8, np.uint8)[int(self.random.integers(2))]

    def size(self, least: int, most: int) -> int:
        """Return a size."""
        return int(self.random.integers(least, most + 1))


@dataclass(frozen=True)
class GivenCase:
    """A model and what it must give.

    Attributes:
        name: of its form.
        source: a file's bytes, or a function of JAX.
        inputs: in the order of the model.
        expected: the output.
        exact: whether nothing was rounded.
    """

    name: str
    source: Any
    inputs: list[Array]
    expected: Array
    exact: bool = False


def _product(x: Array, w: Array, x_zero: int, w_zeros: Array) -> Array:
    """Return (x - x_zero) @ (w - w_zeros), (M, K) times (K, N) in int64."""
    result: Array = (x.astype(np.int64) - x_zero) @ (w.astype(np.int64) - w_zeros)
    return result


def _windows(x: Array, kernel: tuple[int, int], fill: int) -> Array:
    """Return the windows of an image (1, H, W, C) with a border of one, (H, W, KH, KW, C)."""
    wide = np.pad(x.astype(np.int64)[0], ((1, 1), (1, 1), (0, 0)), constant_values=fill)
    views = np.lib.stride_tricks.sliding_window_view(wide, kernel, axis=(0, 1))
    result: Array = views.transpose(0, 1, 3, 4, 2)
    return result


def _convolution(x: Array, w: Array, x_zero: int, w_zeros: Array, groups: int = 1) -> Array:
    """Return a convolution of (1, H, W, C) with (KH, KW, C / groups, O), a border of one."""
    window = _windows(x, (w.shape[0], w.shape[1]), x_zero) - x_zero
    centred = w.astype(np.int64) - w_zeros
    inner, outer = x.shape[3] // groups, w.shape[3] // groups
    parts = [
        np.einsum(
            "hwyxc,yxco->hwo",
            window[..., g * inner : (g + 1) * inner],
            centred[..., g * outer : (g + 1) * outer],
        )
        for g in range(groups)
    ]
    result: Array = np.concatenate(parts, axis=-1)[None]
    return result


def rounded(
    sums: Array, factors: list[Fraction], zero: int, dtype: type, rounding: Rounding
) -> Array:
    """Return sums (..., N) times a factor per column, rounded once, moved and saturated."""
    ends = np.iinfo(dtype)
    flat = sums.reshape(-1, sums.shape[-1])
    rows = [
        [
            min(max(rounding(int(value) * factor) + zero, ends.min), ends.max)
            for value, factor in zip(row, factors, strict=True)
        ]
        for row in flat
    ]
    return np.array(rows, dtype).reshape(sums.shape)


def _result_scale(draw: CaseDraw, sums: Array, unit: float) -> np.float32:
    """Return a scale that lets results use most of their range, or little of it."""
    reach = float(np.abs(sums).max() or 1) * unit
    return np.float32(reach / 2.0 ** draw.random.uniform(4, 8))


# ONNX ---------------------------------------------------------------------------------------------


def _onnx(
    nodes: list[Any], x: Array, y: Array, held: Mapping[str, Any], second: Array | None = None
) -> bytes:
    numbers = helper.np_dtype_to_tensor_dtype
    graph = helper.make_graph(
        nodes,
        "given",
        [
            helper.make_tensor_value_info(name, numbers(one.dtype), one.shape)
            for name, one in (("x", x), ("b", second))
            if one is not None
        ],
        [helper.make_tensor_value_info("y", numbers(np.dtype(y.dtype)), y.shape)],
        [onnx.numpy_helper.from_array(np.asarray(one), name) for name, one in held.items()],
    )
    imports = [helper.make_opsetid("", 21)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=10).SerializeToString())


def _zero_points(draw: CaseDraw, count: int, dtype: type) -> Array:
    """Return a zero point for all columns, or one for each."""
    if draw.random.random() < 0.6:
        return np.array(draw.zero(dtype), dtype)
    return np.array([draw.zero(dtype) for _ in range(count)], dtype)


def matmul_integer(draw: CaseDraw) -> GivenCase:
    """MatMulInteger: int32 sums."""
    a, b = draw.dtype(), draw.dtype()
    m, k, n = draw.size(1, 6), draw.size(1, 80), draw.size(1, 24)
    x, w = draw.codes((m, k), a), draw.codes((k, n), b)
    x_zero: Array = np.array(draw.zero(a), a)
    w_zero: Array = np.array(draw.zero(b), b)
    y = _product(x, w, int(x_zero), w_zero.astype(np.int64)).astype(np.int32)
    node = helper.make_node("MatMulInteger", ["x", "w", "xz", "wz"], ["y"])
    held = {"w": w, "xz": x_zero, "wz": w_zero}
    return GivenCase("MatMulInteger", _onnx([node], x, y, held), [x], y, True)


def conv_integer(draw: CaseDraw) -> GivenCase:
    """ConvInteger: int32 sums."""
    a, b = draw.dtype(), draw.dtype()
    channels, filters = draw.size(1, 9), draw.size(1, 12)
    x = draw.codes((1, draw.size(3, 7), draw.size(3, 7), channels), a)
    w = draw.codes((3, 3, channels, filters), b)
    x_zero: Array = np.array(draw.zero(a), a)
    w_zero: Array = np.array(draw.zero(b), b)
    y = _convolution(x, w, int(x_zero), w_zero.astype(np.int64)).astype(np.int32)
    node = helper.make_node("ConvInteger", ["x", "w", "xz", "wz"], ["y"], pads=[1, 1, 1, 1])
    image, result = x.transpose(0, 3, 1, 2), y.transpose(0, 3, 1, 2)
    held = {"w": w.transpose(3, 2, 0, 1), "xz": x_zero, "wz": w_zero}
    return GivenCase("ConvInteger", _onnx([node], image, result, held), [image], result, True)


def _scaled(
    draw: CaseDraw, sums: Array, x_scale: np.float32, w_scales: Array, dtype: type
) -> tuple[np.float32, int, Array]:
    """Return scale, zero point and values of a result in ONNX."""
    y_scale = _result_scale(draw, sums, float(x_scale) * float(np.max(w_scales)))
    y_zero = draw.zero(dtype)
    columns = np.broadcast_to(w_scales, sums.shape[-1])
    one = Fraction(float(x_scale)) / Fraction(float(y_scale))
    factors = [one * Fraction(float(scale)) for scale in columns]
    return y_scale, y_zero, rounded(sums, factors, y_zero, dtype, half_even)


def _products(draw: CaseDraw) -> tuple[dict[str, Any], Array, type]:
    """Return what a scaled product has, its sums and the type of its bytes."""
    dtype, of_weights = draw.dtype(), draw.dtype()
    m, k, n = draw.size(1, 6), draw.size(1, 80), draw.size(1, 24)
    x, w = draw.codes((m, k), dtype), draw.codes((k, n), of_weights)
    zeros = _zero_points(draw, n, of_weights)
    scales = np.array([draw.scale()] * n, np.float32)
    if zeros.ndim:
        scales = (scales * draw.random.uniform(0.5, 1, n)).astype(np.float32)
    else:
        scales = scales[:1].reshape(())
    given = {"x": x, "w": w, "xs": draw.scale(), "xz": np.array(draw.zero(dtype), dtype)}
    given |= {"ws": scales, "wz": zeros}
    return given, _product(x, w, int(given["xz"]), zeros.astype(np.int64)), dtype


def qlinear_matmul(draw: CaseDraw) -> GivenCase:
    """QLinearMatMul: one node that has all scales."""
    given, sums, dtype = _products(draw)
    scale, zero, y = _scaled(draw, sums, given["xs"], given["ws"], dtype)
    held = {name: one for name, one in given.items() if name != "x"}
    held |= {"ys": scale, "yz": np.array(zero, dtype)}
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    node = helper.make_node("QLinearMatMul", names, ["y"])
    return GivenCase("QLinearMatMul", _onnx([node], given["x"], y, held), [given["x"]], y)


def qdq_matmul(draw: CaseDraw) -> GivenCase:
    """A product between nodes that dequantise and quantise, with a bias of int32 or none."""
    given, sums, dtype = _products(draw)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=1),
        helper.make_node("MatMul", ["xd", "wd"], ["p"]),
    ]
    held = {name: one for name, one in given.items() if name != "x"}
    last = "p"
    if draw.random.random() < 0.6:
        bias = draw.random.integers(-40_000, 40_000, sums.shape[1]).astype(np.int32)
        sums = sums + bias
        unit = (np.float32(given["xs"]) * given["ws"]).astype(np.float32)
        held |= {"b": bias, "bs": unit}
        nodes += [
            helper.make_node("DequantizeLinear", ["b", "bs"], ["bd"], axis=0),
            helper.make_node("Add", ["p", "bd"], ["s"]),
        ]
        last = "s"
    scale, zero, y = _scaled(draw, sums, given["xs"], given["ws"], dtype)
    held |= {"ys": scale, "yz": np.array(zero, dtype)}
    nodes.append(helper.make_node("QuantizeLinear", [last, "ys", "yz"], ["y"]))
    return GivenCase("QDQ MatMul", _onnx(nodes, given["x"], y, held), [given["x"]], y)


def _images(draw: CaseDraw) -> tuple[dict[str, Any], Array, type, int]:
    """Return what a scaled convolution has, its sums, the type of its bytes and its groups."""
    dtype, of_weights = draw.dtype(), draw.dtype()
    groups = int(draw.random.choice([1, 1, 2, 5]))
    channels, filters = groups * draw.size(1, 5), groups * draw.size(1, 5)
    x = draw.codes((1, draw.size(3, 6), draw.size(3, 6), channels), dtype)
    w = draw.codes((3, 3, channels // groups, filters), of_weights)
    zeros = _zero_points(draw, filters, of_weights)
    scales = (draw.scale() * draw.random.uniform(0.5, 1, filters)).astype(np.float32)
    given = {"x": x, "w": w, "xs": draw.scale(), "xz": np.array(draw.zero(dtype), dtype)}
    given |= {"ws": scales if zeros.ndim else scales[:1].reshape(()), "wz": zeros}
    sums = _convolution(x, w, int(given["xz"]), zeros.astype(np.int64), groups)
    return given, sums, dtype, groups


def qlinear_conv(draw: CaseDraw) -> GivenCase:
    """QLinearConv: one node that has all scales, with a bias or none."""
    given, sums, dtype, groups = _images(draw)
    held = {name: one for name, one in given.items() if name not in {"x", "w"}}
    held["w"] = given["w"].transpose(3, 2, 0, 1)
    names = ["x", "xs", "xz", "w", "ws", "wz", "ys", "yz"]
    if draw.random.random() < 0.6:
        bias = draw.random.integers(-40_000, 40_000, sums.shape[-1]).astype(np.int32)
        sums, held, names = sums + bias, {**held, "b": bias}, [*names, "b"]
    scale, zero, y = _scaled(draw, sums, given["xs"], given["ws"], dtype)
    held |= {"ys": scale, "yz": np.array(zero, dtype)}
    x, y = given["x"].transpose(0, 3, 1, 2), y.transpose(0, 3, 1, 2)
    node = helper.make_node("QLinearConv", names, ["y"], pads=[1, 1, 1, 1], group=groups)
    return GivenCase("QLinearConv", _onnx([node], x, y, held), [x], y)


def qdq_conv(draw: CaseDraw) -> GivenCase:
    """A convolution between nodes that dequantise and quantise."""
    given, sums, dtype, groups = _images(draw)
    held = {name: one for name, one in given.items() if name not in {"x", "w"}}
    held["w"] = given["w"].transpose(3, 2, 0, 1)
    scale, zero, y = _scaled(draw, sums, given["xs"], given["ws"], dtype)
    held |= {"ys": scale, "yz": np.array(zero, dtype)}
    x, y = given["x"].transpose(0, 3, 1, 2), y.transpose(0, 3, 1, 2)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wd"], axis=0),
        helper.make_node("Conv", ["xd", "wd"], ["p"], pads=[1, 1, 1, 1], group=groups),
        helper.make_node("QuantizeLinear", ["p", "ys", "yz"], ["y"]),
    ]
    return GivenCase("QDQ Conv", _onnx(nodes, x, y, held), [x], y)


def terms(draw: CaseDraw) -> GivenCase:
    """Add, Sub or Mul of two int16 with an int16 result: of one scale, of whole steps, of any."""
    operator = str(draw.random.choice(["Add", "Sub", "Mul"]))
    shape = (draw.size(1, 6), draw.size(1, 40))
    a, b = draw.codes(shape, np.int16), draw.codes(shape, np.int16)
    scale = draw.scale()
    steps = draw.random.integers(1, 4, 2) if draw.random.random() < 0.5 else np.ones(2)
    if draw.random.random() < 0.5:
        steps = 2.0 ** draw.random.uniform(-2, 4, 2)
    a_scale, b_scale = (np.float32(scale * one) for one in steps)
    if operator == "Mul":
        scale = np.float32(a_scale * b_scale * 2.0 ** draw.random.uniform(12, 16))
    units = [Fraction(float(one)) / Fraction(float(scale)) for one in (a_scale, b_scale)]
    sign = -1 if operator == "Sub" else 1
    reals = [
        int(x) * units[0] * int(y) * Fraction(float(b_scale))
        if operator == "Mul"
        else int(x) * units[0] + sign * int(y) * units[1]
        for x, y in zip(a.reshape(-1), b.reshape(-1), strict=True)
    ]
    values = [min(max(half_even(one), -32768), 32767) for one in reals]
    y = np.array(values, np.int16).reshape(shape)
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "as"], ["ar"]),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["br"]),
        helper.make_node(operator, ["ar", "br"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "ys", "yz"], ["y"]),
    ]
    held = {"as": a_scale, "bs": b_scale, "ys": scale, "yz": np.int16(0)}
    return GivenCase(f"{operator} int16", _onnx(nodes, a, y, held, second=b), [a, b], y)


# TFLite -------------------------------------------------------------------------------------------


def _tflite(
    draw: CaseDraw, operator: str, x: Array, w: Array, axis: int, sums: Array, **options: int
) -> GivenCase:
    """Return a model of one operator with weights of int8 that have no zero point, or uint8."""
    writer = Writer()
    dtype = x.dtype.type
    x_zero, w_zero = int(options.pop("x_zero")), int(options.pop("w_zero"))
    x_scale, w_scale = draw.scale(), draw.scale()
    several = dtype is np.int8
    count = sums.shape[-1]
    w_scales = np.full(count, w_scale, np.float32)
    if several:
        w_scales = (w_scales * draw.random.uniform(0.5, 1, count)).astype(np.float32)
    bias = draw.random.integers(-40_000, 40_000, (count,)).astype(np.int32)
    sums = sums + bias
    y_scale = _result_scale(draw, sums, float(x_scale) * float(w_scales.max()))
    y_zero = draw.zero(dtype)
    factors = [
        Fraction(float(x_scale)) * Fraction(float(one)) / Fraction(float(y_scale))
        for one in w_scales
    ]
    y = rounded(sums, factors, y_zero, dtype, half_away)
    kind = np.dtype(dtype).name
    number = writer.tensor("x", x.shape, kind, scale=float(x_scale), zero=x_zero)
    scales = w_scales.tolist() if several else float(w_scale)
    zeros = [0] * count if several else w_zero
    held = writer.constant("w", w, scale=scales, zero=zeros, axis=axis)
    units: Array = np.asarray(x_scale * w_scales, np.float32)
    added = writer.constant("b", bias, scale=units.tolist() if several else float(units[0]))
    result = writer.tensor("y", y.shape, kind, scale=float(y_scale), zero=y_zero)
    writer.operator(operator, (number, held, added), (result,), fused=0, **options)
    return GivenCase(f"{operator} {kind}", writer.write([number], [result]), [x], y)


def fully_connected(draw: CaseDraw) -> GivenCase:
    """FULLY_CONNECTED of int8 or uint8."""
    dtype = draw.dtype()
    m, k, n = draw.size(1, 6), draw.size(1, 80), draw.size(1, 24)
    x, w = draw.codes((m, k), dtype), draw.codes((n, k), dtype)
    x_zero, w_zero = draw.zero(dtype), 0 if dtype is np.int8 else draw.zero(dtype)
    sums = _product(x, w.T, x_zero, np.array(w_zero))
    return _tflite(draw, "FULLY_CONNECTED", x, w, 0, sums, x_zero=x_zero, w_zero=w_zero)


def conv_2d(draw: CaseDraw) -> GivenCase:
    """CONV_2D of int8 or uint8."""
    dtype = draw.dtype()
    channels, filters = draw.size(1, 9), draw.size(1, 12)
    x = draw.codes((1, draw.size(3, 6), draw.size(3, 6), channels), dtype)
    w = draw.codes((filters, 3, 3, channels), dtype)
    x_zero, w_zero = draw.zero(dtype), 0 if dtype is np.int8 else draw.zero(dtype)
    sums = _convolution(x, w.transpose(1, 2, 3, 0), x_zero, np.array(w_zero))
    steps = {"padding": 0, "across": 1, "down": 1, **_PLAIN}
    return _tflite(draw, "CONV_2D", x, w, 0, sums, x_zero=x_zero, w_zero=w_zero, **steps)


def depthwise(draw: CaseDraw) -> GivenCase:
    """DEPTHWISE_CONV_2D of int8 or uint8."""
    dtype, channels = draw.dtype(), draw.size(1, 20)
    x = draw.codes((1, draw.size(3, 6), draw.size(3, 6), channels), dtype)
    w = draw.codes((1, 3, 3, channels), dtype)
    x_zero, w_zero = draw.zero(dtype), 0 if dtype is np.int8 else draw.zero(dtype)
    filters = w.transpose(1, 2, 0, 3)
    sums = _convolution(x, filters, x_zero, np.array(w_zero), channels)
    steps = {"padding": 0, "across": 1, "down": 1, "multiplier": 1, **_PLAIN}
    return _tflite(draw, "DEPTHWISE_CONV_2D", x, w, 3, sums, x_zero=x_zero, w_zero=w_zero, **steps)


# JAX ----------------------------------------------------------------------------------------------


def dot_general(draw: CaseDraw) -> GivenCase:
    """A product of bytes with int32 sums, as JAX writes it."""
    import jax.numpy as jnp
    from jax import lax

    dtype = draw.dtype()
    m, k, n = draw.size(1, 6), draw.size(1, 80), draw.size(1, 24)
    x, w = draw.codes((m, k), dtype), draw.codes((k, n), dtype)
    y = _product(x, w, 0, np.array(0)).astype(np.int32)

    def function(x: Any) -> Any:  # noqa: ANN401
        return lax.dot(x, jnp.asarray(w), preferred_element_type=jnp.int32)

    return GivenCase("dot_general", function, [x], y, True)


def composites(draw: CaseDraw) -> GivenCase:
    """A product between the composites that dequantise and quantise."""
    import tessera.jax as tj

    given, sums, dtype = _products(draw)
    x_zero, w_zero = int(given["xz"]), int(given["wz"].reshape(-1)[0])
    scales = given["ws"]
    sums = _product(given["x"], given["w"], x_zero, np.array(w_zero))
    y_scale, y_zero, y = _scaled(draw, sums, given["xs"], scales, dtype)
    along = {"axis": 1} if scales.ndim else {}

    def function(x: Any) -> Any:  # noqa: ANN401
        real = tj.dequantize(x, given["xs"], x_zero)
        real = real @ tj.dequantize(given["w"], scales, w_zero, **along)
        return tj.quantize(real, float(y_scale), y_zero, dtype=dtype)

    return GivenCase("composites", function, [given["x"]], y)


FORMS: Mapping[str, Callable[[CaseDraw], GivenCase]] = {
    "MatMulInteger": matmul_integer,
    "ConvInteger": conv_integer,
    "QLinearMatMul": qlinear_matmul,
    "QLinearConv": qlinear_conv,
    "QDQ MatMul": qdq_matmul,
    "QDQ Conv": qdq_conv,
    "FULLY_CONNECTED": fully_connected,
    "CONV_2D": conv_2d,
    "DEPTHWISE_CONV_2D": depthwise,
    "dot_general": dot_general,
    "composites": composites,
    "terms": terms,
}
"""What makes the cases of a form."""
ON_HOST = ("terms",)
"""Forms of which the chip may have few."""


def case(form: str, seed: int) -> GivenCase:
    """Return the case of a form and seed."""
    return FORMS[form](CaseDraw(np.random.default_rng([seed, *form.encode()])))


@dataclass(frozen=True)
class CaseEnd:
    """What became of a case.

    Attributes:
        elements: of the output.
        apart: how many of them are not what they must be.
        on_chip: whether the product ran there.
    """

    elements: int
    apart: int
    on_chip: bool


def found(form: str, seed: int, folder: Path) -> CaseEnd:
    """Compile a case, run it on the instruction model and compare it.

    Raises:
        AssertionError: golden says something else than the model, or type or shape are others.
    """
    one = case(form, seed)
    if callable(one.source):
        graph = prepare(stablehlo.from_jax(one.source, one.inputs))
    else:
        path = folder / ("case.tflite" if one.source[4:8] == b"TFL3" else "case.onnx")
        path.write_bytes(one.source)
        graph = prepare(read(path))
    inputs = dict(zip(graph.inputs, one.inputs, strict=True))
    network = compile_network(graph)
    (output,) = graph.outputs
    value = run_compiled(network, inputs).outputs[output]
    where = f"case({form!r}, {seed})"
    np.testing.assert_array_equal(value, run(graph, inputs)[output], f"{where}: golden's")
    assert (value.dtype, value.shape) == (one.expected.dtype, one.expected.shape), where
    apart = np.abs(value.astype(np.int64) - one.expected.astype(np.int64))
    assert apart.max() <= (0 if one.exact else 1), f"{where}: {apart.max()} steps"
    return CaseEnd(apart.size, int(np.count_nonzero(apart)), bool(network.segments))


def differ(form: str, seeds: Iterable[int], folder: Path) -> float:
    """Return the share of elements of a form's cases that are one step off.

    Raises:
        AssertionError: as `found`, or the host has computed most of the cases, which it may those
            with a zero point for each column.
    """
    every = [found(form, seed, folder) for seed in seeds]
    there = sum(one.on_chip for one in every)
    assert form in ON_HOST or 3 * there >= len(every), (
        f"{form}: {there} of {len(every)} cases ran on the chip"
    )
    return sum(one.apart for one in every) / sum(one.elements for one in every)
