# SPDX-License-Identifier: Apache-2.0
"""The choice of the next token from int16 logits on the host: greedy, or by temperature and top-k.

    p_i = exp(logit_i * unit / temperature) / sum over the top k, 0 elsewhere

unit is the real value of one logit, `scales["logits"]` of the model. Equal seeds and logits give
equal tokens.
"""

from __future__ import annotations

import math
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

    """

    unit: float
    temperature: float = 1.0
    top_k: int = 0
    seed: int = 0
    _random: np.random.Generator = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the settings."""
        for name, least in (("unit", math.ulp(0.0)), ("temperature", 0.0)):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and math.isfinite(value) and value >= least):
                rule = "> 0" if least else ">= 0"
                raise SamplingError(f"Sampler.{name}: given {value!r}, allowed finite and {rule}")
        for name in ("top_k", "seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise SamplingError(f"Sampler.{name}: given {value!r}, allowed 0 and more")
        self._random = np.random.default_rng(self.seed)

    def choose(self, logits: npt.NDArray[np.int16]) -> int:
        """Return the next token for the logits (V,) int16 of a position."""
        if not isinstance(logits, np.ndarray) or logits.ndim != 1 or not logits.size:
            given = getattr(logits, "shape", type(logits).__name__)
            raise SamplingError(f"Sampler.choose: given logits {given}, allowed shape (V,)")
        if logits.dtype != np.int16:
            raise SamplingError(f"Sampler.choose: given logits {logits.dtype}, allowed int16")
        if self.temperature == 0:
            return int(logits.argmax())
        tokens, chances = self.distribution(logits)
        edges = np.cumsum(chances)
        drawn = np.searchsorted(edges, self._random.random() * edges[-1], side="right")
        return int(tokens[min(int(drawn), tokens.size - 1)])

    def distribution(
        self, logits: npt.NDArray[np.int16]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Return the tokens that can be drawn, most likely first, and their probabilities.

        The temperature must not be 0.
        """
        order = np.argsort(-logits.astype(np.int64), kind="stable")
        tokens = order[: self.top_k or None].astype(np.int64)
        kept = logits[tokens].astype(np.float64)
        powers = np.exp((kept - kept[0]) * self.unit / self.temperature)
        return tokens, powers / powers.sum()
