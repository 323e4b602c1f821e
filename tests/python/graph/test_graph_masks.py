# SPDX-License-Identifier: Apache-2.0
"""Attention with a mask that is made at run time: on the chip where it can be added to scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from golden.graph import run
from npu.graph.build import Builder
from npu.graph.evaluate import evaluate
from npu.graph.form import Array, Element, Graph, TensorType
from npu.planner.build_plan import Built, CompileOptions, build_plan
from tessera.golden_chip import run_on_golden

ROWS, DEPTH = 5, 16


def attention(
    *,
    heads: int = 4,
    groups: int = 2,
    keys: int = 32,
    mask: tuple[int, ...] = (ROWS, 32),
    element: Element = Element.F32,
    **flags: Any,  # noqa: ANN401
) -> Graph:
    """Return attention of inputs q, k, v and mask."""
    build = Builder("masked")
    q = build.input("q", TensorType((1, heads, ROWS, DEPTH)))
    k, v = (build.input(name, TensorType((1, groups, keys, DEPTH))) for name in "kv")
    given = build.input("mask", TensorType(mask, element))
    plain = {"scale": 0.25, "causal": False, "offset": 0, "window": 0, "softcap": 0.0}
    y = build.add("attention", [q, k, v, given], output="y", **{**plain, **flags})
    return build.finish([y])


def samples(graph: Graph, count: int, seed: int) -> dict[str, Array]:
    """Return normal numbers, and masks that hide a third and prefer others."""
    random = np.random.default_rng(seed)
    found: dict[str, Array] = {
        name: random.normal(0, 1, (count, *graph.type(name).shape)).astype(np.float32)
        for name in "qkv"
    }
    shape = (count, *graph.type("mask").shape)
    hidden = random.random(shape) < 1 / 3
    found["mask"] = np.where(hidden, -1e9, random.normal(0, 1, shape)).astype(np.float32)
    return found


def placed(built: Built) -> bool:
    """Say whether the chip has the attention."""
    return any(one.kind == "attention" and one.on_chip for one in built.plan.graph.operations)


@pytest.mark.parametrize(
    "form", [{}, {"groups": 4, "mask": (1, 1, ROWS, 32)}, {"heads": 3, "groups": 1}], ids=str
)
def test_a_mask_of_the_run_is_added_on_the_chip(form: dict[str, Any]) -> None:
    """Programs equal golden.graph, and both are near the real numbers; the mask matters."""
    graph = attention(**form)
    built = build_plan(graph, CompileOptions(calibrate=samples(graph, 16, 1)))
    assert placed(built)
    inputs = {name: data[0] for name, data in samples(graph, 1, 2).items()}
    found = run_on_golden(built.plan, inputs).outputs["y"]
    np.testing.assert_array_equal(found, run(built.passes["fuse"], inputs)["y"])
    wanted = evaluate(graph, inputs)["y"]
    assert np.abs(found - wanted).max() < 0.04 * np.abs(wanted).max()
    other = {**inputs, "mask": np.zeros_like(inputs["mask"])}
    assert np.abs(run_on_golden(built.plan, other).outputs["y"] - found).max() > 0.1


@pytest.mark.parametrize(
    "form",
    [
        {"keys": 24, "mask": (ROWS, 24)},
        {"mask": (1, 4, ROWS, 32)},
        {"mask": (1, 32)},
        {"causal": True, "offset": 3},
    ],
    ids=str,
)
def test_another_mask_of_the_run_leaves_attention_to_the_host(form: dict[str, Any]) -> None:
    """With the reason, and the right values."""
    graph = attention(**form)
    built = build_plan(graph, CompileOptions(calibrate=samples(graph, 4, 1)))
    (one,) = (one for one in built.plan.graph.operations if one.kind == "attention")
    assert one.place is not None
    assert one.place.reason.startswith("its mask is not constant, and no rows that")
    inputs = {name: data[0] for name, data in samples(graph, 1, 2).items()}
    found = run_on_golden(built.plan, inputs).outputs["y"]
    np.testing.assert_allclose(found, evaluate(graph, inputs)["y"], rtol=0, atol=1e-5)
