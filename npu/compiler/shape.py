# SPDX-License-Identifier: Apache-2.0
"""What programs depend on: a decoder's shape as the chip has it, and numbers in instructions."""

from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, Literal

from npu.compiler.errors import CompileError
from spec.isa.operands import ARRAY_DIMS, DYNAMIC, TABLE_BYTES, WORD, Limits, up
from weights.model import Block, QuantizedModel, Rescale
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
    "norm_sizes",
    "numbers_of",
    "qkv_pitch",
    "qkv_products",
    "residual_pitch",
    "to_json",
    "widest",
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
        norm1_mult, norm1_shift, norm2_mult, norm2_shift: of what stands in the place of norms; 0
            where there are norms.
        near_mult, near_shift, act_limit: of a wide shape; 0 else.
        stream_shift: by how many bits the stream's unit grows in front of the layer.

    """

    score_mult: int
    score_shift: int
    product_mult: int = 0
    product_shift: int = 0
    norm1_mult: int = 0
    norm1_shift: int = 0
    norm2_mult: int = 0
    norm2_shift: int = 0
    near_mult: int = 0
    near_shift: int = 0
    act_limit: int = 0
    stream_shift: int = 0

    @classmethod
    def of(cls, block: Block) -> "Numbers":
        """Return those of a block."""
        own = [one.name for one in dataclass_fields(cls) if not one.name.startswith("norm")]
        numbers = {name: getattr(block, name) for name in own}
        for name in ("norm1", "norm2"):
            norm = getattr(block, name)
            if isinstance(norm, Rescale):
                numbers |= {f"{name}_mult": norm.mult, f"{name}_shift": norm.shift}
        return cls(**numbers)

    def rescale(self, norm: Literal["norm1", "norm2"]) -> tuple[int, int]:
        """Return multiplier and shift of what stands in the place of a norm."""
        if norm == "norm1":
            return self.norm1_mult, self.norm1_shift
        return self.norm2_mult, self.norm2_shift

    def record(self) -> dict[str, int]:
        """Return them as the JSON of a packed file has them: those that few have where they are."""
        usual = "score_mult", "score_shift", "product_mult", "product_shift"
        return {name: n for name, n in asdict(self).items() if n or name in usual}


def check_model(model: object) -> None:
    """Raise CompileError for what is no model."""
    if not isinstance(model, QuantizedModel):
        raise CompileError(
            f"model: given {type(model).__name__}, allowed a QuantizedModel of weights.quantize"
        )


def numbers_of(model: QuantizedModel) -> tuple[Numbers, ...]:
    """Return the numbers of each layer."""
    return tuple(Numbers.of(block) for block in model.blocks)


def to_json(shape: Shape, numbers: tuple[Numbers, ...]) -> dict[str, Any]:
    """Return shape and numbers as the JSON of a packed file has them."""
    fields = asdict(shape)
    fields["rms"] = fields.pop("norm") == "rmsnorm"
    usual = {one.name: one.default for one in dataclass_fields(Shape)}
    for name in SELDOM:
        if fields[name] == usual[name]:
            del fields[name]
    records = [record.record() for record in numbers]
    return fields | {"positions": shape.positions, "numbers": records}


def from_json(fields: dict[str, Any]) -> tuple[Shape, tuple[Numbers, ...]]:
    """Return what `to_json` was made from. Raises CompileError for anything else."""
    try:
        rest = dict(fields)
        numbers = tuple(Numbers(**record) for record in rest.pop("numbers"))
        norm: NormKind = "rmsnorm" if rest.pop("rms") else "layernorm"
        positions = rest.pop("positions")
        shape = Shape(norm=norm, **{name: _tuple(value) for name, value in rest.items()})
        layers = {len(given) for given in (numbers, shape.windows, shape.tables) if given}
    except (KeyError, TypeError) as error:
        raise CompileError(f"shape: given {fields!r}: {error}") from None
    if positions != shape.positions:
        raise CompileError(f"shape: given {fields!r}: either positions or rope")
    if not layers <= {shape.layers}:
        raise CompileError(f"shape: given {fields!r}: what is said by layer is said of each")
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


def qkv_products(shape: Shape) -> list[int]:
    """Return the columns of the products that make q, k and v, padded heads included."""
    if not shape.head_norms:
        return [qkv_pitch(shape)]
    return [heads * lane(shape) for heads in (shape.heads, shape.kv_heads, shape.kv_heads)]


def ctx_pitch(shape: Shape) -> int:
    """Return the bytes of a row of context."""
    return shape.heads * lane(shape)


def act_pitch(shape: Shape) -> int:
    """Return the bytes of a row of the input of `down`."""
    return up((1 + shape.wide) * shape.ffn)


def most_rows(shape: Shape, limits: Limits) -> int:
    """Return the most rows of a pass: GEMM adds up an int16 operand in two rows each.

    Where heads are normalised each is a row of one instruction.
    """
    rows = limits.acc_rows // (1 + shape.wide)
    return min(rows, (DYNAMIC - 1) // shape.heads) if shape.head_norms == "head" else rows


def residual_pitch(shape: Shape) -> int:
    """Return the bytes of a row of the residual stream."""
    return up(2 * shape.hidden)


def norm_sizes(shape: Shape) -> list[int]:
    """Return the lengths of the rows of a layer's norms, and of a table that one writes."""
    sizes = [shape.hidden] * (2 * shape.pre_norms + 2 * shape.part_norms)
    sizes += [TABLE_BYTES] * shape.wide
    if shape.head_norms == "head":
        sizes += [shape.head_dim] * 2
    elif shape.head_norms == "row":
        sizes += [shape.q_columns, shape.kv_columns]
    return sizes


