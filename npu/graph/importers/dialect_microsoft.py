# SPDX-License-Identifier: Apache-2.0
"""Operators in floats that onnxruntime adds to ONNX: what its optimisers fuse."""

from __future__ import annotations

from typing import Any

import numpy as np

from npu.graph.form import GraphError
from npu.graph.importers.onnx_dialects import ForeignNode, operator

MICROSOFT = "com.microsoft"


def _activated(one: ForeignNode, y: str, kind: str, parameters: list[float]) -> None:
    """Give an activation of what a fused operator makes."""
    names = {"LeakyRelu": ["alpha"], "HardSigmoid": ["alpha", "beta"]}
    if kind == "Clip":
        one.give("Clip", [y, *(one.constant(np.float32(value)) for value in parameters)])
    elif kind in names:
        said: dict[str, Any] = dict(zip(names[kind], parameters, strict=True))
        one.give(kind, [y], **said)
    elif kind in ("Relu", "Sigmoid", "Tanh", ""):
        one.give(kind or "Identity", [y])
    else:
        raise GraphError(
            f"activation {kind}, allowed Relu, Sigmoid, Tanh, LeakyRelu, HardSigmoid, Clip"
        )


def _word(one: ForeignNode, name: str) -> str:
    return str(one.attributes.get(name, b"").decode())


@operator("FusedConv", domain=MICROSOFT)
def _fused_conv(one: ForeignNode) -> None:
    kind = _word(one, "activation")
    parameters = [float(value) for value in one.attributes.get("activation_params", ())]
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    said = {name: one.attributes.get(name) for name in names}
    y = one.add("Conv", [one.input(0), one.input(1), one.input(2)], **said)
    if one.input(3):
        y = one.add("Add", [y, one.input(3)])
    _activated(one, y, kind, parameters)


@operator("FusedGemm", domain=MICROSOFT)
def _fused_gemm(one: ForeignNode) -> None:
    kind = _word(one, "activation")
    said = {name: one.attributes.get(name) for name in ("alpha", "beta", "transA", "transB")}
    found = [one.attributes.get(f"activation_{name}") for name in ("alpha", "beta")]
    y = one.add("Gemm", [one.input(0), one.input(1), one.input(2)], **said)
    _activated(one, y, kind, [float(value) for value in found if value is not None])


@operator("FusedMatMul", domain=MICROSOFT)
def _fused_matmul(one: ForeignNode) -> None:
    sides = []
    for index, side in enumerate("AB"):
        x = one.input(index)
        order = list(range(len(one.shape(x))))
        if one.attributes.get(f"transBatch{side}", 0):
            order = [*order[1:-1], 0, order[-1]]
        if one.attributes.get(f"trans{side}", 0):
            order = [*order[:-2], order[-1], order[-2]]
        if len(order) > 1 and order != sorted(order):
            x = one.add("Transpose", [x], perm=order)
        sides.append(x)
    alpha = float(one.attributes.get("alpha", 1.0))
    if alpha == 1.0:
        one.give("MatMul", sides)
        return
    one.give("Mul", [one.add("MatMul", sides), one.constant(np.float32(alpha))])


@operator("Gelu", domain=MICROSOFT)
def _gelu(one: ForeignNode) -> None:
    one.give("Gelu", [one.input(0)])


@operator("BiasGelu", domain=MICROSOFT)
def _bias_gelu(one: ForeignNode) -> None:
    one.give("Gelu", [one.add("Add", [one.input(0), one.input(1)])])


@operator("FastGelu", domain=MICROSOFT)
def _fast_gelu(one: ForeignNode) -> None:
    x = one.input(0)
    if one.input(1):
        x = one.add("Add", [x, one.input(1)])
    one.give("Gelu", [x], approximate="tanh")


@operator("QuickGelu", domain=MICROSOFT)
def _quick_gelu(one: ForeignNode) -> None:
    x, alpha = one.input(0), np.float32(one.attributes.get("alpha", 1.702))
    one.give("Mul", [x, one.add("Sigmoid", [one.add("Mul", [x, one.constant(alpha)])])])


def _skipped(one: ForeignNode, bias: int) -> str:
    """Add the sum of input, skip and bias, which may be a result too."""
    x = one.add("Add", [one.input(0), one.input(1)])
    if one.input(bias):
        x = one.add("Add", [x, one.input(bias)])
    one.give("Identity", [x], 3)
    return x


@operator("SkipLayerNormalization", domain=MICROSOFT)
def _skip_layernorm(one: ForeignNode) -> None:
    x = _skipped(one, 4)
    epsilon = float(one.attributes.get("epsilon", 1e-12))
    given = [x, one.input(2), one.input(3)]
    one.give("LayerNormalization", given, epsilon=epsilon)


@operator("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def _skip_rmsnorm(one: ForeignNode) -> None:
    x = _skipped(one, 3)
    epsilon = float(one.attributes.get("epsilon", 1e-12))
    one.give("RMSNormalization", [x, one.input(2)], epsilon=epsilon)


@operator("SimplifiedLayerNormalization", domain=("", MICROSOFT))
def _rmsnorm(one: ForeignNode) -> None:
    said: dict[str, Any] = {
        name: one.attributes.get(name) for name in ("axis", "epsilon", "stash_type")
    }
    one.give("RMSNormalization", [one.input(0), one.input(1)], **said)


@operator("MatMulNBits", domain=MICROSOFT)
def _matmul_bits(one: ForeignNode) -> None:
    """Multiply by weights of few bits in blocks that have a scale each, column by column."""
    inner, columns = int(one.attributes["K"]), int(one.attributes["N"])
    bits, block = int(one.attributes.get("bits", 4)), int(one.attributes["block_size"])
    one.attributes.get("accuracy_level")  # how fast it may be, not what it computes
    if bits not in (2, 4, 8):
        raise GraphError(f"{bits} bits, allowed 2, 4, 8")
    if one.input(4):
        raise GraphError("a group index is given, allowed groups in their order")
    blocks = -(-inner // block)

    def parted(name: str, what: str, count: int) -> Any:  # noqa: ANN401
        data = one.value(name, what)
        if data.dtype != np.uint8:
            return data.reshape(columns, -1)[:, :count].astype(np.float64)
        rows = data.reshape(columns, -1)
        parts = [(rows >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
        return np.stack(parts, -1).reshape(columns, -1)[:, :count].astype(np.float64)

    whole = parted(one.input(1), "the weight", blocks * block).reshape(columns, blocks, block)
    scales = one.value(one.input(2), "the scales").reshape(columns, blocks, 1).astype(np.float64)
    zeros: Any = float(1 << (bits - 1))
    if one.input(3):
        zeros = parted(one.input(3), "the zero points", blocks).reshape(columns, blocks, 1)
    weight = ((whole - zeros) * scales).reshape(columns, -1)[:, :inner].T
    y = one.constant(np.ascontiguousarray(weight.astype(np.float32)))
    given = [one.input(0), y]
    if not one.input(5):
        one.give("MatMul", given)
        return
    one.give("Add", [one.add("MatMul", given), one.input(5)])
