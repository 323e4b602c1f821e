# SPDX-License-Identifier: Apache-2.0
"""ONNX networks whose weights have two and four bits, as files hold them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx

from npu.graph.form import Array

helper = onnx.helper
KINDS = {"int4": (-8, 8, 0), "uint4": (0, 16, 8), "int2": (-2, 2, 0), "uint2": (0, 4, 2)}
"""The lowest code, the one past the highest, and the zero point."""
ROWS, INNER, COLUMNS = 5, 70, 40


def narrow_network(kind: str, *, window: int = 0) -> tuple[Any, dict[str, Array]]:
    """Return a product, or a convolution with a square window, and an input, all int8 outside."""
    random, (low, high, zero) = np.random.default_rng(6), KINDS[kind]
    shapes: dict[str, tuple[int, ...]]
    if window:
        shapes = {"x": (1, 24, 9, 9), "w": (COLUMNS, 24, window, window)}
        node = helper.make_node("Conv", ["xd", "wd"], ["yd"])
    else:
        shapes = {"x": (ROWS, INNER), "w": (INNER, COLUMNS)}
        node = helper.make_node("MatMul", ["xd", "wd"], ["yd"])
    codes = random.integers(low, high, shapes["w"])
    codes.reshape(-1)[:2] = (low, high - 1)
    element = getattr(onnx.TensorProto, kind.upper())
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=0 if window else 1),
        node,
        helper.make_node("QuantizeLinear", ["yd", "sy", "zx"], ["y"]),
    ]
    scales = {
        "sx": np.float32(0.05),
        "sw": random.uniform(0.01, 0.02, COLUMNS).astype(np.float32),
        "sy": np.float32(0.2),
        "zx": np.int8(3),
    }
    held = [onnx.numpy_helper.from_array(np.asarray(one), name) for name, one in scales.items()]
    held.append(helper.make_tensor("w", element, codes.shape, codes.reshape(-1).tolist()))
    held.append(helper.make_tensor("zw", element, (COLUMNS,), [zero] * COLUMNS))
    int8 = onnx.TensorProto.INT8
    graph = helper.make_graph(
        nodes,
        "narrow",
        [helper.make_tensor_value_info("x", int8, shapes["x"])],
        [helper.make_tensor_value_info("y", int8, ())],
        held,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)
    return model, {"x": random.integers(-128, 128, shapes["x"]).astype(np.int8)}
