# SPDX-License-Identifier: Apache-2.0
"""Rewrites a fused graph so that the chip does nothing twice and nothing that the host gives free.

Operands of one shape where VEC takes no other, moves at the border done by the host on what it
copies anyway, and the first convolution of an image with few channels over rows that the host has
packed. Each is a function from a graph to a graph with the same meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from npu.compiler.network.kernel import MisfitError
from npu.graph.form import (
    Attribute,
    Graph,
    Names,
    Operation,
    OperationPlace,
    Target,
    Tensor,
    all_names,
)
from npu.graph.operations import Trait, with_trait
from npu.graph.passes.placing.cut import WISH
from npu.graph.weight_rows import encoding_of, packs

MOVES = with_trait(Trait.COPY)
ELEMENTWISE = with_trait(Trait.PAIR)


def lower(graph: Graph) -> Graph:
    """Return the graph as the chip is to execute it."""
    return pack_first_layers(move_at_borders(broadcast(graph)))


def broadcast(graph: Graph) -> Graph:
    """Give elementwise operations operands of the shape of their results."""
    names = Names(all_names(graph))
    operations: list[Operation] = []
    added: list[Tensor] = []
    for op in graph.operations:
        if not op.on_chip or op.kind not in ELEMENTWISE:
            operations.append(op)
            continue
        shape = graph.type(op.outputs[0]).shape
        inputs = []
        for name in op.inputs:
            kind = graph.type(name)
            if kind.shape == shape:
                inputs.append(name)
                continue
            data = graph.constant(name)
            wide = names.fresh(f"{name}.expanded")
            inputs.append(wide)
            if data is not None:
                full = np.ascontiguousarray(np.broadcast_to(data, shape))
                added.append(Tensor(wide, replace(kind, shape=shape), full))
                continue
            added.append(Tensor(wide, replace(kind, shape=shape)))
            reason = f"{op.name} takes operands of one shape"
            place = OperationPlace(Target.NPU, reason)
            operations.append(
                Operation(wide, "expand", (name,), (wide,), {"shape": shape}, op.source, place)
            )
        operations.append(replace(op, inputs=tuple(inputs)))
    return graph.with_operations(operations, added)


def move_at_borders(graph: Graph) -> Graph:
    """Let the host make the moves of what it hands to the chip, or takes from it.

    What the user wants on the chip stays there.
    """
    changed = True
    while changed:
        changed = False
        producers, consumers = graph.producers(), graph.consumers()
        operations = []
        for one in graph.operations:
            if one.on_chip and one.kind in MOVES and not _wished(one):
                given = all(
                    graph[name].constant or name not in producers or not producers[name].on_chip
                    for name in one.used
                )
                taken = not any(
                    reader.on_chip for name in one.outputs for reader in consumers[name]
                )
                if given or taken:
                    border = "comes from" if given else "goes to"
                    reason = f"a move of what {border} the host"
                    one = replace(one, place=OperationPlace(Target.HOST, reason))
                    changed = True
            operations.append(one)
        graph = graph.with_operations(operations)
    return graph


def _wished(op: Operation) -> bool:
    return op.place is not None and op.place.reason == WISH


def move_to_host(graph: Graph, error: MisfitError) -> Graph:
    """Return the graph with the move that an error names made by the host; else raise the error."""
    found = [op for op in graph.operations if op.name == error.operation]
    if not found or found[0].kind not in MOVES:
        raise error
    place = OperationPlace(Target.HOST, f"a move for which the chip has no room: {error}")
    return move_at_borders(
        graph.with_operations(
            replace(op, place=place) if op is found[0] else op for op in graph.operations
        )
    )


def pack_first_layers(graph: Graph) -> Graph:
    """Let the host put the pixels of a filter's row side by side where channels fill no word.

    With three channels a pixel takes a word of which a fifth is used; the 3 * KW bytes of a row of
    the filter fill theirs better.
    """
    names = Names(all_names(graph))
    producers, consumers = graph.producers(), graph.consumers()
    operations: list[Operation] = []
    added: list[Tensor] = []
    for op in graph.operations:
        name = op.inputs[0] if op.inputs else ""
        from_host = bool(name) and (name not in producers or not producers[name].on_chip)
        if (
            op.on_chip
            and op.kind == "conv"
            and from_host
            and not graph[name].constant
            and len(consumers[name]) == 1
            and _pays(graph, op)
        ):
            packed, tensors, conv = _packed(graph, op, names)
            operations += [*packed, conv]
            added += tensors
        else:
            operations.append(op)
    return graph.with_operations(operations, added)


def _pays(graph: Graph, op: Operation) -> bool:
    weight = graph.type(op.inputs[1])
    return packs(op, weight.shape, encoding_of(weight))


def _packed(
    graph: Graph, op: Operation, names: Names
) -> tuple[list[Operation], list[Tensor], Operation]:
    """Return the moves of the host, their tensors, and the convolution of what they make."""
    name, weight_name = op.inputs[:2]
    kind, weight = graph.type(name), graph.constant(weight_name)
    assert weight is not None
    batch, height, width, channels = kind.shape
    rows, kernel, _, outputs = weight.shape
    columns = graph.type(op.outputs[0]).shape[2]
    (_, stride), (_, dilation) = op["strides"], op["dilations"]
    top, left, bottom, right = op["pads"]
    place = OperationPlace(Target.HOST, f"packs the pixels of a row of the filter for {op.name}")
    made: list[Operation] = []
    tensors: list[Tensor] = []

    def move(
        move_kind: str,
        inputs: tuple[str, ...],
        shape: tuple[int, ...],
        attributes: Mapping[str, Attribute],
    ) -> str:
        result = names.fresh(f"{name}.packed")
        tensors.append(Tensor(result, replace(kind, shape=shape)))
        made.append(Operation(result, move_kind, inputs, (result,), attributes, op.source, place))
        return result

    if left or right:
        sides = {"before": (0, 0, left, 0), "after": (0, 0, right, 0)}
        shape = (batch, height, width + left + right, channels)
        assert kind.quantisation is not None
        border = int(op["pad_value"])
        real = kind.quantisation.scale * (border - kind.quantisation.zero)
        zero = {"value": real, "value_int": border}
        name = move("pad", (name,), shape, {**sides, **zero})
    taps = tuple(
        move(
            "slice",
            (name,),
            (batch, height, columns, channels),
            {
                "starts": (0, 0, tap * dilation, 0),
                "stops": (batch, height, tap * dilation + (columns - 1) * stride + 1, channels),
                "steps": (1, 1, stride, 1),
            },
        )
        for tap in range(kernel)
    )
    whole = (batch, height, columns, kernel * channels)
    packed = move("concat", taps, whole, {"axis": 3})
    folded = names.fresh(f"{weight_name}.packed")
    data = np.ascontiguousarray(weight.reshape(rows, 1, kernel * channels, outputs))
    tensors.append(Tensor(folded, replace(graph.type(weight_name), shape=data.shape), data))
    attributes = {
        **op.attributes,
        "strides": (op["strides"][0], 1),
        "dilations": (op["dilations"][0], 1),
        "pads": (top, 0, bottom, 0),
    }
    conv = replace(op, inputs=(packed, folded, *op.inputs[2:]), attributes=attributes)
    return made, tensors, conv
