# SPDX-License-Identifier: Apache-2.0
"""Runs single-operation cases of the ONNX suite through import, passes and the integer meaning.

    python tests/python/importers/graph_node_cases.py [name part] ...

prints the error of each case of the chip, worst last.
"""

from __future__ import annotations

import functools
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx.backend.test.loader import load_model_tests

from golden.graph import run
from npu.graph.form import Array, Graph
from npu.graph.importers import read
from npu.graph.prepare import prepare
from tessera.onnx_parameters import ACTIVATIONS

INTEGER = ("QLinearMatMul", "QLinearConv", "MatMulInteger", "ConvInteger")
BORDER = ("QuantizeLinear", "DequantizeLinear")
FLOAT = (
    *("Attention", "LayerNormalization", "RMSNormalization", "AveragePool", "MaxPool", "Gemm"),
    *("Clip", "RotaryEmbedding", "MatMul", "Conv", "Softmax", "Add", "Sub", "Mul", "Gelu", "Elu"),
    *("Selu", "LeakyRelu", "HardSigmoid", "ThresholdedRelu", "BatchNormalization"),
    *("GlobalAveragePool", "GlobalMaxPool", "Sigmoid", "Tanh", "Softplus", "Softsign", "SwiGLU"),
    *("Neg", "Abs", "Celu", "Erf", "HardSwish", "Mish", "Relu", "Swish"),
)


@dataclass(frozen=True)
class NodeResult:
    """What a case gave.

    Attributes:
        name: of the case.
        operator: of ONNX.
        error: the largest error over the largest magnitude of the reference.
        steps: the largest difference of integers.
        on_chip: the kinds that the chip executed.
        outputs, references: by position.
    """

    name: str
    operator: str
    error: float
    steps: float
    on_chip: tuple[str, ...]
    outputs: tuple[Array, ...]
    references: tuple[Array, ...]


@functools.cache
def cases() -> Mapping[str, Any]:
    """Return all node cases of one operation of the lists above, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = load_model_tests(kind="node")
    wanted = {*INTEGER, *BORDER, *FLOAT}
    return {
        case.name: case
        for case in found
        if len(case.model.graph.node) == 1 and case.model.graph.node[0].op_type in wanted
    }


def chosen(*parts: str) -> Iterator[str]:
    """Yield the names of cases that contain one of the parts."""
    for name in cases():
        if not parts or any(part in name for part in parts):
            yield name


def prepared(name: str) -> tuple[Graph, dict[str, Array], list[Array]]:
    """Return the fused graph of a case, its inputs and the references."""
    case = cases()[name]
    model = case.model
    node = model.graph.node[0]
    inputs, references = case.data_sets[0]
    given = {
        value.name: np.asarray(data) for value, data in zip(model.graph.input, inputs, strict=True)
    }
    active = [
        node.input[index]
        for index in ACTIVATIONS.get(node.op_type, range(len(node.input)))
        if index < len(node.input)
    ]
    samples = {key: value for key, value in given.items() if key in active}
    constants = {key: value for key, value in given.items() if key not in active}
    graph = read(model, constants=constants)
    floats = any(np.asarray(one).dtype.kind == "f" for one in samples.values())
    stacked = {key: value[None] for key, value in samples.items()}
    quantised = node.op_type in (*INTEGER, *BORDER) or not floats
    return prepare(graph, samples=None if quantised else stacked), samples, list(references)


def run_case(name: str, evaluate: Callable[..., Mapping[str, Array]]) -> NodeResult:
    """Return what a case gives in the integer meaning of its fused graph."""
    graph, inputs, references = prepared(name)
    found = evaluate(graph, inputs)
    outputs = [found[one] for one in graph.outputs]
    error = steps = 0.0
    for one, reference in zip(outputs, references, strict=False):
        exact = np.asarray(reference)
        if one.shape != exact.shape or one.dtype != exact.dtype:
            raise ValueError(
                f"{name}: {one.dtype}{one.shape}, reference {exact.dtype}{exact.shape}"
            )
        with np.errstate(all="ignore"):
            apart = np.abs(one.astype(np.float64) - exact.astype(np.float64))
        apart = np.where(np.isnan(apart), np.inf, apart)
        largest = float(np.abs(exact.astype(np.float64)).max(initial=0.0)) or 1.0
        error, steps = max(error, float(apart.max()) / largest), max(steps, float(apart.max()))
    kinds = tuple(one.kind for one in graph.operations if one.on_chip)
    operator = cases()[name].model.graph.node[0].op_type
    return NodeResult(name, operator, error, steps, kinds, tuple(outputs), tuple(references))


def main(parts: list[str]) -> None:
    """Print a line per case."""
    lines = []
    for name in chosen(*parts):
        try:
            one = run_case(name, run)
            lines.append((one.error, f"{one.error:9.4%} {one.operator:20} {name}: {one.on_chip}"))
        except Exception as error:
            lines.append((1e9, f"   FAILED {name}: {type(error).__name__}: {error}"))
    for _, line in sorted(lines):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
