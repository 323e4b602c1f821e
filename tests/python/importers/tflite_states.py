# SPDX-License-Identifier: Apache-2.0
"""Files of TFLite's operators with a state."""

from __future__ import annotations

from typing import Any

import numpy as np

from npu.graph.form import Array
from tests.python.importers.tflite_writer import Writer


def lstm_model(
    *, time_major: bool = False, clip: float = 0.0, coupled: bool = False, quantised: bool = False
) -> tuple[bytes, tuple[int, ...]]:
    """Return the file of an LSTM of 7 steps, 5 inputs and 6 cells, and the shape of its input.

    Args:
        time_major: steps before examples.
        clip: bound of the cells, 0 for none.
        coupled: without an input gate.
        quantised: weights in int8, all else in float, which LiteRT calls hybrid.
    """
    random, writer = np.random.default_rng(3), Writer()
    batch, steps, inputs, cells = 2, 7, 5, 6
    shape = (steps, batch, inputs) if time_major else (batch, steps, inputs)
    x = writer.tensor("x", shape)

    def held(name: str, *size: int) -> int:
        value = random.standard_normal(size).astype(np.float32)
        if not quantised or len(size) < 2:
            return writer.constant(name, value)
        scale = float(np.abs(value).max()) / 127
        return writer.constant(name, np.rint(value / scale).astype(np.int8), scale=scale)

    gates = range(1 if coupled else 0, 4)
    given = [x, *[-1] * 23]
    for gate in gates:
        given[1 + gate] = held(f"w{gate}", cells, inputs)
        given[5 + gate] = held(f"r{gate}", cells, cells)
        given[12 + gate] = held(f"b{gate}", cells)
    given[18] = writer.tensor("h", (batch, cells), variable=True)
    given[19] = writer.tensor("c", (batch, cells), variable=True)
    y = writer.tensor("y", (*shape[:2], cells))
    options = {"fused": 4, "clip": clip, "time_major": int(time_major)}
    writer.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", given, (y,), **options)
    return writer.write((x,), (y,)), shape


def integer_lstm_model() -> tuple[bytes, tuple[int, ...]]:
    """Return the file of an LSTM in int8, its cells in int16, and the shape of its input."""
    random, writer = np.random.default_rng(3), Writer()
    (batch, steps, inputs), cells = (2, 4, 5), 6
    x = writer.tensor("x", (batch, steps, inputs), "int8", scale=0.02, zero=-3)

    def held(name: str, size: tuple[int, ...], dtype: type, most: int, scale: float) -> int:
        value: Array = random.integers(-most, most + 1, size).astype(dtype)
        return writer.constant(name, value, scale=scale)

    given = [x, *[-1] * 23]
    for gate in range(4):
        given[1 + gate] = held(f"w{gate}", (cells, inputs), np.int8, 127, 0.01)
        given[5 + gate] = held(f"r{gate}", (cells, cells), np.int8, 127, 0.008)
        given[12 + gate] = held(f"b{gate}", (cells,), np.int32, 3000, 0.02 * 0.01)
    size = (batch, cells)
    given[18] = writer.tensor("h", size, "int8", scale=1 / 128, variable=True)
    given[19] = writer.tensor("c", size, "int16", scale=2.0**-12, variable=True)
    between = [writer.tensor(f"m{one}", (1,), "int16", scale=2.0**-12) for one in range(4)]
    between.append(writer.tensor("m4", (1,), "int8", scale=1 / 128))
    y = writer.tensor("y", (batch, steps, cells), "int8", scale=1 / 128)
    options = {"fused": 4, "clip": 0.0, "time_major": 0, "between": between}
    writer.operator("UNIDIRECTIONAL_SEQUENCE_LSTM", given, (y,), **options)
    return writer.write((x,), (y,)), (batch, steps, inputs)


def svdf_model(
    form: str = "float",
    rank: int = 1,
    fused: int = 1,
    zero: int = -128,
    *,
    value: bool = False,
) -> tuple[bytes, tuple[int, ...]]:
    """Return the file of an SVDF of 5 units with a memory of 4, and the shape of its input.

    Args:
        form: "float"; "hybrid", with weights in int8; or "int8".
        rank: features of each unit.
        fused: number of its activation.
        zero: point of its result, if that is in int8.
        value: whether its state is a constant.
    """
    random, writer = np.random.default_rng(4), Writer()
    batch, inputs, units, memory = 3, 7, 5, 4
    features, whole = units * max(rank, 1), form == "int8"

    def held(name: str, size: tuple[int, ...], dtype: type[np.integer], scale: float) -> int:
        edge = np.iinfo(dtype).max
        value = random.integers(-edge, edge + 1, size).astype(dtype)
        if form == "float" or (form == "hybrid" and dtype != np.int8):
            return writer.constant(name, (value * scale).astype(np.float32))
        return writer.constant(name, value, scale=scale)

    x = writer.tensor("x", (batch, inputs), "int8" if whole else "float32", **_unit(whole, 0.05, 3))
    first = held("features", (features, inputs), np.int8, 0.01)
    time = held("time", (features, memory), np.int16 if whole else np.int8, 2e-5 if whole else 0.01)
    wide = random.integers(-9000, 9000, units).astype(np.int32)
    bias = wide if whole else (wide * 1e-4).astype(np.float32)
    given = writer.constant("bias", bias, **({"scale": 4e-4 * 2e-5} if whole else {}))
    kind = "int16" if whole else "float32"
    size = (batch, memory * features)
    zeros = np.zeros(size, kind) if value else None
    unit = _unit(whole, 4e-4, 0)
    state = writer.tensor("state", size, kind, data=zeros, variable=not value, **unit)
    kind = "int8" if whole else "float32"
    y = writer.tensor("y", (batch, units), kind, **_unit(whole, 0.004, zero))
    writer.operator("SVDF", (x, first, time, given, state), (y,), rank=rank, fused=fused)
    return writer.write((x,), (y,)), (batch, inputs)


def _unit(whole: bool, scale: float, zero: int) -> dict[str, Any]:
    return {"scale": scale, "zero": zero} if whole else {}
