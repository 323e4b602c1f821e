# SPDX-License-Identifier: Apache-2.0
"""A network for tests of what users see: two segments with an operation of the host between."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from npu.graph.form import Array
from npu.planner.build_plan import Built, CompileOptions, build_plan
from tests.python.graph.graph_networks import convolutional, convolutional_onnx


@cache
def model() -> Any:  # noqa: ANN401
    """Return the model: convolutions, pools and a dense layer."""
    return convolutional_onnx(convolutional(3), folded=False)


def samples(count: int, seed: int = 1) -> dict[str, Array]:
    """Return inputs of so many runs, first axis."""
    random = np.random.default_rng(seed)
    return {"x": random.standard_normal((count, 1, 1, 28, 28)).astype(np.float32)}


def one_input(seed: int = 2) -> dict[str, Array]:
    """Return the inputs of a run."""
    return {name: data[0] for name, data in samples(1, seed).items()}


@cache
def built() -> Built:
    """Return the network with its second convolution on the host."""
    return build_plan(model(), CompileOptions(calibrate=samples(16), host=["c2"]))
