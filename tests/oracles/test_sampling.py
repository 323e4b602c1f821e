# SPDX-License-Identifier: Apache-2.0
"""What the host draws tokens from, against transformers' processors of logits.

Needs torch (the optional group `oracles`): pytest tests/oracles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from npu.driver.sampling import Sampler

UNIT = 2**-9


@pytest.mark.parametrize("seed", range(50))
def test_distribution(seed: int) -> None:
    """The same tokens with the same probabilities, whatever the settings are."""
    random = np.random.default_rng(seed)
    vocab = int(random.integers(2, 300))
    logits = random.choice(np.arange(-4000, 4000), vocab, replace=False).astype(np.int16)
    temperature, top_p, min_p = (float(x) for x in random.uniform([0.2, 0.05, 0], [3, 0.999, 0.3]))
    top_k, penalty = int(random.integers(1, vocab + 1)), float(random.uniform(0.6, 2))
    seen = random.integers(0, vocab, 9).tolist()
    processors = LogitsProcessorList(
        [
            RepetitionPenaltyLogitsProcessor(penalty),
            TemperatureLogitsWarper(temperature),
            TopKLogitsWarper(top_k),
            TopPLogitsWarper(top_p),
            MinPLogitsWarper(min_p),
        ]
    )
    real = torch.from_numpy(logits.astype(np.float64) * UNIT)[None]
    cap = float(random.choice([0, random.uniform(1, 30)]))
    real = torch.tanh(real / cap) * cap if cap else real  # as Gemma 2 does
    expected = processors(torch.tensor([seen]), real).softmax(-1)[0].numpy()
    settings: dict[str, Any] = {"top_p": top_p, "min_p": min_p, "repetition_penalty": penalty}
    settings["cap"] = cap
    tokens, chances = Sampler(UNIT, temperature, top_k, **settings, seen=seen).distribution(logits)
    found = np.zeros(vocab)
    found[tokens] = chances
    np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=f"seed {seed}")
