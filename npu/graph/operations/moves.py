# SPDX-License-Identifier: Apache-2.0
"""Operations that move elements and change none."""

from __future__ import annotations

import math

import numpy as np

from npu.graph.form import Array, Element, GraphError
from npu.graph.operations.base import (
    Attributes,
    Call,
    Kind,
    ResultType,
    Trait,
    Types,
    axis_of,
    broadcast,
    exactly,
    known,
    plain,
)
from npu.graph.operations.constraints import Constraint, few_indices, finite_padding, steps_forward

TILED = ("DEPTH_TO_SPACE", "SPACE_TO_DEPTH", "SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
RESIZED = ("MIRROR_PAD", "RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR")


def _identity_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x = known(types, 0)
    return (ResultType(x.shape, plain(x)),)


def _reshape_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x, shape = known(types, 0), attributes["shape"]
    if math.prod(shape) != x.size or min(shape, default=0) < 0:
        raise GraphError(f"shape {list(shape)} of {x.size} elements, allowed as many")
    return (ResultType(shape, plain(x)),)


def _transpose_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x, order = known(types, 0), attributes["order"]
    if sorted(order) != list(range(len(x.shape))):
        raise GraphError(f"order {list(order)}, allowed each axis of {list(x.shape)} once")
    return (ResultType(tuple(x.shape[axis] for axis in order), plain(x)),)


def _concat_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    present = [known(types, index) for index in range(len(types))]
    first = known(types, 0)
    axis = axis_of(attributes["axis"], len(first.shape))
    for one in present:
        rest, other = list(one.shape), list(first.shape)
        if len(rest) == len(other):
            rest[axis] = other[axis]
        if rest != other:
            raise GraphError(
                f"shapes {', '.join(str(list(each.shape)) for each in present)}, "
                f"allowed equal ones but for axis {axis}"
            )
    total = sum(one.shape[axis] for one in present)
    shape = (*first.shape[:axis], total, *first.shape[axis + 1 :])
    return (ResultType(shape, plain(*present)),)


def _slice_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x = known(types, 0)
    starts, stops, steps = (attributes[name] for name in ("starts", "stops", "steps"))
    for what, found in (("starts", starts), ("stops", stops), ("steps", steps)):
        exactly(what, found, len(x.shape))
    shape = []
    for size, start, stop, step in zip(x.shape, starts, stops, steps, strict=True):
        low = -1 if step < 0 else 0
        if step == 0 or not low <= start <= size or not low <= stop <= size:
            raise GraphError(
                f"slice {start}..{stop} in steps of {step} of an axis of {size}, allowed "
                f"{low}..{size} in steps other than 0"
            )
        shape.append(len(range(start, stop, step)))
    return (ResultType(tuple(shape), plain(x)),)


def _slice(call: Call) -> tuple[Array, ...]:
    starts, stops, steps = (call.attributes[name] for name in ("starts", "stops", "steps"))
    cut = tuple(
        slice(start, None if stop < 0 else stop, step)
        for start, stop, step in zip(starts, stops, steps, strict=True)
    )
    return (call.value(0)[cut],)


def _pad_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x, before, after = known(types, 0), attributes["before"], attributes["after"]
    exactly("before", before, len(x.shape))
    exactly("after", after, len(x.shape))
    if min((*before, *after), default=0) < 0:
        raise GraphError(f"pads {list(before)} and {list(after)}, allowed from 0")
    shape = tuple(sum(sizes) for sizes in zip(x.shape, before, after, strict=True))
    return (ResultType(shape, plain(x)),)


def _pad(call: Call) -> tuple[Array, ...]:
    x, attributes = call.value(0), call.attributes
    widths = list(zip(attributes["before"], attributes["after"], strict=True))
    value = attributes["value"] if x.dtype.kind == "f" else int(attributes["value"])
    return (np.pad(x, widths, constant_values=value) if x.ndim else x,)


def _gather_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x, indices = known(types, 0), known(types, 1)
    axis = axis_of(attributes["axis"], len(x.shape))
    if np.dtype(indices.element).kind not in "iu":
        raise GraphError(f"indices are {indices.element}, allowed integers")
    return (ResultType((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), plain(x)),)


def check_indices(indices: Array, size: int) -> None:
    """Raise GraphError for an index that an axis of some size has not."""
    if indices.size and not -size <= int(indices.min()) <= int(indices.max()) < size:
        raise GraphError(
            f"indices {int(indices.min())}..{int(indices.max())}, allowed {-size}..{size - 1}"
        )


def _gather(call: Call) -> tuple[Array, ...]:
    x, indices, axis = call.value(0), call.value(1), call.attributes["axis"]
    check_indices(indices, x.shape[axis])
    return (np.take(x, indices, axis=axis),)


def _cast_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    try:
        return (ResultType(known(types, 0).shape, Element(attributes["element"])),)
    except ValueError:
        allowed = ", ".join(Element)
        raise GraphError(f"element {attributes['element']!r}, allowed {allowed}") from None


def _cast(call: Call) -> tuple[Array, ...]:
    with np.errstate(all="ignore"):
        return (call.value(0).astype(Element(call.attributes["element"]).dtype),)


def _expand_rule(attributes: Attributes, types: Types) -> tuple[ResultType, ...]:
    x, shape = known(types, 0), attributes["shape"]
    if broadcast(x.shape, shape) != tuple(shape):
        raise GraphError(f"shape {list(shape)}, allowed one that {list(x.shape)} broadcasts to")
    return (ResultType(shape, plain(x)),)


_ROWS = Constraint("the element type, scale and zero point are the same before and after")
_COPIES = "Pitches and addresses where rows are multiples of 16 bytes, else COPY2D or DMA."

KINDS = (
    Kind(
        name="reshape",
        group="moves",
        inputs=("x",),
        attributes={"shape": "ints"},
        rule=_reshape_rule,
        meaning=lambda call: (call.value(0).reshape(call.attributes["shape"]),),
        summary="The same elements in the same order with another shape.",
        integer="The same integers.",
        lowering=_COPIES,
        constraints=(_ROWS,),
        sources={
            "onnx": ("Reshape", "Flatten", "Squeeze", "Unsqueeze"),
            "stablehlo": ("reshape",),
            "tflite": ("RESHAPE", "SQUEEZE", "EXPAND_DIMS"),
        },
        traits=frozenset({Trait.COPY, Trait.SHARES}),
        chip="an address",
    ),
    Kind(
        name="transpose",
        group="moves",
        inputs=("x",),
        attributes={"order": "ints"},
        rule=_transpose_rule,
        meaning=lambda call: (call.value(0).transpose(call.attributes["order"]),),
        summary="Axis i of the result is axis order[i] of the input.",
        integer="The same integers.",
        lowering="Absorbed by a neighbour, else identity times the operand with T, or COPY2D for "
        "axes before the last.",
        constraints=(_ROWS, Constraint("what moves the last axis moves bytes")),
        sources={
            "onnx": ("Transpose", "DepthToSpace", "SpaceToDepth"),
            "stablehlo": ("transpose",),
            "tflite": ("TRANSPOSE", *TILED),
        },
        traits=frozenset({Trait.COPY, Trait.SHARES}),
        chip="a product with the identity, or addresses",
    ),
    Kind(
        name="concat",
        group="moves",
        inputs=("xs*",),
        attributes={"axis": "int"},
        rule=_concat_rule,
        meaning=lambda call: (
            np.concatenate(
                [call.value(index) for index in range(len(call.values))],
                axis=call.attributes["axis"],
            ),
        ),
        summary="Tensors one behind the other along an axis.",
        integer="The same integers.",
        lowering=_COPIES,
        constraints=(Constraint("all have one element type, scale and zero point"),),
        sources={
            "onnx": ("Concat",),
            "stablehlo": ("concatenate",),
            "tflite": ("CONCATENATION", "PACK", "TILE"),
        },
        traits=frozenset({Trait.COPY, Trait.SHARES}),
        chip="addresses",
    ),
    Kind(
        name="slice",
        group="moves",
        inputs=("x",),
        attributes={"starts": "ints", "stops": "ints", "steps": "ints"},
        rule=_slice_rule,
        meaning=_slice,
        summary="From start to before stop in steps along each axis; a stop of -1 with a "
        "negative step is the place before the first element.",
        integer="The same integers.",
        lowering=_COPIES,
        constraints=(_ROWS, steps_forward),
        sources={
            "onnx": ("Slice", "Split"),
            "stablehlo": ("slice", "reverse", "dynamic_slice"),
            "tflite": (*("SLICE", "STRIDED_SLICE", "SPLIT", "SPLIT_V", "UNPACK", "REVERSE_V2"),),
        },
        traits=frozenset({Trait.COPY, Trait.SHARES}),
        chip="addresses",
    ),
    Kind(
        name="pad",
        group="moves",
        inputs=("x",),
        attributes={"before": "ints", "after": "ints", "value": "float"},
        rule=_pad_rule,
        meaning=_pad,
        summary="A value before and after each axis.",
        integer="The same integers, value_int around them.",
        lowering=_COPIES,
        constraints=(_ROWS, finite_padding),
        sources={"onnx": ("Pad",), "stablehlo": ("pad",), "tflite": ("PAD", "PADV2")},
        fused={"value_int": "int"},
        traits=frozenset({Trait.COPY}),
        chip="addresses",
    ),
    Kind(
        name="gather",
        group="moves",
        inputs=("x", "indices"),
        attributes={"axis": "int"},
        rule=_gather_rule,
        meaning=_gather,
        summary="The slices of x along an axis that the indices name; negative ones count from "
        "behind.",
        integer="The same integers.",
        lowering="Slices, one for each run of neighbours.",
        constraints=(few_indices,),
        sources={
            "onnx": ("Gather",),
            "stablehlo": ("gather",),
            "tflite": ("GATHER", "GATHER_ND", "EMBEDDING_LOOKUP", *RESIZED),
        },
        traits=frozenset({Trait.SHARES}),
        chip="slices, because the indices are constant",
    ),
    Kind(
        name="cast",
        group="moves",
        inputs=("x",),
        attributes={"element": "str"},
        rule=_cast_rule,
        meaning=_cast,
        summary="The same numbers in another element type, rounded towards zero.",
        integer="The same numbers, no saturation.",
        lowering="None: executed by the host unless it changes nothing.",
        constraints=(Constraint("the element type is the same before and after"),),
        sources={"onnx": ("Cast", "CastLike"), "stablehlo": ("convert",), "tflite": ("CAST",)},
        traits=frozenset({Trait.POINTWISE}),
    ),
    Kind(
        name="identity",
        group="moves",
        inputs=("x",),
        attributes={},
        rule=_identity_rule,
        meaning=lambda call: (call.value(0),),
        summary="The same tensor under another name.",
        integer="The same integers.",
        lowering="None: the same addresses.",
        constraints=(_ROWS,),
        sources={
            "onnx": ("Identity", "Dropout"),
            "stablehlo": ("optimization_barrier",),
            "tflite": (),
        },
        traits=frozenset({Trait.COPY, Trait.POINTWISE, Trait.SHARES}),
        chip="nothing to do",
    ),
    Kind(
        name="expand",
        group="moves",
        inputs=("x",),
        attributes={"shape": "ints"},
        rule=_expand_rule,
        meaning=lambda call: (np.broadcast_to(call.value(0), call.attributes["shape"]),),
        summary="The tensor broadcast to a shape as numpy does.",
        integer="The same integers.",
        lowering="COPY2D or DMA, once per copy.",
        constraints=(_ROWS,),
        sources={
            "onnx": ("Expand", "Tile"),
            "stablehlo": ("broadcast_in_dim",),
            "tflite": ("BROADCAST_TO", "FILL"),
        },
        traits=frozenset({Trait.COPY, Trait.SHARES}),
        chip="copies",
    ),
)
