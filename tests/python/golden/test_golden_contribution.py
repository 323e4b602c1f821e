# SPDX-License-Identifier: Apache-2.0
"""The check of test data: good data pass, and each way of being worthless is found by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from golden import decoder
from golden.contribution import check_block, distinct, perturbed, saturated, stages
from tests.python.golden.golden_support import random_model, seeded
from weights.model import AnyLinear, Block, QuantizedModel


def stream(model: QuantizedModel, length: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int16]]:
    """Return the residual stream of random tokens."""
    return decoder.embed(model, seeded(701).integers(0, 256, length).tolist())


MODELS: list[dict[str, Any]] = [
    {"family": "gpt2"},
    {"family": "llama", "kv_heads": 2},
    {"family": "mistral", "kv_heads": 1},
    {"family": "mistral", "window": 1},
    {"family": "qwen2", "heads": 7, "kv_heads": 1, "head_dim": 32},
    {"family": "gpt_neox", "parallel": True},
    {"family": "llama", "head_norms": "head", "part_norms": True},
    {"family": "llama", "head_norms": "row", "pre_norms": False, "part_norms": True},
]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("length", [1, 2, 3, 16, 17, 128])
def test_good_data_pass(kind: dict[str, Any], length: int) -> None:
    """Nothing is found on a well-scaled model at any length."""
    model = random_model(700, **kind)
    for layer, x in enumerate(decoder.residuals(model, range(length))[:-1]):
        assert [str(finding) for finding in check_block(model, layer, x)] == []


def linear(layer: AnyLinear, **changes: object) -> AnyLinear:
    """Return a layer with other tensors."""
    return replace(layer, **changes)  # type: ignore[arg-type]


def dead_projection(block: Block) -> Block:
    """Return a block whose attention output quantises to nothing."""
    shift = np.full_like(block.proj.shift, 60)
    return replace(block, proj=linear(block.proj, shift=shift))


def saturated_feed_forward(block: Block) -> Block:
    """Return a block whose feed-forward inputs are cut at the limits of int8."""
    return replace(block, up=linear(block.up, shift=block.up.shift - 4))


def constant_table(block: Block) -> Block:
    """Return a block whose activation does not depend on its input."""
    return replace(block, table=np.full(256, 7, np.int8))


def flat_scores(block: Block) -> Block:
    """Return a block whose scores are all zero."""
    return replace(block, score_shift=60)


def dead_gate(block: Block) -> Block:
    """Return a block whose gate is zero."""
    assert block.gate is not None
    return replace(block, gate=linear(block.gate, shift=np.full_like(block.gate.shift, 60)))


def large_product(block: Block) -> Block:
    """Return a block whose product of gate and up is cut at the limits of int8."""
    return replace(block, product_shift=block.product_shift - 6)


@pytest.mark.parametrize(
    ("spoil", "tensor", "problem"),
    [
        (dead_gate, "gate", "1 distinct values, allowed at least 16"),
        (dead_gate, "silu", "1 distinct values, allowed at least 16"),
        (dead_gate, "act", "does not change when up is perturbed"),
        (large_product, "act", "saturated, allowed less than 2%"),
        (dead_projection, "proj", "1 distinct values, allowed at least 16"),
        (dead_projection, "proj", "does not change when ctx is perturbed"),
        (saturated_feed_forward, "up", "saturated, allowed less than 2%"),
        (constant_table, "act", "does not change when up is perturbed"),
        (constant_table, "act", "1 distinct values, allowed at least 16"),
        (flat_scores, "scores", "does not change when q is perturbed"),
        (flat_scores, "numer", "1 distinct values, allowed at least 16"),
    ],
)
def test_worthless_data_are_found(
    spoil: Callable[[Block], Block], tensor: str, problem: str
) -> None:
    """Each fault is named by tensor and problem."""
    family = "llama" if spoil in (dead_gate, large_product) else "gpt2"
    model = random_model(702, family, layers=1)
    spoiled = replace(model, blocks=(spoil(model.blocks[0]),))
    findings = check_block(spoiled, 0, stream(spoiled, 32))
    assert any(f.tensor == tensor and problem in f.problem for f in findings), findings


def test_an_unused_rotation_is_found() -> None:
    """A table of zeros leaves nothing of q and k."""
    model = random_model(702, "llama", layers=1)
    assert model.rope is not None
    spoiled = replace(model, rope=np.zeros_like(model.rope))
    found = {str(finding) for finding in check_block(spoiled, 0, stream(spoiled, 32))}
    for name in ("q_rope", "k_rope"):
        assert f"{name}: 1 distinct values, allowed at least 16" in found
        assert f"{name}: does not change when {name[0]} is perturbed" in found


def test_a_constant_input_is_found() -> None:
    """The residual stream itself is checked too."""
    model = random_model(703, layers=1)
    findings = check_block(model, 0, np.full((32, 64), 32767, np.int16))
    problems = [finding.problem for finding in findings if finding.tensor == "x"]
    assert len(problems) == 2


@pytest.mark.parametrize("kind", MODELS)
def test_stages_cover_every_tensor(kind: dict[str, Any]) -> None:
    """Every tensor of a trace has a stage, and every stage's inputs exist."""
    model = random_model(704, layers=1, **kind)
    names = [stage.output for stage in stages(model, 0)]
    trace = decoder.block(model, 0, stream(model, 4))
    assert names == list(trace.tensors())


def test_perturbation_moves_every_entry() -> None:
    """Also at the limits of the dtype and of given limits."""
    rng = seeded(705)
    for limits in (None, (-127, 127)):
        values = rng.choice(np.array([-127, 0, 127], np.int8), 500)
        moved = perturbed(values, rng, limits=limits)
        assert np.all(moved != values)
        assert limits is None or np.abs(moved.astype(int)).max() <= 127


def test_thresholds() -> None:
    """16 distinct values and 2 percent, counted exactly; little data are not judged."""
    assert distinct("t", np.arange(16), 32) == []
    assert len(distinct("t", np.arange(15), 32)) == 1
    assert distinct("t", np.arange(15), 31) == []
    values = np.zeros(100, np.int8)
    values[0] = 127
    assert saturated("t", values) == []
    values[1] = -128
    assert [f.problem for f in saturated("t", values)] == ["2.0% saturated, allowed less than 2%"]
