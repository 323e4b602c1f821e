# SPDX-License-Identifier: Apache-2.0
"""Attention whose mask is made at run time, as PyTorch's exporters write it in ONNX."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from golden.graph import run as golden_run
from npu.graph.evaluate import evaluate
from npu.graph.importers import read
from npu.graph.importers.onnx_run import runner
from npu.graph.passes.canonical.canonicalise import canonicalise
from npu.planner.build_plan import CompileOptions, build_plan
from tessera.session import Session

HEADS, DEPTH, WIDTH = 2, 16, 32
LEAST = float(np.finfo(np.float32).min)


def attention(
    *,
    keys: int = 16,
    guard: bool = True,
    hidden: float = -np.inf,
    after: bool = False,
    by_head: bool = False,
    twice: bool = False,
) -> ModelProto:
    """Return self-attention of x (1, keys, WIDTH) with a padding mask (1, keys) of booleans.

    Args:
        keys: places.
        guard: 0 where a probability is NaN.
        hidden: what is added to a score that does not count.
        after: scores are scaled behind the mask, which is another network.
        by_head: each head has a mask of its own.
        twice: the probabilities are a result, too.
    """
    random = np.random.default_rng(4)
    constants = {
        **{
            f"w{name}": random.standard_normal((WIDTH, WIDTH)).astype(np.float32) / 6
            for name in "qkv"
        },
        "split": np.array([1, keys, HEADS, DEPTH]),
        "joined": np.array([1, keys, WIDTH]),
        "square": np.array([1, HEADS if by_head else 1, keys, keys]),
        "row": np.array([1, 1, 1, keys]),
        "scale": np.float32(DEPTH**-0.5),
        "shown": np.float32(0),
        "hidden": np.float32(hidden),
    }
    nodes = []

    def add(kind: str, inputs: str, output: str, **attributes: object) -> None:
        nodes.append(helper.make_node(kind, inputs.split(), [output], **attributes))

    for name in "qkv":
        add("MatMul", f"x w{name}", f"{name}.rows")
        add("Reshape", f"{name}.rows split", f"{name}.split")
        order = [0, 2, 3, 1] if name == "k" else [0, 2, 1, 3]
        add("Transpose", f"{name}.split", name, perm=order)
    add("Reshape", "there row", "seen.row")
    add("Expand", "seen.row square", "seen")
    add("Where", "seen shown hidden", "mask")
    add("MatMul", "q k", "products")
    if after:
        add("Add", "products mask", "masked")
        add("Mul", "masked scale", "scores")
    else:
        add("Mul", "products scale", "scaled")
        add("Add", "scaled mask", "scores")
    add("Softmax", "scores", "weights", axis=-1)
    if guard:
        add("IsNaN", "weights", "odd")
        add("Where", "odd shown weights", "plain")
    add("MatMul", f"{'plain' if guard else 'weights'} v", "heads")
    add("Transpose", "heads", "turned", perm=[0, 2, 1, 3])
    add("Reshape", "turned joined", "y")
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, keys, WIDTH])]
    if twice:
        size = [1, HEADS, keys, keys]
        outputs.append(helper.make_tensor_value_info("weights", TensorProto.FLOAT, size))
    graph = helper.make_graph(
        nodes,
        "masked",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, keys, WIDTH]),
            helper.make_tensor_value_info("there", TensorProto.BOOL, [1, keys]),
        ],
        outputs,
        [numpy_helper.from_array(np.asarray(data), name) for name, data in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def samples(keys: int = 16) -> dict[str, np.ndarray]:
    """Return rows, and which of them are there: the first ones."""
    random = np.random.default_rng(9)
    x = random.standard_normal((6, 1, keys, WIDTH)).astype(np.float32)
    lengths = random.integers(1, keys + 1, (6, 1, 1))
    return {"x": x, "there": np.arange(keys) < lengths}


def kinds(model: ModelProto) -> set[str]:
    """Return the kinds of operations of the canonical graph."""
    return {op.kind for op in canonicalise(read(model)).operations}


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("hidden", [-np.inf, LEAST])
def test_it_is_one_operation_and_one_segment(guard: bool, hidden: float) -> None:
    """Real numbers are onnxruntime's, integers those of golden and near."""
    model = attention(guard=guard, hidden=hidden)
    assert "attention" in kinds(model)
    assert kinds(model).isdisjoint(("softmax", "compare"))
    given = samples()
    built = build_plan(model, CompileOptions(calibrate=given))
    assert len(built.plan.segments) == 1
    assert all(op.on_chip for op in built.passes["fuse"].operations if op.kind == "attention")
    session = Session(built.plan)
    for number in range(6):
        inputs = {name: data[number] for name, data in given.items()}
        (wanted,) = runner(model)(inputs)
        real = evaluate(built.passes["canonical"], inputs)["y"]
        np.testing.assert_allclose(real, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
        found = session.run(inputs)["y"]
        np.testing.assert_array_equal(found, golden_run(built.passes["fuse"], inputs)["y"])
        assert np.abs(found - wanted).max() < 0.05 * np.abs(wanted).max()


@pytest.mark.parametrize(
    ("keys", "options"),
    [(16, {"after": True}), (16, {"by_head": True}), (12, {}), (16, {"twice": True})],
    ids=["after", "by head", "12 keys", "twice"],
)
def test_what_the_chip_could_not_add_stays_apart(keys: int, options: dict[str, bool]) -> None:
    """Then its products are the chip's at least; and the numbers stay what they were."""
    model = attention(keys=keys, **options)
    assert "attention" not in kinds(model)
    assert "softmax" in kinds(model)
    inputs = {name: data[0] for name, data in samples(keys).items()}
    wanted, *_ = runner(model)(inputs)
    found = evaluate(canonicalise(read(model)), inputs)["y"]
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-5 * np.abs(wanted).max())
