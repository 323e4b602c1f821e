# SPDX-License-Identifier: Apache-2.0
"""An order of operations and operands that does not depend on the source, and names likewise."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from npu.graph.build import renamed
from npu.graph.form import Graph, Operation, Tensor, TensorType
from npu.graph.operations import Trait, with_trait
from npu.graph.text import type_text, write

_COMMUTATIVE = with_trait(Trait.COMMUTES)


def _digest(parts: Iterable[bytes]) -> bytes:
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()


def _constant(tensor: Tensor) -> bytes:
    data = b"" if tensor.data is None else tensor.data.tobytes()
    return _digest([_type(tensor.type), data])


def _type(kind: TensorType) -> bytes:
    return type_text(kind).encode()


def ordered(graph: Graph) -> Graph:
    """Put operations into the order of a walk from the outputs, operands into a fixed one.

    Operations that compute the same are made one. Operands of what commutes stand with the
    constant last, the others in the order of what they are made of.
    """
    values = {name: _constant(one) for name, one in graph.tensors.items() if one.data is not None}
    for index, name in enumerate(graph.inputs):
        values[name] = _digest([b"input", str(index).encode(), _type(graph.type(name))])
    first: dict[bytes, str] = {}
    same: dict[str, str] = {}
    kept: list[Operation] = []
    for one in graph.operations:
        one = _sorted(graph, one, values, same)
        parts = [one.kind.encode(), repr(sorted(one.attributes.items())).encode()]
        parts += [values[name] if name else b"" for name in one.inputs]
        parts += [_type(graph.type(name)) for name in one.outputs]
        for index, name in enumerate(one.outputs):
            values[name] = _digest([*parts, str(index).encode()])
        twins = [first.get(values[name], "") for name in one.outputs]
        if all(twins) and not set(one.outputs) & set(graph.outputs):
            same.update(zip(one.outputs, twins, strict=True))
            continue
        for name in one.outputs:
            first.setdefault(values[name], name)
        kept.append(one)
    return graph.with_operations(_walked(graph, kept))


def _sorted(
    graph: Graph, op: Operation, values: dict[str, bytes], same: dict[str, str]
) -> Operation:
    inputs = tuple(same.get(name, name) for name in op.inputs)
    if op.kind in _COMMUTATIVE:
        inputs = tuple(
            sorted(inputs, key=lambda name: (graph.tensors[name].constant, values[name]))
        )
    return replace(op, inputs=inputs)


def _walked(graph: Graph, operations: list[Operation]) -> list[Operation]:
    """Return operations in the order in which a walk from the outputs finishes them."""
    makers = {name: one for one in operations for name in one.outputs}
    done: dict[int, Operation] = {}
    for output in graph.outputs:
        stack = [(makers[output], False)] if output in makers else []
        while stack:
            one, entered = stack.pop()
            if id(one) in done:
                continue
            if entered:
                done[id(one)] = one
                continue
            stack.append((one, True))
            for name in reversed(one.used):
                if name in makers and id(makers[name]) not in done:
                    stack.append((makers[name], False))
    return list(done.values())


def anonymous(graph: Graph) -> Graph:
    """Return the graph with numbers for names and without sources: to compare two graphs with.

    Equal networks from different sources have equal texts after this.
    """
    used = [name for op in graph.operations for name in (*op.inputs, *op.outputs)]
    known = dict.fromkeys(filter(None, (*graph.inputs, *used, *graph.outputs)))
    names = {name: f"t{number}" for number, name in enumerate(known)}
    plain = renamed(graph, names)
    operations = tuple(
        replace(op, name=f"o{number}", source="") for number, op in enumerate(plain.operations)
    )
    # In the order of the numbers, which is that of their text.
    tensors = {name: plain[name] for name in names.values()}
    return replace(plain, name="", tensors=tensors, operations=operations)


def alike(one: Graph, other: Graph) -> bool:
    """Say whether two graphs are equal but for names and sources."""
    return write(anonymous(one)) == write(anonymous(other))
