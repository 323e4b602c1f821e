# SPDX-License-Identifier: Apache-2.0
"""A form of an operator of ONNX, and the values that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper

from npu.graph.form import Array


@dataclass(frozen=True)
class OperatorForm:
    """An operator with inputs and attributes.

    Attributes:
        model: of one node.
        values: by name of input.
    """

    model: Any
    values: dict[str, Array]

    @property
    def node(self) -> Any:  # noqa: ANN401
        """The node."""
        return self.model.graph.node[0]

    def __str__(self) -> str:
        """Return operator, version and attributes."""
        said = [f"{one.name}={helper.get_attribute_value(one)}" for one in self.node.attribute]
        given = "".join("x" if name else "-" for name in self.node.input)
        version = self.model.opset_import[0].version
        return f"{self.node.op_type}-{version} {given} {' '.join(said)}".strip()


@dataclass(frozen=True)
class OperatorGrid:
    """What an operator is tried with.

    Attributes:
        operator: of ONNX.
        inputs: values of its inputs, None for one that is not given; or lists of such.
        base: attributes that all forms have.
        tried: attributes, with values of which each form has one; None leaves it out.
        results: how many it has.
        versions: of the operator set.
    """

    operator: str
    inputs: Sequence[Any]
    base: Mapping[str, Any] = field(default_factory=dict)
    tried: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    results: int = 1
    versions: Sequence[int] = (21,)


def real(*shape: int, seed: int = 1, scale: float = 1.0) -> Array:
    """Return normal numbers."""
    drawn = np.random.default_rng([seed, *shape]).standard_normal(shape) * scale
    return drawn.astype(np.float32)


def positive(*shape: int) -> Array:
    """Return positive numbers."""
    return np.abs(real(*shape)) + np.float32(0.1)


def whole(*values: int) -> Array:
    """Return a list of int64."""
    return np.array(values, np.int64)


def form(
    operator: str,
    inputs: Sequence[Array | None],
    attributes: Mapping[str, Any],
    version: int = 21,
    results: int = 1,
    domain: str = "",
) -> OperatorForm:
    """Return a form: a model with one node, whose results are y0, y1, ..."""
    names = [f"x{index}" if value is not None else "" for index, value in enumerate(inputs)]
    while names and not names[-1]:
        names.pop()
    values = {name: v for name, v in zip(names, inputs, strict=False) if name and v is not None}
    outputs = [f"y{index}" for index in range(results)]
    node = helper.make_node(operator, names, outputs, "it", domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "form",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
            )
            for name, value in values.items()
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    sets = [helper.make_opsetid("", version)]
    if domain:
        sets.append(helper.make_opsetid(domain, 1))
    model = helper.make_model(graph, opset_imports=sets, ir_version=10)
    inferred = onnx.shape_inference.infer_shapes(model).graph.output
    for one, known in zip(graph.output, inferred, strict=True):
        if known.type.tensor_type.HasField("shape"):
            one.CopyFrom(known)
        else:
            kind = known.type.tensor_type.elem_type or onnx.TensorProto.FLOAT
            one.CopyFrom(helper.make_tensor_value_info(one.name, kind, ()))
    return OperatorForm(helper.make_model(graph, opset_imports=sets, ir_version=10), values)
