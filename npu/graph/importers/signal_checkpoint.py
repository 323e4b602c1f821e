# SPDX-License-Identifier: Apache-2.0
"""Makes the float graph of an encoder of pictures or of sound from its checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from npu.graph.form import Array, Graph, GraphError, TensorType
from npu.graph.importers.checkpoint import LOGITS, Drawing
from weights.decoder import block
from weights.signal_encoder import SignalCheckpoint, SignalShape

PIXELS, MELS = "pixels", "mels"
"""Inputs: pictures (1, C, H, W) and spectrograms (1, mels, 2 T), as transformers prepares them."""
ROWS, POOLED = "rows", "pooled"
"""Outputs without a head: all rows (1, T, H), and (1, columns) of the pooler if there is one."""


def signal_graph(
    checkpoint: SignalCheckpoint, shapes: Mapping[str, tuple[int, ...]] | None = None
) -> Graph:
    """Return the graph of a checkpoint.

    Args:
        checkpoint: the encoder.
        shapes: of the input; sound may be shorter than the model's.

    Raises:
        GraphError: the shape is no signal that the model takes.
    """
    shape = checkpoint.shape
    given, name = dict(shapes or {}), PIXELS if shape.patch else MELS
    usual = (1, *shape.signal)
    size = given.pop(name, usual)
    if given:
        raise GraphError(f"{checkpoint.source}: {next(iter(given))!r} is no input, allowed {name}")
    longest = usual[-1]
    shorter = not shape.patch and size[:-1] == usual[:-1] and size[-1] in range(2, longest, 2)
    if size != usual and not shorter:
        more = "" if shape.patch else ", or an even number from 2 at the end"
        raise GraphError(
            f"{checkpoint.source}: shape of {name}: given {list(size)}, allowed {list(usual)}{more}"
        )
    return _SignalDrawing(checkpoint, name, size[1:]).graph()


def wide_operations(checkpoint: SignalCheckpoint) -> tuple[str, ...]:
    """Return what has 16 bits, as in encoders of text: activations, and the last norm."""
    return (*(f"h.{layer}.act" for layer in range(checkpoint.shape.layers)), "norm")


class _SignalDrawing(Drawing):
    """The operations of an encoder of a signal on tensors of a graph, by their names."""

    shape: SignalShape

    def __init__(self, checkpoint: SignalCheckpoint, name: str, signal: tuple[int, ...]) -> None:
        shape, places = checkpoint.shape, signal[-1]
        super().__init__(checkpoint, shape.context if shape.patch else places // 2)
        self.name, self.size = name, signal

    def graph(self) -> Graph:
        shape = self.shape
        x = self.embedding()
        for layer in range(shape.layers):
            x = block(self, shape, layer, x)
        if shape.labels:
            row = self.norm("norm", self.first(x))
            return self.build.finish([self.columns(LOGITS, "head", row)])
        x = self.norm("norm", x)
        outputs = [self.added("identity", ROWS, x)]
        if shape.pooled:
            row = self.columns("pooler", "pooler", self.first(x))
            tanh = {"functions": ("tanh",), "parameters": ()}
            outputs.append(self.added("table", POOLED, row, **tanh))
        return self.build.finish(outputs)

    def columns(self, name: str, layer: str, x: str) -> str:
        """Add the product of a row with the weights of a layer."""
        weight, bias = (self.constant(f"{layer}.{part}") for part in ("weight", "bias"))
        return self.added("matmul", name, x, weight, bias, transpose_a=False, transpose_b=False)

    def embedding(self) -> str:
        signal = self.build.input(self.name, TensorType((1, *self.size)))
        table = self.checkpoint.tensors["positions"][: self.rows]
        if self.shape.patch:
            x, table = self.patches(signal), self.learned(table)
        else:
            x = self.sound(signal)
        return self.added("add", "positioned", x, self.build.constant(table, "positions"))

    def patches(self, signal: str) -> str:
        """Add the products of patches with the filters; rows that are learned are patches of 0."""
        channels, side = self.size[:2]
        patch, count = self.shape.patch, side // self.shape.patch
        size = (1, channels, count, patch, count, patch)
        cut = self.added("reshape", "cut", signal, shape=size)
        apart = self.added("transpose", "apart", cut, order=(0, 2, 4, 1, 3, 5))
        rows = self.added("reshape", "patches", apart, shape=(1, count**2, channels * patch**2))
        ends = {"before": (0, self.shape.tokens, 0), "after": (0, 0, 0)}
        rows = self.added("pad", "padded", rows, **ends, value=0.0)
        filters = self.checkpoint.tensors["patch.weight"].reshape(self.shape.hidden, -1).T
        weight, bias = self.build.constant(filters, "patch.weight"), self.constant("patch.bias")
        sides = {"transpose_a": False, "transpose_b": False}
        return self.added("matmul", "patch", rows, weight, bias, **sides)

    def learned(self, table: Array) -> Array:
        """Return what is added to products of patches: positions, and rows that are learned."""
        tensors, count = self.checkpoint.tensors, self.shape.tokens
        rows = np.concatenate([tensors[f"token.{number}"] for number in range(count)])
        return np.concatenate([table[:count] + rows - tensors["patch.bias"], table[count:]])

    def sound(self, signal: str) -> str:
        """Add the rows that two convolutions make: of a picture one place high."""
        mels, places = self.size
        turned = self.added("transpose", "turned", signal, order=(0, 2, 1))
        x = self.added("reshape", "signal", turned, shape=(1, 1, places, mels))
        for name, stride in (("conv1", 1), ("conv2", 2)):
            filters = self.checkpoint.tensors[f"{name}.weight"].transpose(2, 1, 0)[None]
            weight, bias = (
                self.build.constant(filters, f"{name}.weight"),
                self.constant(f"{name}.bias"),
            )
            windows = {"strides": (1, stride), "pads": (0, 1, 0, 1), "dilations": (1, 1)}
            x = self.added("conv", name, x, weight, bias, **windows, groups=1)
            x = self.added("table", f"{name}.act", x, functions=("gelu",), parameters=())
        return self.added("reshape", "rows_of_sound", x, shape=(1, self.rows, self.shape.hidden))

    def attend(self, name: str, q: str, k: str, v: str, layer: int) -> str:
        return self.joined(name, q, k, v, causal=False)

    def first(self, x: str) -> str:
        hidden = self.shape.hidden
        ends: dict[str, Sequence[int]] = {"starts": (0, 0, 0), "stops": (1, 1, hidden)}
        row = self.added("slice", "first", x, **ends, steps=(1, 1, 1))
        return self.added("reshape", "row", row, shape=(1, hidden))
