# SPDX-License-Identifier: Apache-2.0
"""Which inputs of an ONNX model are parameters: those that the chip must know when it compiles."""

from __future__ import annotations

from typing import Any

ACTIVATIONS: dict[str, tuple[int, ...]] = {
    "Attention": (0, 1, 2),
    "MatMul": (0, 1),
    "Gemm": (0, 1, 2),
    "SwiGLU": (0, 1),
    "QLinearMatMul": (0, 3),
    "MatMulInteger": (0, 1),
    "QLinearConv": (0,),
    "ConvInteger": (0,),
    "Conv": (0,),
    "BatchNormalization": (0,),
    "LayerNormalization": (0,),
    "RMSNormalization": (0,),
    "RotaryEmbedding": (0,),
    "Clip": (0,),
    "QuantizeLinear": (0,),
    "DequantizeLinear": (0,),
    "PRelu": (0,),
    "Reshape": (0,),
    "Slice": (0,),
    "Pad": (0,),
    "Expand": (0,),
    "Squeeze": (0,),
    "Unsqueeze": (0,),
    "Resize": (0,),
    "Tile": (0,),
    "Split": (0,),
    "CumSum": (0,),
    "TopK": (0,),
    **{
        f"Reduce{how}": (0,)
        for how in (*("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean"), *("Min", "Prod", "Sum"))
    },
    "ReduceSumSquare": (0,),
}
"""Places of the inputs that are data, of operators that have others; elsewhere all of them are."""


def parameters_of(model: Any) -> set[str]:  # noqa: ANN401
    """Return the inputs of a model that are read as parameters only."""
    data: set[str] = set()
    read: set[str] = set()
    for node in model.graph.node:
        for place, name in enumerate(node.input):
            read.add(name)
            if place in ACTIVATIONS.get(node.op_type, (place,)):
                data.add(name)
    return {one.name for one in model.graph.input if one.name in read - data}
