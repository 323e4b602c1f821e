# SPDX-License-Identifier: Apache-2.0
"""Rotations of queries and keys by their positions: the frequencies of every kind that is known.

Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding" (2021); kinds of scaling
as transformers computes them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Frequencies = npt.NDArray[np.float64]
KINDS: dict[str, tuple[str, ...]] = {
    "default": (),
    "linear": ("factor",),
    "dynamic": ("factor",),
    "llama3": (
        *("factor", "low_freq_factor", "high_freq_factor"),
        "original_max_position_embeddings",
    ),
    "yarn": (
        *("factor", "original_max_position_embeddings", "attention_factor"),
        *("beta_fast", "beta_slow", "truncate"),
    ),
    "longrope": (
        *("short_factor", "long_factor", "original_max_position_embeddings"),
        "attention_factor",
    ),
}
"""Kinds of scaling, and the options of each."""


@dataclass(frozen=True, slots=True)
class Rotation:
    """A table of rotations: position p turns pair t of a head by p times a frequency.

    Attributes:
        theta: the base; unscaled, pair t has the frequency theta^(-2 t / lanes).
        lanes: of a head that are turned, an even number, 0 for none; the pairs behind them stand.
        kind: of KINDS.
        options: of the kind, in its order.
    """

    theta: float
    lanes: int
    kind: str = "default"
    options: tuple[Any, ...] = ()

    @property
    def said(self) -> dict[str, Any]:
        """The options by their names."""
        return dict(zip(KINDS[self.kind], self.options, strict=True))

    @property
    def attention_factor(self) -> float:
        """What cosine and sine are multiplied by in q and in k."""
        return float(self.said.get("attention_factor", 1.0))

    def text(self, head_dim: int) -> str:
        """Say in a few words what it is, of heads of a size."""
        scaled = "" if self.kind == "default" else f", {self.kind}"
        part = "" if self.lanes == head_dim else f", {self.lanes} of {head_dim} lanes"
        return f"base {self.theta:g}{scaled}{part}" if self.lanes else "none"

    def frequencies(self, context: int) -> Frequencies:
        """Return (lanes / 2,) angles from a position to the next, for a context of a length.

        "longrope" has long factors for contexts beyond the original one, whatever the text's
        length; "dynamic" is unscaled, since no context is beyond its original one.
        """
        pairs = np.arange(self.lanes // 2, dtype=np.float64)
        plain: Frequencies = self.theta ** (-2.0 * pairs / max(self.lanes, 1))
        said = self.said
        if self.kind == "linear":
            plain = plain / said["factor"]
        if self.kind == "llama3":
            return _llama3(plain, **said)
        if self.kind == "yarn":
            return self._yarn(plain)
        if self.kind == "longrope":
            long = context > said["original_max_position_embeddings"]
            plain = plain / np.asarray(said["long_factor" if long else "short_factor"])
        return plain

    def _yarn(self, plain: Frequencies) -> Frequencies:
        """Peng et al., "YaRN: Efficient Context Window Extension of Large Language Models"."""
        said, lanes = self.said, self.lanes
        turns = said["original_max_position_embeddings"] / (2 * math.pi)
        low, high = (
            lanes * math.log(turns / said[name]) / (2 * math.log(self.theta))
            for name in ("beta_fast", "beta_slow")
        )
        if said["truncate"]:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, lanes - 1)
        width = high - low or 0.001
        scaled = np.clip((np.arange(lanes // 2) - low) / width, 0, 1)
        share: Frequencies = scaled / said["factor"] + 1 - scaled
        return plain * share

    def order(self, head_dim: int) -> npt.NDArray[np.int64]:
        """Return which lane of Hugging Face each lane of a head is.

        There lanes t and t + lanes / 2 are a pair, and what is not turned follows; here lanes t and
        t + head_dim / 2 are, whether they are turned or not.
        """
        turned, others = np.arange(self.lanes), np.arange(self.lanes, head_dim)
        halves = zip(np.split(turned, 2), np.split(others, 2), strict=True)
        return np.concatenate([np.concatenate(half) for half in halves])

    def turned(self, head_dim: int) -> npt.NDArray[np.bool_]:
        """Return which lanes of a head are turned, in the order here."""
        return self.order(head_dim) < self.lanes


def _llama3(
    plain: Frequencies,
    factor: float,
    low_freq_factor: float,
    high_freq_factor: float,
    original_max_position_embeddings: int,
) -> Frequencies:
    """Grattafiori et al., "The Llama 3 Herd of Models" (2024)."""
    turns = original_max_position_embeddings * plain / (2 * math.pi)
    kept: Frequencies = (turns - low_freq_factor) / (high_freq_factor - low_freq_factor)
    kept = kept.clip(0, 1)
    return plain * (kept + (1 - kept) / factor)
