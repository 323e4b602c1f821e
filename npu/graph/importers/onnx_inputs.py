# SPDX-License-Identifier: Apache-2.0
"""Types of the inputs of an ONNX model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import onnx

from npu.graph.form import LARGEST, RANK, Element, GraphError, TensorType
from npu.graph.importers.onnx_node import element_of


def sizes_by_name(
    inputs: Iterable[onnx.ValueInfoProto], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, int]:
    """Return what the given shapes say of dimensions with a name, where they say one thing.

    Args:
        inputs: of the model.
        shapes: of inputs by name.
    """
    said: dict[str, set[int]] = {}
    for one in inputs:
        dimensions = one.type.tensor_type.shape.dim
        for dimension, size in zip(dimensions, shapes.get(one.name, ()), strict=False):
            said.setdefault(dimension.dim_param, set()).add(int(size))
    return {name: min(sizes) for name, sizes in said.items() if name and len(sizes) == 1}


def input_type(
    one: onnx.ValueInfoProto, shapes: Mapping[str, tuple[int, ...]], named: Mapping[str, int]
) -> TensorType:
    """Return the type of an input, its free dimensions bound.

    Args:
        one: the input.
        shapes: of inputs by name.
        named: sizes of dimensions by name, of an input whose shape is not given.

    Raises:
        GraphError: it is no tensor, or a dimension stays free.
    """
    where = f"input {one.name!r}"
    if not one.type.HasField("tensor_type"):
        what = one.type.WhichOneof("value") or "of no type"
        raise GraphError(f"{where} is {what}, allowed tensors")
    tensor = one.type.tensor_type
    try:
        element = element_of(tensor.elem_type)
    except GraphError as error:
        raise GraphError(f"{where}: {error}") from None
    given = shapes.get(one.name)
    if not tensor.HasField("shape"):
        if given is None:
            raise GraphError(f"{where} has no shape: --shape {one.name}=1,3,224,224")
        return _sized(where, tuple(given), element)
    sizes = [
        one.dim_value if one.HasField("dim_value") and one.dim_value >= 0 else one.dim_param or "?"
        for one in tensor.shape.dim
    ]
    if given is None:
        sizes = [named.get(one, one) if isinstance(one, str) else one for one in sizes]
    return _sized(where, _bound(one.name, sizes, given), element)


def _sized(where: str, shape: tuple[int, ...], element: Element) -> TensorType:
    """Return a type. Raises GraphError if it is larger than a file has them."""
    found = TensorType(shape, element)
    if len(shape) > RANK or found.size > LARGEST:
        raise GraphError(
            f"{where} has shape {list(shape)[:20]}, allowed up to {RANK} axes and {LARGEST:,} "
            "elements"
        )
    return found


def _bound(name: str, sizes: list[int | str], given: tuple[int, ...] | None) -> tuple[int, ...]:
    """Return the shape of an input, its free dimensions bound."""
    free = [one for one in sizes if isinstance(one, str)]
    text = f"input {name!r} has shape [{', '.join(map(str, sizes))}]"
    if given is None:
        if free:
            wish = ",".join("1" if isinstance(one, str) else str(one) for one in sizes)
            raise GraphError(
                f"{text} with free dimensions {', '.join(free)}: --shape {name}={wish}"
            )
        return tuple(int(one) for one in sizes)
    if len(given) != len(sizes) or any(
        isinstance(size, int) and size != one for size, one in zip(sizes, given, strict=True)
    ):
        raise GraphError(f"{text}, given {list(given)}")
    return tuple(int(one) for one in given)
