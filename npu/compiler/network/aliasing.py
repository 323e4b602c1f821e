# SPDX-License-Identifier: Apache-2.0
"""Decides which tensors share a storage: moves that need no instruction, results written in place.

A move whose result is a view of its input costs nothing. The inputs of a concatenation are written
by their producers into the middle of its result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from npu.compiler.network.layout import Layout, StorageView, moved, natural, parts_of, unmoved
from npu.graph.form import Graph, Operation

VIEWS = ("identity", "reshape", "transpose", "slice")
PARAMETERS: Mapping[str, tuple[int, ...]] = {
    "matmul": (1, 2),
    "conv": (1,),
    "layernorm": (1, 2),
    "rmsnorm": (1,),
    "rope": (1, 2),
    "attention": (3,),
    "gather": (1,),
}
"""Inputs that are parameters where they are constant: they come from the stream."""


def laid(graph: Graph, op: Operation) -> list[tuple[int, str]]:
    """Return the inputs of an operation that lie in rows, by number: all but its parameters."""
    parameters = PARAMETERS.get(op.kind, ())
    last = len(op.inputs) - 1
    operand = last if op.attributes.get("combine") else None
    return [
        (number, name)
        for number, name in enumerate(op.inputs)
        if name and not (number in parameters and number != operand and graph[name].constant)
    ]


def accepts(graph: Graph, op: Operation, number: int, view: StorageView) -> bool:
    """Whether an operation can read (number >= 0) or write (-1) a view."""
    axes = len(view.shape)
    match op.kind:
        case "conv" | "maxpool" | "avgpool":
            return view.at(0).rows() is not None
        case "attention" if number == 3:
            return view.rows() is not None and view.offset % 16 == 0
        case "attention":
            return axes == 4 and view.rows(2) is not None and view.offset % 16 == 0
        case "matmul" if axes > 2 and not graph[op.inputs[1]].constant:
            return view.rows(axes - 2) is not None
        case _ if op.kind in (*VIEWS, "concat", "pad", "expand", "gather"):
            return True
    return view.rows() is not None


def lay_out(graph: Graph, operations: Iterable[Operation], outside: frozenset[str]) -> Layout:
    """Return where the tensors of some operations lie.

    Args:
        graph: the network.
        operations: those of the chip, in order.
        outside: tensors that others read or write too: each lies in a storage of its own.
    """
    return _Aliasing(graph, list(operations), outside).layout()


class _Aliasing:
    """The views under construction."""

    def __init__(self, graph: Graph, operations: list[Operation], outside: frozenset[str]) -> None:
        self.graph = graph
        self.operations = operations
        self.outside = outside
        self.consumers = graph.consumers()
        self.producers = {name: one for one in operations for name in one.outputs}
        self.views: dict[str, StorageView] = {}
        self.bytes: dict[str, int] = {}
        self.free: set[str] = set()

    def layout(self) -> Layout:
        """Return the layout."""
        for op in reversed(self.operations):
            if op.kind == "concat":
                self._join(op)
        for op in self.operations:
            for _, name in laid(self.graph, op):
                self._fresh(name)
            name = op.outputs[0]
            if name in self.views:
                continue
            view = self._moved(op)
            if view is None:
                result = self._fresh(name)
                if op.kind in VIEWS and name not in self.outside and self._impose(op, result):
                    self.free.add(op.name)
            else:
                self.views[name] = view
                self.free.add(op.name)
        return Layout(self.views, self.bytes, frozenset(self.free))

    def _fresh(self, name: str) -> StorageView:
        """Return the view of a tensor, in a storage of its own if it has none yet."""
        if name not in self.views:
            kind = self.graph.type(name)
            view = natural(name, kind.shape, kind.element)
            self.views[name] = view
            self.bytes[name] = view.end
        return self.views[name]

    def _moved(self, op: Operation) -> StorageView | None:
        """Return the result of a move as a view, if those who read it can read it there."""
        name = op.outputs[0]
        if op.kind not in VIEWS or name in self.outside:
            return None
        source = self.views[op.inputs[0]]
        view = moved(source, op, self.graph.type(name).shape)
        if view is None or source.element != view.element:
            return None
        return view if self._readable(name, view) else None

    def _impose(self, op: Operation, result: StorageView) -> bool:
        """Let who makes the input of a move write where the result lies; say whether it does."""
        name = op.inputs[0]
        old, producer = self.views[name], self.producers.get(name)
        view = unmoved(result, op, self.graph.type(name).shape)
        alone = producer is not None and self.consumers[name] == [op] and name not in self.outside
        if view is None or producer is None or not alone or old.element != view.element:
            return False
        if producer.name in self.free:
            if not self._impose(producer, view):
                return False
        elif old.storage != name or not accepts(self.graph, producer, -1, view):
            return False
        else:
            del self.bytes[name]
        self.views[name] = view
        return True

    def _readable(self, name: str, view: StorageView) -> bool:
        return all(
            accepts(self.graph, one, number, view)
            for one in self.consumers[name]
            for number, read in enumerate(one.inputs)
            if read == name
        )

    def _join(self, op: Operation) -> None:
        """Let the producers of a concatenation's inputs write into its result."""
        result = self._fresh(op.outputs[0])
        shapes = [self.graph.type(name).shape for name in op.inputs]
        axis = op["axis"] % len(result.shape)
        parts = parts_of(result, shapes, axis)
        if parts is None:
            return
        for name, part in zip(op.inputs, parts, strict=True):
            producer = self.producers.get(name)
            alone = op.inputs.count(name) == 1 and name not in self.views
            if producer is None or not alone or name in self.outside:
                continue
            if producer.kind in VIEWS or not accepts(self.graph, producer, -1, part):
                continue
            if self._readable(name, part):
                self.views[name] = part


def in_place(layout: Layout, op: Operation, result: StorageView) -> list[bool]:
    """Return for each input of a concatenation whether it lies in the result already."""
    axis = op["axis"] % len(result.shape)
    shapes = [layout.views[name].shape for name in op.inputs]
    parts = parts_of(result, shapes, axis)
    if parts is None:
        return [False] * len(op.inputs)
    return [layout.views[n] == p for n, p in zip(op.inputs, parts, strict=True)]
