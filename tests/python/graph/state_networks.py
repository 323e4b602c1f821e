# SPDX-License-Identifier: Apache-2.0
"""Networks of ONNX with an LSTM whose hidden state and cells are inputs and outputs."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from npu.graph.form import Array
from npu.planner.build_plan import Built, CompileOptions, build_plan

INPUTS, CELLS = 12, 16
Part: TypeAlias = tuple[str, list[str], str | list[str], dict[str, Any]]
"""An operator: its kind, what it takes and makes, its attributes."""
PAIRS = {"h": "h_out", "c": "c_out"}


def samples(count: int, seed: int = 21) -> Array:
    """Return a sound that rises and falls, a frame for each run."""
    random = np.random.default_rng(seed)
    swell = np.sin(np.arange(count) / 9)[:, None, None]
    return (swell + 0.5 * random.standard_normal((count, 1, INPUTS))).astype(np.float32)


@cache
def cell(*wide: str) -> Built:
    """Return an LSTM of operations of the chip."""
    given = {"x": samples(64)}
    return build_plan(lstm_cell(), CompileOptions(calibrate=given, state=PAIRS, wide=wide))


def lstm_cell() -> Any:  # noqa: ANN401
    """Return one step of an LSTM in operations of the chip, and a product behind it."""
    w, r, bias, last = _weights()
    parts: list[Part] = [
        ("MatMul", ["x", "w"], "xw", {}),
        ("MatMul", ["h", "r"], "hr", {}),
        ("Add", ["xw", "hr"], "sum", {}),
        ("Add", ["sum", "bias"], "gates", {}),
    ]
    for number, gate in enumerate("iofg"):
        function = "Tanh" if gate == "g" else "Sigmoid"
        bounds = [f"{gate}.from", f"{gate}.to", "axis"]
        parts.append(("Slice", ["gates", *bounds], f"{gate}.gate", {}))
        parts.append((function, [f"{gate}.gate"], gate, {}))
        last[f"{gate}.from"] = np.array([CELLS * number], np.int64)
        last[f"{gate}.to"] = np.array([CELLS * (number + 1)], np.int64)
    parts += [
        ("Mul", ["f", "c"], "kept", {}),
        ("Mul", ["i", "g"], "new", {}),
        ("Add", ["kept", "new"], "c_out", {}),
        ("Tanh", ["c_out"], "squashed", {}),
        ("Mul", ["o", "squashed"], "h_out", {}),
        ("MatMul", ["h_out", "head"], "y", {}),
    ]
    constants = {"w": w, "r": r, "bias": bias, "axis": np.array([1], np.int64), **last}
    return _model(parts, constants, (1, INPUTS), (1, CELLS), (1, 4))


def lstm_operator() -> Any:  # noqa: ANN401
    """Return an operator LSTM of one step, and a product behind it."""
    w, r, bias, last = _weights()
    given = ["x", "w", "r", "bias", "", "h", "c"]
    parts: list[Part] = [
        ("LSTM", given, ["ys", "h_out", "c_out"], {"hidden_size": CELLS}),
        ("Reshape", ["ys", "flat"], "row", {}),
        ("MatMul", ["row", "head"], "y", {}),
    ]
    constants = {
        "w": w.T[None],
        "r": r.T[None],
        "bias": np.concatenate([bias, np.zeros_like(bias)])[None],
        "flat": np.array([1, CELLS], np.int64),
        **last,
    }
    return _model(parts, constants, (1, 1, INPUTS), (1, 1, CELLS), (1, 4))


def _weights() -> tuple[Array, Array, Array, dict[str, Array]]:
    random = np.random.default_rng(20)

    def drawn(*shape: int) -> Array:
        made: Array = random.standard_normal(shape) / np.sqrt(shape[0])
        return made.astype(np.float32)

    w, r = drawn(INPUTS, 4 * CELLS), drawn(CELLS, 4 * CELLS)
    return w, r, 0.1 * drawn(4 * CELLS), {"head": drawn(CELLS, 4)}


def _model(
    parts: list[Part],
    constants: dict[str, Array],
    x: tuple[int, ...],
    state: tuple[int, ...],
    y: tuple[int, ...],
) -> Any:  # noqa: ANN401
    def value(name: str, shape: tuple[int, ...]) -> Any:  # noqa: ANN401
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    nodes = [
        helper.make_node(kind, given, made if isinstance(made, list) else [made], **more)
        for kind, given, made, more in parts
    ]
    return helper.make_model(
        helper.make_graph(
            nodes,
            "lstm",
            [value("x", x), value("h", state), value("c", state)],
            [value("y", y), value("h_out", state), value("c_out", state)],
            [numpy_helper.from_array(data, name) for name, data in constants.items()],
        ),
        opset_imports=[helper.make_opsetid("", 21)],
    )
