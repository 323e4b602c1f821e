# SPDX-License-Identifier: Apache-2.0
"""An encoder of text: dimensions, tensors, and what it computes in real numbers, written once.

Every place sees all others that are there, and each part of a block is added to what it has read
and normalised then. `encoder` calls the operations of `weights.decoder` in the order of the data
flow; `npu.graph.importers.encoder_checkpoint` draws a graph with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeVar

from weights.checkpoint import Checkpoint, CheckpointShape, check_tensors
from weights.decoder import Operations

T = TypeVar("T")
Pool = Literal["mean", "first"]
LINEARS = ("q", "k", "v", "o", "up", "down")
"""The products of a block; each has a bias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderShape(CheckpointShape):
    """The shape of an encoder.

    Attributes:
        types: rows of the table of token types, 0 for none.
        first: row of the table of positions that the first token has.
    """

    types: int = 0
    first: int = 0


@dataclass(frozen=True, slots=True)
class Pooling:
    """What becomes of the rows of a sentence.

    Attributes:
        pool: their mean, or that of the first token.
        unit: it is divided by its length.
        longest: tokens of a sentence, special ones included.
    """

    pool: Pool
    unit: bool
    longest: int


@dataclass(frozen=True, slots=True)
class TextForm:
    """What becomes of a sentence before it is tokens, as sentence-transformers does it.

    Attributes:
        lower: its letters become small.
        prompt: what is put before it.
    """

    lower: bool = False
    prompt: str = ""

    def of(self, text: str) -> str:
        """Return what the tokenizer gets; blanks at both ends are never a part of it."""
        found = (self.prompt + text).strip()
        return found.lower() if self.lower else found


@dataclass(frozen=True, slots=True, eq=False)
class EncoderCheckpoint(Checkpoint):
    """A float encoder.

    Attributes:
        shape: its dimensions.
        tensors: float32 arrays as `encoder_tensors` names them; matrices are (in, out).
        pooling: what becomes of its rows; None: they are the result.
        text: what becomes of a sentence before it is tokens.
    """

    shape: EncoderShape
    pooling: Pooling | None = None
    text: TextForm = TextForm()

    def __post_init__(self) -> None:
        """Check that the parts fit together."""
        check_tensors(self.source, self.shape.family, encoder_tensors(self.shape), self.tensors)

    @property
    def longest(self) -> int:
        """Tokens that a sentence may have."""
        return self.pooling.longest if self.pooling else self.shape.context


def encoder_tensors(shape: EncoderShape) -> dict[str, tuple[int, ...]]:
    """Return name and shape of every tensor of a model.

    "embed" (V, H), "positions" (first + C, H), "types" (types, H) if there are any; the norm of the
    embedding "norm0", and per block l "h.{l}." with the norms "norm1" behind attention and "norm2"
    behind the feed-forward and the layers "q", "k", "v", "o", "up", "down": ".weight" and ".bias".
    """
    hidden, ffn = shape.hidden, shape.ffn
    tensors: dict[str, tuple[int, ...]] = {
        "embed": (shape.vocab, hidden),
        "positions": (shape.first + shape.context, hidden),
    }
    if shape.types:
        tensors["types"] = (shape.types, hidden)
    sizes: dict[str, tuple[int, ...]] = dict.fromkeys(LINEARS, (hidden, hidden))
    sizes |= {"up": (hidden, ffn), "down": (ffn, hidden), "norm1": (hidden,), "norm2": (hidden,)}
    blocks = {f"h.{layer}.{name}": size for layer in range(shape.layers)
              for name, size in sizes.items()}  # fmt: skip
    for name, size in {"norm0": (hidden,), **blocks}.items():
        tensors |= {f"{name}.weight": size, f"{name}.bias": size[-1:]}
    return tensors


def encoder(do: Operations[T], shape: EncoderShape) -> T:
    """Return the rows of all places (B, T, H)."""
    x = do.norm("norm0", do.embedding())
    for layer in range(shape.layers):
        at = f"h.{layer}"
        rows = (do.linear(f"{at}.{name}", x) for name in "qkv")
        q, k, v = (
            do.heads(f"{at}.{name}", one, shape.heads)
            for name, one in zip("qkv", rows, strict=True)
        )
        mixed = do.linear(f"{at}.o", do.attend(f"{at}.ctx", q, k, v, layer))
        x = do.norm(f"{at}.norm1", do.add(f"{at}.attended", x, mixed))
        inner = do.activate(f"{at}.act", do.linear(f"{at}.up", x))
        down = do.linear(f"{at}.down", inner)
        x = do.norm(f"{at}.norm2", do.add(f"{at}.residual", x, down))
    return x
