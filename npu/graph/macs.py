# SPDX-License-Identifier: Apache-2.0
"""The multiplications that a network asks for, whatever executes it."""

from __future__ import annotations

from npu.graph.form import Graph, Operation


def macs_of(graph: Graph, op: Operation) -> int:
    """Return the multiplications of weights or of two activations; 0 for all that is cheap.

    Those of a convolution with what pads its image count.
    """
    shapes = [graph.type(name).shape for name in op.used]
    result = graph.type(op.outputs[0])
    match op.kind:
        case "matmul":
            inner = shapes[0][-2 if op["transpose_a"] and len(shapes[0]) > 1 else -1]
            return result.size * inner
        case "portmatmul":
            return result.size * shapes[0][1]
        case "conv":
            rows, columns, channels, _ = shapes[1]
            return result.size * rows * columns * channels
        case "attention":
            batch, heads, queries, width = shapes[0]
            keys, values = shapes[1][2], shapes[2][3]
            return batch * heads * queries * keys * (width + values)
        case _:
            return 0
