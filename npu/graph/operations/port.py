# SPDX-License-Identifier: Apache-2.0
"""Products of matrices in the number formats of the command port."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from npu.graph.form import Array, Element, GraphError, TensorType
from npu.graph.operations.base import (
    Attributes,
    Call,
    Kind,
    ResultType,
    Types,
    given,
    known,
    rank_of,
)
from npu.graph.operations.constraints import Constraint

GROUPED = "group_int4"


@dataclass(frozen=True, slots=True)
class PortFormat:
    """What the elements of a format are.

    Attributes:
        a, b: types of the elements of both matrices.
        low, high: what integers of b may be, and those of a but for groups; all codes if equal.
        fixed: whether the result has eight fraction bits.
    """

    a: tuple[Element, ...]
    b: tuple[Element, ...]
    low: int = 0
    high: int = 0
    fixed: bool = False


_I8 = (Element.I8,)
FORMATS = {
    "int8": PortFormat(_I8, _I8, -128, 127),
    "int4": PortFormat(_I8, _I8, -8, 7),
    "int2": PortFormat(_I8, _I8, -2, 1),
    "ternary": PortFormat(_I8, _I8, -1, 1),
    "sparse_int4": PortFormat(_I8, _I8, -8, 7),
    "fp8": PortFormat((Element.U8,), (Element.U8,), fixed=True),
    "fp16": PortFormat((Element.F16, Element.U16), (Element.F16, Element.U16), fixed=True),
    "bf16": PortFormat((Element.U16,), (Element.U16,), fixed=True),
    GROUPED: PortFormat(_I8, _I8, -8, 7, fixed=True),
}

TILED = frozenset({"int8", "int4", GROUPED})
"""Formats whose products are tiles in the scratchpad, which the counter of multiplications has."""


def _rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    a, b = known(types, 0), known(types, 1)
    (rows, depth), (inner, columns) = rank_of("a", a, 2), rank_of("b", b, 2)
    if depth != inner:
        raise GraphError(
            f"inner axes differ: {depth} of {list(a.shape)}, {inner} of {list(b.shape)}"
        )
    if 0 in (rows, depth, columns):
        raise GraphError(f"shapes {list(a.shape)} and {list(b.shape)}, allowed axes from 1")
    name, group = str(attributes["format"]), int(attributes["group"])
    if name not in FORMATS:
        raise GraphError(f"format {name!r}, allowed {', '.join(FORMATS)}")
    fmt = FORMATS[name]
    _check_element("a", a, fmt.a, name)
    _check_element("b", b, fmt.b, name)
    _check_scales(given(types, 2), name, group, (-(-depth // max(group, 1)), columns))
    if attributes["exact"] and name not in ("fp16", "bf16"):
        raise GraphError(f"exact with format {name!r}, allowed with fp16 and bf16")
    return (ResultType((rows, columns), Element.I32),)


def _check_element(what: str, found: TensorType, allowed: tuple[Element, ...], name: str) -> None:
    if found.element not in allowed:
        names = " or ".join(allowed)
        raise GraphError(f"{what} is {found.element}, allowed {names} with format {name!r}")


def _check_scales(scales: TensorType | None, name: str, group: int, shape: tuple[int, int]) -> None:
    if name != GROUPED:
        if scales is not None or group:
            raise GraphError(f"groups with format {name!r}, allowed with {GROUPED}")
        return
    if group < 1:
        raise GraphError(f"groups of {group}, allowed 1 and more")
    if scales is None:
        raise GraphError(f"no scales, format {GROUPED!r} needs them")
    if scales.shape != shape or scales.element is not Element.I16:
        raise GraphError(
            f"scales are {scales.element}{list(scales.shape)}, allowed int16{list(shape)}"
        )


def _meaning(call: Call) -> tuple[Array, ...]:
    name = str(call.attributes["format"])
    a, b = call.value(0), call.value(1)
    if name == "fp8":
        left, right = _fp8("a", a), _fp8("b", b)
        return (_rounded(left, right, exact=False),)
    if name in ("fp16", "bf16"):
        left, right = _half("a", a, name), _half("b", b, name)
        return (_rounded(left, right, exact=bool(call.attributes["exact"])),)
    fmt = FORMATS[name]
    _check_range("b", b, fmt.low, fmt.high, name)
    if name != GROUPED:
        _check_range("a", a, fmt.low, fmt.high, name)
        if name == "sparse_int4":
            _check_sparse(a)
        return (_wrapped(a.astype(np.int64) @ b.astype(np.int64)),)
    scales, group = call.value(2), int(call.attributes["group"])
    total = np.zeros((a.shape[0], b.shape[1]), np.int64)
    for row, first in enumerate(range(0, a.shape[1], group)):
        part = slice(first, first + group)
        dots = a[:, part].astype(np.int64) @ b[part].astype(np.int64)
        total += dots * scales[row].astype(np.int64)
    return (_wrapped(total),)


def _wrapped(values: Array) -> Array:
    return values.astype(np.int64).astype(np.uint64).astype(np.uint32).view(np.int32)


def _rounded(left: Array, right: Array, *, exact: bool) -> Array:
    """Multiply numbers with eight fraction bits: each product rounded down, or their sum."""
    products = left[:, :, None] * right[None]
    total = products.sum(axis=1) >> 8 if exact else (products >> 8).sum(axis=1)
    return _wrapped(total)


def _refuse(name: str, wrong: Array, values: Array, allowed: str) -> None:
    if wrong.any():
        i, j = (int(one) for one in np.argwhere(wrong)[0])
        raise GraphError(f"{name}[{i}, {j}]: given {values[i, j]}, allowed {allowed}")


def _check_range(name: str, values: Array, low: int, high: int, fmt: str) -> None:
    _refuse(name, (values < low) | (values > high), values, f"{low} to {high} with format {fmt!r}")


def _check_sparse(a: Array) -> None:
    filled = np.pad(a, ((0, 0), (0, -a.shape[1] % 4))).reshape(a.shape[0], -1, 4)
    counts = (filled != 0).sum(axis=2)
    if (counts > 2).any():
        i, group = (int(one) for one in np.argwhere(counts > 2)[0])
        raise GraphError(
            f"a[{i}, {4 * group}:{4 * group + 4}]: given {counts[i, group]} elements other than 0, "
            "allowed 2 of 4"
        )


def _fp8(name: str, codes: Array) -> Array:
    """Return E4M3 codes in Q8.8, rounded towards 0."""
    _refuse(name, (codes & 0x7F) == 0x7F, codes, "codes of numbers")
    wide = codes.astype(np.int64)
    exponent, mantissa = wide >> 3 & 15, wide & 7
    normal = np.floor((8 + mantissa) * np.exp2(exponent - 2)).astype(np.int64)
    size = np.where(exponent == 0, mantissa >> 1, normal)
    return np.where(wide & 0x80, -size, size)


def _half(name: str, codes: Array, fmt: str) -> Array:
    """Return FP16 or BF16 codes in Q8.8, half away from zero."""
    bits = codes.view(np.uint16) if codes.dtype == np.float16 else codes
    if fmt == "fp16":
        real, least = bits.view(np.float16).astype(np.float64), 2.0**-14
    else:
        real, least = (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64), 2.0**-126
    size = np.abs(real)
    wrong = ~np.isfinite(real) | ((size > 0) & (size < least))
    _refuse(name, wrong, real, f"zero and finite normal numbers of {fmt}")
    fixed = np.sign(real) * np.floor(size * 256 + 0.5)
    _refuse(name, (fixed < -32768) | (fixed > 32767), real, "-128 to 127.998")
    return fixed.astype(np.int64)


KINDS = (
    Kind(
        name="portmatmul",
        group="port",
        inputs=("a", "b", "scales?"),
        attributes={"format": "str", "group": "int", "exact": "bool"},
        rule=_rule,
        meaning=_meaning,
        summary="A product of matrices in a format of the command port, to int32.",
        integer=(
            "int8, int4, int2, ternary, sparse_int4 (2 of 4 along K): sum a * b modulo 2^32. fp8 "
            "(E4M3 codes), fp16, bf16 through Q8.8: sum floor(a * b / 2^8), with exact "
            "floor(sum a * b / 2^8), in Q8.8. group_int4: sum over groups of (sum a * b) * scale, "
            "a int8, b int4, scales Q8.8, in Q8.8."
        ),
        lowering="Tiles and scalar operations of the command port, by register or by descriptor.",
        constraints=(
            Constraint("it runs on the command port unless the user wants it on the host"),
        ),
        sources={
            "onnx": ("tessera.PortMatMul",),
            "stablehlo": ("composite tessera.port_matmul",),
        },
        host_only=True,
    ),
)