def widest(shape: Shape) -> int:
    """Return the widest window of a layer, 0 if a layer has none."""
    windows = [shape.window_of(layer) for layer in range(shape.layers)]
    return max(windows) if all(windows) else 0


def most_keys(context: int, window: int, edge: int) -> int:
    """Return the most keys that a position can look at, counted from a tile boundary."""
    most = up(context, edge)
    return min(most, up(window + edge - 1, edge)) if window else most


def first_key(window: int, pos: int, edge: int) -> int:
    """Return WSTART for a pass whose row 0 is at `pos`."""
    return max(0, pos + 1 - window) // edge * edge if window else 0


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
    if shape.wide and limits.norm_max < TABLE_BYTES:
        raise CompileError(
            f"norm_max {limits.norm_max}: of a model with int16 gates allowed from {TABLE_BYTES} on"
        )
    if shape.head_norms == "row":
        _check_row_norms(shape, limits)
    columns = {
        "(heads + 2 * kv_heads) * head_dim, padded,": qkv_pitch(shape),
        "ffn": shape.ffn,
        "bytes of an embedding row": 2 * shape.hidden,
        "bytes of a RoPE row": 2 * shape.head_dim,
    }
    for name, value in columns.items():
        if value >= DYNAMIC:
            raise CompileError(f"{name} = {value}: an instruction takes at most {DYNAMIC - 1}")
    window = widest(shape)
    if most_keys(shape.context, window, limits.edge) > LONGEST:
        raise CompileError(
            f"context {shape.context}, window {window}: attention over at most {LONGEST} "
            "positions is possible"
        )
    if shape.kv_heads > 256:
        raise CompileError(f"kv_heads {shape.kv_heads}: at most 256 can be named")


def _check_row_norms(shape: Shape, limits: Limits) -> None:
    """Raise CompileError unless q and k can be normalised over all heads of a position."""
    if lane(shape) != shape.head_dim:
        raise CompileError(
            f"head_dim {shape.head_dim}: with norms of whole rows of q and k allowed are multiples "
            f"of {WORD}"
        )
    if shape.q_columns > limits.norm_max:
        raise CompileError(
            f"heads * head_dim = {shape.q_columns}: the norm takes at most {limits.norm_max} "
            "channels"
        )
