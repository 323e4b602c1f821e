# SPDX-License-Identifier: Apache-2.0
"""Decoders as exporters write them: one step in ONNX, with past keys and values.

The operators are those that a trace of transformers' modules gives: norms, rotary positions, masks
and repeated heads in primitive operations, weights transposed and under names of the exporter.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

from weights.checkpoint import Checkpoint
from weights.reference import GELU, SILU

ROW, PAST = "sequence_length", "past_sequence_length"


class _Export:
    """Collects nodes and constants."""

    def __init__(self, model: Checkpoint, fused: bool, tables: bool) -> None:
        self.model, self.shape = model, model.shape
        self.fused, self.tables = fused, tables
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}
        self.inputs = [
            helper.make_tensor_value_info("input_ids", TensorProto.INT64, ["batch", ROW]),
            helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["batch", "all"]),
            helper.make_tensor_value_info("position_ids", TensorProto.INT64, ["batch", ROW]),
        ]
        sizes = ["batch", ROW, self.shape.vocab]
        self.outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, sizes)]

    def constant(self, value: npt.ArrayLike, name: str = "") -> str:
        array = np.asarray(value)
        name = name or f"onnx::Const_{len(self.constants)}"
        self.constants.setdefault(name, numpy_helper.from_array(array, name))
        return name

    def node(self, operator: str, *inputs: str, **attributes: Any) -> str:  # noqa: ANN401
        name = f"/{operator}_{len(self.nodes)}"
        self.nodes.append(
            helper.make_node(operator, inputs, [f"{name}_output_0"], name=name, **attributes)
        )
        return f"{name}_output_0"

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def ints(self, *values: int) -> str:
        return self.constant(np.array(values))

    def linear(self, x: str, *names: str) -> str:
        tensors = self.model.tensors
        weight = np.concatenate([tensors[f"{name}.weight"] for name in names], 1)
        y = self.node("MatMul", x, self.constant(weight, f"onnx::MatMul_{len(self.nodes)}"))
        if f"{names[0]}.bias" not in tensors:
            return y
        bias = np.concatenate([tensors[f"{name}.bias"] for name in names])
        return self.node("Add", self.constant(bias, f"{names[0]}.bias"), y)

    def norm(self, x: str, name: str) -> str:
        gain = self.constant(self.model.tensors[f"{name}.weight"], f"{name}.weight")
        if self.shape.norm == "layernorm":
            bias = self.constant(self.model.tensors[f"{name}.bias"], f"{name}.bias")
            return self.node("LayerNormalization", x, gain, bias, epsilon=self.shape.epsilon)
        square = self.node("Pow", x, self.number(2))
        mean = self.node("ReduceMean", square, self.ints(-1), keepdims=1)
        root = self.node("Sqrt", self.node("Add", mean, self.number(self.shape.epsilon)))
        return self.node("Mul", gain, self.node("Mul", x, self.node("Reciprocal", root)))

    def heads(self, x: str, count: int) -> str:
        split = self.node("Reshape", x, self.ints(0, -1, count, self.shape.head_dim))
        return self.node("Transpose", split, perm=[0, 2, 1, 3])

    def angles(self) -> tuple[str, str]:
        lanes = self.shape.head_dim
        powers = np.arange(0, lanes, 2) / lanes
        frequencies = (1 / self.shape.rope_theta**powers).astype(np.float32)
        if self.tables:
            table = np.outer(np.arange(self.shape.context), np.tile(frequencies, 2))
            rows = (np.cos(table), np.sin(table))
            found = [
                self.node("Gather", self.constant(each.astype(np.float32)), "position_ids")
                for each in rows
            ]
        else:
            position = self.node("Cast", "position_ids", to=TensorProto.FLOAT)
            column = self.node("Unsqueeze", position, self.ints(2))
            half = self.node("Mul", column, self.constant(frequencies.reshape(1, 1, -1)))
            whole = self.node("Concat", half, half, axis=-1)
            found = [self.node("Cos", whole), self.node("Sin", whole)]
        cosine, sine = (self.node("Unsqueeze", each, self.ints(1)) for each in found)
        return cosine, sine

    def turned(self, x: str, cosine: str, sine: str) -> str:
        half, last = self.shape.head_dim // 2, np.iinfo(np.int64).max
        first = self.node("Slice", x, self.ints(0), self.ints(half), self.ints(-1))
        second = self.node("Slice", x, self.ints(half), self.ints(int(last)), self.ints(-1))
        across = self.node("Concat", self.node("Neg", second), first, axis=-1)
        return self.node("Add", self.node("Mul", x, cosine), self.node("Mul", across, sine))

    def cached(self, layer: int, part: str, new: str) -> str:
        past, present = f"past_key_values.{layer}.{part}", f"present.{layer}.{part}"
        sizes = ["batch", self.shape.kv_heads, PAST, self.shape.head_dim]
        self.inputs.append(helper.make_tensor_value_info(past, TensorProto.FLOAT, sizes))
        self.outputs.append(
            helper.make_tensor_value_info(present, TensorProto.FLOAT, [*sizes[:2], "all", sizes[3]])
        )
        self.nodes.append(helper.make_node("Concat", [past, new], [present], axis=-2))
        group = self.shape.group
        if group == 1:
            return present
        wide = self.node("Unsqueeze", present, self.ints(2))
        repeated = self.node("Concat", *[wide] * group, axis=2)
        return self.node(
            "Reshape", repeated, self.ints(0, self.shape.heads, -1, self.shape.head_dim)
        )

    def attention(self, layer: int, x: str, mask: str, angles: tuple[str, str] | None) -> str:
        at, shape = f"h.{layer}", self.shape
        if self.fused:
            sizes = self.ints(shape.q_columns, shape.kv_columns, shape.kv_columns)
            whole = self.linear(x, f"{at}.q", f"{at}.k", f"{at}.v")
            parts = [f"{at}.split_{part}" for part in "qkv"]
            self.nodes.append(helper.make_node("Split", [whole, sizes], parts, axis=-1))
        else:
            parts = [self.linear(x, f"{at}.{part}") for part in "qkv"]
        q, k, v = (
            self.heads(part, count)
            for part, count in zip(
                parts, (shape.heads, shape.kv_heads, shape.kv_heads), strict=True
            )
        )
        if angles is not None:
            q, k = self.turned(q, *angles), self.turned(k, *angles)
        keys, values = self.cached(layer, "key", k), self.cached(layer, "value", v)
        turned = self.node("Transpose", keys, perm=[0, 1, 3, 2])
        scaled = self.node("Mul", self.node("MatMul", q, turned), self.number(shape.head_dim**-0.5))
        rows = self.node("Softmax", self.node("Add", scaled, mask), axis=-1)
        context = self.node("Transpose", self.node("MatMul", rows, values), perm=[0, 2, 1, 3])
        flat = self.node("Reshape", context, self.ints(0, -1, shape.q_columns))
        return self.linear(flat, f"{at}.o")

    def active(self, x: str) -> str:
        name = self.shape.activation
        if name in SILU:
            return self.node("Mul", x, self.node("Sigmoid", x))
        if name in GELU:
            part = self.node("Erf", self.node("Div", x, self.number(2**0.5)))
            whole = self.node("Mul", x, self.node("Add", part, self.number(1)))
            return self.node("Mul", whole, self.number(0.5))
        cube = self.node("Mul", self.node("Pow", x, self.number(3)), self.number(0.044715))
        inner = self.node("Mul", self.node("Add", x, cube), self.number((2 / np.pi) ** 0.5))
        part = self.node("Add", self.node("Tanh", inner), self.number(1))
        return self.node("Mul", self.node("Mul", x, self.number(0.5)), part)

    def feed_forward(self, layer: int, x: str) -> str:
        up = self.linear(x, f"h.{layer}.up")
        if self.shape.gated:
            inner = self.node("Mul", self.active(self.linear(x, f"h.{layer}.gate")), up)
        else:
            inner = self.active(up)
        return self.linear(inner, f"h.{layer}.down")

    def whole(self) -> onnx.ModelProto:
        table = self.constant(self.model.tensors["embed"], "model.embed_tokens.weight")
        x = self.node("Gather", table, "input_ids")
        angles = None
        if self.shape.positions:
            rows = self.constant(self.model.tensors["positions"], "transformer.wpe.weight")
            x = self.node("Add", x, self.node("Gather", rows, "position_ids"))
        else:
            angles = self.angles()
        hidden = self.node(
            "Sub", self.number(1), self.node("Cast", "attention_mask", to=TensorProto.FLOAT)
        )
        lowest = self.number(float(np.finfo(np.float32).min))
        mask = self.node("Mul", self.node("Unsqueeze", hidden, self.ints(1, 2)), lowest)
        for layer in range(self.shape.layers):
            normed = self.norm(x, f"h.{layer}.norm1")
            x = self.node("Add", x, self.attention(layer, normed, mask, angles))
            x = self.node("Add", x, self.feed_forward(layer, self.norm(x, f"h.{layer}.norm2")))
        head = self.constant(np.ascontiguousarray(self.model.head), "onnx::MatMul_head")
        self.nodes.append(helper.make_node("MatMul", [self.norm(x, "norm"), head], ["logits"]))
        graph = helper.make_graph(
            self.nodes, "main_graph", self.inputs, self.outputs, list(self.constants.values())
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def exported(model: Checkpoint, *, fused: bool = False, tables: bool = False) -> onnx.ModelProto:
    """Return one step of a decoder.

    Args:
        model: the decoder.
        fused: q, k and v are made by one product.
        tables: rotary angles are rows of tables, not computed.
    """
    return _Export(model, fused, tables).whole()
