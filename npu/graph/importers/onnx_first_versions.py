# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX as its first operator sets had them, in the form of set 6 or 7.

What only allowed a result to overwrite an input is left out, attributes have the names and types
of later sets, and inputs that decide a shape stand where those have them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import onnx
from onnx import helper
from onnx.helper import get_attribute_value

from npu.graph.form import GraphError

Rewriting: TypeAlias = Callable[[onnx.NodeProto, Any], int]
"""Changes a node, given the graph so far; returns the operator set of its new form."""
_CONSUMED = "consumed_inputs"


def brought_forward(
    node: onnx.NodeProto,
    version: int,
    build: Any,  # noqa: ANN401
) -> tuple[onnx.NodeProto, int]:
    """Return a node and its operator set, both later ones where the first had another form.

    Raises:
        GraphError: what decides the new form is not constant.
    """
    rewriting = _rewriting(node, version)
    if rewriting is None:
        return node, version
    made = onnx.NodeProto()
    made.CopyFrom(node)
    return made, rewriting(made, build)


def _rewriting(node: onnx.NodeProto, version: int) -> Rewriting | None:
    first, rewriting = _FORMS.get(node.op_type, (0, None))
    if version < first:
        return rewriting
    if version < 6 and _CONSUMED in onnx.defs.get_schema(node.op_type, version).attributes:
        return _overwriting
    return None


def _taken(node: onnx.NodeProto, name: str) -> Any:  # noqa: ANN401
    """Take an attribute away; return its value, None if it is not given."""
    for index, one in enumerate(node.attribute):
        if one.name == name:
            value = get_attribute_value(one)
            del node.attribute[index]
            return value
    return None


def _say(node: onnx.NodeProto, name: str, value: Any) -> None:  # noqa: ANN401
    node.attribute.append(helper.make_attribute(name, value))


def _value(node: onnx.NodeProto, index: int, what: str, build: Any) -> Any:  # noqa: ANN401
    found = build.value(node.input[index])
    if found is None:
        raise GraphError(f"{what} {node.input[index]!r} is not constant")
    return found


def _overwriting(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    _taken(node, _CONSUMED)
    return 6


def _concat(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    axis = _taken(node, "axis")
    _say(node, "axis", 1 if axis is None else axis)
    return 4


def _cast(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    name = _taken(node, "to")
    name = name.decode() if isinstance(name, bytes) else str(name)
    known = {one.name for one in onnx.TensorProto.DataType.DESCRIPTOR.values}
    if name not in known:
        raise GraphError(f"type {name!r}, allowed names of types of ONNX")
    _say(node, "to", onnx.TensorProto.DataType.Value(name))
    return 6


def _pad(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    _say(node, "pads", _taken(node, "paddings"))
    return 2


def _split(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    if len(node.input) > 1:
        _say(node, "split", [int(one) for one in _value(node, 1, "split", build)])
        del node.input[1:]
    return 2


def _upsample(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    scales = [_taken(node, name) for name in ("height_scale", "width_scale")]
    mode = _taken(node, "mode")
    _say(node, "scales", [1.0, 1.0, *scales])
    _say(node, "mode", "linear" if mode == b"bilinear" else mode or "nearest")
    return 7


def _reshape(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    _taken(node, _CONSUMED)
    shape = np.array(_taken(node, "shape"), np.int64)
    node.input.append(build.constant(shape, f"{node.output[0]}.shape"))
    return 5


def _tile(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    times, axis = (int(_value(node, at, what, build)) for at, what in ((1, "tiles"), (2, "axis")))
    repeats = np.ones(len(build.shape(node.input[0])), np.int64)
    repeats[axis] = times
    node.input[1] = build.constant(repeats, f"{node.output[0]}.repeats")
    del node.input[2:]
    return 6


def _norm(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    power = _taken(node, "p")
    if power is not None and power != int(power):
        raise GraphError(f"p = {power}, allowed whole numbers")
    _say(node, "p", 2 if power is None else int(power))
    return 2


def _recurrent(node: onnx.NodeProto, build: Any) -> int:  # noqa: ANN401
    _taken(node, "output_sequence")
    return 7


_FORMS: dict[str, tuple[int, Rewriting]] = {
    "Concat": (4, _concat),
    "Cast": (6, _cast),
    "Pad": (2, _pad),
    "Split": (2, _split),
    "Reshape": (5, _reshape),
    "Upsample": (7, _upsample),
    "Tile": (6, _tile),
    "LpPool": (2, _norm),
    "GlobalLpPool": (2, _norm),
    **dict.fromkeys(("RNN", "GRU", "LSTM"), (7, _recurrent)),
}
"""By operator: before which set it has another form, and what brings it forward."""
