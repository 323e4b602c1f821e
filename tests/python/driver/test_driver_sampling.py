# SPDX-License-Identifier: Apache-2.0
"""The host's choice of tokens: formula, settings, ties, seeds and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from npu.driver.sampling import Sampler, SamplingError

Wrong = Any
"""A value of the wrong type, which the types of the package would refuse before it runs."""
LOGITS = np.random.default_rng(40).integers(-3000, 3000, 50).astype(np.int16)


@pytest.mark.parametrize("top_k", [0, 1, 7, 50, 99])
@pytest.mark.parametrize("temperature", [0.3, 1.0, 4.0])
def test_distribution(top_k: int, temperature: float) -> None:
    """Softmax of the real logits over the k largest ones."""
    tokens, chances = Sampler(1e-3, temperature, top_k).distribution(LOGITS)
    real = {token: float(np.exp(LOGITS[token] * 1e-3 / temperature)) for token in range(50)}
    kept = sorted(real, key=lambda token: -real[token])[: top_k or 50]
    assert tokens.tolist() == kept
    total = sum(real[token] for token in kept)
    np.testing.assert_allclose(chances, [real[token] / total for token in kept], rtol=1e-12)


@pytest.mark.parametrize("top_k", [0, 7])
@pytest.mark.parametrize("top_p", [0.0, 0.3, 0.9, 1.0])
@pytest.mark.parametrize("min_p", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("penalty", [1.0, 1.7, 0.5])
def test_all_settings(top_k: int, top_p: float, min_p: float, penalty: float) -> None:
    """Each token by itself, in Python's floats."""
    seen = [int(token) for token in np.argsort(-LOGITS)[[0, 3, 30, 3, 49]]]
    settings: dict[str, Any] = {"top_p": top_p, "min_p": min_p, "repetition_penalty": penalty}
    sampler = Sampler(1e-3, 0.7, top_k, **settings, seen=seen)
    real = [float(logit) * 1e-3 for logit in LOGITS]
    for token in set(seen):
        real[token] *= penalty if real[token] < 0 else 1 / penalty
    ranked = sorted(range(50), key=lambda token: -real[token])[: top_k or 50]
    shares = [math.exp(real[token] / 0.7) for token in ranked]
    total, passed, kept = sum(shares), 0.0, list[tuple[int, float]]()
    for token, share in zip(ranked, shares, strict=True):
        if not kept or ((top_p == 1 or passed < top_p * total) and share >= min_p * shares[0]):
            kept.append((token, share))
        passed += share
    tokens, chances = sampler.distribution(LOGITS)
    assert tokens.tolist() == [token for token, _ in kept]
    whole = sum(share for _, share in kept)
    np.testing.assert_allclose(chances, [share / whole for _, share in kept], rtol=1e-9)


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_was_chosen_is_penalised(temperature: float) -> None:
    """Tokens of the prompt and those chosen, each once however often it came."""
    logits = np.array([9, 10, 8, -10], np.int16)
    sampler = Sampler(1e6, temperature, repetition_penalty=1.5, seen=[1, 1])
    assert [sampler.choose(logits) for _ in range(5)] == [0, 2, 1, 1, 1]


def test_draws_follow_the_distribution() -> None:
    """20,000 draws: every share within 5 standard deviations."""
    sampler = Sampler(1e-3, 0.8, 6, seed=41)
    tokens, chances = sampler.distribution(LOGITS)
    count = 20_000
    drawn = np.bincount([sampler.choose(LOGITS) for _ in range(count)], minlength=50)
    assert drawn.sum() == drawn[tokens].sum() == count
    spread = np.sqrt(count * chances * (1 - chances))
    assert np.all(np.abs(drawn[tokens] - count * chances) <= 5 * spread)


