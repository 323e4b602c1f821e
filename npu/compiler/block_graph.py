# SPDX-License-Identifier: Apache-2.0
"""A GPT-2 block as a graph of integers: fused, or one operation after the other.

Heads are padded to whole words of SRAM with zero weights, so q, k and v of all heads lie side by
side in one matrix and are views of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from npu.compiler.errors import CompileError
from npu.compiler.linear_padding import columns, pad_inputs, pad_outputs
from npu.compiler.shape import ctx_pitch, lane
from npu.graph.build import Builder
from npu.graph.form import (
    Array,
    Element,
    Graph,
    OperationPlace,
    Quantisation,
    Target,
    TensorType,
)
from weights.model import AnyLinear, Block, Linear, Norm, QuantizedModel, Rescale

INPUT, OUTPUT = "x", "resid2"
_PLACE = OperationPlace(Target.NPU, "a block of a decoder")
_UNIT = Quantisation((1.0,))
_LINEAR: Mapping[str, Any] = {
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
    return _BlockBuilder(model, rows).block(model.blocks[layer], fused)


class _BlockBuilder(Builder):
    def __init__(self, model: QuantizedModel, rows: int) -> None:
        super().__init__("block")
        self.model, self.rows = model, rows

    def block(self, block: Block, fused: bool) -> Graph:
        shape = self.model.shape
        head_dim, hidden = shape.head_dim, shape.hidden
        self.input(INPUT, TensorType((self.rows, hidden), Element.I16, _UNIT))
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
            middle = self.plus("resid1", INPUT, self.linear("proj", context, proj, Element.I16))
            up = self.linear("up", self.norm("norm2", middle, block.norm2), block.up)
            act = self.table("act", up, block.table)
            self.plus(OUTPUT, middle, self.linear("down", act, block.down, Element.I16))
        return self.finish([OUTPUT])

    def made(
        self,
        name: str,
        kind: str,
        inputs: Sequence[str],
        result: tuple[tuple[int, ...], Element],
        integers: Mapping[str, Array] | None = None,
        **attributes: Any,  # noqa: ANN401
    ) -> str:
        """Add an operation that has the name of its result."""
        kinds = [TensorType(*result, _UNIT)]
        given = {"place": _PLACE, "integers": integers, **attributes}
        return self.add_many(kind, inputs, [name], kinds, wish=name, **given)[0]

    def norm(self, name: str, source: str, norm: Norm | Rescale) -> str:
        assert isinstance(norm, Norm)
        integers: dict[str, Array] = {
            "eps": np.array([norm.eps_term], np.uint64),
            "gain": norm.gain,
            "shift": norm.shift,
            "bias": norm.bias,
        }
        result = self.shape(source), Element.I8
        attributes: dict[str, Any] = {"axes": 1, "epsilon": 0.0}
        return self.made(name, "layernorm", (source,), result, integers, **attributes)

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
        weight = self.constant(layer.weight, f"{name}.weight", _UNIT)
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
        return self.made(name, "matmul", inputs, result, integers, **attributes)

    def cut(self, name: str, source: str, first: int, count: int) -> str:
        attributes: dict[str, Any] = {
            "starts": (0, first),
            "stops": (self.rows, first + count),
            "steps": (1, 1),
        }
        result = (self.rows, count), Element.I8
        return self.made(f"{name}_rows", "slice", (source,), result, **attributes)

    def heads(self, name: str, source: str) -> str:
        """Return rows of heads side by side as heads of rows."""
        shape = self.model.shape
        apart = (1, self.rows, shape.heads, lane(shape))
        self.made(f"{name}_split", "reshape", (source,), (apart, Element.I8), shape=apart)
        turned = (1, shape.heads, self.rows, lane(shape))
        return self.made(
            name, "transpose", (f"{name}_split",), (turned, Element.I8), order=(0, 2, 1, 3)
        )

    def attention(self, heads: list[str], block: Block) -> str:
        shape = self.model.shape
        integers: dict[str, Array] = {
            "mult": np.array([block.score_mult], np.uint16),
            "shift": np.array([block.score_shift], np.uint8),
        }
        attributes: dict[str, Any] = {
            "scale": 1.0,
            "causal": True,
            "offset": 0,
            "window": 0,
            "softcap": 0.0,
        }
        turned = (1, shape.heads, self.rows, lane(shape))
        self.made("ctx", "attention", tuple(heads), (turned, Element.I8), integers, **attributes)
        apart = (1, self.rows, shape.heads, lane(shape))
        self.made("ctx_rows", "transpose", ("ctx",), (apart, Element.I8), order=(0, 2, 1, 3))
        flat = (self.rows, ctx_pitch(shape))
        return self.made("ctx_merged", "reshape", ("ctx_rows",), (flat, Element.I8), shape=flat)

    def plus(self, name: str, a: str, b: str) -> str:
        result = self.shape(a), Element.I16
        return self.made(name, "add", (a, b), result)

    def table(self, name: str, source: str, table: npt.NDArray[np.int8]) -> str:
        result = self.shape(source), Element.I8
        attributes: dict[str, Any] = {"functions": (), "parameters": ()}
        return self.made(name, "table", (source,), result, {"table": table}, **attributes)
