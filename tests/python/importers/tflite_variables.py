# SPDX-License-Identifier: Apache-2.0
"""Files of TFLite with variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from npu.graph.form import Array
from tests.python.importers.tflite_writer import Writer

WIDTH, FRAMES, CELLS = 24, 3, 16
SCALE, ZERO = 0.05, -7
BEGINS = (3, -20)
"""What window and cells hold in the first run, as integers."""


class Variables(Writer):
    """A model with variables under construction."""

    def handle(self, name: str) -> int:
        """Add the name of a variable."""
        place = self.tensor(f"{name}.handle", (), "resource")
        self.operator("VAR_HANDLE", (), (place,), container="", shared=name)
        return place

    def read(self, handle: int, name: str, shape: tuple[int, ...], **more: Any) -> int:  # noqa: ANN401
        """Add what a variable holds."""
        place = self.tensor(name, shape, "int8", **{"scale": SCALE, "zero": ZERO} | more)
        self.operator("READ_VARIABLE", (handle,), (place,))
        return place

    def assign(self, handle: int, value: int) -> None:
        """Let a variable hold a value from here on."""
        self.operator("ASSIGN_VARIABLE", (handle, value), ())

    def int8(self, name: str, *shape: int) -> int:
        """Add a tensor of int8 in the scale that all have."""
        return self.tensor(name, shape, "int8", scale=SCALE, zero=ZERO)


def weights_of_the_network() -> tuple[Array, Array]:
    """Return the weights of the two products: of the window, and of what it and the cells are."""
    random = np.random.default_rng(11)
    window = random.integers(-127, 128, (CELLS, FRAMES * WIDTH)).astype(np.int8)
    # Whole sums, so that what is handed on is exact; few enough that not all saturates.
    cells = random.choice([-1, 0, 1], (CELLS, 2 * CELLS), p=[0.06, 0.88, 0.06]).astype(np.int8)
    return window, cells


def network(*, begins: bool = True) -> bytes:
    """Return a network with a window of frames and cells that go round.

    Args:
        begins: whether a subgraph says with what variables begin.
    """
    writer, once = Variables(), Variables()
    if begins:
        writer.operator("CALL_ONCE", (), (), subgraph=1)
    window, cells = writer.handle("window"), writer.handle("cells")
    x = writer.int8("x", 1, 1, WIDTH)
    old = writer.read(window, "old", (1, FRAMES - 1, WIDTH))
    frames = writer.int8("frames", 1, FRAMES, WIDTH)
    writer.operator("CONCATENATION", (old, x), (frames,), axis=1)
    kept = writer.int8("kept", 1, FRAMES - 1, WIDTH)
    ends = [np.array(one, np.int32) for one in ([0, 1, 0], [1, FRAMES, WIDTH], [1, 1, 1])]
    places = [writer.constant(f"end{index}", one) for index, one in enumerate(ends)]
    masks = {"begin": 0, "end": 0, "ellipsis": 0, "new": 0, "shrink": 0}
    writer.operator("STRIDED_SLICE", (frames, *places), (kept,), **masks)
    writer.assign(window, kept)
    flat = writer.int8("flat", 1, FRAMES * WIDTH)
    shape = writer.constant("shape", np.array([1, FRAMES * WIDTH], np.int32))
    writer.operator("RESHAPE", (frames, shape), (flat,))
    first, second = weights_of_the_network()
    seen = _product(writer, "seen", flat, first, 0.004)
    before = writer.read(cells, "before", (1, CELLS))
    both = writer.int8("both", 1, 2 * CELLS)
    writer.operator("CONCATENATION", (seen, before), (both,), axis=1)
    y = _product(writer, "y", both, second, 1.0)
    writer.assign(cells, y)
    for name, shape_, value in (
        ("window", (1, FRAMES - 1, WIDTH), BEGINS[0]),
        ("cells", (1, CELLS), BEGINS[1]),
    ):
        data = np.full(shape_, value, np.int8)
        once.assign(once.handle(name), once.constant(name, data, scale=SCALE, zero=ZERO))
    return writer.write((x,), (y,), once=once if begins else None)


def _product(writer: Variables, name: str, x: int, weights: Array, scale: float) -> int:
    """Add a product without bias, in weights of a scale."""
    held = writer.constant(f"{name}.w", weights, scale=scale)
    y = writer.int8(name, 1, len(weights))
    writer.operator("FULLY_CONNECTED", (x, held), (y,), fused=0, keep=0)
    return y


def frames_of(count: int) -> Array:
    """Return inputs of so many runs."""
    random = np.random.default_rng(12)
    return random.integers(-128, 128, (count, 1, 1, WIDTH)).astype(np.int8)
