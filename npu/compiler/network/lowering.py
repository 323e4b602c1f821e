# SPDX-License-Identifier: Apache-2.0
"""Rewrites a fused graph so that the chip does nothing twice and nothing that the host gives free.

Operands of one shape where VEC takes no other, moves at the border done by the host on what it
copies anyway, and the first convolution of an image with few channels over windows that the host
has packed. Each is a function from a graph to a graph with the same meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from npu.compiler.network.kernel import MisfitError
from npu.graph.form import (
    Attribute,
    Element,
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
from npu.graph.weight_rows import encoding_of, packs, packs_rows

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
    """Let the host put the pixels of a window side by side where channels fill no word.

    With three channels a pixel takes a word of which a fifth is used; the 3 * KW bytes of a row of
    the filter fill theirs better, and the 3 * KW * KH bytes of all its rows often better still.
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
            packing = _Packing(graph, op, names)
            operations += [*packing.moves, packing.conv]
            added += packing.tensors
        else:
            operations.append(op)
    return graph.with_operations(operations, added)


def _pays(graph: Graph, op: Operation) -> bool:
    weight = graph.type(op.inputs[1])
    return packs(op, weight.shape, encoding_of(weight))


class _Packing:
    """The moves of the host that pack an image, and the convolution of what they make.

    Attributes:
        moves: of the host.
        tensors: what the moves make, and the filter of the convolution.
        conv: the convolution, of single pixels if these are whole windows.
    """

    def __init__(self, graph: Graph, op: Operation, names: Names) -> None:
        weight = graph.constant(op.inputs[1])
        assert weight is not None
        self.moves: list[Operation] = []
        self.tensors: list[Tensor] = []
        self._op, self._names = op, names
        self._image = op.inputs[0]
        self._kind = graph.type(self._image)
        rows, kernel, channels, outputs = weight.shape
        out = graph.type(op.outputs[0]).shape
        strides, dilations, pads = list(op["strides"]), list(op["dilations"]), list(op["pads"])
        whole = packs_rows(weight.shape) and self._kind.element != Element.I16
        for axis in (1, 0) if whole else (1,):
            self._gather(axis, weight.shape[axis], out[1 + axis])
            strides[axis] = dilations[axis] = 1
            pads[axis] = pads[axis + 2] = 0
        lines, taps = (1, rows * kernel) if whole else (rows, kernel)
        packed = weight.reshape(lines, 1, taps * channels, outputs)
        folded = names.fresh(f"{op.inputs[1]}.packed")
        kind = replace(graph.type(op.inputs[1]), shape=packed.shape)
        self.tensors.append(Tensor(folded, kind, np.ascontiguousarray(packed)))
        window = {"strides": tuple(strides), "dilations": tuple(dilations), "pads": tuple(pads)}
        self.conv = replace(
            op,
            inputs=(self._image, folded, *op.inputs[2:]),
            attributes={**op.attributes, **window},
        )

    def _gather(self, axis: int, taps: int, count: int) -> None:
        """Put what windows read along an axis side by side, as channels.

        Args:
            axis: of the filter, 0 for its rows, 1 for its columns.
            taps: of the filter along it.
            count: of windows along it.
        """
        stride, dilation = self._op["strides"][axis], self._op["dilations"][axis]
        self._pad(1 + axis, self._op["pads"][axis], self._op["pads"][axis + 2])
        shape = self._kind.shape
        one = _along(1 + axis, count, shape)
        parts = []
        for first in range(0, taps * dilation, dilation):
            ends = {
                "starts": _along(1 + axis, first, (0,) * 4),
                "stops": _along(1 + axis, first + (count - 1) * stride + 1, shape),
                "steps": _along(1 + axis, stride, (1,) * 4),
            }
            parts.append(self._move("slice", (self._image,), one, ends))
        joined = (*one[:-1], taps * one[-1])
        self._image = self._move("concat", tuple(parts), joined, {"axis": 3})
        self._kind = replace(self._kind, shape=joined)

    def _pad(self, axis: int, before: int, after: int) -> None:
        """Put elements of the border around an axis of the image, if there are any."""
        if not before and not after:
            return
        image, shape = self._kind.quantisation, self._kind.shape
        assert image is not None
        border = int(self._op["pad_value"])
        values = {"value": image.scale * (border - image.zero), "value_int": border}
        sides = {
            "before": _along(axis, before, (0,) * 4),
            "after": _along(axis, after, (0,) * 4),
        }
        padded = _along(axis, before + shape[axis] + after, shape)
        self._image = self._move("pad", (self._image,), padded, {**sides, **values})
        self._kind = replace(self._kind, shape=padded)

    def _move(
        self,
        kind: str,
        inputs: tuple[str, ...],
        shape: tuple[int, ...],
        attributes: Mapping[str, Attribute],
    ) -> str:
        """Add a move and return the name of what it makes."""
        result = self._names.fresh(f"{self._op.inputs[0]}.packed")
        place = OperationPlace(Target.HOST, f"packs the pixels of windows for {self._op.name}")
        self.tensors.append(Tensor(result, replace(self._kind, shape=shape)))
        self.moves.append(
            Operation(result, kind, inputs, (result,), attributes, self._op.source, place)
        )
        return result


def _along(axis: int, value: int, others: tuple[int, ...]) -> tuple[int, ...]:
    """Return the others with another value on one axis."""
    return (*others[:axis], value, *others[axis + 1 :])
