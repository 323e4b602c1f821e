# SPDX-License-Identifier: Apache-2.0
"""A GPT-2 block as a graph of integers: fused, or one operation after the other.

Heads are padded to whole words of SRAM with zero weights, so q, k and v of all heads lie side by
side in one matrix and are views of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from npu.compiler.errors import CompileError
from npu.compiler.linear_padding import columns, pad_inputs, pad_outputs
from npu.compiler.shape import ctx_pitch, lane
from npu.graph.form import (
    Array,
    Attribute,
    Element,
    Graph,
    Operation,
    Place,
    Quantisation,
    Target,
    Tensor,
    TensorType,
)
from weights.model import AnyLinear, Block, Linear, Norm, QuantizedModel

INPUT, OUTPUT = "x", "resid2"
_PLACE = Place(Target.NPU, "a block of a decoder")
_UNIT = Quantisation((1.0,))
_LINEAR: Mapping[str, Attribute] = {
    "transpose_a": False,
    "transpose_b": False,
    "relu": False,
    "combine": "",
    "product_mult": 0,
    "product_shift": 0,
    "a_zero": 0,
    "b_zero": 0,
}


def block_graph(model: QuantizedModel, layer: int, rows: int, *, fused: bool) -> Graph:
    """Return a block for positions 0 to rows-1.

    Args:
        model: a GPT-2 with int8 weights.
        layer: of the block.
        rows: positions.
        fused: with activation and sums in the products in front of them.

    Returns:
        From "x" to "resid2", both (rows, hidden) int16; names of other tensors are those of
        `golden.decoder.BlockTrace`.

    Raises:
        CompileError: weights are in a narrow format.
    """
    build = _Build(model, rows)
    return build.block(model.blocks[layer], fused)


@dataclass
class _Build:
    model: QuantizedModel
    rows: int
    tensors: dict[str, Tensor] = field(default_factory=dict)
    operations: list[Operation] = field(default_factory=list)

    def block(self, block: Block, fused: bool) -> Graph:
        shape = self.model.shape
        head_dim, hidden = shape.head_dim, shape.hidden
        self.tensor(INPUT, (self.rows, hidden), Element.I16)
        normed = self.norm("norm1", INPUT, block.norm1)
        wide = ctx_pitch(shape)
        if fused:
            whole = self.linear("qkv", normed, pad_outputs(block.qkv, head_dim))
            parts = [self.cut(name, whole, i * wide, wide) for i, name in enumerate("qkv")]
        else:
            parts = [
                self.linear(
                    f"{name}_rows",
                    normed,
                    pad_outputs(columns(block.qkv, i * hidden, (i + 1) * hidden), head_dim),
                )
                for i, name in enumerate("qkv")
            ]
        heads = [self.heads(name, part) for name, part in zip("qkv", parts, strict=True)]
        context = self.attention(heads, block)
        proj = pad_inputs("proj", block.proj, head_dim)
        if fused:
            middle = self.linear("resid1", context, proj, addend=INPUT)
            act = self.linear(
                "act", self.norm("norm2", middle, block.norm2), block.up, table=block.table
            )
            self.linear(OUTPUT, act, block.down, addend=middle)
        else:
            middle = self.add("resid1", INPUT, self.linear("proj", context, proj, Element.I16))
            up = self.linear("up", self.norm("norm2", middle, block.norm2), block.up)
            act = self.table("act", up, block.table)
            self.add(OUTPUT, middle, self.linear("down", act, block.down, Element.I16))
        return Graph("block", (INPUT,), (OUTPUT,), self.tensors, tuple(self.operations))

    def tensor(
        self, name: str, shape: tuple[int, ...], element: Element, data: Array | None = None
    ) -> str:
        self.tensors[name] = Tensor(name, TensorType(shape, element, _UNIT), data)
        return name

    def add_operation(
        self,
        name: str,
        kind: str,
        inputs: tuple[str, ...],
        result: tuple[tuple[int, ...], Element],
        attributes: Mapping[str, Attribute],
        integers: Mapping[str, Array] | None = None,
    ) -> str:
        self.tensor(name, *result)
        self.operations.append(
            Operation(name, kind, inputs, (name,), attributes, "", _PLACE, integers or {})
        )
        return name

    def norm(self, name: str, source: str, norm: Norm) -> str:
        integers: dict[str, Array] = {
            "eps": np.array([norm.eps_term], np.uint64),
            "gain": norm.gain,
            "shift": norm.shift,
            "bias": norm.bias,
        }
        result = self.tensors[source].shape, Element.I8
        attributes: dict[str, Attribute] = {"axes": 1, "epsilon": 0.0}
        return self.add_operation(name, "layernorm", (source,), result, attributes, integers)

    def linear(
        self,
        name: str,
        source: str,
        layer: AnyLinear,
        element: Element = Element.I8,
        *,
        table: npt.NDArray[np.int8] | None = None,
        addend: str = "",
    ) -> str:
        if not isinstance(layer, Linear):
            raise CompileError(f"{name}: given {layer.format.asm} weights, allowed int8 in a block")
        weight = self.tensor(f"{name}.weight", layer.weight.shape, Element.I8, layer.weight)
        integers: dict[str, Array] = {
            "bias": layer.bias,
            "mult": layer.mult,
            "shift": layer.shift,
        }
        if table is not None:
            integers["table"] = table
        inputs = (source, weight, "", addend) if addend else (source, weight)
        attributes = {**_LINEAR, "combine": "add" if addend else ""}
        result = (self.rows, layer.weight.shape[1]), Element.I16 if addend else element
        return self.add_operation(name, "matmul", inputs, result, attributes, integers)

    def cut(self, name: str, source: str, first: int, count: int) -> str:
        attributes: dict[str, Attribute] = {
            "starts": (0, first),
            "stops": (self.rows, first + count),
            "steps": (1, 1),
        }
        result = (self.rows, count), Element.I8
        return self.add_operation(f"{name}_rows", "slice", (source,), result, attributes)

    def heads(self, name: str, source: str) -> str:
        """Return rows of heads side by side as heads of rows."""
        shape = self.model.shape
        apart = (1, self.rows, shape.heads, lane(shape))
        self.add_operation(
            f"{name}_split", "reshape", (source,), (apart, Element.I8), {"shape": apart}
        )
        turned = (1, shape.heads, self.rows, lane(shape))
        return self.add_operation(
            name, "transpose", (f"{name}_split",), (turned, Element.I8), {"order": (0, 2, 1, 3)}
        )

    def attention(self, heads: list[str], block: Block) -> str:
        shape = self.model.shape
        integers: dict[str, Array] = {
            "mult": np.array([block.score_mult], np.uint16),
            "shift": np.array([block.score_shift], np.uint8),
        }
        attributes: dict[str, Attribute] = {
            "scale": 1.0,
            "causal": True,
            "offset": 0,
            "window": 0,
            "softcap": 0.0,
        }
        turned = (1, shape.heads, self.rows, lane(shape))
        self.add_operation(
            "ctx", "attention", tuple(heads), (turned, Element.I8), attributes, integers
        )
        apart = (1, self.rows, shape.heads, lane(shape))
        self.add_operation(
            "ctx_rows", "transpose", ("ctx",), (apart, Element.I8), {"order": (0, 2, 1, 3)}
        )
        flat = (self.rows, ctx_pitch(shape))
        return self.add_operation(
            "ctx_merged", "reshape", ("ctx_rows",), (flat, Element.I8), {"shape": flat}
        )

    def add(self, name: str, a: str, b: str) -> str:
        result = self.tensors[a].shape, Element.I16
        return self.add_operation(name, "add", (a, b), result, {})

    def table(self, name: str, source: str, table: npt.NDArray[np.int8]) -> str:
        result = self.tensors[source].shape, Element.I8
        attributes: dict[str, Attribute] = {"functions": (), "parameters": ()}
        return self.add_operation(name, "table", (source,), result, attributes, {"table": table})
