# SPDX-License-Identifier: Apache-2.0
"""bfloat16 in StableHLO, which numpy does not have: float32 has all of its numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from npu.graph.form import Array, GraphError

_BITWISE = ("stablehlo.bitcast_convert", "stablehlo.rng_bit_generator")
_NAME = re.compile(r"\bbf16\b|(?<=x)bf16\b")
_DENSE = re.compile(r"(dense<.*>) : (tensor<.*>)", re.DOTALL)
_RAW = re.compile(r'dense<"0x[0-9A-Fa-f]*">')
_BITS = re.compile(r"\b0x([0-9A-Fa-f]{4})\b")


def widened(module: Any, file: str) -> Any:  # noqa: ANN401
    """Return a module with float32 in the place of bfloat16; one without is returned as it is.

    Raises:
        GraphError: it reads the bits of such numbers.
    """
    if not any(_named(one) for one in _operations(module.operation)):
        return module
    from jaxlib.mlir import ir

    # A module of the caller stays as it is.
    copy = ir.Module.parse(module.operation.get_asm(binary=True), module.context)
    found = list(_operations(copy.operation))
    for operation in found:
        kinds = (str(one.type) for one in (*operation.operands, *operation.results))
        if operation.name in _BITWISE and any(map(_NAME.search, kinds)):
            raise GraphError(f"{file}: {operation.name}: the bits of bf16, allowed its numbers")
    with copy.context, ir.Location.unknown():
        for operation in found:
            _widen(operation)
    return copy


def _operations(operation: Any) -> Iterator[Any]:  # noqa: ANN401
    yield operation
    for region in operation.regions:
        for block in region.blocks:
            for op in block.operations:
                yield from _operations(op.operation)


def _values(operation: Any) -> Iterator[Any]:  # noqa: ANN401
    yield from operation.results
    for region in operation.regions:
        for block in region.blocks:
            yield from block.arguments


def _named(operation: Any) -> bool:  # noqa: ANN401
    return any(_NAME.search(str(one.type)) for one in _values(operation))


def _widen(operation: Any) -> None:  # noqa: ANN401
    from jaxlib.mlir import ir

    for value in _values(operation):
        text = str(value.type)
        if _NAME.search(text):
            value.set_type(ir.Type.parse(_NAME.sub("f32", text)))
    for name in list(operation.attributes):
        given = operation.attributes[name]
        if isinstance(given, ir.DenseElementsAttr):
            if _NAME.search(str(given.type)):
                shape = tuple(ir.ShapedType(given.type).shape)
                value = numbers(str(given), shape)
                operation.attributes[name] = ir.DenseElementsAttr.get(value)
        elif isinstance(given, ir.TypeAttr) and _NAME.search(str(given)):
            operation.attributes[name] = ir.Attribute.parse(_NAME.sub("f32", str(given)))


def numbers(text: str, shape: tuple[int, ...]) -> Array:
    """Return the numbers of a dense constant of bfloat16 as MLIR writes it, as float32."""
    from jaxlib.mlir import ir

    found = _DENSE.fullmatch(text)
    if found is None:
        raise GraphError(f"a constant {text[:40]}, allowed dense numbers")
    if _RAW.fullmatch(found[1]):
        kind = _NAME.sub("ui16", found[2])
        bits: Array = np.array(ir.Attribute.parse(f"{found[1]} : {kind}"))
        real: Array = bits.view(ml_dtypes.bfloat16).astype(np.float32)
        return real.reshape(shape)
    # What is no decimal number stands as its bits, which are the upper ones of float32.
    plain, kind = _BITS.sub(r"0x\g<1>0000", found[1]), _NAME.sub("f32", found[2])
    near: Array = np.array(ir.Attribute.parse(f"{plain} : {kind}"))
    return near.astype(ml_dtypes.bfloat16).astype(np.float32).reshape(shape)
