# SPDX-License-Identifier: Apache-2.0
"""The same networks as ONNX (NCHW), as a function of jax (NHWC) and as TFLite.

A small convolutional network and a block of a transformer, each with seeded weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from npu.graph.form import Array
from tests.python.importers.tflite_writer import Writer

SIDE, CLASSES = 28, 10
ROWS, WIDTH, HEADS, INNER = 6, 32, 4, 64
EPSILON = 1e-5


@dataclass(frozen=True)
class Convolutional:
    """Weights of the convolutional network, filters HWIO; batch norm behind the second one."""

    first: Array
    first_bias: Array
    second: Array
    gain: Array
    beta: Array
    mean: Array
    variance: Array
    dense: Array
    dense_bias: Array

    def folded(self) -> tuple[Array, Array]:
        """Return filter and bias of the second convolution with the batch norm in them."""
        factor = self.gain.astype(np.float64) / np.sqrt(self.variance.astype(np.float64) + EPSILON)
        bias = self.beta - self.mean * factor
        return (self.second * factor).astype(np.float32), bias.astype(np.float32)


@dataclass(frozen=True)
class BlockWeights:
    """Weights of the block of a transformer, matrices (K, N)."""

    gains: tuple[Array, Array]
    betas: tuple[Array, Array]
    projections: tuple[Array, Array, Array, Array]
    biases: tuple[Array, Array, Array, Array]
    up: Array
    up_bias: Array
    down: Array
    down_bias: Array


def _random(seed: int) -> Any:  # noqa: ANN401
    random = np.random.default_rng(seed)

    def normal(*shape: int) -> Array:
        scale = 1 / np.sqrt(max(1, int(np.prod(shape[:-1]))))
        values: Array = (scale * random.standard_normal(shape)).astype(np.float32)
        return values

    return normal


def convolutional(seed: int) -> Convolutional:
    """Return seeded weights."""
    normal = _random(seed)
    return Convolutional(
        first=normal(3, 3, 1, 16),
        first_bias=normal(16),
        second=normal(3, 3, 16, 32),
        gain=np.abs(normal(32)) + np.float32(0.5),
        beta=normal(32),
        mean=normal(32),
        variance=np.abs(normal(32)) + np.float32(0.5),
        dense=normal(32, CLASSES),
        dense_bias=normal(CLASSES),
    )


def block(seed: int) -> BlockWeights:
    """Return seeded weights."""
    normal = _random(seed)
    square = (WIDTH, WIDTH)
    return BlockWeights(
        gains=(1 + normal(WIDTH) / 4, 1 + normal(WIDTH) / 4),
        betas=(normal(WIDTH), normal(WIDTH)),
        projections=(normal(*square), normal(*square), normal(*square), normal(*square)),
        biases=(normal(WIDTH), normal(WIDTH), normal(WIDTH), normal(WIDTH)),
        up=normal(WIDTH, INNER),
        up_bias=normal(INNER),
        down=normal(INNER, WIDTH),
        down_bias=normal(WIDTH),
    )


def scale() -> Array:
    """Return the factor of the scores, a float32."""
    return np.array((WIDTH // HEADS) ** -0.5, np.float32)


def convolutional_jax(w: Convolutional, *, folded: bool) -> Any:  # noqa: ANN401
    """Return the network as a function of images (B, 28, 28, 1)."""
    import jax
    import jax.numpy as jnp

    def conv(x: Any, weights: Array, stride: int) -> Any:  # noqa: ANN401
        return jax.lax.conv_general_dilated(
            x, weights, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )

    def network(x: Any) -> Any:  # noqa: ANN401
        x = jax.nn.relu(conv(x, w.first, 1) + w.first_bias)
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        if folded:
            filters, bias = w.folded()
            x = conv(x, filters, 2) + bias
        else:
            x = (conv(x, w.second, 2) - w.mean) / np.sqrt(w.variance + EPSILON)
            x = x * w.gain + w.beta
        return jax.nn.relu(x).mean((1, 2)) @ w.dense + w.dense_bias

    return network


def convolutional_onnx(w: Convolutional, *, folded: bool, batch: int = 1) -> Any:  # noqa: ANN401
    """Return the network as a model of images (B, 1, 28, 28)."""
    filters, bias = w.folded()
    given = {
        "first": w.first.transpose(3, 2, 0, 1),
        "first_bias": w.first_bias,
        "second": (filters if folded else w.second).transpose(3, 2, 0, 1),
        "bias": bias,
        **{name: getattr(w, name) for name in ("gain", "beta", "mean", "variance")},
        "dense": w.dense.T,
        "dense_bias": w.dense_bias,
    }
    small = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes: list[tuple[str, list[str], str, dict[str, Any]]] = [
        ("Conv", ["x", "first", "first_bias"], "c1", {"pads": [1, 1, 1, 1]}),
        ("Relu", ["c1"], "r1", {}),
        ("MaxPool", ["r1"], "p1", small),
    ]
    steps = {"strides": [2, 2], "pads": [0, 0, 1, 1]}
    if folded:
        nodes.append(("Conv", ["p1", "second", "bias"], "b2", steps))
    else:
        nodes.append(("Conv", ["p1", "second"], "c2", steps))
        norm = ["c2", "gain", "beta", "mean", "variance"]
        nodes.append(("BatchNormalization", norm, "b2", {"epsilon": EPSILON}))
    nodes += [
        ("Relu", ["b2"], "r2", {}),
        ("GlobalAveragePool", ["r2"], "g", {}),
        ("Flatten", ["g"], "f", {}),
        ("Gemm", ["f", "dense", "dense_bias"], "y", {"transB": 1}),
    ]
    return _onnx(nodes, given, (batch, 1, SIDE, SIDE), (batch, CLASSES))


def _onnx(
    nodes: Sequence[tuple[str, list[str], str, dict[str, Any]]],
    given: dict[str, Array],
    shape: tuple[int, ...],
    result: tuple[int, ...],
) -> Any:  # noqa: ANN401
    used = {name for _, inputs, _, _ in nodes for name in inputs}
    float32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [
            helper.make_node(kind, inputs, [output], name=output, **attributes)
            for kind, inputs, output, attributes in nodes
        ],
        "network",
        [helper.make_tensor_value_info("x", float32, shape)],
        [helper.make_tensor_value_info("y", float32, result)],
        [
            numpy_helper.from_array(np.ascontiguousarray(value), name)
            for name, value in given.items()
            if name in used
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def convolutional_tflite(w: Convolutional, *, batch: int = 1) -> bytes:
    """Return the network as a file; batch norms are folded in TFLite."""
    writer = Writer()
    filters, bias = w.folded()
    sizes = {"padding": 0, "dilation_across": 1, "dilation_down": 1, "fused": 1}
    x = writer.tensor("x", (batch, SIDE, SIDE, 1))
    first = writer.constant("first", np.ascontiguousarray(w.first.transpose(3, 0, 1, 2)))
    r1 = writer.tensor("r1", (batch, SIDE, SIDE, 16))
    held = writer.constant("first_bias", w.first_bias)
    writer.operator("CONV_2D", (x, first, held), (r1,), across=1, down=1, **sizes)
    p1 = writer.tensor("p1", (batch, SIDE // 2, SIDE // 2, 16))
    window = {"padding": 1, "across": 2, "down": 2, "width": 2, "height": 2, "fused": 0}
    writer.operator("MAX_POOL_2D", (r1,), (p1,), **window)
    second = writer.constant("second", np.ascontiguousarray(filters.transpose(3, 0, 1, 2)))
    r2 = writer.tensor("r2", (batch, SIDE // 4, SIDE // 4, 32))
    held = writer.constant("second_bias", bias)
    writer.operator("CONV_2D", (p1, second, held), (r2,), across=2, down=2, **sizes)
    axes = writer.constant("axes", np.array([1, 2], np.int32))
    mean = writer.tensor("mean", (batch, 32))
    writer.operator("MEAN", (r2, axes), (mean,), keep=0)
    dense = writer.constant("dense", np.ascontiguousarray(w.dense.T))
    held = writer.constant("dense_bias", w.dense_bias)
    y = writer.tensor("y", (batch, CLASSES))
    writer.operator("FULLY_CONNECTED", (mean, dense, held), (y,), fused=0)
    return writer.write((x,), (y,))


def block_jax(w: BlockWeights) -> Any:  # noqa: ANN401
    """Return the block as a function of rows (B, 6, 32)."""
    import jax
    import jax.numpy as jnp

    def norm(x: Any, index: int) -> Any:  # noqa: ANN401
        mean = x.mean(-1, keepdims=True)
        deviation = jnp.sqrt(jnp.var(x, -1, keepdims=True) + EPSILON)
        return (x - mean) / deviation * w.gains[index] + w.betas[index]

    def network(x: Any) -> Any:  # noqa: ANN401
        h = norm(x, 0)
        q, k, v = (
            (h @ w.projections[index] + w.biases[index])
            .reshape(-1, ROWS, HEADS, WIDTH // HEADS)
            .transpose(0, 2, 1, 3)
            for index in range(3)
        )
        probabilities = jax.nn.softmax(q @ k.transpose(0, 1, 3, 2) * scale(), -1)
        merged = (probabilities @ v).transpose(0, 2, 1, 3).reshape(-1, ROWS, WIDTH)
        x = x + (merged @ w.projections[3] + w.biases[3])
        h = jax.nn.gelu(norm(x, 1) @ w.up + w.up_bias, approximate=False)
        return x + (h @ w.down + w.down_bias)

    return network


def block_composites(w: BlockWeights) -> Any:  # noqa: ANN401
    """Return the block as a function of rows (B, 6, 32) that guesses nothing."""
    from tessera import jax as tessera

    def network(x: Any) -> Any:  # noqa: ANN401
        h = tessera.layer_norm(x, w.gains[0], w.betas[0], epsilon=EPSILON)
        q, k, v = (
            (h @ w.projections[index] + w.biases[index])
            .reshape(-1, ROWS, HEADS, WIDTH // HEADS)
            .transpose(0, 2, 1, 3)
            for index in range(3)
        )
        context = tessera.attention(q, k, v, scale=float(scale()))
        merged = context.transpose(0, 2, 1, 3).reshape(-1, ROWS, WIDTH)
        x = x + (merged @ w.projections[3] + w.biases[3])
        h = tessera.layer_norm(x, w.gains[1], w.betas[1], epsilon=EPSILON)
        h = tessera.gelu(h @ w.up + w.up_bias)
        return x + (h @ w.down + w.down_bias)

    return network


def block_onnx(w: BlockWeights, *, batch: int = 1) -> Any:  # noqa: ANN401
    """Return the block as a model of rows (B, 6, 32)."""
    given: dict[str, Array] = {
        "split": np.array([batch, ROWS, HEADS, WIDTH // HEADS]),
        "merge": np.array([batch, ROWS, WIDTH]),
        "scale": scale(),
        **{"up": w.up, "up_bias": w.up_bias, "down": w.down, "down_bias": w.down_bias},
    }
    nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []

    def node(kind: str, inputs: list[str], output: str, **attributes: Any) -> str:  # noqa: ANN401
        nodes.append((kind, inputs, output, attributes))
        return output

    def norm(x: str, index: int) -> str:
        given[f"gain{index}"], given[f"beta{index}"] = w.gains[index], w.betas[index]
        names = [x, f"gain{index}", f"beta{index}"]
        return node("LayerNormalization", names, f"norm{index}", epsilon=EPSILON)

    def linear(x: str, name: str) -> str:
        return node("Add", [node("MatMul", [x, name], f"{name}.m"), f"{name}_bias"], f"{name}.y")

    for index in range(4):
        given[f"w{index}"] = w.projections[index]
        given[f"w{index}_bias"] = w.biases[index]
    h = norm("x", 0)
    orders = ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])
    q, k, v = (
        node(
            "Transpose",
            [node("Reshape", [linear(h, f"w{index}"), "split"], f"w{index}.s")],
            f"w{index}.t",
            perm=order,
        )
        for index, order in enumerate(orders)
    )
    scores = node("Mul", [node("MatMul", [q, k], "products"), "scale"], "scores")
    context = node("MatMul", [node("Softmax", [scores], "p", axis=-1), v], "context")
    turned = node("Transpose", [context], "turned", perm=[0, 2, 1, 3])
    merged = node("Reshape", [turned, "merge"], "merged")
    middle = node("Add", ["x", linear(merged, "w3")], "middle")
    h = node("Gelu", [linear(norm(middle, 1), "up")], "gelu")
    node("Add", [middle, linear(h, "down")], "y")
    return _onnx(nodes, given, (batch, ROWS, WIDTH), (batch, ROWS, WIDTH))


class _Rows:
    """Writes the block for TFLite: every tensor has the shape that the operator gives it."""

    def __init__(self, batch: int) -> None:
        self.writer, self.batch, self.count = Writer(), batch, 0

    def one(self, kind: str, inputs: Sequence[int], shape: Sequence[int], **options: Any) -> int:  # noqa: ANN401
        self.count += 1
        made = self.writer.tensor(f"t{self.count}", shape)
        self.writer.operator(kind, inputs, (made,), **options)
        return made

    def held(self, value: Array) -> int:
        self.count += 1
        return self.writer.constant(f"c{self.count}", np.ascontiguousarray(value))

    def linear(self, x: int, weights: Array, bias: Array) -> int:
        shape = (self.batch, ROWS, weights.shape[1])
        inputs = (x, self.held(weights.T), self.held(bias))
        return self.one("FULLY_CONNECTED", inputs, shape, fused=0, keep=1)

    def norm(self, x: int, gain: Array, beta: Array) -> int:
        full, small = (self.batch, ROWS, WIDTH), (self.batch, ROWS, 1)
        axes = self.held(np.array([2], np.int32))
        mean = self.one("MEAN", (x, axes), small, keep=1)
        square = self.one("SQUARED_DIFFERENCE", (x, mean), full)
        variance = self.one("MEAN", (square, axes), small, keep=1)
        wide = self.one(
            "ADD", (variance, self.held(np.array([EPSILON], np.float32))), small, fused=0
        )
        factor = self.one(
            "MUL", (self.one("RSQRT", (wide,), small), self.held(gain)), full, fused=0
        )
        left = self.one("MUL", (x, factor), full, fused=0)
        rest = self.one("MUL", (mean, factor), full, fused=0)
        shift = self.one("SUB", (self.held(beta), rest), full, fused=0)
        return self.one("ADD", (left, shift), full, fused=0)

    def heads(self, x: int) -> int:
        parts = (self.batch, ROWS, HEADS, WIDTH // HEADS)
        split = self.one("RESHAPE", (x, self.held(np.array(parts, np.int32))), parts)
        order = self.held(np.array([0, 2, 1, 3], np.int32))
        return self.one("TRANSPOSE", (split, order), (self.batch, HEADS, ROWS, WIDTH // HEADS))


def block_tflite(w: BlockWeights, *, batch: int = 1) -> bytes:
    """Return the block as a file; TFLite has no norms, they are spelled as Keras does."""
    rows = _Rows(batch)
    full, square = (batch, ROWS, WIDTH), (batch, HEADS, ROWS, ROWS)
    x = rows.writer.tensor("x", full)
    h = rows.norm(x, w.gains[0], w.betas[0])
    q, k, v = (
        rows.heads(rows.linear(h, w.projections[index], w.biases[index])) for index in range(3)
    )
    scores = rows.one("BATCH_MATMUL", (q, k), square, a=0, b=1)
    scores = rows.one("MUL", (scores, rows.held(scale().reshape(1))), square, fused=0)
    p = rows.one("SOFTMAX", (scores,), square, beta=1.0)
    heads = (batch, HEADS, ROWS, WIDTH // HEADS)
    context = rows.one("BATCH_MATMUL", (p, v), heads, a=0, b=0)
    order = rows.held(np.array([0, 2, 1, 3], np.int32))
    turned = rows.one("TRANSPOSE", (context, order), (batch, ROWS, HEADS, WIDTH // HEADS))
    merged = rows.one("RESHAPE", (turned, rows.held(np.array(full, np.int32))), full)
    added = rows.linear(merged, w.projections[3], w.biases[3])
    middle = rows.one("ADD", (x, added), full, fused=0)
    h = rows.linear(rows.norm(middle, w.gains[1], w.betas[1]), w.up, w.up_bias)
    h = rows.one("GELU", (h,), (batch, ROWS, INNER), approximate=0)
    y = rows.one("ADD", (middle, rows.linear(h, w.down, w.down_bias)), full, fused=0)
    return rows.writer.write((x,), (y,))
