# SPDX-License-Identifier: Apache-2.0
"""The networks that the ONNX suite brings without weights, with random ones and quantised."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from npu.graph.form import Array, Graph
from npu.graph.importers import read
from npu.graph.prepare import prepare

LIGHT = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)
"""Their names."""


def light_model(name: str) -> Any:  # noqa: ANN401
    """Return the ONNX model of a light network; its weights are constants."""
    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    return onnx.load(folder / f"light_{name}.onnx")


def with_random_weights(model: Any, seed: int) -> Any:  # noqa: ANN401
    """Return a light model with normal weights whose activations neither vanish nor explode.

    Filters and matrices have the variance 2 / inputs; scales of batch norms are 1, variances 1,
    means and shifts small.
    """
    random = np.random.default_rng(seed)
    filled = {}
    for node in list(model.graph.node):
        if node.op_type == "ConstantOfShape":
            shape = numpy_helper.to_array(
                next(one for one in model.graph.initializer if one.name == node.input[0])
            )
            filled[node.output[0]] = tuple(int(n) for n in shape)
            model.graph.node.remove(node)
    roles = _roles(model.graph.node)
    for name, shape in filled.items():
        value = _values(roles.get(name, ""), shape, random).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(value, name))
        # Files of that age name their weights among the inputs too.
        kind = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
        model.graph.input.append(kind)
    return model


def _roles(nodes: Any) -> dict[str, str]:  # noqa: ANN401
    """Return what each parameter is for: the operator that takes it and its place there."""
    return {
        name: f"{node.op_type}.{place}" for node in nodes for place, name in enumerate(node.input)
    }


def _values(role: str, shape: tuple[int, ...], random: np.random.Generator) -> Array:
    if role in ("BatchNormalization.1", "BatchNormalization.4"):
        return np.ones(shape)
    if len(shape) < 2:
        return random.normal(0, 0.05, shape)
    inputs = int(np.prod(shape[1:]))
    values: Array = random.normal(0, np.sqrt(2 / inputs), shape)
    return values


@cache
def light_network(name: str, seed: int = 1) -> Graph:
    """Return a light network with random weights, calibrated on one random image and fused."""
    model = with_random_weights(light_model(name), seed)
    return prepare(read(model), samples="random:1")
