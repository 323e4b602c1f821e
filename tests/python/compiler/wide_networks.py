# SPDX-License-Identifier: Apache-2.0
"""Networks of which int8 loses much: values of very different sizes beside one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from npu.graph.form import Array
from tests.python.compiler.small_networks import Net

Samples: TypeAlias = Mapping[str, Array]
WIDTH, ROWS, BANDS = 32, 4, 16
SPREAD = np.logspace(0, 1.5, WIDTH)
"""Sizes of the features of an input."""


@dataclass(frozen=True)
class WideNetwork:
    """A network, what it is given, and what 16 bits are to bring.

    Attributes:
        make: grows it.
        shape: of its input.
        sizes: of the last axis of the input.
        most: what the outputs may be off, as a share of the largest.
        gain: of the outputs over their error, in dB, at least.
    """

    make: Callable[[Net], str]
    shape: tuple[int, ...]
    sizes: Array
    most: float
    gain: float

    def samples(self, count: int, seed: int) -> Samples:
        """Return drawn inputs."""
        drawn = np.random.default_rng(seed).standard_normal((count, *self.shape))
        return {"x": (drawn * self.sizes).astype(np.float32)}


def features(net: Net) -> str:
    """Return an MLP that brings features of sizes from 1 to 30 to one size."""
    x = net.input("x", ROWS, WIDTH)
    even = net.floats(WIDTH, WIDTH, scale=WIDTH**-0.5)
    data = net.build.value(even)
    assert data is not None
    weight = net.build.constant((data / SPREAD[:, None]).astype(np.float32))
    y = net.build.add("matmul", [x, weight], transpose_a=False, transpose_b=False)
    return net.linear(net.table(net.linear(net.table(y, "relu"), WIDTH), "relu"), 8)


def outliers(net: Net) -> str:
    """Return a block of a transformer of which few channels are a hundred times as large."""
    x = net.input("x", 1, ROWS, WIDTH)
    y = net.norm(x)
    y = net.linear(net.table(net.linear(y, 2 * WIDTH), "gelu"), WIDTH)
    x = net.build.add("add", [x, y])
    return net.linear(net.norm(x), 8)


def spectrum(net: Net) -> str:
    """Return the power of bands and two convolutions along time, as networks of sound have it."""
    x = net.input("x", 1, 1, 16, BANDS)
    y = net.build.add("table", [net.conv(x, BANDS, 1)], functions=("square",), parameters=())
    y = net.build.add("clip", [net.conv(y, 16)], low=0.0, high=float("inf"))
    return net.conv(y, 8, 1)


NETWORKS = {
    "features of many sizes": WideNetwork(features, (ROWS, WIDTH), SPREAD, 0.05, 6.0),
    "channels far out": WideNetwork(
        outliers, (1, ROWS, WIDTH), np.where(np.arange(WIDTH) % 16, 1.0, 60.0), 0.01, 6.0
    ),
    "powers of sound": WideNetwork(
        spectrum, (1, 1, 16, BANDS), np.logspace(0, -2, BANDS), 0.023, 4.0
    ),
}
