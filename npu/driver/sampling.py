# SPDX-License-Identifier: Apache-2.0
"""The choice of the next token from int16 logits on the host: greedy, or drawn.

    p_i = exp(logit_i * unit / temperature) / sum over what is kept, 0 elsewhere

unit is the real value of one logit, `scales["logits"]` of the model; with a cap c the real logit is
c tanh(logit_i * unit / c). What has come already is made less likely first; then the k likeliest
are kept, of these the likeliest that together have the share top_p, of these all that have at least
min_p of the likeliest one's share. That is the order of transformers. Equal seeds and logits give
equal tokens.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt


class SamplingError(ValueError):
    """A setting, or logits, that nothing can be drawn from."""


@dataclass(slots=True)
class Sampler:
    """Draws tokens one after the other.

    Attributes:
        unit: real value of one unit of the logits, > 0.
        temperature: > 0 draws; 0 takes the largest logit, the lowest token of equals.
        top_k: only the k largest logits can be drawn, lower tokens before higher ones of equals;
            0 = all.
        seed: of the sequence of random numbers, one per token that is drawn.
        top_p: share of the probability that the likeliest tokens must have together to be all that
            can be drawn, at least one of them; 1 = all.
        min_p: tokens less likely than this share of the likeliest one's probability cannot be
            drawn; 0 = all.
        repetition_penalty: positive logits of tokens that have come already are divided by it,
            negative ones multiplied; 1 = none.
        cap: what real logits stay below, 0 for none.
        seen: tokens that have come before the first one, those of the prompt.

    """

    unit: float
    temperature: float = 1.0
    top_k: int = 0
    seed: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    cap: float = 0.0
    seen: Sequence[int] = ()
    _come: set[int] = field(init=False, repr=False)
    _random: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the settings."""
        for name, least in (("unit", math.ulp(0.0)), ("temperature", 0.0), ("cap", 0.0)):
            value = getattr(self, name)
            if not (_is_number(value) and math.isfinite(value) and value >= least):
                rule = "> 0" if least else ">= 0"
                raise SamplingError(f"Sampler.{name}: given {value!r}, allowed finite and {rule}")
        for name, low, high in (
            ("top_p", 0, 1),
            ("min_p", 0, 1),
            ("repetition_penalty", 0.01, 100),  # what float64 surely holds
        ):
            value = getattr(self, name)
            if not (_is_number(value) and low <= value <= high):
                raise SamplingError(f"Sampler.{name}: given {value!r}, allowed {low} to {high}")
        for name in ("top_k", "seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise SamplingError(f"Sampler.{name}: given {value!r}, allowed 0 and more")
        self._come = set(self.seen)
        self._random = np.random.default_rng(self.seed)

    def choose(self, logits: npt.NDArray[np.int16]) -> int:
        """Return the next token for the logits (V,) int16 of a position."""
        if not isinstance(logits, np.ndarray) or logits.ndim != 1 or not logits.size:
            given = getattr(logits, "shape", type(logits).__name__)
            raise SamplingError(f"Sampler.choose: given logits {given}, allowed shape (V,)")
        if logits.dtype != np.int16:
            raise SamplingError(f"Sampler.choose: given logits {logits.dtype}, allowed int16")
        token = self._drawn(logits) if self.temperature else int(self._scores(logits).argmax())
        self._come.add(token)
        return token

    def _drawn(self, logits: npt.NDArray[np.int16]) -> int:
        tokens, chances = self.distribution(logits)
        edges = np.cumsum(chances)
        drawn = np.searchsorted(edges, self._random.random() * edges[-1], side="right")
        return int(tokens[min(int(drawn), tokens.size - 1)])

    def _scores(self, logits: npt.NDArray[np.int16]) -> npt.NDArray[np.float64]:
        """Return the logits (V,) with those of tokens that have come lowered."""
        scores = logits.astype(np.float64)
        if self.cap:
            with np.errstate(over="ignore"):  # infinity has the limit of what is large
                scores = np.tanh(scores * self.unit / self.cap) * (self.cap / self.unit)
        if self.repetition_penalty != 1:
            come = list(self._come)
            found, penalty = scores[come], self.repetition_penalty
            scores[come] = np.where(found > 0, found / penalty, found * penalty)
        return scores

    def distribution(
        self, logits: npt.NDArray[np.int16]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the tokens that can be drawn, most likely first, and their probabilities.

        The temperature must not be 0.
        """
        scores = self._scores(logits)
        tokens = np.argsort(-scores, kind="stable")[: self.top_k or None].astype(np.int64)
        with np.errstate(over="ignore"):  # infinitely far below the likeliest is a chance of 0
            powers = np.exp((scores[tokens] - scores[tokens[0]]) * self.unit / self.temperature)
        kept = powers >= self.min_p  # the likeliest one's power is 1
        if self.top_p < 1:
            before = np.cumsum(powers) - powers
            kept &= before < self.top_p * powers.sum()
        kept[0] = True
        return tokens[kept], powers[kept] / powers[kept].sum()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
