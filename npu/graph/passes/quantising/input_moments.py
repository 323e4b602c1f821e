# SPDX-License-Identifier: Apache-2.0
"""Which inputs of a product move together, so that rounded weights make up for one another.

Error-compensated rounding (`weights.formats.rounding`) asks for the second moments of the inputs of
a product. Calibration shows the inputs of all samples; what is kept of them are sums of products.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from npu.graph.form import Array, Graph, Operation
from npu.graph.passes.quantising.weight_integers import Rounding
from spec.isa.operands import up
from weights.formats.recipe import Encoding
from weights.formats.rounding import feedback

MOST = 4096
"""Rows of a matrix of weights; what a larger one would take has no proportion to what it gains."""
CODES = 127
"""Moments are those of integers up to so much, as inputs have them on the chip."""


@dataclass
class GraphMoments:
    """Second moments of the inputs of products, over the samples of a calibration.

    Attributes:
        graph: after the pass `place`.
        encodings: of the weights that are to be rounded, by the names of their products.
        sums: by product, (K, K) sums of products of its inputs.
        counts: by product, rows that were seen.
    """

    graph: Graph
    encodings: Mapping[str, Encoding]
    sums: dict[str, Array] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, values: Mapping[str, Array]) -> None:
        """Take in the tensors of a sample."""
        for op in self.graph.operations:
            if op.name not in self.encodings:
                continue
            rows = input_rows(op, values[op.inputs[0]], self.graph.type(op.inputs[1]).shape)
            if rows is not None and np.isfinite(rows).all():
                self.sums[op.name] = self.sums.get(op.name, 0.0) + rows.T @ rows
                self.counts[op.name] = self.counts.get(op.name, 0) + len(rows)

    def roundings(self) -> dict[str, Rounding]:
        """Return how weights are rounded: to nearest where fewer rows were seen than there are."""
        return {name: self._rounding(name, encoding) for name, encoding in self.encodings.items()}

    def _rounding(self, name: str, encoding: Encoding) -> Rounding:
        sums = self.sums.get(name)
        if sums is None or self.counts[name] < len(sums) or not sums.any():
            return Rounding(encoding)
        unit = np.sqrt(sums.diagonal().max() / self.counts[name]) / CODES
        return Rounding(encoding, feedback(np.rint(sums / unit**2).astype(np.int64)))


def input_rows(op: Operation, x: Array, weights: tuple[int, ...]) -> Array | None:
    """Return the rows (n, K) that a product takes, in the order of `stream_matrices`.

    Args:
        op: the product.
        x: its input.
        weights: their shape.

    Returns:
        None for groups of channels, and for more inputs than `MOST`.
    """
    wide = x.astype(np.float64)
    if op.kind == "matmul":
        rows = wide.swapaxes(-1, -2) if op["transpose_a"] else wide
        return rows.reshape(-1, rows.shape[-1]) if rows.shape[-1] <= MOST else None
    height, width, channels, _ = weights
    if op["groups"] != 1 or height * width * up(channels) > MOST:
        return None
    top, left, bottom, right = op["pads"]
    lanes = up(channels) - channels
    padded = np.pad(wide, ((0, 0), (top, bottom), (left, right), (0, lanes)))
    (down, along), (tall, broad) = op["strides"], op["dilations"]
    reach = (height - 1) * tall + 1, (width - 1) * broad + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, (1, 2))
    windows = windows[:, ::down, ::along, :, ::tall, ::broad]
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, height * width * up(channels))
