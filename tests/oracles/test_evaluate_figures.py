# SPDX-License-Identifier: Apache-2.0
"""The figures of `npu evaluate` against lm-eval's own code (the optional group `metrics`)."""

from __future__ import annotations

import math
import re
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tb.models.evaluate import Evaluation
from tests.needs import needs
from weights.loss import Loss

TEXTS = (
    "Some words, and a line\nof  two blanks.",
    "La forêt était là, l'été aussi: naïveté.",
    "文字 と 言葉 also here",
)
"""Of letters that take one to three bytes."""


@pytest.fixture(scope="module")
def metrics() -> Any:  # noqa: ANN401
    """Return lm-eval's module; it asks for a package that scores translations."""
    needs("metrics")
    sys.modules.setdefault("sacrebleu", ModuleType("sacrebleu"))
    from lm_eval.api import metrics as found

    return found


@pytest.mark.parametrize("seed", range(8))
def test_figures_of_a_text(metrics: Any, seed: int) -> None:  # noqa: ANN401
    """Documents of some likelihood each, weighted by their words and by their bytes."""
    random = np.random.default_rng(seed)
    likelihoods = [-float(one) for one in random.uniform(5, 80, len(TEXTS))]
    words = [len(re.split(r"\s+", text)) for text in TEXTS]
    sizes = [len(text.encode()) for text in TEXTS]
    by_word = [*zip(likelihoods, words, strict=True)]
    by_byte = [*zip(likelihoods, sizes, strict=True)]
    bits = metrics.bits_per_byte(by_byte)
    loss = Loss(17, sum(sizes), bits, bits, 8.0, 1.0)
    found = Evaluation(loss, sum(words), 1, ()).figures(bits)
    assert found["byte_perplexity"] == pytest.approx(metrics.weighted_perplexity(by_byte))
    assert found["word_perplexity"] == pytest.approx(metrics.weighted_perplexity(by_word))
    assert found["bits_per_byte"] == pytest.approx(math.log2(found["byte_perplexity"]))
    mean = sum(likelihoods) / loss.tokens
    assert found["token_perplexity"] == pytest.approx(metrics.perplexity([mean]))
