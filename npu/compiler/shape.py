# SPDX-License-Identifier: Apache-2.0
"""What programs depend on: a decoder's shape as the chip has it, and numbers in instructions."""

from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any

from npu.compiler.errors import CompileError
from spec.isa.operands import ARRAY_DIMS, DYNAMIC, WORD, Limits, up
from weights.model import QuantizedModel
from weights.shape import NormKind, Shape

__all__ = [
    "Numbers",
    "Shape",
    "act_pitch",
    "check_limits",
    "check_model",
    "check_shape",
    "ctx_pitch",
    "first_key",
    "from_json",
    "lane",
    "most_keys",
    "most_rows",
    "numbers_of",
    "qkv_pitch",
    "residual_pitch",
    "to_json",
]

SELDOM = ("wide", "windows", "tables", "parallel", "head_norms", "pre_norms", "part_norms")
"""What of a shape is written only where it is not as most decoders have it."""
LONGEST = 16 * 2048
"""The largest cap of a dynamic dimension, in positions."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of a layer that stand in its instructions.

    Attributes:
        score_mult, score_shift: requantisation of the scores.
        product_mult, product_shift: requantisation of activation times `up`; 0 without a gate, the
            multiplier also where the shape is wide.

    """

    score_mult: int
    score_shift: int
    product_mult: int = 0
    product_shift: int = 0


def check_model(model: object) -> None:
    """Raise CompileError for what is no model."""
    if not isinstance(model, QuantizedModel):
        raise CompileError(
            f"model: given {type(model).__name__}, allowed a QuantizedModel of weights.quantize"
        )


def numbers_of(model: QuantizedModel) -> tuple[Numbers, ...]:
    """Return the numbers of each layer."""
    return tuple(
        Numbers(b.score_mult, b.score_shift, b.product_mult, b.product_shift) for b in model.blocks
    )


def to_json(shape: Shape, numbers: tuple[Numbers, ...]) -> dict[str, Any]:
    """Return shape and numbers as the JSON of a packed file has them."""
    fields = asdict(shape)
    fields["rms"] = fields.pop("norm") == "rmsnorm"
    usual = {one.name: one.default for one in dataclass_fields(Shape)}
    for name in SELDOM:
        if fields[name] == usual[name]:
            del fields[name]
    records = [asdict(record) for record in numbers]
    return fields | {"positions": shape.positions, "numbers": records}


def from_json(fields: dict[str, Any]) -> tuple[Shape, tuple[Numbers, ...]]:
    """Return what `to_json` was made from. Raises CompileError for anything else."""
    try:
        rest = dict(fields)
        numbers = tuple(Numbers(**record) for record in rest.pop("numbers"))
        norm: NormKind = "rmsnorm" if rest.pop("rms") else "layernorm"
        positions = rest.pop("positions")
        shape = Shape(norm=norm, **{name: _tuple(value) for name, value in rest.items()})
    except (KeyError, TypeError) as error:
        raise CompileError(f"shape: given {fields!r}: {error}") from None
    if positions != shape.positions:
        raise CompileError(f"shape: given {fields!r}: either positions or rope")
    return shape, numbers


def _tuple(value: object) -> Any:  # noqa: ANN401
    """Return what JSON has made of a value, lists as tuples."""
    return tuple(value) if isinstance(value, list) else value


def lane(shape: Shape) -> int:
    """Return the bytes of a head in a row of q, k, v or context."""
    return up(shape.head_dim)


def qkv_pitch(shape: Shape) -> int:
    """Return the bytes of a row of q, k and v."""
    return (shape.heads + 2 * shape.kv_heads) * lane(shape)


def ctx_pitch(shape: Shape) -> int:
    """Return the bytes of a row of context."""
    return shape.heads * lane(shape)


def act_pitch(shape: Shape) -> int:
    """Return the bytes of a row of the input of `down`."""
    return up((1 + shape.wide) * shape.ffn)


def most_rows(shape: Shape, limits: Limits) -> int:
    """Return the most rows of a pass: GEMM adds up an int16 operand in two rows each."""
    return limits.acc_rows // (1 + shape.wide)


def residual_pitch(shape: Shape) -> int:
    """Return the bytes of a row of the residual stream."""
    return up(2 * shape.hidden)


def most_keys(shape: Shape, edge: int) -> int:
    """Return the most keys that a position can look at, counted from a tile boundary."""
    most = up(shape.context, edge)
    return min(most, up(shape.window + edge - 1, edge)) if shape.window else most


def first_key(shape: Shape, pos: int, edge: int) -> int:
    """Return WSTART for a pass whose row 0 is at `pos`."""
    return max(0, pos + 1 - shape.window) // edge * edge if shape.window else 0


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
        "(heads + 2 * kv_heads) * head_dim, padded,": qkv_pitch(shape),
        "ffn": shape.ffn,
        "bytes of an embedding row": 2 * shape.hidden,
        "bytes of a RoPE row": 2 * shape.head_dim,
    }
    for name, value in columns.items():
        if value >= DYNAMIC:
            raise CompileError(f"{name} = {value}: an instruction takes at most {DYNAMIC - 1}")
    if most_keys(shape, limits.edge) > LONGEST:
        raise CompileError(
            f"context {shape.context}, window {shape.window}: attention over at most {LONGEST} "
            "positions is possible"
        )
    if shape.kv_heads > 256:
        raise CompileError(f"kv_heads {shape.kv_heads}: at most 256 can be named")
