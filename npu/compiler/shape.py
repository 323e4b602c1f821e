# SPDX-License-Identifier: Apache-2.0
"""What programs depend on: the dimensions of a decoder, and its numbers that are not streamed."""

from dataclasses import asdict, dataclass
from typing import Any

from npu.compiler.errors import CompileError
from npu.isa.operands import ARRAY_DIMS, DYNAMIC, WORD, Limits, up
from weights.model import QuantizedModel

LONGEST = 16 * 2048
"""The largest cap of a dynamic dimension, in positions."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of a layer that stand in its instructions.

    Attributes:
        score_mult, score_shift: requantisation of the scores.
        product_mult, product_shift: requantisation of activation times `up`; 0 without a gate.

    """

    score_mult: int
    score_shift: int
    product_mult: int = 0
    product_shift: int = 0


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder without its weights; dimensions as in weights.model.QuantizedModel.

    Attributes:
        rms: RMSNORM instead of LAYERNORM.
        positions: learned position rows are added to the token rows.
        rope: q and k are rotated.
        gated: the feed-forward part has a gate.
        numbers: of each layer.

    """

    family: str
    rms: bool
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    context: int
    window: int
    positions: bool
    rope: bool
    gated: bool
    numbers: tuple[Numbers, ...]

    @classmethod
    def of(cls, model: QuantizedModel) -> "Shape":
        """Return the shape of a model. Raises CompileError if it is none."""
        if not isinstance(model, QuantizedModel):
            raise CompileError(
                f"model: given {type(model).__name__}, allowed a QuantizedModel of weights.quantize"
            )
        return cls(
            model.family,
            model.norm == "rmsnorm",
            model.hidden,
            model.layers,
            model.heads,
            model.kv_heads,
            model.head_dim,
            model.ffn,
            model.vocab,
            model.context,
            model.window,
            model.wpe is not None,
            model.rope is not None,
            any(block.gate is not None for block in model.blocks),
            tuple(
                Numbers(b.score_mult, b.score_shift, b.product_mult, b.product_shift)
                for b in model.blocks
            ),
        )

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> "Shape":
        """Return what `to_json` was made from. Raises CompileError for anything else."""
        try:
            numbers = tuple(Numbers(**record) for record in fields["numbers"])
            return cls(**fields | {"numbers": numbers})
        except (KeyError, TypeError) as error:
            raise CompileError(f"shape: given {fields!r}: {error}") from None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as JSON knows them."""
        return asdict(self)

    @property
    def group(self) -> int:
        """Query heads per K/V head."""
        return self.heads // self.kv_heads

    @property
    def lane(self) -> int:
        """Bytes of a head in a row of q, k, v or context."""
        return up(self.head_dim)

    @property
    def qkv_pitch(self) -> int:
        """Bytes of a row of q, k and v."""
        return (self.heads + 2 * self.kv_heads) * self.lane

    @property
    def ctx_pitch(self) -> int:
        """Bytes of a row of context."""
        return self.heads * self.lane

    @property
    def residual_pitch(self) -> int:
        """Bytes of a row of the residual stream."""
        return up(2 * self.hidden)

    def keys(self, edge: int) -> int:
        """Return the most keys that a position can look at, counted from a tile boundary."""
        most = up(self.context, edge)
        return min(most, up(self.window + edge - 1, edge)) if self.window else most

    def first_key(self, pos: int, edge: int) -> int:
        """Return WSTART for a pass whose row 0 is at `pos`."""
        return max(0, pos + 1 - self.window) // edge * edge if self.window else 0


def check_limits(limits: Limits) -> None:
    """Raise CompileError unless such a chip can exist."""
    if limits.array_dim not in ARRAY_DIMS:
        raise CompileError(f"limits: array_dim: given {limits.array_dim}, allowed {ARRAY_DIMS}")
    least = {"sram_bytes": WORD, "acc_rows": 2, "norm_max": 1}
    for name, lowest in least.items():
        if getattr(limits, name) < lowest:
            raise CompileError(
                f"limits: {name}: given {getattr(limits, name)}, allowed {lowest} and more"
            )


def check_shape(shape: Shape, limits: Limits) -> None:
    """Raise CompileError for a decoder that no program of the chip can compute."""
    if shape.hidden > limits.norm_max:
        raise CompileError(
            f"hidden {shape.hidden}: the norm takes at most {limits.norm_max} channels"
        )
    columns = {
        "(heads + 2 * kv_heads) * head_dim, padded,": shape.qkv_pitch,
        "ffn": shape.ffn,
        "bytes of an embedding row": 2 * shape.hidden,
        "bytes of a RoPE row": 2 * shape.head_dim,
    }
    for name, value in columns.items():
        if value >= DYNAMIC:
            raise CompileError(f"{name} = {value}: an instruction takes at most {DYNAMIC - 1}")
    if shape.keys(limits.edge) > LONGEST:
        raise CompileError(
            f"context {shape.context}, window {shape.window}: attention over at most {LONGEST} "
            "positions is possible"
        )
    if shape.kv_heads > 256:
        raise CompileError(f"kv_heads {shape.kv_heads}: at most 256 can be named")
