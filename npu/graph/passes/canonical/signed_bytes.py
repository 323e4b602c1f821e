# SPDX-License-Identifier: Apache-2.0
"""Unsigned bytes become signed ones with the zero point less 128: the chip knows no others.

Inputs and outputs of the graph keep their type; a requantise at the border flips their highest
bit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from npu.graph.build import SHARING
from npu.graph.form import Element, Graph, Names, Operation, Tensor, TensorType, all_names
from npu.graph.operations import Trait, kind_of, with_trait

_BORDERS = with_trait(Trait.BORDER)
_COMPUTING = frozenset({"linear", "elementwise", "rows", "windows", "composites"})


def signed_type(kind: TensorType) -> TensorType:
    """Return the type of the same real numbers as signed bytes."""
    if kind.quantisation is None:
        raise ValueError("no scale")
    moved = replace(kind.quantisation, zero=kind.quantisation.zero - 128)
    return TensorType(kind.shape, Element.I8, moved)


def signed(graph: Graph) -> Graph:
    """Return the graph with signed bytes inside.

    A graph that computes nothing between its borders stays as it is, and so do bytes that other
    operations than borders and moves read.
    """
    if not any(kind_of(op).group in _COMPUTING for op in graph.operations):
        return graph
    chosen = {
        name
        for name, one in graph.tensors.items()
        if one.type.element == Element.U8 and one.type.quantisation is not None
    }
    # An end that has its border already needs no other.
    readers, makers = graph.consumers(), graph.producers()
    for name in chosen & {*graph.inputs, *graph.outputs}:
        touching = [*readers[name], *([makers[name]] if name in makers else [])]
        if all(one.kind == "requantise" for one in touching):
            chosen = chosen - {name}
    # What moves bytes needs one type on both sides: drop until nothing contradicts.
    before = -1
    while before != len(chosen):
        before = len(chosen)
        for op in graph.operations:
            if op.kind in _BORDERS:
                continue
            touched = {name for name in (*op.used, *op.outputs) if name in chosen}
            bytes_ = {name for name in (*op.used, *op.outputs) if _is_byte(graph, name)}
            if op.kind not in SHARING or touched != bytes_:
                chosen -= touched
    return _exchanged(graph, chosen)


def _is_byte(graph: Graph, name: str) -> bool:
    return graph.type(name).element == Element.U8


def _exchanged(graph: Graph, chosen: set[str]) -> Graph:
    """Give tensors their signed type, and flip at inputs and outputs."""
    names = Names(all_names(graph))
    tensors: list[Tensor] = []
    new: dict[str, str] = {}
    first: list[Operation] = []
    last: list[Operation] = []
    for name in sorted(chosen):
        tensor = graph[name]
        kind = signed_type(tensor.type)
        if tensor.data is not None:
            flipped = (tensor.data ^ np.uint8(0x80)).view(np.int8)
            new[name] = names.fresh(f"{name}.signed")
            tensors.append(Tensor(new[name], kind, flipped))
            continue
        if name not in graph.inputs and name not in graph.outputs:
            tensors.append(Tensor(name, kind))
            continue
        new[name] = names.fresh(f"{name}.signed")
        tensors.append(Tensor(new[name], kind))
        ends = (name, new[name]) if name in graph.inputs else (new[name], name)
        flip = Operation(names.fresh(f"{name}.flip"), "requantise", ends[:1], ends[1:])
        (first if name in graph.inputs else last).append(flip)

    def renamed(op: Operation) -> Operation:
        return replace(
            op,
            inputs=tuple(new.get(name, name) for name in op.inputs),
            outputs=tuple(new.get(name, name) for name in op.outputs),
        )

    operations = [*first, *(renamed(op) for op in graph.operations), *last]
    return graph.with_operations(operations, tensors)
