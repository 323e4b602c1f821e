# SPDX-License-Identifier: Apache-2.0
"""Networks of PULP's tools: integers in tensors of floats, rescaled by RequantShift.

Products of such integers become products of integers, whose sums are exact, and so is the
rescaling behind them: in 64 bits, as no multiplier of 16 bits has its addend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx

from npu.graph.build import SHARING
from npu.graph.form import Array, Element, GraphError, TensorType
from npu.graph.importers.onnx_dialects import ForeignNode, operator
from npu.graph.importers.unmapped import UnmappedError
from npu.graph.operations import Trait, with_trait
from npu.graph.operations.base import FLOATS

PULP = ("PACTOps", "")
PRODUCTS = ("Conv", "Gemm", "MatMul")
"""Operators that `exact_product` knows; their integers are whole wherever RequantShift is."""
Range: TypeAlias = tuple[float, float]
_ANY: Range = (-(2.0**31), 2.0**31)
_INPUT: Range = (-128, 255)
"""What an input in floats may hold, as nothing says whether its bytes are signed."""
_PARTS = 3
"""Bytes that a number is the sum of, at most."""
_MOVES = SHARING - with_trait(Trait.PAIR)
_WIDE = onnx.TensorProto.INT64


def is_pulp(model: onnx.ModelProto) -> bool:
    """Say whether a model rescales integers as these tools do."""
    return any(one.op_type == "RequantShift" and one.domain in PULP for one in model.graph.node)


def exact_product(one: ForeignNode) -> None:
    """Multiply integers in tensors of floats.

    Raises:
        UnmappedError: its operands are not known to be bytes.
    """
    kind, factors = one.operator, {"alpha": 1.0, "beta": 1.0}
    sides = [_parts(one, one.input(0)), _parts(one, one.input(1))]
    said = {name: one.attributes[name] for name in list(one.attributes)}
    if kind == "Gemm":
        factors = {name: said.pop(name, 1.0) for name in factors}
        if any(factor != round(factor) for factor in factors.values()):
            raise UnmappedError("factors of a product of integers that are not whole")
        for side, name in enumerate(("transA", "transB")):
            if said.pop(name, 0):
                sides[side] = [one.add("Transpose", [part], perm=[1, 0]) for part in sides[side]]
    total = ""
    for a in sides[0]:
        for b in sides[1]:
            sums = one.add("Conv" if kind == "Conv" else "MatMul", [a, b], **said)
            wide = one.add("Cast", [_integers(one, sums, np.int32)], to=_WIDE)
            total = one.add("Add", [total, wide]) if total else wide
    total = _times(one, total, factors["alpha"])
    bias = one.input(2) if kind != "MatMul" else ""
    if bias:
        addend = one.add("Cast", [_whole(one, bias)], to=_WIDE)
        if kind == "Conv":
            column = [-1, *[1] * (len(one.shape(total)) - 2)]
            addend = one.add("Reshape", [addend, one.constant(np.array(column, np.int64))])
        total = one.add("Add", [total, _times(one, addend, factors["beta"])])
    one.give("Cast", [total], to=onnx.TensorProto.FLOAT)


def _times(one: ForeignNode, x: str, factor: float) -> str:
    if factor == 1:
        return x
    return one.add("Mul", [x, one.constant(np.array(int(factor), np.int64))])


def _whole(one: ForeignNode, name: str) -> str:
    if range_of(one, name) is None:
        raise UnmappedError(f"{name!r} is not known to be whole")
    return name


def _integers(one: ForeignNode, x: str, dtype: type[np.integer]) -> str:
    """Add the integers that real numbers are."""
    return one.add("QuantizeLinear", [x, *_unit(one, dtype)])


def _unit(one: ForeignNode, dtype: type[np.integer]) -> list[str]:
    return [one.constant(np.ones((), np.float32)), one.constant(np.zeros((), dtype))]


def _parts(one: ForeignNode, name: str) -> list[str]:
    """Return tensors of bytes whose sum a tensor is: what a byte holds, then the rest."""
    found, value = range_of(one, name), one.known(name)
    if found is None:
        raise UnmappedError(f"{name!r} is not known to be whole")
    (low, high), parts, left = found, list[str](), name
    while True:
        dtype = np.int8 if low < 0 or high <= 127 else np.uint8
        held = _integers(one, left, dtype) if value is None else one.constant(value.astype(dtype))
        parts.append(one.add("DequantizeLinear", [held, *_unit(one, dtype)]))
        edge = np.iinfo(dtype)
        low, high = min(low - edge.min, 0), max(high - edge.max, 0)
        if not (low or high):
            return parts
        if value is not None or len(parts) == _PARTS:
            raise UnmappedError(f"{name!r} is not known to be bytes")
        left = one.add("Sub", [left, parts[-1]])


def range_of(
    one: ForeignNode, name: str, known: dict[str, Range | None] | None = None
) -> Range | None:
    """Return between what whole numbers a tensor lies, None if it is not known to be whole."""
    known = {} if known is None else known
    if name not in known:
        known[name] = _range(one, name, known)
    return known[name]


def _range(one: ForeignNode, name: str, known: dict[str, Range | None]) -> Range | None:
    value, kind, made = one.known(name), one.kind(name), one.maker(name)
    if value is not None:
        whole = value.size and np.all(np.isfinite(value)) and np.all(value == np.rint(value))
        return (float(value.min()), float(value.max())) if whole else None
    if kind.element not in FLOATS:
        return _limits(kind)
    if made is None:
        return _INPUT
    if made.kind == "dequantise":
        given = one.kind(made.inputs[0]).quantisation
        if given is None or given.axis is not None or given.scale != 1.0:
            return None
        low, high = _limits(one.kind(made.inputs[0]))
        before = one.maker(made.inputs[0])
        rounds = before is not None and before.kind == "quantise"
        inside = range_of(one, before.inputs[0], known) if before and rounds else None
        if inside is not None:  # what RequantShift has clipped before
            low, high = max(low, inside[0] + given.zero), min(high, inside[1] + given.zero)
        return low - given.zero, high - given.zero
    if made.kind == "cast":
        return range_of(one, made.inputs[0], known)
    return _of_reals(made.kind, made.attributes, [range_of(one, each, known) for each in made.used])


def _limits(kind: TensorType) -> Range:
    dtype = kind.element.dtype
    return (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)


def _of_reals(kind: str, said: Any, known: Sequence[Range | None]) -> Range | None:  # noqa: ANN401
    found = [each for each in known if each is not None]
    if kind == "gather":
        found = found[:1]
    elif len(found) < len(known):
        return None
    if kind == "pad" and said["value"] == round(said["value"]):
        found.append((said["value"], said["value"]))
        kind = "identity"
    if kind in _MOVES:
        return min(low for low, _ in found), max(high for _, high in found)
    if kind == "clip" or (kind == "table" and said["functions"] == ("relu",)):
        low, high = (said["low"], said["high"]) if kind == "clip" else (0.0, math.inf)
        if any(math.isfinite(edge) and edge != round(edge) for edge in (low, high)):
            return None
        return min(max(found[0][0], low), high), max(min(found[0][1], high), low)
    if kind in ("matmul", "conv", "mul", "reduce"):
        return None if said.get("function") == "mean" else _ANY
    if kind == "add":
        return found[0][0] + found[1][0], found[0][1] + found[1][1]
    if kind == "sub":
        return found[0][0] - found[1][1], found[0][1] - found[1][0]
    return None


@operator("RequantShift", domain=PULP)
def _requant_shift(one: ForeignNode) -> None:
    """clip(floor((x * mul + add) / div + 1/2)): integers in tensors of floats."""
    x = one.input(0)
    mul, add = (one.value(one.input(at), what) for at, what in ((1, "mul"), (2, "add")))
    div = number(one, "div")
    levels = int(number(one, "n_levels" if "n_levels" in one.attributes else "n_levels_out"))
    signed = bool(number(one, "signed"))
    if div <= 0 or levels < 2:
        raise GraphError(f"div {div:g} and {levels} levels, allowed from 1 and from 2")
    low = -(levels // 2) if signed else 0
    mul, add = mul.astype(np.float64), add.astype(np.float64)
    if range_of(one, x) is None or any(np.any(each != np.rint(each)) for each in (mul, add, div)):
        rescaled = _in_reals(one, x, mul, add, div)
    else:
        rescaled = _in_integers(one, x, mul, add, int(div))
    edges = [one.constant(np.array(edge, np.float32)) for edge in (low, low + levels - 1)]
    made = one.add("Clip", [rescaled, *edges])
    dtype = next(
        (
            dtype
            for dtype in (np.int8, np.uint8, np.int16, np.int32)
            if np.iinfo(dtype).min <= low and low + levels - 1 <= np.iinfo(dtype).max
        ),
        None,
    )
    if dtype is None:
        raise GraphError(f"{levels} levels, allowed up to {1 << 32}")
    one.give("DequantizeLinear", [_integers(one, made, dtype), *_unit(one, dtype)])


def _in_reals(one: ForeignNode, x: str, mul: Array, add: Array, div: float) -> str:
    # Numerators are whole: half of one more changes no result but turns ties upward.
    scaled = one.add("Mul", [x, one.constant(_channels(one, x, mul / div, np.float32))])
    moved = one.constant(_channels(one, x, (add + 0.5) / div, np.float32))
    return one.add("Add", [scaled, moved])


def _in_integers(one: ForeignNode, x: str, mul: Array, add: Array, div: int) -> str:
    """Rescale in 64 bits; a quotient is rounded towards 0, so it is moved to where that is down."""
    made = one.maker(x)
    if made is not None and made.kind == "cast" and one.kind(made.inputs[0]).element == Element.I64:
        wide = made.inputs[0]
    else:
        wide = one.add("Cast", [x], to=_WIDE)
    up = 1 << max(0, 60 - div.bit_length())
    scaled = one.add("Mul", [wide, one.constant(_channels(one, x, 2 * mul, np.int64))])
    moved = 2 * add.astype(np.int64) + div + 2 * div * up
    total = one.add("Add", [scaled, one.constant(_channels(one, x, moved, np.int64))])
    quotient = one.add("Div", [total, one.constant(np.array(2 * div, np.int64))])
    rounded = one.add("Sub", [quotient, one.constant(np.array(up, np.int64))])
    return one.add("Cast", [rounded], to=onnx.TensorProto.FLOAT)


def number(one: ForeignNode, name: str) -> float:
    """Return an attribute that is a number, or a tensor of one."""
    found = one.attributes[name]
    data = one.array(found)
    if data.size != 1:
        raise GraphError(f"attribute {name} {data.reshape(-1)[:4].tolist()}, allowed one number")
    return float(data.reshape(-1)[0])


def _channels(one: ForeignNode, x: str, data: Array, dtype: type[np.generic]) -> Array:
    """Bring numbers per channel, behind or in front, to the shape of x."""
    shape = one.shape(x)
    size, found = data.size, data.astype(dtype)
    if size == 1:
        return found.reshape(())
    if data.ndim > 1 or (len(shape) == 2 and shape[1] == size):
        return found
    if len(shape) > 2 and shape[1] == size:
        return found.reshape(size, *(1,) * (len(shape) - 2))
    if shape[-1] == size:
        return found
    raise GraphError(f"{size} numbers for shape {list(shape)}, allowed one per channel")
