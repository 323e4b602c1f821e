# SPDX-License-Identifier: Apache-2.0
"""What ONNX spells out with primitive operations becomes one operation again.

The cases are those of ONNX's own suite whose operators are expanded into their definitions.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest

from npu.graph.evaluate import evaluate
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.graph.verify import verify
from tests.needs import needs

needs("graphs")

import onnx
from onnx.backend.test.loader import load_model_tests

from npu.graph.importers import onnx_file

MOVES = {"reshape", "transpose", "identity"}
# What is left of each, moves aside.
CASES = {
    "celu": ("table",),
    "elu": ("table",),
    "gelu_default_1": ("table",),
    "gelu_tanh_2": ("table",),
    "hardsigmoid": ("table",),
    "hardswish": ("table",),
    "leakyrelu": ("table",),
    "mish": ("table",),
    "relu": ("table",),
    "selu": ("table",),
    "softplus": ("table",),
    "softsign": ("table",),
    "swish": ("table",),
    "thresholdedrelu": ("table",),
    "softmax_axis_1": ("softmax",),
    "softmax_large_number": ("softmax",),
    "attention_4d": ("attention",),
    "attention_4d_gqa": ("attention",),
    "attention_4d_causal": ("attention",),
    "attention_4d_softcap": ("attention",),
    "attention_4d_diff_heads_sizes_scaled": ("attention",),
    "attention_3d": ("attention",),
    "attention_3d_gqa_causal": ("attention",),
    "attention_local_window": ("attention",),
    "flexattention_gqa": ("attention",),
    "rms_normalization_3d_axis2_epsilon": ("rmsnorm", "mul"),
    "group_normalization_epsilon": ("layernorm", "mul", "add"),
}


@cache
def models() -> dict[str, Any]:
    """Return the expanded cases by name, the youngest version of each."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = {case.name: case for case in load_model_tests(kind="node")}
    return {
        name.removeprefix("test_").split("_expanded")[0]: case
        for name, case in sorted(found.items())
        if "_expanded" in name
    }


@pytest.mark.parametrize("name", CASES)
def test_an_expanded_operator_becomes_one_operation(name: str) -> None:
    """And gives what the suite wants."""
    case = models()[name]
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    for node in model.graph.node:
        # All of these are float32 on both sides.
        if node.op_type == "CastLike":
            node.op_type = "Identity"
            del node.input[1:]
    graph = canonicalise(onnx_file.read(model))
    verify(graph)
    kinds = tuple(one.kind for one in graph.operations if one.kind not in MOVES)
    assert kinds == CASES[name]
    inputs, outputs = case.data_sets[0]
    found = evaluate(graph, dict(zip(graph.inputs, inputs, strict=True)))
    for output, want in zip(graph.outputs, outputs, strict=True):
        np.testing.assert_allclose(found[output], want, rtol=1e-3, atol=1e-5)