def test_greedy_and_ties() -> None:
    """Temperature 0 and top-k 1 take the largest logit, the lowest token of equals."""
    logits = np.array([1, 9, 3, 9, 9], np.int16)
    for sampler in (Sampler(1e-3, 0.0), Sampler(1e-3, 0.0, 3), Sampler(1.0, 1.0, 1)):
        assert [sampler.choose(logits) for _ in range(5)] == [1] * 5
    assert Sampler(1.0, 1.0, 2).distribution(logits)[0].tolist() == [1, 3]


def test_extreme_logits() -> None:
    """The whole range of int16 at a large unit neither overflows nor divides by zero."""
    logits = np.array([-32768, 32767, 0], np.int16)
    tokens, chances = Sampler(1e3, 1e-3).distribution(logits)
    assert (tokens.tolist(), chances.tolist()) == ([1, 2, 0], [1.0, 0.0, 0.0])
    assert Sampler(1e3, 1e-3).choose(logits) == 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "settings",
    [{"temperature": math.ulp(0.0)}, {"temperature": 1.0, "cap": math.ulp(0.0)}],
)
def test_the_smallest_settings(settings: dict[str, Any]) -> None:
    """What becomes infinite is a limit, and no warning is printed."""
    logits = np.array([-32768, 5, 32767, 32766, 32767], np.int16)
    sampler = Sampler(0.01, **settings)
    tokens, chances = sampler.distribution(logits)
    assert np.isfinite(chances).all()
    assert "cap" in settings or chances.tolist() == [0.5, 0.5, 0, 0, 0]
    assert sampler.choose(logits) in tokens


def test_seeds() -> None:
    """Equal seeds draw equal tokens, other seeds others."""
    runs = []
    for seed in (1, 1, 2):
        sampler = Sampler(1e-3, 1.0, seed=seed)
        runs.append([sampler.choose(LOGITS) for _ in range(30)])
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unit": 0}, r"Sampler.unit: given 0, allowed finite and > 0"),
        ({"unit": float("nan")}, r"Sampler.unit: given nan, allowed finite and > 0"),
        ({"unit": "1"}, r"Sampler.unit: given '1'"),
        ({"temperature": -0.1}, r"Sampler.temperature: given -0.1, allowed finite and >= 0"),
        ({"temperature": float("inf")}, r"Sampler.temperature: given inf"),
        ({"temperature": True}, r"Sampler.temperature: given True"),
        ({"top_k": -1}, r"Sampler.top_k: given -1, allowed 0 and more"),
        ({"top_k": 2.0}, r"Sampler.top_k: given 2.0, allowed 0 and more"),
        ({"seed": -1}, r"Sampler.seed: given -1, allowed 0 and more"),
        ({"top_p": 1.01}, r"Sampler.top_p: given 1.01, allowed 0 to 1"),
        ({"top_p": "1"}, r"Sampler.top_p: given '1', allowed 0 to 1"),
        ({"min_p": -0.1}, r"Sampler.min_p: given -0.1, allowed 0 to 1"),
        ({"min_p": True}, r"Sampler.min_p: given True, allowed 0 to 1"),
        ({"repetition_penalty": 0}, r"repetition_penalty: given 0, allowed 0.01 to 100"),
        ({"repetition_penalty": float("inf")}, r"repetition_penalty: given inf, allowed 0.01 to"),
    ],
)
def test_settings_are_refused(settings: dict[str, Wrong], message: str) -> None:
    """Settings that mean nothing."""
    with pytest.raises(SamplingError, match=message):
        Sampler(**{"unit": 1e-3, **settings})


@pytest.mark.parametrize(
    ("logits", "message"),
    [
        (LOGITS[:0], r"given logits \(0,\), allowed shape \(V,\)"),
        (LOGITS[None], r"given logits \(1, 50\), allowed"),
        ([1, 2], r"given logits list, allowed"),
        (LOGITS.astype(np.float32), r"given logits float32, allowed int16"),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_logits_are_refused(logits: Wrong, temperature: float, message: str) -> None:
    """Logits of another shape or type."""
    with pytest.raises(SamplingError, match=message):
        Sampler(1e-3, temperature).choose(logits)
